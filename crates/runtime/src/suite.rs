//! A thread as a suite: its questions, and what its last answer was, as what is to come of them again.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::ending;
use perihelion_star::{GraphState, ResultStatus};

/// Writes a thread as a suite of one case, which says what the last turn of the thread did; a person takes out what may change.
pub(super) fn suite_of(name: &str, state: &GraphState) -> String {
    let text = |text: &str| serde_json::Value::from(text).to_string();
    let list = |names: BTreeSet<&str>| {
        let names: Vec<String> = names.into_iter().map(text).collect();
        format!("[{}]", names.join(", "))
    };
    let words = (0..state.messages.len()).filter_map(|index| state.messages.get(index));
    let questions = words.filter(|message| message.role == "user" && message.name.is_none());
    let mut yaml = format!("name: {}\ncases:\n  - name: {0}\n    turns:\n", text(name));
    for question in questions {
        let _ = writeln!(yaml, "      - question: {}", text(&question.content));
    }
    let results: Vec<_> = state.results_of_turn().collect();
    let succeeded = |one: &&&perihelion_star::AgentResult| one.status == ResultStatus::Success;
    let used = results.iter().map(|one| one.agent.as_str()).collect();
    let called = results.iter().filter(succeeded).flat_map(|one| &one.tools);
    let called = called.filter(|call| !call.is_error && call.tool.contains('.'));
    let called = called.map(|call| call.tool.as_str()).collect();
    let calls: usize = results.iter().map(|one| one.tools.len()).sum();
    let cited = state.citations.iter().filter(|one| one.turn == state.turn).count();
    let finish = ending::reason_of_end(state).as_str();
    let failed =
        results.iter().all(|one| one.status == ResultStatus::Failed) && !results.is_empty();
    let status = if failed { "failed" } else { "done" };
    let _ = write!(
        yaml,
        "    expect:\n      status: {status}\n      finish_reason: {finish}\n      # What the answer has to say, and not to say:\n      \
         answer: {{ contains: [], excludes: [] }}\n      agents: {{ used: {} }}\n      tools: {{ called: {} }}\n      \
         citations_at_least: {}\n      at_most: {{ tool_calls: {calls} }}\n",
        list(used),
        list(called),
        cited.min(1),
    );
    if let Some(answer) = &state.answer {
        let lines = answer.lines().map(|line| format!("#   {line}\n"));
        let _ = write!(yaml, "# The answer was:\n{}", lines.collect::<String>());
    }
    yaml
}
