//! The scripted model itself.

use perihelion::llm::scripted::{Reply, Rule, Script};
use perihelion::llm::{ChatModel, Role};

use super::{model_at, request, serve};

#[tokio::test]
async fn a_request_that_the_script_does_not_know_is_refused_by_name() {
    let server = serve(Script::new()).await;
    let model = model_at(server.url(), &[]);
    let error = model.chat(&request(Role::Supervisor), None).await.unwrap_err().to_string();
    assert!(error.contains("no reply for role `supervisor`, agent `-`, call 1"), "{error}");
    assert!(error.ends_with("last message: Hello"), "{error}");
    server.stop().await;
}

#[tokio::test]
async fn only_the_requested_number_of_requests_is_stored_and_all_are_counted() {
    let rule = Rule::new(Reply::text("second")).role(Role::Qa).nth(2);
    let script = Script::new().keep_requests(1).rule(rule).rule(Rule::new(Reply::text("first")));
    let server = serve(script).await;
    let model = model_at(server.url(), &[]);
    for answer in ["first", "second"] {
        assert_eq!(model.chat(&request(Role::Qa), None).await.unwrap().content, answer);
    }
    server.wait_for_requests(2).await;
    assert_eq!(server.requests().iter().map(|one| one.nth).collect::<Vec<_>>(), [2]);
    server.stop().await;
}

#[tokio::test]
async fn a_responder_is_asked_before_the_rules_and_hanging_requests_end_with_the_server() {
    let script = Script::new()
        .respond_with(|request| (request.nth == 1).then(Reply::hang))
        .rule(Rule::new(Reply::text("rules")));
    let server = serve(script).await;
    let model =
        std::sync::Arc::new(model_at(server.url(), &[("PERIHELION_MODELS_MAX_RETRIES", "0")]));
    let waiting = tokio::spawn({
        let model = model.clone();
        async move { model.chat(&request(Role::Agent), None).await }
    });
    server.wait_for_requests(1).await;
    assert_eq!(model.chat(&request(Role::Agent), None).await.unwrap().content, "rules");
    server.stop().await;
    assert!(waiting.await.unwrap().is_err());
}
