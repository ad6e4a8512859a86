//! What of a memory goes into a prompt: bounded, however much there is.

use std::collections::BTreeSet;

use perihelion_database::query;
use perihelion_recall::{Index as _, QueryVector, Scope, Search};
use sqlx::AssertSqlSafe;

use super::store::{Entry, KIND, UserMemory, decode};
use crate::Error;

/// Preferences in a prompt: they hold for every answer.
const PREFERENCES: i64 = 12;

/// Facts that fit the question.
const FITTING: usize = 8;

/// Facts that are newest, whatever the question.
const NEWEST: i64 = 6;

/// Facts that are always of use.
const WHO: [&str; 4] = ["name", "company", "title", "recent_projects"];

/// Characters of all entries together.
const CHARS: usize = 2_000;

impl UserMemory {
    /// Returns what a prompt says of a user: who it is, preferences, facts that fit the question, the newest ones; at most
    /// 2,000 characters.
    ///
    /// # Errors
    /// [`Error::Recall`], [`Error::Database`].
    pub async fn for_prompt(
        &self,
        scope: &Scope,
        question: &str,
        vector: Option<QueryVector>,
    ) -> Result<Vec<Entry>, Error> {
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

    async fn named(&self, scope: &Scope, names: Vec<String>) -> Result<Vec<Entry>, Error> {
        let database = self.index.database_of(scope);
        let one_of = database.dialect().one_of("$3");
        let sql = format!(
            "SELECT kind, name, value, since, until, source FROM user_memory
             WHERE tenant = $1 AND person = $2 AND until IS NULL AND name {one_of} ORDER BY name"
        );
        let read = query(AssertSqlSafe(sql)).bind(scope.tenant()).bind(scope.owner()).bind(names);
        database.fetch_all(&read).await?.iter().map(decode).collect()
    }

    async fn latest(&self, scope: &Scope, kind: &str, most: i64) -> Result<Vec<Entry>, Error> {
        let read = query(
            "SELECT kind, name, value, since, until, source FROM user_memory
             WHERE tenant = $1 AND person = $2 AND until IS NULL AND kind = $3
             ORDER BY since DESC, name LIMIT $4",
        );
        let read = read.bind(scope.tenant()).bind(scope.owner()).bind(kind).bind(most);
        self.index.database_of(scope).fetch_all(&read).await?.iter().map(decode).collect()
    }
}
