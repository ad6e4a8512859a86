//! Escapes of XML in answers: undone where a model copied its prompt, and left where it means them.

use perihelion::llm::scripted::Reply;
use perihelion::llm::{ChatMessage, Role};
use serde_json::json;

use super::answers::received;
use super::request;

/// A model copies what its prompt escapes.
#[tokio::test]
async fn escapes_of_the_prompt_do_not_reach_the_answer() {
    let mut asked = request(Role::Agent);
    asked.messages.push(ChatMessage::user("<task>say &quot;a &amp;amp; b&quot;</task>"));
    let reply = Reply::text("&quot;a &amp;amp; b&quot; &lt;c&gt;")
        .and_call("x", json!({ "q": "&quot;a&quot;" }));
    let answered = received(reply, &asked).await;
    assert_eq!(
        answered.content, "\"a &amp; b\" &lt;c&gt;",
        "what the prompt does not escape stays"
    );
    assert_eq!(answered.tool_calls[0].arguments, json!({ "q": "\"a\"" }));
}

/// Files that tools write and answers about HTML need the escapes that stand in them.
#[tokio::test]
async fn escapes_that_a_model_means_stay() {
    let mut asked = request(Role::Agent);
    asked
        .messages
        .push(ChatMessage::user("<output>&lt;p&gt;a &amp;lt; b &amp;amp; c&lt;/p&gt;</output>"));
    let page = json!({ "text": "<p>a &lt; b &amp; c</p>" });
    for answer in [
        "Write `&lt;` for `<`, and \"&amp;\" for \"&\".",
        "A < b & c is written as A &lt; b &amp; c there.",
    ] {
        let answered = received(Reply::text(answer).and_call("write", page.clone()), &asked).await;
        assert_eq!(answered.content, answer);
        assert_eq!(answered.tool_calls[0].arguments, page);
    }
}
