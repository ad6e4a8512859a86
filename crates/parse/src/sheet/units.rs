//! What the format of a cell writes beside its number: a percent sign, a currency, a unit.

use std::collections::BTreeMap;

use calamine::Data;

use super::{Book, caught, number_text, shown};

#[derive(Default)]
pub(super) struct Units {
    /// By the number of the style.
    of_style: Vec<Option<Unit>>,
    /// The styles of the cells that have a unit, by row and column.
    styles: BTreeMap<(u32, u32), usize>,
}

/// What stands before and after a number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Unit {
    before: String,
    after: String,
    is_percent: bool,
}

impl Units {
    /// Reads the styles of a sheet; those behind a damaged place are unknown.
    pub fn read(book: &mut Book<'_>, name: &str) -> Self {
        let mut units = Self::default();
        let Ok(mut reader) = caught(|| book.worksheet_cells_reader(name)) else { return units };
        let formats = reader.styles().iter().map(|style| style.number_format.as_ref());
        units.of_style =
            formats.map(|format| format.and_then(|format| Unit::of(&format.format_code))).collect();
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
        match (style.and_then(Option::as_ref), value) {
            (Some(unit), Data::Float(number)) => unit.with(*number),
            _ => shown(value),
        }
    }
}

impl Unit {
    /// Reads a format such as `0.00%`, `#,##0.00 [$€-407]` or `0" kg"`; `None` if it writes nothing beside the number, or
    /// something else in its place.
    fn of(format: &str) -> Option<Self> {
        let mut unit = Self::default();
        let mut has_number = false;
        // Commas behind the last digit divide the number.
        let mut is_scaled = false;
        let format = format.replace("General", "0");
        let mut rest = format.chars();
        while let Some(sign) = rest.next() {
            let mut literal = String::new();
            match sign {
                ';' => break,
                '0' | '#' | '?' => {
                    has_number = true;
                    is_scaled = false;
                }
                ',' => is_scaled = has_number,
                '"' => literal.extend(rest.by_ref().take_while(|sign| *sign != '"')),
                '\\' => literal.extend(rest.next()),
                // The width of a sign, and one that fills the cell.
                '_' | '*' => drop(rest.next()),
                '[' => {
                    let inside: String = rest.by_ref().take_while(|sign| *sign != ']').collect();
                    if inside.starts_with(['<', '>', '=']) {
                        return None;
                    }
                    let currency = inside.strip_prefix('$').unwrap_or_default();
                    literal.extend(currency.split('-').next());
                }
                '%' => {
                    unit.is_percent = true;
                    literal.push(sign);
                }
                ' ' => literal.push(sign),
                sign if sign == '$' || !sign.is_ascii() => literal.push(sign),
                _ => {}
            }
            let side = if has_number { &mut unit.after } else { &mut unit.before };
            side.push_str(&literal);
        }
        let says = |text: &str| text.contains(|sign: char| !sign.is_whitespace());
        let is_unit = has_number && !is_scaled && (says(&unit.before) || says(&unit.after));
        is_unit.then_some(unit)
    }

    fn with(&self, number: f64) -> String {
        let number = if self.is_percent { number * 100.0 } else { number };
        format!("{}{}{}", self.before, number_text(number), self.after).trim().to_owned()
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
            ("#,##0,,\"M\"", 5e6, None),
            ("[>=100]\"high\" 0;0", 5.0, None),
            ("\"yes\";\"no\"", 1.0, None),
        ] {
            let found = Unit::of(format).map(|unit| unit.with(number));
            assert_eq!(found.as_deref(), shown, "{format}");
        }
    }
}
