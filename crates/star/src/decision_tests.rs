//! Decisions that are accepted, and what is wrong with others.

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
    let cycle = decision(&[], &[("a", "mcp_agent_sql", &["b"]), ("b", "mcp_agent_sql", &["a"])]);
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
    assert_eq!(queries(both), (1, vec!["do s".into()]), "an agent that is hidden may be chosen");
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
