//! What is kept of a parent, and changes of items that leave their words as they are.

use chrono::{DateTime, Utc};
use perihelion_database::{Transaction, query};
use serde_json::{Value as Json, json};
use sqlx::AssertSqlSafe;

use super::{StoredIndex, space};
use crate::{Error, Scope};

/// Items that are changed by one statement.
const AT_ONCE: usize = 1_000;

/// An item without its words.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept {
    pub id: String,
    pub at: Option<DateTime<Utc>>,
    pub payload: Json,
}

impl StoredIndex {
    /// Returns what is kept of a parent, in any order, in a transaction of the caller's: until it ends nobody else changes any of it.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn of_parent_in(
        transaction: &mut Transaction<'_>,
        scope: &Scope,
        kind: &str,
        parent: &str,
    ) -> Result<Vec<Kept>, Error> {
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
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn change_in(
        transaction: &mut Transaction<'_>,
        scope: &Scope,
        kind: &str,
        at: Option<DateTime<Utc>>,
        payloads: &[(String, Json)],
    ) -> Result<(), Error> {
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
