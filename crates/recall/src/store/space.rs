//! The row that a space has: statistics, the next number, the lock for changes, and which of its items went when.

use std::collections::BTreeSet;

use perihelion_database::{Database, Dialect, Query, Row, Transaction, query};
use sqlx::AssertSqlSafe;

use crate::{Error, Result, Scope, bm25::Statistics, words::Language};

#[derive(Clone, Debug)]
pub(super) struct Space {
    pub(super) id: i64,
    pub(super) statistics: Statistics,
    pub(super) next_number: u64,
    /// Items below this number are in buckets and lists, later ones in undivided parts.
    pub(super) merged: u64,
    /// How many parts are undivided.
    pub(super) parts: u64,
    pub(super) moment: Moment,
    pub(super) languages: BTreeSet<Language>,
}

/// Revisions whose changes are remembered.
const REMEMBERED: i64 = 1_000;

/// How far the changes of a space were when it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) revision: i64,
    /// How many of the revisions list their items; earlier versions of the program list none.
    noted: i64,
}

impl Moment {
    /// Returns the revision that the change under way will be.
    pub(super) fn next_revision(self) -> i64 {
        self.revision + 1
    }

    /// Returns whether all changes since an earlier moment are listed item by item.
    pub(super) fn is_noted_since(self, earlier: Self) -> bool {
        let revisions = self.revision - earlier.revision;
        (0..=REMEMBERED).contains(&revisions) && self.noted - earlier.noted == revisions
    }
}

pub(super) async fn gone_since(
    database: &Database,
    space: &Space,
    revision: i64,
) -> Result<Vec<u64>> {
    let read = query("SELECT number FROM recall_gone WHERE space = $1 AND revision > $2");
    let rows = database.fetch_all(&read.bind(space.id).bind(revision)).await?;
    rows.iter().map(|row| Ok(row.get::<i64>(0)? as u64)).collect()
}

/// Notes the item numbers of the present change, and forgets old ones.
pub(super) async fn note_gone(
    transaction: &mut Transaction<'_>,
    space: &Space,
    numbers: &[i64],
) -> Result<()> {
    let each = transaction.dialect().pick(
        "SELECT $1, $2, value FROM json_each($3)",
        "SELECT $1, $2, number FROM unnest($3) AS listed (number)",
    );
    let note = format!("INSERT INTO recall_gone (space, revision, number) {each}");
    let note = query(AssertSqlSafe(note)).bind(space.id).bind(space.moment.next_revision());
    transaction.execute(&note.bind(numbers.to_vec())).await?;
    let forget = query("DELETE FROM recall_gone WHERE space = $1 AND revision <= $2");
    let forget = forget.bind(space.id).bind(space.moment.revision - REMEMBERED);
    transaction.execute(&forget).await?;
    Ok(())
}

const READ: &str =
    "SELECT id, items, length, next_number, revision, languages, noted, merged, parts
     FROM recall_space WHERE tenant = $1 AND owner = $2 AND kind = $3";

/// The lock makes writers of one space take turns; SQLite's transaction is a lock already.
const LOCK: &str =
    "SELECT id, items, length, next_number, revision, languages, noted, merged, parts
     FROM recall_space WHERE tenant = $1 AND owner = $2 AND kind = $3 FOR UPDATE";

const MAKE: &str = "INSERT INTO recall_space (tenant, owner, kind) VALUES ($1, $2, $3)
     ON CONFLICT (tenant, owner, kind) DO NOTHING";

pub(super) async fn read(database: &Database, scope: &Scope, kind: &str) -> Result<Option<Space>> {
    let row = database.fetch_optional(&named(READ, scope, kind)).await?;
    row.as_ref().map(decode).transpose()
}

/// Returns the space, locked for changes; `None` if it never had an item.
pub(super) async fn lock(
    transaction: &mut Transaction<'_>,
    scope: &Scope,
    kind: &str,
) -> Result<Option<Space>> {
    let sql = match transaction.dialect() {
        Dialect::Sqlite => READ,
        Dialect::Postgres => LOCK,
    };
    let row = transaction.fetch_optional(&named(sql, scope, kind)).await?;
    row.as_ref().map(decode).transpose()
}

pub(super) async fn lock_or_make(
    transaction: &mut Transaction<'_>,
    scope: &Scope,
    kind: &str,
) -> Result<Space> {
    if let Some(space) = lock(transaction, scope, kind).await? {
        return Ok(space);
    }
    transaction.execute(&named(MAKE, scope, kind)).await?;
    let made = lock(transaction, scope, kind).await?;
    made.ok_or_else(|| Error::Damaged { kind: kind.to_owned(), what: "no space".to_owned() })
}

pub(super) async fn save(transaction: &mut Transaction<'_>, space: &Space) -> Result<()> {
    let languages: Vec<&str> = space.languages.iter().map(|language| language.code()).collect();
    let save = query(
        "UPDATE recall_space SET items = $2, length = $3, next_number = $4, languages = $5,
            merged = $6, parts = $7, revision = revision + 1, noted = noted + 1 WHERE id = $1",
    );
    let save = save
        .binds((space.id, space.statistics.items as i64, space.statistics.length as i64))
        .binds((space.next_number as i64, languages.join(" "), space.merged as i64))
        .bind(space.parts as i64);
    transaction.execute(&save).await?;
    Ok(())
}

fn named(sql: &'static str, scope: &Scope, kind: &str) -> Query {
    query(sql).bind(scope.tenant()).bind(scope.owner()).bind(kind)
}

fn decode(row: &Row) -> Result<Space> {
    let languages: String = row.get(5)?;
    Ok(Space {
        id: row.get(0)?,
        statistics: Statistics {
            items: row.get::<i64>(1)? as u64,
            length: row.get::<i64>(2)? as u64,
        },
        next_number: row.get::<i64>(3)? as u64,
        merged: row.get::<i64>(7)? as u64,
        parts: row.get::<i64>(8)? as u64,
        moment: Moment { revision: row.get(4)?, noted: row.get(6)? },
        languages: languages.split(' ').filter_map(Language::from_code).collect(),
    })
}
