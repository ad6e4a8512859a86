//! Against Debian's Cyrus with OpenSMTPD, started here on ports of their own, by IMAP with SMTP and by JMAP; `make test-mail`.
//!
//! Without these servers, or without the right to start them, nothing is tested and the tests say so.

use perihelion_mail::{
    Account, Attachment, Compose, Error, JmapServer, Mailbox, Security, SentState, Shown,
};

use crate::servers;
use crate::support::cyrus::{Cyrus, cyrus};

fn account(user: &str) -> Account {
    Account {
        username: user.into(),
        password: "secret-pass".to_owned().into(),
        from: format!("{user}@{}.test", user.get(..1).unwrap()),
    }
}

async fn by_imap(cyrus: &Cyrus, user: &str) -> Mailbox {
    Mailbox::open(account(user), servers(cyrus.imap, cyrus.smtp)).await.unwrap()
}

async fn by_jmap(cyrus: &Cyrus, user: &str) -> Mailbox {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let host = format!("127.0.0.1:{}", cyrus.http);
    let server = JmapServer::read(&host, Security::Plain, false).unwrap();
    Mailbox::open_jmap(account(user), &server).await.unwrap()
}

fn compose(to: &str, subject: &str) -> Compose {
    Compose {
        to: vec![to.into()],
        bcc: vec!["hidden@h.test".into()],
        subject: subject.into(),
        text: "Grüße, with a line.\n.and a dot".into(),
        attachments: vec![Attachment { name: "plan.csv".into(), text: "day,what\n1,tea\n".into() }],
        ..Compose::default()
    }
}

/// A correspondence of two people, each by their own way.
async fn correspond(cyrus: &Cyrus, bo: &Mailbox, ann: &Mailbox, subject: &str) {
    let unique = subject.to_lowercase();
    let draft = bo.draft(&compose("Ann <ann@a.test>", subject), &unique).await.unwrap();
    assert_eq!(draft.id, format!("<{unique}.perihelion@b.test>"));
    let again = bo.draft(&compose("Ann <ann@a.test>", subject), &unique).await.unwrap();
    assert_eq!((again.id.as_str(), again.folder), (draft.id.as_str(), draft.folder));
    let kept = bo.search("", "drafts", 10).await.unwrap();
    let kept = kept.messages;
    assert_eq!((kept.len(), kept[0].unread), (1, false), "a repeated call keeps no second draft");
    let shown = Shown { subject: "Another".into(), ..Shown::default() };
    let changed = bo.send(&draft.id, Some(&shown), false).await;
    assert!(matches!(changed, Err(Error::Changed { .. })), "{changed:?}");

    let sent = bo.send(&draft.id, None, false).await.unwrap();
    assert_eq!((sent.state, sent.recipients.len()), (SentState::Sent, 2));
    assert_eq!(bo.send(&draft.id, None, false).await.unwrap().state, SentState::AlreadySent);
    assert_eq!(bo.search("", "drafts", 10).await.unwrap().messages, []);
    assert_eq!(cyrus.arrived("ann", subject), 1);
    cyrus.index("ann");

    let found = ann.search(&format!("subject:{subject} from:bo unread"), "inbox", 9).await.unwrap();
    let found = found.messages;
    assert_eq!((found.len(), found[0].id.as_str(), found[0].unread), (1, draft.id.as_str(), true));
    let received = ann.thread(&draft.id).await.unwrap().messages;
    assert_eq!(received[0].text.trim_end(), "Grüße, with a line.\n.and a dot");
    assert_eq!((received[0].bcc.len(), received[0].attachments.len()), (0, 1), "{received:?}");

    let answer = ann.reply(&draft.id, "Gladly.", &format!("{unique}-answer")).await.unwrap();
    assert_eq!(answer.in_reply_to.as_deref(), Some(draft.id.as_str()));
    ann.send(&answer.id, None, false).await.unwrap();
    cyrus.deliver();
    let thread = bo.thread(&answer.id).await.unwrap();
    let ids: Vec<&str> = thread.messages.iter().map(|message| message.id.as_str()).collect();
    assert_eq!(ids.len(), 2, "{ids:?}");
    assert!(ids.contains(&draft.id.as_str()) && ids.contains(&answer.id.as_str()), "{ids:?}");

    let to = ["cy@c.test".to_owned()];
    let handed = ann.forward(&draft.id, &to, "Look.", &format!("{unique}-on")).await.unwrap();
    assert_eq!((handed.in_reply_to, handed.attachments.len()), (None, 1));
    ann.send(&handed.id, None, false).await.unwrap();
    let sent = ann.search("", "sent", 9).await.unwrap();
    assert!(sent.messages.iter().any(|found| found.id == handed.id), "{sent:?}");
    assert!(matches!(bo.thread("<nobody@b.test>").await, Err(Error::NoMessage(_))));
    assert!(matches!(bo.search("x", "Nowhere", 9).await, Err(Error::NoFolder { .. })));
    assert!(matches!(bo.send("<never@b.test>", None, false).await, Err(Error::NoDraft(_))));
}

/// S3.07: search, read, draft, answer, forward and send mean the same by IMAP with SMTP and by JMAP, between the two as well.
#[tokio::test]
#[ignore = "needs Cyrus with OpenSMTPD: make test-mail"]
async fn two_people_write_to_each_other_by_either_protocol() {
    let Some(cyrus) = cyrus("both") else { return };
    let imap = by_imap(&cyrus, "bo").await;
    let jmap = by_jmap(&cyrus, "bo").await;
    let ann_imap = by_imap(&cyrus, "ann").await;
    let ann_jmap = by_jmap(&cyrus, "ann").await;
    correspond(&cyrus, &imap, &ann_imap, "First").await;
    correspond(&cyrus, &jmap, &ann_jmap, "Second").await;
    correspond(&cyrus, &imap, &ann_jmap, "Third").await;
    correspond(&cyrus, &jmap, &ann_imap, "Fourth").await;
    let (sent, drafts) = jmap.special_folders().await.unwrap();
    assert_eq!((sent.as_deref(), drafts.as_deref()), (Some("Sent"), Some("Drafts")));
    jmap.check_outgoing().await.unwrap();
    imap.check_outgoing().await.unwrap();
}

#[tokio::test]
#[ignore = "needs Cyrus with OpenSMTPD: make test-mail"]
async fn of_a_long_thread_the_newest_messages_are_read_by_either_protocol() {
    let Some(cyrus) = cyrus("long") else { return };
    let jmap = by_jmap(&cyrus, "bo").await;
    let first = jmap.draft(&compose("ann@a.test", "Plan"), "m1").await.unwrap();
    for number in 2..=60 {
        jmap.reply(&first.id, "Yes.", &format!("m{number}")).await.unwrap();
    }
    let last = "<m60.perihelion@b.test>";
    for mailbox in [jmap, by_imap(&cyrus, "bo").await] {
        for asked in [first.id.as_str(), last] {
            let thread = mailbox.thread(asked).await.unwrap();
            let ids: Vec<&str> = thread.messages.iter().map(|one| one.id.as_str()).collect();
            assert_eq!((ids.len(), thread.truncated), (50, true));
            assert!(ids.contains(&asked) && ids.contains(&last), "{asked}: {ids:?}");
        }
        let found = mailbox.search("", "drafts", 50).await.unwrap();
        assert_eq!((found.messages.len(), found.truncated), (50, true));
        assert!(!mailbox.search("", "drafts", 60).await.unwrap().truncated);
    }
}

/// S3.07: of many senders of one draft, one sends it, by either protocol.
#[tokio::test]
#[ignore = "needs Cyrus with OpenSMTPD: make test-mail"]
async fn of_many_senders_one_sends() {
    let Some(cyrus) = cyrus("race") else { return };
    for (subject, is_jmap) in [("Race", true), ("Course", false)] {
        let mut senders = Vec::new();
        for _ in 0..4 {
            let sender =
                if is_jmap { by_jmap(&cyrus, "bo").await } else { by_imap(&cyrus, "bo").await };
            senders.push(sender);
        }
        let draft = senders[0].draft(&compose("ann@a.test", subject), subject).await.unwrap();
        let sendings = senders.iter().map(|mailbox| mailbox.send(&draft.id, None, false));
        let ended: Vec<_> = futures::future::join_all(sendings).await;
        let sent = |ended: &&Result<perihelion_mail::Sent, Error>| matches!(ended, Ok(sent) if sent.state == SentState::Sent);
        assert_eq!(ended.iter().filter(sent).count(), 1, "{ended:?}");
        let others = ended.iter().filter(|ended| !sent(ended)).all(|ended| {
            matches!(ended, Ok(_) | Err(Error::OutcomeUnknown { .. } | Error::NoDraft(_)))
        });
        assert!(others, "{ended:?}");
        assert_eq!(cyrus.arrived("ann", subject), 1);
    }
}

/// S3.07: what the outgoing server refuses stays a draft, by either protocol; a login that is wrong is said as such.
#[tokio::test]
#[ignore = "needs Cyrus with OpenSMTPD: make test-mail"]
async fn a_refused_message_stays_a_draft_and_a_wrong_login_is_refused() {
    let Some(cyrus) = cyrus("refused") else { return };
    for (number, mailbox) in
        [by_imap(&cyrus, "bo").await, by_jmap(&cyrus, "bo").await].iter().enumerate()
    {
        let unique = format!("refused-{number}");
        let draft = mailbox.draft(&compose("x@unknown.test", &unique), &unique).await.unwrap();
        for _ in 0..2 {
            let refused = mailbox.send(&draft.id, None, false).await;
            assert!(matches!(refused, Err(Error::Refused(_))), "{refused:?}");
        }
        assert_eq!(mailbox.search("", "drafts", 9).await.unwrap().messages.len(), number + 1);
    }
    let wrong = Account { password: "wrong".to_owned().into(), ..account("bo") };
    let host = format!("127.0.0.1:{}", cyrus.http);
    let server = JmapServer::read(&host, Security::Plain, false).unwrap();
    assert!(matches!(Mailbox::open_jmap(wrong, &server).await, Err(Error::Login)));
    let elsewhere = format!("http://127.0.0.1:{}/nothing", cyrus.http);
    let server = JmapServer::read(&elsewhere, Security::Plain, false).unwrap();
    let none = Mailbox::open_jmap(account("bo"), &server).await;
    assert!(matches!(none, Err(Error::NoJmap(_))));
    let far = JmapServer::read("http://mail.example.org/", Security::Plain, false).unwrap();
    let far = Mailbox::open_jmap(account("bo"), &far).await;
    assert!(matches!(far, Err(Error::Unprotected(_))));
}
