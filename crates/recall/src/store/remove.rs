//! Removing items, with all their data.

use std::collections::BTreeSet;

use perihelion_database::{Row, Transaction, query};
use sqlx::AssertSqlSafe;

use super::lists::Lists;
use super::recent::Recent;
use super::space::{self, Space};
use super::{StoredIndex, vectors};
use crate::{Result, Scope, posting::BLOCK};

/// How far apart two numbers may lie to be looked for together.
const NEAR: u64 = 2 * BLOCK as u64;

pub(super) struct Placed {
    number: u64,
    hash: String,
    terms: Vec<String>,
    length: u64,
}

impl StoredIndex {
    /// Removes items by ID in the transaction of the caller, who calls
    /// [`Database::scrub`](perihelion_database::Database::scrub) after it; returns how many there were.
    pub async fn remove_in(
        transaction: &mut Transaction<'_>,
        scope: &Scope,
        kind: &str,
        ids: &[String],
    ) -> Result<u64> {
        let Some(mut space) = space::lock(transaction, scope, kind).await? else { return Ok(0) };
        let placed = rows_by_id(transaction, space.id, ids).await?;
        finish(transaction, scope, kind, &mut space, placed).await
    }

    pub async fn remove_parent_in(
        transaction: &mut Transaction<'_>,
        scope: &Scope,
        kind: &str,
        parent: &str,
    ) -> Result<u64> {
        let Some(mut space) = space::lock(transaction, scope, kind).await? else { return Ok(0) };
        let read = query(
            "SELECT number, hash, terms, length FROM recall_item WHERE space = $1 AND parent = $2",
        );
        let rows = transaction.fetch_all(&read.bind(space.id).bind(parent)).await?;
        let placed = rows.iter().map(decode).collect::<Result<Vec<_>, _>>()?;
        finish(transaction, scope, kind, &mut space, placed).await
    }
}

async fn finish(
    transaction: &mut Transaction<'_>,
    scope: &Scope,
    kind: &str,
    space: &mut Space,
    placed: Vec<Placed>,
) -> Result<u64> {
    let removed = placed.len() as u64;
    if removed > 0 {
        let mut lists = Lists::of(kind, space.id);
        let mut recent = Recent::of(kind, space.id);
        take_out(transaction, scope, space, (&mut lists, &mut recent), placed).await?;
        recent.write(transaction, space).await?;
        lists.write(transaction).await?;
        space::save(transaction, space).await?;
    }
    Ok(removed)
}

pub(super) async fn rows_by_id(
    transaction: &mut Transaction<'_>,
    space: i64,
    ids: &[String],
) -> Result<Vec<Placed>> {
    let one_of = transaction.dialect().one_of("$2");
    let sql = format!(
        "SELECT number, hash, terms, length FROM recall_item WHERE space = $1 AND id {one_of}"
    );
    let read = query(AssertSqlSafe(sql)).bind(space).bind(ids.to_vec());
    transaction.fetch_all(&read).await?.iter().map(decode).collect()
}

/// Removes items from rows, lists and statistics; the caller writes the lists, the waiting part, and the space.
pub(super) async fn take_out(
    transaction: &mut Transaction<'_>,
    scope: &Scope,
    space: &mut Space,
    (lists, recent): (&mut Lists<'_>, &mut Recent<'_>),
    mut placed: Vec<Placed>,
) -> Result<()> {
    if placed.is_empty() {
        return Ok(());
    }
    let numbers: BTreeSet<u64> = placed.iter().map(|one| one.number).collect();
    recent.remove(transaction, &numbers).await?;
    placed.sort_by_key(|one| one.number);
    // Split at large gaps, whose contents need not be read.
    for near in placed.chunk_by(|one, next| next.number - one.number <= NEAR) {
        let (Some(first), Some(last)) = (near.first(), near.last()) else { continue };
        let in_lists = near.iter().flat_map(|one| {
            one.terms.iter().filter(|term| !recent.covers(one.number, term)).cloned()
        });
        let terms: BTreeSet<String> = in_lists.collect();
        let terms = Vec::from_iter(terms);
        lists.read_between(transaction, &terms, (first.number, last.number)).await?;
    }
    lists.remove(&numbers);
    for one in &placed {
        space.statistics.items = space.statistics.items.saturating_sub(1);
        space.statistics.length = space.statistics.length.saturating_sub(one.length);
    }
    let one_of = transaction.dialect().one_of("$2");
    let delete = format!("DELETE FROM recall_item WHERE space = $1 AND number {one_of}");
    let numbers: Vec<i64> = numbers.iter().map(|number| *number as i64).collect();
    space::note_gone(transaction, space, &numbers).await?;
    let delete = query(AssertSqlSafe(delete)).bind(space.id).bind(numbers);
    transaction.execute(&delete).await?;
    let hashes = placed.into_iter().map(|one| one.hash).collect();
    vectors::forget_unused(transaction, scope, hashes).await?;
    Ok(())
}

fn decode(row: &Row) -> Result<Placed> {
    let terms: String = row.get(2)?;
    Ok(Placed {
        number: row.get::<i64>(0)? as u64,
        hash: row.get(1)?,
        terms: terms.lines().map(str::to_owned).collect(),
        length: row.get::<i64>(3)? as u64,
    })
}
