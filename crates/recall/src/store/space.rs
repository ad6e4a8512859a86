//! The row that a space has: statistics, the next number, and the lock for changes.

use std::collections::BTreeSet;

use perihelion_database::{Database, Dialect, Query, Row, Transaction, query};

use crate::{Error, Scope, bm25::Statistics, words::Language};

/// What lies in one scope and is of one kind.
#[derive(Clone, Debug)]
pub(super) struct Space {
    pub(super) id: i64,
    pub(super) statistics: Statistics,
    pub(super) next_item: u64,
    pub(super) revision: i64,
    pub(super) languages: BTreeSet<Language>,
}

const READ: &str = "SELECT id, items, length, next_item, revision, languages FROM recall_space
     WHERE tenant = $1 AND owner = $2 AND kind = $3";

/// The lock makes writers of one space take turns; SQLite's transaction is a lock already.
const LOCK: &str = "SELECT id, items, length, next_item, revision, languages FROM recall_space
     WHERE tenant = $1 AND owner = $2 AND kind = $3 FOR UPDATE";

const MAKE: &str = "INSERT INTO recall_space (tenant, owner, kind) VALUES ($1, $2, $3)
     ON CONFLICT (tenant, owner, kind) DO NOTHING";

pub(super) async fn read(
    database: &Database,
    scope: &Scope,
    kind: &str,
) -> Result<Option<Space>, Error> {
    let row = database.fetch_optional(&named(READ, scope, kind)).await?;
    row.as_ref().map(decode).transpose()
}

/// Returns the space, locked for changes; none when nothing was ever put there.
pub(super) async fn lock(
    transaction: &mut Transaction<'_>,
    scope: &Scope,
    kind: &str,
) -> Result<Option<Space>, Error> {
    let sql = match transaction.dialect() {
        Dialect::Sqlite => READ,
        Dialect::Postgres => LOCK,
    };
    let row = transaction.fetch_optional(&named(sql, scope, kind)).await?;
    row.as_ref().map(decode).transpose()
}

/// Returns the space, locked for changes and made when it was not there.
pub(super) async fn lock_or_make(
    transaction: &mut Transaction<'_>,
    scope: &Scope,
    kind: &str,
) -> Result<Space, Error> {
    if let Some(space) = lock(transaction, scope, kind).await? {
        return Ok(space);
    }
    transaction.execute(&named(MAKE, scope, kind)).await?;
    let made = lock(transaction, scope, kind).await?;
    made.ok_or_else(|| Error::Damaged { kind: kind.to_owned(), what: "no space".to_owned() })
}

pub(super) async fn save(transaction: &mut Transaction<'_>, space: &Space) -> Result<(), Error> {
    let languages: Vec<&str> = space.languages.iter().map(|language| language.code()).collect();
    let save = query(
        "UPDATE recall_space SET items = $2, length = $3, next_item = $4, languages = $5,
            revision = revision + 1 WHERE id = $1",
    );
    let save = save
        .bind(space.id)
        .bind(space.statistics.items as i64)
        .bind(space.statistics.length as i64)
        .bind(space.next_item as i64)
        .bind(languages.join(" "));
    transaction.execute(&save).await?;
    Ok(())
}

fn named(sql: &'static str, scope: &Scope, kind: &str) -> Query {
    query(sql).bind(scope.tenant()).bind(scope.owner()).bind(kind)
}

fn decode(row: &Row) -> Result<Space, Error> {
    let languages: String = row.get(5)?;
    Ok(Space {
        id: row.get(0)?,
        statistics: Statistics {
            items: row.get::<i64>(1)? as u64,
            length: row.get::<i64>(2)? as u64,
        },
        next_item: row.get::<i64>(3)? as u64,
        revision: row.get(4)?,
        languages: languages.split(' ').filter_map(Language::from_code).collect(),
    })
}
