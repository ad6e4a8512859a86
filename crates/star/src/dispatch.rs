//! The choices of a decision, and how its tasks are sent out, stage by stage (S3.01).

use serde_json::json;

use crate::assignment::DIRECT;
use crate::{
    AGENT_PREFIX, AgentEvent, AgentResult, Assignment, DependencyOutput, FIND_AGENT, GraphState,
    GraphUpdate, Menu, ResultStatus, Routing, menu,
};
use perihelion_engine::graph::{Context, NodeOutput, Target};
use perihelion_settings::config::strict::did_you_mean;

pub(super) fn dispatch(
    ctx: &Context<GraphState>,
    update: GraphUpdate,
    routing: Routing,
    mut stages: Vec<Vec<Assignment>>,
) -> NodeOutput<GraphState> {
    let rest = stages.split_off(stages.len().min(1));
    let stage: Vec<Assignment> =
        stages.into_iter().flatten().map(|task| with_outputs(task, ctx.state())).collect();
    let mut next: Vec<String> = Vec::new();
    for task in &stage {
        if !next.contains(&task.agent) {
            next.push(task.agent.clone());
        }
    }
    let dispatched = stage.iter().map(|task| task.id.clone()).collect();
    let routing = Routing { dispatched, ..routing };
    AgentEvent::Stage { agents: next.clone(), remaining: rest.len() }.publish(ctx);
    let targets: Vec<Target> =
        stage.into_iter().map(|task| Target::send(task.agent.clone(), json!(task))).collect();
    NodeOutput::goto(update.routing(routing).stages(rest).next_step(next), targets)
}

/// Goes to one of the fixed nodes.
pub(super) fn to(update: GraphUpdate, node: &str) -> NodeOutput<GraphState> {
    NodeOutput::goto(update.next_step(vec![node.to_owned()]), [Target::node(node)])
}

/// Returns the tasks handed out last that did not succeed.
pub(super) fn failed_of_stage(state: &GraphState) -> Vec<String> {
    let succeeded = |id: &&String| {
        state.result_of(id).is_some_and(|result| result.status == ResultStatus::Success)
    };
    state.routing.dispatched.iter().filter(|id| !succeeded(id)).cloned().collect()
}

/// Returns the result of a request that went straight to the only agent there is, where it succeeded.
pub(super) fn direct(state: &GraphState) -> Option<&AgentResult> {
    let [id] = state.routing.dispatched.as_slice() else { return None };
    let result = state.result_of(id).filter(|_| id.ends_with(DIRECT))?;
    (result.status == ResultStatus::Success).then_some(result)
}

/// Names the tasks of the plan that were never sent out, and the reasons; empty if there are none.
pub(super) fn not_started(state: &GraphState, why: &str) -> Vec<String> {
    let line =
        |task: &Assignment| format!("not started, because {why}: {} ({})", task.agent, task.task);
    state.stages.iter().flatten().map(line).collect()
}

fn with_outputs(mut task: Assignment, state: &GraphState) -> Assignment {
    let output = |result: &AgentResult| DependencyOutput {
        task: result.task.clone(),
        agent: result.agent.clone(),
        output: match (&result.status, &result.error) {
            (ResultStatus::Failed, Some(error)) => format!("(failed: {error})\n{}", result.output),
            _ => result.output.clone(),
        },
    };
    let upstream: Vec<&AgentResult> =
        task.depends_on.iter().filter_map(|id| state.result_of(id)).collect();
    task.dependency_outputs = upstream.iter().map(|result| output(result)).collect();
    task.tainted_by.extend(upstream.iter().flat_map(|result| result.tainted_by.iter().cloned()));
    task
}

#[derive(Debug)]
pub(super) struct Choices<'a> {
    menu: &'a Menu,
    /// Searches for agents that are left.
    pub searches: usize,
    /// Agents with tasks that they handed back in this turn, and why.
    handed_back: Vec<(&'a str, &'a str, &'a str)>,
}

impl<'a> Choices<'a> {
    pub(super) fn of(menu: &'a Menu, state: &'a GraphState) -> Self {
        let handed_back = state.results_of_turn().filter(|result| result.not_mine);
        let handed_back = handed_back.map(|result| {
            let why = result.error_message().unwrap_or_default();
            (result.agent.as_str(), result.task.trim(), why)
        });
        Self { menu, searches: menu::left(state), handed_back: handed_back.collect() }
    }

    /// Returns whether a name is that of the search, which exists if agents are hidden.
    pub(super) fn is_search(&self, name: &str) -> bool {
        name.trim() == FIND_AGENT && !self.menu.hidden.is_empty()
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        let shown = self.menu.shown.iter().map(|(name, _)| name.as_str());
        shown.chain(self.menu.hidden.iter().map(String::as_str))
    }

    /// Returns the catalog's name for the name in a decision: the same, or the one with the prefix.
    pub(super) fn full_name<'n>(&'n self, written: &'n str) -> &'n str {
        let written = written.trim();
        if self.names().any(|known| known == written) {
            return written;
        }
        self.names()
            .find(|known| known.strip_prefix(AGENT_PREFIX) == Some(written))
            .unwrap_or(written)
    }

    pub(super) fn unknown(&self, name: &str) -> Option<String> {
        if self.names().any(|known| known == name) {
            return None;
        }
        if self.menu.shown.is_empty() {
            return Some(format!("there is no agent named {name}; the menu is empty: choose qa"));
        }
        let hint = did_you_mean(name, self.names());
        let shown: Vec<&str> = self.menu.shown.iter().map(|(name, _)| name.as_str()).collect();
        let more = match self.menu.hidden.len() {
            0 => String::new(),
            more if self.searches > 0 => format!(", and {more} more that {FIND_AGENT} finds"),
            more => format!(", and {more} more"),
        };
        Some(format!(
            "there is no agent named {name}{hint}; the menu has: {}{more}",
            shown.join(", ")
        ))
    }

    pub(super) fn refused(&self, agent: &str, task: &str) -> Option<String> {
        let same = |(whose, what, _): &&(&str, &str, &str)| *whose == agent && *what == task.trim();
        let (.., why) = self.handed_back.iter().find(same)?;
        Some(format!(
            "{agent} handed this very task back ({why}): choose another agent, or change the task"
        ))
    }
}
