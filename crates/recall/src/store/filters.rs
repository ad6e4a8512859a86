//! Which items pass a filter: asked of the database, and kept while nothing changes.

use std::sync::{Arc, Mutex, PoisonError};

use perihelion_database::{Database, Value, query};
use sqlx::AssertSqlSafe;

use super::space::Space;
use crate::{Error, Filter};

/// Answers that one process keeps.
const MOST: usize = 32;

/// Numbers of all answers that one process keeps: 16 MiB.
const MOST_NUMBERS: usize = 2 << 20;

/// What was asked last, and the numbers that passed, ascending.
#[derive(Default)]
pub(super) struct Filters(Mutex<Vec<(Key, Arc<Vec<u64>>)>>);

/// Which answer, and how old: every change of the space is another key.
#[derive(Clone, Debug, PartialEq)]
struct Key {
    space: i64,
    revision: i64,
    filter: Filter,
}

impl Filters {
    /// Returns the numbers of the items that pass a filter, ascending; none when all do.
    pub(super) async fn passing(
        &self,
        database: &Database,
        space: &Space,
        filter: &Filter,
    ) -> Result<Option<Arc<Vec<u64>>>, Error> {
        if filter.is_empty() {
            return Ok(None);
        }
        let key = Key { space: space.id, revision: space.revision, filter: filter.clone() };
        if let Some(known) = self.get(&key) {
            return Ok(Some(known));
        }
        let numbers = Arc::new(ask(database, space, filter).await?);
        self.keep(key, Arc::clone(&numbers));
        Ok(Some(numbers))
    }

    fn get(&self, key: &Key) -> Option<Arc<Vec<u64>>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = kept.iter().position(|(known, _)| known == key)?;
        let found = kept.remove(at);
        let numbers = Arc::clone(&found.1);
        kept.push(found);
        Some(numbers)
    }

    /// Keeps an answer; older ones of its space are of no use any more, and what was used longest ago makes room.
    fn keep(&self, key: Key, numbers: Arc<Vec<u64>>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(known, _)| {
            known.space != key.space
                || (known.revision == key.revision && known.filter != key.filter)
        });
        kept.push((key, numbers));
        let mut all: usize = kept.iter().map(|(_, numbers)| numbers.len()).sum();
        while kept.len() > 1 && (kept.len() > MOST || all > MOST_NUMBERS) {
            all -= kept.remove(0).1.len();
        }
    }
}

async fn ask(database: &Database, space: &Space, filter: &Filter) -> Result<Vec<u64>, Error> {
    let mut values: Vec<Value> = vec![space.id.into()];
    let mut sql = "SELECT number FROM recall_item WHERE space = $1".to_owned();
    let mut place = |value: Value| {
        values.push(value);
        format!("${}", values.len())
    };
    for (name, value) in &filter.attributes {
        let (name, value) = (place(name.into()), place(value.into()));
        sql += &format!(" AND attributes ->> {name} = {value}");
    }
    if !filter.parents.is_empty() {
        let each = database.dialect().each(&place(filter.parents.clone().into()));
        sql += &format!(" AND parent IN {each}");
    }
    if let Some(since) = filter.since {
        sql += &format!(" AND at >= {}", place(since.into()));
    }
    if let Some(until) = filter.until {
        sql += &format!(" AND at < {}", place(until.into()));
    }
    sql += " ORDER BY number";
    let read = values.into_iter().fold(query(AssertSqlSafe(sql)), |read, value| read.bind(value));
    let rows = database.fetch_all(&read).await?;
    rows.iter().map(|row| Ok(row.get::<i64>(0)? as u64)).collect()
}
