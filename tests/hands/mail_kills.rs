//! Processes that are killed around a send, at each point of the exchange with the mail servers.

use std::process::Stdio;

use perihelion::llm::scripted::Rule;

use crate::agents::script;
use crate::mail_agent::{AGENT, By, Office, new, plan};

/// How many kills; `make test-mail` makes it many.
fn kills() -> usize {
    std::env::var("MAIL_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(6)
}

fn case(number: usize) -> String {
    format!("Case {number:03}")
}

/// S3.07, X2: killed at any point of a send and resumed, a message leaves exactly once, and what nobody can know is asked.
#[tokio::test]
async fn a_message_is_sent_exactly_once_if_sending_is_killed_at_any_point() {
    kill(By::Dovecot, "agent-kill").await;
}

/// S3.07, X2: the same with Cyrus and OpenSMTPD, where what arrived is counted in the recipient's inbox.
#[tokio::test]
#[ignore = "needs Cyrus with OpenSMTPD: make test-mail"]
async fn a_message_arrives_exactly_once_through_cyrus_and_opensmtpd() {
    kill(By::CyrusImap, "agent-kill-imap").await;
}

/// S3.07, X2: the same by JMAP.
#[tokio::test]
#[ignore = "needs Cyrus with OpenSMTPD: make test-mail"]
async fn a_message_arrives_exactly_once_by_jmap() {
    kill(By::CyrusJmap, "agent-kill-jmap").await;
}

async fn kill(by: By, name: &str) {
    let kills = kills();
    let mut script = script(AGENT).rule(Rule::new(plan("DRAFT", "inbox", &[], true)).stage("plan"));
    for number in 0..=2 * kills {
        let subject = case(number);
        script = script.rule(Rule::new(new(&subject)).stage("write").contains(&subject));
    }
    let Some(office) = Office::open(by, name, "", script).await else { return };
    // The first goes through, and counts the points there are.
    let (points, _) = sent(&office, 0, usize::MAX).await;
    assert!(points > 10, "only {points} points");
    let mut killed = 0;
    let mut asked = 0;
    for number in 1..=2 * kills {
        // One that was through before its point was killed by nobody, and is made up for.
        if killed == kills {
            break;
        }
        let point = (number - 1) % kills * points / kills;
        let (_, was_killed) = sent(&office, number, point).await;
        if was_killed {
            killed += 1;
            asked += settle(&office, number).await;
        }
        assert_eq!(office.left(&case(number)), 1, "{} was killed at point {point}", case(number));
    }
    assert_eq!(killed, kills, "most of them were through before their points");
    eprintln!(
        "{name}: {killed} kills at {points} points: 0 duplicates, 0 lost, {asked} questions to a person"
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

/// Continues until the thread is done, as a person does who knows what arrived; returns how often they were asked.
async fn settle(office: &Office, number: usize) -> usize {
    let thread = format!("thread-{number}");
    let subject = case(number);
    let mut report = office.resume(&thread, &[]).await;
    let mut asked = 0;
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
