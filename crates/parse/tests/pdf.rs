//! PDF files written here by hand: pages, headings, columns, tables, and what gives no text.
#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

#[path = "support/pdf.rs"]
mod support;

use perihelion_parse::{Error, Limits, Parsed, Warning, parse};

use self::support::pdf;

fn line(x: u32, y: u32, size: u32, text: &str) -> String {
    format!("BT /F {size} Tf {x} {y} Td ({text}) Tj ET\n")
}

fn read(pages: &[&str]) -> Parsed {
    parse(&pdf(pages), "x.pdf", &Limits::default()).unwrap()
}

#[test]
fn pages_headings_and_paragraphs_are_found() {
    let first = [
        line(72, 700, 20, "Annual report"),
        line(72, 660, 10, "The year was good in every respect, and the com-"),
        line(72, 648, 10, "pany grew. More is said below."),
    ];
    let second = [line(72, 700, 10, "The second page says little.")];
    let parsed = read(&[&first.concat(), &second.concat()]);
    assert_eq!(
        parsed.text,
        "# Annual report\n\nThe year was good in every respect, and the company grew. More is said below.\n\nThe second page says little.\n"
    );
    assert_eq!(parsed.title.as_deref(), Some("Annual report"));
    assert_eq!(parsed.authors, ["Ann Archer"]);
    let at = parsed.text.find("second").unwrap();
    assert_eq!(parsed.page_at(at), Some(2));
    assert_eq!(parsed.page_at(3), Some(1));
}

#[test]
fn two_columns_are_read_one_after_the_other() {
    let mut content = line(
        72,
        740,
        10,
        "A title that stands over both of the columns of this page, from left to right.",
    );
    for row in 0..8 {
        let y = 700 - 12 * row;
        content += &line(72, y, 10, &format!("left column row {row} with its own words"));
        content += &line(330, y, 10, &format!("right column row {row} with other words"));
    }
    let text = read(&[&content]).text;
    let place = |words: &str| text.find(words).unwrap();
    assert!(place("A title") < place("left column row 0"));
    assert!(place("left column row 7") < place("right column row 0"), "{text}");
}

#[test]
fn aligned_cells_become_a_table() {
    let mut content = String::new();
    for (row, cells) in [["Name", "Age"], ["Ann", "31"], ["Ben", "29"]].iter().enumerate() {
        let y = 700 - 14 * row as u32;
        content += &line(72, y, 10, cells[0]);
        content += &line(300, y, 10, cells[1]);
    }
    let parsed = read(&[&content]);
    assert_eq!(parsed.text, "| Name | Age |\n| - | - |\n| Ann | 31 |\n| Ben | 29 |\n");
    assert_eq!(parsed.tables.len(), 1);
}

#[test]
fn writing_from_right_to_left_is_read_with_its_ligatures_and_foreign_names() {
    let right = |x: u32, y: u32, text: &str| format!("BT /R 10 Tf {x} {y} Td ({text}) Tj ET\n");
    // Painted from the left: a word with a ligature, a name that touches the next word, and that word.
    let content =
        right(72, 700, "eAa ddc bbae") + &line(140, 700, 10, "Rust") + &right(158, 700, "be");
    let parsed = read(&[&content]);
    assert_eq!(parsed.text, "ين Rust يمنن وذذ ملاي\n");
    assert_eq!(parsed.warnings, [Warning::DoubtfulOrder { pages: vec![1] }]);
}

#[test]
fn letters_that_a_font_names_wrongly_are_said_to_be_doubtful() {
    let parsed = read(&["BT /R 10 Tf 72 700 Td (adccccbe eccca becccca) Tj ET"]);
    assert_eq!(parsed.warnings, [Warning::DoubtfulLetters { pages: vec![1] }]);
}

#[test]
fn pages_without_text_and_damaged_files_are_named() {
    let empty = parse(&pdf(&["0 0 m 100 100 l S"]), "x.pdf", &Limits::default());
    assert!(matches!(empty, Err(Error::Scan { pages: 1 })), "{empty:?}");
    let broken = parse(b"%PDF-1.4\nrubbish", "x.pdf", &Limits::default());
    assert!(matches!(broken, Err(Error::Broken { .. })), "{broken:?}");
    let many = vec!["0 0 m"; 30];
    let limits = Limits { pages: 20, ..Limits::default() };
    assert!(matches!(parse(&pdf(&many), "x.pdf", &limits), Err(Error::TooManyPages { .. })));
}
