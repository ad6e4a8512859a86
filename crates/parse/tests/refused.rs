//! Documents that give no text, or would take too much: each is refused by name.
#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

#[path = "support/package.rs"]
mod package;
#[path = "support/pdf.rs"]
mod written;

use perihelion_parse::{Error, Format, Limits, parse};

use self::package::package;
use self::written::pdf;

/// An office document that is encrypted: a compound file whose directory names the parts that hold it.
fn encrypted_office() -> Vec<u8> {
    const FREE: u32 = 0xFFFF_FFFF;
    const END: u32 = 0xFFFF_FFFE;
    const TABLE: u32 = 0xFFFF_FFFD;
    const SECTOR: usize = 512;
    let mut file = vec![0xD0, 0xCF, 0x11, 0xE0, 0xA1, 0xB1, 0x1A, 0xE1];
    file.resize(24, 0);
    // Version 3.62, little-endian, sectors of 2^9 and 2^6 bytes.
    file.extend([0x3E, 0, 3, 0, 0xFE, 0xFF, 9, 0, 6, 0]);
    file.resize(44, 0);
    for number in [1, 1, 0, 4096, END, 0, END, 0, 0] {
        file.extend(number.to_le_bytes());
    }
    file.resize(SECTOR, 0xFF);
    for number in [TABLE, END] {
        file.extend(u32::to_le_bytes(number));
    }
    file.resize(2 * SECTOR, 0xFF);
    for (name, kind, beside, child) in [
        ("Root Entry", 5, FREE, 1),
        ("EncryptionInfo", 2, 2, FREE),
        ("EncryptedPackage", 2, FREE, FREE),
    ] {
        let name: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let mut entry = name.clone();
        entry.resize(64, 0);
        entry.extend((name.len() as u16 + 2).to_le_bytes());
        entry.extend([kind, 1]);
        for number in [FREE, beside, child] {
            entry.extend(u32::to_le_bytes(number));
        }
        entry.resize(116, 0);
        entry.extend(END.to_le_bytes());
        entry.resize(128, 0);
        file.extend(entry);
    }
    file.resize(3 * SECTOR, 0);
    file
}

/// A PDF whose key is not that of an empty password.
fn encrypted_pdf() -> Vec<u8> {
    let plain = pdf(&["BT /F 10 Tf 72 700 Td (Nobody reads this sentence.) Tj ET"]);
    let text = String::from_utf8(plain).unwrap();
    let hash = "5A".repeat(32);
    let protected = format!(
        "/Root 1 0 R /ID [<{id}> <{id}>] /Encrypt << /Filter /Standard /V 1 /R 2 /O <{hash}> /U <{hash}> /P -4 >>",
        id = "00".repeat(16)
    );
    text.replace("/Root 1 0 R", &protected).into_bytes()
}

/// S3.05: what is protected by a password is refused with what to do, whatever kind it is.
#[test]
fn a_password_is_named_for_pdf_word_and_excel() {
    let office = encrypted_office();
    let pdf = encrypted_pdf();
    for (name, bytes) in [("a.pdf", &pdf), ("a.docx", &office), ("a.xlsx", &office)] {
        let error = parse(bytes, name, &Limits::default()).unwrap_err();
        assert!(matches!(error, Error::Password), "{name}: {error}");
        assert_eq!(error.class(), "password");
        assert!(error.to_string().contains("remove the password"), "{error}");
    }
}

/// S3.05: an archive that unpacks to far more than it is, or than is permitted, is refused before it is held in memory.
#[test]
fn an_archive_that_unpacks_without_end_is_named() {
    let zeros = vec![b' '; 20 << 20];
    let word = package(&[("word/document.xml", &zeros)]);
    let book = package(&[("xl/workbook.xml", &zeros)]);
    assert!(word.len() < 100_000);
    let small = Limits { unpacked_bytes: 1 << 20, ..Limits::default() };
    for (name, bytes) in [("a.docx", &word), ("a.xlsx", &book)] {
        for limits in [&Limits::default(), &small] {
            let error = parse(bytes, name, limits).unwrap_err();
            assert!(matches!(error, Error::Bomb { .. }), "{name}: {error}");
            assert_eq!(error.class(), "too_large");
        }
    }
}

/// S3.05: what an archive says of its sizes is not believed.
#[test]
fn an_archive_with_false_sizes_is_refused() {
    let zeros = vec![b' '; 20 << 20];
    let mut word = package(&[("word/document.xml", &zeros)]);
    let words = u32::to_le_bytes(20 << 20);
    let places: Vec<usize> = (0..word.len() - 4).filter(|at| word[*at..*at + 4] == words).collect();
    assert!(!places.is_empty());
    for at in places {
        word[at..at + 4].copy_from_slice(&u32::to_le_bytes(1000));
    }
    for limits in [Limits::default(), Limits { unpacked_bytes: 1 << 20, ..Limits::default() }] {
        let error = parse(&word, "a.docx", &limits).unwrap_err();
        // Damaged where reading finds the lie, too large unpacked where the bound comes first.
        assert!(matches!(error, Error::Broken { .. } | Error::Bomb { .. }), "{error}");
    }
}

/// S3.05: what is too large, empty or of no known kind says so.
#[test]
fn too_large_empty_and_unknown_files_are_refused_with_the_reason() {
    let limits = Limits { input_bytes: 10, ..Limits::default() };
    let class = |bytes: &[u8], name: &str, limits: &Limits| {
        parse(bytes, name, limits).unwrap_err().class().to_owned()
    };
    assert_eq!(class(b"eleven bytes", "a.txt", &limits), "too_large");
    assert_eq!(class(b"", "a.txt", &limits), "empty");
    assert_eq!(class(b" \n ", "a.txt", &Limits::default()), "no_text");
    assert_eq!(class(&package(&[("a", b"b")]), "a.zip", &Limits::default()), "unsupported");
    let torn = &package(&[("word/document.xml", b"<w:document")])[..60];
    let error = parse(torn, "a.docx", &Limits::default()).unwrap_err();
    assert!(matches!(error, Error::Broken { format: Format::Docx, .. }), "{error}");
}

/// A compound file is known by the names of its streams.
fn compound(stream: &str) -> Vec<u8> {
    let mut file = vec![0xD0, 0xCF, 0x11, 0xE0, 0xA1, 0xB1, 0x1A, 0xE1];
    file.resize(512, 0);
    file.extend(stream.encode_utf16().flat_map(u16::to_le_bytes));
    file.resize(1024, 0);
    file
}

/// Kinds of files that are no documents of ours are named; none of them is taken for a text or called damaged.
#[test]
fn files_of_other_kinds_are_refused_by_name() {
    let binary = package(&[("xl/workbook.bin", b"\x80\x01"), ("[Content_Types].xml", b"<Types/>")]);
    let pages = package(&[("Index/Document.iwa", b"\0")]);
    let mobi = [vec![b'x'; 60], b"BOOKMOBI\0".to_vec()].concat();
    let word: &[u8] =
        b"<?xml version=\"1.0\"?><?mso-application progid=\"Word.Document\"?><w:wordDocument/>";
    for (bytes, name, kind) in [
        (binary, "a.xlsb", ".xlsb"),
        (pages, "a.pages", "Apple"),
        (compound("Book"), "a.xls", "before 1997"),
        (b"\x09\0\x04\0\x07\0\x10\0".to_vec(), "a.xls", "before 1993"),
        (b"\x09\x04\x06\0\0\0\x10\0".to_vec(), "a.xls", "before 1993"),
        (compound("WordDocument"), "a.doc", ".doc"),
        (compound("PowerPoint Document"), "a.ppt", ".ppt"),
        (compound("__properties_version1.0"), "a.msg", ".msg"),
        (b"%!PS-Adobe-3.0\n/Times findfont".to_vec(), "a.ps", "PostScript"),
        (b"\x1f\x8b\x08\0\0\0\0\0".to_vec(), "a.gz", "archive"),
        (mobi, "a.mobi", "Kindle"),
        (word.to_vec(), "a.xml", "Word 2003"),
        (
            b"From ann@example.org Mon May  4 2026\nFrom: a\nTo: b\nSubject: c\n\nHello".to_vec(),
            "mail",
            "folder of mails",
        ),
    ] {
        let error = parse(&bytes, name, &Limits::default()).unwrap_err();
        assert_eq!(error.class(), "unsupported", "{name}: {error}");
        assert!(error.to_string().contains(kind), "{name}: {error}");
    }
    for sign in [&b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"[..], b"RIFF\0\0\0\0WEBPVP8 ", b"MM\0*\0"] {
        let error = parse(sign, "a.pdf", &Limits::default()).unwrap_err();
        assert!(error.class() == "scan" && error.to_string().contains("Tesseract"), "{error}");
    }
    // Tesseract would read the files that it lists.
    for list in [
        &b"\x89PNG\0\n/etc/picture.png\n"[..],
        b"GIF8\0\n/etc/picture.png\n",
        b"RIFF\0\0\0\0AVI \n/etc",
    ] {
        let error = parse(list, "a.png", &Limits::default()).unwrap_err();
        assert_ne!(error.class(), "scan", "{error}");
    }
    for text in [
        "About <pkg:package and office:mimetype=\"x\".",
        "RIFF is a format.",
        "ID3,Name\n1,Ann\n",
        "BZh, said the fly.",
    ] {
        assert!(parse(text.as_bytes(), "a.txt", &Limits::default()).is_ok(), "{text}");
    }
}

/// The kind is known by the bytes, whatever the name.
#[test]
fn rich_text_mails_and_pages_are_recognized_by_their_first_bytes() {
    let mail = "From: Ann <ann@example.org>\r\nTo: Ben <ben@example.org>\r\nSubject: Rent\r\n\r\nIt is 800.\r\n";
    for (text, name, format) in [
        (r"{\rtf1 Words}", "a.doc", Format::Rtf),
        (r"{\rtf1 Words}", "a.txt", Format::Rtf),
        (mail, "a.eml", Format::Eml),
        (mail, "a", Format::Eml),
        ("<html><table><tr><td>1</td></tr></table>", "a.xls", Format::Html),
        ("Words alone.", "a.txt", Format::Text),
        ("To: all\n\nWords alone.", "a", Format::Text),
    ] {
        let parsed = parse(text.as_bytes(), name, &Limits::default()).unwrap();
        assert_eq!(parsed.format, format, "{name}: {text}");
    }
}

/// Each way in which mails were read as empty.
#[test]
fn mails_with_any_parts_are_read() {
    let head = "From: Ann Archer <ann@example.org>\nTo: ben@example.org\nSubject: =?utf-8?Q?Gr=C3=B6=C3=9Fe?=\nDate: Mon, 4 May 2026 10:00:00 +0200\nMIME-Version: 1.0\n";
    let open = "Content-Type: multipart/mixed; boundary=\"b\"\n\n--b\nContent-Type: text/plain\n\nThe rent is 800.\n";
    let page = "Content-Type: text/html; charset=utf-8\n\n<h2>Rent</h2><p>The rent is 800.</p>";
    let event = "Content-Type: text/calendar\n\nBEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:The rent is\n  800.\nDTSTART:20260504T100000Z\nEND:VEVENT\nEND:VCALENDAR\n";
    let inner = format!(
        "Content-Type: message/rfc822\n\n{head}Content-Type: text/plain\n\nThe rent is 800.\n"
    );
    let japanese = "Content-Type: text/plain; charset=Shift_JIS\nContent-Transfer-Encoding: base64\n\nk/qWew==\n";
    let attached = format!(
        "{open}--b\nContent-Type: application/pdf; name=\"lease.pdf\"\nContent-Disposition: attachment; filename=\"lease.pdf\"\n\nJVBERi0=\n--b--\n"
    );
    for (body, expected) in [
        ("Content-Type: text/plain\n\nThe rent is 800.\n", "The rent is 800."),
        (open, "The rent is 800."),
        (page, "## Rent\n\nThe rent is 800."),
        (event, "SUMMARY: The rent is 800."),
        (inner.as_str(), "The rent is 800."),
        (japanese, "日本"),
        (
            "Content-Type: text/plain; charset=iso-2022-kr\n\n\x1b$)C\x0eA6<v\x0f \x0e0#88\x0f",
            "조수 간만",
        ),
        ("Content-Type: text/plain; charset=hz-gb-2312\n\n~{31O+UGBd~}", "潮汐涨落"),
        ("Content-Type: text/html\n\n<meta charset=hz-gb-2312><p>~{31O+UGBd~}</p>", "潮汐涨落"),
        // Parts that do not end, within each other.
        (
            "Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: multipart/alternative; boundary=c\n\n--c\nContent-Type: text/plain\n\nThe rent is 800.",
            "The rent is 800.",
        ),
        // No boundary, another one than is used, and encodings with mistakes.
        (
            "Content-Type: multipart/mixed\n\n--b\nContent-Type: text/plain\n\nThe rent is 800.\n--b--\n",
            "The rent is 800.",
        ),
        (
            "Content-Type: multipart/alternative; boundary=a\n\n--b\nContent-Type: text/plain\n\nThe rent is 800.\n--b--\n",
            "The rent is 800.",
        ),
        (
            "Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: quoted-printable\n\nM=C3=BCller =ZZ pa=\nys =3",
            "Müller =ZZ pays =3",
        ),
        (
            "Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: base64\n\nTcO8bGxl!ciB6YWhsdA==\n--\nA list\n",
            "Müller zahlt\n--\nA list",
        ),
        (
            "Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: base64\n\nThe rent is 800, sorry.\n",
            "The rent is 800, sorry.",
        ),
        // Texts of other kinds, and of none.
        ("Content-Type: text/enriched\n\nThe rent is 800.\n", "The rent is 800."),
        ("Content-Type: text\n\nThe rent is 800.\n", "The rent is 800."),
        (
            "Content-Type: multipart/report; boundary=b\n\n--b\nContent-Type: message/delivery-status\n\nFinal-Recipient: rfc822; ben@example.org\nAction: failed\n\n--b--\n",
            "Action: failed",
        ),
        (
            "Content-Type: text/plain; charset=ibm437\nContent-Transfer-Encoding: base64\n\nR3KU4WU=\n",
            "Größe",
        ),
        (attached.as_str(), "The rent is 800."),
    ] {
        for ends in ["\n", "\r\n"] {
            // Some programs write blank lines or a mark before a mail.
            let before = if ends == "\n" { "\u{feff}" } else { "\n\n" };
            let mail = format!("{before}{head}{body}").replace('\n', ends);
            let parsed = parse(mail.as_bytes(), "a.eml", &Limits::default()).unwrap();
            assert!(parsed.text.contains(expected), "{body}: {}", parsed.text);
            assert!(
                parsed.text.starts_with("# Größe\n\nFrom: Ann Archer <ann@example.org>\n"),
                "{}",
                parsed.text
            );
            assert_eq!(parsed.authors, ["Ann Archer"]);
            let names: Vec<String> = parsed.warnings.iter().map(ToString::to_string).collect();
            assert_eq!(names.is_empty(), !body.contains("lease.pdf"), "{names:?}");
        }
    }
    let sealed = format!(
        "{head}Content-Type: application/pkcs7-mime; name=smime.p7m\nContent-Transfer-Encoding: base64\n\nMIAG\n"
    );
    let error = parse(sealed.as_bytes(), "a.eml", &Limits::default()).unwrap_err();
    assert!(error.to_string().contains("an encrypted mail"), "{error}");
}

#[test]
fn a_text_that_speaks_of_a_pdf_is_a_text_and_a_pdf_is_one_by_any_name() {
    let words = "Every file begins with %PDF-1.7 and a version.";
    let mail = format!("From: a@x.test\r\nTo: b@x.test\r\nSubject: PDF\r\n\r\n{words}\r\n");
    for (name, text, format) in [
        ("about.md", words, Format::Markdown),
        ("about.txt", words, Format::Text),
        ("about.html", words, Format::Html),
        ("about.csv", words, Format::Csv),
        ("about.eml", mail.as_str(), Format::Eml),
    ] {
        let parsed = parse(text.as_bytes(), name, &Limits::default()).unwrap();
        assert!(parsed.format == format && parsed.text.contains(words), "{name}: {parsed:?}");
    }
    let file = pdf(&["BT /F 10 Tf 72 700 Td (Words of a page.) Tj ET"]);
    for name in ["a.pdf", "a.txt", "a.md", "a.bin", "a"] {
        let parsed = parse(&file, name, &Limits::default()).unwrap();
        assert_eq!((parsed.format, parsed.text.as_str()), (Format::Pdf, "Words of a page.\n"));
    }
}
