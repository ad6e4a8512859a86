//! Texts of RTF files, and what is read of them.

use super::*;

fn read(rtf: &[u8]) -> Parsed {
    parse(rtf, &Limits::default()).unwrap()
}

#[test]
fn text_headings_lists_tables_and_notes_are_read() {
    let parsed = read(
        br"{\rtf1\ansi\ansicpg1252\deff0{\fonttbl{\f0 Times;}{\f1\fcharset204 Arial;}{\f2\fcharset128 MS;}}
{\stylesheet{\s0 Normal;}{\s1\outlinelevel0 heading 1;}}{\colortbl;\red0;}{\info{\title The lease}{\author Ann Archer}}
{\*\generator Made by hand}\pard\s1 Rent\par\pard Gr\'f6\'dfe 12\~\'80, {\b bold} and {\v hidden}\u8364 ?{\uc2\u-10179??\u-8704??}.\par
{\f1 \'e4\'e0}{\f2 \'93\'fa\'96\'7b}{\footnote A note.}\par
\pard{\listtext\f3\'b7\tab}One\par{\listtext 2.\tab}Two\par
\trowd\pard\intbl a\cell b\cell\row\trowd\pard\intbl 1\cell 2\par 3\cell\row\pard
{\field{\*\fldinst HYPERLINK x}{\fldrslt A link}}{\pict 0102}\par{\header Secret}}",
    );
    assert_eq!(
        parsed.text,
        "# Rent\n\nGröße 12 €, bold and €😀.\n\nда日本\n\n- One\n2. Two\n\n\
         | a | b |\n| - | - |\n| 1 | 2 3 |\n\nA link\n\nA note.\n\nSecret\n"
    );
    assert_eq!(parsed.title.as_deref(), Some("The lease"));
    assert_eq!(parsed.authors, ["Ann Archer"]);
    assert!(parsed.warnings.is_empty(), "{:?}", parsed.warnings);
}

/// As Word writes them: a note has a paragraph of its own within that of its sign.
#[test]
fn a_note_changes_neither_the_style_nor_the_table_around_it() {
    let parsed = read(
        br"{\rtf1{\stylesheet{\s0 Normal;}{\s1 heading 1;}{\s17 footnote text;}}
\pard\plain \s1 Results{\footnote \pard\plain \s17 See annex.}\par
\trowd\pard\intbl first{\footnote \pard\plain note} line\par second\cell b\cell\row
\trowd\pard\intbl 1\cell 2\cell\row\pard The end}",
    );
    assert_eq!(
        parsed.text,
        "# Results\n\n| first line second | b |\n| - | - |\n| 1 | 2 |\n\nThe end\n\nSee annex.\n\nnote\n"
    );
    assert_eq!(read(br"{\rtf1\pard\outlinelevel0 Last}").text, "# Last\n");
}

#[test]
fn letters_are_read_in_the_code_page_of_their_font_and_hidden_ones_end_with_it() {
    let fonts = r"{\fonttbl{\f0\fcharset204 Arial;}{\f1\fcharset89 Geneva;}{\f2 Times;}}";
    for (text, expected) in [
        (r"\ansi\deff0FONTS\cf0 \'cf\'f0\'e8\'e2\'e5\'f2", "Привет"),
        (r"\ansi\deff0FONTS{\f2 \'fc}\f2 \'fc\plain \'e4\'e0", "üüда"),
        (r"\ansi\deff1FONTS\'8f\'f0\'e8\'e2\'e5\'f2", "Привет"),
        (r"\ansi\deff2\ansicpg10007FONTS\'8f\'f0\'e8", "При"),
        (r"\ansi\ansicpg932 \'95\\ \'83\\", "表 ソ"),
        (r"\ansi\ansicpg932 \'83\{\'83\}\'83A", "ボマア"),
        (r"\ansi\ansicpg932\uc2\u34920\'95\\ \{a\}\\", "表 {a}\\"),
        (r"\ansi\v secret\plain visible", "visible"),
        (r"\ansi a\v secret\v0 b{\deleted c\plain d}", "abd"),
    ] {
        let text = format!("{{\\rtf1{}}}", text.replace("FONTS", fonts));
        assert_eq!(read(text.as_bytes()).text.trim(), expected, "{text}");
    }
}

#[test]
fn a_file_that_is_cut_off_or_nests_without_end_ends_as_well() {
    let cut = read(br"{\rtf1 Half of {\b it");
    assert_eq!(cut.text, "Half of it\n");
    assert!(matches!(cut.warnings[..], [Warning::PartsUnread { .. }]));
    let deep = [b"{\\rtf1".to_vec(), vec![b'{'; 1 << 20]].concat();
    assert!(matches!(parse(&deep, &Limits::default()), Err(Error::Broken { .. })));
}

#[test]
fn the_properties_of_a_shape_are_left_out_and_its_text_is_read() {
    let parsed = read(
        br"{\rtf1 Before.\par {\shp{\*\shpinst\shpleft1{\sp{\sn shapeType}{\sv 202}}{\sp{\sn wzName}{\sv Text Box 2}}{\shptxt Inside.\par}}{\shprslt{\*\do\dobxpage{\dptxbxtext Inside.\par}}}}After.\par}",
    );
    assert_eq!(parsed.text, "Before.\n\nInside.\n\nAfter.\n");
}
