//! Text that is painted more than once, to look bold or to have a shadow: it is read once.

use std::collections::{HashMap, HashSet};

use super::page::Letter;

/// How far apart two paintings of a letter are at most, in sizes of the font, and in points.
const REACH: f64 = 0.35;
const FARTHEST: f64 = 12.0;

/// Maximum distance of the shadow of a single letter along and across the line, in sizes of the font: signs that are
/// made of two equal letters have more between them.
const SHADOW: f64 = 0.18;

/// Maximum difference of baselines on one line, in sizes of the font.
const LEVEL: f64 = 0.03;

/// Maximum distance between the letters of overlapping strings, in sizes of the font.
const EXACT: f64 = 0.06;

/// A letter, how far it is from the one that it repeats, and when it was painted.
type Placed<'a> = (&'a Letter, Option<(f64, f64)>, usize);

/// Earlier painted letters, by kind and approximate position.
#[derive(Default)]
struct Seen<'a> {
    count: usize,
    places: HashMap<(&'a str, i64, i64), Vec<Placed<'a>>>,
}

/// Returns the letters without those painted over other ones, in the order of painting.
pub(super) fn once(letters: Vec<Letter>) -> Vec<Letter> {
    let mut seen = Seen::default();
    let mut kept = Vec::with_capacity(letters.len());
    for string in letters.chunk_by(|a, b| a.string == b.string) {
        if seen.contains(string) {
            continue;
        }
        for letter in string {
            let over =
                seen.near(letter).filter_map(|other| Some((other.2, repeated(letter, other)?)));
            let copied = over.max_by_key(|(painted, _)| *painted).map(|(_, step)| step);
            if copied.is_none() {
                kept.push(letter.clone());
            }
            seen.put(letter, copied);
        }
    }
    kept
}

/// Returns how far a letter is from the one that it repeats: an equal one, or a repeated one if it is as far from that.
fn repeated(letter: &Letter, (other, step, _): Placed<'_>) -> Option<(f64, f64)> {
    let (dx, dy) = way(letter, other);
    let Some((x, y)) = step else { return is_above(letter, other).then_some((dx, dy)) };
    let exact = letter.size * EXACT;
    ((dx - x).abs() < exact && (dy - y).abs() < exact).then_some((x, y))
}

/// Returns whether a letter is on top of an equal one, and not next to it.
fn is_above(letter: &Letter, other: &Letter) -> bool {
    let size = letter.size;
    let width = letter.right - letter.left;
    let (dx, dy) = way(letter, other);
    if dy.abs() >= size * LEVEL {
        // In a line that rises, the same narrow letter comes next to itself: it is not a shadow.
        let most = (width * 0.95).min(size * SHADOW).max(width * 0.7);
        return width > size * LEVEL && dx.abs() < most && dy.abs() < size * SHADOW;
    }
    let beside =
        |letter: &Letter| ((letter.right - letter.left) * 0.6).min(size / 8.0).max(size / 100.0);
    if super::direction::is_right_to_left(&letter.text) {
        // Some Arabic lines are lengthened by many strokes of one kind, which overlap: one of two may be left.
        let place = |letter: &Letter| (letter.left / beside(letter)).round();
        let is_alike = (beside(letter) - beside(other)).abs() < size / 1000.0;
        return is_alike && place(letter) == place(other);
    }
    dx.abs() < beside(letter)
}

fn way(letter: &Letter, other: &Letter) -> (f64, f64) {
    (letter.left - other.left, letter.baseline - other.baseline)
}

impl<'a> Seen<'a> {
    fn put(&mut self, letter: &'a Letter, copied: Option<(f64, f64)>) {
        self.count += 1;
        self.places.entry(place(letter, 0, 0)).or_default().push((letter, copied, self.count));
    }

    /// Returns the letters of the same kind and size within reach.
    fn near(&self, letter: &'a Letter) -> impl Iterator<Item = Placed<'a>> {
        let reach = (letter.size * REACH).min(FARTHEST);
        let cells = (-2..=2).flat_map(|x| (-2..=2).map(move |y| (x, y)));
        let found = cells.filter_map(move |(x, y)| self.places.get(&place(letter, x, y)));
        found.flatten().copied().filter(move |(other, ..)| {
            let (dx, dy) = way(letter, other);
            let is_alike = (other.size - letter.size).abs() < letter.size * 0.1;
            is_alike && dx.abs() <= reach && dy.abs() <= reach
        })
    }

    /// Returns whether a whole string was painted before with a small offset, which also identifies narrow letters.
    fn contains(&self, string: &'a [Letter]) -> bool {
        let says = |letter: &&Letter| !letter.text.trim().is_empty();
        let letters: Vec<&Letter> = string.iter().filter(says).collect();
        let kinds: HashSet<&str> = letters.iter().map(|letter| letter.text.as_str()).collect();
        let Some(first) = letters.first().filter(|_| kinds.len() > 1) else { return false };
        self.near(first).take(8).any(|(other, ..)| {
            let (x, y) = way(first, other);
            letters.iter().all(|letter| {
                let exact = letter.size * EXACT;
                self.near(letter).any(|(other, ..)| {
                    let (dx, dy) = way(letter, other);
                    (dx - x).abs() < exact && (dy - y).abs() < exact
                })
            })
        })
    }
}

fn place(letter: &Letter, x: i64, y: i64) -> (&str, i64, i64) {
    let cell = |at: f64| (at / (FARTHEST / 2.0)).floor() as i64;
    (&letter.text, cell(letter.left) + x, cell(letter.baseline) + y)
}
