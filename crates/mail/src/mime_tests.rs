//! Messages of mailers that break the rules, as tables.

use encoding_rs::Encoding;

use crate::message;

const TEXT: [(&str, &str); 10] = [
    ("Shift_JIS", "東京の会議は三時からです。資料を添付します。"),
    ("ISO-2022-JP", "お世話になっております。請求書をお送りします。"),
    ("EUC-JP", "カタカナと漢字と、ひらがな。"),
    ("GB2312", "您好，请查收附件中的发票。"),
    ("GBK", "会议改到星期五下午三点，請確認。"),
    ("GB18030", "合同编号一二三，金额九千元。"),
    ("Big5", "您好，請查收附件中的發票。"),
    ("EUC-KR", "안녕하세요, 회의는 세 시에 시작합니다."),
    ("ISO-2022-KR", "안녕하세요, 회의는 3시에 시작합니다."),
    ("HZ-GB-2312", "您好，请查收 March~April 附件中的发票。"),
];

fn encoded(charset: &str, text: &str) -> Vec<u8> {
    let bytes = |label: &str| {
        let (bytes, _, has_errors) = Encoding::for_label(label.as_bytes()).unwrap().encode(text);
        assert!(!has_errors, "{charset}");
        bytes.into_owned()
    };
    // These are written by hand: runs of two-byte letters between shifts.
    let shifted = |label: &str, open: &[u8], close: &[u8]| -> Vec<u8> {
        let bytes = bytes(label);
        let runs = bytes.chunk_by(|a, b| a.is_ascii() == b.is_ascii());
        let run = |run: &[u8]| match run[0] {
            byte if byte.is_ascii() => run.to_vec(),
            _ => [open, &run.iter().map(|byte| byte & 0x7F).collect::<Vec<u8>>(), close].concat(),
        };
        runs.flat_map(run).collect()
    };
    match charset {
        "ISO-2022-KR" => [b"\x1b$)C".to_vec(), shifted("EUC-KR", b"\x0e", b"\x0f")].concat(),
        "HZ-GB-2312" => {
            let text = shifted("GBK", b"~{", b"~}");
            String::from_utf8(text).unwrap().replace("h~A", "h~~A").into_bytes()
        }
        _ => bytes(charset),
    }
}

fn read(bytes: &[u8]) -> message::Message {
    message::read(bytes, "INBOX", 1)
}

fn base64(bytes: &[u8]) -> String {
    use mail_builder::encoders::base64::base64_encode;
    String::from_utf8(base64_encode(bytes).unwrap()).unwrap()
}

fn quoted_printable(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("={byte:02X}")).collect()
}

#[test]
fn a_message_in_any_character_set_and_encoding_is_read() {
    for (charset, text) in TEXT {
        let bytes = encoded(charset, text);
        for label in [charset.to_owned(), charset.to_lowercase(), format!("\"{charset}\"")] {
            let head = format!(
                "From: =?{charset}?B?{b}?= <a@a.test>\r\nSubject: =?{charset}?q?{q}?=\r\nContent-Type: text/plain; charset={label}\r\n",
                b = base64(&bytes),
                q = quoted_printable(&bytes),
            );
            for (encoding, body) in [
                ("base64", base64(&bytes).into_bytes()),
                ("quoted-printable", quoted_printable(&bytes).into_bytes()),
                ("8bit", bytes.clone()),
            ] {
                let head = format!("{head}Content-Transfer-Encoding: {encoding}\r\n\r\n");
                let message = read(&[head.as_bytes(), &body].concat());
                assert_eq!(message.text.trim(), text, "{charset} in {encoding}");
                assert_eq!(message.subject, text, "{charset} in {encoding}");
                assert_eq!(message.from, format!("{text} <a@a.test>"), "{charset}");
            }
        }
    }
}

#[test]
fn a_text_with_a_missing_wrong_or_unknown_character_set_is_read_by_detection() {
    for (charset, text) in TEXT {
        let text = text.repeat(4);
        let bytes = encoded(charset, &text);
        for label in ["", "; charset=us-ascii", "; charset=utf-8", "; charset=x-unknown"] {
            let head = format!("Subject: x\r\nContent-Type: text/plain{label}\r\n\r\n");
            let message = read(&[head.as_bytes(), &bytes].concat());
            assert_eq!(message.text.trim(), text, "{charset} as {label}");
        }
        // In headers, bytes as they are take the body's word for it.
        let head = format!("\r\nContent-Type: text/plain; charset={charset}\r\n\r\n");
        let message = read(&[b"Subject: ", &*bytes, head.as_bytes(), &*bytes].concat());
        assert_eq!(message.subject, text, "{charset}");
    }
    for (label, charset, text) in [
        ("cp932", "shift_jis", "①髙橋"),
        ("cp949", "euc-kr", "똠방각하"),
        ("cp950", "big5", "發票"),
        ("x-gbk", "gbk", "发票"),
        ("utf-7", "", "Hi Mom -☺-!"),
        ("unicode-1-1-utf-7", "", "Hi Mom -☺-!"),
        ("utf-16", "utf-8", "für alle"),
        ("utf-16be", "us-ascii", "for all"),
        ("maccyrillic", "x-mac-cyrillic", "Привет, коллеги"),
        ("iso-8859-1", "windows-1251", "Проверка завершена, результаты приложены."),
        ("latin1", "shift_jis", "これは日本語の文書です。検索できなければなりません。"),
        ("iso-8859-15", "koi8-r", "Проверка завершена, результаты приложены."),
        ("utf-8", "windows-1252", "ï»¿für alle"),
        ("macintosh", "macintosh", "für alle – ••••••••••••••••"),
        ("iso-8859-1", "windows-1252", "ALLE ––––––––––––––– für alle"),
        ("iso-8859-1", "utf-8", "für alle"),
        ("windows-1252", "windows-1252", "für alle – 5 €"),
    ] {
        let bytes = match Encoding::for_label(charset.as_bytes()) {
            Some(encoding) => encoding.encode(text).0.into_owned(),
            None => b"Hi Mom -+Jjo--!".to_vec(),
        };
        let head = format!("Subject: x\r\nContent-Type: text/plain; charset={label}\r\n\r\n");
        let text = text.trim_start_matches("ï»¿");
        assert_eq!(read(&[head.as_bytes(), &bytes].concat()).text.trim(), text, "{label}");
    }
    for (label, wide) in [
        ("utf-16", "für alle".encode_utf16().flat_map(u16::to_be_bytes).collect::<Vec<u8>>()),
        ("utf-16", "für alle".encode_utf16().flat_map(u16::to_le_bytes).collect()),
        ("utf-8", "\u{feff}für alle".encode_utf16().flat_map(u16::to_le_bytes).collect()),
        ("utf-32", "für alle".chars().flat_map(|c| u32::from(c).to_be_bytes()).collect()),
    ] {
        let head = format!(
            "Content-Type: text/plain; charset={label}\r\nContent-Transfer-Encoding: base64\r\n\r\n"
        );
        let mail = format!("Subject: x\r\n{head}{}", base64(&wide));
        assert_eq!(read(mail.as_bytes()).text.trim(), "für alle", "{label}");
    }
    let page = "<?xml version=\"1.0\" encoding=\"utf-16\"?><html><p>for all</p></html>";
    let mail = format!("Subject: x\r\nContent-Type: text/html\r\n\r\n{page}");
    assert_eq!(read(mail.as_bytes()).text.trim(), "for all");
    let page = Encoding::for_label(b"gbk").unwrap();
    let page = page.encode("<html><meta charset=\"gb2312\"><p>您好</p></html>").0;
    let head = b"Subject: x\r\nContent-Type: text/html\r\n\r\n";
    assert_eq!(read(&[head, &*page].concat()).text.trim(), "您好");
    for (charset, text) in TEXT {
        let page = format!("<html><meta charset=\"{charset}\"><p>{text}</p></html>");
        let mail = [&head[..], &encoded(charset, &page)].concat();
        assert_eq!(read(&mail).text.trim(), text, "{charset}");
    }
}

#[test]
fn a_bad_byte_costs_its_character_and_no_other() {
    let text = "Grüße, Öl, Äpfel, Übung";
    let mut bytes = text.as_bytes().to_vec();
    bytes.push(0xFF);
    let head = b"Subject: x\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n";
    assert_eq!(read(&[head, &*bytes].concat()).text, format!("{text}\u{fffd}"));
}

#[test]
fn encoded_words_are_joined_at_any_cut() {
    for (charset, text) in TEXT.into_iter().chain([("UTF-8", "Grüße 您好 🎉 안녕")]) {
        let bytes = encoded(charset, text);
        for cut in 1..bytes.len() {
            let (first, second) = bytes.split_at(cut);
            let b1 = base64(first);
            let b2 = base64(second);
            let q1 = quoted_printable(first);
            let q2 = quoted_printable(second);
            for subject in [
                format!("=?{charset}?B?{b1}?=\r\n =?{charset}?B?{b2}?="),
                format!("=?{charset}?Q?{q1}?= =?{charset}?q?{q2}?="),
                format!("=?{charset}?b?{b1}?=\r\n\t=?{}?Q?{q2}?=", charset.to_lowercase()),
                format!("=?{charset}*en?B?{b1}?==?{charset}?B?{b2}?="),
            ] {
                let mail = format!("Subject: {subject}\r\nTo: {subject} <b@b.test>\r\n\r\nx");
                let message = read(mail.as_bytes());
                assert_eq!(message.subject, text, "{charset} cut at {cut}: {subject}");
                assert_eq!(message.to, [format!("{text} <b@b.test>")], "{charset} cut at {cut}");
            }
            let percent = |bytes: &[u8]| quoted_printable(bytes).replace('=', "%");
            let mail = format!(
                "Subject: x\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: application/pdf\r\n\
                 Content-Disposition: attachment;\r\n filename*0*={charset}''{};\r\n filename*1*={}\r\n\r\nx\r\n--b--\r\n",
                percent(first),
                percent(second)
            );
            let attached = read(mail.as_bytes()).attachments;
            assert!(attached[0].starts_with(&format!("{text} (1 bytes, ")), "{cut}: {attached:?}");
        }
    }
    for (subject, read_as) in [
        ("=?utf-8?Q?a?= b =?utf-8?Q?c?=", "a b c"),
        ("=?utf-8?Q?a_?= =?iso-8859-1?Q?=FC?= =?utf-8?Q?c?=", "a üc"),
        ("=?utf-8?X?a?= =?=?", "=?utf-8?X?a?= =?=?"),
        ("what =? that", "what =? that"),
    ] {
        assert_eq!(read(format!("Subject: {subject}\r\n\r\nx").as_bytes()).subject, read_as);
    }
}

const PART: &str = "--b\r\nContent-Type: text/plain\r\n\r\nHello\r\n";

#[test]
fn a_message_without_closing_boundaries_has_its_text_and_the_rest() {
    let mixed =
        "From: a@a.test\r\nSubject: x\r\nContent-Type: multipart/mixed; boundary=\"b\"\r\n\r\n";
    let inner = "--b\r\nContent-Type: multipart/alternative; boundary=\"i n\"\r\n\r\n--i n\r\nContent-Type: text/plain\r\n\r\nInner\r\n\
                 --i n\r\nContent-Type: text/html\r\n\r\n<p>Inner</p>\r\n";
    let file = "--b\r\nContent-Type: text/csv; name=a.csv\r\nContent-Disposition: attachment; filename=a.csv\r\n\r\n1,2\r\n";
    let coded = "--b\r\nContent-Type: text/plain\r\nContent-Transfer-Encoding: base64\r\n\r\nSGVsbG8gd29ybGQ=\r\n";
    for (body, text, files) in [
        (PART.to_owned(), "Hello", 0),
        (PART.trim_end().to_owned(), "Hello", 0),
        (format!("{PART}{file}"), "Hello", 1),
        (inner.to_owned(), "Inner", 0),
        (format!("{inner}{file}"), "Inner", 1),
        (format!("{inner}{file}--b--\r\n"), "Inner", 1),
        (format!("{inner}--b--\r\n"), "Inner", 0),
        (coded.to_owned(), "Hello world", 0),
        (coded.replace("bGQ=\r\n", ""), "Hello wor", 0),
        (
            coded.replace(
                "base64\r\n\r\nSGVsbG8gd29ybGQ=",
                "quoted-printable\r\n\r\nHello=20w=C3=B6rld",
            ),
            "Hello wörld",
            0,
        ),
        (
            format!("{}{file}", PART.replace("plain\r\n\r\nHello", "html\r\n\r\n<p>Hello</p>")),
            "Hello",
            1,
        ),
        ("Nothing has a boundary".to_owned(), "Nothing has a boundary", 1),
        (
            format!("--b\r\nContent-Type: message/rfc822\r\n\r\n{mixed}{PART}{file}")
                .replace("--b\r\nContent-Type: text", "--c\r\nContent-Type: text")
                .replacen("\"b\"", "\"c\"", 1),
            "From: a@a.test\nDate: \nSubject: x\n\nHello",
            1,
        ),
    ] {
        let message = read(format!("{mixed}{body}").as_bytes());
        assert_eq!(message.text.trim(), text, "{body}");
        assert_eq!(message.attachments.len(), files, "{body}: {:?}", message.attachments);
        assert_eq!(message.subject, "x");
    }
    let unix = format!("{mixed}{inner}{file}").replace("\r\n", "\n");
    let message = read(unix.as_bytes());
    assert_eq!((message.text.trim(), message.attachments.len()), ("Inner", 1));
}

#[test]
fn a_message_of_other_kinds_alone_gives_their_text() {
    let calendar = "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nSUMMARY:Review of the quar\r\n terly report\r\nLOCATION:Room 4\\, first floor\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n";
    let nested = "From: Ada <a@a.test>\r\nSubject: =?utf-8?Q?Gr=C3=BC?= =?utf-8?Q?=C3=9Fe?=\r\n\r\nThe original\r\n";
    let digest = format!("--b\r\n\r\n{nested}\r\n--b\r\n\r\n{nested}\r\n--b--\r\n");
    for (kind, body, texts) in [
        (
            "text/calendar; method=REQUEST",
            calendar.to_owned(),
            &["Review of the quarterly report", "Room 4, first floor"][..],
        ),
        ("application/ics", calendar.to_owned(), &["quarterly report"]),
        (
            "multipart/alternative; boundary=b",
            format!("--b\r\nContent-Type: text/calendar\r\n\r\n{calendar}--b--\r\n"),
            &["quarterly report"],
        ),
        (
            "multipart/mixed; boundary=b",
            format!(
                "--b\r\nContent-Type: text/calendar\r\nContent-Transfer-Encoding: base64\r\nContent-Disposition: attachment\r\n\r\n{}\r\n--b--\r\n",
                base64(calendar.as_bytes())
            ),
            &["quarterly report"],
        ),
        (
            "message/rfc822",
            nested.to_owned(),
            &["From: Ada <a@a.test>", "Subject: Grüße", "The original"],
        ),
        (
            "multipart/mixed; boundary=b",
            format!("--b\r\nContent-Type: message/rfc822\r\n\r\n{nested}--b--\r\n"),
            &["Subject: Grüße", "The original"],
        ),
        (
            "multipart/mixed; boundary=b",
            format!(
                "--b\r\nContent-Type: message/rfc822\r\nContent-Transfer-Encoding: base64\r\n\r\n{}\r\n--b--\r\n",
                base64(nested.as_bytes())
            ),
            &["Subject: Grüße", "The original"],
        ),
        ("multipart/digest; boundary=b", digest, &["Subject: Grüße", "The original"]),
        ("text/enriched", "<bold>Now</bold>".to_owned(), &["Now"]),
        (
            "message/delivery-status",
            "Final-Recipient: rfc822; x@x.test\r\nAction: failed\r\n".to_owned(),
            &["Action: failed"],
        ),
    ] {
        let message = read(format!("Subject: x\r\nContent-Type: {kind}\r\n\r\n{body}").as_bytes());
        for text in texts {
            assert!(message.text.contains(text), "{kind}: {:?} lacks {text}", message.text);
        }
    }
    assert_eq!(read(b"").text, "");
}

#[test]
fn a_message_that_is_right_is_left_alone() {
    let mail = format!(
        "Subject: =?utf-8?Q?Gr=C3=BC=C3=9Fe?=\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n{PART}--b--\r\nepilogue"
    );
    assert!(matches!(perihelion_mime::repaired(mail.as_bytes()), std::borrow::Cow::Borrowed(_)));
}

#[test]
fn a_thread_is_in_the_order_of_time_in_all_zones() {
    let dates = [
        "Fri, 2 Jan 2026 01:30:00 +1400",
        "Thu, 1 Jan 2026 23:00:00 +0900",
        "Thu, 1 Jan 2026 09:30:00 -0500",
        "Thu, 1 Jan 2026 14:45:00 GMT",
        "Thu, 1 Jan 2026 04:00:00 -1100",
    ];
    let mail = |date: &str| format!("Date: {date}\r\nSubject: {date}\r\n\r\nx");
    for start in 0..dates.len() {
        let mut messages: Vec<_> = dates
            .iter()
            .cycle()
            .skip(start)
            .take(5)
            .map(|date| read(mail(date).as_bytes()))
            .collect();
        message::oldest_first(&mut messages);
        let subjects: Vec<&str> = messages.iter().map(|message| message.subject.as_str()).collect();
        assert_eq!(subjects, dates);
    }
}

/// One such ID made a server refuse the search for the whole thread.
#[test]
fn a_message_with_an_id_that_no_server_finds_is_named_by_its_place() {
    for id in ["<a b@x.test>", "<ü@x.test>", "<a\u{1}b@x.test>", "<a>"] {
        let head = format!("Message-ID: {id}\r\nReferences: <one@a.test> {id}");
        let message = read(format!("{head}\r\nFrom: a@a.test\r\n\r\nt").as_bytes());
        assert_eq!(message.id, "uid:1:INBOX", "{id}");
        assert_eq!(message.references, ["<one@a.test>"], "{id}");
    }
}

#[test]
fn a_header_made_to_be_slow_or_endless_is_read() {
    for header in [
        "=?utf-8?q?a".repeat(10_000),
        "=?utf-8?b?".repeat(10_000),
        "x; a*0*=".repeat(5_000),
        "x; a*0*=\"".to_owned(),
        "x; *0*=; *1*=\"".to_owned(),
        format!("x; {}", "a*0*=utf-8''%C3; a*1*=%BC; ".repeat(5_000)),
    ] {
        let mail = format!("Subject: {header}\r\nContent-Type: text/plain; {header}\r\n\r\ntext");
        assert_eq!(read(mail.as_bytes()).text.trim(), "text");
    }
    let boundaries: String = (0..5_000)
        .map(|n| format!("--b{n}\r\nContent-Type: multipart/mixed; boundary=b{}\r\n\r\n", n + 1))
        .collect();
    let mail =
        format!("Subject: x\r\nContent-Type: multipart/mixed; boundary=b0\r\n\r\n{boundaries}");
    assert_eq!(read(mail.as_bytes()).subject, "x");
}
