//! Office documents written here by hand: what a reader sees in them is in the text, in its place.
#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

#[path = "support/parts.rs"]
mod parts;

use perihelion_parse::{Error, Parsed, Warning};

use self::parts::{read, tried};

const WORD: &str = "xmlns:w='http://schemas.openxmlformats.org/wordprocessingml/2006/main' \
    xmlns:m='http://schemas.openxmlformats.org/officeDocument/2006/math' \
    xmlns:wps='http://schemas.microsoft.com/office/word/2010/wordprocessingShape' \
    xmlns:mc='http://schemas.openxmlformats.org/markup-compatibility/2006'";
const SLIDE: &str = "xmlns:p='http://schemas.openxmlformats.org/presentationml/2006/main' \
    xmlns:a='http://schemas.openxmlformats.org/drawingml/2006/main' \
    xmlns:c='http://schemas.openxmlformats.org/drawingml/2006/chart' \
    xmlns:r='http://schemas.openxmlformats.org/officeDocument/2006/relationships'";
const BOOK: &str = "xmlns='http://schemas.openxmlformats.org/spreadsheetml/2006/main' \
    xmlns:r='http://schemas.openxmlformats.org/officeDocument/2006/relationships'";

/// The numbers of a pie, as charts of all kinds hold them.
const CHART: &str = "<c:chartSpace xmlns:c='http://schemas.openxmlformats.org/drawingml/2006/chart' \
    xmlns:a='http://schemas.openxmlformats.org/drawingml/2006/main'><c:chart><c:title><c:tx><c:rich><a:p><a:r>\
    <a:t>Sales by quarter</a:t></a:r></a:p></c:rich></c:tx></c:title><c:plotArea><c:barChart><c:ser>\
    <c:tx><c:strRef><c:strCache><c:pt idx='0'><c:v>North</c:v></c:pt></c:strCache></c:strRef></c:tx>\
    <c:cat><c:strRef><c:strCache><c:pt idx='0'><c:v>Q1</c:v></c:pt><c:pt idx='1'><c:v>Q2</c:v></c:pt></c:strCache></c:strRef></c:cat>\
    <c:val><c:numRef><c:numCache><c:pt idx='0'><c:v>8.1999999999999993</c:v></c:pt><c:pt idx='1'><c:v>3.1</c:v></c:pt></c:numCache></c:numRef></c:val>\
    </c:ser></c:barChart></c:plotArea></c:chart></c:chartSpace>";

const SALES: &str = "Sales by quarter\n\n|  | North |\n| - | - |\n| Q1 | 8.2 |\n| Q2 | 3.1 |";

/// A workbook of one sheet called May, from the XML before its cells and the cells; its one string is `first`.
fn book(before: &str, cells: &str) -> Result<Parsed, Error> {
    let book = "<sheets><sheet name='May' sheetId='1' r:id='rId1'/></sheets>";
    let parts = [
        ("_rels/.rels", relations(&[("rId1", "officeDocument", "xl/workbook.xml")])),
        ("xl/workbook.xml", format!("<workbook {BOOK}>{book}</workbook>")),
        (
            "xl/_rels/workbook.xml.rels",
            relations(&[
                ("rId1", "worksheet", "worksheets/sheet1.xml"),
                ("rId2", "sharedStrings", "sharedStrings.xml"),
                ("rId3", "styles", "styles.xml"),
            ]),
        ),
        (
            "xl/styles.xml",
            format!(
                "<styleSheet {BOOK}><numFmts><numFmt numFmtId='164' formatCode='#,##0.00\\ &quot;EUR&quot;'/></numFmts><cellXfs>\
                 <xf numFmtId='0'/><xf numFmtId='9'/><xf numFmtId='164'/><xf numFmtId='14'/><xf numFmtId='21'/></cellXfs></styleSheet>"
            ),
        ),
        ("xl/sharedStrings.xml", format!("<sst {BOOK}><si><t>first</t></si></sst>")),
        (
            "xl/worksheets/sheet1.xml",
            format!("<worksheet {BOOK}>{before}<sheetData>{cells}</sheetData></worksheet>"),
        ),
    ];
    tried("a.xlsx", &parts)
}

fn word(body: &str, more: &[(&str, String)]) -> Parsed {
    let document = format!("<w:document {WORD}><w:body>{body}</w:body></w:document>");
    let mut parts = vec![("word/document.xml", document)];
    parts.extend_from_slice(more);
    read("a.docx", &parts)
}

/// Relations of a part: id, kind and target of each.
fn relations(of: &[(&str, &str, &str)]) -> String {
    let one = |(id, kind, target): &(&str, &str, &str)| {
        format!(
            "<Relationship Id='{id}' Target='{target}' \
             Type='http://schemas.openxmlformats.org/officeDocument/2006/relationships/{kind}'/>"
        )
    };
    let all: String = of.iter().map(one).collect();
    format!(
        "<Relationships xmlns='http://schemas.openxmlformats.org/package/2006/relationships'>{all}</Relationships>"
    )
}

/// A paragraph of a Word document with its properties.
fn paragraph(properties: &str, text: &str) -> String {
    format!("<w:p><w:pPr>{properties}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>")
}

/// S3.05: headings are known by their styles, and numbers are counted as Word counts them.
#[test]
fn headings_and_numbers_of_a_word_document_equal_the_display_in_word() {
    let styles = format!(
        "<w:styles {WORD}><w:style w:type='paragraph' w:styleId='Kop1'><w:name w:val='heading 1'/></w:style>\
         <w:style w:type='paragraph' w:styleId='Kop2'><w:name w:val='heading 2'/></w:style></w:styles>"
    );
    let level = |level: u8, format: &str, text: &str| {
        format!(
            "<w:lvl w:ilvl='{level}'><w:start w:val='1'/><w:numFmt w:val='{format}'/><w:lvlText w:val='{text}'/></w:lvl>"
        )
    };
    let numbering = format!(
        "<w:numbering {WORD}><w:abstractNum w:abstractNumId='0'>{}{}</w:abstractNum>\
         <w:abstractNum w:abstractNumId='1'>{}</w:abstractNum>\
         <w:num w:numId='1'><w:abstractNumId w:val='0'/></w:num><w:num w:numId='2'><w:abstractNumId w:val='1'/></w:num></w:numbering>",
        level(0, "decimal", "%1."),
        level(1, "decimal", "%1.%2"),
        level(0, "lowerLetter", "%1)"),
    );
    let numbered = |style: &str, id: u8, level: u8| {
        format!(
            "<w:pStyle w:val='{style}'/><w:numPr><w:ilvl w:val='{level}'/><w:numId w:val='{id}'/></w:numPr>"
        )
    };
    let body = [
        paragraph(&numbered("Kop1", 1, 0), "Rent"),
        paragraph(&numbered("Kop2", 1, 1), "Amount"),
        paragraph(&numbered("Kop2", 1, 1), "Payment"),
        paragraph(&numbered("", 2, 0), "by transfer"),
        paragraph(&numbered("", 2, 0), "in cash"),
        paragraph(&numbered("Kop1", 1, 0), "Term"),
        paragraph(&numbered("Kop2", 1, 1), "Notice"),
    ];
    let parsed =
        word(&body.concat(), &[("word/styles.xml", styles), ("word/numbering.xml", numbering)]);
    assert_eq!(
        parsed.text,
        "# 1 Rent\n\n## 1.1 Amount\n\n## 1.2 Payment\n\na) by transfer\nb) in cash\n\n# 2 Term\n\n## 2.1 Notice\n"
    );
    let at = parsed.text.find("in cash").unwrap();
    assert_eq!(parsed.section_path(at), ["1 Rent", "1.2 Payment"]);
}

/// S3.05: a merged cell says in each row and column that it covers what it says in the first.
#[test]
fn merged_cells_of_a_word_table_repeat_in_their_whole_range() {
    let cell = |properties: &str, text: &str| {
        format!("<w:tc><w:tcPr>{properties}</w:tcPr>{}</w:tc>", paragraph("", text))
    };
    let table = [
        "<w:tbl><w:tr>".to_owned(),
        cell("", "Region"),
        cell("<w:gridSpan w:val='2'/>", "Sales"),
        "</w:tr><w:tr>".to_owned(),
        cell("<w:vMerge w:val='restart'/>", "North"),
        cell("", "May"),
        cell("", "12"),
        "</w:tr><w:tr>".to_owned(),
        cell("<w:vMerge/>", ""),
        cell("", "June"),
        cell("", "15"),
        "</w:tr></w:tbl>".to_owned(),
    ];
    let parsed = word(&table.concat(), &[]);
    assert_eq!(
        parsed.text,
        "| Region | Sales | Sales |\n| - | - | - |\n| North | May | 12 |\n| North | June | 15 |\n"
    );
    assert_eq!(parsed.tables.len(), 1);
}

/// S3.05: formulas are LaTeX, text boxes and notes are read, and what was deleted is not.
#[test]
fn formulas_boxes_and_notes_of_a_word_document_are_read_and_deletions_are_not() {
    let run = |text: &str| format!("<m:r><m:t>{text}</m:t></m:r>");
    let formula = format!(
        "<m:oMath><m:f><m:num>{}</m:num><m:den>{}</m:den></m:f></m:oMath>",
        run("a"),
        run("b")
    );
    let boxed = format!(
        "<w:p><w:r><mc:AlternateContent><mc:Choice Requires='wps'><wps:txbx><w:txbxContent>{}</w:txbxContent></wps:txbx>\
         </mc:Choice><mc:Fallback>{}</mc:Fallback></mc:AlternateContent></w:r></w:p>",
        paragraph("", "A box beside the text"),
        paragraph("", "A box beside the text"),
    );
    let body = format!(
        "<w:p><w:r><w:t>The share is</w:t></w:r>{formula}<w:del><w:r><w:delText>never</w:delText></w:r></w:del>\
         <w:ins><w:r><w:t>always.</w:t></w:r></w:ins></w:p>{boxed}"
    );
    let notes = format!(
        "<w:footnotes {WORD}><w:footnote w:type='separator' w:id='0'>{}</w:footnote><w:footnote w:id='2'>{}</w:footnote></w:footnotes>",
        paragraph("", "no note"),
        paragraph("", "Counted in May.")
    );
    let parsed = word(&body, &[("word/footnotes.xml", notes)]);
    assert_eq!(
        parsed.text,
        "The share is $\\frac{a}{b}$ always.\n\nA box beside the text\n\nCounted in May.\n"
    );
}

/// S3.05: a slide's title, list, merged table, the numbers behind its chart, its notes and comments, each slide a page.
#[test]
fn a_slide_is_a_page_with_title_list_table_chart_notes_and_comments() {
    let content = |text: &str| format!("<a:p><a:r><a:t>{text}</a:t></a:r></a:p>");
    let shape = |kind: &str, body: &str| {
        format!(
            "<p:sp><p:nvSpPr><p:nvPr><p:ph type='{kind}'/></p:nvPr></p:nvSpPr><p:txBody>{body}</p:txBody></p:sp>"
        )
    };
    let cell = |merged: &str, text: &str| {
        format!("<a:tc {merged}><a:txBody>{}</a:txBody></a:tc>", content(text))
    };
    let frame = |data: &str| {
        format!(
            "<p:graphicFrame><a:graphic><a:graphicData>{data}</a:graphicData></a:graphic></p:graphicFrame>"
        )
    };
    let table = format!(
        "<a:tbl><a:tr>{}{}</a:tr><a:tr>{}{}</a:tr></a:tbl>",
        cell("gridSpan='2'", "Both"),
        cell("hMerge='1'", ""),
        cell("", "one"),
        cell("", "two")
    );
    let slide = |shapes: &str| {
        format!("<p:sld {SLIDE}><p:cSld><p:spTree>{shapes}</p:spTree></p:cSld></p:sld>")
    };
    let first = [
        shape("title", &content("Results")),
        shape("body", &(content("good") + &content("better"))),
        frame(&table),
        frame("<c:chart r:id='rId1'/>"),
        frame("<dgm:relIds xmlns:dgm='d' r:dm='rId4'/>"),
        shape("sldNum", &content("1")),
    ];
    let list =
        "<p:sldIdLst><p:sldId id='256' r:id='rId1'/><p:sldId id='257' r:id='rId2'/></p:sldIdLst>";
    let parts = [
        ("ppt/presentation.xml", format!("<p:presentation {SLIDE}>{list}</p:presentation>")),
        (
            "ppt/_rels/presentation.xml.rels",
            relations(&[("rId1", "slide", "slides/b.xml"), ("rId2", "slide", "slides/a.xml")]),
        ),
        ("ppt/slides/b.xml", slide(&first.concat())),
        ("ppt/slides/a.xml", slide(&shape("title", &content("Thanks")))),
        (
            "ppt/slides/_rels/b.xml.rels",
            relations(&[
                ("rId1", "chart", "../charts/chart1.xml"),
                ("rId2", "notesSlide", "../notesSlides/n.xml"),
                ("rId3", "comments", "../comments/c.xml"),
                ("rId4", "diagramData", "../diagrams/data1.xml"),
            ]),
        ),
        (
            "ppt/diagrams/data1.xml",
            format!(
                "<dgm:dataModel xmlns:dgm='d' {SLIDE}><dgm:ptLst><dgm:pt type='doc'/><dgm:pt><dgm:t>{}</dgm:t></dgm:pt>\
                 <dgm:pt type='parTrans'><dgm:t><a:p/></dgm:t></dgm:pt><dgm:pt><dgm:t>{}</dgm:t></dgm:pt></dgm:ptLst></dgm:dataModel>",
                content("Plan"),
                content("Build")
            ),
        ),
        ("ppt/charts/chart1.xml", CHART.to_owned()),
        (
            "ppt/notesSlides/n.xml",
            format!("<p:notes {SLIDE}>{}</p:notes>", shape("body", &content("Speak slowly."))),
        ),
        (
            "ppt/comments/c.xml",
            format!("<p:cmLst {SLIDE}><p:cm><p:text>Is that so?</p:text></p:cm></p:cmLst>"),
        ),
    ];
    let parsed = read("a.pptx", &parts);
    assert_eq!(
        parsed.text,
        format!(
            "# Results\n\n- good\n- better\n\n| Both | Both |\n| - | - |\n| one | two |\n\n{SALES}\n\n\
             - Plan\n- Build\n\nSpeak slowly.\n\nIs that so?\n\n# Thanks\n"
        )
    );
    let page = |words: &str| parsed.page_at(parsed.text.find(words).unwrap());
    assert_eq!((page("Speak"), page("Thanks")), (Some(1), Some(2)));
}

/// S3.05: a sheet's groups of cells are tables, its merged cells are filled, formulas show their results, its charts their numbers.
#[test]
fn a_sheet_is_a_page_of_tables_with_results_merged_cells_charts_and_comments() {
    let text = |place: &str, text: &str| {
        format!("<c r='{place}' t='inlineStr'><is><t>{text}</t></is></c>")
    };
    let cells = format!(
        "<row r='1'>{}{}</row><row r='2'>{}<c r='B2'><v>12</v></c></row><row r='3'><c r='B3'><v>15</v></c></row>\
         <row r='4'>{}<c r='B4'><f>SUM(B2:B3)</f><v>27</v></c></row><row r='8'>{}</row>",
        text("A1", "Region"),
        text("B1", "Sales"),
        text("A2", "North"),
        text("A4", "All"),
        text("D8", "Set apart."),
    );
    let sheet = format!(
        "<worksheet {BOOK}><sheetData>{cells}</sheetData><mergeCells><mergeCell ref='A2:A3'/></mergeCells>\
         <drawing r:id='rId1'/></worksheet>"
    );
    let empty = format!(
        "<worksheet {BOOK}><sheetData><row r='1'>{}</row></sheetData></worksheet>",
        text("A1", "Last")
    );
    let book = format!(
        "<workbook {BOOK}><sheets><sheet name='May' sheetId='1' r:id='rId1'/><sheet name='June' sheetId='2' r:id='rId2'/></sheets></workbook>"
    );
    let parts = [
        ("_rels/.rels", relations(&[("rId1", "officeDocument", "xl/workbook.xml")])),
        ("xl/workbook.xml", book),
        (
            "xl/_rels/workbook.xml.rels",
            relations(&[
                ("rId1", "worksheet", "worksheets/sheet1.xml"),
                ("rId2", "worksheet", "worksheets/sheet2.xml"),
            ]),
        ),
        ("xl/worksheets/sheet1.xml", sheet),
        ("xl/worksheets/sheet2.xml", empty),
        (
            "xl/worksheets/_rels/sheet1.xml.rels",
            relations(&[
                ("rId1", "drawing", "../drawings/drawing1.xml"),
                ("rId2", "comments", "../comments1.xml"),
            ]),
        ),
        ("xl/drawings/drawing1.xml", "<d/>".to_owned()),
        (
            "xl/drawings/_rels/drawing1.xml.rels",
            relations(&[("rId1", "chart", "../charts/chart1.xml")]),
        ),
        ("xl/charts/chart1.xml", CHART.to_owned()),
        (
            "xl/comments1.xml",
            format!(
                "<comments {BOOK}><commentList><comment ref='B4'><text><t>Checked twice.</t></text></comment></commentList></comments>"
            ),
        ),
    ];
    let parsed = read("a.xlsx", &parts);
    assert_eq!(
        parsed.text,
        format!(
            "## May\n\n| Region | Sales |\n| - | - |\n| North | 12 |\n| North | 15 |\n| All | 27 |\n\nSet apart.\n\n{SALES}\n\n\
             Checked twice.\n\n## June\n\nLast\n"
        )
    );
    assert_eq!(parsed.page_at(parsed.text.find("Last").unwrap()), Some(2));
}

/// S3.05
#[test]
fn a_cell_has_its_unit_and_the_part_of_a_time_that_it_shows() {
    let cells = [("A", 1, "0.15"), ("B", 2, "1234.5"), ("C", 3, "45000"), ("D", 4, "0.5")];
    let cells =
        cells.map(|(x, style, value)| format!("<c r='{x}1' s='{style}'><v>{value}</v></c>"));
    let row = format!("<row r='1'>{}<c r='E1'><v>0.15</v></c></row>", cells.concat());
    let table = "| 15% | 1234.5 EUR | 2023-03-15 | 12:00:00 | 0.15 |\n| - | - | - | - | - |\n";
    assert_eq!(book("", &row).unwrap().text, format!("## May\n\n{table}"));
}

/// Each kind of bad cell costs that cell: the others are read, and a warning names the sheet.
#[test]
fn a_bad_cell_of_a_sheet_costs_that_cell_and_a_warning() {
    let bad = [
        "<c r='B1' t='e'><v>#SPILL!</v></c>",
        "<c r='B1' t='e'><v>#CALC!</v></c>",
        "<c r='B1' t='e'><v>#FIELD!</v></c>",
        "<c r='B1' t='s'><v>7</v></c>",
        "<c r='B1' t='s'><v>-1</v></c>",
        "<c r='B1' t='s'><v>first</v></c>",
        "<c r='B1' t=\"s\" s='0'><v>0.5</v></c>",
        "<c t='s' r='B1'><v>&#48;</v></c>",
        "<c r='B1' t='s'><v>18446744073709551616</v></c>",
        "<c r='B1' t='n'><v>many</v></c>",
        "<c r='B1' t='b'><v>perhaps</v></c>",
        "<c r='B1' t='new'><v>1</v></c>",
        "<c r='1B' t='n'><v>1</v></c>",
        "<c r='B' t='n'><v>1</v></c>",
        "<c r='$B$1' t='n'><v>1</v></c>",
        "<c r='B0' t='n'><v>1</v></c>",
        "<c r='XFE1' t='n'><v>1</v></c>",
        "<c r='ZZZZZZZZZ1' t='n'><v>1</v></c>",
        "<c r='A99999999999' t='n'><v>1</v></c>",
        "<c r='B1'><w>1</w></c>",
    ];
    for cell in bad {
        let cells = format!(
            "<row r='1'><c r='A1'><v>1</v></c>{cell}<c r='C1'><v>3</v></c></row><row r='2'><c r='A2'><v>4</v></c></row>"
        );
        let parsed = book("", &cells).unwrap_or_else(|error| panic!("{cell}: {error}"));
        for number in ["1", "3", "4"] {
            assert!(parsed.text.contains(number), "{cell}: {}", parsed.text);
        }
        let [Warning::CellsUnread { sheet, count: 1, .. }] = &parsed.warnings[..] else {
            panic!("{cell}: {:?}", parsed.warnings)
        };
        assert!(sheet == "May" && !parsed.text.contains("first"), "{cell}: {}", parsed.text);
        // Where there is nothing else, the document is refused.
        let alone = book("", &format!("<row r='1'>{cell}</row>"));
        assert!(matches!(alone, Err(Error::Broken { .. })), "{cell}: {alone:?}");
    }
    for cell in
        ["<c r='A1' t='s'><v> 0 </v></c>", "<c r='A1' t='s'/><c r='B1' t='s'><v>0.0</v></c>"]
    {
        let parsed = book("", &format!("<row r='1'>{cell}</row>")).unwrap();
        assert!(parsed.text.contains("first") && parsed.warnings.is_empty(), "{cell}: {parsed:?}");
    }
    let cut_off = book("", "<row r='1'><c r='A1'><v>1</v></c><c r='B1'><v>2").unwrap();
    assert!(matches!(cut_off.warnings[..], [Warning::CellsUnread { .. }]), "{cut_off:?}");
}

#[test]
fn the_declared_extent_of_a_sheet_costs_no_memory() {
    let cells = "<row r='1'><c r='A1'><v>17</v></c></row>";
    for wrong in [
        "ref='A1:'",
        "ref=''",
        "",
        "ref='$A$1:$B$2'",
        "ref='A:C'",
        "ref='A1:B2:C3'",
        "ref='B2:A1'",
        "ref='A1:XFD1048576'",
    ] {
        let parsed = book(&format!("<dimension {wrong}/>"), cells)
            .unwrap_or_else(|error| panic!("{wrong}: {error}"));
        assert_eq!(parsed.text, "## May\n\n17\n", "{wrong}");
        assert!(parsed.warnings.is_empty(), "{wrong}: {:?}", parsed.warnings);
    }
}

#[test]
fn cells_that_are_far_apart_are_read_without_the_space_between_them() {
    let far = "<row r='1'><c r='A1'><v>17</v></c></row><row r='1048576'><c r='XFD1048576'><v>18</v></c></row>";
    assert_eq!(book("", far).unwrap().text, "## May\n\n17\n\n18\n");
    // Along two edges, and scattered so that they are too many tables.
    let row: String = (0..300).map(|n| format!("<c><v>{n}</v></c>")).collect();
    let column: String =
        (2..600).map(|n| format!("<row r='{n}'><c r='A{n}'><v>{n}</v></c></row>")).collect();
    let edges = book("", &format!("<row r='1'>{row}</row>{column}")).unwrap().text;
    assert!(edges.contains("298 | 299") && edges.contains("599"), "{} bytes", edges.len());
    assert!(edges.len() < 20_000, "{} bytes", edges.len());
    let scattered: String = (0..2500)
        .map(|n| format!("<row r='{0}'><c r='A{0}'><v>{n}</v></c></row>", n * 400 + 1))
        .collect();
    let wide = "<row r='1048576'><c r='XFD1048576'><v>18</v></c></row>";
    let text = book("", &(scattered + wide)).unwrap().text;
    assert!(text.contains("2499") && text.len() < 40_000, "{} bytes", text.len());
}

#[test]
fn an_empty_workbook_is_refused_and_formulas_without_results_are_shown() {
    assert!(matches!(book("", ""), Err(Error::NoText)));
    assert!(matches!(book("", "<row r='1'><c r='A1' s='0'/></row>"), Err(Error::NoText)));
    let parsed = book("", "<row r='1'><c r='A1'><f>SUM(B1:B2)</f></c></row>").unwrap();
    assert_eq!(parsed.text, "## May\n\n=SUM(B1:B2)\n");
    assert_eq!(parsed.warnings, [Warning::FormulasWithoutResults { count: 1 }]);
}

#[test]
fn headers_footers_and_comments_of_a_word_document_are_read() {
    let header = |text: &str| format!("<w:hdr {WORD}>{}</w:hdr>", paragraph("", text));
    let comment = format!(
        "<w:comments {WORD}><w:comment w:id='0' w:author='Ben Brook'>{}</w:comment></w:comments>",
        paragraph("", "Is that so?")
    );
    let more = [
        (
            "word/_rels/document.xml.rels",
            relations(&[
                ("rId1", "header", "header1.xml"),
                ("rId2", "header", "header2.xml"),
                ("rId3", "footer", "footer1.xml"),
                ("rId4", "comments", "comments.xml"),
                ("rId5", "footer", "footer2.xml"),
            ]),
        ),
        ("word/header1.xml", header("Strictly confidential")),
        ("word/header2.xml", header("Strictly confidential")),
        ("word/footer1.xml", header("1")),
        ("word/footer2.xml", "<w:ftr".to_owned()),
        ("word/comments.xml", comment),
    ];
    let parsed = word(&paragraph("", "The rent is 800."), &more);
    assert_eq!(
        parsed.text,
        "The rent is 800.\n\nStrictly confidential\n\nBen Brook: Is that so?\n"
    );
    assert_eq!(parsed.warnings, [Warning::PartsUnread { parts: vec!["word/footer2.xml".into()] }]);
}

#[test]
fn a_damaged_part_costs_that_part_and_a_warning() {
    for part in ["word/styles.xml", "word/numbering.xml", "word/footnotes.xml", "docProps/core.xml"]
    {
        let parsed = word(&paragraph("", "Words."), &[(part, "<w:broken".to_owned())]);
        assert_eq!(parsed.text, "Words.\n");
        assert_eq!(parsed.warnings, [Warning::PartsUnread { parts: vec![part.to_owned()] }]);
    }
}
