//! Tables of pages: cells put in their places, spans repeated in every place they cover.

use std::rc::Rc;

use markup5ever_rcdom::Handle;

use super::{attribute, element, text_of};
use crate::builder::Grid;

/// Most places of a table, so that spans cannot make it endless.
const MOST_CELLS: usize = 200_000;

/// Returns a table's rows; none where it only arranges blocks on the page.
pub(super) fn grid(table: &Handle) -> Option<Grid> {
    let rows = rows(table);
    let widest = rows.iter().map(|row| cells(row).len()).max().unwrap_or(0);
    let arranges = rows.iter().flat_map(cells).any(|cell| contains_blocks(&cell));
    if arranges && (widest < 2 || rows.len() < 2) {
        return None;
    }
    let mut placed: Vec<Vec<Option<String>>> = Vec::new();
    let mut count = 0;
    for (y, row) in rows.iter().enumerate() {
        let mut x = 0;
        for cell in cells(row) {
            while placed.get(y).and_then(|row| row.get(x)).is_some_and(Option::is_some) {
                x += 1;
            }
            let text = text_of(&cell);
            let wide = span(&cell, "colspan");
            let high = span(&cell, "rowspan").min(rows.len() - y);
            count += wide * high;
            if count > MOST_CELLS {
                return Some(finished(placed));
            }
            for y in y..y + high {
                if placed.len() <= y {
                    placed.resize(y + 1, Vec::new());
                }
                if placed[y].len() < x + wide {
                    placed[y].resize(x + wide, None);
                }
                placed[y][x..x + wide].fill(Some(text.clone()));
            }
            x += wide;
        }
    }
    Some(finished(placed))
}

/// Returns the captions of a table.
pub(super) fn captions(table: &Handle) -> Vec<Handle> {
    let children = table.children.borrow();
    children.iter().filter(|child| element(child) == Some("caption")).map(Rc::clone).collect()
}

fn finished(placed: Vec<Vec<Option<String>>>) -> Grid {
    let rows =
        placed.into_iter().map(|row| row.into_iter().map(Option::unwrap_or_default).collect());
    Grid { rows: rows.filter(|row: &Vec<String>| !row.is_empty()).collect() }
}

fn rows(table: &Handle) -> Vec<Handle> {
    let mut rows = Vec::new();
    for child in table.children.borrow().iter() {
        match element(child) {
            Some("tr") => rows.push(Rc::clone(child)),
            Some("thead" | "tbody" | "tfoot") => {
                let children = child.children.borrow();
                rows.extend(
                    children.iter().filter(|row| element(row) == Some("tr")).map(Rc::clone),
                );
            }
            _ => {}
        }
    }
    rows
}

fn cells(row: &Handle) -> Vec<Handle> {
    let children = row.children.borrow();
    let is_cell = |cell: &&Handle| matches!(element(cell), Some("td" | "th"));
    children.iter().filter(is_cell).map(Rc::clone).collect()
}

fn span(cell: &Handle, name: &str) -> usize {
    attribute(cell, name).and_then(|value| value.trim().parse().ok()).unwrap_or(1).clamp(1, 1000)
}

fn contains_blocks(cell: &Handle) -> bool {
    let mut open: Vec<Handle> = cell.children.borrow().clone();
    while let Some(node) = open.pop() {
        if matches!(element(&node), Some("table" | "h1" | "h2" | "h3" | "pre")) {
            return true;
        }
        open.extend(node.children.borrow().iter().cloned());
    }
    false
}
