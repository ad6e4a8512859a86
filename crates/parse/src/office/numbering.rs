//! Numbers of paragraphs in a Word document, counted as Word counts them.

use std::collections::HashMap;

use roxmltree::Node;

use super::xml;

#[derive(Clone, Default)]
struct Level {
    format: String,
    text: String,
    start: u32,
}

/// The markers of each list's levels, and their counters.
#[derive(Default)]
pub(super) struct Numbering {
    levels: HashMap<String, Vec<Level>>,
    /// The abstract list of each; lists of the same one continue each other.
    kinds: HashMap<String, String>,
    counts: HashMap<String, Vec<u32>>,
}

const LEVELS: usize = 9;

impl Numbering {
    pub fn read(root: Node<'_, '_>) -> Self {
        let mut kinds: HashMap<&str, Vec<Level>> = HashMap::new();
        for node in xml::children(root, "abstractNum") {
            let Some(id) = xml::attribute(node, "abstractNumId") else { continue };
            let mut levels = vec![Level::default(); LEVELS];
            for level in xml::children(node, "lvl") {
                set(&mut levels, level);
            }
            kinds.insert(id, levels);
        }
        let mut numbering = Self::default();
        for node in xml::children(root, "num") {
            let Some(id) = xml::attribute(node, "numId") else { continue };
            let Some(kind) = xml::value(node, &["abstractNumId"]) else { continue };
            let mut levels = kinds.get(kind).cloned().unwrap_or_default();
            let mut restarts = false;
            for change in xml::children(node, "lvlOverride") {
                if let Some(level) = xml::child(change, "lvl") {
                    set(&mut levels, level);
                }
                let place = index(change);
                let start =
                    xml::value(change, &["startOverride"]).and_then(|start| start.parse().ok());
                if let (Some(level), Some(start)) = (levels.get_mut(place), start) {
                    level.start = start;
                    restarts = true;
                }
            }
            numbering.levels.insert(id.to_owned(), levels);
            let kind = if restarts { format!("{kind}/{id}") } else { kind.to_owned() };
            numbering.kinds.insert(id.to_owned(), kind);
        }
        numbering
    }

    /// Counts a paragraph and returns its marker; `None` if its list has none.
    pub fn next(&mut self, id: &str, level: usize) -> Option<String> {
        let levels = self.levels.get(id)?;
        let own = levels.get(level)?;
        if own.format == "none" {
            return None;
        }
        if own.format == "bullet" || own.text.is_empty() {
            return Some("-".to_owned());
        }
        let kind = self.kinds.get(id)?.clone();
        let counts = self.counts.entry(kind).or_insert_with(|| vec![0; LEVELS]);
        for (place, count) in counts.iter_mut().enumerate().take(level) {
            // A level that was never counted shows its first number.
            if *count == 0 {
                *count = levels.get(place).map_or(1, |level| level.start.max(1));
            }
        }
        counts[level] = if counts[level] == 0 { own.start } else { counts[level] + 1 };
        counts[level + 1..].fill(0);
        let mut marker = own.text.clone();
        for (place, count) in counts.iter().enumerate().take(level + 1) {
            let format = levels.get(place).map_or("decimal", |level| level.format.as_str());
            marker = marker.replace(&format!("%{}", place + 1), &shown(*count, format));
        }
        Some(marker)
    }
}

fn index(node: Node<'_, '_>) -> usize {
    xml::attribute(node, "ilvl").and_then(|level| level.parse().ok()).unwrap_or(0)
}

fn set(levels: &mut [Level], node: Node<'_, '_>) {
    let Some(level) = levels.get_mut(index(node)) else { return };
    level.format = xml::value(node, &["numFmt"]).unwrap_or("decimal").to_owned();
    level.text = xml::value(node, &["lvlText"]).unwrap_or_default().to_owned();
    level.start = xml::value(node, &["start"]).and_then(|start| start.parse().ok()).unwrap_or(1);
}

/// Shows a number in one of Word's formats.
pub(crate) fn shown(number: u32, format: &str) -> String {
    match format {
        "lowerLetter" => letters(number),
        "upperLetter" => letters(number).to_uppercase(),
        "lowerRoman" => roman(number).to_lowercase(),
        "upperRoman" => roman(number),
        "decimalZero" => format!("{number:02}"),
        _ => number.to_string(),
    }
}

fn letters(number: u32) -> String {
    let letter = char::from(b'a' + u8::try_from(number.saturating_sub(1) % 26).unwrap_or(0));
    letter.to_string().repeat((number.saturating_sub(1) / 26 + 1).min(8) as usize)
}

fn roman(mut number: u32) -> String {
    const SIGNS: &str = "M CM D CD C XC L XL X IX V IV I";
    const VALUES: [u32; 13] = [1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1];
    if number > 3999 {
        return number.to_string();
    }
    let mut text = String::new();
    for (value, sign) in VALUES.into_iter().zip(SIGNS.split(' ')) {
        while number >= value {
            text.push_str(sign);
            number -= value;
        }
    }
    text
}
