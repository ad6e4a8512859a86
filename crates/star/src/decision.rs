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
mod tests {
    use super::*;
    use crate::menu::Menu;
    use crate::state::GraphState;

    fn decision(selected: &[&str], tasks: &[(&str, &str, &[&str])]) -> SupervisorDecision {
        SupervisorDecision {
            thought_process: String::new(),
            plan: vec![],
            selected_agents: selected.iter().map(ToString::to_string).collect(),
            tasks: tasks
                .iter()
                .map(|(id, agent, needs)| PlannedTask {
                    id: (*id).into(),
                    agent: (*agent).into(),
                    task: format!("do {id}"),
                    depends_on: needs.iter().map(ToString::to_string).collect(),
                    entities: None,
                })
                .collect(),
            clarification: None,
            confidence: None,
        }
    }

    fn menu(hidden: &[&str]) -> Menu {
        let shown = ["mcp_agent_sql", "mcp_agent_files"].map(|name| (name.into(), "line".into()));
        Menu { shown: shown.into(), hidden: hidden.iter().map(ToString::to_string).collect() }
    }

    fn judge(decision: SupervisorDecision) -> Result<Accepted, Vec<String>> {
        let menu = menu(&[]);
        accept(&decision, &Choices::of(&menu, &GraphState::default()), "the request", "1.1")
    }

    fn work(decision: &SupervisorDecision) -> Vec<Vec<(String, String)>> {
        let stages = match judge(decision.clone()) {
            Ok(Accepted::Work { stages, .. }) => stages,
            _ => Vec::new(),
        };
        let pair = |one: Assignment| (one.id, one.task);
        stages.into_iter().map(|stage| stage.into_iter().map(pair).collect()).collect()
    }

    /// S1.04
    #[test]
    fn without_tasks_every_selected_agent_gets_the_request() {
        let stages = work(&decision(&["mcp_agent_sql", "mcp_agent_files"], &[]));
        assert_eq!(
            stages,
            [[("1.1.r1".into(), "the request".into()), ("1.1.r2".into(), "the request".into())]]
        );
    }

    /// S3.01
    #[test]
    fn tasks_become_stages_by_their_dependencies() {
        let stages = work(&decision(
            &["mcp_agent_sql"],
            &[("b", "mcp_agent_sql", &["a"]), ("a", "mcp_agent_files", &[])],
        ));
        assert_eq!(stages, [[("1.1.a".into(), "do a".into())], [("1.1.b".into(), "do b".into())]]);
    }

    #[test]
    fn an_agent_may_be_named_without_its_prefix() {
        let stages = work(&decision(&["sql"], &[("a", "files", &[])]));
        assert_eq!(stages, work(&decision(&["mcp_agent_sql"], &[("a", "mcp_agent_files", &[])])));
    }

    /// S1.04
    #[test]
    fn an_unknown_agent_an_empty_choice_and_a_cycle_are_fed_back_by_name() {
        let refuse = |decision| judge(decision).unwrap_err().join("; ");
        assert_eq!(
            refuse(decision(&["mcp_agent_sq"], &[])),
            "there is no agent named mcp_agent_sq (did you mean mcp_agent_sql?); \
             the menu has: mcp_agent_sql, mcp_agent_files"
        );
        assert!(refuse(decision(&[], &[])).contains("selected_agents is empty"));
        let cycle =
            decision(&[], &[("a", "mcp_agent_sql", &["b"]), ("b", "mcp_agent_sql", &["a"])]);
        assert!(refuse(cycle).contains("a → b → a"));
        assert!(refuse(decision(&[], &[("q", "qa", &[])])).contains("selected_agents is empty"));
        let mut vague = decision(&[], &[("a", "mcp_agent_sql", &[])]);
        vague.tasks[0].task = " ".into();
        assert_eq!(refuse(vague), "the task a does not say what to do");
        let many = vec![("a", "mcp_agent_sql", &[][..]); 33];
        assert!(refuse(decision(&[], &many)).contains("32 tasks at most: 33"));
        let none = Menu::default();
        let state = GraphState::default();
        let only = decision(&["mcp_agent_sql"], &[]);
        let nobody = accept(&only, &Choices::of(&none, &state), "", "1.1").unwrap_err();
        assert!(nobody[0].ends_with("the menu is empty: choose qa"));
    }

    #[test]
    fn qa_alone_finishes_and_qa_among_agents_only_runs_last() {
        let accept = judge;
        assert_eq!(accept(decision(&["qa"], &[])), Ok(Accepted::Finish));
        let repeated = decision(&["qa"], &[("a", "mcp_agent_sql", &[])]);
        assert_eq!(accept(repeated), Ok(Accepted::Finish), "what qa alone says goes");
        let stages = work(&decision(&["mcp_agent_sql", "qa"], &[("q", "qa", &["r1"])]));
        assert_eq!(stages, [[("1.1.r1".into(), "the request".into())]]);
    }

    #[test]
    fn a_request_for_an_agent_without_a_task_gets_an_unused_id() {
        let both = ["mcp_agent_sql", "mcp_agent_files"];
        let stages = work(&decision(&both, &[("r1", "mcp_agent_sql", &[])]));
        let own = ("1.1.r1".into(), "do r1".into());
        assert_eq!(stages, [[own, ("1.1.r2".into(), "the request".into())]]);
    }

    /// S1.04
    #[test]
    fn a_search_is_listed_among_the_agents_if_some_are_hidden() {
        let part = menu(&["mcp_agent_mail"]);
        let mut state = GraphState::default();
        let judge = |state: &GraphState, decision| {
            accept(&decision, &Choices::of(&part, state), "the request", "1.1")
        };
        let queries = |decision| match judge(&GraphState::default(), decision).unwrap() {
            Accepted::Work { stages, queries } => (stages.len(), queries),
            other => panic!("{other:?}"),
        };
        assert_eq!(queries(decision(&[FIND_AGENT], &[])), (0, vec!["the request".into()]));
        let task = decision(&[FIND_AGENT], &[("s", FIND_AGENT, &[])]);
        assert_eq!(queries(task), (0, vec!["do s".into()]));
        let both = decision(&["mcp_agent_mail"], &[("s", FIND_AGENT, &[])]);
        assert_eq!(
            queries(both),
            (1, vec!["do s".into()]),
            "an agent that is hidden may be chosen"
        );
        let refuse = |state: &GraphState, decision| judge(state, decision).unwrap_err().join("; ");
        let waits = decision(&[], &[("s", FIND_AGENT, &[]), ("a", "mcp_agent_sql", &["s"])]);
        assert!(refuse(&state, waits).contains("the task a cannot wait for find_agent"));
        let unknown = refuse(&state, decision(&["mcp_agent_mial"], &[]));
        assert!(unknown.contains("mean mcp_agent_mail?"), "{unknown}");
        assert!(unknown.ends_with("and 1 more that find_agent finds"), "{unknown}");
        let search = crate::Search { query: "q".into(), found: vec![], is_new: true, round: 1 };
        state.routing.searches = vec![search; menu::MOST];
        let spent = refuse(&state, decision(&[FIND_AGENT], &[]));
        assert!(
            spent.starts_with("find_agent may be asked 8 times for one request, 0 more"),
            "{spent}"
        );
        let whole = super::tests::judge(decision(&[FIND_AGENT], &[])).unwrap_err();
        assert!(whole[0].starts_with("there is no agent named find_agent"), "{whole:?}");
    }
}
