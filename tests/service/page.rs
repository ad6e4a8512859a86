//! The page's routes: its files, how long browsers keep them, what they may do, and addresses that are no files.

use reqwest::Response;

use super::served::Served;

async fn got(served: &Served, path: &str) -> Response {
    served.http.get(format!("{}{path}", served.url)).send().await.unwrap()
}

fn header<'a>(answer: &'a Response, name: &str) -> &'a str {
    answer.headers().get(name).map_or("", |value| value.to_str().unwrap())
}

/// Addresses that the page names, all of them relative, so that it works below a proxy's prefix as well.
fn named(page: &str) -> Vec<&str> {
    page.split('"').filter(|part| part.starts_with("ui/")).collect()
}

/// S3.13: a stranger gets the page, which asks for the login, and each of its files under the strict policy.
#[tokio::test]
async fn the_page_and_its_files_are_served_to_all_under_a_strict_policy() {
    let served = Served::with_token("a-token-of-at-least-thirty-two-bytes").await;
    let page = got(&served, "/").await;
    assert_eq!(page.status(), 200);
    assert_eq!(header(&page, "content-type"), "text/html; charset=utf-8");
    assert_eq!(header(&page, "cache-control"), "no-cache", "a new build is seen at once");
    let policy = header(&page, "content-security-policy").to_owned();
    for rule in ["default-src 'none'", "script-src 'self'", "style-src 'self'", "base-uri 'none'"] {
        assert!(policy.split("; ").any(|one| one == rule), "{rule} is not in {policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    let page = page.text().await.unwrap();
    let mut kinds = Vec::new();
    for name in named(&page) {
        let file = got(&served, &format!("/{name}")).await;
        assert_eq!(file.status(), 200, "{name}");
        let kept = match name.rsplit('.').next() {
            Some("svg") => "public, max-age=3600",
            _ => "public, max-age=31536000, immutable",
        };
        assert_eq!(header(&file, "cache-control"), kept, "{name}");
        assert_eq!(header(&file, "content-security-policy"), policy, "{name}");
        assert_eq!(header(&file, "x-content-type-options"), "nosniff", "{name}");
        assert_eq!(header(&file, "referrer-policy"), "no-referrer", "{name}");
        kinds.push(header(&file, "content-type").to_owned());
        assert!(!file.bytes().await.unwrap().is_empty(), "{name}");
    }
    kinds.sort();
    // The page's own code and that of its libraries are two scripts.
    let script = "text/javascript; charset=utf-8";
    assert_eq!(kinds, ["image/svg+xml", "text/css; charset=utf-8", script, script]);
}

/// S3.13: what is no file of the page is not there, whatever the address climbs to.
#[tokio::test]
async fn an_address_without_a_file_shows_no_page() {
    let served = Served::sqlite().await;
    for path in
        ["/ui/page-00000000.js", "/ui/chat/x", "/ui/..%2f..%2fCargo.toml", "/ui/%2fetc%2fpasswd"]
    {
        let answer = got(&served, path).await;
        assert_eq!(answer.status(), 404, "{path}");
        assert_eq!(header(&answer, "content-type"), "text/plain; charset=utf-8", "{path}");
        assert_eq!(header(&answer, "cache-control"), "", "{path}");
        assert_eq!(answer.text().await.unwrap(), "file not found\n", "{path}");
    }
    let posted = served.http.post(format!("{}/", served.url)).send().await.unwrap();
    assert_eq!(posted.status(), 405);
}
