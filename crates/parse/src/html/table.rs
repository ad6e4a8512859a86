//! Tables of pages: cells put in their places, spans repeated in every place they cover.

use dom_query::NodeRef;

use super::{is_hidden, is_one_of, text_of};
use crate::builder::Grid;

/// Most bytes that spans repeat, so that they cannot make a table endless.
const MOST_REPEATED: usize = 4_000_000;

/// Returns a table's rows; `None` if it only arranges blocks on the page.
pub(super) fn grid(table: NodeRef<'_>) -> Option<Grid> {
    let rows = rows(table);
    let widest = rows.iter().map(|row| cells(*row).len()).max().unwrap_or(0);
    let arranges = rows.iter().copied().flat_map(cells).any(contains_blocks);
    if arranges && (widest < 2 || rows.len() < 2) {
        return None;
    }
    let mut placed: Vec<Vec<Option<String>>> = Vec::new();
    let mut repeated = 0;
    for (y, row) in rows.iter().enumerate() {
        let mut x = 0;
        for cell in cells(*row) {
            while placed.get(y).and_then(|row| row.get(x)).is_some_and(Option::is_some) {
                x += 1;
            }
            let text = text_of(cell);
            let mut wide = span(cell, "colspan");
            let mut high = span(cell, "rowspan").min(rows.len() - y);
            repeated += (wide * high - 1) * text.len().max(1);
            if repeated > MOST_REPEATED {
                wide = 1;
                high = 1;
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
    let rows =
        placed.into_iter().map(|row| row.into_iter().map(Option::unwrap_or_default).collect());
    Some(rows.filter(|row: &Vec<String>| !row.is_empty()).collect())
}

fn rows(table: NodeRef<'_>) -> Vec<NodeRef<'_>> {
    let is_row = |node: &NodeRef<'_>| node.has_name("tr") && !is_hidden(*node);
    let mut rows = Vec::new();
    for child in table.children_it(false) {
        if is_row(&child) {
            rows.push(child);
        } else if is_one_of(child, &["thead", "tbody", "tfoot"]) && !is_hidden(child) {
            rows.extend(child.children_it(false).filter(is_row));
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
