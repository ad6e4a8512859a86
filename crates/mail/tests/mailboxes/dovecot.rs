//! Against Debian's Dovecot, started here on a port of its own, and an outgoing server that can fail; `make test-mail`.
//!
//! Without Dovecot, or without the right to start it, nothing is tested and the tests say so.

use perihelion_mail::{Account, Compose, Error, Mailbox, SentState};

use crate::servers;
use crate::support::{Dovecot, Mood, dovecot, outgoing};

fn account(user: &str) -> Account {
    Account {
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
    let mailbox = Mailbox::open(account("bo"), servers(dovecot.port, 1)).await.unwrap();
    let first = mailbox.draft(&compose("Quarterly report"), "one").await.unwrap();
    assert_eq!(first.id, "<one.perihelion@b.test>");
    mailbox.draft(&compose("Something else"), "two").await.unwrap();
    mailbox.draft(&compose("Quarterly report"), "one").await.unwrap();
    assert_eq!(
        mailbox.search("", "drafts", 10).await.unwrap().messages.len(),
        2,
        "a repeated call keeps no second draft"
    );
    let found = mailbox.search("subject:\"quarterly report\" grüße", "Drafts", 10).await.unwrap();
    let found = found.messages;
    assert_eq!((found.len(), found[0].id.as_str()), (1, first.id.as_str()));
    let answer = mailbox.reply(&first.id, "Thanks.", "three").await.unwrap();
    assert_eq!(
        (answer.subject.as_str(), answer.in_reply_to.as_deref()),
        ("Re: Quarterly report", Some(first.id.as_str()))
    );
    let thread = mailbox.thread(&answer.id).await.unwrap();
    let mut ids: Vec<&str> = thread.messages.iter().map(|message| message.id.as_str()).collect();
    ids.sort_unstable();
    assert_eq!(ids, [first.id.as_str(), "<three.perihelion@b.test>"]);
    assert!(matches!(mailbox.thread("<nobody@b.test>").await, Err(Error::NoMessage(_))));
    assert!(matches!(mailbox.search("x", "Nowhere", 9).await, Err(Error::NoFolder { .. })));
    let wrong = Account { password: "wrong".to_owned().into(), ..account("bo") };
    assert!(matches!(Mailbox::open(wrong, servers(dovecot.port, 1)).await, Err(Error::Login)));
}

#[tokio::test]
async fn of_a_long_thread_the_newest_messages_are_read_and_the_rest_is_reported() {
    let Some(dovecot) = dovecot("long") else { return };
    let mailbox = Mailbox::open(account("bo"), servers(dovecot.port, 1)).await.unwrap();
    let first = mailbox.draft(&compose("Plan"), "m1").await.unwrap();
    for number in 2..=60 {
        mailbox.reply(&first.id, "Yes.", &format!("m{number}")).await.unwrap();
    }
    let id = |number: u32| format!("<m{number}.perihelion@b.test>");
    for asked in [1, 5, 60] {
        let thread = mailbox.thread(&id(asked)).await.unwrap();
        let ids: Vec<&str> = thread.messages.iter().map(|message| message.id.as_str()).collect();
        assert_eq!((ids.len(), thread.truncated), (50, true));
        assert!(ids.contains(&&*id(asked)) && ids.contains(&&*id(60)), "{asked}: {ids:?}");
    }
    let found = mailbox.search("plan", "drafts", 50).await.unwrap();
    assert_eq!((found.messages.len(), found.truncated), (50, true));
    assert_eq!(found.messages[0].id, id(60));
    assert!(!mailbox.search("plan", "drafts", 60).await.unwrap().truncated);
}

#[tokio::test]
async fn a_folder_is_named_as_people_write_it() {
    let Some(dovecot) = dovecot("named") else { return };
    let mailbox = Mailbox::open(account("bo"), servers(dovecot.port, 1)).await.unwrap();
    put(&dovecot, "bo", ".Entw&APw-rfe", "Message-ID: <g@b.test>\r\nSubject: Grüße\r\n\r\nt\r\n");
    for name in ["Entwürfe", "ENTWÜRFE", "Entw&APw-rfe"] {
        let found = mailbox.search("subject:grüße", name, 9).await.unwrap().messages;
        assert_eq!((found.len(), found[0].folder.as_str()), (1, "Entwürfe"), "{name}");
    }
    let unknown = mailbox.search("", "Nowhere", 9).await.unwrap_err().to_string();
    assert!(unknown.contains("Entwürfe"), "{unknown}");
    assert_eq!(mailbox.thread("<g@b.test>").await.unwrap().messages[0].folder, "Entwürfe");
}

/// S3.07: a draft is sent once, to the hidden recipients too, whose names stay hidden.
#[tokio::test]
async fn a_draft_is_sent_once_and_stored_in_sent() {
    let Some(dovecot) = dovecot("send") else { return };
    let outgoing = outgoing();
    let mailbox = Mailbox::open(account("bo"), servers(dovecot.port, outgoing.port)).await.unwrap();
    let draft = mailbox.draft(&compose("Once"), "once").await.unwrap();
    let sent = mailbox.send(&draft.id, None, false).await.unwrap();
    assert_eq!((sent.state, sent.recipients.len()), (SentState::Sent, 2));
    assert_eq!(mailbox.send(&draft.id, None, false).await.unwrap().state, SentState::AlreadySent);
    let taken = outgoing.taken.lock().unwrap().clone();
    assert_eq!(taken.len(), 1);
    assert_eq!(taken[0].0, ["<ann@a.test>", "<hidden@h.test>"]);
    assert!(
        taken[0].1.contains("<once.perihelion@b.test>") && !taken[0].1.contains("hidden@h.test"),
        "{}",
        taken[0].1
    );
    assert_eq!(mailbox.search("", "drafts", 9).await.unwrap().messages, []);
    assert_eq!(mailbox.search("", "sent", 9).await.unwrap().messages[0].id, draft.id);
    assert!(matches!(mailbox.send("<never@b.test>", None, false).await, Err(Error::NoDraft(_))));
}

/// S3.07: what was refused can be sent later; what nobody knows is a person's to decide.
#[tokio::test]
async fn a_refused_draft_stays_and_an_unknown_outcome_waits_for_a_person() {
    let Some(dovecot) = dovecot("unknown") else { return };
    let outgoing = outgoing();
    let mailbox = Mailbox::open(account("bo"), servers(dovecot.port, outgoing.port)).await.unwrap();
    let draft = mailbox.draft(&compose("Perhaps"), "perhaps").await.unwrap();
    *outgoing.mood.lock().unwrap() = Mood::Refuses;
    assert!(matches!(mailbox.send(&draft.id, None, false).await, Err(Error::Refused(_))));
    *outgoing.mood.lock().unwrap() = Mood::FallsSilent;
    // The text may have left before the server fell silent.
    let lost = mailbox.send(&draft.id, None, false).await;
    assert!(matches!(lost, Err(Error::OutcomeUnknown { reason: Some(_), .. })), "{lost:?}");
    *outgoing.mood.lock().unwrap() = Mood::Takes;
    assert!(matches!(
        mailbox.send(&draft.id, None, false).await,
        Err(Error::OutcomeUnknown { .. })
    ));
    assert_eq!(outgoing.taken.lock().unwrap().len(), 1);
    assert_eq!(mailbox.send(&draft.id, None, true).await.unwrap().state, SentState::Sent);
    assert_eq!(outgoing.taken.lock().unwrap().len(), 2);
}

/// Puts a message into a folder by the name that it has on the server.
fn put(dovecot: &Dovecot, user: &str, folder: &str, message: &str) {
    let folder = dovecot.home.join("mail").join(user).join(folder);
    for part in ["cur", "new", "tmp"] {
        std::fs::create_dir_all(folder.join(part)).unwrap();
    }
    std::fs::write(folder.join("cur/1.1.test:2,"), message).unwrap();
    let owned = std::process::Command::new("chown").args(["-R", "nobody"]).arg(&folder).status();
    assert!(owned.unwrap().success());
}
