//! The forms of a decision: a plan with tasks, one agent with its task, or none where one agent gets the request (S1.04).

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{ARCHITECT, FIND_AGENT, GraphState, Menu, SupervisorDecision, menu, node, window};
use perihelion_llm::{self as llm, ChatModel, ChatRequest, Error, Role, Structured};
use perihelion_settings::config::Protocol;

/// Answers in a row that needed a repair, after which a smaller form is asked for.
const REPAIRED: u32 = 2;

/// Valid answers in a row in the smaller form, after which the full one is tried again.
const TRUSTED: u32 = 20;

/// Characters of a task in the smaller form: a model that rambles on in digits, each a token, ends within small limits.
const TASK: usize = 240;

/// The form of one decision; noted where it is not the full one, so that a replay asks for the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Shape {
    /// A plan, and any number of tasks.
    Full,
    /// One agent and its task.
    Choice,
    /// No model is asked: the only agent gets the request.
    Direct,
}

impl Shape {
    /// Puts the agents first that fit the request: small models choose what they read first.
    pub(super) fn arranged(self, mut menu: Menu, candidates: &[String]) -> Menu {
        if self == Self::Choice {
            let place = |name: &String| candidates.iter().position(|one| one == name);
            menu.shown.sort_by_key(|(name, _)| place(name).unwrap_or(usize::MAX));
        }
        menu
    }
}

/// Chooses the form of a role's answers by its setting, and by what `auto` learned of the model while the process lives.
#[derive(Clone, Debug)]
pub struct Shapes {
    role: Role,
    protocol: Protocol,
    /// Answers in a row that needed repairs; from [`REPAIRED`] on, that and the valid ones in a row in the smaller form.
    repaired: Arc<AtomicU32>,
}

impl Shapes {
    pub fn new(role: Role, protocol: Protocol) -> Self {
        Self { role, protocol, repaired: Arc::default() }
    }

    pub(super) fn is_compact(&self) -> bool {
        match self.protocol {
            Protocol::Full => false,
            Protocol::Compact => true,
            Protocol::Auto => self.repaired.load(Ordering::Relaxed) >= REPAIRED,
        }
    }

    pub(super) fn next(&self, menu: &Menu, state: &GraphState) -> Shape {
        let is_first = state.routing.round == 0 && state.errors.is_empty();
        let only = matches!(menu.shown.as_slice(), [(name, _)] if name != ARCHITECT);
        // Without agents there is talk alone, which the small form has no words for.
        if self.protocol == Protocol::Full || menu.is_empty() {
            Shape::Full
        } else if only && menu.hidden.is_empty() && is_first {
            Shape::Direct
        } else if self.is_compact() {
            Shape::Choice
        } else {
            Shape::Full
        }
    }

    /// Learns from an answer that was given or could not be had; says so where it changes the form of the next.
    pub(super) fn learn<T>(&self, answer: &Result<Structured<T>, Error>) {
        let before = self.repaired.load(Ordering::Relaxed);
        let was_compact = before >= REPAIRED;
        let now = match answer {
            Ok(answer) if (answer.attempts == 1) == was_compact => before + 1,
            Ok(_) if !was_compact => 0,
            Ok(_) | Err(Error::Invalid { .. }) => REPAIRED,
            Err(_) => before,
        };
        // One more repair is enough for a model that needed them before.
        let is_trusted = now >= REPAIRED + TRUSTED;
        let now = if is_trusted { REPAIRED - 1 } else { now };
        self.repaired.store(now, Ordering::Relaxed);
        if self.protocol == Protocol::Auto && (now >= REPAIRED) != was_compact {
            let role = self.role.as_str();
            let form = if is_trusted { "full" } else { "compact" };
            tracing::info!(
                "models.protocol is auto: the {role}'s model is asked for the {form} form from now on; compact answers \
                 follow repairs, and full ones {TRUSTED} valid answers in a row"
            );
        }
    }
}

pub(super) async fn ask(
    model: &dyn ChatModel,
    mut request: ChatRequest,
    shape: Shape,
    (menu, state): (&Menu, &GraphState),
) -> Result<Structured<SupervisorDecision>, Error> {
    let mut names = names(menu, state);
    if shape == Shape::Choice {
        let is_first = state.results_of_turn().next().is_none() && state.errors.is_empty();
        if is_first && window::history(state).is_empty() {
            // There is nothing yet to answer from.
            names.retain(|name| name != node::QA);
        }
        // Models that need this form are those that repeat themselves.
        request.manner.is_watched = true;
        let sent = choice(&names);
        // A long task is no reason to ask again.
        let mut read = sent.clone();
        read["properties"]["task"] = json!({ "type": "string" });
        let mut answer: Structured<SupervisorDecision> =
            llm::ask_as(model, request, "supervisor_choice", &sent, &read).await?;
        // An endpoint that enforces the bound cut it there: the request itself has all.
        answer.value.tasks.retain(|one| one.task.chars().count() != TASK);
        return Ok(answer);
    }
    let sent = narrowed(&names);
    llm::ask_as(model, request, "supervisor_decision", &sent, &ACCEPTED).await
}

fn names(menu: &Menu, state: &GraphState) -> Vec<String> {
    let search = (!menu.hidden.is_empty() && menu::left(state) > 0).then_some(FIND_AGENT);
    let shown = menu.shown.iter().map(|(name, _)| name.as_str());
    shown.chain([node::QA]).chain(search).map(str::to_owned).collect()
}

fn choice(names: &[String]) -> Value {
    json!({
        "type": "object",
        "properties": {
            "agent": { "type": "string", "enum": names, "description": "Who works next; qa to finish." },
            "task": { "type": "string", "maxLength": TASK, "description": "What the agent is to do." },
        },
        "required": ["agent", "task"],
        "additionalProperties": false,
    })
}

/// Narrows the schema of a full decision to the names that there are.
///
/// A long list of names is written once: its tokens are paid for with every decision.
fn narrowed(names: &[String]) -> Value {
    const FEW: usize = 8;
    let mut schema = Value::clone(&llm::strict_schema::<SupervisorDecision>());
    let properties = &mut schema["properties"];
    let both = ["/selected_agents/items", "/tasks/items/properties/agent"];
    for path in both.into_iter().take(if names.len() > FEW { 1 } else { 2 }) {
        if let Some(Value::Object(part)) = properties.pointer_mut(path) {
            part.insert("enum".to_owned(), json!(names));
        }
    }
    schema
}

/// What a full decision is read by: only what has no default must be there.
static ACCEPTED: LazyLock<Value> = LazyLock::new(|| {
    let mut schema = llm::unbounded(Value::clone(&llm::strict_schema::<SupervisorDecision>()));
    schema["required"] = json!([]);
    schema["properties"]["tasks"]["items"]["required"] = json!(["id", "agent", "task"]);
    schema
});

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Search;

    fn menu(shown: &[&str], hidden: &[&str]) -> Menu {
        let shown = shown.iter().map(|name| ((*name).to_owned(), "line".to_owned())).collect();
        Menu { shown, hidden: hidden.iter().map(ToString::to_string).collect() }
    }

    fn answered(attempts: u32) -> Result<Structured<()>, Error> {
        Ok(Structured { value: (), usage: llm::Usage::default(), attempts })
    }

    #[test]
    fn the_form_follows_from_the_setting_the_catalog_and_the_repairs() {
        let state = GraphState::default();
        let one = menu(&["mcp_agent_a"], &[]);
        let two = menu(&["mcp_agent_a", "mcp_agent_b"], &[]);
        let next =
            |protocol, menu: &Menu| Shapes::new(Role::Supervisor, protocol).next(menu, &state);
        assert_eq!(next(Protocol::Full, &one), Shape::Full);
        assert_eq!(next(Protocol::Auto, &one), Shape::Direct);
        assert_eq!(next(Protocol::Compact, &one), Shape::Direct);
        assert_eq!(next(Protocol::Auto, &menu(&["mcp_agent_a"], &["b"])), Shape::Full);
        assert_eq!(next(Protocol::Auto, &menu(&[ARCHITECT], &[])), Shape::Full);
        assert_eq!(next(Protocol::Auto, &two), Shape::Full);
        assert_eq!(next(Protocol::Compact, &two), Shape::Choice);
        let mut failed = GraphState::default();
        failed.routing.round = 1;
        assert_eq!(
            Shapes::new(Role::Supervisor, Protocol::Compact).next(&one, &failed),
            Shape::Choice
        );

        let auto = Shapes::new(Role::Supervisor, Protocol::Auto);
        let team = auto.clone();
        for (attempts, shape) in [
            (2, Shape::Full),
            (1, Shape::Full),
            (2, Shape::Full),
            (3, Shape::Choice),
            (1, Shape::Choice),
        ] {
            auto.learn(&answered(attempts));
            assert_eq!(team.next(&two, &state), shape, "after {attempts} attempts");
        }
        // It was valid once; a repair begins the count again.
        auto.learn(&answered(2));
        for valid in 1..=TRUSTED {
            assert_eq!(team.next(&two, &state), Shape::Choice, "after {valid} valid ones");
            auto.learn(&answered(1));
        }
        assert_eq!(team.next(&two, &state), Shape::Full);
        auto.learn(&answered(2));
        assert_eq!(team.next(&two, &state), Shape::Choice);
    }

    #[test]
    fn schemas_name_the_agents_and_bound_texts_and_lists() {
        let part = menu(&["mcp_agent_a"], &["mcp_agent_b"]);
        let mut state = GraphState::default();
        assert_eq!(names(&part, &state), ["mcp_agent_a", "qa", "find_agent"]);
        let search = Search { query: "q".into(), found: vec![], is_new: true, round: 1 };
        state.routing.searches = vec![search; menu::MOST];
        let names = names(&part, &state);
        assert_eq!(names, ["mcp_agent_a", "qa"]);
        let text = narrowed(&names);
        fn unbounded(schema: &Value, path: &str, found: &mut Vec<String>) {
            let is = |kind: &str| {
                let listed = schema["type"]
                    .as_array()
                    .is_some_and(|kinds| kinds.iter().any(|one| one == kind));
                schema["type"] == kind || listed
            };
            let free =
                is("string") && schema.get("enum").is_none() && schema.get("maxLength").is_none();
            if free || is("array") && schema.get("maxItems").is_none() {
                found.push(path.to_owned());
            }
            for (key, part) in schema["properties"].as_object().into_iter().flatten() {
                unbounded(part, &format!("{path}/{key}"), found);
            }
            if let Some(items) = schema.get("items") {
                unbounded(items, &format!("{path}/items"), found);
            }
            for part in schema["anyOf"].as_array().into_iter().flatten() {
                unbounded(part, path, found);
            }
        }
        let mut found = Vec::new();
        unbounded(&text, "", &mut found);
        assert!(found.is_empty(), "{found:?}\n{text:#}");
        let agent = &text["properties"]["tasks"]["items"]["properties"]["agent"];
        assert_eq!(agent["enum"], json!(["mcp_agent_a", "qa"]));
    }
}
