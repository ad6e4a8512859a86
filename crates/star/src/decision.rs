//! The supervisor's answer, and the checks that it must pass (S1.04, S3.01).

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::{Assignment, Entity, FIND_AGENT, dispatch::Choices, menu, node};
use perihelion_engine::graph::stages;

/// Entities of one task; more of them are material, which belongs into the task's words or an artifact.
const MAX_ENTITIES: usize = 16;

/// Tasks of one decision; more of them are a runaway plan, not a plan.
const MAX_TASKS: usize = 32;

/// What the supervisor answers, under the schema name `supervisor_decision`, or `supervisor_choice` for its smallest form.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SupervisorDecision {
    /// What is known, what is missing, and why this choice.
    #[schemars(length(max = 1_500))]
    pub thought_process: String,
    /// The whole plan, rewritten.
    #[schemars(length(max = 12), inner(length(max = 300)))]
    pub plan: Vec<String>,
    /// Agent names from the menu, or `qa` alone to finish.
    #[schemars(length(max = MAX_TASKS))]
    pub selected_agents: Vec<String>,
    /// Tasks for the selected agents; empty: every selected agent gets the user's request.
    #[schemars(length(max = MAX_TASKS))]
    pub tasks: Vec<PlannedTask>,
    /// A question to the user without whose answer nothing can be done; otherwise null.
    #[schemars(length(max = 1_000))]
    pub clarification: Option<String>,
    /// How sure this choice is, from 0 to 1, or null.
    #[schemars(range(min = 0, max = 1))]
    pub confidence: Option<f64>,
}

impl<'de> Deserialize<'de> for SupervisorDecision {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Written {
            thought_process,
            plan,
            mut selected_agents,
            mut tasks,
            clarification,
            confidence,
            agent,
            task,
        } = Written::deserialize(deserializer)?;
        if let Some(agent) = agent {
            let task = task.filter(|task| agent != node::QA && !task.trim().is_empty());
            tasks.extend(task.map(|task| PlannedTask {
                id: "t1".into(),
                agent: agent.clone(),
                task,
                depends_on: vec![],
                entities: None,
            }));
            selected_agents.push(agent);
        }
        Ok(Self { thought_process, plan, selected_agents, tasks, clarification, confidence })
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Written {
    thought_process: String,
    plan: Vec<String>,
    selected_agents: Vec<String>,
    tasks: Vec<PlannedTask>,
    clarification: Option<String>,
    confidence: Option<f64>,
    agent: Option<String>,
    task: Option<String>,
}

/// One task of a decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedTask {
    /// Unique in this decision, such as `t1`.
    #[schemars(length(max = ID))]
    pub id: String,
    /// One of the agents of the menu.
    pub agent: String,
    /// What the agent is to do, complete in itself.
    #[schemars(length(max = 1_900))]
    pub task: String,
    /// Ids of tasks of this decision whose outputs are needed first.
    // Lists within a list: some endpoints bound what a schema can describe in all.
    #[serde(default)]
    #[schemars(length(max = 8), inner(length(max = ID)))]
    pub depends_on: Vec<String>,
    /// What the task is about: people, dates, identifiers, metrics; or null.
    #[schemars(length(max = 8))]
    pub entities: Option<Vec<Entity>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Accepted {
    Finish,
    Clarify(String),
    /// Stages of tasks and searches for agents, at least one of either.
    Work {
        stages: Vec<Vec<Assignment>>,
        queries: Vec<String>,
    },
}

/// Checks a decision against the catalog and turns its tasks into stages and searches.
pub(super) fn accept(
    decision: &SupervisorDecision,
    choices: &Choices<'_>,
    request: &str,
    prefix: &str,
) -> Result<Accepted, Vec<String>> {
    if let Some(question) =
        decision.clarification.as_deref().map(str::trim).filter(|text| !text.is_empty())
    {
        return Ok(Accepted::Clarify(question.to_owned()));
    }
    let chosen: Vec<&str> =
        decision.selected_agents.iter().map(|name| choices.full_name(name)).collect();
    if !chosen.is_empty() && chosen.iter().all(|name| *name == node::QA) {
        return Ok(Accepted::Finish);
    }
    // QA always comes last, so a task for it says nothing.
    let is_work = |agent: &str| agent.trim() != node::QA;
    let selected: Vec<&str> = chosen.into_iter().filter(|name| is_work(name)).collect();
    let mut planned = decision.tasks.clone();
    for task in &mut planned {
        task.agent = choices.full_name(&task.agent).to_owned();
        task.id = plain_id(&task.id);
        task.depends_on.iter_mut().for_each(|id| *id = plain_id(id));
    }
    let tasks = with_requests(&selected, planned, request);
    let tasks: Vec<PlannedTask> = tasks.into_iter().filter(|task| is_work(&task.agent)).collect();
    if tasks.is_empty() {
        let problem = "selected_agents is empty: choose agents from the menu, or qa to finish";
        return Err(vec![problem.into()]);
    }
    let errors = problems(&tasks, choices);
    if !errors.is_empty() {
        return Err(errors);
    }
    let (searches, tasks): (Vec<_>, Vec<_>) =
        tasks.into_iter().partition(|task| choices.is_search(&task.agent));
    let listed: Vec<(&str, &Vec<String>)> =
        tasks.iter().map(|task| (task.id.as_str(), &task.depends_on)).collect();
    let order = stages(&listed).map_err(|error| vec![error.to_string()])?;
    let assign = |index: usize| {
        let task: &PlannedTask = &tasks[index];
        Assignment {
            id: format!("{prefix}.{}", task.id),
            agent: task.agent.trim().to_owned(),
            task: task.task.clone(),
            entities: task.entities.clone().unwrap_or_default(),
            depends_on: task.depends_on.iter().map(|id| format!("{prefix}.{id}")).collect(),
            ..Assignment::default()
        }
    };
    let stages = order.into_iter().map(|stage| stage.into_iter().map(assign).collect()).collect();
    let queries = searches.into_iter().map(|search| search.task.trim().to_owned()).collect();
    Ok(Accepted::Work { stages, queries })
}

/// Characters of an ID of a task that a model wrote.
const ID: usize = 40;

/// Returns the ID of a task as a part of IDs and keys: short, and without what divides these.
fn plain_id(id: &str) -> String {
    let divides = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '/' | '@');
    id.trim().chars().map(|c| if divides(c) { '_' } else { c }).take(ID).collect()
}

/// Gives the user's request to every selected agent that has no task.
fn with_requests(
    selected: &[&str],
    mut tasks: Vec<PlannedTask>,
    request: &str,
) -> Vec<PlannedTask> {
    let mut number = 0;
    for agent in selected {
        if tasks.iter().any(|task| task.agent.trim() == *agent) {
            continue;
        }
        let id = loop {
            number += 1;
            let id = format!("r{number}");
            if !tasks.iter().any(|task| task.id == id) {
                break id;
            }
        };
        let agent = (*agent).to_owned();
        let task = request.to_owned();
        tasks.push(PlannedTask { id, agent, task, depends_on: vec![], entities: None });
    }
    tasks
}

/// Names everything that is wrong with the choice itself, each thing once.
fn problems(tasks: &[PlannedTask], choices: &Choices<'_>) -> Vec<String> {
    let mut problems: Vec<String> = Vec::new();
    let (searches, work): (Vec<_>, Vec<_>) =
        tasks.iter().partition(|task| choices.is_search(&task.agent));
    let wrong = |task: &&PlannedTask| {
        let agent = task.agent.trim();
        choices.unknown(agent).or_else(|| choices.refused(agent, &task.task))
    };
    for problem in work.iter().filter_map(wrong) {
        if !problems.contains(&problem) {
            problems.push(problem);
        }
    }
    let empty = tasks.iter().filter(|task| task.task.trim().is_empty());
    problems.extend(empty.map(|task| format!("the task {} does not say what to do", task.id)));
    let crowded = tasks.iter().filter(|task| {
        task.entities.as_ref().is_some_and(|entities| entities.len() > MAX_ENTITIES)
    });
    problems.extend(crowded.map(|task| {
        format!(
            "the task {} has more than {MAX_ENTITIES} entities: keep those that matter",
            task.id
        )
    }));
    if tasks.len() > MAX_TASKS {
        problems.push(format!("one decision may have {MAX_TASKS} tasks at most: {}", tasks.len()));
    }
    if searches.len() > menu::SHOWN {
        problems.push(format!(
            "{FIND_AGENT} may stand in one decision {} times at most: {}",
            menu::SHOWN,
            searches.len()
        ));
    }
    if searches.len() > choices.searches {
        problems.push(format!(
            "{FIND_AGENT} may be asked {} times for one request, {} more: choose from the menu, or qa",
            menu::MOST,
            choices.searches
        ));
    }
    let is_search = |id: &String| searches.iter().any(|search| search.id == *id);
    let waiting = work.iter().filter(|task| task.depends_on.iter().any(is_search));
    problems.extend(waiting.map(|task| {
        format!("the task {} cannot wait for {FIND_AGENT}: search first, and decide then", task.id)
    }));
    problems
}

#[cfg(test)]
#[path = "decision_tests.rs"]
mod tests;
