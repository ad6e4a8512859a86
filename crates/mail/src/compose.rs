//! Writes messages, with a Message-ID from the beginning and the headers that keep a thread together.

use lettre::Address;
use mail_builder::MessageBuilder;
use mail_builder::headers::address::Address as HeaderAddress;
use mail_builder::headers::message_id::MessageId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::message::{Message, check_length};
use crate::{Account, Error, Result};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compose {
    pub to: Vec<String>,
    pub cc: Vec<String>,
    pub bcc: Vec<String>,
    pub subject: String,
    pub text: String,
    pub attachments: Vec<Attachment>,
    /// The attachments of a forwarded message, unchanged.
    pub forwarded: Vec<Part>,
    /// The Message-ID of the message that it answers.
    pub in_reply_to: Option<String>,
    /// The thread up to the message that it answers or forwards.
    pub references: Vec<String>,
}

/// The attachments of a message, unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    pub name: String,
    pub content_type: String,
    pub bytes: Vec<u8>,
}

/// A file to be attached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Attachment {
    /// Name of the file.
    pub name: String,
    /// Its text.
    pub text: String,
}

pub struct Written {
    pub id: String,
    pub bytes: Vec<u8>,
}

pub fn write(account: &Account, compose: &Compose, id: String) -> Result<Written> {
    let from = header(&account.from)?;
    let read =
        |list: &[String]| list.iter().map(|text| header(text)).collect::<Result<Vec<_>, _>>();
    let to = read(&compose.to)?;
    let cc = read(&compose.cc)?;
    let bcc = read(&compose.bcc)?;
    if to.is_empty() && cc.is_empty() && bcc.is_empty() {
        return Err(Error::NoRecipient);
    }
    if compose.subject.chars().any(char::is_control) {
        return Err(Error::Control { what: "the subject" });
    }
    check_length(&compose.text)?;
    let mut builder = MessageBuilder::new()
        .message_id(plain(&id).to_owned())
        .from(from)
        .subject(compose.subject.clone())
        .text_body(compose.text.clone());
    if !to.is_empty() {
        builder = builder.to(to);
    }
    if !cc.is_empty() {
        builder = builder.cc(cc);
    }
    if !bcc.is_empty() {
        builder = builder.bcc(bcc);
    }
    if let Some(id) = &compose.in_reply_to {
        builder = builder.in_reply_to(id.clone());
    }
    if !compose.references.is_empty() {
        builder = builder.references(MessageId::from(compose.references.clone()));
    }
    for attachment in &compose.attachments {
        if attachment.name.chars().any(char::is_control) {
            return Err(Error::Control { what: "the name of an attachment" });
        }
        builder = builder.attachment(
            "text/plain",
            attachment.name.clone(),
            attachment.text.as_bytes().to_vec(),
        );
    }
    for part in &compose.forwarded {
        let name = part.name.replace(char::is_control, " ");
        builder = builder.attachment(part.content_type.clone(), name, part.bytes.clone());
    }
    Ok(Written { id, bytes: builder.write_to_vec()? })
}

/// Makes a Message-ID of the account's own domain.
pub fn own_id(account: &Account, unique: &str) -> Result<String> {
    let address = plain_address(&account.from)?;
    // Servers cannot search for other IDs.
    let domain = address.rsplit('@').next().filter(|domain| domain.is_ascii());
    let domain = domain.unwrap_or("localhost");
    let plain: String =
        unique.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').take(80).collect();
    if plain.is_empty() {
        return Err(Error::BadId(unique.to_owned()));
    }
    Ok(format!("<{plain}.perihelion@{domain}>"))
}

pub fn recipients(draft: &Message) -> Vec<String> {
    draft.to.iter().chain(&draft.cc).chain(&draft.bcc).cloned().collect()
}

/// Returns the thread up to a message, it included.
fn references(message: &Message) -> Vec<String> {
    let mut references: Vec<String> =
        message.references.iter().map(|id| plain(id).to_owned()).collect();
    if references.is_empty() {
        references.extend(message.in_reply_to.as_deref().map(|id| plain(id).to_owned()));
    }
    references.extend(message.has_id().then(|| plain(&message.id).to_owned()));
    references
}

/// Most characters of another message's text in a message; of a forwarded one, a longer text is attached.
const QUOTED: usize = 20_000;

pub fn forward(message: &Message, mut forwarded: Vec<Part>, to: &[String], text: &str) -> Compose {
    let subject = message.subject.trim();
    let is_forward = ["fwd:", "fw:"].iter().any(|start| {
        subject.get(..start.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(start))
    });
    let subject = if is_forward { subject.to_owned() } else { format!("Fwd: {subject}") };
    let date = message.date.as_deref().unwrap_or("?");
    let mut quoted = message.text.as_str();
    if quoted.chars().nth(QUOTED).is_some() {
        let name = "message.txt".to_owned();
        let content_type = "text/plain; charset=utf-8".to_owned();
        let bytes = quoted.as_bytes().to_vec();
        forwarded.insert(0, Part { name, content_type, bytes });
        quoted = "(The text is attached as message.txt.)";
    }
    let text = format!(
        "{}\n\n---------- Forwarded message ----------\nFrom: {}\nDate: {date}\nSubject: {}\nTo: {}\n\n{}",
        text.trim_end(),
        message.from,
        message.subject,
        message.to.join(", "),
        quoted
    );
    Compose {
        to: to.to_vec(),
        subject: subject.replace(char::is_control, " "),
        text,
        forwarded,
        references: references(message),
        ..Compose::default()
    }
}

pub fn answer(account: &Account, answered: &Message, text: &str) -> Result<Compose> {
    let own = plain_address(&account.from)?;
    let is_own = plain_address(&answered.from).is_ok_and(|from| from.eq_ignore_ascii_case(&own));
    // An answer to one's own message goes where that went.
    let to = if is_own {
        answered.to.clone()
    } else if answered.reply_to.is_empty() {
        vec![answered.from.clone()]
    } else {
        answered.reply_to.clone()
    };
    let subject = answered.subject.trim();
    let is_answer = subject.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("re:"));
    let subject = if is_answer { subject.to_owned() } else { format!("Re: {subject}") };
    let quoted: String = answered.text.chars().take(QUOTED).collect();
    let quoted: String = quoted.lines().take(200).map(|line| format!("> {line}\n")).collect();
    let when = answered.date.as_deref().map(|date| format!("On {date}, ")).unwrap_or_default();
    let text = format!("{}\n\n{when}{} wrote:\n{quoted}", text.trim_end(), answered.from);
    Ok(Compose {
        to,
        subject: subject.replace(char::is_control, " "),
        text,
        in_reply_to: answered.has_id().then(|| plain(&answered.id).to_owned()),
        references: references(answered),
        ..Compose::default()
    })
}

pub fn plain_address(text: &str) -> Result<String> {
    Ok(address(text)?.to_string())
}

pub fn address(text: &str) -> Result<Address> {
    Ok(named(text)?.1)
}

/// Reads an address with the name before it, quoted or not.
fn named(text: &str) -> Result<(Option<String>, Address)> {
    if text.chars().any(char::is_control) {
        return Err(Error::Control { what: "an address" });
    }
    let bad = || Error::BadAddress(text.to_owned());
    if let Ok(email) = text.trim().parse() {
        return Ok((None, email));
    }
    let (name, rest) = text.rsplit_once('<').ok_or_else(bad)?;
    let email = rest.trim().trim_end_matches('>').parse().map_err(|_| bad())?;
    let name = name.trim().trim_matches('"').replace("\\\"", "\"").replace("\\\\", "\\");
    Ok(((!name.is_empty()).then_some(name), email))
}

fn header(text: &str) -> Result<HeaderAddress<'static>> {
    let (name, email) = named(text)?;
    Ok(HeaderAddress::new_address(name, email.to_string()))
}

fn plain(id: &str) -> &str {
    id.trim().trim_matches(['<', '>'])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message;

    fn account() -> Account {
        Account {
            username: "u".into(),
            password: "p".to_owned().into(),
            from: "Bo <bo@b.test>".into(),
        }
    }

    const ASKED: &str = "Message-ID: <two@a.test>\r\nReferences: <zero@a.test>\r\n <one@a.test>\r\nIn-Reply-To: <one@a.test>\r\n\
        From: \"Ann, A.\" <ann@a.test>\r\nTo: bo@b.test\r\nSubject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\nDate: Mon, 6 May 2024 10:00:00 +0200\r\n\r\nHow are you?\r\n";

    #[test]
    fn addresses_are_read_with_and_without_names() {
        for (text, name, email) in [
            ("a@a.test", None, "a@a.test"),
            (" <a@a.test> ", None, "a@a.test"),
            ("Ann <a@a.test>", Some("Ann"), "a@a.test"),
            ("Ann, A. <a@a.test>", Some("Ann, A."), "a@a.test"),
            ("\"Ann, \\\"A\\\" \\\\\" <a@a.test>", Some("Ann, \"A\" \\"), "a@a.test"),
            ("Änn <ä@ä.test>", Some("Änn"), "ä@ä.test"),
        ] {
            let (read, address) = named(text).unwrap();
            assert_eq!((read.as_deref(), address.to_string().as_str()), (name, email), "{text}");
        }
        for text in [
            "",
            "Ann",
            "Ann <>",
            "a@a.test, b@b.test",
            "Ann <a@a.test> b",
            "a@a.test\nBcc: b@b.test",
        ] {
            assert!(named(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_reply_stays_in_the_thread_with_brackets_and_whole_references() {
        let asked = message::read(ASKED.as_bytes(), "INBOX", 7);
        assert_eq!((asked.id.as_str(), asked.subject.as_str()), ("<two@a.test>", "Grüße"));
        let compose = answer(&account(), &asked, "Well.").unwrap();
        assert_eq!(
            (compose.to[0].as_str(), compose.subject.as_str()),
            ("Ann, A. <ann@a.test>", "Re: Grüße")
        );
        let written = write(&account(), &compose, "<three@b.test>".into()).unwrap();
        let read = message::read(&written.bytes, "Drafts", 1);
        assert_eq!(read.id, "<three@b.test>");
        assert_eq!(read.in_reply_to.as_deref(), Some("<two@a.test>"));
        assert_eq!(read.references, ["<zero@a.test>", "<one@a.test>", "<two@a.test>"]);
        assert!(
            read.text.starts_with(
                "Well.\n\nOn 2024-05-06T10:00:00+02:00, Ann, A. <ann@a.test> wrote:\n> How are you?"
            ),
            "{}",
            read.text
        );
        let raw = String::from_utf8(written.bytes).unwrap();
        assert!(raw.contains("In-Reply-To: <two@a.test>"), "{raw}");
    }

    #[test]
    fn a_reply_goes_to_the_sender_unless_that_is_the_owner_of_the_account() {
        for (from, to) in [
            ("jobo@b.test", "jobo@b.test"),
            ("\"bo@b.test\" <x@evil.test>", "bo@b.test <x@evil.test>"),
            ("BO@B.test", "cy@c.test"),
        ] {
            let text = format!("Message-ID: <1@b.test>\r\nFrom: {from}\r\nTo: cy@c.test\r\n\r\nt");
            let asked = message::read(text.as_bytes(), "INBOX", 1);
            assert_eq!(answer(&account(), &asked, "Well.").unwrap().to, [to], "{from}");
        }
    }

    #[test]
    fn a_reply_to_a_message_without_an_id_names_none() {
        let asked = message::read(b"From: a@a.test\r\n\r\nt", "INBOX", 5);
        assert_eq!(asked.id, "uid:5:INBOX");
        let compose = answer(&account(), &asked, "Well.").unwrap();
        let written = write(&account(), &compose, "<n@b.test>".into()).unwrap();
        let raw = String::from_utf8(written.bytes).unwrap();
        assert!(!raw.contains("In-Reply-To") && !raw.contains("References"), "{raw}");
    }

    #[test]
    fn a_forwarded_message_keeps_its_attachments_and_thread_but_is_no_reply() {
        let asked = message::read(ASKED.as_bytes(), "INBOX", 7);
        let part = Part {
            name: "plan.pdf".into(),
            content_type: "application/pdf".into(),
            bytes: vec![0, 159, 146, 150],
        };
        let compose = forward(&asked, vec![part.clone()], &["cy@c.test".into()], "Look.");
        assert_eq!(compose.subject, "Fwd: Grüße");
        let written = write(&account(), &compose, "<f@b.test>".into()).unwrap();
        let read = message::read(&written.bytes, "Drafts", 1);
        assert_eq!(read.in_reply_to, None);
        assert_eq!(read.references.last().unwrap(), "<two@a.test>");
        assert!(read.text.starts_with("Look.\n\n---") && read.text.contains("How are you?"));
        assert_eq!(message::parts(&written.bytes), [part]);
    }

    /// S3.07: what is sent is shown whole before, and what is forwarded arrives whole.
    #[test]
    fn a_text_that_cannot_be_shown_whole_is_attached_or_not_kept() {
        let mut asked = message::read(ASKED.as_bytes(), "INBOX", 7);
        asked.text = format!("{}Größe", "a long line of the message\n".repeat(2_000));
        let compose = forward(&asked, Vec::new(), &["cy@c.test".into()], "Look.");
        let written = write(&account(), &compose, "<f@b.test>".into()).unwrap();
        let read = message::read(&written.bytes, "Drafts", 1);
        assert!(read.text.contains("attached as message.txt"), "{}", read.text);
        let attached = message::parts(&written.bytes);
        assert_eq!(String::from_utf8(attached[0].bytes.clone()).unwrap(), asked.text);
        assert!(answer(&account(), &asked, "Well.").unwrap().text.len() < 30_000);
        let to = vec!["a@a.test".into()];
        let long = Compose { to, text: asked.text.clone(), ..Compose::default() };
        let refused = write(&account(), &long, "<l@b.test>".into());
        assert!(matches!(refused, Err(Error::TooLong { characters: 54_005, most: 40_000 })));

        // A draft of another program is read whole, and shown in a thread as far as a message is.
        let draft =
            message::read(format!("Subject: s\r\n\r\n{}", asked.text).as_bytes(), "Drafts", 1);
        assert_eq!(draft.text.trim_end(), asked.text);
        let shown = message::Shown { text: draft.text.clone(), ..message::Shown::default() };
        assert!(matches!(shown.check(&draft), Err(Error::TooLong { .. })));
        let mut clipped = draft;
        clipped.clip();
        assert_eq!(clipped.text.chars().count(), 40_001);
    }

    #[test]
    fn headers_cannot_be_smuggled_in() {
        let write = |compose: Compose| {
            super::write(&account(), &compose, "<x@b.test>".into()).map(|written| written.id)
        };
        let plain =
            Compose { to: vec!["a@a.test".into()], subject: "s".into(), ..Compose::default() };
        assert!(write(plain.clone()).is_ok());
        assert!(
            write(Compose { subject: "s\r\nBcc: evil@e.test".into(), ..plain.clone() }).is_err()
        );
        assert!(
            write(Compose { to: vec!["a@a.test\r\nBcc: e@e.test".into()], ..plain.clone() })
                .is_err()
        );
        assert!(write(Compose { to: vec!["nobody".into()], ..plain.clone() }).is_err());
        assert!(matches!(write(Compose { to: Vec::new(), ..plain }), Err(Error::NoRecipient)));
    }
}
