//! The request: its form, its checks, and the node that opens a turn (S1.02, S2.01, S2.02).

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    AGENT_PREFIX, Attachment, GraphState, GraphUpdate, Message, Preferences, Result, Routing,
    Spent, StarLimits, StarParts, TEAM_PREFIX, attachments, clean_name, model::RecordedModel, node,
    seen, summing,
};
use perihelion_engine::graph::{Context, Node, NodeError, NodeOutput};
use perihelion_llm::structured;
use perihelion_settings::config::{Approvals, strict::did_you_mean};

/// Longest accepted question, in bytes.
const MAX_QUESTION: usize = 256 * 1024;

/// Longest accepted system prompt, in bytes.
const MAX_SYSTEM_PROMPT: usize = 16 * 1024;

/// A user's request; services store it until a process runs it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Request {
    pub question: String,
    /// Messages that are merged into the conversation before the question.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<Message>,
    pub context: BTreeMap<String, String>,
    pub prefer_agents: Vec<String>,
    pub disable_agents: Vec<String>,
    pub team: Option<String>,
    /// The user, by the name of their memories.
    pub user: Option<String>,
    /// Decisions that the supervisor can make; `None` means the number in the settings.
    pub max_turns: Option<u32>,
    /// Whether the client wants the table of the answer.
    pub include_data: bool,
    /// Whether the client wants the events.
    pub trace: bool,
    /// How the user wants the work done and the answer put; it changes no rule.
    pub system_prompt: Option<String>,
    /// The JSON Schema of the answer; `None` means text.
    pub answer_schema: Option<Value>,
    /// The id under which its client knows the message that is the question.
    pub message_id: Option<String>,
    /// Images and files that come with the question.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// The handling of calls that need an approval; `None` means that they wait.
    pub approvals: Option<Approvals>,
    /// Whether a person waits in front of it, so that requests for approval expire soon.
    pub interactive: bool,
}

/// Why a request was refused before anything ran.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    #[error("the question is empty: give it as one argument, in quotes")]
    Empty,
    #[error(
        "the question has {0} bytes, more than the {MAX_QUESTION} that are accepted; put long material into a file"
    )]
    TooLong(usize),
    #[error("the turns must be at least one: the supervisor decides at least once")]
    NoTurns,
    #[error(
        "the system prompt has {0} bytes, more than the {MAX_SYSTEM_PROMPT} that are accepted; put long material into a file"
    )]
    LongSystemPrompt(usize),
    #[error("cannot read the attachment: {0}")]
    Attached(String),
    #[error("the schema of the answer cannot be used: {0}")]
    Schema(structured::SchemaError),
    #[error("unknown agent: {name}{hint}; `perihelion agents` lists them")]
    UnknownAgent { name: String, hint: String },
    #[error("{name} could be any of these agents, so write it as it is written there: {agents}")]
    AmbiguousAgent { name: String, agents: String },
    #[error("there is no team of this name{hint}; `perihelion teams` lists them: {name}")]
    UnknownTeam { name: String, hint: String },
    #[error("every agent is disabled; leave at least one")]
    AllDisabled,
    #[error("the agent is both preferred and disabled: {0}")]
    Contradiction(String),
}

impl Request {
    pub fn into_input(self, agents: &[String]) -> Result<GraphUpdate, RequestError> {
        let question = self.question.trim();
        if question.is_empty() {
            return Err(RequestError::Empty);
        }
        if question.len() > MAX_QUESTION {
            return Err(RequestError::TooLong(question.len()));
        }
        if self.max_turns == Some(0) {
            return Err(RequestError::NoTurns);
        }
        let system_prompt = self.system_prompt.map(|text| text.trim().to_owned());
        let system_prompt = system_prompt.filter(|text| !text.is_empty());
        if let Some(text) = system_prompt.as_ref().filter(|text| text.len() > MAX_SYSTEM_PROMPT) {
            return Err(RequestError::LongSystemPrompt(text.len()));
        }
        if let Some(schema) = &self.answer_schema {
            structured::check_schema(schema).map_err(RequestError::Schema)?;
        }
        let normalise = |names: &[String]| -> Result<Vec<String>, RequestError> {
            names.iter().map(|name| agent_name(name, agents)).collect()
        };
        let prefer = normalise(&self.prefer_agents)?;
        let disable = normalise(&self.disable_agents)?;
        if let Some(both) = prefer.iter().find(|name| disable.contains(name)) {
            return Err(RequestError::Contradiction(both.clone()));
        }
        if !agents.is_empty() && agents.iter().all(|agent| disable.contains(agent)) {
            return Err(RequestError::AllDisabled);
        }
        let team = self.team.as_deref().map(|name| team_name(name, agents)).transpose()?;
        let taken = attachments::take(self.attachments).map_err(RequestError::Attached)?;
        let input = GraphUpdate::new()
            .input_request(question.to_owned())
            .request_context(self.context)
            .preferences(Preferences {
                prefer,
                disable,
                team,
                max_turns: self.max_turns,
                system_prompt,
                answer_schema: self.answer_schema,
                attached: taken.attached,
                message_id: self.message_id,
                skip_approvals: self.approvals == Some(Approvals::Skip),
                interactive: self.interactive,
                ..Preferences::default()
            });
        let messages = self.messages;
        Ok(GraphUpdate {
            global_state: Some(taken.artifacts).filter(|artifacts| !artifacts.is_empty()),
            messages: (!messages.is_empty()).then(|| messages.into_iter().collect()),
            // A user who was named once stays the user of the thread.
            user: self.user.filter(|user| !user.trim().is_empty()).map(Some),
            ..input
        })
    }
}

/// Accepts an agent's name with or without its prefix: exactly, or in any case if it is unambiguous.
fn agent_name(name: &str, agents: &[String]) -> Result<String, RequestError> {
    let is =
        |agent: &str, name: &str| agent == name || agent.strip_prefix(AGENT_PREFIX) == Some(name);
    if let Some(agent) = agents.iter().find(|agent| is(agent, name.trim())) {
        return Ok(agent.clone());
    }
    let wanted = name.trim().to_lowercase();
    let alike = agents.iter().filter(|agent| is(&agent.to_lowercase(), &wanted));
    match alike.collect::<Vec<_>>().as_slice() {
        [] => {}
        [agent] => return Ok((*agent).clone()),
        several => {
            let all: Vec<&str> = several.iter().map(|agent| agent.as_str()).collect();
            let name = name.trim().to_owned();
            let agents = all.join(", ");
            return Err(RequestError::AmbiguousAgent { name, agents });
        }
    }
    let short = agents.iter().map(|agent| agent.strip_prefix(AGENT_PREFIX).unwrap_or(agent));
    let hint = did_you_mean(&wanted, short);
    Err(RequestError::UnknownAgent { name: name.trim().to_owned(), hint })
}

/// Finds the team of a name, with or without the prefix.
fn team_name(name: &str, agents: &[String]) -> Result<String, RequestError> {
    let name = clean_name(name);
    let teams = agents.iter().filter_map(|agent| agent.strip_prefix(TEAM_PREFIX));
    if let Some(team) = teams.clone().find(|team| *team == name) {
        return Ok(format!("{TEAM_PREFIX}{team}"));
    }
    let hint = did_you_mean(&name, teams);
    Err(RequestError::UnknownTeam { name, hint })
}

/// Opens a turn: takes the request in, clears what belonged to the last one, adds the time.
pub(super) struct Preprocess {
    pub parts: Arc<StarParts>,
}

#[async_trait]
impl Node<GraphState> for Preprocess {
    async fn run(&self, ctx: Context<GraphState>) -> Result<NodeOutput<GraphState>> {
        let state = ctx.state();
        if state.input_request.trim().is_empty() {
            return Err(NodeError::failed("request", RequestError::Empty.to_string()));
        }
        if let Some(why) = attachments::refused(state) {
            return Err(NodeError::failed("request", why));
        }
        // Noted, so that a replay under other settings has the same; a turn of an earlier version has none.
        let limits = Some(self.parts.limits.of_run(ctx.place()));
        let limits: Option<StarLimits> = ctx.observe_unless(seen::LIMITS, &None, &limits).await?;
        let now = ctx.now().await?;
        let turn = state.turn + 1;
        let model = RecordedModel::new(&ctx, &self.parts);
        let known = summing::current(state);
        let summary = summing::sum_up(&ctx, &self.parts, &model, known).await?;
        let spent = model.spent();
        let mut context = temporal_context(now);
        if let Some(summary) = summary.as_ref().or(known) {
            context.insert(summing::KEY.to_owned(), summary.text.clone());
        }
        context.extend(state.request_context.clone());
        let first_step = ctx.place().step;
        let message = state.next_request(first_step);
        let routing = Routing {
            first_step,
            request: Some(message.id.clone()),
            started_at: now.timestamp_micros(),
            results_before: state.results.len(),
            spent_before: state.spent,
            ..Routing::default()
        };
        let update = GraphUpdate::new()
            .turn(turn)
            .request_context(context)
            .messages([message].into_iter().collect())
            .plan(Vec::new())
            .stages(Vec::new())
            .errors(Vec::new())
            .next_step(vec![node::SUPERVISOR.to_owned()])
            .routing(routing)
            .finish_reason(None)
            .answer(None);
        Ok(NodeOutput::update(GraphUpdate {
            limits: limits.map(Some),
            spent: Some(spent).filter(|spent| summary.is_some() || *spent != Spent::default()),
            summary: (summary.is_some() || known != state.summary.as_ref()).then_some(summary),
            ..update
        }))
    }
}

/// Returns the time in the forms that questions with dates need; the caller's context comes first.
fn temporal_context(now: DateTime<Utc>) -> BTreeMap<String, String> {
    let date = now.format("%Y-%m-%d");
    BTreeMap::from([
        ("current_datetime_utc".to_owned(), now.format("%Y-%m-%dT%H:%M:%SZ").to_string()),
        ("current_date".to_owned(), date.to_string()),
        ("current_date_start_hour".to_owned(), format!("{date} 00")),
        ("current_date_end_hour".to_owned(), format!("{date} 23")),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agents() -> Vec<String> {
        vec!["mcp_agent_sql".into(), "mcp_agent_files".into()]
    }

    fn asking(question: &str) -> Request {
        Request { question: question.into(), ..Request::default() }
    }

    /// S2.01
    #[test]
    fn agent_names_are_normalised_and_unknown_ones_refused_with_the_nearest() {
        let request = Request {
            prefer_agents: vec![" SQL ".into()],
            disable_agents: vec!["mcp_agent_files".into()],
            ..asking("q")
        };
        let input = request.into_input(&agents()).unwrap();
        let preferences = input.preferences.unwrap();
        assert_eq!(preferences.prefer, ["mcp_agent_sql"]);
        assert_eq!(preferences.disable, ["mcp_agent_files"]);
        let error = Request { prefer_agents: vec!["flies".into()], ..asking("q") }
            .into_input(&agents())
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "unknown agent: flies (did you mean files?); `perihelion agents` lists them"
        );
    }

    #[test]
    fn of_names_that_differ_only_in_case_the_exact_one_matches_and_no_other_is_guessed() {
        let agents = ["mcp_agent_Files".to_owned(), "mcp_agent_files".to_owned()];
        for (name, meant) in [("files", 1), ("Files", 0), ("mcp_agent_files", 1)] {
            assert_eq!(agent_name(name, &agents), Ok(agents[meant].clone()));
        }
        let error = agent_name("FILES", &agents).unwrap_err().to_string();
        assert!(error.ends_with(": mcp_agent_Files, mcp_agent_files"), "{error}");
    }

    /// S2.01
    #[test]
    fn an_empty_question_and_a_team_without_agents_are_refused() {
        assert_eq!(asking("  ").into_input(&agents()).unwrap_err(), RequestError::Empty);
        let request = Request { disable_agents: agents(), ..asking("q") };
        assert_eq!(request.into_input(&agents()).unwrap_err(), RequestError::AllDisabled);
    }

    /// S2.02
    #[test]
    fn the_temporal_context_has_the_date_and_its_first_and_last_hour() {
        let context = temporal_context(DateTime::from_timestamp(1_700_000_000, 0).unwrap());
        assert_eq!(context["current_datetime_utc"], "2023-11-14T22:13:20Z");
        assert_eq!(context["current_date"], "2023-11-14");
        assert_eq!(context["current_date_start_hour"], "2023-11-14 00");
        assert_eq!(context["current_date_end_hour"], "2023-11-14 23");
    }
}
