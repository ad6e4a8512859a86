//! The storage of skills: add, search and delete.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use perihelion_database::{Row, query};
use perihelion_recall::{Hit, QueryVector, Scope, Search, StoredIndex};
use serde::{Deserialize, Serialize};

use super::{Step, likeness::likeness};
use crate::{Error, Result};

/// The kind of skills in the index; the owner is the agent.
pub const KIND: &str = "skill";

/// Candidates that are looked at for one question.
const CANDIDATES: usize = 20;

/// The share of words from which on a skill is like a task.
const LIKE: f64 = 0.5;

/// The similarity from which on a skill is like a task without sharing its words.
const SIMILARITY: f64 = 0.8;

/// Definitions of a server's tools, as hashes by name.
pub type ToolHashes = BTreeMap<String, String>;

/// How a task was solved before.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Skill {
    pub id: String,
    pub agent: String,
    pub server: String,
    pub task: String,
    pub steps: Vec<Step>,
    pub tools: ToolHashes,
    /// How it ended, in a word: `APPROVED` or `FIXED`.
    pub outcome: String,
    pub successes: u64,
    pub failures: u64,
    /// A tool that it calls is gone or has changed.
    pub is_stale: bool,
    /// The work that it was learned from last.
    pub source: String,
    pub made_at: DateTime<Utc>,
    pub used_at: DateTime<Utc>,
}

impl Skill {
    /// Returns the solution as a model reads it: a call a line.
    pub fn solution(&self) -> String {
        let lines = self.steps.iter().map(|step| format!("{}({})", step.tool, step.arguments));
        lines.collect::<Vec<_>>().join("\n")
    }
}

#[derive(Clone, Debug)]
pub struct Question<'a> {
    pub task: &'a str,
    pub tools: &'a ToolHashes,
    pub vector: Option<QueryVector>,
    pub limit: usize,
}

#[derive(Clone)]
pub struct Skills {
    pub index: StoredIndex,
}

const COLUMNS: &str =
    "id, agent, server, task, steps, tools, outcome, successes, failures, is_stale, source,
     made_at, used_at";

impl Skills {
    /// Returns usable skills that are like a task, best first; those whose tools changed become stale.
    pub async fn recall(
        &self,
        scope: &Scope,
        question: Question<'_>,
        now: DateTime<Utc>,
    ) -> Result<Vec<Skill>> {
        let search =
            Search::new(scope, KIND, question.task).with_vector(question.vector).limit(CANDIDATES);
        let found = self.index.search(&search).await?;
        let mut matches: Vec<(f64, Skill)> = Vec::new();
        for (hit, mut skill) in self.of_hits(scope.tenant(), found.hits).await? {
            let by_words = likeness(&skill.task, question.task);
            let by_meaning = hit.similarity.unwrap_or(0.0);
            if by_words < LIKE && by_meaning < SIMILARITY {
                continue;
            }
            let is_stale =
                skill.tools.iter().any(|(name, hash)| question.tools.get(name) != Some(hash));
            if is_stale != skill.is_stale {
                self.set_stale(scope.tenant(), &skill.id, is_stale).await?;
                skill.is_stale = is_stale;
            }
            if skill.is_usable(now) {
                matches.push((by_words.max(by_meaning) * skill.score(now), skill));
            }
        }
        // Stable: equal ones stay in the order of the index.
        matches.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        matches.truncate(question.limit);
        Ok(matches.into_iter().map(|(_, one)| one).collect())
    }

    /// Notes how work ended in which skills were shown.
    pub async fn used(
        &self,
        scope: &Scope,
        ids: &[String],
        succeeded: bool,
        now: DateTime<Utc>,
    ) -> Result<()> {
        let sql = if succeeded {
            "UPDATE skill SET successes = successes + 1, used_at = $3 WHERE tenant = $1 AND id = $2"
        } else {
            "UPDATE skill SET failures = failures + 1, used_at = $3 WHERE tenant = $1 AND id = $2"
        };
        for id in ids {
            let update = query(sql).bind(scope.tenant()).bind(id).bind(now);
            self.index.database_of(scope).execute(&update).await?;
        }
        Ok(())
    }

    /// Lists a tenant's skills, newest first.
    pub async fn list(&self, tenant: &str) -> Result<Vec<Skill>> {
        let sql =
            format!("SELECT {COLUMNS} FROM skill WHERE tenant = $1 ORDER BY made_at DESC, id");
        let read = query(sqlx::AssertSqlSafe(sql)).bind(tenant);
        self.index.database().of_tenant(tenant).fetch_all(&read).await?.iter().map(decode).collect()
    }

    /// Finds skills of all of a tenant's agents by words.
    pub async fn search(&self, tenant: &str, text: &str, limit: usize) -> Result<Vec<Skill>> {
        let read = query("SELECT DISTINCT agent FROM skill WHERE tenant = $1 ORDER BY agent");
        let agents = self.index.database().of_tenant(tenant).fetch_all(&read.bind(tenant)).await?;
        let mut scopes = Vec::new();
        for row in &agents {
            scopes.push(Scope::new(tenant, row.get::<String>(0)?)?);
        }
        let Some((first, rest)) = scopes.split_first() else { return Ok(Vec::new()) };
        let search =
            rest.iter().fold(Search::new(first, KIND, text), |search, scope| search.and_in(scope));
        let hits = self.index.search(&search.limit(limit)).await?.hits;
        Ok(self.of_hits(tenant, hits).await?.into_iter().map(|(_, skill)| skill).collect())
    }

    /// Returns a skill by its id or a beginning of it that no other has.
    ///
    /// # Errors
    /// [`Error::UnknownSkill`], [`Error::Database`].
    pub async fn show(&self, tenant: &str, id: &str) -> Result<Skill> {
        let all = self.list(tenant).await?;
        let mut fitting =
            all.into_iter().filter(|skill| !id.is_empty() && skill.id.starts_with(id));
        match (fitting.next(), fitting.next()) {
            (Some(skill), None) => Ok(skill),
            _ => Err(Error::UnknownSkill(id.to_owned())),
        }
    }

    /// Deletes a skill, with all its data.
    ///
    /// # Errors
    /// [`Error::UnknownSkill`], [`Error::Database`].
    pub async fn forget(&self, tenant: &str, id: &str) -> Result<Skill> {
        let skill = self.show(tenant, id).await?;
        let scope = Scope::new(tenant, &skill.agent)?;
        let database = self.index.database().of_tenant(tenant);
        let mut transaction = database.begin().await?;
        let ids = [skill.id.clone()];
        StoredIndex::remove_in(&mut transaction, &scope, KIND, &ids).await?;
        let delete = query("DELETE FROM skill WHERE tenant = $1 AND id = $2");
        transaction.execute(&delete.bind(tenant).bind(&skill.id)).await?;
        transaction.commit().await?;
        database.scrub().await?;
        Ok(skill)
    }

    /// Returns the skills of a search in its order; a skill that was just deleted is left out.
    pub(super) async fn of_hits(&self, tenant: &str, hits: Vec<Hit>) -> Result<Vec<(Hit, Skill)>> {
        if hits.is_empty() {
            return Ok(Vec::new());
        }
        let database = self.index.database().of_tenant(tenant);
        let one_of = database.dialect().one_of("$2");
        let sql = format!("SELECT {COLUMNS} FROM skill WHERE tenant = $1 AND id {one_of}");
        let ids: Vec<String> = hits.iter().map(|hit| hit.id.clone()).collect();
        let read = query(sqlx::AssertSqlSafe(sql)).bind(tenant).bind(ids);
        let mut skills: BTreeMap<String, Skill> = BTreeMap::new();
        for row in &database.fetch_all(&read).await? {
            let skill = decode(row)?;
            skills.insert(skill.id.clone(), skill);
        }
        let with_skill = |hit: Hit| skills.remove(&hit.id).map(|skill| (hit, skill));
        Ok(hits.into_iter().filter_map(with_skill).collect())
    }

    async fn set_stale(&self, tenant: &str, id: &str, is_stale: bool) -> Result<()> {
        let update = query("UPDATE skill SET is_stale = $3 WHERE tenant = $1 AND id = $2");
        let update = update.bind(tenant).bind(id).bind(is_stale);
        self.index.database().of_tenant(tenant).execute(&update).await?;
        Ok(())
    }
}

fn decode(row: &Row) -> Result<Skill> {
    Ok(Skill {
        id: row.get(0)?,
        agent: row.get(1)?,
        server: row.get(2)?,
        task: row.get(3)?,
        steps: serde_json::from_value(row.get(4)?).map_err(Error::Damaged)?,
        tools: serde_json::from_value(row.get(5)?).map_err(Error::Damaged)?,
        outcome: row.get(6)?,
        successes: row.get(7)?,
        failures: row.get(8)?,
        is_stale: row.get(9)?,
        source: row.get(10)?,
        made_at: row.get(11)?,
        used_at: row.get(12)?,
    })
}
