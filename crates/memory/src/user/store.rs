//! The storage of memories: set, replaced and deleted, and the bounded part for a prompt.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use perihelion_database::{Query, Row, Transaction, query};
use perihelion_recall::{Item, QueryVector, Scope, Search, StoredIndex};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::AssertSqlSafe;

use super::operation::{EntryKind, Operations, Verb, normal_key, normal_value};
use crate::{Error, Result};

/// The kind of memories in the index; the owner is the user.
const KIND: &str = "memory";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub kind: EntryKind,
    pub key: String,
    pub value: String,
    pub since: DateTime<Utc>,
    /// When another value replaced it; `None` for the current one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<DateTime<Utc>>,
    pub source: String,
}

/// The memories of a database; the scope is the tenant and the user.
#[derive(Clone)]
pub struct UserMemory {
    pub index: StoredIndex,
}

const COLUMNS: &str = "kind, name, value, since, until, source";

const CLOSE: &str = "UPDATE user_memory SET until = $4
     WHERE tenant = $1 AND person = $2 AND name = $3 AND until IS NULL";

const INSERT: &str = "INSERT INTO user_memory (tenant, person, name, kind, value, since, source)
     VALUES ($1, $2, $3, $4, $5, $6, $7)";

const NOTE_FORGOTTEN: &str =
    "INSERT INTO user_forgotten (tenant, person, name_hash, at) VALUES ($1, $2, $3, $4)
     ON CONFLICT (tenant, person, name_hash) DO UPDATE SET at = excluded.at
     WHERE excluded.at > user_forgotten.at";

impl UserMemory {
    /// Stores a value from now on; an earlier one gets an end and stays. The same value again has no effect.
    ///
    /// # Errors
    /// [`Error::NoKey`], [`Error::Recall`], [`Error::Database`].
    pub async fn set(
        &self,
        scope: &Scope,
        entry: (EntryKind, &str, &str),
        source: &str,
        now: DateTime<Utc>,
    ) -> Result<()> {
        let database = self.index.database_of(scope);
        let mut transaction = database.begin().await?;
        set_in(&mut transaction, scope, entry, source, now).await?;
        Ok(transaction.commit().await?)
    }

    /// Forgets a key with every value that it ever had; when it returns no byte of them is left.
    ///
    /// What was said of it before that time is not stored later either.
    ///
    /// # Errors
    /// [`Error::UnknownKey`] if the key has no memory.
    pub async fn forget(&self, scope: &Scope, key: &str, now: DateTime<Utc>) -> Result<()> {
        let database = self.index.database_of(scope);
        let mut transaction = database.begin().await?;
        let forgotten = forget_in(&mut transaction, scope, key, now).await?;
        transaction.commit().await?;
        self.index.database().scrub().await?;
        match forgotten {
            0 => Err(Error::UnknownKey(key.to_owned())),
            _ => Ok(()),
        }
    }

    /// Applies a model's operations, all or none, and returns how many there were.
    ///
    /// Operations without a key or a value are left out, and those that are older than what is known; repeating them has
    /// no effect.
    pub async fn apply(
        &self,
        scope: &Scope,
        operations: &Operations,
        source: &str,
        now: DateTime<Utc>,
    ) -> Result<usize> {
        match self.apply_once(scope, operations, source, now).await {
            // Another process stored the same key at this moment; now it is seen.
            Err(Error::Database(error)) if error.is_duplicate() => {
                self.apply_once(scope, operations, source, now).await
            }
            other => other,
        }
    }

    async fn apply_once(
        &self,
        scope: &Scope,
        operations: &Operations,
        source: &str,
        now: DateTime<Utc>,
    ) -> Result<usize> {
        let database = self.index.database_of(scope);
        let mut transaction = database.begin().await?;
        let mut done = 0;
        let mut forgot = false;
        for operation in operations.sensible() {
            if is_newer(&mut transaction, scope, &operation.key, now).await? {
                continue;
            }
            match (operation.op, operation.value.as_deref()) {
                (Verb::Set, Some(value)) => {
                    let entry = (operation.kind, operation.key.as_str(), value);
                    set_in(&mut transaction, scope, entry, source, now).await?;
                }
                _ => {
                    forget_in(&mut transaction, scope, &operation.key, now).await?;
                    forgot = true;
                }
            }
            done += 1;
        }
        transaction.commit().await?;
        if forgot {
            self.index.database().scrub().await?;
        }
        Ok(done)
    }

    /// Lists the current memories, preferences first, then by key.
    pub async fn list(&self, scope: &Scope) -> Result<Vec<Entry>> {
        self.read(scope, "AND until IS NULL ORDER BY kind DESC, name", |read| read).await
    }

    /// Lists everything that was ever known and not forgotten, oldest first.
    pub async fn history(&self, scope: &Scope) -> Result<Vec<Entry>> {
        self.read(scope, "ORDER BY since, name", |read| read).await
    }

    /// Reads a user's entries; `bind` gives the values of `which` from the third on.
    async fn read(
        &self,
        scope: &Scope,
        which: &str,
        bind: impl FnOnce(Query) -> Query,
    ) -> Result<Vec<Entry>> {
        let sql =
            format!("SELECT {COLUMNS} FROM user_memory WHERE tenant = $1 AND person = $2 {which}");
        let read = bind(query(AssertSqlSafe(sql)).bind(scope.tenant()).bind(scope.owner()));
        let rows = self.index.database_of(scope).fetch_all(&read).await?;
        rows.iter().map(decode).collect()
    }
}

/// Preferences in a prompt: they hold for every answer.
const PREFERENCES: i64 = 12;

const FITTING: usize = 8;

/// Facts that are newest, whatever the question.
const NEWEST: i64 = 6;

/// Facts that are always of use.
const WHO: [&str; 4] = ["name", "company", "title", "recent_projects"];

/// Characters of all entries together.
const CHARS: usize = 2_000;

impl UserMemory {
    /// Returns the memories for a prompt: identity, preferences, facts that fit the question, the newest ones; at most
    /// 2,000 characters.
    pub async fn for_prompt(
        &self,
        scope: &Scope,
        question: &str,
        vector: Option<QueryVector>,
    ) -> Result<Vec<Entry>> {
        let mut entries: Vec<Entry> = Vec::new();
        let who = WHO.map(str::to_owned).to_vec();
        entries.extend(self.named(scope, who).await?);
        entries.extend(self.latest(scope, "preference", PREFERENCES).await?);
        let search = Search::new(scope, KIND, question).with_vector(vector).limit(FITTING);
        let found = self.index.search(&search).await?;
        let fitting: Vec<String> = found.hits.into_iter().map(|hit| hit.id).collect();
        if !fitting.is_empty() {
            entries.extend(self.named(scope, fitting).await?);
        }
        entries.extend(self.latest(scope, "fact", NEWEST).await?);
        let mut seen = BTreeSet::new();
        let mut room = CHARS;
        entries.retain(|entry| {
            let chars = entry.key.chars().count() + entry.value.chars().count();
            let fits = chars <= room && seen.insert(entry.key.clone());
            room -= if fits { chars } else { 0 };
            fits
        });
        Ok(entries)
    }

    async fn named(&self, scope: &Scope, names: Vec<String>) -> Result<Vec<Entry>> {
        let one_of = self.index.database_of(scope).dialect().one_of("$3");
        let which = format!("AND until IS NULL AND name {one_of} ORDER BY name");
        self.read(scope, &which, |read| read.bind(names)).await
    }

    async fn latest(&self, scope: &Scope, kind: &str, most: i64) -> Result<Vec<Entry>> {
        let which = "AND until IS NULL AND kind = $3 ORDER BY since DESC, name LIMIT $4";
        self.read(scope, which, |read| read.bind(kind).bind(most)).await
    }
}

async fn set_in(
    transaction: &mut Transaction<'_>,
    scope: &Scope,
    (kind, key, value): (EntryKind, &str, &str),
    source: &str,
    now: DateTime<Utc>,
) -> Result<()> {
    let name = normal_key(key);
    let value = normal_value(value);
    if name.is_empty() {
        return Err(Error::NoKey);
    }
    let read = query(
        "SELECT value, kind, since FROM user_memory
         WHERE tenant = $1 AND person = $2 AND name = $3 AND until IS NULL",
    );
    let read = read.bind(scope.tenant()).bind(scope.owner()).bind(&name);
    let known = transaction.fetch_optional(&read).await?;
    // All operations of an answer have one time, and clocks differ: an end is never before its beginning.
    let mut now = now;
    if let Some(row) = known {
        if row.get::<String>(0)? == value && row.get::<String>(1)? == kind.as_str() {
            return Ok(());
        }
        now = now.max(row.get(2)?);
        let close = query(CLOSE).bind(scope.tenant()).bind(scope.owner()).bind(&name).bind(now);
        transaction.execute(&close).await?;
    }
    let insert = query(INSERT).binds((
        scope.tenant(),
        scope.owner(),
        &name,
        kind.as_str(),
        &value,
        now,
        source,
    ));
    transaction.execute(&insert).await?;
    let mut item =
        Item::new(&name, format!("{name} {value}")).with_attribute("kind", kind.as_str());
    item.at = Some(now);
    Ok(StoredIndex::put_in(transaction, scope, KIND, &[item]).await?)
}

/// Returns whether a key was given a value or forgotten after a time.
async fn is_newer(
    transaction: &mut Transaction<'_>,
    scope: &Scope,
    key: &str,
    now: DateTime<Utc>,
) -> Result<bool> {
    let find = query(
        "SELECT 1 FROM user_memory
         WHERE tenant = $1 AND person = $2 AND name = $3 AND until IS NULL AND since > $4
         UNION ALL SELECT 1 FROM user_forgotten
         WHERE tenant = $1 AND person = $2 AND name_hash = $5 AND at > $4",
    );
    let name = normal_key(key);
    let hash = hash_of(scope, &name);
    let find = find.binds((scope.tenant(), scope.owner(), name, now, hash));
    Ok(transaction.fetch_optional(&find).await?.is_some())
}

async fn forget_in(
    transaction: &mut Transaction<'_>,
    scope: &Scope,
    key: &str,
    now: DateTime<Utc>,
) -> Result<u64> {
    let name = normal_key(key);
    let note = query(NOTE_FORGOTTEN);
    let note = note.binds((scope.tenant(), scope.owner(), hash_of(scope, &name), now));
    transaction.execute(&note).await?;
    let ids = [name.clone()];
    StoredIndex::remove_in(transaction, scope, KIND, &ids).await?;
    let delete = query("DELETE FROM user_memory WHERE tenant = $1 AND person = $2 AND name = $3");
    let delete = delete.bind(scope.tenant()).bind(scope.owner()).bind(name);
    Ok(transaction.execute(&delete).await?)
}

/// Returns the hash of a forgotten name, which only shows whether another name is equal.
fn hash_of(scope: &Scope, name: &str) -> String {
    let name = json!([scope.tenant(), scope.owner(), name]).to_string();
    blake3::hash(name.as_bytes()).to_hex().to_string()
}

fn decode(row: &Row) -> Result<Entry> {
    let kind: String = row.get(0)?;
    Ok(Entry {
        kind: EntryKind::from_name(&kind).unwrap_or_default(),
        key: row.get(1)?,
        value: row.get(2)?,
        since: row.get(3)?,
        until: row.get(4)?,
        source: row.get(5)?,
    })
}
