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
fn titles_of_pages_are_read_once_their_numbers_never_and_amounts_at_the_edge_always() {
    let pages = |tops: [&str; 4], bottoms: [&str; 4]| {
        let page = |(top, bottom): (&&str, &&str)| {
            line(72, 760, 10, top)
                + &line(72, 400, 10, "The text of the page.")
                + &line(72, 30, 10, bottom)
        };
        let pages: Vec<String> = tops.iter().zip(&bottoms).map(page).collect();
        read(&pages.iter().map(String::as_str).collect::<Vec<_>>()).text
    };
    let once = ["The annual report"; 4];
    let report = "The annual report\n\n";
    for gone in [
        ["Page 1", "Page 2", "Page 3", "Page 4"],
        ["Page 9 of 12", "Page 10 of 12", "Page 11 of 12", "Page 12 of 12"],
        ["7", "8", "9", "10"],
        ["- 1 -", "- 2 -", "- 3 -", "- 4 -"],
        ["17 Chapter 3.2", "Chapter 3.2 18", "19 Chapter 3.2", "Chapter 3.2 20"],
    ] {
        let text = pages(once, gone);
        let body = ["The text of the page."; 4].join("\n\n");
        assert_eq!(text.trim(), format!("{report}{body}"), "{gone:?}");
    }
    for (foot, first) in [
        (["Printed in 2026."; 4], "Printed in 2026."),
        (
            [
                "IBAN DE44 5001 0517, page 1",
                "IBAN DE44 5001 0517, page 2",
                "IBAN DE44 5001 0517, page 3",
                "IBAN DE44 5001 0517, page 4",
            ],
            "IBAN DE44 5001 0517, page 1",
        ),
        // Two pages of four.
        (["Contract of Alpha", "Contract of Alpha", "", ""], "Contract of Alpha"),
    ] {
        let text = pages(once, foot);
        let body = ["The text of the page."; 3].join("\n\n");
        let expected = format!("{report}The text of the page.\n\n{first}\n\n{body}");
        assert_eq!(text.trim(), expected, "{foot:?}");
    }
    for stays in [
        ["Carried forward 1,200.00", "Carried forward 950.00", "Carried forward 80.00", "Sum 1"],
        ["Sum 1,000.00", "Sum 2,000.00", "Sum 3,000.00", "Sum 4,000.00"],
        ["12 300", "7 40", "950 8", "3 11"],
        ["1200", "1200", "1200", "1200"],
        ["5.01", "5.02", "5.03", "5.04"],
        ["10", "11", "300", "4000"],
        ["Invoice 1001", "Invoice 1002", "Invoice 1003", "Invoice 1004"],
        ["Result of 2021", "Result of 2022", "Result of 2023", "Result of 2024"],
    ] {
        let text = pages(once, stays);
        let read: Vec<&str> =
            text.split_whitespace().filter(|word| word.ends_with(char::is_numeric)).collect();
        let all = stays.join(" ");
        let all: Vec<&str> =
            all.split(' ').filter(|word| word.ends_with(char::is_numeric)).collect();
        assert_eq!(read, all, "{text}");
        assert_eq!(text.matches("annual").count(), 1, "{text}");
    }
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

/// What the codes of an embedded font are.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Codes {
    Glyphs,
    Unicode,
}

/// A font of blank glyphs for these letters, the first of which is glyph 1.
fn font(letters: &[char], with_letters: bool) -> Vec<u8> {
    let glyphs = u16::try_from(letters.len() + 1).unwrap();
    let wide =
        |values: &[u16]| values.iter().flat_map(|one| one.to_be_bytes()).collect::<Vec<u8>>();
    let mut groups: Vec<(u32, u32)> =
        letters.iter().map(|c| u32::from(*c)).zip(1..).filter(|_| with_letters).collect();
    groups.sort_unstable();
    let mut cmap = wide(&[0, 1, 3, 10, 0, 12, 12, 0]);
    let count = u32::try_from(groups.len()).unwrap();
    cmap.extend([16 + 12 * count, 0, count].iter().flat_map(|one| one.to_be_bytes()));
    cmap.extend(groups.iter().flat_map(|(c, id)| [*c, *c, *id]).flat_map(u32::to_be_bytes));
    let mut head = vec![0; 54];
    head[..4].copy_from_slice(&[0, 1, 0, 0]);
    head[12..16].copy_from_slice(&[0x5F, 0x0F, 0x3C, 0xF5]);
    head[18..20].copy_from_slice(&1000u16.to_be_bytes());
    let mut hhea = wide(&[1, 0, 800, 200]);
    hhea.resize(34, 0);
    hhea.extend(glyphs.to_be_bytes());
    let mut maxp = wide(&[1, 0, glyphs]);
    maxp.resize(32, 0);
    let tables: [(&[u8; 4], Vec<u8>); 7] = [
        (b"cmap", cmap),
        (b"glyf", vec![0; 4]),
        (b"head", head),
        (b"hhea", hhea),
        (b"hmtx", wide(&[500, 0]).repeat(glyphs.into())),
        (b"loca", vec![0; 2 * (usize::from(glyphs) + 1)]),
        (b"maxp", maxp),
    ];
    let mut font = wide(&[1, 0, 7, 64, 2, 48]);
    let mut place = 12 + 16 * 7;
    for (name, table) in &tables {
        font.extend(*name);
        font.extend([0, place, table.len()].iter().flat_map(|one| (*one as u32).to_be_bytes()));
        place += table.len().next_multiple_of(4);
    }
    for (_, mut table) in tables {
        table.resize(table.len().next_multiple_of(4), 0);
        font.extend(table);
    }
    font
}

/// A page that shows words, as painted from the left, in a font without a map to letters.
fn embedded(words: &str, codes: Codes, with_letters: bool, to_unicode: &str) -> Vec<u8> {
    let mut letters: Vec<char> = words.chars().collect();
    letters.sort_unstable();
    letters.dedup();
    let id = |c: char| 1 + letters.iter().position(|own| *own == c).unwrap();
    let code = |c: char| if codes == Codes::Glyphs { id(c) } else { c as usize };
    let hex: String = words.chars().map(|c| format!("{:04X}", code(c))).collect();
    let stream = |entries: &str, bytes: &[u8]| {
        let head = format!("<< {entries} /Length {} >>\nstream\n", bytes.len());
        [head.as_bytes(), bytes, b"\nendstream"].concat()
    };
    let mut table = vec![0; 0x10000 * 2];
    for c in &letters {
        table[2 * *c as usize..][..2]
            .copy_from_slice(&u16::try_from(id(*c)).unwrap().to_be_bytes());
    }
    let map = if codes == Codes::Glyphs { "/Identity" } else { "9 0 R" };
    let own = if to_unicode.is_empty() { "" } else { "/ToUnicode 10 0 R" };
    let objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>".to_vec(),
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_vec(),
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F 5 0 R >> >> /Contents 4 0 R >>".to_vec(),
        stream("", format!("BT /F 10 Tf 72 700 Td <{hex}> Tj ET").as_bytes()),
        format!("<< /Type /Font /Subtype /Type0 /BaseFont /Own /Encoding /Identity-H /DescendantFonts [6 0 R] {own} >>").into_bytes(),
        format!("<< /Type /Font /Subtype /CIDFontType2 /BaseFont /Own /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> /FontDescriptor 7 0 R /DW 500 /CIDToGIDMap {map} >>").into_bytes(),
        b"<< /Type /FontDescriptor /FontName /Own /Flags 4 /FontFile2 8 0 R >>".to_vec(),
        stream("", &font(&letters, with_letters)),
        stream("", &table),
        stream("", to_unicode.as_bytes()),
        b"<< >>".to_vec(),
    ];
    support::file(&objects)
}

#[test]
fn letters_without_a_map_are_read_by_the_names_or_codes_of_their_font() {
    let arabic = "السلام عليكم 100";
    // Painted from the left.
    let painted = "100 مكيلع مالسلا";
    let read = |words: &str, codes, with_letters| {
        parse(&embedded(words, codes, with_letters, ""), "x.pdf", &Limits::default())
    };
    for (words, expected) in [(painted, arabic), ("Итого 100 штук", "Итого 100 штук")]
    {
        for (codes, with_letters) in
            [(Codes::Glyphs, true), (Codes::Unicode, true), (Codes::Unicode, false)]
        {
            let parsed = read(words, codes, with_letters).unwrap();
            assert_eq!(parsed.text.trim(), expected, "{codes:?}, {with_letters}");
        }
    }
    // Where neither says it, nothing is made up.
    let unknown = read(painted, Codes::Glyphs, false);
    assert!(matches!(unknown, Err(Error::Broken { .. })), "{unknown:?}");
}

#[test]
fn letters_that_a_font_names_wrongly_are_reported_as_doubtful() {
    let parsed = read(&["BT /R 10 Tf 72 700 Td (adccccbe eccca becccca) Tj ET"]);
    assert_eq!(parsed.warnings, [Warning::DoubtfulLetters { pages: vec![1] }]);
}

/// Paints a text as programs that have no bold letters do: `times`, each a little beside the one before.
fn repeated(text: &str, (right, up): (f64, f64), times: u32, by: &str) -> String {
    let mut content = String::new();
    let mut paint = |text: &str, right: f64, up: f64| {
        content +=
            &format!("BT /F 12 Tf {:.2} {:.2} Td ({text}) Tj ET\n", 72.0 + right, 700.0 + up);
    };
    match by {
        "text" => (0..times).for_each(|n| paint(text, right * f64::from(n), up * f64::from(n))),
        "word" => {
            let mut left = 0.0;
            for word in text.split_inclusive(' ') {
                (0..times)
                    .for_each(|n| paint(word, left + right * f64::from(n), up * f64::from(n)));
                left += width(word);
            }
        }
        _ => {
            let mut left = 0.0;
            for letter in text.chars().map(String::from) {
                (0..times)
                    .for_each(|n| paint(&letter, left + right * f64::from(n), up * f64::from(n)));
                left += width(&letter);
            }
        }
    }
    content
}

/// The width of a text in Helvetica at 12 points.
fn width(text: &str) -> f64 {
    let of = |c: char| match c {
        'i' | 'l' => 222,
        't' | ' ' | '.' | ',' => 278,
        'f' => 278,
        'r' => 333,
        'k' | 's' | 'c' | 'y' => 500,
        'm' => 833,
        'A' => 667,
        _ => 556,
    };
    text.chars().map(of).sum::<u32>() as f64 * 12.0 / 1000.0
}

#[test]
fn text_painted_twice_for_a_bold_look_or_a_shadow_is_read_once() {
    let text = "Amount due 100 till 11.11, all bills";
    let offsets = [
        (0.0, 0.0),
        (0.2, 0.0),
        (0.5, 0.0),
        (0.9, 0.0),
        (0.3, -0.3),
        (1.0, -1.0),
        (2.0, -2.0),
        (-1.5, 1.5),
    ];
    for offset in offsets {
        for by in ["text", "word", "letter"] {
            // Single letters that move on for most of an "l" could be letters of the word.
            let most = if by == "letter" && offset == (0.9, 0.0) { 2 } else { 3 };
            for times in 2..=most {
                let parsed = read(&[&repeated(text, offset, times, by)]);
                assert_eq!(parsed.text.trim(), text, "{offset:?}, {times} times by {by}");
            }
        }
    }
    let outlined = read(&["BT /F 12 Tf 2 Tr 72 700 Td (Amount due 100) Tj ET"]);
    assert_eq!(outlined.text, "Amount due 100\n");
}

#[test]
fn equal_letters_above_and_beside_each_other_are_all_read() {
    let paint =
        |x: f64, y: f64, text: &str| format!("BT /F 12 Tf {x:.2} {y:.2} Td ({text}) Tj ET\n");
    let mut wave = String::new();
    let mut left = 72.0;
    for (n, letter) in "illicit bill".chars().map(String::from).enumerate() {
        wave += &paint(left, 600.0 + 3.0 * (n as f64).sin(), &letter);
        left += width(&letter);
    }
    let raised = "BT /F 12 Tf 72 700 Td (i) Tj 4 Ts (i) Tj 0 Ts ( and 1) Tj 3.5 Ts (1) Tj ET\n";
    let stacked = paint(72.0, 700.0, "-") + &paint(72.0, 697.0, "-") + &paint(90.0, 700.0, "equal");
    for (content, expected) in
        [(wave.as_str(), "illicit bill"), (raised, "ii and 11"), (stacked.as_str(), "-- equal")]
    {
        assert_eq!(read(&[content]).text.trim(), expected);
    }
}

#[test]
fn lines_that_are_askew_are_read_in_order() {
    let lines = [
        "All bills of the year will fill till 1111 illegally ''quoted'' files",
        "unless both of the parties agree in writing before the end of the year",
        "in which the price of the goods has been paid in full by the buyer",
    ];
    for degrees in [-7.0_f64, -5.0, -3.0, -2.0, -1.0, 0.5, 1.5, 2.4, 2.6, 3.0, 4.5, 6.0, 9.0, 11.0]
    {
        let (sin, cos) = degrees.to_radians().sin_cos();
        let at = |(n, text): (usize, &&str)| {
            let down = 14.0 * n as f64;
            let x = 72.0 + sin * down;
            let y = 500.0 - cos * down;
            format!(
                "BT /F 12 Tf {cos:.5} {sin:.5} {:.5} {cos:.5} {x:.2} {y:.2} Tm ({text}) Tj ET\n",
                -sin
            )
        };
        let content: String = lines.iter().enumerate().map(at).collect();
        assert_eq!(read(&[&content]).text.trim(), lines.join(" "), "{degrees} degrees");
    }
}

#[test]
fn turned_text_is_read_in_its_own_direction() {
    let at = |cos: f64, sin: f64, x: u32, y: u32, text: &str| {
        format!("BT /F 10 Tf {cos} {sin} {} {cos} {x} {y} Tm ({text}) Tj ET\n", -sin)
    };
    let level =
        line(72, 700, 10, "A line that is level.") + &line(72, 688, 10, "And a second one.");
    for (cos, sin, steps) in [(0.0, 1.0, (12, 0)), (0.0, -1.0, (-12, 0)), (-1.0, 0.0, (0, 12))] {
        let mut turned = String::new();
        for (n, text) in ["First turned line,", "which runs on here."].iter().enumerate() {
            let step = |by: i32| (300 + by * n as i32) as u32;
            turned += &at(cos, sin, step(steps.0), step(steps.1), text);
        }
        let expected = "First turned line, which runs on here.";
        let both = read(&[&(level.clone() + &turned)]).text;
        assert_eq!(both, format!("A line that is level. And a second one.\n\n{expected}\n"));
        // A page of nothing else, and several that begin alike.
        assert_eq!(read(&[&turned]).text, format!("{expected}\n"));
        let many = read(&[&turned, &turned, &turned]).text;
        assert_eq!(many.matches(expected).count(), 3, "{many}");
    }
    // A sign across the page does not get between the words of its lines.
    let half = 0.5_f64.sqrt();
    let marked = level + &at(half, half, 70, 650, "CONFIDENTIAL");
    assert_eq!(read(&[&marked]).text, "A line that is level. And a second one.\n\nCONFIDENTIAL\n");
}

#[test]
fn letters_that_are_spread_make_words() {
    let spread = |size: u32, space: f64, text: &str| {
        format!("BT /F {size} Tf {space} Tc 72 700 Td ({text}) Tj ET\n")
            + &line(72, 660, 10, "Plain words follow.")
    };
    for (size, space) in [(10, 2.0), (10, 3.5), (10, 6.0), (20, 5.0), (20, 10.0), (10, 0.5)] {
        let text = read(&[&spread(size, space, "ANNUAL REPORT OF THE BOARD")]).text;
        assert!(text.contains("ANNUAL REPORT OF THE BOARD"), "{size} and {space}: {text}");
    }
    let one = read(&[&spread(10, 3.0, "SUMMARY")]).text;
    assert!(one.starts_with("SUMMARY\n"), "{one}");
    // Written with spaces: those between words are wider.
    let typed = read(&[&spread(10, 0.0, "S U M M A R Y   O F   T H E   Y E A R")]).text;
    assert!(typed.starts_with("SUMMARY OF THE YEAR\n"), "{typed}");
    // Words of one letter, and numbers, are words.
    for text in ["a b c d e f", "1 2 3 4 5 6"] {
        let read = read(&[&spread(10, 0.0, text)]).text;
        assert!(read.starts_with(&format!("{text}\n")), "{read}");
    }
}

#[test]
fn condensed_letters_make_words_and_texts_at_one_place_do_not_mix() {
    let below = line(72, 660, 10, "Plain words follow.");
    for percent in [30, 50, 70, 120] {
        let condensed =
            format!("BT /F 10 Tf {percent} Tz 72 700 Td (All words apart) Tj 100 Tz ET\n");
        let text = read(&[&(condensed + &below)]).text;
        assert!(text.starts_with("All words apart\n"), "{percent}: {text}");
    }
    // A corrected sum, painted over the old one.
    let over = line(72, 700, 10, "Total 100 dollars") + &line(72, 700, 10, "SUM OF 250 EUROS");
    let text = read(&[&(over + &below)]).text;
    assert!(text.contains("Total 100 dollars") && text.contains("SUM OF 250 EUROS"), "{text}");
}

#[test]
fn a_short_page_of_text_is_no_scan() {
    assert_eq!(read(&["BT /F 10 Tf 72 700 Td (Paid) Tj ET"]).text, "Paid\n");
}

#[test]
fn a_page_with_more_letters_than_are_read_is_reported() {
    let words = "letters ".repeat(125);
    let lines = (0..240).map(|n| format!("BT /F 1 Tf 72 {} Td ({words}) Tj ET\n", 780 - 3 * n));
    let long: String = lines.collect();
    let parsed = read(&[&line(72, 700, 10, "A page of words."), &long]);
    assert_eq!(parsed.warnings, [Warning::PartsCut { parts: vec!["page 2".to_owned()] }]);
}

#[test]
fn pages_without_text_and_damaged_files_are_named() {
    let empty = parse(&pdf(&["0 0 m 100 100 l S"]), "x.pdf", &Limits::default());
    assert!(matches!(empty, Err(Error::Scan { pages: 1, .. })), "{empty:?}");
    let broken = parse(b"%PDF-1.4\nrubbish", "x.pdf", &Limits::default());
    assert!(matches!(broken, Err(Error::Broken { .. })), "{broken:?}");
    let many = vec!["0 0 m"; 30];
    let limits = Limits { pages: 20, ..Limits::default() };
    assert!(matches!(parse(&pdf(&many), "x.pdf", &limits), Err(Error::TooManyPages { .. })));
}

/// Each kind of bad entry of a map costs that entry alone.
#[test]
fn a_character_map_with_a_bad_entry_is_read_without_that_entry() {
    let letters = "3 beginbfchar <0001> <0020> <0002> <0041> <0003> <0042> endbfchar";
    for bad in [
        "1 beginbfchar <0009> <> endbfchar",
        "1 beginbfrange <0007> <0009> [<0061>] endbfrange",
        "/Unknown usecmap",
        "1 beginbfchar <0009> /name endbfchar",
        "1 beginbfrange <0007> <0009> endbfrange",
    ] {
        for map in [format!("{letters} {bad}"), format!("{bad} {letters}")] {
            let file = embedded("AB BA", Codes::Glyphs, false, &map);
            let parsed = parse(&file, "x.pdf", &Limits::default());
            assert_eq!(parsed.map(|parsed| parsed.text).ok().as_deref(), Some("AB BA\n"), "{map}");
        }
    }
    let ranges = "2 beginbfrange <0001> <0001> [<0020>] <0002> <0003> <0041> endbfrange 1 beginbfchar <0009> <> endbfchar";
    let file = embedded("AB BA", Codes::Glyphs, false, ranges);
    assert_eq!(parse(&file, "x.pdf", &Limits::default()).unwrap().text, "AB BA\n");
}
