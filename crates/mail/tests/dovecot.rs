//! Against Debian's Dovecot, started here on a port of its own, and an outgoing server that can fail; `make test-mail`.
//!
//! Without Dovecot, or without the right to start it, nothing is tested and the tests say so.
#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]
#![expect(clippy::panic, reason = "a test ends at what it did not expect")]
#![expect(clippy::print_stderr, reason = "says why nothing was tested")]

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use perihelion_mail::{Account, Compose, Endpoint, Error, Mailbox, Security, SentState};

struct Dovecot {
    child: Child,
    port: u16,
    home: std::path::PathBuf,
}

impl Drop for Dovecot {
    fn drop(&mut self) {
        let _ = Command::new("doveadm")
            .args(["-c"])
            .arg(self.home.join("dovecot.conf"))
            .arg("stop")
            .output();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.home);
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Starts a Dovecot that takes everybody with the password `secret-pass`.
fn dovecot(name: &str) -> Option<Dovecot> {
    if !Path::new("/usr/sbin/dovecot").exists() {
        assert!(std::env::var_os("CI").is_none(), "install dovecot-imapd: there is no Dovecot");
        eprintln!("no Dovecot here: nothing was tested");
        return None;
    }
    let home = std::env::temp_dir().join(format!("perihelion-mail-{name}-{}", std::process::id()));
    std::fs::create_dir_all(home.join("mail")).unwrap();
    let owned =
        Command::new("chown").args(["-R", "nobody"]).arg(home.join("mail")).status().unwrap();
    if !owned.success() {
        eprintln!("not root: nothing was tested");
        return None;
    }
    let port = free_port();
    let dir = home.display();
    let text = format!(
        "protocols = imap\nbase_dir = {dir}/run\nlisten = 127.0.0.1\nlog_path = {dir}/log\nssl = no\ndisable_plaintext_auth = no\n\
         mail_location = maildir:{dir}/mail/%u\nfirst_valid_uid = 1\nlast_valid_gid = 0\nfirst_valid_gid = 0\n\
         passdb {{\n driver = static\n args = password=secret-pass\n}}\n\
         userdb {{\n driver = static\n args = uid=nobody gid=nogroup home={dir}/mail/%u\n}}\n\
         service imap-login {{\n inet_listener imap {{\n port = {port}\n }}\n inet_listener imaps {{\n port = 0\n }}\n}}\n\
         namespace inbox {{\n inbox = yes\n mailbox Drafts {{\n auto = subscribe\n special_use = \\Drafts\n }}\n\
         mailbox Outbox {{\n auto = subscribe\n special_use = \\Sent\n }}\n}}\n"
    );
    std::fs::write(home.join("dovecot.conf"), text).unwrap();
    let child = Command::new("/usr/sbin/dovecot")
        .args(["-F", "-c"])
        .arg(home.join("dovecot.conf"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let started = Dovecot { child, port, home };
    for _ in 0..2_000 {
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return Some(started);
        }
        std::thread::yield_now();
        let _ = Command::new("true").status();
    }
    panic!(
        "Dovecot does not answer: {}",
        std::fs::read_to_string(started.home.join("log")).unwrap_or_default()
    );
}

/// How the outgoing server takes a message.
#[derive(Clone, Copy, PartialEq)]
enum Mood {
    Takes,
    Refuses,
    /// Takes it and hangs up without a word.
    FallsSilent,
}

struct Outgoing {
    port: u16,
    mood: Arc<Mutex<Mood>>,
    taken: Taken,
}

/// Recipients and text of each message that was taken.
type Taken = Arc<Mutex<Vec<(Vec<String>, String)>>>;

fn outgoing() -> Outgoing {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (mood, taken) = (Arc::new(Mutex::new(Mood::Takes)), Arc::new(Mutex::new(Vec::new())));
    let server = Outgoing { port, mood: Arc::clone(&mood), taken: Arc::clone(&taken) };
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let _ = converse(stream.unwrap(), &mood, &taken);
        }
    });
    server
}

fn converse(
    mut stream: TcpStream,
    mood: &Mutex<Mood>,
    taken: &Mutex<Vec<(Vec<String>, String)>>,
) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let mut to = Vec::new();
    stream.write_all(b"220 test\r\n")?;
    while let Some(line) = lines.next() {
        let line = line?;
        let upper = line.to_ascii_uppercase();
        let answer: &[u8] = if upper.starts_with("EHLO") {
            b"250-test\r\n250 AUTH PLAIN\r\n"
        } else if upper.starts_with("AUTH") {
            b"235 ok\r\n"
        } else if upper.starts_with("RCPT") {
            if *mood.lock().unwrap() == Mood::Refuses {
                b"550 nobody of that name\r\n"
            } else {
                to.push(line.get(8..).unwrap_or_default().trim().to_owned());
                b"250 ok\r\n"
            }
        } else if upper == "DATA" {
            stream.write_all(b"354 go\r\n")?;
            let mut text = String::new();
            for line in lines.by_ref() {
                let line = line?;
                if line == "." {
                    break;
                }
                text.push_str(&line);
                text.push('\n');
            }
            taken.lock().unwrap().push((std::mem::take(&mut to), text));
            if *mood.lock().unwrap() == Mood::FallsSilent {
                return Ok(());
            }
            b"250 taken\r\n"
        } else if upper == "QUIT" {
            stream.write_all(b"221 bye\r\n")?;
            return Ok(());
        } else {
            b"250 ok\r\n"
        };
        stream.write_all(answer)?;
    }
    Ok(())
}

fn account(user: &str, imap: u16, smtp: u16) -> Account {
    let endpoint = |port| Endpoint { host: "127.0.0.1".into(), port, security: Security::Plain };
    Account {
        imap: endpoint(imap),
        smtp: endpoint(smtp),
        username: user.into(),
        password: "secret-pass".to_owned().into(),
        from: format!("{user}@b.test"),
    }
}

fn compose(subject: &str) -> Compose {
    Compose {
        to: vec!["Ann <ann@a.test>".into()],
        bcc: vec!["hidden@h.test".into()],
        subject: subject.into(),
        text: "Grüße, with a line.\n.and a dot".into(),
        ..Compose::default()
    }
}

/// S3.07: search, read, draft, answer in the thread.
#[tokio::test]
async fn mail_is_searched_read_and_answered_in_its_thread() {
    let Some(dovecot) = dovecot("read") else { return };
    let mailbox = Mailbox::open(account("bo", dovecot.port, 1)).await.unwrap();
    let first = mailbox.draft(&compose("Quarterly report"), "one").await.unwrap();
    assert_eq!(first.id, "<one.perihelion@b.test>");
    mailbox.draft(&compose("Something else"), "two").await.unwrap();
    mailbox.draft(&compose("Quarterly report"), "one").await.unwrap();
    assert_eq!(
        mailbox.search("", "drafts", 10).await.unwrap().len(),
        2,
        "a repeated call keeps no second draft"
    );
    let found = mailbox.search("subject:\"quarterly report\" grüße", "Drafts", 10).await.unwrap();
    assert_eq!((found.len(), found[0].id.as_str()), (1, first.id.as_str()));
    let answer = mailbox.reply(&first.id, "Thanks.", "three").await.unwrap();
    assert_eq!(
        (answer.subject.as_str(), answer.in_reply_to.as_deref()),
        ("Re: Quarterly report", Some(first.id.as_str()))
    );
    let thread = mailbox.thread(&answer.id).await.unwrap();
    let mut ids: Vec<&str> = thread.iter().map(|message| message.id.as_str()).collect();
    ids.sort_unstable();
    assert_eq!(ids, [first.id.as_str(), "<three.perihelion@b.test>"]);
    assert!(matches!(mailbox.thread("<nobody@b.test>").await, Err(Error::NoMessage(_))));
    assert!(matches!(mailbox.search("x", "Nowhere", 9).await, Err(Error::NoFolder { .. })));
    let wrong = Account { password: "wrong".to_owned().into(), ..account("bo", dovecot.port, 1) };
    assert!(matches!(Mailbox::open(wrong).await, Err(Error::Login)));
}

/// S3.07: a draft is sent once, to the hidden recipients too, whose names stay hidden.
#[tokio::test]
async fn a_draft_is_sent_once_and_lies_in_sent() {
    let Some(dovecot) = dovecot("send") else { return };
    let outgoing = outgoing();
    let mailbox = Mailbox::open(account("bo", dovecot.port, outgoing.port)).await.unwrap();
    let draft = mailbox.draft(&compose("Once"), "once").await.unwrap();
    let sent = mailbox.send(&draft.id, false).await.unwrap();
    assert_eq!((sent.state, sent.recipients.len()), (SentState::Sent, 2));
    assert_eq!(mailbox.send(&draft.id, false).await.unwrap().state, SentState::AlreadySent);
    let taken = outgoing.taken.lock().unwrap().clone();
    assert_eq!(taken.len(), 1);
    assert_eq!(taken[0].0, ["<ann@a.test>", "<hidden@h.test>"]);
    assert!(
        taken[0].1.contains("<once.perihelion@b.test>") && !taken[0].1.contains("hidden@h.test"),
        "{}",
        taken[0].1
    );
    assert_eq!(mailbox.search("", "drafts", 9).await.unwrap(), []);
    assert_eq!(mailbox.search("", "sent", 9).await.unwrap()[0].id, draft.id);
    assert!(matches!(mailbox.send("<never@b.test>", false).await, Err(Error::NoDraft(_))));
}

/// S3.07: what was refused can be sent later; what nobody knows is a person's to decide.
#[tokio::test]
async fn a_refused_draft_stays_and_an_unknown_outcome_waits_for_a_person() {
    let Some(dovecot) = dovecot("unknown") else { return };
    let outgoing = outgoing();
    let mailbox = Mailbox::open(account("bo", dovecot.port, outgoing.port)).await.unwrap();
    let draft = mailbox.draft(&compose("Perhaps"), "perhaps").await.unwrap();
    *outgoing.mood.lock().unwrap() = Mood::Refuses;
    assert!(matches!(mailbox.send(&draft.id, false).await, Err(Error::Refused(_))));
    *outgoing.mood.lock().unwrap() = Mood::FallsSilent;
    assert!(matches!(mailbox.send(&draft.id, false).await, Err(Error::Unreachable { .. })));
    *outgoing.mood.lock().unwrap() = Mood::Takes;
    assert!(matches!(mailbox.send(&draft.id, false).await, Err(Error::OutcomeUnknown(_))));
    assert_eq!(outgoing.taken.lock().unwrap().len(), 1);
    assert_eq!(mailbox.send(&draft.id, true).await.unwrap().state, SentState::Sent);
    assert_eq!(outgoing.taken.lock().unwrap().len(), 2);
}
