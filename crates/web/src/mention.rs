//! Addresses that a text names, found as those read them who could follow them.
//!
//! A text that is an address as a whole is parsed as [`crate::Web::fetch`] parses it (WHATWG URL Standard). Within other texts, JSON included,
//! addresses are looked for as browsers, Markdown and lenient clients recognise them: with any scheme, with any number of slashes, without a
//! scheme, behind escapes. Deliberately absent: a list of the top-level domains that exist.

use std::net::Ipv4Addr;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::Value;
use url::{Host, Position, Url};

use crate::address::parsed;
use crate::boilerplate::words;

/// Endings of file names that are domains as well, or look like them.
const FILES: [&str; 42] = [
    "app", "bak", "bat", "bin", "bmp", "cfg", "conf", "cpp", "css", "csv", "db", "doc", "docx",
    "gif", "go", "gz", "htm", "html", "ini", "java", "jpeg", "jpg", "js", "json", "log", "md",
    "pdf", "png", "ppt", "pptx", "py", "rs", "sh", "sql", "svg", "tar", "toml", "ts", "txt", "xls",
    "xlsx", "xml",
];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mention {
    pub url: Url,
    pub written: String,
}

/// Finds the addresses in all texts of a value, names of fields included.
pub fn mentions(value: &Value) -> Vec<Mention> {
    let mut found = Vec::new();
    collect(value, &mut found);
    found
}

pub fn mentions_in(text: &str) -> Vec<Mention> {
    let mut found = Vec::new();
    within(text, &mut found);
    found
}

fn collect(value: &Value, found: &mut Vec<Mention>) {
    match value {
        Value::String(text) => {
            found.extend(whole(text).or_else(|| bare(text)));
            within(text, found);
            if text.trim_start().starts_with(['{', '[', '"']) {
                let inner: Option<Value> = serde_json::from_str(text).ok();
                inner.iter().for_each(|inner| collect(inner, found));
            }
        }
        Value::Array(list) => list.iter().for_each(|value| collect(value, found)),
        Value::Object(fields) => fields.iter().for_each(|(name, value)| {
            found.extend(whole(name));
            within(name, found);
            collect(value, found);
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Reads a whole text as an address: with a scheme, as `//host`, or as `host/path`.
fn whole(text: &str) -> Option<Mention> {
    let text = text.trim();
    let mention = |url: Url| Mention { url, written: text.to_owned() };
    if let Some(url) = parsed(text).filter(Url::has_host) {
        return (url.host_str() != Some("")).then(|| mention(url));
    }
    // As the standard reads them: without tabs and ends of lines, and without control characters around them.
    let read: String = text.chars().filter(|c| !matches!(c, '\t' | '\n' | '\r')).collect();
    let read = read.trim_matches(|c: char| c <= ' ');
    let is_relative = read.starts_with("//")
        || read.starts_with(['/', '\\']) && {
            read.chars().nth(1).is_some_and(|c| matches!(c, '/' | '\\'))
        };
    if is_relative {
        return parsed(&format!("https:{read}")).map(mention);
    }
    let url = parsed(&format!("https://{read}")).filter(|_| !read.contains(char::is_whitespace))?;
    let (before, _) = read.split_once(['/', '\\', '?', '#']).unwrap_or((read, ""));
    let has_more = before.len() < read.len() || (url.port().is_some() && !before.contains('@'));
    (has_more && is_named(&url, before)).then(|| mention(url))
}

/// Reads a whole text as only the name of a host.
fn bare(text: &str) -> Option<Mention> {
    let text = text.trim();
    if text.contains(|c: char| c.is_whitespace() || "/\\?#:@".contains(c)) {
        return None;
    }
    let url = parsed(&format!("https://{text}")).filter(|url| is_named(url, text))?;
    let ending = url.host_str()?.trim_end_matches('.').rsplit('.').next()?.to_owned();
    (!FILES.contains(&ending.as_str())).then(|| Mention { url, written: text.to_owned() })
}

/// Returns whether the text before a path looks like a host name in the public network, or an IP address.
fn is_named(url: &Url, before: &str) -> bool {
    match url.host() {
        Some(Host::Domain("localhost")) => url.port().is_some(),
        Some(Host::Domain(name)) => {
            let mut labels = name.trim_end_matches('.').rsplit('.');
            let last = labels.next().unwrap_or_default();
            let is_word = last.len() > 1 && last.bytes().all(|byte| byte.is_ascii_alphabetic());
            labels.next().is_some_and(|label| !label.is_empty())
                && (is_word || last.starts_with("xn--"))
        }
        // `1.5` and `12/05` can be read as IPv4 addresses, too; only one written in full counts.
        Some(Host::Ipv4(_)) => {
            let host = before.rsplit('@').next().unwrap_or(before);
            host.split(':').next().is_some_and(|host| host.parse::<Ipv4Addr>().is_ok())
        }
        Some(Host::Ipv6(_)) => true,
        None => false,
    }
}

/// The possible starts of an address within a text.
static BEGINNING: LazyLock<Regex> = LazyLock::new(|| {
    let schemes = r"(?:https?|wss?|ftp):[/\\]*|[a-z][a-z0-9+.-]*:[/\\]{2,}";
    let relative = r"(?:^|[^\w)/\\])(?<relative>[/\\]{2,})";
    let host = r"(?:^|[^\w/\\.-])(?<host>(?:[\w-]+[.。．｡])+[\w-]{2,}(?::\d{2,5})?[/\\?#]|(?:[\w-]+\.)+[\w-]{2,}:\d{2,5}|www\.[\w-]+\.)";
    words(&format!("(?i)(?<scheme>{schemes})|{relative}|{host}"))
});

/// Letters that are written as something else.
static ESCAPE: LazyLock<Regex> = LazyLock::new(|| {
    let numbers =
        r"\\u\{?([0-9a-f]{1,6})\}?|\\x([0-9a-f]{2})|&#x([0-9a-f]{1,6});?|&#([0-9]{1,7});?";
    words(&format!(r"(?i){numbers}|&(colon|sol|bsol|period|Tab|NewLine|amp);|\\([:./])"))
});

fn within(text: &str, found: &mut Vec<Mention>) {
    let mut read = text.to_owned();
    scan(&read, found);
    // An escape may be escaped itself, as JSON within JSON is.
    for _ in 0..3 {
        let plain = ESCAPE.replace_all(&read, unescaped).into_owned();
        if plain == read {
            break;
        }
        read = plain;
        scan(&read, found);
    }
    // Browsers leave these out of the addresses in markup.
    if text.contains('<') || text.contains("](") {
        let joined: String = read.chars().filter(|c| !matches!(c, '\t' | '\n' | '\r')).collect();
        let mut of_markup = Vec::new();
        scan(&joined, &mut of_markup);
        let is_enclosed = |mention: &Mention| {
            joined
                .match_indices(&mention.written)
                .any(|(at, _)| joined[..at].trim_end().ends_with(['"', '\'', '(', '<', '=']))
        };
        of_markup.retain(|mention| {
            is_enclosed(mention) && !found.iter().any(|one| one.url.host() == mention.url.host())
        });
        found.append(&mut of_markup);
    }
}

fn unescaped(escape: &Captures<'_>) -> String {
    let number = |group: usize, radix: u32| {
        let digits = escape.get(group)?;
        u32::from_str_radix(digits.as_str(), radix).ok().and_then(char::from_u32)
    };
    let numbered = number(1, 16).or_else(|| number(2, 16)).or_else(|| number(3, 16));
    if let Some(letter) = numbered.or_else(|| number(4, 10)) {
        return letter.to_string();
    }
    let named = match escape.get(5).map(|name| name.as_str().to_ascii_lowercase()).as_deref() {
        Some("colon") => ":",
        Some("sol") => "/",
        Some("bsol") => "\\",
        Some("period") => ".",
        Some("tab") => "\t",
        Some("newline") => "\n",
        Some("amp") => "&",
        _ => escape.get(6).map_or(&escape[0], |letter| letter.as_str()),
    };
    named.to_owned()
}

fn scan(text: &str, found: &mut Vec<Mention>) {
    let mut at = 0;
    while let Some(start) = BEGINNING.captures_at(text, at) {
        let named = |name: &str| start.name(name).map(|part| (part.start(), part.end()));
        let scheme = named("scheme");
        let Some((begin, end)) = scheme.or_else(|| named("relative")).or_else(|| named("host"))
        else {
            break;
        };
        at = end;
        let written = one(text, begin);
        let Some(mention) = whole(written).or_else(|| bare(written)) else { continue };
        // Two slashes alone are a comment in most languages.
        let is_certain = scheme.is_some() || is_named(&mention.url, written);
        if is_certain && !found.contains(&mention) {
            at = at.max(begin + written.len());
            found.push(mention);
        }
    }
}

/// Returns the address that begins there, without the end of a sentence or markup.
fn one(text: &str, begin: usize) -> &str {
    let rest = &text[begin..];
    let quote = text[..begin].chars().next_back().filter(|c| matches!(c, '\'' | '*' | '_' | '|'));
    let mut open = Vec::new();
    let mut end = rest.len();
    for (at, letter) in rest.char_indices() {
        let closes = match letter {
            '(' | '[' | '{' => {
                open.push(letter);
                false
            }
            ')' => open.pop() != Some('('),
            ']' => open.pop() != Some('['),
            '}' => open.pop() != Some('{'),
            '"' | '<' | '>' | '`' => true,
            ',' | ';' | '|' => {
                let next = &rest[at + 1..];
                BEGINNING.find(next).is_some_and(|next| next.start() == 0)
            }
            _ => letter.is_whitespace() || Some(letter) == quote,
        };
        if closes {
            end = at;
            break;
        }
    }
    rest[..end].trim_end_matches(['.', ',', ';', ':', '!', '?', '\'', '*', '_', '~'])
}

impl Mention {
    /// Returns whether a text contains this address, or a longer one that begins with it.
    ///
    /// Scheme, fragment, a slash at the end and the case of letters do not count.
    pub fn stands_in(&self, text: &str) -> bool {
        let leads_to =
            self.url[Position::BeforeUsername..Position::AfterQuery].trim_end_matches('/');
        let written = self.written.split('#').next().unwrap_or_default();
        let written = match BEGINNING.captures(written).and_then(|found| found.name("scheme")) {
            Some(scheme) if scheme.start() == 0 => &written[scheme.end()..],
            _ => written.trim_start_matches(['/', '\\']),
        };
        let written = written.trim_end_matches('/');
        if contains(text, leads_to) || contains(text, written) {
            return true;
        }
        let text = text.to_lowercase();
        contains(&text, &leads_to.to_lowercase()) || contains(&text, &written.to_lowercase())
    }
}

/// Returns whether a text contains an address that is not part of another host's name.
fn contains(text: &str, address: &str) -> bool {
    let is_host = !address.contains(['/', '\\', '?']);
    let of_name = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
    !address.is_empty()
        && text.match_indices(address).any(|(at, _)| {
            let before = text[..at].chars().next_back();
            let mut after = text[at + address.len()..].chars();
            let next = after.next();
            let begins = !before.is_some_and(|c| of_name(c) || matches!(c, '.' | '@' | '%'));
            let continues = next.is_some_and(|c| of_name(c) || c == '@')
                || (next == Some('.') && after.next().is_some_and(of_name));
            begins && !(is_host && continues)
        })
}
