//! Storing items, reading those of a parent, and changes of items that keep their words.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use perihelion_database::{Transaction, Value, query};
use serde_json::{Value as Json, json};
use sqlx::AssertSqlSafe;

use super::lists::{Lists, parts, terms_of, with_rows};
use super::recent::Recent;
use super::space::{self, Space};
use super::{StoredIndex, remove};
use crate::bm25::Posting;
use crate::memory::{check_names, counted, fields_of};
use crate::words::Language;
use crate::{Item, Result, Scope, content_hash};

/// Items that are changed by one statement.
const AT_ONCE: usize = 1_000;

/// An item without its words.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept {
    pub id: String,
    pub at: Option<DateTime<Utc>>,
    pub payload: Json,
}

struct New<'a> {
    item: &'a Item,
    number: u64,
    language: Language,
    counts: BTreeMap<String, u32>,
    length: u32,
}

impl StoredIndex {
    /// Stores items in the caller's transaction, together with its own rows; each replaces the one with its ID.
    ///
    /// # Errors
    /// [`Error::Unnamed`](crate::Error::Unnamed) for an item without an id, [`Error::Database`](crate::Error::Database).
    pub async fn put_in(
        transaction: &mut Transaction<'_>,
        scope: &Scope,
        kind: &str,
        items: &[Item],
    ) -> Result<()> {
        check_names(kind, items)?;
        if items.is_empty() {
            return Ok(());
        }
        // Of two with one id the later one counts.
        let by_id: BTreeMap<&str, usize> =
            items.iter().enumerate().map(|(at, item)| (item.id.as_str(), at)).collect();
        let kept =
            items.iter().enumerate().filter(|(at, item)| by_id.get(item.id.as_str()) == Some(at));
        let kept: Vec<&Item> = kept.map(|(_, item)| item).collect();

        let mut space = space::lock_or_make(transaction, scope, kind).await?;
        let mut lists = Lists::of(kind, space.id);
        let mut recent = Recent::of(kind, space.id);
        let ids: Vec<String> = by_id.keys().map(|id| (*id).to_owned()).collect();
        let replaced = remove::rows_by_id(transaction, space.id, &ids).await?;
        let words = (&mut lists, &mut recent);
        remove::take_out(transaction, scope, &mut space, words, replaced).await?;

        let first = space.next_number;
        let mut new: Vec<New<'_>> = Vec::new();
        for item in kept {
            let (language, counts, length) = counted(&fields_of(item));
            new.push(New { item, number: space.next_number, language, counts, length });
            space.next_number += 1;
        }
        let mut terms = Vec::new();
        for one in &new {
            for (term, count) in &one.counts {
                let posting = Posting { item: one.number, count: *count, length: one.length };
                terms.push((term.clone(), vec![posting]));
            }
            space.languages.insert(one.language);
            space.statistics.items += 1;
            space.statistics.length += u64::from(one.length);
        }
        recent.add(transaction, &mut space, &mut lists, (first, terms_of(terms))).await?;
        recent.write(transaction, &mut space).await?;
        lists.write(transaction).await?;
        insert(transaction, &space, &new).await?;
        space::save(transaction, &space).await
    }

    /// Returns the items of a parent, in any order, in the caller's transaction: until it ends they are locked.
    pub async fn of_parent_in(
        transaction: &mut Transaction<'_>,
        scope: &Scope,
        kind: &str,
        parent: &str,
    ) -> Result<Vec<Kept>> {
        let space = space::lock_or_make(transaction, scope, kind).await?;
        let read =
            query("SELECT id, at, payload FROM recall_item WHERE space = $1 AND parent = $2");
        let read = read.bind(space.id).bind(parent);
        let rows = transaction.fetch_all(&read).await?;
        let kept = rows
            .iter()
            .map(|row| Ok(Kept { id: row.get(0)?, at: row.get(1)?, payload: row.get(2)? }));
        kept.collect()
    }

    /// Gives items other times and payloads, in a transaction of the caller's; their words, and so their lists, stay.
    pub async fn change_in(
        transaction: &mut Transaction<'_>,
        scope: &Scope,
        kind: &str,
        at: Option<DateTime<Utc>>,
        payloads: &[(String, Json)],
    ) -> Result<()> {
        if payloads.is_empty() {
            return Ok(());
        }
        let Some(space) = space::lock(transaction, scope, kind).await? else { return Ok(()) };
        // Read once: SQLite would otherwise take the list apart again for each item of the space.
        let listed = transaction.dialect().pick(
            "SELECT value ->> 'id' AS id, value -> 'payload' AS payload FROM json_each($4)",
            "SELECT id, payload FROM jsonb_to_recordset($4) AS w (id text, payload jsonb)",
        );
        let sql = format!(
            "WITH w AS MATERIALIZED ({listed})
             UPDATE recall_item SET at = $2, changed = $3, payload = w.payload FROM w
             WHERE recall_item.space = $1 AND recall_item.id = w.id"
        );
        for part in payloads.chunks(AT_ONCE) {
            let part: Vec<Json> =
                part.iter().map(|(id, payload)| json!({ "id": id, "payload": payload })).collect();
            let change = query(AssertSqlSafe(sql.clone())).bind(space.id).bind(at);
            let change = change.bind(space.moment.next_revision()).bind(json!(part));
            transaction.execute(&change).await?;
        }
        space::save(transaction, &space).await
    }
}

async fn insert(transaction: &mut Transaction<'_>, space: &Space, new: &[New<'_>]) -> Result<()> {
    for part in parts(new) {
        let mut insert = with_rows(
            transaction.dialect(),
            "INSERT INTO recall_item (space, number, id, parent, attributes, at, payload, meaning, hash, terms,
                length, changed) VALUES ",
            part.len(),
            12,
            "",
        );
        for one in part {
            let terms: Vec<&str> = one.counts.keys().map(String::as_str).collect();
            let meaning = one.item.meaning_text();
            let hash = hex(&content_hash(&meaning));
            insert = insert
                .binds((space.id, one.number as i64, &one.item.id, one.item.parent.clone()))
                .binds((json!(one.item.attributes), Value::Time(one.item.at)))
                .binds((one.item.payload.clone(), meaning, hash, terms.join("\n")))
                .binds((i64::from(one.length), space.moment.next_revision()));
        }
        transaction.execute(&insert).await?;
    }
    Ok(())
}

pub(super) fn hex(hash: &[u8; 32]) -> String {
    blake3::Hash::from_bytes(*hash).to_hex().to_string()
}
