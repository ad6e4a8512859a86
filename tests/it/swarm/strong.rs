//! A model that masters every form of a decision: `auto` costs it nothing and loses nothing (S1.04).

use std::fmt::Write as _;
use std::path::Path;

use perihelion::llm::scripted::{Reply, Script};
use perihelion::runtime::{Answer, RunStatusView};
use perihelion::swarm::FinishReason;
use serde_json::json;

use super::protocol::{choose, room};
use super::{A, B, decide, finish, script, task};

/// Holds the table; `make forms` writes it.
const PAGE: &str = "docs/guides/local-models.md";
const BEGIN: &str = "<!-- forms -->\n";
const END: &str = "<!-- end of forms -->";

/// What is asked: a title, whether `alpha` is the only agent, the questions, and a part of the last answer.
const CASES: [(&str, bool, &[&str], &str); 6] = [
    ("One agent", true, &["Which color?"], "teal"),
    ("One agent, a second question", true, &["Which color?", "Which size?"], "42"),
    ("One agent, an unclear question", true, &["Which of them?"], "teal"),
    ("Two agents, one is needed", false, &["Which color?"], "teal"),
    ("Two agents, one after the other", false, &["Which color, and the size in it?"], "42"),
    ("Two agents, the first fails", false, &["How big is it?"], "42"),
];

/// Plans where a plan is asked for, and chooses where a choice is.
fn masterly() -> Script {
    script(|asked| {
        let is_asked = |words: &str| asked.text.contains(words);
        let both = is_asked("and the size in it");
        let size = is_asked("Which size?");
        let big = is_asked("How big is it?");
        let look_up = |key: &str| Some(Reply::call("look_up", json!({ "key": key })));
        match (asked.role, asked.agent, asked.tools, asked.results) {
            ("supervisor", ..) if is_asked("Choose who works next") => Some(match asked.results {
                0 => choose(A, "Find it out."),
                1 if both => choose(B, "Find the size of what is teal."),
                1 if big => choose(B, "Find the size."),
                _ => choose("qa", ""),
            }),
            ("supervisor", _, _, 0) if is_asked("Which of them?") && !is_asked("The lamp.") => {
                Some(Reply::json(json!({
                    "thought_process": "", "plan": [], "selected_agents": [], "tasks": [],
                    "clarification": "Which one?",
                })))
            }
            ("supervisor", _, _, 0) => {
                let first = task("t1", A, "Which color?", &[]);
                let then = task("t2", B, "Find the size of what is teal.", &["t1"]);
                let tasks = if both { json!([first, then]) } else { json!([]) };
                let agents = if both { &[A, B][..] } else { &[A] };
                Some(decide(&["look"], agents, tasks))
            }
            ("supervisor", _, _, 1) if big => Some(decide(&["ask"], &[B], json!([]))),
            ("supervisor", ..) => Some(finish()),
            ("agent", A, ..) if big => {
                Some(Reply::call("perihelion_not_mine", json!({ "reason": "It is a size." })))
            }
            ("agent", _, 0, _) if is_asked("perihelion_ask_user") && is_asked("Which of them?") => {
                Some(Reply::call("perihelion_ask_user", json!({ "question": "Which one?" })))
            }
            ("agent", A, tools, _) if tools < 2 && !is_asked("teal.") && !size => look_up("color"),
            ("agent", _, 0, _) => look_up("size"),
            ("agent", ..) if is_asked("The size is 42.") => Some(Reply::text("The size is 42.")),
            ("agent", ..) => Some(Reply::text("The color is teal.")),
            ("qa", ..) if is_asked("size is 42") => Some(Reply::text("The size is 42 [1].")),
            ("qa", ..) => Some(Reply::text("The color is teal [1].")),
            _ => None,
        }
    })
}

/// Calls of models, and the tokens of their prompts.
async fn cost(protocol: &str, case: usize) -> (usize, usize) {
    let (title, is_alone, questions, wanted) = CASES[case];
    let room = room(protocol, is_alone, masterly()).await;
    let mut answer = None;
    for question in questions {
        let mut report = room.ask(question).await;
        if report.status == RunStatusView::Interrupted {
            report = room.answer(Answer::Message("The lamp.".into())).await;
        }
        assert_eq!(report.finish_reason, Some(FinishReason::Answered), "{title}: {report:#?}");
        answer = report.answer;
    }
    assert!(answer.as_ref().is_some_and(|text| text.contains(wanted)), "{title}: {answer:?}");
    let requests = room.model.requests();
    let characters = |request: &perihelion::llm::scripted::RecordedRequest| {
        let parts = ["messages", "tools", "response_format"];
        parts
            .iter()
            .filter_map(|part| request.body.get(part))
            .map(|part| part.to_string().len())
            .sum::<usize>()
    };
    let all: usize = requests.iter().map(characters).sum::<usize>();
    // A token has about four characters.
    (requests.len(), all / 4)
}

/// S1.04: answers are the same, and no case takes more calls or tokens; the guide has the figures.
#[tokio::test]
async fn a_strong_model_loses_nothing_under_auto() {
    let mut table = String::from(
        "| Model calls, prompt tokens | `full` | `auto` | `compact` |\n|---|---|---|---|\n",
    );
    for (case, (title, ..)) in CASES.iter().enumerate() {
        let full = cost("full", case).await;
        let auto = cost("auto", case).await;
        let compact = cost("compact", case).await;
        assert!(auto.0 <= full.0 && auto.1 <= full.1, "{title}: {auto:?} for {full:?}");
        let shown = |(calls, tokens): (usize, usize)| format!("{calls}, {}", tokens / 10 * 10);
        let cells = [full, auto, compact].map(shown).join(" | ");
        writeln!(table, "| {title} | {cells} |").unwrap();
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let text = std::fs::read_to_string(&page).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (stated, after) = rest.split_once(END).unwrap();
    if std::env::var_os("UPDATE_FORMS").is_some() {
        std::fs::write(&page, [before, BEGIN, &table, END, after].concat()).unwrap();
    } else {
        assert_eq!(stated, table, "make forms updates {PAGE}");
    }
}
