//! Rows of an import, as many to a statement as a message bears.

use perihelion_database::{Error, Query, Row, Transaction, Value, query};
use sqlx::AssertSqlSafe;

/// Bytes that one statement of an import keeps; a single longer row is a statement of its own.
const TOGETHER: usize = 4 << 20;

/// Rows of one statement, however small they are: with 17 columns each, well below what either database takes of parameters.
const MOST: usize = 512;

/// Writes rows of one table.
pub(super) struct Insert {
    /// The table and its columns.
    pub(super) into: &'static str,
    pub(super) columns: usize,
    /// What is done about a row that is there already; nothing: it is refused.
    pub(super) on_conflict: &'static str,
}

impl Insert {
    /// Writes all rows; `size` is about how many bytes one has, `bind` adds its columns.
    pub(super) async fn all<T>(
        &self,
        transaction: &mut Transaction<'_>,
        rows: &[T],
        size: impl Fn(&T) -> usize,
        bind: impl Fn(Query, &T) -> Query,
    ) -> Result<(), Error> {
        for these in parts(rows, size) {
            let insert = query(AssertSqlSafe(self.of(these.len()))).unprepared();
            transaction.execute(&these.iter().fold(insert, &bind)).await?;
        }
        Ok(())
    }

    /// Returns the statement for so many rows.
    fn of(&self, rows: usize) -> String {
        let row = |row: usize| {
            let place = |column: usize| format!("${}", row * self.columns + column);
            format!("({})", (1..=self.columns).map(place).collect::<Vec<_>>().join(", "))
        };
        let values = (0..rows).map(row).collect::<Vec<_>>().join(", ");
        format!("{} VALUES {values}{}", self.into, self.on_conflict)
    }
}

/// Reads the first row, if any, of a statement that ends in the column that has one of the values.
pub(super) async fn find_any(
    transaction: &mut Transaction<'_>,
    statement: &str,
    values: &[Value],
) -> Result<Option<Row>, Error> {
    for these in values.chunks(MOST) {
        let places = (1..=these.len()).map(|place| format!("${place}")).collect::<Vec<_>>();
        let text = format!("{statement} IN ({}) LIMIT 1", places.join(", "));
        let find = query(AssertSqlSafe(text)).unprepared();
        let row =
            transaction.fetch_optional(&these.iter().cloned().fold(find, Query::bind)).await?;
        if row.is_some() {
            return Ok(row);
        }
    }
    Ok(None)
}

/// Splits rows into those that one statement keeps.
fn parts<T>(mut rows: &[T], size: impl Fn(&T) -> usize) -> impl Iterator<Item = &[T]> {
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
