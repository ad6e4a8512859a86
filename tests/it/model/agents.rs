//! Agents whose own calls go to a model of their own.

use perihelion::config::{Overrides, Settings};
use perihelion::llm::scripted::{Reply, Rule, Script};
use perihelion::llm::{ChatModel, OpenAiModel, Role};

use super::{KEY, request, serve};

/// S3.02
#[tokio::test]
async fn an_agents_own_calls_go_to_its_own_endpoint_and_its_judges_do_not() {
    let say = |text: &str| Script::new().rule(Rule::new(Reply::text(text)));
    let common = serve(say("common")).await;
    let own = serve(say("own")).await;
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("perihelion.toml");
    let text = format!(
        "[models]\nurl = {:?}\nmodel = \"big\"\n[models.agents.sales]\nurl = {:?}\nmodel = \"small\"\n",
        common.url(),
        own.url()
    );
    std::fs::write(&path, text).unwrap();
    let env = |name: &str| (name == "OPENAI_API_KEY").then(|| KEY.to_owned());
    let settings = Settings::load(Overrides::default(), Some(&path), &env).unwrap();
    let model = OpenAiModel::new(&settings.models).unwrap();
    for (role, agent, wanted) in [
        (Role::Agent, "mcp_agent_sales", "own"),
        (Role::Reflector, "mcp_agent_sales", "common"),
        (Role::Agent, "mcp_agent_other", "common"),
    ] {
        let mut request = request(role);
        request.agent = Some(agent.to_owned());
        let answer = model.chat(&request, None).await.unwrap();
        assert_eq!(answer.content, wanted, "{role:?} of {agent}");
    }
    let sent = &own.requests()[0];
    assert_eq!(sent.body["model"], "small");
    assert!(!sent.headers.contains_key("authorization"), "the key stays with its address");
}
