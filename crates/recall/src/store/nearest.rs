//! Exact vector search: over vectors cached in memory while they are current, or in the database.
//!
//! Small spaces are read at once. The database ranks larger ones, if it can ([`super::pgvector`]), until enough
//! searches make reading worthwhile; spaces beyond the cache's limit, always. If the database cannot rank, all vectors
//! are read.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use perihelion_database::{Database, Row, query};
use sqlx::AssertSqlSafe;

use super::pgvector::Pgvector;
use super::space::{self, Moment, Space};
use crate::{Error, QueryVector, Result, Scope, bm25::first_of, vector};

pub(super) struct NearestQuery<'a> {
    pub(super) scope: &'a Scope,
    pub(super) space: &'a Space,
    pub(super) model: &'a str,
    /// The question's vector, of length 1.
    pub(super) unit: Vec<f32>,
    /// Numbers that pass the filter, ascending; `None` if all do.
    pub(super) passing: Option<&'a [u64]>,
    pub(super) most: usize,
}

/// Ranks the items of a space by similarity and returns the best, in order; `None` if the tenant's searches do not use
/// vectors of that model.
pub(super) async fn best(
    database: &Database,
    (cache, pgvector): (&Cache, &Pgvector),
    (scope, space): (&Scope, &Space),
    wanted: &QueryVector,
    passing: Option<&[u64]>,
    most: usize,
) -> Result<Option<Vec<(u64, f64)>>> {
    let model = wanted.model.as_str();
    let read = query(
        "SELECT dimension, revision FROM recall_model WHERE tenant = $1 AND model = $2 AND is_active",
    );
    let row = database.fetch_optional(&read.bind(scope.tenant()).bind(model)).await?;
    let Some(row) = row else { return Ok(None) };
    let dimension = row.get::<i64>(0)? as usize;
    if dimension != wanted.values.len() {
        return Err(Error::Dimension {
            model: model.to_owned(),
            expected: dimension,
            found: wanted.values.len(),
        });
    }
    let key = Key {
        space: space.id,
        moment: space.moment,
        model: model.to_owned(),
        model_revision: row.get(1)?,
    };
    let unit = vector::unit(&wanted.values);
    let asked = NearestQuery { scope, space, model, unit, passing, most };
    if !cache.is_worth_reading(&key, space, dimension)
        && let Some(ranked) = pgvector.best(database, &asked).await?
    {
        cache.note_ranked(&key, space, dimension);
        return Ok(Some(ranked));
    }
    let vectors = current(database, cache, key, &asked).await?;
    pgvector.fill_some(database, &asked).await;
    Ok(Some(vectors.rank(&asked)))
}

/// Returns how similar two vectors of length 1 are.
pub(super) fn similarity(one: &[f32], other: &[f32]) -> f64 {
    // What differs in the last bits alone is equal.
    (vector::dot(one, other) * 1e6).round() / 1e6
}

/// Returns the most similar ones in order, equal ones by number.
pub(super) fn first(mut ranked: Vec<(u64, f64)>, most: usize) -> Vec<(u64, f64)> {
    first_of(&mut ranked, most, |one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
    ranked
}

/// Bytes of vectors that one process keeps unless another bound is set: 80,000 of 768 numbers.
const MOST_BYTES: usize = 256 << 20;

/// The share of the cache that is read at once, without asking whether the database can rank: 5,000 vectors.
const SMALL_SHARE: usize = 16;

/// Searches of an uncached space after which reading is worthwhile: reading a vector takes 12 µs, lookup and comparison
/// in the database 5, comparison here less than 1.
const READ_AFTER: u32 = 4;

/// Items of a space ($3) of a tenant ($1), with their vectors by a model ($2) if they have one. Each vector is looked up:
/// with a join, Postgres may read all of the tenant for a few new items.
const FROM: &str = "SELECT i.number, (SELECT v.body FROM recall_vector v
        WHERE v.tenant = $1 AND v.model = $2 AND v.hash = i.hash) AS body
     FROM recall_item i WHERE i.space = $3";

/// Vectors of spaces that were searched last.
pub(super) struct Cache {
    most_bytes: usize,
    kept: Mutex<Vec<(Key, Arc<Vectors>)>>,
    /// How often the database ranked a space that was not kept.
    ranked: Mutex<BTreeMap<(i64, String), u32>>,
}

/// Which vectors, and how old: every change of the space or of the model's vectors is another key.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Key {
    pub(super) space: i64,
    pub(super) moment: Moment,
    pub(super) model: String,
    pub(super) model_revision: i64,
}

/// The vectors of a space, one after the other, in any order.
#[derive(Clone, Default)]
struct Vectors {
    dimension: usize,
    numbers: Vec<u64>,
    values: Vec<f32>,
    places: HashMap<u64, usize>,
    /// Items that have no vector by the model yet.
    without: BTreeSet<u64>,
    /// Items from this number on were not looked at.
    next: u64,
}

/// Returns the vectors of a space as they are now: kept ones, brought up to date, or all that are read.
async fn current(
    database: &Database,
    cache: &Cache,
    key: Key,
    asked: &NearestQuery<'_>,
) -> Result<Arc<Vectors>> {
    if let Some(vectors) = cache.get(&key) {
        return Ok(vectors);
    }
    let dimension = asked.unit.len();
    let vectors = match cache.take_older(&key, dimension) {
        Some((older, vectors)) => {
            let mut vectors = Arc::unwrap_or_clone(vectors);
            for number in space::gone_since(database, asked.space, older.moment.revision).await? {
                vectors.remove(number);
            }
            if older.model_revision != key.model_revision {
                vectors.look_again(database, asked).await?;
            }
            vectors
        }
        None => Vectors { dimension, ..Vectors::default() },
    };
    let vectors = Arc::new(vectors.with_new(database, asked).await?);
    cache.keep(key, vectors.clone());
    Ok(vectors)
}

impl Vectors {
    /// Returns the most similar passing ones, in order.
    pub(super) fn rank(&self, asked: &NearestQuery<'_>) -> Vec<(u64, f64)> {
        let passes =
            |number: &u64| asked.passing.is_none_or(|all| all.binary_search(number).is_ok());
        let numbered = self.numbers.iter().zip(self.values.chunks_exact(self.dimension.max(1)));
        let similar = numbered
            .filter(|(number, _)| passes(number))
            .map(|(number, values)| (*number, similarity(&asked.unit, values)));
        first(similar.collect(), asked.most)
    }

    /// Reads the items that are new since the last look.
    async fn with_new(mut self, database: &Database, asked: &NearestQuery<'_>) -> Result<Self> {
        let read = query(AssertSqlSafe(format!("{FROM} AND i.number >= $4 ORDER BY i.number")));
        let read = read.bind(asked.scope.tenant()).bind(asked.model).bind(asked.space.id);
        let read = read.bind(i64::try_from(self.next).unwrap_or(i64::MAX));
        self.take(&database.fetch_all(&read).await?)?;
        Ok(self)
    }

    /// Searches for vectors of items without one.
    async fn look_again(&mut self, database: &Database, asked: &NearestQuery<'_>) -> Result<()> {
        if self.without.is_empty() {
            return Ok(());
        }
        let one_of = database.dialect().one_of("$4");
        let sql = format!("{FROM} AND i.number {one_of}");
        let waiting = std::mem::take(&mut self.without);
        let waiting: Vec<i64> = waiting.into_iter().map(|number| number as i64).collect();
        let read = query(AssertSqlSafe(sql)).bind(asked.scope.tenant()).bind(asked.model);
        self.take(&database.fetch_all(&read.bind(asked.space.id).bind(waiting)).await?)
    }

    fn take(&mut self, rows: &[Row]) -> Result<()> {
        for row in rows {
            let number = row.get::<i64>(0)? as u64;
            self.next = self.next.max(number + 1);
            let values = row.get::<Option<Vec<u8>>>(1)?.map(|body| vector::from_bytes(&body));
            match values.filter(|values| values.len() == self.dimension) {
                Some(values) => {
                    self.places.insert(number, self.numbers.len());
                    self.numbers.push(number);
                    self.values.extend(values);
                }
                None => {
                    self.without.insert(number);
                }
            }
        }
        Ok(())
    }

    /// Drops an item: the last vector takes its position.
    fn remove(&mut self, number: u64) {
        self.without.remove(&number);
        let Some(place) = self.places.remove(&number) else { return };
        self.numbers.swap_remove(place);
        if let Some(moved) = self.numbers.get(place) {
            self.places.insert(*moved, place);
        }
        let last = self.values.len() - self.dimension;
        self.values.copy_within(last.., place * self.dimension);
        self.values.truncate(last);
    }
}

impl Default for Cache {
    fn default() -> Self {
        Self::of(MOST_BYTES)
    }
}

impl Cache {
    pub(super) fn of(most_bytes: usize) -> Self {
        Self { most_bytes, kept: Mutex::default(), ranked: Mutex::default() }
    }

    /// Returns whether the vectors are cached, or reading them is better than ranking in the database.
    fn is_worth_reading(&self, key: &Key, space: &Space, dimension: usize) -> bool {
        let of = |items: u64| (items as usize).saturating_mul(dimension * size_of::<f32>());
        let items = space.statistics.items;
        let kept = self.kept.lock();
        if kept.iter().any(|(known, _)| known == key) {
            return true;
        }
        if of(items) > self.most_bytes {
            return false;
        }
        let older = kept.iter().find(|(known, vectors)| key.is_after(known, vectors, dimension));
        let new = older.map_or(items, |(_, vectors)| {
            space.next_number.saturating_sub(vectors.next) + vectors.without.len() as u64
        });
        let ranked = self.ranked.lock().get(&(key.space, key.model.clone())).copied();
        of(new.min(items)) <= self.most_bytes / SMALL_SHARE
            || ranked.unwrap_or_default() >= READ_AFTER
    }

    /// Notes that the database ranked a space; one that is too large for the cache is dropped.
    fn note_ranked(&self, key: &Key, space: &Space, dimension: usize) {
        let bytes = (space.statistics.items as usize).saturating_mul(dimension * size_of::<f32>());
        if bytes > self.most_bytes {
            drop(self.take_older(key, dimension));
        } else {
            *self.ranked.lock().entry((key.space, key.model.clone())).or_default() += 1;
        }
    }

    fn get(&self, key: &Key) -> Option<Arc<Vectors>> {
        let mut kept = self.kept.lock();
        let at = kept.iter().position(|(known, _)| known == key)?;
        let found = kept.remove(at);
        let vectors = found.1.clone();
        kept.push(found);
        Some(vectors)
    }

    /// Takes the cached vectors of the same space and model with their time.
    fn take_older(&self, key: &Key, dimension: usize) -> Option<(Key, Arc<Vectors>)> {
        let mut kept = self.kept.lock();
        let is_older =
            |(known, vectors): &(Key, Arc<Vectors>)| key.is_after(known, vectors, dimension);
        let at = kept.iter().position(is_older)?;
        Some(kept.remove(at))
    }

    /// Caches vectors and replaces older ones of their space; the least recently used ones are dropped.
    fn keep(&self, key: Key, vectors: Arc<Vectors>) {
        self.ranked.lock().remove(&(key.space, key.model.clone()));
        let mut kept = self.kept.lock();
        kept.retain(|(known, _)| known.space != key.space || known.model != key.model);
        kept.push((key, vectors));
        let mut bytes: usize = kept.iter().map(|(_, vectors)| vectors.values.len() * 4).sum();
        while bytes > self.most_bytes && kept.len() > 1 {
            bytes -= kept.remove(0).1.values.len() * 4;
        }
    }
}

impl Key {
    /// Returns whether cached vectors can be updated to this time.
    fn is_after(&self, known: &Self, vectors: &Vectors, dimension: usize) -> bool {
        known.space == self.space
            && known.model == self.model
            && self.moment.is_noted_since(known.moment)
            && vectors.dimension == dimension
    }
}
