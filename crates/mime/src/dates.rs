//! Dates of messages in forms that the standard does not have: zones by name, whole months, no zone.

/// Zones by the names that mailers write, without those of the standard.
const ZONES: [(&str, &str); 10] = [
    ("+0000", "UTC WET"),
    ("+0100", "CET MET MEZ WEST BST"),
    ("+0200", "CEST MESZ EET SAST"),
    ("+0300", "EEST MSK"),
    ("+0800", "HKT SGT AWST"),
    ("+0900", "JST KST"),
    ("+1000", "AEST"),
    ("+1100", "AEDT"),
    ("+1200", "NZST"),
    ("+1300", "NZDT"),
];

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

pub fn dated(header: &str) -> String {
    let is_date = |line: &str| line.get(..5).is_some_and(|name| name.eq_ignore_ascii_case("date:"));
    let lines = header.split_inclusive('\n').map(|line| {
        let value = line.get(5..).filter(|_| is_date(line)).map(str::trim_end)?;
        let end = &line[5 + value.len()..];
        Some(format!("{}{}{end}", &line[..5], in_standard_form(value)?))
    });
    let lines = header.split_inclusive('\n').zip(lines);
    lines.map(|(line, dated)| dated.unwrap_or_else(|| line.to_owned())).collect()
}

/// Returns a date in the standard's form; none if it has that, or is folded or no date.
fn in_standard_form(value: &str) -> Option<String> {
    let mut words: Vec<String> = value.split_whitespace().flat_map(standard_words).collect();
    // C's `asctime` writes the month before the day, and the year last.
    if let [_, month, day, time, year] = words.as_mut_slice()
        && MONTHS.contains(&month.to_ascii_lowercase().as_str())
        && time.contains(':')
        && year.bytes().all(|digit| digit.is_ascii_digit())
    {
        std::mem::swap(month, day);
        std::mem::swap(time, year);
    }
    if words.last()?.contains(':') {
        words.push("+0000".to_owned());
    }
    let written = format!(" {}", words.join(" "));
    (written.split_whitespace().ne(value.split_whitespace())).then_some(written)
}

fn standard_words(word: &str) -> Vec<String> {
    let start = word.get(..3).unwrap_or_default().to_ascii_lowercase();
    let is_it = |name: &str| name.eq_ignore_ascii_case(word);
    let zone = ZONES.iter().find(|(_, names)| names.split(' ').any(is_it));
    let offset = word.trim_start_matches("GMT").trim_start_matches("UTC");
    if let Some((offset, _)) = zone {
        vec![(*offset).to_owned()]
    } else if offset.starts_with(['+', '-']) {
        vec![offset.to_owned()]
    } else if MONTHS.contains(&start.as_str()) && word.len() > 3 {
        vec![word[..3].to_owned()]
    } else if word.split('-').nth(1).is_some_and(|part| part.starts_with(char::is_alphabetic)) {
        word.split('-').map(str::to_owned).collect()
    } else {
        vec![word.to_owned()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_careless_writers_are_in_the_standard_form_and_others_stay() {
        for (written, expected) in [
            ("Mon, 1 Jan 2024 10:00:00 CET", "Mon, 1 Jan 2024 10:00:00 +0100"),
            ("Mon, 1 Jul 2024 10:00:00 mesz", "Mon, 1 Jul 2024 10:00:00 +0200"),
            ("Mon, 1 Jan 2024 10:00:00 GMT+0200", "Mon, 1 Jan 2024 10:00:00 +0200"),
            ("Mon, 1 January 2024 10:00", "Mon, 1 Jan 2024 10:00 +0000"),
            ("1-Jan-2024 10:00:00 GMT", "1 Jan 2024 10:00:00 GMT"),
            ("Mon Jan  1 10:00:00 2024", "Mon 1 Jan 2024 10:00:00 +0000"),
            ("Mon, 1 Jan 2024 10:00:00 -0500 (EST)", "Mon, 1 Jan 2024 10:00:00 -0500 (EST)"),
            ("Mon,  1 Jan 2024 10:00:00 EST", "Mon,  1 Jan 2024 10:00:00 EST"),
            ("2024-01-01T10:00:00Z x", "2024-01-01T10:00:00Z x"),
            ("", ""),
        ] {
            let header = |date: &str| format!("From: a@b.c\r\ndate: {date}\r\nX: Date: CET\r\n");
            assert_eq!(dated(&header(written)), header(expected), "{written}");
        }
    }
}
