//! OpenDocument files and books written here by hand: what a reader sees in them is in the text, in its place.
#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

#[path = "support/parts.rs"]
mod parts;

use perihelion_parse::{Error, Parsed, Warning};

use self::parts::{read, tried};

const OPEN: &str = "xmlns:office='urn:o' xmlns:text='urn:t' xmlns:table='urn:b' xmlns:draw='urn:d' \
    xmlns:style='urn:s' xmlns:dc='urn:c' xmlns:presentation='urn:p' xmlns:calcext='urn:x'";

/// An OpenDocument file of a kind with this body.
fn open_document(kind: &str, styles: &str, body: &str) -> Parsed {
    let content = format!(
        "<office:document-content {OPEN}><office:automatic-styles>{styles}</office:automatic-styles>\
         <office:body><office:{kind}>{body}</office:{kind}></office:body></office:document-content>"
    );
    let meta = format!(
        "<office:document-meta {OPEN}><dc:title>The lease</dc:title><dc:creator>Ann Archer</dc:creator></office:document-meta>"
    );
    let page = format!(
        "<office:document-styles {OPEN}><style:master-page><style:header><text:p>Confidential</text:p></style:header></style:master-page></office:document-styles>"
    );
    let parts = [
        ("mimetype", format!("application/vnd.oasis.opendocument.{kind}")),
        ("content.xml", content),
        ("meta.xml", meta),
        ("styles.xml", page),
    ];
    read("a.file", &parts)
}

#[test]
fn an_open_document_text_is_read_with_lists_tables_notes_and_comments() {
    let counted =
        "<text:list-style style:name='L1'><text:list-level-style-number/></text:list-style>";
    let item = |text: &str| format!("<text:list-item><text:p>{text}</text:p></text:list-item>");
    let body = format!(
        "<text:tracked-changes><text:p>deleted</text:p></text:tracked-changes><text:h text:outline-level='2'>Rent</text:h>\
         <text:p>It is<text:s/><text:span>800 <text:s text:c='2'/>a</text:span><text:line-break/>month.\
         <text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>Cold.</text:p></text:note-body></text:note>\
         <office:annotation><dc:creator>Ben</dc:creator><text:p>So?</text:p></office:annotation></text:p>\
         <text:list text:style-name='L1'>{}<text:list-item><text:p>two</text:p><text:list>{}</text:list></text:list-item></text:list>\
         <text:list text:style-name='L2'>{}</text:list>\
         <table:table><table:table-row><table:table-cell table:number-columns-spanned='2'><text:p>Both</text:p></table:table-cell><table:covered-table-cell/></table:table-row>\
         <table:table-row><table:table-cell><text:p>a</text:p></table:table-cell><table:table-cell><text:p>b</text:p><text:p>c</text:p></table:table-cell></table:table-row></table:table>\
         <text:p><draw:frame><draw:text-box><text:p>A box</text:p></draw:text-box></draw:frame></text:p>",
        item("one"),
        item("inner"),
        item("plain"),
    );
    let parsed = open_document("text", counted, &body);
    assert_eq!(
        parsed.text,
        "## Rent\n\nIt is 800  a\nmonth.\n\n1. one\n2. two\n    1. inner\n- plain\n\n\
         | Both | Both |\n| - | - |\n| a | b c |\n\nA box\n\nCold.\n\nBen: So?\n\nConfidential\n"
    );
    assert_eq!(parsed.title.as_deref(), Some("The lease"));
    assert_eq!(parsed.authors, ["Ann Archer"]);
}

#[test]
fn open_document_sheets_and_slides_are_pages() {
    let body = "<table:table table:name='May'><table:table-row><table:table-cell office:value-type='float' office:value='12.500000000000002'><text:p>12,50 €</text:p></table:table-cell>\
        <table:table-cell office:value-type='date' office:date-value='2026-05-01'><text:p>1.5.26</text:p></table:table-cell>\
        <table:table-cell office:value-type='percentage' office:value='0.15'><text:p>15 %</text:p></table:table-cell>\
        <table:table-cell office:value-type='currency' office:currency='EUR' office:value='1234.5'><text:p>1.234,50 EUR</text:p></table:table-cell>\
        <table:table-cell table:number-columns-repeated='16000'/></table:table-row>\
        <table:table-row table:number-rows-repeated='1048000'><table:table-cell table:number-columns-repeated='16384'/></table:table-row>\
        <table:table-row><table:table-cell table:number-columns-repeated='16383'/><table:table-cell office:value-type='string' calcext:value-type='error'><text:p>#DIV/0!</text:p></table:table-cell></table:table-row></table:table>";
    let parsed = open_document("spreadsheet", "", body);
    assert_eq!(
        parsed.text,
        "## May\n\n| 12.5 | 2026-05-01 | 15 % | 1.234,50 EUR |\n| - | - | - | - |\n\n#DIV/0!\n\nConfidential\n"
    );
    let slides = "<draw:page><draw:frame presentation:class='title'><draw:text-box><text:p>Results</text:p></draw:text-box></draw:frame>\
        <draw:frame><draw:text-box><text:list><text:list-item><text:p>good</text:p></text:list-item></text:list></draw:text-box></draw:frame>\
        <presentation:notes><draw:frame><draw:text-box><text:p>Slowly.</text:p></draw:text-box></draw:frame></presentation:notes></draw:page>\
        <draw:page><draw:frame><draw:text-box><text:p>Thanks</text:p></draw:text-box></draw:frame></draw:page>";
    let parsed = open_document("presentation", "", slides);
    assert!(
        parsed.text.starts_with("# Results\n\n- good\n\nSlowly.\n\nThanks\n"),
        "{}",
        parsed.text
    );
    assert_eq!(parsed.page_at(parsed.text.find("Thanks").unwrap()), Some(2));
}

#[test]
fn equal_rows_that_are_written_once_are_read_as_often_as_they_are_seen() {
    let cell = |text: &str| format!("<table:table-cell><text:p>{text}</text:p></table:table-cell>");
    let body = format!(
        "<table:table><table:table-row table:number-rows-repeated='5000'>{}{}</table:table-row><table:table-row>\
         <table:table-cell table:number-rows-spanned='4294967295' table:number-columns-spanned='4294967295'><text:p>last</text:p></table:table-cell></table:table-row></table:table>",
        cell("same"),
        cell("row")
    );
    let parsed = open_document("spreadsheet", "", &body);
    assert_eq!(parsed.text.matches("| same | row |").count(), 5000);
    assert!(parsed.text.contains("| last |"));
}

#[test]
fn the_chapters_of_a_book_are_read_in_the_order_of_its_spine() {
    let page = |title: &str, body: &str| {
        format!(
            "<?xml version='1.0'?><html xmlns='http://www.w3.org/1999/xhtml'><head><title/></head><body><h1><a id='x'/>{title}</h1>{body}</body></html>"
        )
    };
    let container =
        "<container><rootfiles><rootfile full-path='OEBPS/book.opf'/></rootfiles></container>";
    let book = "<package xmlns:dc='urn:c'><metadata><dc:title>A book</dc:title><dc:creator>Ann Archer</dc:creator></metadata>\
        <manifest><item id='b' href='two%20a.xhtml'/><item id='a' href='text/one.xhtml'/><item id='c' href='gone.xhtml'/></manifest>\
        <spine><itemref idref='a'/><itemref idref='b'/><itemref idref='c'/></spine></package>";
    let parts = |kind: &str| {
        [
            ("mimetype", "application/epub+zip".to_owned()),
            ("META-INF/container.xml", container.to_owned()),
            ("OEBPS/book.opf", format!("<?xml version='1.0'?>{kind}{book}")),
            ("OEBPS/two a.xhtml", page("Two", "<p>The end.</p>")),
            ("OEBPS/text/one.xhtml", page("One", "<p>It begins.<br/>So.</p>")),
        ]
    };
    let parsed = read("a.epub", &parts(""));
    // A document type changes nothing, unless it defines entities.
    for kind in [
        "<!DOCTYPE package PUBLIC \"+//ISBN 0-9673008-1-9//DTD OEB 1.2 Package//EN\" \"http://openebook.org/dtds/oeb-1.2/oebpkg12.dtd\">",
        "<!DOCTYPE package SYSTEM 'book.dtd'>",
        "<!DOCTYPE package>",
        "<!DOCTYPE package [<!ATTLIST item id CDATA #IMPLIED>]>",
    ] {
        assert_eq!(read("a.epub", &parts(kind)).text, parsed.text, "{kind}");
    }
    let kind = "<!DOCTYPE package [<!ENTITY a 'aaaa'><!ENTITY b '&a;&a;'>]>";
    let refused = tried("a.epub", &parts(kind));
    assert!(matches!(refused, Err(Error::Broken { .. })), "{refused:?}");
    assert_eq!(parsed.text, "# One\n\nIt begins.\nSo.\n\n# Two\n\nThe end.\n");
    assert_eq!((parsed.title.as_deref(), parsed.authors.len()), (Some("A book"), 1));
    assert_eq!(parsed.warnings, [Warning::PartsUnread { parts: vec!["OEBPS/gone.xhtml".into()] }]);
}
