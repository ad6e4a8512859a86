//! Asks the open questions of a run at the terminal, and records the answers.

use std::collections::BTreeSet;
use std::io::Write as _;

use serde_json::{Map, Value};

use super::files::json_or_text;
use super::{Error, Result, Signals, output, questions};
use perihelion_engine::ids::ThreadId;
use perihelion_runtime::{Answer, InterruptView, Runtime};
use perihelion_star::question::Question;

#[derive(Default)]
pub(super) struct Asking {
    /// Tools of servers whose further calls are permitted while the command runs.
    allowed: BTreeSet<String>,
}

impl Asking {
    /// Asks everything that is open, and records the answers; `false` when the person leaves it for later.
    pub(super) async fn answer(
        &mut self,
        runtime: &Runtime,
        thread: ThreadId,
        called: &str,
        invocation: &str,
        signals: &Signals,
    ) -> Result<bool> {
        let open = runtime.threads().view(thread).await?.open;
        for one in &open {
            let Ok(id) = one.id.parse() else { continue };
            loop {
                let Some(answer) = self.ask(one, signals).await? else {
                    let left = runtime.threads().view(thread).await?.open;
                    output::note(&questions::explain(&left, called, invocation));
                    return Ok(false);
                };
                match runtime.answer(thread, Some(id), answer).await {
                    Ok(_) => break,
                    Err(error @ perihelion_runtime::Error::Answer(_)) => {
                        output::warning(&error.to_string());
                    }
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(!open.is_empty())
    }

    async fn ask(&mut self, one: &InterruptView, signals: &Signals) -> Result<Option<Answer>> {
        let question = one.question();
        let tool = match &question {
            Question::Approval(approval) => format!("{}.{}", approval.server, approval.tool),
            _ => String::new(),
        };
        if self.allowed.contains(&tool) {
            output::note(&format!("approved automatically, as you chose: {tool}"));
            return Ok(Some(Answer::Approve { reason: None }));
        }
        output::note(&questions::asked(one));
        loop {
            let answer = match &question {
                Question::Clarification(asked) => clarified(&asked.options, signals).await?,
                Question::Approval(_) => self.decided(&tool, signals).await?,
                Question::OutcomeUnknown(_) => judged(signals).await?,
                Question::Elicitation(asked) if asked.url.is_some() => allowed(signals).await?,
                Question::Elicitation(asked) => {
                    filled(asked.requested_schema.as_ref(), signals).await?
                }
                Question::Other(_) => Reply::of(line("answer", signals).await?),
            };
            match answer {
                Reply::Answer(answer) => return Ok(Some(answer)),
                Reply::Later => return Ok(None),
                Reply::Unclear => {
                    output::note("choose one of these options, or press Enter to answer later")
                }
            }
        }
    }

    async fn decided(&mut self, tool: &str, signals: &Signals) -> Result<Reply> {
        let prompt = "approve? [y]es, [n]o, [a]ll calls of this tool during this command, yes with [i]nstructions";
        Ok(match word(prompt, signals).await?.as_deref() {
            None => Reply::Later,
            Some("y" | "yes") => Reply::Answer(Answer::Approve { reason: None }),
            Some("a" | "all") => {
                self.allowed.insert(tool.to_owned());
                Reply::Answer(Answer::Approve { reason: None })
            }
            Some("n" | "no") => {
                Reply::Answer(Answer::Deny { reason: line("reason (optional)", signals).await? })
            }
            Some("i" | "instruct") => match line("instructions for the agent", signals).await? {
                None => Reply::Unclear,
                reason => Reply::Answer(Answer::Approve { reason }),
            },
            Some(_) => Reply::Unclear,
        })
    }
}

enum Reply {
    Answer(Answer),
    /// An empty line, the end of the input, or a signal.
    Later,
    Unclear,
}

impl Reply {
    fn of(line: Option<String>) -> Self {
        line.map_or(Self::Later, |text| Self::Answer(Answer::Value(json_or_text(text))))
    }
}

async fn clarified(options: &[String], signals: &Signals) -> Result<Reply> {
    let prompt =
        if options.is_empty() { "answer" } else { "answer, or the number of one of these" };
    let Some(text) = line(prompt, signals).await? else { return Ok(Reply::Later) };
    let number = text.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    let chosen = number.and_then(|index| options.get(index)).cloned();
    Ok(Reply::Answer(Answer::Message(chosen.unwrap_or(text))))
}

async fn judged(signals: &Signals) -> Result<Reply> {
    let prompt = "outcome? [d]one, [r]etry (the call did not happen), [s]kip";
    Ok(match word(prompt, signals).await?.as_deref() {
        None => Reply::Later,
        Some("d" | "done") => {
            let result = line("result (JSON or text, optional)", signals).await?;
            Reply::Answer(Answer::OutcomeDone { result: result.map_or(Value::Null, json_or_text) })
        }
        Some("r" | "retry") => Reply::Answer(Answer::OutcomeRetry),
        Some("s" | "skip") => Reply::Answer(Answer::OutcomeSkip),
        Some(_) => Reply::Unclear,
    })
}

async fn allowed(signals: &Signals) -> Result<Reply> {
    Ok(match word("did you open the address? [y]es, [n]o", signals).await?.as_deref() {
        None => Reply::Later,
        Some("y" | "yes") => Reply::Answer(Answer::Approve { reason: None }),
        Some("n" | "no") => Reply::Answer(Answer::Deny { reason: None }),
        Some(_) => Reply::Unclear,
    })
}

/// Asks for the fields of a form one by one; an empty one is left out.
async fn filled(schema: Option<&Value>, signals: &Signals) -> Result<Reply> {
    match word("fill in the form? [y]es, [n]o", signals).await?.as_deref() {
        None => return Ok(Reply::Later),
        Some("y" | "yes") => {}
        Some("n" | "no") => return Ok(Reply::Answer(Answer::Deny { reason: None })),
        Some(_) => return Ok(Reply::Unclear),
    }
    let fields = schema.and_then(|schema| schema["properties"].as_object());
    let mut form = Map::new();
    for (name, field) in fields.into_iter().flatten() {
        if let Some(text) = line(name, signals).await? {
            form.insert(name.clone(), typed(&text, field));
        }
    }
    Ok(Reply::Answer(Answer::Value(Value::Object(form))))
}

/// Reads a field's text as the form's type; the check of the whole form finds errors.
fn typed(text: &str, field: &Value) -> Value {
    let kind = field.get("type").and_then(Value::as_str).unwrap_or("string");
    match (kind, text.to_lowercase().as_str()) {
        ("string", _) => Value::String(text.to_owned()),
        ("boolean", "y" | "yes" | "true") => Value::Bool(true),
        ("boolean", "n" | "no" | "false") => Value::Bool(false),
        _ => json_or_text(text.to_owned()),
    }
}

async fn word(prompt: &str, signals: &Signals) -> Result<Option<String>> {
    Ok(line(prompt, signals).await?.map(|line| line.to_lowercase()))
}

/// Reads a line from the terminal; `None` if it is empty, at the end of the input, and after a signal.
async fn line(prompt: &str, signals: &Signals) -> Result<Option<String>> {
    output::BARS.suspend(|| {
        eprint!("{}: ", output::one_line(prompt));
        let _ = std::io::stderr().flush();
    });
    let read = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).map(|_| line.trim().to_owned())
    });
    let line = tokio::select! {
        biased;
        () = signals.stopped() => return Ok(None),
        read = read => read.map_err(|error| Error::Input(std::io::Error::other(error)))?,
    };
    Ok(Some(line.map_err(Error::Input)?).filter(|line| !line.is_empty()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_field_is_read_as_the_form_wants_it() {
        assert_eq!(typed("12", &json!({ "type": "string" })), json!("12"));
        assert_eq!(typed("12", &json!({ "type": "integer" })), json!(12));
        assert_eq!(typed("yes", &json!({ "type": "boolean" })), json!(true));
        assert_eq!(typed("many", &json!({ "type": "integer" })), json!("many"));
    }
}
