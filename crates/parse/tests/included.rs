//! Word documents that include other documents as they are, and what their revisions and controls wrap.
#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

#[path = "support/package.rs"]
mod package;

use perihelion_parse::{Limits, Parsed, Warning, parse};

use self::package::package;

const SPACES: &str = "xmlns:w='http://schemas.openxmlformats.org/wordprocessingml/2006/main' \
    xmlns:r='http://schemas.openxmlformats.org/officeDocument/2006/relationships'";
const CHUNK: &str = "<w:altChunk r:id='rId1'/>";

/// A document with this body, which can include a part.
fn word(body: &str, part: &str, content: &[u8]) -> Vec<u8> {
    let document = format!("<w:document {SPACES}><w:body>{body}</w:body></w:document>");
    let relations = format!(
        "<Relationships><Relationship Id='rId1' Type='http://schemas.openxmlformats.org/officeDocument/2006/relationships/aFChunk' Target='/word/{part}'/></Relationships>"
    );
    let path = format!("word/{part}");
    package(&[
        ("word/document.xml", document.as_bytes()),
        ("word/_rels/document.xml.rels", relations.as_bytes()),
        (path.as_str(), content),
    ])
}

fn read(body: &str, part: &str, content: &[u8]) -> Parsed {
    parse(&word(body, part, content), "a.docx", &Limits::default()).unwrap()
}

fn paragraph(text: &str) -> String {
    format!("<w:p><w:r><w:t>{text}</w:t></w:r></w:p>")
}

#[test]
fn an_included_document_is_read_in_its_place() {
    let page = "<html><body><h2>Rent</h2><p>It is 800.</p><table><tr><td>a<td>b<tr><td>1<td>2</table></body></html>";
    let mail = format!(
        "MIME-Version: 1.0\r\nContent-Type: multipart/related; boundary=b\r\n\r\n--b\r\nContent-Type: text/html\r\n\r\n{page}\r\n--b--\r\n"
    );
    let table = "| a | b |\n| - | - |\n| 1 | 2 |";
    let html = format!("## Rent\n\nIt is 800.\n\n{table}");
    let inner = word(&paragraph("It is 800."), "x.html", b"");
    for (part, content, expected) in [
        ("chunk.html", page.as_bytes(), html.as_str()),
        ("chunk.dat", page.as_bytes(), html.as_str()),
        ("chunk.mht", mail.as_bytes(), html.as_str()),
        ("chunk.rtf", br"{\rtf1 It is 800.}", "It is 800."),
        ("chunk.txt", b"It is 800.", "It is 800."),
        ("chunk.docx", inner.as_slice(), "It is 800."),
    ] {
        let body = paragraph("Before.") + CHUNK + &paragraph("After.");
        let parsed = read(&body, part, content);
        assert_eq!(parsed.text, format!("Before.\n\n{expected}\n\nAfter.\n"), "{part}");
        assert_eq!(parsed.warnings, [], "{part}");
        for one in &parsed.tables {
            assert_eq!(&parsed.text[one.start..one.end], table, "{part}");
        }
        for section in &parsed.sections {
            assert!(parsed.text[section.start..].starts_with("## Rent"), "{part}");
        }
        // Alone, and in a cell and its content control.
        assert_eq!(read(CHUNK, part, content).text, format!("{expected}\n"), "{part}");
        for (open, close) in
            [("", ""), ("<w:sdt><w:sdtPr/><w:sdtContent>", "</w:sdtContent></w:sdt>")]
        {
            let cell = paragraph("x");
            let table = format!(
                "<w:tbl><w:tr><w:tc>{open}{CHUNK}{close}</w:tc><w:tc>{open}{cell}{close}</w:tc></w:tr></w:tbl>"
            );
            let text = read(&table, part, content).text;
            assert!(text.contains("It is 800.") && text.contains("| x |"), "{part}: {text}");
        }
    }
}

#[test]
fn rows_and_cells_within_several_content_controls_are_read() {
    let sdt =
        |inner: &str| format!("<w:sdt><w:sdtPr/><w:sdtContent>{inner}</w:sdtContent></w:sdt>");
    let cell = |text: &str| format!("<w:tc>{}</w:tc>", paragraph(text));
    let row = |a: &str, b: &str| {
        let inserted = format!("<w:customXml>{}</w:customXml>", sdt(&cell(b)));
        format!("<w:tr>{}{inserted}</w:tr>", cell(a))
    };
    // As Word writes a repeating section.
    let section = sdt(&(sdt(&row("1", "2")) + &sdt(&row("3", "4"))));
    let body = format!("<w:tbl>{}{section}</w:tbl>", row("a", "b"));
    let text = read(&body, "x.txt", b"").text;
    assert_eq!(text, "| a | b |\n| - | - |\n| 1 | 2 |\n| 3 | 4 |\n");
}

#[test]
fn text_that_word_does_not_show_is_left_out_everywhere() {
    let run = |properties: &str, text: &str| {
        format!("<w:r><w:rPr>{properties}</w:rPr><w:t>{text}</w:t></w:r>")
    };
    let moved = format!("<w:moveFrom>{}</w:moveFrom>", run("", "moved"));
    let ruby = format!(
        "<w:ruby><w:rt>{}</w:rt><w:rubyBase>{}</w:rubyBase></w:ruby>",
        run("", "とう"),
        run("", "東")
    );
    let words = format!(
        "<w:p>{}{}{moved}<w:r>{ruby}</w:r>{}</w:p>",
        run("", "seen "),
        run("<w:vanish/>", "hidden "),
        run("<w:vanish w:val='0'/>", "京"),
    );
    assert_eq!(read(&words, "x.txt", b"").text, "seen 東京\n");
    let row = |properties: &str, text: &str| {
        let cell = format!("<w:tc>{}</w:tc>", paragraph(text));
        format!("<w:tr><w:trPr>{properties}</w:trPr>{cell}{cell}</w:tr>")
    };
    let rows = row("", "a") + &row("<w:del/>", "no") + &row("<w:ins/>", "b");
    let table = format!("<w:tbl>{rows}</w:tbl>");
    assert_eq!(read(&table, "x.txt", b"").text, "| a | a |\n| - | - |\n| b | b |\n");
    // A table within a table is read as its text.
    let outer = format!(
        "<w:tbl><w:tr><w:tc>{words}</w:tc><w:tc><w:tbl><w:tr><w:tc>{words}</w:tc></w:tr>{rows}</w:tbl></w:tc></w:tr></w:tbl>"
    );
    let text = read(&outer, "x.txt", b"").text;
    assert!(text.contains("| seen 東京 | seen 東京 a a b b |"), "{text}");
}

#[test]
fn an_included_document_that_cannot_be_read_is_named() {
    let itself = word(&(paragraph("Twice.") + CHUNK), "x.docx", &word(CHUNK, "y.docx", b""));
    for (part, content, expected) in [
        ("chunk.xlsx", &package(&[("xl/workbook.xml", b"")])[..], "word/chunk.xlsx"),
        ("chunk.html", b"", "word/chunk.html"),
        ("chunk.bin", b"\0\x01\x02\x03\x04", "word/chunk.bin"),
        ("chunk.docx", itself.as_slice(), "word/x.docx"),
    ] {
        let parsed = read(&(paragraph("Before.") + CHUNK), part, content);
        assert!(parsed.text.starts_with("Before.\n"), "{part}: {}", parsed.text);
        let parts = vec![expected.to_owned()];
        assert_eq!(parsed.warnings, [Warning::PartsUnread { parts }], "{part}");
    }
}
