//! What is asked of an IMAP server, and what follows from its answers, with a server that is played.

use super::folders::Folders;
use super::mailbox::{ImapMailbox, locate};
use super::session::{Imap, Stream};
use crate::account::Servers;
use crate::sent::SentState;
use crate::{Account, Endpoint, Error, Security};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// Plays a server that expects each line and answers with a text, however it is cut into pieces.
pub(super) async fn serve(stream: tokio::io::DuplexStream, piece: usize, talk: &[(&str, &str)]) {
    let mut stream = tokio::io::BufStream::new(stream);
    for (expected, answer) in talk {
        let mut line = vec![0; expected.len()];
        stream.read_exact(&mut line).await.unwrap();
        assert_eq!(String::from_utf8_lossy(&line), **expected);
        for piece in answer.as_bytes().chunks(piece) {
            stream.write_all(piece).await.unwrap();
            stream.flush().await.unwrap();
        }
    }
}

/// Starts a server that gives each answer to the next bytes, beginning at once, and then stays silent.
pub(super) async fn server(answers: &'static [&'static str]) -> Endpoint {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        for answer in answers {
            stream.write_all(answer.as_bytes()).await.unwrap();
            stream.read_buf(&mut Vec::<u8>::with_capacity(4_096)).await.unwrap();
        }
        std::future::pending::<()>().await;
    });
    Endpoint { host: "127.0.0.1".into(), port, security: Security::Plain }
}

const DRAFT: &str =
    "Message-ID: <a@b.test>\r\nFrom: bo@b.test\r\nTo: ann@a.test\r\nSubject: s\r\n\r\nt\r\n";

/// Answers of an outgoing server that takes a message, and of one that falls silent before.
const TAKES: &[&str] =
    &["220 test\r\n", "250 test\r\n", "250 from\r\n", "250 to\r\n", "354 go\r\n", "250 taken\r\n"];
const FALLS_SILENT: &[&str] = &["220 test\r\n", "250 test\r\n", "250 from\r\n", "250 to\r\n"];

/// S3.07: what left is reported as sent, and what may have left as unknown: neither may be written again.
#[tokio::test]
async fn a_failure_after_a_draft_may_have_left_is_no_failure_of_the_sending() {
    let fetched = format!(
        "* 1 FETCH (UID 7 FLAGS (\\Draft) BODY[] {{{}}}\r\n{DRAFT})\r\nP8 OK done\r\n",
        DRAFT.len()
    );
    let append = format!("P11 APPEND \"Sent\" (\\Seen) {{{}}}\r\n", DRAFT.len());
    let talk = [
        ("", "* OK hello\r\n"),
        (
            "P1 LIST \"\" \"*\"\r\n",
            "* LIST (\\Drafts) \"/\" \"Drafts\"\r\n* LIST (\\Sent) \"/\" \"Sent\"\r\nP1 OK done\r\n",
        ),
        ("P2 EXAMINE \"Drafts\"\r\n", "P2 OK done\r\n"),
        ("P3 UID SEARCH HEADER MESSAGE-ID \"<a@b.test>\"\r\n", "* SEARCH 7\r\nP3 OK done\r\n"),
        ("P4 EXAMINE \"Sent\"\r\n", "P4 OK done\r\n"),
        ("P5 UID SEARCH HEADER MESSAGE-ID \"<a@b.test>\"\r\n", "* SEARCH\r\nP5 OK done\r\n"),
        ("P6 SELECT \"Drafts\"\r\n", "P6 OK done\r\n"),
        ("P7 CAPABILITY\r\n", "* CAPABILITY IMAP4rev1\r\nP7 OK done\r\n"),
        ("P8 UID FETCH 7 (UID FLAGS BODY.PEEK[])\r\n", fetched.as_str()),
        ("P9 UID SEARCH UID 7 KEYWORD $perihelionsending\r\n", "* SEARCH\r\nP9 OK done\r\n"),
        ("P10 UID STORE 7 +FLAGS ($perihelionsending)\r\n", "P10 OK done\r\n"),
        (append.as_str(), "P11 NO [OVERQUOTA] the folder is full\r\n"),
    ];
    for (answers, asked) in [(TAKES, &talk[..]), (FALLS_SILENT, &talk[..11])] {
        let smtp = server(answers).await;
        let mailbox = ImapMailbox {
            account: Account {
                username: "bo".into(),
                password: "p".to_owned().into(),
                from: "bo@b.test".into(),
            },
            servers: Servers { imap: smtp.clone(), smtp },
        };
        let (ours, theirs) = tokio::io::duplex(10_000);
        let sending = async {
            let mut imap = Imap::begin(Box::new(ours) as Box<dyn Stream>).await.unwrap();
            mailbox.send_once(&mut imap, "<a@b.test>", None, false).await
        };
        let (sent, ()) = tokio::join!(sending, serve(theirs, 1_000, asked));
        if asked.len() == talk.len() {
            let sent = sent.unwrap();
            assert_eq!((sent.state, sent.recipients.len()), (SentState::Sent, 1));
            assert!(sent.not_filed.unwrap().contains("OVERQUOTA"));
        } else {
            assert!(matches!(sent, Err(Error::OutcomeUnknown { reason: Some(_), .. })), "{sent:?}");
        }
    }
}

#[tokio::test]
async fn a_folder_that_cannot_be_opened_does_not_hide_the_messages_of_others() {
    let talk = [
        ("", "* OK hello\r\n"),
        (
            "P1 LIST \"\" \"*\"\r\n",
            "* LIST () \"/\" \"shared\"\r\n* LIST () \"/\" \"R&-D\"\r\n* LIST () \"/\" \"A&B\"\r\nP1 OK done\r\n",
        ),
        ("P2 EXAMINE \"shared\"\r\n", "P2 NO [NOPERM] not yours\r\n"),
        ("P3 EXAMINE \"R&-D\"\r\n", "P3 OK done\r\n"),
        ("P4 UID SEARCH HEADER MESSAGE-ID \"<a@b.test>\"\r\n", "* SEARCH\r\nP4 OK done\r\n"),
        // A server that does not encode names knows this one as it wrote it.
        ("P5 EXAMINE \"A&B\"\r\n", "P5 OK done\r\n"),
        ("P6 UID SEARCH HEADER MESSAGE-ID \"<a@b.test>\"\r\n", "* SEARCH 5\r\nP6 OK done\r\n"),
    ];
    let (ours, theirs) = tokio::io::duplex(1_000);
    let finding = async {
        let mut imap = Imap::begin(Box::new(ours) as Box<dyn Stream>).await.unwrap();
        let folders = Folders::read(&mut imap).await.unwrap();
        locate(&mut imap, &folders, "<a@b.test>").await.unwrap()
    };
    let (found, ()) = tokio::join!(finding, serve(theirs, 1_000, &talk));
    assert_eq!((found.folder.as_str(), found.uid), ("A&B", 5));
}
