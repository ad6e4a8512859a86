//! Words that mislead: what an answer, a tool's name or the arguments of a call would show or do.

use crate::served::Served;
use crate::{on_both, saying};

on_both!(invisible_characters_in_arguments_are_written_out_for_the_approver);

/// S3.09: ASI09: text that turns its direction or has no width, in the arguments of a call that waits for a person.
async fn invisible_characters_in_arguments_are_written_out_for_the_approver(served: Served) {
    let thread = served.thread().await;
    let wait = format!("/threads/{thread}/runs/wait");
    let (_, waits) = served.post(&wait, &saying("approve this: mislead")).await;
    let asked = &waits["__interrupt__"][0];
    let request = &asked["value"]["action_requests"][0];
    // What is sent is what was asked, and the request says what it is.
    assert_eq!(request["args"]["text"], "pay 1\u{202e}00\u{200b} to Ann", "{waits}");
    let text = request["description"].as_str().unwrap();
    assert!(
        text.contains("invisible characters") && text.contains("\\u{202e}00\\u{200b}"),
        "{text}"
    );
    let id = asked["id"].as_str().unwrap();
    for shown in [
        served.program(&["approvals", "show", id]).await,
        served.program(&["approvals", "list"]).await,
    ] {
        assert!(!shown.contains(['\u{202e}', '\u{200b}']), "{shown}");
    }
}

/// What an answer shows cannot reach outside: the page loads nothing from elsewhere and runs nothing inline.
#[tokio::test]
async fn the_page_may_not_load_from_elsewhere() {
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
