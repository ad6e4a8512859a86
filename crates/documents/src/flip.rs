//! Replaces a document's last version: in one transaction, and in proportion to the changes of its index items.

use std::collections::HashMap;

use perihelion_database::{Transaction, Value};
use perihelion_recall::{Kept, StoredIndex};
use serde_json::{Value as Json, json};
use sqlx::AssertSqlSafe;

use crate::library::KIND;
use crate::{Description, Document, Error, Library, Prepared};

impl Library {
    /// Puts a document in place of its last version, in one transaction: from then on it is found and read.
    ///
    /// A repeated call has no effect.
    ///
    /// # Errors
    /// [`Error::Database`]; then the last version stays, except for
    /// [`Unscrubbed`](perihelion_database::Error::Unscrubbed), after which the new one is in place.
    pub async fn flip(&self, prepared: &Prepared) -> Result<Document, Error> {
        let known = self.by_id(&prepared.id).await?;
        let is_there = known
            .as_ref()
            .is_some_and(|known| known.hash == prepared.hash && known.title == prepared.title);
        // Where it is there, a former process ended between this and noting it, or could not empty the log.
        let mut leaves_bytes = known.is_some();
        if !is_there {
            let description = self.own_description(prepared).await?;
            // Before the transaction, because it takes time.
            let stored = prepared.hashes();
            let database = self.database();
            let mut transaction = database.begin().await?;
            self.put_items(&mut transaction, prepared).await?;
            let vectors =
                StoredIndex::give_up_in(&mut transaction, &self.scope, &prepared.id, &stored)
                    .await?;
            self.count_in(&mut transaction, prepared).await?;
            let descriptions = self.settle(&mut transaction, prepared).await?;
            self.write(&mut transaction, prepared, description).await?;
            transaction.commit().await?;
            leaves_bytes |= vectors > 0 || descriptions > 0;
        }
        if leaves_bytes {
            self.index.database().scrub().await?;
        }
        self.find(&prepared.id).await
    }

    /// Stores new items, updates moved ones, and removes missing ones; unchanged ones are not touched.
    async fn put_items(
        &self,
        transaction: &mut Transaction<'_>,
        prepared: &Prepared,
    ) -> Result<(), Error> {
        let known = StoredIndex::of_parent_in(transaction, &self.scope, KIND, &prepared.id).await?;
        let mut known: HashMap<String, Kept> =
            known.into_iter().map(|one| (one.id.clone(), one)).collect();
        let mut new = Vec::new();
        let mut moved: Vec<(String, Json)> = Vec::new();
        for item in prepared.items() {
            match known.remove(&item.id) {
                None => new.push(item),
                Some(kept) if kept.at != item.at || kept.payload != item.payload => {
                    moved.push((item.id, item.payload));
                }
                Some(_) => {}
            }
        }
        let stale: Vec<String> = known.into_keys().collect();
        StoredIndex::put_in(transaction, &self.scope, KIND, &new).await?;
        StoredIndex::change_in(transaction, &self.scope, KIND, Some(prepared.now), &moved).await?;
        // Afterwards, so that a vector always has an item.
        StoredIndex::remove_in(transaction, &self.scope, KIND, &stale).await?;
        Ok(())
    }

    /// Notes this version among the attempts, and drops their descriptions: this version's is stored with the document.
    ///
    /// Returns how many other ones lost their description.
    async fn settle(
        &self,
        transaction: &mut Transaction<'_>,
        prepared: &Prepared,
    ) -> Result<u64, Error> {
        let attempt = self.query(
            "INSERT INTO document_attempt (tenant, owner, id, hash, collection, path, began_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7)
         ON CONFLICT (tenant, owner, id, hash) DO UPDATE SET description = NULL",
        );
        let Prepared { id, hash, collection, path, now, .. } = prepared;
        let attempt = attempt.binds((id, hash, collection, path, *now));
        transaction.execute(&attempt).await?;
        let others = self.query(
            "UPDATE document_attempt SET description = NULL
         WHERE tenant = $1 AND owner = $2 AND id = $3 AND description IS NOT NULL",
        );
        let others = others.bind(id);
        Ok(transaction.execute(&others).await?)
    }

    async fn write(
        &self,
        transaction: &mut Transaction<'_>,
        prepared: &Prepared,
        description: Option<Description>,
    ) -> Result<(), Error> {
        let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        let warnings: Vec<String> =
            prepared.parsed.warnings.iter().map(ToString::to_string).collect();
        let parsed = &prepared.parsed;
        let insert = self.query(
        "INSERT INTO document (tenant, owner, id, collection, path, title, format, hash, version, bytes,
            characters, chunks, description, warnings, added_at, changed_at, authors, text_bytes)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $15, $16, $17)
         ON CONFLICT (tenant, owner, id) DO UPDATE SET title = excluded.title, format = excluded.format,
            hash = excluded.hash, version = excluded.version, bytes = excluded.bytes,
            characters = excluded.characters, chunks = excluded.chunks, description = excluded.description,
            warnings = excluded.warnings, changed_at = excluded.changed_at,
            authors = excluded.authors, text_bytes = excluded.text_bytes",
    );
        let characters = count(parsed.text.chars().count());
        let chunks = count(prepared.chunks.children.len());
        let description = Value::Json(description.map(|description| json!(description)));
        let insert = insert
            .binds((&prepared.id, &prepared.collection, &prepared.path, &prepared.title))
            .binds((parsed.format.as_str(), &prepared.hash, prepared.version, prepared.bytes))
            .binds((characters, chunks, description, json!(warnings)))
            .binds((prepared.now, json!(parsed.authors), count(parsed.text.len())));
        transaction.execute(&insert).await?;
        self.write_segments(transaction, &prepared.id, &parsed.text).await?;
        self.write_pages(transaction, prepared).await?;
        self.write_parents(transaction, prepared).await
    }

    /// Writes all parents by one statement, which reads them from one list.
    async fn write_parents(
        &self,
        transaction: &mut Transaction<'_>,
        prepared: &Prepared,
    ) -> Result<(), Error> {
        let delete =
            self.query("DELETE FROM document_parent WHERE tenant = $1 AND owner = $2 AND id = $3");
        let delete = delete.bind(&prepared.id);
        transaction.execute(&delete).await?;
        let parents = prepared.parents();
        let sql = transaction.dialect().pick(
        "INSERT INTO document_parent (tenant, owner, id, number, first, past, page, section)
         SELECT $1, $2, $3, value ->> 'number', value ->> 'first', value ->> 'past', value ->> 'page', value -> 'section'
         FROM json_each($4)",
        "INSERT INTO document_parent (tenant, owner, id, number, first, past, page, section)
         SELECT $1, $2, $3, number, first, past, page, section
         FROM jsonb_to_recordset($4) AS listed (number bigint, first bigint, past bigint, page bigint, section jsonb)",
    );
        let insert = self.query(AssertSqlSafe(sql));
        transaction.execute(&insert.bind(&prepared.id).bind(json!(parents))).await?;
        Ok(())
    }
}
