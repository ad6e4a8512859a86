//! Threads as a data set for `perihelion eval`: the questions, their answers, and what people think of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use perihelion_service_rows::Kept;
use serde_json::{Value, json};

use super::accounts::open_database;
use super::{Error, LOCAL_TENANT, Threads};
use perihelion_engine::checkpoint::{self, Store};
use perihelion_engine::ids::ThreadId;
use perihelion_engine::runner::StateView;
use perihelion_settings::config::Settings;
use perihelion_star::{GRAPH, GraphState};

/// The key of a thread's metadata with the scores, labels and notes of people, by turn.
const FEEDBACK: &str = "feedback";

/// Opens the rows next to the threads of the settings' database, of the command line's tenant.
///
/// # Errors
/// [`Error::InMemory`] when the threads are in memory alone, [`Error::Database`].
pub async fn open_rows(settings: &Settings) -> Result<Kept, Error> {
    Ok(Kept::new(open_database(settings).await?, LOCAL_TENANT))
}

impl Threads {
    /// Writes the answered turns of a thread as lines of a data set; of all threads, the turns with feedback.
    ///
    /// The log names the threads that cannot be read.
    ///
    /// # Errors
    /// As [`StateView::read`] for a named thread; [`Error::Store`] and [`Error::Rows`].
    pub async fn data_set(&self, kept: &Kept, thread: Option<ThreadId>) -> Result<String, Error> {
        let store = self.store().as_ref();
        let mut lines = Vec::new();
        if let Some(thread) = thread {
            let tenant = store.info(thread).await?.tenant;
            let meta = kept.for_tenant(&tenant).thread_meta(thread.0).await?;
            let view = StateView::read(store, thread, None).await?;
            lines.extend(turns(thread, &view.state, &meta.metadata[FEEDBACK]));
        } else {
            for (id, metadata) in kept.threads_with(FEEDBACK).await? {
                let thread = ThreadId(id);
                let state = match conversation(store, thread).await {
                    Ok(state) => state,
                    // It was deleted, or has a graph without such a state.
                    Err(checkpoint::Error::UnknownThread(_)) => continue,
                    Err(error) if error.is_of_thread() => {
                        tracing::warn!(%thread, %error, "a rated thread is not in the data set");
                        continue;
                    }
                    Err(error) => return Err(error.into()),
                };
                let rated = |line: &Value| !line["tags"][0].is_null();
                let all = turns(thread, &state, &metadata[FEEDBACK]);
                lines.extend(all.into_iter().filter(rated));
            }
        }
        Ok(lines.iter().map(|line| format!("{line}\n")).collect())
    }
}

/// Reads the newest state of a thread of the supervisor graph; other threads count as unknown.
async fn conversation(
    store: &dyn Store,
    thread: ThreadId,
) -> Result<Arc<GraphState>, checkpoint::Error> {
    if store.info(thread).await?.graph != GRAPH {
        return Err(checkpoint::Error::UnknownThread(thread));
    }
    Ok(StateView::read(store, thread, None).await?.state)
}

/// Makes a case of each answered turn: its question after the earlier ones, and its answer unless people reject it.
fn turns(thread: ThreadId, state: &GraphState, feedback: &Value) -> Vec<Value> {
    let mut questions: Vec<Value> = Vec::new();
    let mut answers: BTreeMap<usize, (&str, &str)> = BTreeMap::new();
    for message in &state.messages {
        if message.role == "user" && message.name.is_none() && !message.is_clarification() {
            questions.push(json!({ "question": message.content }));
        } else if message.is_answer() {
            answers.insert(questions.len(), (&message.id, &message.content));
        }
    }
    let case = |(turn, (id, answer)): (usize, (&str, &str))| {
        let given = &feedback[turn.to_string()];
        // An answer of another branch was rated.
        let is_of_another = given["answer"].as_str().is_some_and(|rated| rated != id);
        let given = if is_of_another { &Value::Null } else { given };
        let score = given["score"].as_i64().unwrap_or_default();
        let labels = given["labels"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let verdict = ["bad", "good"].into_iter().zip([-1, 1]).find(|(_, sign)| *sign == score);
        let tags: Vec<&str> = verdict.map(|(word, _)| word).into_iter().chain(labels).collect();
        let results = state.results.iter();
        let results = results.filter(|one| one.turn as usize == turn && one.error.is_none());
        let used: BTreeSet<&str> = results.map(|one| one.agent.as_str()).collect();
        let mut case = json!({
            "name": format!("{thread} {turn}"), "turns": questions[..turn], "tags": tags,
            "expect": { "agents": { "used": used } },
        });
        if score >= 0 {
            case["expected"] = json!(answer);
        }
        if given["note"].is_string() {
            case["note"] = given["note"].clone();
        }
        case
    };
    answers.into_iter().filter(|(turn, _)| *turn > 0).map(case).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use perihelion_star::Message;

    #[test]
    fn a_clarification_continues_the_turn_that_asked_for_it() {
        let message = |id: &str, role: &str, name: Option<&str>| Message {
            id: id.to_owned(),
            role: role.to_owned(),
            name: name.map(str::to_owned),
            content: id.to_owned(),
            ..Message::default()
        };
        let messages = [
            message("1.2.user", "user", None),
            message("1.4.question", "assistant", Some("supervisor")),
            message("1.4.clarification", "user", None),
            message("1.6.qa", "assistant", Some("qa")),
            message("2.8.user", "user", None),
            message("2.9.qa", "assistant", Some("qa")),
        ];
        let state =
            GraphState { messages: messages.into_iter().collect(), ..GraphState::default() };
        let thread = ThreadId(uuid::Uuid::nil());
        let tags = |feedback: Value| -> Vec<_> {
            let all = turns(thread, &state, &json!({ "2": feedback }));
            let tags =
                |line: &Value| (line["turns"].as_array().map(Vec::len), line["tags"].clone());
            all.iter().map(tags).collect()
        };
        let rated = [(Some(1), json!([])), (Some(2), json!(["bad"]))];
        assert_eq!(tags(json!({ "score": -1 })), rated);
        assert_eq!(tags(json!({ "score": -1, "answer": "2.9.qa" })), rated);
        let of_another_branch = json!({ "score": -1, "answer": "2.5.qa" });
        assert_eq!(tags(of_another_branch), [(Some(1), json!([])), (Some(2), json!([]))]);
    }
}
