//! The mail agent in the whole star: Debian's Dovecot with an outgoing server that counts, and Cyrus with OpenSMTPD.

use std::sync::Arc;

use perihelion::llm::scripted::{Reply, Rule, Script};
use serde_json::{Value, json};

use crate::agents::{Star, script};
use crate::support::cyrus::{Cyrus, cyrus};
use crate::support::{Dovecot, Mood, Outgoing, dovecot, outgoing};
use crate::tap::{Trap, line};

pub(crate) const AGENT: &str = "mcp_agent_post";

/// A mailbox, what leaves it, and an agent on it.
pub(crate) struct Office {
    pub(crate) star: Star,
    pub(crate) trap: Arc<Trap>,
    post: Post,
}

/// The servers of a mailbox.
enum Post {
    Dovecot { outgoing: Outgoing, _dovecot: Dovecot },
    Cyrus(Cyrus),
}

/// Which servers, and which way to them.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum By {
    Dovecot,
    CyrusImap,
    CyrusJmap,
}

impl Office {
    /// `more` stands in the servers file below the server's table.
    pub(crate) async fn open(by: By, name: &str, more: &str, script: Script) -> Option<Self> {
        let trap = Arc::new(Trap::default());
        let imap = |imap: u16, smtp: u16| {
            let imap = line(imap, &trap);
            let smtp = line(smtp, &trap);
            format!("\"--imap\", \"127.0.0.1:{imap}\", \"--smtp\", \"127.0.0.1:{smtp}\"")
        };
        let (post, way) = if by == By::Dovecot {
            let dovecot = dovecot(name)?;
            let outgoing = outgoing();
            let way = imap(dovecot.port, outgoing.port);
            (Post::Dovecot { outgoing, _dovecot: dovecot }, way)
        } else {
            let cyrus = cyrus(name)?;
            let way = if by == By::CyrusImap {
                imap(cyrus.imap, cyrus.smtp)
            } else {
                format!("\"--jmap\", \"127.0.0.1:{}\"", line(cyrus.http, &trap))
            };
            (Post::Cyrus(cyrus), way)
        };
        let table = format!(
            "args = [\"mcp\", \"mail\", {way}, \"--security\", \"plain\", \"--user\", \"bo\", \"--from\", \"Bo <bo@b.test>\"]\n\
             env = {{ PERIHELION_MAIL_PASSWORD = \"secret-pass\" }}\n{more}"
        );
        let star = Star::open("post", &table, script).await;
        Some(Self { star, trap, post })
    }

    /// Counts the messages that left with that subject, once all of them arrived.
    pub(crate) fn left(&self, subject: &str) -> usize {
        match &self.post {
            Post::Cyrus(cyrus) => cyrus.arrived("ann", subject),
            Post::Dovecot { outgoing, .. } => {
                let subject = format!("Subject: {subject}\n");
                let taken = outgoing.taken.lock().unwrap();
                taken.iter().filter(|(_, text)| text.contains(&subject)).count()
            }
        }
    }

    fn outgoing(&self) -> &Outgoing {
        match &self.post {
            Post::Dovecot { outgoing, .. } => outgoing,
            Post::Cyrus(_) => panic!("no such server here"),
        }
    }

    pub(crate) async fn resume(&self, thread: &str, options: &[&str]) -> Value {
        self.star.run(&[&["resume", thread, "--json"], options].concat()).await
    }
}

pub(crate) fn plan(action: &str, folder: &str, queries: &[&str], send: bool) -> Reply {
    Reply::json(
        json!({ "action": action, "folder": folder, "queries": queries, "send": send, "reason": "It is asked." }),
    )
}

fn text(fields: Value) -> Reply {
    let mut draft = json!({ "message": null, "to": [], "cc": [], "bcc": [], "subject": "", "text": "", "attachments": [], "question": null });
    draft.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    Reply::json(draft)
}

pub(crate) fn new(subject: &str) -> Reply {
    text(
        json!({ "to": ["Ann <ann@a.test>"], "bcc": ["cy@c.test"], "subject": subject, "text": "Tea at four?" }),
    )
}

/// S3.07: a draft is kept freely; what leaves waits for a person, who sees all of it; it leaves once.
#[tokio::test]
async fn a_message_leaves_once_and_only_after_a_person_saw_all_of_it() {
    let script = script(AGENT)
        .rule(Rule::new(plan("DRAFT", "inbox", &[], true)).stage("plan"))
        .rule(Rule::new(new("Tea")).stage("write"));
    let Some(office) = Office::open(By::Dovecot, "agent-send", "", script).await else { return };
    let report = office.star.run(&["run", "Invite Ann.", "--thread", "t", "--json"]).await;
    assert_eq!(report["status"], "interrupted", "{report:#}");
    let asked = &report["interrupts"][0];
    assert_eq!((&asked["kind"], &asked["payload"]["tool"]), (&json!("approval"), &json!("send")));
    assert_eq!(
        asked["payload"]["arguments"]["message"],
        json!({ "from": "Bo <bo@b.test>", "to": ["Ann <ann@a.test>"], "cc": [], "bcc": ["cy@c.test"], "subject": "Tea",
                "text": "Tea at four?", "attachments": [] }),
        "{asked:#}"
    );
    assert_eq!(office.left("Tea"), 0);
    let report = office.resume("t", &["--approve"]).await;
    let output = report["results"][0]["output"].as_str().unwrap();
    assert!(output.starts_with("Sent “Tea” to Ann <ann@a.test>, cy@c.test."), "{report:#}");
    assert_eq!(office.left("Tea"), 1);
}

/// S3.07: an answer keeps its thread, and is free where the operator says so; denied, it stays a draft.
#[tokio::test]
async fn an_answer_is_drafted_in_its_thread_and_a_denied_one_stays_a_draft() {
    let script = script(AGENT)
        .rule(Rule::new(plan("DRAFT", "inbox", &[], true)).stage("plan").contains("Invite"))
        .rule(Rule::new(new("Tea")).stage("write").contains("Invite"))
        .rule(
            Rule::new(plan("READ", "sent", &["from:nobody", "subject:tea"], false))
                .stage("plan")
                .contains("Look"),
        )
        .rule(Rule::new(Reply::text("Ann was asked to tea [1], they say [7].")).stage("answer"))
        .rule(
            Rule::new(plan("REPLY", "sent", &["subject:tea"], true))
                .stage("plan")
                .contains("Remind"),
        )
        .rule(
            Rule::new(text(json!({ "message": 4, "text": "Still at four?" })))
                .stage("write")
                .times(1),
        )
        .rule(Rule::new(text(json!({ "message": 1, "text": "Still at four?" }))).stage("write"));
    let free = "[mcp_servers.post.tools.reply]\napproval_mode = \"approve\"\n[mcp_servers.post.tools.send]\napproval_mode = \"approve\"";
    let Some(office) = Office::open(By::Dovecot, "agent-reply", free, script).await else { return };
    let report = office.star.run(&["run", "Invite Ann.", "--json"]).await;
    assert_eq!((report["status"].clone(), office.left("Tea")), (json!("done"), 1), "{report:#}");
    let report = office.star.run(&["run", "Look what I sent.", "--json"]).await;
    let result = &report["results"][0];
    assert_eq!(result["output"], "Ann was asked to tea [1], they say.", "{report:#}");
    assert!(result["sources"][0]["quote"].as_str().unwrap().contains("Tea at four?"));
    let report = office.star.run(&["run", "Remind Ann.", "--json"]).await;
    assert_eq!(report["status"], "done", "{report:#}");
    let taken = office.outgoing().taken.lock().unwrap().clone();
    let first = &taken[0].1;
    let second = &taken[1].1;
    let id = first.lines().find_map(|line| line.strip_prefix("Message-ID: ")).unwrap();
    assert!(
        second.contains(&format!("In-Reply-To: {id}")) && second.contains("Subject: Re: Tea"),
        "{second}"
    );
    assert_eq!(taken[1].0, ["<ann@a.test>"]);
    assert_eq!(
        office.star.stage("write").len(),
        3,
        "a number that names no message is asked for again"
    );
}

/// S3.07: what is denied is kept as a draft; a draft that there is can be sent later.
#[tokio::test]
async fn a_denied_message_stays_a_draft_that_can_be_sent_later() {
    let script = script(AGENT)
        .rule(Rule::new(plan("DRAFT", "inbox", &[], true)).stage("plan").contains("Invite"))
        .rule(Rule::new(plan("SEND", "drafts", &["subject:tea"], true)).stage("plan"))
        .rule(Rule::new(new("Tea")).stage("write"));
    let Some(office) = Office::open(By::Dovecot, "agent-deny", "", script).await else { return };
    office.star.run(&["run", "Invite Ann.", "--thread", "t", "--json"]).await;
    let report = office.resume("t", &["--deny", "--reason", "Not yet."]).await;
    let output = report["results"][0]["output"].as_str().unwrap();
    assert!(output.starts_with("Kept as a draft, not sent"), "{report:#}");
    assert_eq!(office.left("Tea"), 0);
    office.star.run(&["run", "Send my draft about tea.", "--thread", "u", "--json"]).await;
    let report = office.resume("u", &["--approve"]).await;
    assert_eq!((report["status"].clone(), office.left("Tea")), (json!("done"), 1), "{report:#}");
}

/// S2.11: what the outgoing server refuses is an error of the agent, and the draft can be sent once it takes it.
#[tokio::test]
async fn a_refused_message_is_a_typed_error_and_stays_a_draft() {
    let script = script(AGENT)
        .rule(Rule::new(plan("DRAFT", "inbox", &[], true)).stage("plan").contains("Invite"))
        .rule(Rule::new(plan("SEND", "drafts", &[], true)).stage("plan"))
        .rule(Rule::new(new("Tea")).stage("write"));
    let free = "[mcp_servers.post.tools.send]\napproval_mode = \"approve\"";
    let Some(office) = Office::open(By::Dovecot, "agent-refused", free, script).await else {
        return;
    };
    *office.outgoing().mood.lock().unwrap() = Mood::Refuses;
    let report = office.star.run(&["run", "Invite Ann.", "--json"]).await;
    let error = &report["results"][0]["error"];
    assert_eq!(error["type"], "ToolError", "{report:#}");
    assert!(error["message"].as_str().unwrap().contains("nobody of that name"), "{error:#}");
    *office.outgoing().mood.lock().unwrap() = Mood::Takes;
    let report = office.star.run(&["run", "Send it now.", "--json"]).await;
    assert_eq!((report["status"].clone(), office.left("Tea")), (json!("done"), 1), "{report:#}");
}

/// S3.07: by JMAP the agent searches, answers in the thread and sends as it does by IMAP.
#[tokio::test]
#[ignore = "needs Cyrus with OpenSMTPD: make test-mail"]
async fn by_jmap_mail_is_found_answered_in_its_thread_and_sent() {
    let script = script(AGENT)
        .rule(Rule::new(plan("DRAFT", "inbox", &[], true)).stage("plan").contains("Invite"))
        .rule(Rule::new(new("Tea")).stage("write").contains("Invite"))
        .rule(Rule::new(plan("REPLY", "sent", &["subject:tea"], true)).stage("plan"))
        .rule(Rule::new(text(json!({ "message": 1, "text": "Still at four?" }))).stage("write"));
    let free = "[mcp_servers.post.tools.reply]\napproval_mode = \"approve\"\n[mcp_servers.post.tools.send]\napproval_mode = \"approve\"";
    let Some(office) = Office::open(By::CyrusJmap, "agent-jmap", free, script).await else {
        return;
    };
    let report = office.star.run(&["run", "Invite Ann.", "--json"]).await;
    assert_eq!((report["status"].clone(), office.left("Tea")), (json!("done"), 1), "{report:#}");
    let Post::Cyrus(cyrus) = &office.post else { panic!("no Cyrus") };
    cyrus.index("bo");
    let report = office.star.run(&["run", "Remind Ann.", "--json"]).await;
    assert_eq!(report["status"], "done", "{report:#}");
    assert_eq!(office.left("Re: Tea"), 1);
}
