//! Checks whether the numbers of an answer are in the result.
//!
//! Enter at [`check`]. Invariant: a number is supported only by shown data: a cell, a count of rows, the question, or
//! arithmetic over shown cells that is computed here. Deliberately absent: any trust in the words around it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Where a number of an answer comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "from", content = "how")]
pub enum Origin {
    /// It stands in a cell, as it is or rounded.
    Result,
    /// It stands in the question.
    Question,
    /// It follows from cells, by the arithmetic named.
    Computed(String),
    /// Nothing that was shown supports it.
    Unsupported,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Number {
    /// As it is written, with its sign.
    pub text: String,
    #[serde(flatten)]
    pub origin: Origin,
}

#[derive(Clone, Debug, PartialEq)]
struct Written {
    text: String,
    value: f64,
    decimals: u32,
    percent: bool,
    /// Thousand, million or billion follow it.
    scale: f64,
}

/// A column with more numbers is compared by neighbors and extremes only: of so many pairs, some yield almost any number.
const FEW: usize = 12;
/// A ratio may differ by this share of it from a number that writes it.
const ROUNDED: f64 = 0.05;

/// Looks for every number of `answer` in the rows, the question and what follows from them.
pub fn check(answer: &str, question: &str, columns: &[String], rows: &[Vec<Value>]) -> Vec<Number> {
    let cells: Vec<f64> = rows.iter().flatten().flat_map(values_of).collect();
    let asked = written(question);
    let mut found: Vec<Number> = Vec::new();
    for number in written(answer) {
        if found.iter().any(|known| known.text == number.text) {
            continue;
        }
        let origin = origin(&number, &cells, &asked, columns, rows);
        found.push(Number { text: number.text, origin });
    }
    found
}

fn origin(
    number: &Written,
    cells: &[f64],
    asked: &[Written],
    columns: &[String],
    rows: &[Vec<Value>],
) -> Origin {
    if cells.iter().any(|cell| number.is(*cell)) {
        return Origin::Result;
    }
    if asked.iter().any(|known| number.is(known.value)) {
        return Origin::Question;
    }
    if number.is(rows.len() as f64) {
        return Origin::Computed("number of rows".into());
    }
    for (at, name) in columns.iter().enumerate() {
        let column: Vec<f64> =
            rows.iter().filter_map(|row| row.get(at)).filter_map(number_of).collect();
        if column.len() < 2 {
            continue;
        }
        let sum: f64 = column.iter().sum();
        if number.is(sum) {
            return Origin::Computed(format!("sum of {name}"));
        }
        if number.is(sum / column.len() as f64) {
            return Origin::Computed(format!("mean of {name}"));
        }
        if let Some(part) = column.iter().find(|part| sum != 0.0 && number.is_share(*part / sum)) {
            return Origin::Computed(format!("{part} of the sum of {name}"));
        }
    }
    for (a, b) in comparable(columns.len(), rows) {
        if number.is(a - b) {
            return Origin::Computed(format!("{a} - {b}"));
        }
        if b != 0.0 {
            if number.is_ratio(a / b) || number.is_share(a / b) {
                return Origin::Computed(format!("{a} / {b}"));
            }
            if number.is_share((a - b) / b) {
                return Origin::Computed(format!("change from {b} to {a}"));
            }
        }
    }
    Origin::Unsupported
}

/// Returns the pairs of different numbers that a reader compares: those of one row, and those of one column.
fn comparable(width: usize, rows: &[Vec<Value>]) -> Vec<(f64, f64)> {
    let mut pairs = Vec::new();
    let mut compare = |numbers: &[f64], is_compared: &dyn Fn(usize, usize) -> bool| {
        for (at, a) in numbers.iter().enumerate() {
            for (other, b) in numbers.iter().enumerate() {
                if a != b && is_compared(at, other) {
                    pairs.push((*a, *b));
                }
            }
        }
    };
    for row in rows {
        let numbers: Vec<f64> = row.iter().filter_map(number_of).take(FEW).collect();
        compare(&numbers, &|_, _| true);
    }
    for column in 0..width {
        let cells = rows.iter().filter_map(|row| row.get(column));
        let numbers: Vec<f64> = cells.filter_map(number_of).collect();
        let most = numbers.iter().copied().fold(f64::MIN, f64::max);
        let least = numbers.iter().copied().fold(f64::MAX, f64::min);
        let is_end =
            |at: usize| at == 0 || at + 1 == numbers.len() || [most, least].contains(&numbers[at]);
        let near =
            |at: usize, other: usize| at.abs_diff(other) == 1 || (is_end(at) && is_end(other));
        compare(&numbers, &|at, other| numbers.len() <= FEW || near(at, other));
    }
    pairs
}

impl Written {
    /// Returns whether this writes a value, perhaps rounded to the shown digits; words may say the sign.
    fn is(&self, value: f64) -> bool {
        if self.value < 0.0 && value > 0.0 {
            return false;
        }
        let half = 0.5 * 10.0_f64.powi(-i32::try_from(self.decimals).unwrap_or(0)) * self.scale;
        let slack = half * (1.0 + 1e-9) + value.abs() * 1e-12;
        let exact = self.decimals == 0 && self.scale == 1.0 && value.fract() == 0.0;
        let distance = (self.value.abs() - value.abs()).abs();
        if exact { distance < 1e-6 } else { distance <= slack }
    }

    /// Returns whether this writes a ratio, such as "four times".
    fn is_ratio(&self, ratio: f64) -> bool {
        self.is(ratio) && (self.value.abs() - ratio.abs()).abs() <= ROUNDED * ratio.abs()
    }

    /// Returns whether this writes a ratio as a percentage.
    fn is_share(&self, ratio: f64) -> bool {
        self.percent && self.is(ratio * 100.0)
    }
}

/// Returns the numbers of a cell: itself, or those inside its text, such as a year in a date.
fn values_of(cell: &Value) -> Vec<f64> {
    match cell {
        Value::String(text) => written(text).into_iter().map(|number| number.value).collect(),
        other => other.as_f64().into_iter().collect(),
    }
}

/// Returns the number in a cell, which a database may give as a text.
pub(crate) fn number_of(cell: &Value) -> Option<f64> {
    let number = cell.as_f64().or_else(|| cell.as_str()?.trim().parse().ok());
    number.filter(|number| number.is_finite())
}

/// Returns the numbers that a text writes, with separators of thousands.
fn written(text: &str) -> Vec<Written> {
    let chars: Vec<char> = text.chars().collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        if !chars[at].is_ascii_digit() {
            at += 1;
            continue;
        }
        // A digit inside a word is part of a name.
        let in_word = at > 0 && (chars[at - 1].is_alphabetic() || chars[at - 1] == '_');
        let start = at;
        let mut digits = String::new();
        let mut decimals = 0;
        let mut point = false;
        while let Some(c) = chars.get(at) {
            let next_is_digit = chars.get(at + 1).is_some_and(char::is_ascii_digit);
            let group = chars.get(at + 1..at + 4).is_some_and(|group| {
                group.iter().all(char::is_ascii_digit)
                    && !chars.get(at + 4).is_some_and(char::is_ascii_digit)
            });
            match c {
                c if c.is_ascii_digit() => {
                    digits.push(*c);
                    decimals += u32::from(point);
                }
                ',' | '\u{a0}' | '\u{202f}' | '\'' | '_' if group && !point => {}
                '.' if next_is_digit && !point => {
                    point = true;
                    digits.push('.');
                }
                _ => break,
            }
            at += 1;
        }
        if in_word {
            continue;
        }
        let sign = if has_minus(&chars[..start]) { -1.0 } else { 1.0 };
        let digits_shown: String = chars[start..at].iter().collect();
        let shown = if sign < 0.0 { format!("-{digits_shown}") } else { digits_shown };
        let rest: String = chars[at..].iter().take(12).collect();
        let rest = rest.trim_start().to_lowercase();
        let percent =
            rest.starts_with('%') || rest.starts_with("percent") || rest.starts_with("per cent");
        let scale = if rest.starts_with("thousand") {
            1e3
        } else if rest.starts_with("million") {
            1e6
        } else if rest.starts_with("billion") {
            1e9
        } else {
            1.0
        };
        if let Ok(value) = digits.parse::<f64>() {
            let value = sign * value * scale;
            found.push(Written { text: shown, value, decimals, percent, scale });
        }
    }
    found
}

/// Returns whether a text ends with a minus, and not with a dash between two numbers or words.
fn has_minus(before: &[char]) -> bool {
    let before =
        before.strip_suffix(&['$']).or_else(|| before.strip_suffix(&['€'])).unwrap_or(before);
    let [rest @ .., '-' | '\u{2212}'] = before else { return false };
    rest.last().is_none_or(|c| c.is_whitespace() || *c == '(')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn origins(answer: &str) -> Vec<Origin> {
        let columns = vec!["country".to_owned(), "total".to_owned()];
        let rows = vec![
            vec![json!("Norway"), json!(1234.56)],
            vec![json!("Chile"), json!(400)],
            vec![json!("Japan"), json!("100.00")],
        ];
        check(answer, "the top 5 of 2024", &columns, &rows).into_iter().map(|n| n.origin).collect()
    }

    #[test]
    fn a_number_in_no_result_or_question_that_does_not_follow_from_them_is_flagged() {
        assert_eq!(origins("Norway: 1,234.56, about 1235"), [Origin::Result, Origin::Result]);
        assert_eq!(origins("in 2024"), [Origin::Question]);
        assert_eq!(origins("all 3"), [Origin::Computed("number of rows".into())]);
        assert_eq!(origins("1,734.56 in sum"), [Origin::Computed("sum of total".into())]);
        assert_eq!(origins("four times: 4"), [Origin::Computed("400 / 100".into())]);
        assert_eq!(origins("1.2 thousand"), [Origin::Result]);
        assert_eq!(origins("71.2%"), [Origin::Computed("1234.56 of the sum of total".into())]);
        assert_eq!(origins("9,999 units"), [Origin::Unsupported]);
        assert_eq!(origins("table t1, Q4"), []);
    }

    #[test]
    fn a_sign_counts_and_numbers_of_different_places_support_no_other_one() {
        let columns = vec!["year".to_owned(), "total".to_owned()];
        let totals = [17, 940, 303, 58, 771, 12, 666, 245, 809, 134, 487, 921, 376, 550];
        let rows: Vec<Vec<Value>> = totals
            .iter()
            .zip(2001..)
            .map(|(total, year)| vec![json!(year), json!(total)])
            .collect();
        let is_supported = |answer: &str| {
            let found = check(answer, "by year", &columns, &rows);
            found.iter().all(|number| number.origin != Origin::Unsupported)
        };
        for supported in [
            "940",
            "a change of -637",
            "it fell by 637",
            "2001-2014",
            "533 more than in 2001",
            "928 apart",
        ] {
            assert!(is_supported(supported), "{supported}");
        }
        // Of another year, of a year and a total of another row, with the wrong sign, and a ratio that is far off.
        for wrong in ["a change of 413", "1,061 units", "-940", "a loss of (-58)", "1.2 times"] {
            assert!(!is_supported(wrong), "{wrong}");
        }
    }
}
