//! Form fields of Word documents, and charts of many points.
#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

#[path = "support/parts.rs"]
mod parts;

use perihelion_parse::Warning;

const WORD: &str = "xmlns:w='http://schemas.openxmlformats.org/wordprocessingml/2006/main'";
const SLIDE: &str = "xmlns:p='http://schemas.openxmlformats.org/presentationml/2006/main' \
    xmlns:c='http://schemas.openxmlformats.org/drawingml/2006/chart' \
    xmlns:r='http://schemas.openxmlformats.org/officeDocument/2006/relationships'";

/// The text of a document with a form field of this content before a word.
fn field(content: &str) -> String {
    let body = format!(
        "<w:p><w:r><w:fldChar w:fldCharType='begin'><w:ffData><w:name w:val='C'/><w:enabled/>{content}</w:ffData></w:fldChar></w:r>\
         <w:r><w:instrText> FORM </w:instrText></w:r><w:r><w:fldChar w:fldCharType='end'/></w:r><w:r><w:t xml:space='preserve'> agreed</w:t></w:r></w:p>"
    );
    let document = format!("<w:document {WORD}><w:body>{body}</w:body></w:document>");
    parts::read("a.docx", &[("word/document.xml", document)]).text
}

#[test]
fn a_box_of_a_form_is_ticked_as_word_shows_it() {
    for (state, is_on) in [
        ("<w:default w:val='0'/><w:checked/>", true),
        ("<w:default w:val='0'/><w:checked w:val='1'/>", true),
        ("<w:default w:val='0'/><w:checked w:val='true'/>", true),
        ("<w:default w:val='1'/>", true),
        ("<w:default/>", true),
        ("<w:default w:val='1'/><w:checked w:val='0'/>", false),
        ("<w:default w:val='1'/><w:checked w:val='false'/>", false),
        ("<w:default w:val='0'/>", false),
        ("", false),
    ] {
        let text = field(&format!("<w:checkBox><w:sizeAuto/>{state}</w:checkBox>"));
        let mark = if is_on { "[x]" } else { "[ ]" };
        assert!(text.starts_with(mark) && text.contains("agreed"), "{state}: {text}");
    }
}

#[test]
fn the_chosen_entry_of_a_list_is_read() {
    let entries = "<w:listEntry w:val='Germany'/><w:listEntry w:val='France'/>";
    for (chosen, expected) in [
        ("<w:result w:val='1'/>", "France agreed\n"),
        ("<w:default w:val='1'/>", "France agreed\n"),
        ("<w:result w:val='0'/><w:default w:val='1'/>", "Germany agreed\n"),
        ("", "Germany agreed\n"),
        ("<w:result w:val='9'/>", "agreed\n"),
    ] {
        assert_eq!(field(&format!("<w:ddList>{chosen}{entries}</w:ddList>")), expected, "{chosen}");
    }
}

#[test]
fn points_of_a_chart_that_are_left_out_are_reported() {
    let relation = |kind: &str, target: &str| {
        format!(
            "<Relationships xmlns='http://schemas.openxmlformats.org/package/2006/relationships'><Relationship Id='rId1' Target='{target}' \
             Type='http://schemas.openxmlformats.org/officeDocument/2006/relationships/{kind}'/></Relationships>"
        )
    };
    let points: String =
        (0..1_200).map(|n| format!("<c:pt idx='{n}'><c:v>{n}</c:v></c:pt>")).collect();
    let chart = format!(
        "<c:chartSpace {SLIDE}><c:chart><c:plotArea><c:lineChart><c:ser><c:val><c:numRef><c:numCache>{points}</c:numCache></c:numRef></c:val></c:ser></c:lineChart></c:plotArea></c:chart></c:chartSpace>"
    );
    let book = "xmlns='http://schemas.openxmlformats.org/spreadsheetml/2006/main' \
        xmlns:r='http://schemas.openxmlformats.org/officeDocument/2006/relationships'";
    let sheet =
        "<sheetData><row r='1'><c r='A1'><v>1</v></c></row></sheetData><drawing r:id='rId1'/>";
    let parsed = parts::read(
        "a.xlsx",
        &[
            ("_rels/.rels", relation("officeDocument", "xl/workbook.xml")),
            (
                "xl/workbook.xml",
                format!(
                    "<workbook {book}><sheets><sheet name='May' sheetId='1' r:id='rId1'/></sheets></workbook>"
                ),
            ),
            ("xl/_rels/workbook.xml.rels", relation("worksheet", "worksheets/sheet1.xml")),
            ("xl/worksheets/sheet1.xml", format!("<worksheet {book}>{sheet}</worksheet>")),
            (
                "xl/worksheets/_rels/sheet1.xml.rels",
                relation("drawing", "../drawings/drawing1.xml"),
            ),
            ("xl/drawings/drawing1.xml", format!("<drawing {SLIDE}/>")),
            ("xl/drawings/_rels/drawing1.xml.rels", relation("chart", "../charts/chart1.xml")),
            ("xl/charts/chart1.xml", chart),
        ],
    );
    assert!(parsed.text.contains("| 999 |") && !parsed.text.contains("| 1000 |"));
    let parts = vec!["a chart with 1200 points".to_owned()];
    assert_eq!(parsed.warnings, [Warning::PartsCut { parts }]);
}
