//! Tables of pages: cells put in their places, spans repeated in every place they cover.

use dom_query::NodeRef;

use super::{is_one_of, text_of};
use crate::builder::Grid;

/// Most places of a table, so that spans cannot make it endless.
const MOST_CELLS: usize = 200_000;

/// Returns a table's rows; `None` if it only arranges blocks on the page.
pub(super) fn grid(table: NodeRef<'_>) -> Option<Grid> {
    let rows = rows(table);
    let widest = rows.iter().map(|row| cells(*row).len()).max().unwrap_or(0);
    let arranges = rows.iter().copied().flat_map(cells).any(contains_blocks);
    if arranges && (widest < 2 || rows.len() < 2) {
        return None;
    }
    let mut placed: Vec<Vec<Option<String>>> = Vec::new();
    let mut count = 0;
    for (y, row) in rows.iter().enumerate() {
        let mut x = 0;
        for cell in cells(*row) {
            while placed.get(y).and_then(|row| row.get(x)).is_some_and(Option::is_some) {
                x += 1;
            }
            let text = text_of(cell);
            let wide = span(cell, "colspan");
            let high = span(cell, "rowspan").min(rows.len() - y);
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

fn finished(placed: Vec<Vec<Option<String>>>) -> Grid {
    let rows =
        placed.into_iter().map(|row| row.into_iter().map(Option::unwrap_or_default).collect());
    Grid { rows: rows.filter(|row: &Vec<String>| !row.is_empty()).collect() }
}

fn rows(table: NodeRef<'_>) -> Vec<NodeRef<'_>> {
    let mut rows = Vec::new();
    for child in table.children_it(false) {
        if child.has_name("tr") {
            rows.push(child);
        } else if is_one_of(child, &["thead", "tbody", "tfoot"]) {
            rows.extend(child.children_it(false).filter(|row| row.has_name("tr")));
        }
    }
    rows
}

fn cells(row: NodeRef<'_>) -> Vec<NodeRef<'_>> {
    row.children_it(false).filter(|cell| is_one_of(*cell, &["td", "th"])).collect()
}

fn span(cell: NodeRef<'_>, name: &str) -> usize {
    cell.attr(name).and_then(|value| value.trim().parse().ok()).unwrap_or(1).clamp(1, 1000)
}

fn contains_blocks(cell: NodeRef<'_>) -> bool {
    cell.descendants_it().any(|node| is_one_of(node, &["table", "h1", "h2", "h3", "pre"]))
}
