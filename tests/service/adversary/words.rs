//! Words that mislead: what an answer, a tool's name or the arguments of a call would show or do.

use crate::served::Served;

/// What an answer shows cannot reach outside: the page loads nothing from elsewhere and runs nothing inline.
#[tokio::test]
async fn the_page_may_load_nothing_from_elsewhere() {
    let served = Served::sqlite().await;
    let page = served.http.get(format!("{}/", served.url)).send().await.unwrap();
    let policy = page.headers()["content-security-policy"].to_str().unwrap().to_owned();
    assert!(policy.contains("default-src"), "{policy}");
    for rule in policy.split(';').map(str::trim) {
        let outside = rule.contains("http:") || rule.contains("https:") || rule.contains('*');
        assert!(!outside, "{rule}");
        let runs_inline = rule.starts_with("script-src") && rule.contains("unsafe");
        assert!(!runs_inline, "{rule}");
    }
}
