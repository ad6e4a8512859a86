//! Makes paragraphs, headings, lists and tables of rows.

use std::collections::{BTreeMap, HashMap};

use super::rows::{Piece, Row};
use crate::builder::{Builder, Grid, join};
use crate::recognition::Recognized;

/// How much larger than the text a heading is.
const LARGER: f64 = 1.12;

/// Most letters of a heading.
const LONGEST_HEADING: usize = 160;

pub(super) fn write(
    pages: &[Vec<Row>],
    recognized: &BTreeMap<u32, Recognized>,
    builder: &mut Builder,
) {
    let body = body_size(pages);
    for (rows, number) in pages.iter().zip(1u32..) {
        builder.page(number);
        let mut at = 0;
        while at < rows.len() {
            at = table(rows, at, builder)
                .or_else(|| heading(rows, at, body, builder))
                .unwrap_or_else(|| paragraph(rows, at, body, builder));
        }
        for text in recognized.get(&number).iter().flat_map(|page| &page.paragraphs) {
            builder.paragraph(text);
        }
    }
}

fn body_size(pages: &[Vec<Row>]) -> f64 {
    let mut counts: HashMap<i64, usize> = HashMap::new();
    for row in pages.iter().flatten() {
        *counts.entry((row.size * 4.0).round() as i64).or_insert(0) += row.len();
    }
    let most = counts.into_iter().max_by_key(|(size, count)| (*count, -*size));
    most.map_or(10.0, |(size, _)| size as f64 / 4.0)
}

fn follows(row: &Row, next: &Row) -> bool {
    let step = next.baseline - row.baseline;
    let alike = (row.size - next.size).abs() < row.size * 0.12;
    alike && step > 0.0 && step < row.size.max(next.size) * 1.75
}

fn heading(rows: &[Row], at: usize, body: f64, builder: &mut Builder) -> Option<usize> {
    let first = &rows[at];
    if first.size < body * LARGER {
        return None;
    }
    let mut end = at + 1;
    while end < rows.len() && follows(&rows[end - 1], &rows[end]) {
        end += 1;
    }
    let text = rows[at..end].iter().map(Row::text).collect::<Vec<_>>().join(" ");
    let letters = text.chars().filter(|c| c.is_alphabetic()).count();
    if text.chars().count() > LONGEST_HEADING || letters < 2 {
        return None;
    }
    let level = match first.size / body {
        ratio if ratio >= 1.6 => 1,
        ratio if ratio >= 1.3 => 2,
        _ => 3,
    };
    builder.heading(level, &text);
    Some(end)
}

fn paragraph(rows: &[Row], at: usize, body: f64, builder: &mut Builder) -> usize {
    let mut text = rows[at].text();
    let mut end = at + 1;
    while let Some(next) = rows.get(end) {
        let last = &rows[end - 1];
        let indented = next.left() > last.left() + body * 0.9 && end - at > 1;
        let starts_table = next.pieces.len() > 1
            && rows.get(end + 1).is_some_and(|row| row.pieces.len() > 1 && near(next, row));
        let starts_item = next.text().starts_with(['•', '‣', '▪', '●', '◦', '∙']);
        let new = !follows(last, next) || starts_item || indented || starts_table;
        if new {
            break;
        }
        join(&mut text, &next.text());
        end += 1;
    }
    match text.strip_prefix(['•', '‣', '▪', '●', '◦', '∙', '·']) {
        Some(item) => builder.item(0, "-", item),
        None => builder.paragraph(&text),
    }
    end
}

fn near(row: &Row, next: &Row) -> bool {
    let step = next.baseline - row.baseline;
    step > 0.0 && step < row.size.max(next.size) * 3.5
}

/// Writes rows with aligned pieces as a table.
fn table(rows: &[Row], at: usize, builder: &mut Builder) -> Option<usize> {
    let mut end = at;
    while end < rows.len()
        && rows[end].pieces.len() > 1
        && (end == at || near(&rows[end - 1], &rows[end]))
    {
        end += 1;
    }
    if end - at < 2 {
        return None;
    }
    let columns = columns(&rows[at..end]);
    if columns.len() < 2 {
        return None;
    }
    let mut grid = Grid::default();
    for row in &rows[at..end] {
        let mut cells = vec![String::new(); columns.len()];
        for piece in &row.pieces {
            let middle = f64::midpoint(piece.left, piece.right);
            let column =
                columns.iter().position(|column| middle <= column.1).unwrap_or(columns.len() - 1);
            if !cells[column].is_empty() {
                cells[column].push(' ');
            }
            cells[column].push_str(&piece.text);
        }
        grid.push(cells);
    }
    builder.table(&grid);
    Some(end)
}

/// Returns the columns' left and right edges: overlapping pieces belong to one.
fn columns(rows: &[Row]) -> Vec<(f64, f64)> {
    let mut pieces: Vec<&Piece> = rows.iter().flat_map(|row| &row.pieces).collect();
    pieces.sort_by(|a, b| a.left.total_cmp(&b.left));
    let mut columns: Vec<(f64, f64)> = Vec::new();
    for piece in pieces {
        match columns.last_mut() {
            Some((_, right)) if piece.left < *right => *right = right.max(piece.right),
            _ => columns.push((piece.left, piece.right)),
        }
    }
    columns
}
