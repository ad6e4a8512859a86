//! Learning: a new skill, or more trust in an equal one.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use perihelion_database::{Database, Transaction, query};
use perihelion_recall::{Item, Scope, Search, StoredIndex};
use serde_json::json;

use super::{KIND, Skill, Skills, likeness::likeness};
use crate::{Error, Result};

/// The share of words that two tasks have in common when they are the same.
const SAME: f64 = 0.85;

/// Successes and failures that an imported skill may have: many more than there were, so that sums stay numbers.
const MOST_USES: u64 = 1 << 31;

const COMPARED: usize = 10;

impl Skills {
    /// Stores a skill, or merges it with an equal one; returns the stored one.
    ///
    /// Learning it again from the same work (`source`) has no effect. Of two solutions the shorter one stays.
    pub async fn learn(&self, skill: Skill, tenant: &str, now: DateTime<Utc>) -> Result<Skill> {
        let scope = Scope::new(tenant, &skill.agent)?;
        let database = self.index.database_of(&scope);
        let kept = match self.same(&scope, &skill).await? {
            Some(known) if known.source == skill.source => return Ok(known),
            Some(known) => {
                let indexed = known.task.clone();
                let kept = merged(known, skill, now);
                if kept.task == indexed {
                    update(&database, tenant, &kept).await?;
                    return Ok(kept);
                }
                kept
            }
            None => {
                let id = if skill.id.is_empty() { id_of(tenant, &skill) } else { skill.id.clone() };
                Skill { id, ..skill }
            }
        };
        let item = Item::new(&kept.id, &kept.task).with_attribute("server", &kept.server);
        let mut transaction = database.begin().await?;
        write(&mut transaction, tenant, &kept).await?;
        StoredIndex::put_in(&mut transaction, &scope, KIND, &[item]).await?;
        transaction.commit().await?;
        Ok(kept)
    }

    /// Writes all skills of a tenant as lines of JSON.
    pub async fn export(&self, tenant: &str) -> Result<String> {
        let lines = self.list(tenant).await?;
        let lines = lines.iter().map(|skill| json!(skill).to_string() + "\n");
        Ok(lines.collect())
    }

    /// Learns the skills of an export and returns how many there were; the same file twice has no effect.
    ///
    /// # Errors
    /// [`Error::Import`] that names the line; the lines before it were learned.
    pub async fn import(&self, tenant: &str, lines: &str, now: DateTime<Utc>) -> Result<u64> {
        let mut learned = 0;
        for (number, line) in lines.lines().enumerate().filter(|(_, line)| !line.trim().is_empty())
        {
            let bad = |reason| Error::Import { line: number + 1, reason };
            let skill: Skill = serde_json::from_str(line).map_err(|error| bad(error.into()))?;
            if skill.agent.is_empty() || skill.task.is_empty() || skill.steps.is_empty() {
                return Err(bad("agent, task and steps must not be empty".into()));
            }
            if skill.successes.max(skill.failures) > MOST_USES {
                let reason = format!("successes and failures must not be above {MOST_USES}");
                return Err(bad(reason.into()));
            }
            self.learn(skill, tenant, now).await?;
            learned += 1;
        }
        Ok(learned)
    }

    /// Returns the skill that has nearly the same task, and the same tools or a part of them.
    async fn same(&self, scope: &Scope, skill: &Skill) -> Result<Option<Skill>> {
        let search = Search::new(scope, KIND, &skill.task).limit(COMPARED);
        let hits = self.index.search(&search).await?.hits;
        for (_, known) in self.of_hits(scope.tenant(), hits).await? {
            let tools = |skill: &Skill| -> BTreeSet<String> {
                skill.steps.iter().map(|step| step.tool.clone()).collect()
            };
            if known.server == skill.server
                && (tools(&known).is_subset(&tools(skill))
                    || tools(skill).is_subset(&tools(&known)))
                && likeness(&known.task, &skill.task) >= SAME
            {
                return Ok(Some(known));
            }
        }
        Ok(None)
    }
}

fn merged(known: Skill, new: Skill, now: DateTime<Utc>) -> Skill {
    let successes = known.successes.saturating_add(new.successes);
    let failures = known.failures.saturating_add(new.failures);
    // A stale solution gives way to one that worked with the tools as they are.
    let better = if known.is_stale || new.steps.len() < known.steps.len() {
        Skill { id: known.id.clone(), made_at: known.made_at, ..new.clone() }
    } else {
        known
    };
    Skill { successes, failures, source: new.source, is_stale: false, used_at: now, ..better }
}

/// Returns an id that the same work gives again.
fn id_of(tenant: &str, skill: &Skill) -> String {
    let name = json!([tenant, skill.agent, skill.task, skill.steps, skill.source]).to_string();
    blake3::hash(name.as_bytes()).to_hex().chars().take(16).collect()
}

const WRITE: &str = "INSERT INTO skill (tenant, id, agent, server, task, steps, tools, outcome, successes, failures,
        is_stale, source, made_at, used_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
     ON CONFLICT (tenant, id) DO UPDATE SET task = excluded.task, steps = excluded.steps, tools = excluded.tools,
        outcome = excluded.outcome, successes = excluded.successes, failures = excluded.failures,
        is_stale = excluded.is_stale, source = excluded.source, used_at = excluded.used_at";

/// Changes a skill whose task stays, as in most work that repeats: the index has its words already. A skill that was
/// forgotten in between stays forgotten.
async fn update(database: &Database, tenant: &str, skill: &Skill) -> Result<()> {
    let update = query(
        "UPDATE skill SET steps = $3, tools = $4, outcome = $5, successes = $6, failures = $7, is_stale = $8,
            source = $9, used_at = $10
         WHERE tenant = $1 AND id = $2",
    );
    let update = update
        .binds((tenant, &skill.id, json!(skill.steps), json!(skill.tools), &skill.outcome))
        .binds((skill.successes, skill.failures, skill.is_stale, &skill.source, skill.used_at));
    database.execute(&update).await?;
    Ok(())
}

async fn write(transaction: &mut Transaction<'_>, tenant: &str, skill: &Skill) -> Result<()> {
    let write = query(WRITE)
        .binds((tenant, &skill.id, &skill.agent, &skill.server, &skill.task, json!(skill.steps)))
        .binds((json!(skill.tools), &skill.outcome, skill.successes, skill.failures))
        .binds((skill.is_stale, &skill.source, skill.made_at, skill.used_at));
    transaction.execute(&write).await?;
    Ok(())
}
