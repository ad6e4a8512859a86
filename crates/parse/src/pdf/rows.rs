//! Makes rows of letters: those with a common baseline, split at wide gaps.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::direction;
use super::page::Letter;

/// A piece of a row without wide gaps: words of a sentence, or a cell of a table.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub text: String,
    pub left: f64,
    pub right: f64,
}

#[derive(Clone, Debug)]
pub(super) struct Row {
    pub pieces: Vec<Piece>,
    pub baseline: f64,
    pub size: f64,
    /// Its place from the page's top, 0 to 1.
    pub place: f64,
}

impl Row {
    pub fn left(&self) -> f64 {
        self.pieces.iter().map(|piece| piece.left).fold(f64::INFINITY, f64::min)
    }

    pub fn text(&self) -> String {
        let right_to_left =
            self.pieces.iter().any(|piece| direction::is_right_to_left(&piece.text));
        let mut texts: Vec<&str> = self.pieces.iter().map(|piece| piece.text.as_str()).collect();
        if right_to_left {
            texts.reverse();
        }
        texts.join(" ")
    }

    /// Returns the bytes of its text.
    pub fn len(&self) -> usize {
        self.pieces.iter().map(|piece| piece.text.len()).sum()
    }
}

/// A space is this wide at least, in sizes of the font.
const SPACE: f64 = 0.17;

/// A gap this wide divides pieces.
const GAP: f64 = 1.6;

pub(super) fn rows(mut letters: Vec<Letter>, height: f64) -> Vec<Row> {
    letters.sort_by(|a, b| a.baseline.total_cmp(&b.baseline));
    let mut rows = Vec::new();
    let mut group: Vec<Letter> = Vec::new();
    let mut base: f64 = 0.0;
    for letter in letters {
        // Letters of smaller size (raised or lowered) belong to the row they touch.
        let reach = group.iter().map(|one| one.size).fold(letter.size, f64::max) * 0.45;
        if !group.is_empty() && letter.baseline - base > reach {
            rows.extend(rows_of(std::mem::take(&mut group), height));
        }
        if group.is_empty() {
            base = letter.baseline;
        } else if letter.size >= group.iter().map(|one| one.size).fold(0.0, f64::max) {
            base = base.max(letter.baseline);
        }
        group.push(letter);
    }
    rows.extend(rows_of(group, height));
    rows
}

/// Makes a row of the letters on one baseline; text painted over other text becomes a separate row.
fn rows_of(mut letters: Vec<Letter>, height: f64) -> Vec<Row> {
    /// Fewest letters that count as text over other text, and most rows at one place.
    const FEWEST: usize = 3;
    const MOST: usize = 4;
    letters.sort_by_key(|letter| letter.string);
    let mut layers: Vec<(BTreeMap<i64, i64>, Vec<Letter>)> = Vec::new();
    for string in letters.chunk_by(|a, b| a.string == b.string) {
        let seen = || string.iter().filter(|letter| !letter.text.trim().is_empty());
        let places: Vec<(i64, i64)> = seen().map(middle_half).collect();
        let is_free = |taken: &BTreeMap<i64, i64>| {
            let is_covered = |(left, right): &&(i64, i64)| {
                taken.range(..right).next_back().is_some_and(|(_, end)| end > left)
            };
            places.len() < FEWEST || places.iter().filter(is_covered).count() * 5 < places.len() * 3
        };
        let free = layers.iter().position(|(taken, _)| is_free(taken));
        let at = free.unwrap_or(layers.len()).min(MOST - 1);
        if at == layers.len() {
            layers.push(Default::default());
        }
        layers[at].0.extend(places);
        layers[at].1.extend_from_slice(string);
    }
    layers.into_iter().filter_map(|(_, letters)| row(letters, height)).collect()
}

/// Returns the left and right of a letter's middle half, in hundredths of a point.
fn middle_half(letter: &Letter) -> (i64, i64) {
    let quarter = (letter.right - letter.left) / 4.0;
    (((letter.left + quarter) * 100.0) as i64, ((letter.right - quarter) * 100.0) as i64)
}

fn row(mut letters: Vec<Letter>, height: f64) -> Option<Row> {
    letters.sort_by(|a, b| a.left.total_cmp(&b.left));
    put_marks_beside_their_letters(&mut letters);
    let size =
        median(letters.iter().filter(|one| !one.text.trim().is_empty()).map(|one| one.size))?;
    let baseline = median(letters.iter().map(|one| one.baseline))?;
    let mut is_apart = false;
    for letter in &mut letters {
        letter.is_apart = std::mem::replace(&mut is_apart, letter.text.trim().is_empty());
    }
    // Spaces are painted or not; gaps always show.
    letters.retain(|letter| !letter.text.trim().is_empty());
    let em = median(letters.iter().map(|one| one.em))?;
    let space = space(&letters, em);
    let mut pieces: Vec<Vec<Letter>> = Vec::new();
    for letter in letters {
        match pieces.last_mut().and_then(|piece| piece.last().map(|last| last.right)) {
            Some(end) if letter.left - end < GAP * size => {
                if let Some(piece) = pieces.last_mut() {
                    piece.push(letter);
                }
            }
            _ => pieces.push(vec![letter]),
        }
    }
    let pieces: Vec<Piece> =
        pieces.into_iter().filter_map(|letters| piece(letters, space)).collect();
    let place = (baseline / height.max(1.0)).clamp(0.0, 1.0);
    (!pieces.is_empty()).then_some(Row { pieces, baseline, size, place })
}

/// Moves each mark of a right-to-left script before its letter, because a page is painted from the left.
fn put_marks_beside_their_letters(letters: &mut [Letter]) {
    let bases: Vec<(f64, f64)> = letters
        .iter()
        .filter(|letter| !direction::is_mark(&letter.text) && !letter.text.trim().is_empty())
        .map(|letter| (letter.left, letter.right))
        .collect();
    for mark in letters.iter_mut().filter(|letter| direction::is_mark(&letter.text)) {
        let middle = f64::midpoint(mark.left, mark.right);
        let beyond = bases.partition_point(|(left, _)| *left <= middle);
        let base = beyond.checked_sub(1).and_then(|index| bases.get(index));
        if let Some((left, _)) = base.filter(|(_, right)| middle <= *right) {
            (mark.left, mark.right) = (*left, *left);
        }
    }
    letters.sort_by(|a, b| {
        let order = |letter: &Letter| !direction::is_mark(&letter.text);
        a.left.total_cmp(&b.left).then_with(|| order(a).cmp(&order(b)))
    });
}

/// Returns the least width of a space in a row, in sizes of the font: more in one with spread letters.
fn space(letters: &[Letter], em: f64) -> f64 {
    /// Minimum number of gaps for an estimate, and the widest gap within a word.
    const FEWEST: usize = 4;
    const WIDEST: f64 = 0.8;
    let mut end = f64::INFINITY;
    let mut gaps: Vec<(f64, bool)> = Vec::new();
    for letter in letters {
        let gap = (letter.left - end) / em;
        end = if end.is_finite() { end.max(letter.right) } else { letter.right };
        if gap.is_finite() && gap < GAP {
            gaps.push((gap, letter.is_apart));
        }
    }
    let wide = gaps.iter().filter(|(gap, _)| *gap > SPACE).count();
    let alphabetic =
        letters.iter().filter(|letter| letter.text.chars().all(char::is_alphabetic)).count();
    let is_spread = gaps.len() >= FEWEST && wide * 10 >= gaps.len() * 9;
    let Some(middle) = median(gaps.iter().map(|(gap, _)| *gap)).filter(|gap| *gap < WIDEST) else {
        return SPACE;
    };
    if !is_spread || alphabetic * 10 < letters.len() * 7 {
        return SPACE;
    }
    let word = middle * 1.4 + 0.05;
    // Where all gaps are alike, they are those between single letters if each was painted with a space.
    let is_one = gaps.iter().all(|(gap, _)| *gap < word);
    if is_one && gaps.iter().any(|(_, is_apart)| *is_apart) { SPACE } else { word }
}

fn piece(letters: Vec<Letter>, space: f64) -> Option<Piece> {
    let left = letters.first()?.left;
    let right = letters.iter().map(|one| one.right).fold(left, f64::max);
    let mut words: Vec<String> = Vec::new();
    let mut end = f64::NEG_INFINITY;
    for letter in &letters {
        let apart = letter.left - end > space * letter.em;
        end = end.max(letter.right);
        match words.last_mut() {
            Some(word) if !apart => word.push_str(&letter.text),
            _ => words.push(letter.text.clone()),
        }
    }
    Some(Piece { text: direction::in_reading_order(words), left, right })
}

/// Drops rows at the top and bottom that most pages have: page numbers, and all but the first of running titles.
pub(super) fn drop_running_titles(pages: &mut [Vec<Row>]) {
    /// The share of a page that running titles can be in.
    const EDGE: f64 = 0.09;
    /// Letters and digits of words around a page's number, such as `Page # of 12`, at most.
    const WORDS: usize = 12;
    if pages.len() < 3 {
        return;
    }
    let at_edge = |row: &Row| row.place < EDGE || row.place > 1.0 - EDGE;
    let mut counts: HashMap<String, usize> = HashMap::new();
    for (page, number) in pages.iter().zip(1..) {
        let at_edges = page.iter().filter(|row| at_edge(row));
        let forms: BTreeSet<String> = at_edges.flat_map(|row| forms(&row.text(), number)).collect();
        for form in forms {
            *counts.entry(form).or_insert(0) += 1;
        }
    }
    // Even and odd pages often differ.
    let most = (pages.len() * 2 / 5).max(2);
    let mut seen: BTreeSet<String> = BTreeSet::new();
    for (page, number) in pages.iter_mut().zip(1..) {
        let is_repeated = |form: &String| {
            // Numbers alone can be those of a table that continues.
            let most = if form.contains(char::is_alphabetic) { most } else { most.max(3) };
            counts.get(form).is_some_and(|count| *count >= most)
        };
        let says = |form: &String| {
            let least = if form.contains('#') { WORDS } else { 0 };
            form.contains(char::is_alphabetic)
                && form.chars().filter(|c| c.is_alphanumeric()).count() > least
        };
        page.retain(|row| {
            let forms = if at_edge(row) { forms(&row.text(), number) } else { Vec::new() };
            let repeated = forms.into_iter().find(is_repeated);
            repeated.is_none_or(|form| says(&form) && seen.insert(form))
        });
    }
}

/// Returns the forms in which other pages can repeat a row: as it is if it has letters, and with each of its numbers
/// counted from that of its page. An amount, whose digits are in groups, is not such a number; beside words, neither is
/// one that is far from the page's, such as that of an invoice.
fn forms(text: &str, page: i64) -> Vec<String> {
    /// Numbers and texts between them, above which a row is no running title.
    const MOST: usize = 40;
    /// Pages by which the numbers of an excerpt differ from its own.
    const FAR: i64 = 30;
    let has_letters = text.contains(char::is_alphabetic);
    let chars: Vec<char> = text.chars().collect();
    let parts: Vec<&[char]> =
        chars.chunk_by(|a, b| digit(*a).is_some() == digit(*b).is_some()).collect();
    let groups =
        |at: usize| matches!(parts.get(at), Some(['.' | ',' | '\'' | '’'])) && at + 1 < parts.len();
    let number = |at: usize| {
        let part = parts.get(at)?;
        let value = part
            .iter()
            .try_fold(0_i64, |value, c| value.checked_mul(10)?.checked_add(digit(*c)?.into()))?;
        let is_amount = groups(at + 1) || at.checked_sub(1).is_some_and(groups);
        let is_far = has_letters && (value - page).abs() > FAR;
        (!is_amount && !is_far).then_some(value)
    };
    let form = |counted: Option<(usize, i64)>| -> String {
        let written = parts.iter().enumerate().map(|(at, part)| match counted {
            Some((place, value)) if place == at => format!("#{}#", value - page),
            _ => part.iter().filter(|c| !c.is_whitespace()).collect(),
        });
        written.collect()
    };
    let numbers = (0..parts.len()).filter_map(|at| Some((at, number(at)?)));
    let counted = numbers.filter(|_| parts.len() <= MOST).map(Some);
    counted.chain(has_letters.then_some(None)).map(form).collect()
}

/// Returns the value of a digit of the scripts whose pages are numbered with it.
fn digit(c: char) -> Option<u32> {
    const ZEROS: &str = "0٠۰०০๐０";
    let value = |zero: char| u32::from(c).checked_sub(zero.into()).filter(|value| *value < 10);
    ZEROS.chars().find_map(value)
}

pub(super) fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
