//! Mails: which of their texts is read, and the lines of invitations.
#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use perihelion_parse::{Limits, parse};

fn read(mail: &str) -> String {
    parse(mail.as_bytes(), "a.eml", &Limits::default()).unwrap().text
}

/// The texts of a mail with a plain text and HTML for the same: as a document, and as the mail server's tool has it.
fn of_alternatives(plain: &str, html: &str) -> [String; 2] {
    let part = |kind: &str, text: &str| {
        format!("--b\r\nContent-Type: text/{kind}; charset=utf-8\r\n\r\n{text}\r\n")
    };
    let mail = format!(
        "From: shop@x.test\r\nSubject: Order\r\nMIME-Version: 1.0\r\nContent-Type: multipart/alternative; boundary=b\r\n\r\n{}{}--b--\r\n",
        part("plain", plain),
        part("html", &format!("<html><body>{html}</body></html>"))
    );
    let message = mail_parser::MessageParser::default().parse(mail.as_bytes()).unwrap();
    [read(&mail), perihelion_mime::readable_text(&message)]
}

#[test]
fn html_is_read_where_the_plain_text_is_missing_or_a_mere_hint() {
    let order = "Order 4711: one pump, 950 euros, delivery on 5 January.";
    let long = format!("<p>{order}</p><p>{}</p>", "Our terms of sale apply to it. ".repeat(20));
    let html = format!("<p>{order}</p>");
    for (plain, html, is_html) in [
        ("This message needs an HTML mail reader.", &html, true),
        ("View this order in your browser", &long, true),
        ("", &html, true),
        (" \r\n. . .\r\n", &html, true),
        ("PLAIN: Order 4711: one pump, 950 euros, delivery on 5 January.", &html, false),
        (
            "PLAIN: Order 4711: one pump,\r\n950 euros, delivery on 5 January.\r\nhttps://x.test/4711",
            &html,
            false,
        ),
    ] {
        for text in of_alternatives(plain, html) {
            assert!(text.contains("950 euros"), "{plain}: {text}");
            assert_eq!(text.contains("PLAIN"), !is_html, "{plain}: {text}");
            assert!(!text.contains("mail reader") && !text.contains("browser"), "{text}");
        }
    }
    let story = format!("PLAIN: {}", "A long text of its own. ".repeat(30));
    for text in of_alternatives(&story, &long.repeat(9)) {
        assert!(text.contains("PLAIN"), "a long plain text is no hint: {text}");
    }
    // Every text is compared in time that grows with its length.
    let words: String = (0..100_000).map(|word| format!("w{word} .\r\n")).collect();
    for (plain, part) in [(&words, "w99999"), (&". .\r\n".repeat(100_000), "950 euros")] {
        for text in of_alternatives(plain, &long.repeat(100)) {
            assert!(text.contains(part), "{part}");
        }
    }
}

#[test]
fn an_invitation_names_its_time_zone_and_who_comes() {
    let text = read(
        "From: a@x.test\r\nSubject: Meeting\r\nMIME-Version: 1.0\r\nContent-Type: text/calendar; method=REQUEST\r\n\r\n\
         BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nSUMMARY:Budget\r\nDTSTART;TZID=America/New_York:20240105T090000\r\n\
         ATTENDEE;CN=\"Bea Brook\";RSVP=TRUE;PARTSTAT=DECLINED:mailto:bea@x.test\r\n\
         ATTENDEE;cn=\"Brook; Cy\";RSVP=TRUE:mailto:cy@x.test\r\n\
         DTSTART;TZID=\"(UTC+01:00) Amsterdam, Berlin\":20240105T150000\r\nDTEND:20240105T100000Z\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n",
    );
    for line in [
        "SUMMARY: Budget\n",
        "DTSTART: 20240105T090000 (America/New_York)\n",
        "ATTENDEE: mailto:bea@x.test (Bea Brook, DECLINED)\n",
        "ATTENDEE: mailto:cy@x.test (Brook; Cy)\n",
        "DTSTART: 20240105T150000 ((UTC+01:00) Amsterdam, Berlin)\n",
        "DTEND: 20240105T100000Z\n",
    ] {
        assert!(text.contains(line), "{text}");
    }
}
