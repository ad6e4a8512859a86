//! What the format of a cell writes beside its number: a percent sign, a currency, a unit.

use std::collections::BTreeMap;
use std::str::Chars;

use calamine::Data;

use super::{Book, caught, number_text, shown};

#[derive(Default)]
pub(super) struct Units {
    /// By the number of the style.
    of_style: Vec<Option<Shape>>,
    /// The styles of the cells whose numbers have a shape, by row and column.
    styles: BTreeMap<(u32, u32), usize>,
}

/// The texts that a format adds to positive numbers, and to negative ones if they have a section of their own.
struct Shape {
    positive: Option<Unit>,
    negative: Option<Unit>,
}

/// The text before, between and after the digits of a number.
#[derive(Default)]
struct Unit {
    /// Signs, and places of digits: one for the whole number, or several for one that is filled with zeros.
    slots: Vec<Option<char>>,
    is_percent: bool,
}

impl Units {
    /// Reads the styles of a sheet; those behind a damaged place are unknown.
    pub fn read(book: &mut Book<'_>, name: &str) -> Self {
        let mut units = Self::default();
        let Ok(mut reader) = caught(|| book.worksheet_cells_reader(name)) else { return units };
        let formats = reader.styles().iter().map(|style| style.number_format.as_ref());
        units.of_style = formats
            .map(|format| format.and_then(|format| Shape::of(&format.format_code)))
            .collect();
        if units.of_style.iter().all(Option::is_none) {
            return units;
        }
        while let Ok(Some((y, x, style))) = caught(|| reader.next_style_id()) {
            if units.of_style.get(style).is_some_and(Option::is_some) {
                units.styles.insert((y, x), style);
            }
        }
        units
    }

    /// Shows a cell as a reader sees it, a number with its unit.
    pub fn shown(&self, place: (u32, u32), value: &Data) -> String {
        let style = self.styles.get(&place).and_then(|style| self.of_style.get(*style));
        let with_unit = match (style.and_then(Option::as_ref), value) {
            (Some(shape), Data::Float(number)) => shape.with(*number),
            _ => None,
        };
        with_unit.unwrap_or_else(|| shown(value))
    }
}

impl Shape {
    /// Reads a format such as `0.00%`, `#,##0.00 [$€-407]` or `0" CR";0" DR"`; `None` if it writes nothing beside numbers.
    fn of(format: &str) -> Option<Self> {
        let format = format.replace("General", "0");
        let mut rest = format.chars();
        let positive = Unit::of(&mut rest);
        let words = positive.as_ref().map(Unit::words).unwrap_or_default();
        // One that differs by its sign or its color alone says what the number's own sign says.
        let negative =
            Unit::of(&mut rest).filter(|unit| !unit.words().is_empty() && unit.words() != words);
        let shape = Self { positive: positive.filter(Unit::says), negative };
        (shape.positive.is_some() || shape.negative.is_some()).then_some(shape)
    }

    fn with(&self, number: f64) -> Option<String> {
        match self.negative.as_ref().filter(|_| number < 0.0) {
            Some(unit) => Some(unit.with(-number)),
            None => self.positive.as_ref().map(|unit| unit.with(number)),
        }
    }
}

impl Unit {
    /// Reads a section of a format; `None` if it writes something else in the number's place.
    fn of(rest: &mut Chars<'_>) -> Option<Self> {
        let mut unit = Self::default();
        let mut is_known = true;
        let mut is_filled = true;
        // Commas behind the last digit divide the number.
        let mut is_scaled = false;
        while let Some(sign) = rest.next() {
            let mut literal = String::new();
            match sign {
                ';' => break,
                '0' | '#' | '?' => {
                    is_filled &= sign == '0';
                    unit.slots.push(None);
                    is_scaled = false;
                }
                ',' => {
                    is_scaled = unit.slots.contains(&None);
                    is_filled = false;
                }
                '.' | '/' => is_filled = false,
                // The sign of an exponent.
                'E' | 'e' => {
                    is_filled = false;
                    rest.next();
                }
                '"' => literal.extend(rest.by_ref().take_while(|sign| *sign != '"')),
                '\\' => literal.extend(rest.next()),
                // The width of a sign, and one that fills the cell.
                '_' | '*' => drop(rest.next()),
                '[' => {
                    let inside: String = rest.by_ref().take_while(|sign| *sign != ']').collect();
                    is_known &= !inside.starts_with(['<', '>', '=']);
                    let currency = inside.strip_prefix('$').unwrap_or_default();
                    literal.extend(currency.split('-').next());
                }
                '%' => {
                    unit.is_percent = true;
                    literal.push(sign);
                }
                ' ' | '-' | '(' | ')' => literal.push(sign),
                sign if sign == '$' || !sign.is_ascii() => literal.push(sign),
                _ => {}
            }
            unit.slots.extend(literal.chars().map(Some));
        }
        if !is_filled {
            let first = unit.slots.iter().position(Option::is_none)?;
            let mut at = 0..;
            unit.slots.retain(|slot| at.next() == Some(first) || slot.is_some());
        }
        (is_known && !is_scaled && unit.places() > 0).then_some(unit)
    }

    fn places(&self) -> usize {
        self.slots.iter().filter(|slot| slot.is_none()).count()
    }

    fn words(&self) -> String {
        self.slots.iter().flatten().filter(|sign| !"-() ".contains(**sign)).collect()
    }

    /// Returns whether a number looks different with it.
    fn says(&self) -> bool {
        self.places() > 1 || !self.words().is_empty()
    }

    fn with(&self, number: f64) -> String {
        let mut text = number_text(if self.is_percent { number * 100.0 } else { number });
        let places = self.places();
        let mut first = text.len();
        if places > 1 {
            let runs = self.slots.split(Option::is_some).filter(|run| !run.is_empty()).count();
            if text.bytes().all(|digit| digit.is_ascii_digit()) {
                text = format!("{text:0>places$}");
                first = text.len() - places + 1;
            } else if runs > 1 {
                // Parts of a whole have no place between signs.
                return number_text(number);
            }
        }
        let mut digits = text.chars();
        let mut written = String::new();
        for slot in &self.slots {
            match slot {
                Some(sign) => written.push(*sign),
                None => written.extend(digits.by_ref().take(std::mem::replace(&mut first, 1))),
            }
        }
        written.trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_what_its_format_writes_beside_it() {
        for (format, number, shown) in [
            ("0%", 0.15, Some("15%")),
            ("0.00%", 0.1234, Some("12.34%")),
            ("#,##0.00\\ [$€-407]", 1234.5, Some("1234.5 €")),
            ("_-* #,##0.00\\ \"€\"_-;\\-* #,##0.00\\ \"€\"_-", -3.0, Some("-3 €")),
            ("[$USD] #,##0.00", 2.0, Some("USD 2")),
            ("\"$\"#,##0_);[Red]\\(\"$\"#,##0\\)", 7.0, Some("$7")),
            ("£#,##0", 7.0, Some("£7")),
            ("0.0\" kg\"", 1.5, Some("1.5 kg")),
            ("General\" EUR\"", 1.5, Some("1.5 EUR")),
            ("General", 1.0, None),
            ("#,##0.00_ ", 1.0, None),
            ("0.00E+00", 1.0, None),
            ("0.00E-00", 1.0, None),
            ("#,##0.00\" CR\";#,##0.00\" DR\"", -50.0, Some("50 DR")),
            ("#,##0.00\" CR\";#,##0.00\" DR\"", 50.0, Some("50 CR")),
            ("0\" profit\";-0\" loss\"", -5.0, Some("-5 loss")),
            ("0\" profit\";(0\" loss\")", -5.0, Some("(5 loss)")),
            ("0;0\" DR\"", 5.0, None),
            ("0;0\" DR\"", -5.0, Some("5 DR")),
            ("0%;(0%)", -0.05, Some("-5%")),
            ("0%;[Red]0%", -0.05, Some("-5%")),
            ("0.00;[Red]0.00", -3.0, None),
            ("$#,##0;($#,##0)", -7.0, Some("$-7")),
            ("00000", 1234.0, Some("01234")),
            ("00000", 1_234_567.0, Some("1234567")),
            ("00000", -12.0, Some("-12")),
            ("00000", 1.5, Some("1.5")),
            ("00%", 0.125, Some("12.5%")),
            ("00%", -0.05, Some("-5%")),
            ("00\" kg\"", 1.5, Some("1.5 kg")),
            ("0\" kg\";0", -5.0, Some("-5 kg")),
            ("000-00-0000", -1.5, Some("-1.5")),
            ("000-00-0000", 12_345_678.0, Some("012-34-5678")),
            ("(000) 000-0000", 5_551_234_567.0, Some("(555) 123-4567")),
            ("\"Q\"0", 3.0, Some("Q3")),
            ("# ?/?", 0.5, None),
            ("#,##0,,\"M\"", 5e6, None),
            ("[>=100]\"high\" 0;0", 5.0, None),
            ("\"yes\";\"no\"", 1.0, None),
        ] {
            let found = Shape::of(format).and_then(|shape| shape.with(number));
            assert_eq!(found.as_deref(), shown, "{format}");
        }
    }
}
