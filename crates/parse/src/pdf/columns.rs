//! Puts rows in the order of reading: columns of prose one after the other.

use super::rows::{Piece, Row, median};

const FEWEST_ROWS: usize = 5;

/// Least width of a column, in sizes of the font: narrower ones belong to tables.
const LEAST_WIDTH: f64 = 11.0;

/// How deeply columns are looked for in columns.
const DEEPEST: usize = 4;

/// Puts rows in order; `depth` counts the columns around them.
pub(super) fn in_order(rows: Vec<Row>, depth: usize) -> Vec<Row> {
    if depth > DEEPEST || rows.len() < FEWEST_ROWS {
        return rows;
    }
    let Some((range, gap)) = columned(&rows) else { return rows };
    let mut above = rows;
    let mut middle = above.split_off(range.start);
    let below = middle.split_off(range.len());
    let right_to_left =
        middle.iter().filter(|row| super::direction::is_right_to_left(&row.text())).count() * 2
            > middle.len();
    let (left, right) = split(middle, gap);
    let (first, second) = if right_to_left { (right, left) } else { (left, right) };
    [above, first, second, below].into_iter().flat_map(|rows| in_order(rows, depth + 1)).collect()
}

/// Finds the longest range of rows in two columns, and the gap between them.
fn columned(rows: &[Row]) -> Option<(std::ops::Range<usize>, f64)> {
    let size = median(rows.iter().map(|row| row.size))?;
    let mut best: Option<(std::ops::Range<usize>, f64)> = None;
    for gap in gaps(rows) {
        let mut start = 0;
        for index in 0..=rows.len() {
            let crosses = rows.get(index).is_none_or(|row| {
                row.pieces.iter().any(|piece| piece.left < gap - 1.0 && piece.right > gap + 1.0)
            });
            if !crosses {
                continue;
            }
            let range = start..index;
            start = index + 1;
            let longer = best.as_ref().is_none_or(|(best, _)| range.len() > best.len());
            if range.len() >= FEWEST_ROWS && longer && is_prose(&rows[range.clone()], gap, size) {
                best = Some((range, gap));
            }
        }
    }
    best
}

/// Returns the left edges of pieces that have other ones to their left: candidates for the left edge of a column.
fn gaps(rows: &[Row]) -> Vec<f64> {
    let mut edges: Vec<f64> =
        rows.iter().flat_map(|row| &row.pieces).map(|piece| piece.left - 2.0).collect();
    edges.sort_by(f64::total_cmp);
    let mut counted: Vec<(f64, usize)> = Vec::new();
    for edge in edges {
        match counted.last_mut() {
            Some((first, count)) if edge - *first < 3.0 => *count += 1,
            _ => counted.push((edge, 1)),
        }
    }
    counted.retain(|(_, count)| *count >= FEWEST_ROWS);
    counted.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counted.truncate(8);
    counted.into_iter().map(|(edge, _)| edge).collect()
}

fn is_prose(rows: &[Row], gap: f64, size: f64) -> bool {
    let side = |right: bool| {
        let on_side = move |piece: &&Piece| (piece.left >= gap - 1.0) == right;
        rows.iter()
            .flat_map(|row| &row.pieces)
            .filter(on_side)
            .map(|piece| piece.right - piece.left)
    };
    [false, true].into_iter().all(|right| {
        let count = side(right).count();
        count >= FEWEST_ROWS && median(side(right)).is_some_and(|width| width >= LEAST_WIDTH * size)
    })
}

fn split(rows: Vec<Row>, gap: f64) -> (Vec<Row>, Vec<Row>) {
    let mut left = Vec::new();
    let mut right = Vec::new();
    for row in rows {
        let (on_right, on_left): (Vec<Piece>, Vec<Piece>) =
            row.pieces.into_iter().partition(|piece| piece.left >= gap - 1.0);
        for (pieces, side) in [(on_left, &mut left), (on_right, &mut right)] {
            if !pieces.is_empty() {
                side.push(Row { pieces, ..row });
            }
        }
    }
    (left, right)
}
