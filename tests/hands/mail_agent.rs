//! The mail agent in the whole star: Debian's Dovecot, an outgoing server that counts, and lines on which processes are killed.

use std::process::Stdio;
use std::sync::Arc;

use perihelion::llm::scripted::{Reply, Rule, Script};
use serde_json::{Value, json};

use crate::agents::{Star, script};
use crate::support::{Dovecot, Mood, Outgoing, dovecot, outgoing};
use crate::tap::{Trap, line};

const AGENT: &str = "mcp_agent_post";

/// A mailbox, what leaves it, and an agent on it.
struct Office {
    star: Star,
    outgoing: Outgoing,
    trap: Arc<Trap>,
    _dovecot: Dovecot,
}

impl Office {
    /// `more` stands in the servers file below the server's table.
    async fn open(name: &str, more: &str, script: Script) -> Option<Self> {
        let dovecot = dovecot(name)?;
        let (outgoing, trap) = (outgoing(), Arc::new(Trap::default()));
        let (imap, smtp) = (line(dovecot.port, &trap), line(outgoing.port, &trap));
        let table = format!(
            "args = [\"mcp\", \"mail\", \"--imap\", \"127.0.0.1:{imap}\", \"--smtp\", \"127.0.0.1:{smtp}\", \"--security\", \"plain\", \
             \"--user\", \"bo\", \"--from\", \"Bo <bo@b.test>\"]\nenv = {{ PERIHELION_MAIL_PASSWORD = \"secret-pass\" }}\n{more}"
        );
        let star = Star::open("post", &table, script).await;
        Some(Self { star, outgoing, trap, _dovecot: dovecot })
    }

    /// Counts the messages that left with that subject.
    fn left(&self, subject: &str) -> usize {
        let subject = format!("Subject: {subject}\n");
        self.outgoing
            .taken
            .lock()
            .unwrap()
            .iter()
            .filter(|(_, text)| text.contains(&subject))
            .count()
    }

    async fn resume(&self, thread: &str, options: &[&str]) -> Value {
        self.star.run(&[&["resume", thread, "--json"], options].concat()).await
    }
}

fn plan(action: &str, folder: &str, queries: &[&str], send: bool) -> Reply {
    Reply::json(
        json!({ "action": action, "folder": folder, "queries": queries, "send": send, "reason": "It is asked." }),
    )
}

fn text(fields: Value) -> Reply {
    let mut draft = json!({ "message": null, "to": [], "cc": [], "bcc": [], "subject": "", "text": "", "attachments": [], "question": null });
    draft.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    Reply::json(draft)
}

fn new(subject: &str) -> Reply {
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
    let Some(office) = Office::open("agent-send", "", script).await else { return };
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
    let Some(office) = Office::open("agent-reply", free, script).await else { return };
    let report = office.star.run(&["run", "Invite Ann.", "--json"]).await;
    assert_eq!((report["status"].clone(), office.left("Tea")), (json!("done"), 1), "{report:#}");
    let report = office.star.run(&["run", "Look what I sent.", "--json"]).await;
    let result = &report["results"][0];
    assert_eq!(result["output"], "Ann was asked to tea [1], they say.", "{report:#}");
    assert!(result["sources"][0]["quote"].as_str().unwrap().contains("Tea at four?"));
    let report = office.star.run(&["run", "Remind Ann.", "--json"]).await;
    assert_eq!(report["status"], "done", "{report:#}");
    let taken = office.outgoing.taken.lock().unwrap().clone();
    let (first, second) = (&taken[0].1, &taken[1].1);
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
    let Some(office) = Office::open("agent-deny", "", script).await else { return };
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
    let Some(office) = Office::open("agent-refused", free, script).await else { return };
    *office.outgoing.mood.lock().unwrap() = Mood::Refuses;
    let report = office.star.run(&["run", "Invite Ann.", "--json"]).await;
    let error = &report["results"][0]["error"];
    assert_eq!(error["type"], "ToolError", "{report:#}");
    assert!(error["message"].as_str().unwrap().contains("nobody of that name"), "{error:#}");
    *office.outgoing.mood.lock().unwrap() = Mood::Takes;
    let report = office.star.run(&["run", "Send it now.", "--json"]).await;
    assert_eq!((report["status"].clone(), office.left("Tea")), (json!("done"), 1), "{report:#}");
}

/// How many kills; `make test-mail` makes it many.
fn kills() -> usize {
    std::env::var("MAIL_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(6)
}

fn case(number: usize) -> String {
    format!("Case {number:03}")
}

/// S3.07, X2: killed at any point of a send and resumed, a message leaves exactly once, and what nobody can know is asked.
#[tokio::test]
async fn a_message_leaves_exactly_once_wherever_its_sending_is_killed() {
    let kills = kills();
    let mut script = script(AGENT).rule(Rule::new(plan("DRAFT", "inbox", &[], true)).stage("plan"));
    for number in 0..=kills {
        let subject = case(number);
        script = script.rule(Rule::new(new(&subject)).stage("write").contains(&subject));
    }
    let Some(office) = Office::open("agent-kill", "", script).await else { return };
    // The first goes through, and counts the points there are.
    let (points, _) = sent(&office, 0, usize::MAX).await;
    assert!(points > 20, "only {points} points");
    let mut asked = 0;
    for number in 1..=kills {
        let point = (number - 1) * points / kills;
        let (_, was_killed) = sent(&office, number, point).await;
        if was_killed {
            asked += settle(&office, number).await;
        }
        assert_eq!(office.left(&case(number)), 1, "{} was killed at point {point}", case(number));
    }
    eprintln!(
        "{kills} kills at {points} points: each message left once, {asked} questions to a person"
    );
}

/// Asks for a message and approves it in a process that is killed at a point; returns how many there were, and whether it was.
async fn sent(office: &Office, number: usize, point: usize) -> (usize, bool) {
    let thread = format!("thread-{number}");
    let question = format!("Invite Ann to {}", case(number));
    let report = office.star.run(&["run", &question, "--thread", &thread, "--json"]).await;
    assert_eq!(report["interrupts"][0]["payload"]["tool"], "send", "{report:#}");
    let mut command = office.star.command(&["resume", &thread, "--approve", "--json"]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut process = command.spawn().unwrap();
    office.trap.set(process.id(), point);
    let ended = tokio::task::spawn_blocking(move || process.wait().unwrap()).await.unwrap();
    (office.trap.lift(), ended.code().is_none())
}

/// Goes on until the thread is done, as a person does who knows what arrived; returns how often they were asked.
async fn settle(office: &Office, number: usize) -> usize {
    let (thread, subject) = (format!("thread-{number}"), case(number));
    let (mut report, mut asked) = (office.resume(&thread, &[]).await, 0);
    while report["status"] == "interrupted" {
        asked += 1;
        assert!(asked < 6, "{subject}: {report:#}");
        let kind = report["interrupts"][0]["kind"].as_str().unwrap();
        report = match kind {
            "approval" => office.resume(&thread, &["--approve"]).await,
            "outcome_unknown" => office.resume(&thread, &["--outcome", "retry"]).await,
            _ if office.left(&subject) == 0 => {
                office.resume(&thread, &["--message", "send it again"]).await
            }
            _ => office.resume(&thread, &["--message", "leave it"]).await,
        };
    }
    assert_eq!(report["status"], "done", "{subject}: {report:#}");
    assert_eq!(report["results"][0]["status"], "success", "{subject}: {report:#}");
    asked
}
