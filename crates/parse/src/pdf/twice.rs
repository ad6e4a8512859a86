//! Text that is painted more than once, to look bold or to have a shadow: it is read once.

use std::collections::{HashMap, HashSet};

use super::page::Letter;

/// How far apart two paintings of a letter are at most, in sizes of the font, and in points.
const REACH: f64 = 0.35;
const FARTHEST: f64 = 12.0;

/// What a baseline may differ by on one line, in sizes of the font.
const LEVEL: f64 = 0.03;

/// How exactly the letters of a string have to lie on those of another, in sizes of the font.
const EXACT: f64 = 0.06;

/// Letters painted before, by what they are and roughly where.
#[derive(Default)]
struct Seen<'a> {
    places: HashMap<(&'a str, i64, i64), Vec<&'a Letter>>,
}

/// Returns the letters without those painted over others; they are in the order of painting.
pub(super) fn once(letters: Vec<Letter>) -> Vec<Letter> {
    let mut seen = Seen::default();
    let mut kept = Vec::with_capacity(letters.len());
    for string in letters.chunk_by(|a, b| a.string == b.string) {
        if seen.holds(string) {
            continue;
        }
        for letter in string {
            if !seen.near(letter).any(|(dx, dy)| is_above(letter, dx, dy)) {
                seen.put(letter);
                kept.push(letter.clone());
            }
        }
    }
    kept
}

/// Returns whether a letter lies on one of its kind that is so far away, rather than beside it.
fn is_above(letter: &Letter, dx: f64, dy: f64) -> bool {
    let size = letter.size;
    // Narrow letters stand close to each other: some Arabic lines are lengthened by many of one kind.
    let beside = ((letter.right - letter.left) * 0.6).min(size * 0.25).max(size / 100.0);
    dx.abs() < beside || (dy.abs() > size * LEVEL && letter.text.trim() != "")
}

impl<'a> Seen<'a> {
    fn put(&mut self, letter: &'a Letter) {
        self.places.entry(place(letter, 0, 0)).or_default().push(letter);
    }

    /// Returns how far letters of the same kind are, of those within reach.
    fn near(&self, letter: &'a Letter) -> impl Iterator<Item = (f64, f64)> {
        let reach = (letter.size * REACH).min(FARTHEST);
        let cells = (-2..=2).flat_map(|x| (-2..=2).map(move |y| (x, y)));
        let found = cells.filter_map(move |(x, y)| self.places.get(&place(letter, x, y)));
        let alike = found
            .flatten()
            .filter(move |other| (other.size - letter.size).abs() < letter.size * 0.1);
        let ways =
            alike.map(move |other| (letter.left - other.left, letter.baseline - other.baseline));
        ways.filter(move |(dx, dy)| dx.abs() <= reach && dy.abs() <= reach)
    }

    /// Returns whether a whole string was painted before, a little beside; that tells in narrow letters, too.
    fn holds(&self, string: &'a [Letter]) -> bool {
        let says = |letter: &&Letter| !letter.text.trim().is_empty();
        let letters: Vec<&Letter> = string.iter().filter(says).collect();
        let kinds: HashSet<&str> = letters.iter().map(|letter| letter.text.as_str()).collect();
        let Some(first) = letters.first().filter(|_| kinds.len() > 1) else { return false };
        self.near(first).take(8).any(|(x, y)| {
            letters.iter().all(|letter| {
                let exact = letter.size * EXACT;
                self.near(letter).any(|(dx, dy)| (dx - x).abs() < exact && (dy - y).abs() < exact)
            })
        })
    }
}

fn place(letter: &Letter, x: i64, y: i64) -> (&str, i64, i64) {
    let cell = |at: f64| (at / (FARTHEST / 2.0)).floor() as i64;
    (&letter.text, cell(letter.left) + x, cell(letter.baseline) + y)
}
