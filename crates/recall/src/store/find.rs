//! Searching: words and meaning, each in every scope, fused into one list.

use std::collections::{BTreeMap, BTreeSet};

use perihelion_database::{Database, Row, query};
use sqlx::AssertSqlSafe;

use super::filters::Filters;
use super::lists::{Terms, decode};
use super::nearest::{self, Cache};
use super::pgvector::Pgvector;
use super::recent::Waiting;
use super::space::{self, Space};
use crate::bm25::{Occurrences, Posting, join, rank};
use crate::memory::RELATED;
use crate::words::{Language, QueryTerm, beginning, related, wanted};
use crate::{Found, Hit, Result, Search, fuse};

/// Ranks of each way of looking that are fused, at least.
const DEPTH: usize = 200;

/// Related terms of a word that are looked at.
const NEAR: i64 = 1000;

/// An item of one of the scopes of a search: the scope's place, and the item's number there.
type Key = (usize, u64);

/// The facts about a hit before its row is read.
#[derive(Clone, Copy, Default)]
struct Known {
    coverage: f64,
    similarity: Option<f64>,
}

pub(super) async fn search(
    database: &Database,
    (cache, pgvector, filters): (&Cache, &Pgvector, &Filters),
    search: &Search,
) -> Result<Found> {
    let scopes = search.distinct_scopes();
    let depth = DEPTH.max(search.limit);
    let mut spaces: Vec<(Database, Space)> = Vec::new();
    let mut known: BTreeMap<Key, Known> = BTreeMap::new();
    let mut by_words: Vec<(Key, f64)> = Vec::new();
    let mut by_meaning: Vec<(Key, f64)> = Vec::new();
    let mut used_vectors = false;
    for scope in scopes {
        let database = database.of_tenant(scope.tenant());
        let Some(space) = space::read(&database, scope, &search.kind).await? else { continue };
        let at = spaces.len();
        let passing = filters.passing(&database, &space, &search.filter).await?;
        let passes =
            |number: u64| passing.as_ref().is_none_or(|all| all.binary_search(&number).is_ok());
        let words = occurrences(&database, &space, search).await?;
        for one in rank(space.statistics, &words, passes, depth) {
            by_words.push(((at, one.item), one.score));
            known.entry((at, one.item)).or_default().coverage = one.coverage;
        }
        if let Some(vector) = &search.vector {
            let place = (scope, &space);
            let passing = passing.as_ref().map(|all| all.as_slice());
            let caches = (cache, pgvector);
            let ranked = nearest::best(&database, caches, place, vector, passing, depth).await?;
            used_vectors |= ranked.is_some();
            for (number, similarity) in ranked.unwrap_or_default() {
                by_meaning.push(((at, number), similarity));
                known.entry((at, number)).or_default().similarity = Some(similarity);
            }
        }
        spaces.push((database, space));
    }
    let ranked = fused(search, by_words, by_meaning, used_vectors);
    let hits = read_hits(&spaces, &known, &ranked, search.limit).await?;
    Ok(Found { hits, by_meaning: used_vectors })
}

/// Makes one list of both; by words alone it is theirs, with their scores.
fn fused(
    search: &Search,
    mut by_words: Vec<(Key, f64)>,
    mut by_meaning: Vec<(Key, f64)>,
    used_vectors: bool,
) -> Vec<(Key, f64)> {
    // Stable: equal ones stay in the order of their scopes and numbers.
    by_words.sort_by(|one, other| other.1.total_cmp(&one.1));
    if !used_vectors {
        return by_words;
    }
    by_meaning.sort_by(|one, other| other.1.total_cmp(&one.1));
    let words: Vec<Key> = by_words.into_iter().map(|(key, _)| key).collect();
    let meaning: Vec<Key> = by_meaning.into_iter().map(|(key, _)| key).collect();
    let weights = search.weights;
    fuse(&[(weights.words, &words), (weights.meaning, &meaning)])
}

async fn occurrences(
    database: &Database,
    space: &Space,
    search: &Search,
) -> Result<Vec<Occurrences>> {
    let languages: Vec<Language> = space.languages.iter().copied().collect();
    let asked = wanted(&[(1.0, &search.text)], &languages);
    let terms: BTreeSet<String> =
        asked.iter().flat_map(|word| word.terms.iter().cloned()).collect();
    // Before the lists: what is merged in this moment is found here or there.
    let waiting = Waiting::read(database, space, &search.kind, &terms).await?;
    let lists = read_lists(database, space, &waiting, terms).await?;
    let mut found = Vec::new();
    for word in &asked {
        let at = |term: &String| lists.get(term).cloned().unwrap_or_default();
        let exact: Vec<Posting> = word.terms.iter().flat_map(at).collect();
        let (postings, likeness) = if exact.is_empty() {
            (near(database, space, &waiting, word).await?, RELATED)
        } else {
            (exact, 1.0)
        };
        found.push(Occurrences { weight: word.weight, postings: join(postings), likeness });
    }
    Ok(found)
}

async fn near(
    database: &Database,
    space: &Space,
    waiting: &Waiting<'_>,
    word: &QueryTerm,
) -> Result<Vec<Posting>> {
    let mut terms: BTreeSet<String> = BTreeSet::new();
    for wanted in &word.terms {
        let Some(start) = beginning(wanted) else { continue };
        let read = query(
            "SELECT DISTINCT term FROM recall_posting
             WHERE space = $1 AND term >= $2 AND term < $3 ORDER BY term LIMIT $4",
        );
        let end = format!("{start}\u{10ffff}");
        let read = read.bind(space.id).bind(&start).bind(end).bind(NEAR);
        let mut begin_so = waiting.beginning_with(&start)?;
        for row in database.fetch_all(&read).await? {
            begin_so.insert(row.get(0)?);
        }
        terms.extend(begin_so.into_iter().filter(|term| related(wanted, term)));
    }
    if terms.is_empty() {
        return Ok(Vec::new());
    }
    let lists = read_lists(database, space, waiting, terms).await?;
    Ok(lists.into_values().flatten().collect())
}

async fn read_lists(
    database: &Database,
    space: &Space,
    waiting: &Waiting<'_>,
    terms: BTreeSet<String>,
) -> Result<Terms> {
    let one_of = database.dialect().one_of("$2");
    let sql = format!("SELECT term, body FROM recall_posting WHERE space = $1 AND term {one_of}");
    let read = query(AssertSqlSafe(sql)).bind(space.id).bind(Vec::from_iter(terms.iter().cloned()));
    let mut lists = Terms::new();
    for row in database.fetch_all(&read).await? {
        let postings = decode(waiting.kind(), &row.get::<Vec<u8>>(1)?)?;
        lists.entry(row.get(0)?).or_default().extend(postings);
    }
    waiting.add_to(&mut lists, &terms)?;
    Ok(lists)
}

async fn read_hits(
    spaces: &[(Database, Space)],
    known: &BTreeMap<Key, Known>,
    ranked: &[(Key, f64)],
    limit: usize,
) -> Result<Vec<Hit>> {
    let mut rows: BTreeMap<Key, Row> = BTreeMap::new();
    let Some((database, _)) = spaces.first() else { return Ok(Vec::new()) };
    let one_of = database.dialect().one_of("$2");
    let sql = format!(
        "SELECT number, id, payload FROM recall_item
         WHERE space = $1 AND number {one_of}"
    );
    let best = ranked.get(..limit).unwrap_or(ranked);
    for (at, (database, space)) in spaces.iter().enumerate() {
        let of_space = best.iter().filter(|((place, _), _)| *place == at);
        let numbers: Vec<i64> = of_space.map(|((_, number), _)| *number as i64).collect();
        if numbers.is_empty() {
            continue;
        }
        let read = query(AssertSqlSafe(sql.clone())).bind(space.id).bind(numbers);
        for row in database.fetch_all(&read).await? {
            rows.insert((at, row.get::<i64>(0)? as u64), row);
        }
    }
    let mut hits = Vec::new();
    for (key, score) in best {
        // What was removed in this moment has no row any more.
        let Some(row) = rows.get(key) else { continue };
        let Known { coverage, similarity } = known.get(key).copied().unwrap_or_default();
        hits.push(Hit {
            id: row.get(1)?,
            payload: row.get(2)?,
            score: *score,
            coverage,
            similarity,
        });
    }
    Ok(hits)
}
