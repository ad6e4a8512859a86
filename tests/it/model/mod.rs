//! Model calls over real HTTP, against the scripted model.

mod agents;
mod answers;
mod attached;
mod escapes;
mod failures;
mod native;
mod requests;
mod scripted;
mod streaming;
mod structured;
mod windows;

use std::collections::BTreeMap;

use perihelion::config::{Overrides, Settings};
use perihelion::llm::scripted::{Reply, Rule, Script, ScriptedModel, ScriptedServer};
use perihelion::llm::{
    ChatMessage, ChatModel, ChatRequest, ChatResponse, Error, OpenAiModel, Role,
};

/// The API key of every test; it must show nowhere.
const KEY: &str = "sk-canary-0123456789";

async fn serve(script: Script) -> ScriptedServer {
    ScriptedModel::start(script).await.unwrap()
}

/// Makes the model as the program does: from settings, here out of environment variables.
fn model_at(url: &str, more: &[(&str, &str)]) -> OpenAiModel {
    let mut env: BTreeMap<String, String> = [
        ("OPENAI_BASE_URL", url),
        ("OPENAI_API_KEY", KEY),
        ("OPENAI_MODEL", "big"),
        ("PERIHELION_MODELS_BACKOFF_MS", "1"),
        ("PERIHELION_MODELS_BACKOFF_MAX_SEC", "0.005"),
        ("PERIHELION_MODELS_MAX_RETRIES", "2"),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .collect();
    env.extend(more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    let settings =
        Settings::load(Overrides::default(), None, &|name| env.get(name).cloned()).unwrap();
    OpenAiModel::new(&settings.models).unwrap()
}

fn request(role: Role) -> ChatRequest {
    let messages = vec![ChatMessage::system("Be brief."), ChatMessage::user("Hello")];
    ChatRequest::new(role, "0197a000-0000-7000-8000-000000000001", messages)
}

/// Serves one reply to everything and asks once.
async fn answer_to(reply: Reply) -> Result<ChatResponse, Error> {
    let server = serve(Script::new().rule(Rule::new(reply))).await;
    let model = model_at(server.url(), &[("PERIHELION_MODELS_MAX_RETRIES", "0")]);
    let answer = model.chat(&request(Role::Agent), None).await;
    server.stop().await;
    answer
}
