//! Reads and answers mail: searches, reads threads, drafts, and sends only text that a person has seen completely.
//!
//! Enter at [`kind`]. Stages: `plan → look → write → keep → send → answer`. Invariant: a message is a draft before it is sent, the call
//! that sends it shows all of it, and a task sends at most one. Deliberately absent: searches that messages ask for; they are all
//! planned before one is read.

mod look;
mod send;
mod write;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use self::look::Plan;
use crate::lenient;
use crate::pipeline::{AgentError, ErrorKind, Kind, Pipeline, ToolReply};

perihelion_engine::graph_state! {
    /// The state that the stages pass on.
    pub struct Letter, update LetterUpdate, version 1 {
        plan: Plan => overwrite,
        /// Threads that were read, as shown.
        messages: Vec<Mail> => overwrite,
        /// The data to store: the role of the tool, and its arguments.
        wanted: Option<write::DraftCall> => overwrite,
        draft: Option<Mail> => overwrite,
        /// The questions to the user, with the answers.
        answers: Vec<String> => append,
        /// Why the last text was refused, or that some messages could not be read.
        problem: Option<String> => overwrite,
        writes: u32 => overwrite,
        /// The sent messages: a second round sends none.
        sent: Option<String> => overwrite,
    }
}

pub fn kind() -> Arc<dyn Kind> {
    Pipeline::<Letter>::new("mail")
        .about("finds and reads mail, drafts answers, and sends what a person approved")
        .tool("search", "finds messages in a folder")
        .tool("read", "reads a thread")
        .tool("draft", "keeps a new message as a draft")
        .optional_tool("reply", "keeps an answer as a draft")
        .optional_tool("forward", "keeps a message that hands another one on as a draft")
        .optional_tool("send", "sends a draft")
        .profile(
            "mail",
            &[
                ("search", "search_mail"),
                ("read", "read_thread"),
                ("draft", "draft"),
                ("reply", "reply"),
                ("forward", "forward"),
                ("send", "send"),
            ],
        )
        .natural_for("mail")
        .template("mail_plan", include_str!("../../../../prompts/mail_plan.md"))
        .template("mail_write", include_str!("../../../../prompts/mail_write.md"))
        .template("documents_answer", include_str!("../../../../prompts/documents_answer.md"))
        .stage("plan", look::plan)
        .stage("look", look::look)
        .stage("write", write::write)
        .stage("keep", send::keep)
        .stage("send", send::send)
        .stage("answer", send::answer)
        .into_kind()
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Mail {
    pub id: String,
    pub folder: String,
    pub from: String,
    pub to: Vec<String>,
    pub cc: Vec<String>,
    pub bcc: Vec<String>,
    pub subject: String,
    pub date: Option<String>,
    pub text: String,
    pub attachments: Vec<String>,
}

impl Mail {
    /// Reads a list or a thread from a tool's reply; an answer of another server without data is no message. `Err` says
    /// why the tool failed, or that there are messages of which none can be read.
    pub fn all_of(reply: &ToolReply) -> Result<Vec<Self>, AgentError> {
        if reply.is_error {
            return Err(AgentError::of_message(reply.text.as_str()));
        }
        let data = reply.structured.as_ref();
        let listed =
            data.and_then(|data| data["messages"].as_array()).map_or(&[][..], Vec::as_slice);
        let read: Vec<Self> = listed.iter().filter_map(lenient::read).collect();
        match listed {
            [first, ..] if read.is_empty() => {
                let message = format!("the server's messages cannot be read, such as {first}");
                Err(AgentError::new(ErrorKind::Tool, message))
            }
            _ => Ok(read),
        }
    }

    /// Returns all of a draft that the person who approves its sending has to see.
    pub fn shown(&self) -> Value {
        json!({
            "from": self.from,
            "to": self.to,
            "cc": self.cc,
            "bcc": self.bcc,
            "subject": self.subject,
            "text": self.text,
            "attachments": self.attachments,
        })
    }

    pub fn recipients(&self) -> String {
        let all = self.to.iter().chain(&self.cc).chain(&self.bcc);
        all.map(String::as_str).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_failed_has_not_answered_that_there_is_no_mail() {
        let mut failed = ToolReply::default();
        failed.is_error = true;
        "Timeout: the mailbox did not answer".clone_into(&mut failed.text);
        let error = Mail::all_of(&failed).unwrap_err();
        assert_eq!(error, AgentError::new(ErrorKind::Timeout, failed.text));
    }
}
