//! Statements over many rows.

use perihelion_database::{Query, query};
use sqlx::AssertSqlSafe;

/// Rows of one statement at most: sizes are few, so that a connection keeps few statements prepared.
const SIZES: [usize; 3] = [100, 10, 1];

/// Cuts a list into parts of a few sizes.
pub(super) fn parts<T>(mut list: &[T]) -> Vec<&[T]> {
    let mut parts = Vec::new();
    for size in SIZES {
        while list.len() >= size {
            let (part, rest) = list.split_at(size);
            parts.push(part);
            list = rest;
        }
    }
    parts
}

/// Begins a statement with so many rows of so many placeholders: `{before}($1, $2), ($3, $4){after}`.
pub(super) fn with_rows(before: &str, rows: usize, columns: usize, after: &str) -> Query {
    with_cast_rows(before, rows, &vec![""; columns], after)
}

/// Like [`with_rows`], with what stands behind the placeholder of each column: `::vector`, or nothing.
pub(super) fn with_cast_rows(before: &str, rows: usize, casts: &[&str], after: &str) -> Query {
    let row = |number: usize| {
        let places = casts.iter().zip(1..);
        let places = places.map(|(cast, at)| format!("${}{cast}", number * casts.len() + at));
        format!("({})", places.collect::<Vec<_>>().join(", "))
    };
    let rows: Vec<String> = (0..rows).map(row).collect();
    query(AssertSqlSafe(format!("{before}{}{after}", rows.join(", "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_cut_into_a_few_sizes() {
        let list: Vec<u32> = (0..213).collect();
        let sizes: Vec<usize> = parts(&list).iter().map(|part| part.len()).collect();
        assert_eq!(sizes, [100, 100, 10, 1, 1, 1]);
        assert_eq!(parts(&list).concat(), list);
    }
}
