//! Reads and answers mail: searches, reads threads, drafts, and sends what a person has seen whole.
//!
//! Enter at [`kind`]. Stages: `plan → look → write → keep → send → answer`. Invariant: a message is a draft before it is sent, the call
//! that sends it shows all of it, and a task sends at most one. Deliberately absent: searches that messages ask for; they are all
//! planned before one is read.

mod answer;
mod keep;
mod look;
mod message;
mod plan;
mod send;
mod write;

use std::sync::Arc;

use crate::pipeline::{Kind, Pipeline, Role};

use self::message::{Mail, Reading};
use self::plan::Plan;

perihelion_engine::graph_state! {
    /// What the stages hand on.
    pub struct Letter, update LetterUpdate, version 1 {
        plan: Plan => overwrite,
        /// Threads that were read, as far as they are shown.
        messages: Vec<Mail> => overwrite,
        /// What is to be kept: the role of the tool, and its arguments.
        wanted: Option<write::Wanted> => overwrite,
        draft: Option<Mail> => overwrite,
        /// What was asked of the user, with the answers.
        answers: Vec<String> => append,
        /// Why the last text did not do.
        problem: Option<String> => overwrite,
        /// Texts that were written.
        writes: u32 => overwrite,
        /// What left: a second round sends nothing.
        sent: Option<String> => overwrite,
    }
}

/// The kind `mail`.
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
        .model(Role::Agent, "plan", "mail_plan")
        .model(Role::Agent, "write", "mail_draft")
        .model(Role::Agent, "answer", "")
        .stage("plan", plan::plan)
        .stage("look", look::look)
        .stage("write", write::write)
        .stage("keep", keep::keep)
        .stage("send", send::send)
        .stage("answer", answer::answer)
        .into_kind()
}
