//! Which items pass a filter: asked of the database once, then kept and brought up to date.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;
use perihelion_database::{Database, Value, query};
use sqlx::AssertSqlSafe;

use super::space::{self, Moment, Space};
use crate::{Filter, Result};

/// Answers that one process keeps.
const MOST: usize = 32;

/// Numbers of all answers that one process keeps: 16 MiB.
const MOST_NUMBERS: usize = 2 << 20;

/// The last filters, with the numbers that passed, ascending.
#[derive(Default)]
pub(super) struct Filters(Mutex<Vec<Answer>>);

/// Which items of a space passed a filter at some moment.
#[derive(Clone)]
struct Answer {
    space: i64,
    filter: Filter,
    moment: Moment,
    numbers: Arc<Vec<u64>>,
}

impl Filters {
    /// Returns the numbers of the items that pass a filter, ascending; `None` if all do.
    ///
    /// Older cached results are updated in time proportional to the changes.
    pub(super) async fn passing(
        &self,
        database: &Database,
        space: &Space,
        filter: &Filter,
    ) -> Result<Option<Arc<Vec<u64>>>> {
        if filter.is_empty() {
            return Ok(None);
        }
        let earlier = self.take(space, filter);
        let mut answer = match earlier {
            Some(answer) if answer.moment == space.moment => answer,
            Some(mut answer) if space.moment.is_noted_since(answer.moment) => {
                let since = answer.moment.revision;
                let changed = ask(database, space, filter, Some(since)).await?;
                let gone = space::gone_since(database, space, since).await?;
                bring_up_to_date(Arc::make_mut(&mut answer.numbers), changed, &gone);
                answer
            }
            _ => {
                let all = ask(database, space, filter, None).await?;
                let numbers = all.into_iter().map(|(number, _)| number).collect();
                let filter = filter.clone();
                let moment = space.moment;
                Answer { space: space.id, filter, moment, numbers: Arc::new(numbers) }
            }
        };
        answer.moment = space.moment;
        let numbers = Arc::clone(&answer.numbers);
        self.keep(answer);
        Ok(Some(numbers))
    }

    /// Takes a cached answer of any time; a concurrent search then asks the database.
    fn take(&self, space: &Space, filter: &Filter) -> Option<Answer> {
        let mut kept = self.0.lock();
        let at = kept.iter().position(|one| one.space == space.id && one.filter == *filter)?;
        let found = kept[at].clone();
        if found.moment != space.moment {
            kept.remove(at);
        }
        Some(found)
    }

    /// Caches an answer and replaces an earlier one; the least recently used one is dropped.
    fn keep(&self, answer: Answer) {
        let mut kept = self.0.lock();
        kept.retain(|one| one.space != answer.space || one.filter != answer.filter);
        kept.push(answer);
        let mut all: usize = kept.iter().map(|one| one.numbers.len()).sum();
        while kept.len() > 1 && (kept.len() > MOST || all > MOST_NUMBERS) {
            all -= kept.remove(0).numbers.len();
        }
    }
}

/// Takes out what changed or went, and puts in what changed and passes.
fn bring_up_to_date(numbers: &mut Vec<u64>, changed: Vec<(u64, bool)>, gone: &[u64]) {
    let mut changed: BTreeMap<u64, bool> = changed.into_iter().collect();
    changed.extend(gone.iter().map(|number| (*number, false)));
    if changed.is_empty() {
        return;
    }
    numbers.retain(|number| !changed.contains_key(number));
    numbers.extend(changed.iter().filter(|(_, passes)| **passes).map(|(number, _)| *number));
    // Two runs that ascend already.
    numbers.sort();
}

/// Reads which items pass: all, or each one that changed since a revision, with its result.
async fn ask(
    database: &Database,
    space: &Space,
    filter: &Filter,
    since: Option<i64>,
) -> Result<Vec<(u64, bool)>> {
    let mut values: Vec<Value> = vec![space.id.into()];
    let mut place = |value: Value| {
        values.push(value);
        format!("${}", values.len())
    };
    let mut all = vec!["true".to_owned()];
    for (name, value) in &filter.attributes {
        let name = place(name.into());
        let value = place(value.into());
        all.push(format!("attributes ->> {name} = {value}"));
    }
    if !filter.parents.is_empty() {
        let one_of = database.dialect().one_of(&place(filter.parents.clone().into()));
        all.push(format!("parent {one_of}"));
    }
    if let Some(since) = filter.since {
        all.push(format!("at >= {}", place(since.into())));
    }
    if let Some(until) = filter.until {
        all.push(format!("at < {}", place(until.into())));
    }
    let passes = all.join(" AND ");
    let sql = match since {
        None => format!(
            "SELECT number, CAST(1 AS bigint) FROM recall_item WHERE space = $1 AND {passes} ORDER BY number"
        ),
        Some(revision) => {
            let revision = place(revision.into());
            format!(
                "SELECT number, CAST(CASE WHEN {passes} THEN 1 ELSE 0 END AS bigint) FROM recall_item
                 WHERE space = $1 AND changed > {revision}"
            )
        }
    };
    let read = values.into_iter().fold(query(AssertSqlSafe(sql)), |read, value| read.bind(value));
    let rows = database.fetch_all(&read).await?;
    rows.iter().map(|row| Ok((row.get::<i64>(0)? as u64, row.get::<i64>(1)? == 1))).collect()
}
