//! Makes invisible characters and control sequences visible in foreign text.

use perihelion_runtime::is_invisible;

/// Writes such characters out, as in `\u{202e}`; lines stay lines.
pub(super) fn shown(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter == '\r' || is_invisible(letter) {
            shown.extend(letter.escape_unicode())
        } else {
            shown.push(letter)
        }
    }
    shown
}

/// Makes a text one line that leaves out only white space.
pub(super) fn shown_line(text: &str) -> String {
    shown(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Makes a program's output one line, with its line breaks visible.
pub(super) fn shown_entry(text: &str) -> String {
    shown(text).replace('\n', "\\n")
}

/// Writes such characters out in a JSON text, whose value stays the same.
pub(super) fn shown_json(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut units = [0; 2];
    for letter in text.chars() {
        // JSON has line breaks between its strings alone.
        if is_invisible(letter) {
            let units = letter.encode_utf16(&mut units);
            shown.extend(units.iter().map(|unit| format!("\\u{unit:04x}")));
        } else {
            shown.push(letter)
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    const ODD: &str = "a\u{1b}[2Jb\u{9b}c\u{202e}d\u{e0041}e\u{200b}\u{7f}";

    #[test]
    fn invisible_characters_are_written_out_and_letters_of_all_scripts_stay() {
        let plain = "Grüße, العربية,\n\t漢字 👩";
        assert_eq!(shown(plain), plain);
        assert_eq!(shown(ODD), "a\\u{1b}[2Jb\\u{9b}c\\u{202e}d\\u{e0041}e\\u{200b}\\u{7f}");
        assert_eq!(shown_line("one\n two\r"), "one two\\u{d}");
        assert_eq!(shown_entry("WARN one\nERROR forged"), "WARN one\\nERROR forged");
    }

    #[test]
    fn json_stays_the_same_value() {
        let text = serde_json::to_string_pretty(&[ODD]).unwrap();
        let shown = shown_json(&text);
        assert!(shown.chars().all(|letter| !is_invisible(letter)), "{shown}");
        assert_eq!(serde_json::from_str::<[String; 1]>(&shown).unwrap(), [ODD]);
    }
}
