//! Rows of an import, as many to a statement as a message bears.

/// Bytes that one statement of an import keeps; a single longer row is a statement of its own.
const TOGETHER: usize = 4 << 20;

/// Rows of one statement, however small they are.
const MOST: usize = 1024;

/// Splits rows into those that one statement keeps.
pub(super) fn parts<T>(mut rows: &[T], size: impl Fn(&T) -> usize) -> impl Iterator<Item = &[T]> {
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let beyond = rows.iter().take(MOST).position(|row| {
            bytes += size(row);
            bytes > TOGETHER
        });
        let end = beyond.unwrap_or(rows.len().min(MOST)).max(1);
        let (these, rest) = rows.split_at_checked(end)?;
        rows = rest;
        Some(these)
    })
}
