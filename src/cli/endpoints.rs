//! Model endpoints: what each does, and what follows from it for runs.

use std::collections::BTreeMap;

use super::reached::without_query;
use perihelion_llm::openai::{self, Abilities, Schemas, Tools};
use perihelion_llm::{self as llm, Role};
use perihelion_runtime::Runtime;
use perihelion_servers::Finding::{self, Bad, Good, Odd};
use perihelion_settings::config::{Input, ModelSettings, Protocol, Roles, Settings};

/// Tokens of a window from which on prompts fit without care.
const AMPLE: u32 = 32_768;

/// Asks the endpoint of every role and agent for its models, and those of each run also what they do.
pub(super) async fn check(settings: &Settings, found: &mut Vec<Finding>) {
    let models = &settings.models;
    let of_runs = [Role::Supervisor, Role::Agent, Role::Reflector, Role::Qa];
    let of_runs = of_runs.map(|role| (models.for_role(role.as_str()), String::new(), true));
    let of_agent = |name| (models.for_agent(name), format!(" of models.agents.{name}"), true);
    let of_role = |role: &&str| (models.for_role(role), format!(" of models.roles.{role}"), false);
    let all = of_runs.into_iter().chain(models.agents.keys().map(|name| of_agent(name)));
    let mut wanted = BTreeMap::new();
    for (role, key, is_probed) in all.chain(Roles::NAMES.iter().map(of_role)) {
        if let Some(url) = role.url.clone() {
            let endpoint = (url, role.model.clone(), role.api_key_env.clone());
            wanted.entry(endpoint).or_insert((role, key, is_probed));
        }
    }
    for ((url, model, variable), (role, key, is_probed)) in wanted {
        let listed = openai::list_models(&url, &role).await;
        let shown = without_query(&url);
        let name = format!("model: {model} at {shown}");
        let finding = match listed.map(|names| names.map(|names| names.contains(&model))) {
            Ok(Some(true)) => Good(name),
            Ok(Some(false)) => Odd(format!(
                "{name}: the endpoint responds, but does not list this model; check --model or OPENAI_MODEL"
            )),
            Ok(None) => Odd(format!(
                "{name}: the endpoint responds, but lists no models, so the name was not checked"
            )),
            Err(error) => Bad(format!("model{key}: {error}{}", without_version(&error, shown))),
        };
        let is_there = !finding.is_bad();
        found.push(finding);
        // The default one need not be set.
        let variable = variable.filter(|name| role.api_key.is_none() && name != "OPENAI_API_KEY");
        if is_there && let Some(variable) = variable {
            found.push(Odd(format!(
                "model {model}: requests have no API key, because {variable} is not set; set it, or remove api_key_env"
            )));
        }
        if is_there && is_probed {
            match openai::probe(&url, &role).await {
                Ok(abilities) => found.extend(consequences(&abilities, &role)),
                Err(error) => found.push(Bad(format!("model {model}: {error}"))),
            }
        }
    }
    if let Err(error) = Runtime::check_model(settings) {
        found.push(Bad(format!("model: {error}")));
    }
}

/// Asks about the end of an address at which nothing is found.
fn without_version(error: &llm::Error, url: &str) -> &'static str {
    let is_versioned = url.trim_end_matches('/').ends_with("/v1");
    match error {
        llm::Error::Refused { status: 404, .. } if is_versioned => {
            "; there is no /models under this address: is it that of an OpenAI-compatible endpoint?"
        }
        llm::Error::Refused { status: 404, .. } => {
            "; there is no /models under this address: should it end in /v1?"
        }
        _ => "",
    }
}

/// Says what an endpoint does, and what that means for runs.
fn consequences(abilities: &Abilities, role: &ModelSettings) -> Vec<Finding> {
    let about = |text: &str| format!("model {}: {text}", role.model);
    let good = |text: &str| Good(about(text));
    let odd = |text: &str| Odd(about(text));
    let schemas = match abilities.schemas {
        Schemas::Enforced => good("enforces JSON schemas; decisions are asked for by schema"),
        Schemas::Ignored => odd(
            "accepts JSON schemas, but does not enforce them; answers are checked and asked for again. \
             Set models.json_mode = \"text\" to put the schema into the prompt",
        ),
        Schemas::Refused => {
            odd("refuses JSON schemas; the prompt contains the schema, and answers are checked")
        }
    };
    let tools = match &abilities.tools {
        Tools::Read => good("reads tools; agents call them"),
        Tools::Dropped => odd(
            "the prompt has as many tokens with tools as without: the chat template drops them, and agents cannot call \
             any. Use a model or a template with tools",
        ),
        Tools::Refused(why) => odd(&format!("refuses tools, so agents cannot call any: {why}")),
    };
    let streaming = if abilities.streams {
        good("streams answers")
    } else {
        odd("does not stream; answers are shown when they are whole")
    };
    let usage = if abilities.counts {
        good("counts tokens; limits.max_tokens uses its counts")
    } else {
        odd("does not count all tokens; limits.max_tokens uses estimates, which records mark")
    };
    let window = match (abilities.window, role.context_window) {
        (Some(stated), Some(set)) if set > stated => odd(&format!(
            "models.context_window is {set}, but the context has {stated} tokens; set it to {stated}"
        )),
        (Some(stated), None) if stated < AMPLE => odd(&format!(
            "the context has {stated} tokens; set models.context_window = {stated}, so that prompts are fitted into it"
        )),
        (Some(stated), _) => good(&format!("the context has {stated} tokens")),
        (None, Some(set)) => good(&format!("prompts are fitted into {set} tokens")),
        (None, None) => {
            good("does not state its context; a prompt that is refused as too long is shortened")
        }
    };
    let is_sent = role.input.takes(Input::Image);
    let vision = if abilities.sees && is_sent {
        good("accepts images, which are sent")
    } else if abilities.sees {
        good("accepts images; set models.input = [\"text\", \"image\"] to send them")
    } else if is_sent {
        odd("refuses images, but models.input has \"image\"; remove it")
    } else {
        good("refuses images; prompts name them")
    };
    let protocol = if role.protocol != Protocol::Auto {
        good(&format!("models.protocol is {:?}", role.protocol).to_lowercase())
    } else if abilities.suits_compact() {
        odd(
            "decides in the full form until it fails; set models.protocol = \"compact\" for a small model",
        )
    } else {
        good("decides in the full form, and in the compact one after repairs")
    };
    vec![schemas, tools, streaming, usage, window, vision, protocol]
}
