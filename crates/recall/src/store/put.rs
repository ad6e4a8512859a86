//! Keeping items.

use std::collections::BTreeMap;

use perihelion_database::{Transaction, Value};
use serde_json::json;

use super::{
    StoredIndex,
    lists::Lists,
    recent::{Recent, Terms},
    remove,
    rows::{parts, with_rows},
    space::{self, Space},
};
use crate::{
    Error, Item, Scope,
    bm25::Posting,
    content_hash,
    memory::{check_names, counted, fields_of},
    words::Language,
};

/// An item that gets a row.
struct New<'a> {
    item: &'a Item,
    number: u64,
    language: Language,
    counts: BTreeMap<String, u32>,
    length: u32,
}

impl StoredIndex {
    /// Keeps items as [`Index::put`](crate::Index::put) does, in a transaction of the caller's: together with rows of its own.
    ///
    /// # Errors
    /// As [`Index::put`](crate::Index::put).
    pub async fn put_in(
        transaction: &mut Transaction<'_>,
        scope: &Scope,
        kind: &str,
        items: &[Item],
    ) -> Result<(), Error> {
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
        let stands = (&mut lists, &mut recent);
        remove::take_out(transaction, scope, &mut space, stands, replaced).await?;

        let first = space.next_number;
        let mut new: Vec<New<'_>> = Vec::new();
        for item in kept {
            let (language, counts, length) = counted(&fields_of(item));
            new.push(New { item, number: space.next_number, language, counts, length });
            space.next_number += 1;
        }
        let mut terms = Terms::new();
        for one in &new {
            for (term, count) in &one.counts {
                let posting = Posting { item: one.number, count: *count, length: one.length };
                terms.entry(term.clone()).or_default().push(posting);
            }
            space.languages.insert(one.language);
            space.statistics.items += 1;
            space.statistics.length += u64::from(one.length);
        }
        recent.add(transaction, &mut space, &mut lists, (first, terms)).await?;
        recent.write(transaction, &mut space).await?;
        lists.write(transaction).await?;
        insert(transaction, &space, &new).await?;
        space::save(transaction, &space).await
    }
}

async fn insert(
    transaction: &mut Transaction<'_>,
    space: &Space,
    new: &[New<'_>],
) -> Result<(), Error> {
    for part in parts(new) {
        let mut insert = with_rows(
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
                .bind(space.id)
                .bind(one.number as i64)
                .bind(&one.item.id)
                .bind(one.item.parent.clone())
                .bind(json!(one.item.attributes))
                .bind(Value::Time(one.item.at))
                .bind(one.item.payload.clone())
                .bind(meaning)
                .bind(hash)
                .bind(terms.join("\n"))
                .bind(i64::from(one.length))
                .bind(space.moment.next_revision());
        }
        transaction.execute(&insert).await?;
    }
    Ok(())
}

pub(super) fn hex(hash: &[u8; 32]) -> String {
    blake3::Hash::from_bytes(*hash).to_hex().to_string()
}
