//! Search by meaning that Postgres answers, where reading the vectors would take longer.
//!
//! If the extension `vector` is installed, `recall_vector` has each vector a second time, in the column `embedding`.
//! The database ranks by this column, and the first results are scored again by the bytes, as [`super::nearest`] does:
//! both return the same list, to the last bit. A row with an empty column was written or changed by a process that does
//! not know the column (a trigger then empties it). While a model has such rows in a tenant the database does not rank,
//! and each search fills some of them.
//!
//! The column is no migration, because the extension is the operator's choice: it is added by the first process that
//! finds the extension. Deliberately absent: HNSW and IVFFlat. They rank first and filter afterwards, so that a filter,
//! or the tenant, leaves fewer than were wanted: of 20,000 rows with 2 % in the tenant, 0.8 of 10. Exact search always
//! returns the possible maximum.

use std::{collections::BTreeSet, sync::OnceLock};

use parking_lot::Mutex;
use perihelion_database::{Database, Dialect, Error as Failure, Transaction, query};
use sqlx::AssertSqlSafe;

use super::nearest::{NearestQuery, first, similarity};
use crate::{Result, Scope, vector};

/// Numbers of a vector that the extension takes at most.
const MOST_NUMBERS: usize = 16_000;

/// Rows that one search fills at most.
const FILLED_AT_ONCE: i64 = 500;

/// The present parts: the extension if its type exists, and the column.
const LOOK: &str = "SELECT to_regtype('vector') IS NOT NULL
        AND EXISTS (SELECT 1 FROM pg_extension WHERE extname = 'vector'),
     EXISTS (SELECT 1 FROM pg_attribute WHERE attrelid = to_regclass('recall_vector')
        AND attname = 'embedding' AND NOT attisdropped)";

/// The condition under which one process adds the column, without waiting for a lock on the table.
const LOCK: [&str; 2] =
    ["SET LOCAL lock_timeout = '1s'", "SELECT pg_advisory_xact_lock(7310589746236910)"];

/// The column; a list of the rows with an empty one; and the trigger that empties it when other bytes are written
/// without it.
///
/// A vector stays in its row's page while there is space, so that one read finds it; the names are not moved out for
/// it.
const ADD: [&str; 5] = [
    "ALTER TABLE recall_vector ADD COLUMN embedding vector",
    "ALTER TABLE recall_vector ALTER COLUMN embedding SET STORAGE MAIN,
        ALTER COLUMN tenant SET STORAGE PLAIN, ALTER COLUMN model SET STORAGE PLAIN,
        ALTER COLUMN hash SET STORAGE PLAIN",
    "CREATE INDEX recall_vector_empty ON recall_vector (tenant, model) WHERE embedding IS NULL",
    "CREATE OR REPLACE FUNCTION recall_vector_changed() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN NEW.embedding := NULL; RETURN NEW; END $$",
    "CREATE TRIGGER recall_vector_changed BEFORE UPDATE OF body ON recall_vector FOR EACH ROW
        WHEN (OLD.body IS DISTINCT FROM NEW.body AND OLD.embedding IS NOT DISTINCT FROM NEW.embedding)
        EXECUTE FUNCTION recall_vector_changed()",
];

/// The column of one database, as known to this process.
#[derive(Default)]
pub(super) struct Pgvector {
    is_there: OnceLock<bool>,
    /// Tenants and models with rows whose column is empty.
    unfilled: Mutex<BTreeSet<(String, String)>>,
}

impl Pgvector {
    /// Returns whether the column has vectors; it is added if the extension exists without it.
    pub(super) async fn is_there(&self, database: &Database) -> Result<bool> {
        if let Some(known) = self.is_there.get() {
            return Ok(*known);
        }
        let found = match database.dialect() {
            Dialect::Sqlite => false,
            Dialect::Postgres => look_or_add(database).await?,
        };
        Ok(*self.is_there.get_or_init(|| found))
    }

    /// Lets the database rank the items of a space; `None` if it cannot, or would miss some.
    pub(super) async fn best(
        &self,
        database: &Database,
        asked: &NearestQuery<'_>,
    ) -> Result<Option<Vec<(u64, f64)>>> {
        let Some(text) = text_of(&asked.unit) else { return Ok(None) };
        if !self.is_there(database).await? {
            return Ok(None);
        }
        let look = query(
            "SELECT 1 FROM recall_vector
             WHERE tenant = $1 AND model = $2 AND embedding IS NULL LIMIT 1",
        );
        let look = look.bind(asked.scope.tenant()).bind(asked.model);
        if database.fetch_optional(&look).await?.is_some() {
            self.unfilled.lock().insert((asked.scope.tenant().to_owned(), asked.model.to_owned()));
            return Ok(None);
        }
        rank(database, asked, text).await.map(Some)
    }

    /// Fills some empty columns of a tenant's vectors by a model, if this process knows of any.
    pub(super) async fn fill_some(&self, database: &Database, asked: &NearestQuery<'_>) {
        let place = (asked.scope.tenant().to_owned(), asked.model.to_owned());
        if !self.unfilled.lock().contains(&place) {
            return;
        }
        // The search is answered: what fails here is done by another process, or by this one's next one.
        let filled = fill(database, asked.scope, asked.model, asked.unit.len()).await;
        if filled.unwrap_or_default() == 0 {
            self.unfilled.lock().remove(&place);
        }
    }
}

/// Returns a vector in the extension's form; `None` if it does not accept the vector.
pub(super) fn text_of(values: &[f32]) -> Option<String> {
    let is_taken =
        (1..=MOST_NUMBERS).contains(&values.len()) && values.iter().all(|value| value.is_finite());
    // With an exponent: the shortest text that is read as the same number.
    let numbers = || values.iter().map(|value| format!("{value:e}")).collect::<Vec<_>>();
    is_taken.then(|| format!("[{}]", numbers().join(",")))
}

async fn look_or_add(database: &Database) -> Result<bool> {
    let Some(row) = database.fetch_optional(&query(LOOK)).await? else { return Ok(false) };
    let has_extension: bool = row.get(0)?;
    let has_column: bool = row.get(1)?;
    // The role may lack the right, or a backup hold the table: this process continues without, the next one tries again.
    Ok(has_extension && (has_column || add(database).await.is_ok()))
}

async fn add(database: &Database) -> Result<(), Failure> {
    let mut transaction = database.begin().await?;
    run(&mut transaction, &LOCK).await?;
    let row = transaction.fetch_optional(&query(LOOK)).await?;
    // Added by another process while this one waited.
    if !row.map_or(Ok(false), |row| row.get(1))? {
        run(&mut transaction, &ADD).await?;
    }
    transaction.commit().await
}

async fn run(transaction: &mut Transaction<'_>, all: &[&'static str]) -> Result<(), Failure> {
    for sql in all {
        transaction.execute(&query(*sql)).await?;
    }
    Ok(())
}

/// Fills empty columns from the bytes and returns how many.
async fn fill(database: &Database, scope: &Scope, model: &str, dimension: usize) -> Result<u64> {
    let mut transaction = database.begin().await?;
    // Rows that another process fills or writes in this moment are left to it.
    let read = query(
        "SELECT hash, body FROM recall_vector
         WHERE tenant = $1 AND model = $2 AND embedding IS NULL AND octet_length(body) = $3
         LIMIT $4 FOR UPDATE SKIP LOCKED",
    );
    let read = read.bind(scope.tenant()).bind(model).bind(bytes_of(dimension)).bind(FILLED_AT_ONCE);
    let mut hashes = Vec::new();
    let mut texts = Vec::new();
    for row in transaction.fetch_all(&read).await? {
        if let Some(text) = text_of(&vector::from_bytes(&row.get::<Vec<u8>>(1)?)) {
            hashes.push(row.get::<String>(0)?);
            texts.push(text);
        }
    }
    let write = query(
        "UPDATE recall_vector v SET embedding = read.text::vector
         FROM unnest($3, $4) AS read (hash, text)
         WHERE v.tenant = $1 AND v.model = $2 AND v.hash = read.hash",
    );
    let write = write.bind(scope.tenant()).bind(model).bind(hashes).bind(texts);
    let filled = transaction.execute(&write).await?;
    transaction.commit().await?;
    Ok(filled)
}

/// Ranks by the column, then scores by the bytes what can be among the best.
async fn rank(
    database: &Database,
    asked: &NearestQuery<'_>,
    text: String,
) -> Result<Vec<(u64, f64)>> {
    let filter = if asked.passing.is_some() { "AND i.number = ANY ($8)" } else { "" };
    // Not `$4::vector` in its place: it would be read again for each row. Not a join: where the server has no statistics of rows that just
    // came, it takes them for few and compares each item with each vector, for half a minute.
    let sql = format!(
        "WITH asked AS MATERIALIZED (SELECT $4::vector AS vector),
         scored AS MATERIALIZED (
            SELECT i.number, i.hash, (
                SELECT CASE WHEN octet_length(v.body) = $5
                    THEN v.embedding <#> (SELECT vector FROM asked) END
                FROM recall_vector v
                WHERE v.tenant = $1 AND v.model = $2 AND v.hash = i.hash) AS distance
            FROM recall_item i WHERE i.space = $3 {filter}),
         last AS (SELECT max(distance) AS distance
            FROM (SELECT distance FROM scored ORDER BY distance LIMIT $6) best),
         near AS (SELECT hash, string_agg(number::text, ' ') AS numbers FROM scored
            WHERE distance <= (SELECT distance FROM last) + $7 GROUP BY hash)
         SELECT numbers, (SELECT body FROM recall_vector v
            WHERE v.tenant = $1 AND v.model = $2 AND v.hash = near.hash) FROM near"
    );
    let mut read = query(AssertSqlSafe(sql))
        .binds((asked.scope.tenant(), asked.model, asked.space.id, text))
        .binds((bytes_of(asked.unit.len()), i64::try_from(asked.most).unwrap_or(i64::MAX)))
        .bind(margin(asked.unit.len()));
    if let Some(passing) = asked.passing {
        read = read.bind(passing.iter().map(|number| *number as i64).collect::<Vec<i64>>());
    }
    let mut ranked = Vec::new();
    for row in database.fetch_all(&read).await? {
        let numbers: String = row.get(0)?;
        let values = vector::from_bytes(&row.get::<Vec<u8>>(1)?);
        let similarity = similarity(&asked.unit, &values);
        let numbers = numbers.split(' ').filter_map(|number| number.parse::<u64>().ok());
        ranked.extend(numbers.map(|number| (number, similarity)));
    }
    Ok(first(ranked, asked.most))
}

/// Returns how much lower the database can score an item than this process does, relative to the last wanted one.
///
/// The server adds single-precision products up in another order: either sum of n products of unit vectors is off by n
/// half-units in the last place at most. Similarities are rounded to 1e-6 here, and equal ones are ordered by number.
fn margin(dimension: usize) -> f64 {
    2.0 * dimension as f64 * f64::from(f32::EPSILON) + 2e-6
}

fn bytes_of(dimension: usize) -> i64 {
    (dimension * size_of::<f32>()) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_is_written_with_exact_numbers_and_an_invalid_vector_has_no_text() {
        let values = [0.1_f32, -1.0, 3.0e-20, 0.0, f32::MIN_POSITIVE / 8.0];
        let text = text_of(&values).unwrap();
        assert_eq!(text, "[1e-1,-1e0,3e-20,0e0,1.469368e-39]");
        let inner = text.trim_matches(['[', ']']);
        let read: Vec<f32> = inner.split(',').map(|number| number.parse().unwrap()).collect();
        assert_eq!(read, values);
        assert_eq!(text_of(&[f32::NAN]), None);
        assert_eq!(text_of(&[]), None);
        assert_eq!(text_of(&vec![0.0; MOST_NUMBERS + 1]), None);
    }
}
