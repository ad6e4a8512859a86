//! The newest items: their terms in a few rows each, until there are enough of them to merge into the lists.
//!
//! The smaller components of a log-structured merge tree (P. O'Neil and others, “The log-structured merge-tree”, Acta
//! Informatica 33, 1996). A put writes one row with all its terms. A merge of many puts divides the terms among buckets,
//! and writes one row for each bucket. It also moves the buckets with the oldest rows into the lists, so a block is
//! written once for several merges.

use std::collections::{BTreeMap, BTreeSet};

use perihelion_database::{Database, Row, Transaction, query};
use sqlx::AssertSqlSafe;

use super::lists::{Lists, Terms, terms_of};
use super::space::Space;
use crate::bm25::Posting;
use crate::posting::{self, pack, unpack};
use crate::words::beginning;
use crate::{Error, Result};

/// Items that wait at most in rows with all their terms; a search reads these rows, some 25 bytes for each term.
const MOST_ITEMS: u64 = 1_024;

/// Rows with all terms of their items at most.
const MOST_PARTS: u64 = 64;

/// The buckets of terms are numbered from 0 to this; a prime, so that sums are spread evenly.
const BUCKETS: u32 = 61;

/// The number of rows with all terms of their items: after all buckets, whose rows have earlier items.
const UNDIVIDED: i64 = 256;

/// Buckets that a merge moves into the lists, at least; and items of a merge for each bucket that it moves.
const LEAST_MOVED: u64 = 8;
const ITEMS_PER_MOVED: u64 = 128;

/// The bucket of a row, and the number of its first item.
type Key = (i64, u64);

struct Part {
    last: u64,
    terms: Terms,
    is_changed: bool,
}

/// Parts of a space that are being changed.
pub(super) struct Recent<'a> {
    kind: &'a str,
    space: i64,
    parts: BTreeMap<Key, Part>,
}

impl<'a> Recent<'a> {
    pub(super) fn of(kind: &'a str, space: i64) -> Self {
        Self { kind, space, parts: BTreeMap::new() }
    }

    /// Removes items from their parts.
    pub(super) async fn remove(
        &mut self,
        transaction: &mut Transaction<'_>,
        numbers: &BTreeSet<u64>,
    ) -> Result<()> {
        let (Some(least), Some(most)) = (numbers.first(), numbers.last()) else { return Ok(()) };
        let all = (0..i64::from(BUCKETS)).chain([UNDIVIDED]).collect();
        self.read(transaction, all, (*least, *most)).await?;
        for part in self.parts.values_mut() {
            part.terms.retain(|_, postings| {
                let before = postings.len();
                postings.retain(|posting| !numbers.contains(&posting.item));
                part.is_changed |= postings.len() < before;
                !postings.is_empty()
            });
        }
        Ok(())
    }

    /// Returns whether a part that was read has this term of an item, or had it before it was removed.
    pub(super) fn covers(&self, number: u64, term: &str) -> bool {
        let has = |bucket: i64| {
            let earlier = self.parts.range((bucket, 0)..=(bucket, number)).next_back();
            earlier.is_some_and(|(_, part)| number <= part.last)
        };
        has(UNDIVIDED) || has(bucket_of(term))
    }

    /// Adds the terms of a put: as a part, or together with the parts that wait if too many would.
    pub(super) async fn add(
        &mut self,
        transaction: &mut Transaction<'_>,
        space: &mut Space,
        lists: &mut Lists<'_>,
        (first, terms): (u64, Terms),
    ) -> Result<()> {
        let waiting = space.next_number - space.merged;
        let last = space.next_number.saturating_sub(1);
        if waiting <= MOST_ITEMS && space.parts < MOST_PARTS {
            self.parts.insert((UNDIVIDED, first), Part { last, terms, is_changed: true });
            space.parts += 1;
            return Ok(());
        }
        let moved = self.oldest(transaction, LEAST_MOVED.max(waiting / ITEMS_PER_MOVED)).await?;
        let read = moved.iter().copied().chain([UNDIVIDED]).collect();
        self.read(transaction, read, (0, i64::MAX as u64)).await?;
        // In the order of their numbers, as the lists are.
        let mut all = Vec::new();
        for ((bucket, _), part) in &mut self.parts {
            if *bucket == UNDIVIDED || moved.contains(bucket) {
                all.extend(std::mem::take(&mut part.terms));
                part.is_changed = true;
            }
        }
        all.extend(terms);
        let (into_lists, others): (Terms, Terms) =
            terms_of(all).into_iter().partition(|(term, _)| moved.contains(&bucket_of(term)));
        lists.append(transaction, into_lists).await?;
        for (term, postings) in others {
            let key = (bucket_of(&term), space.merged);
            let new = || Part { last, terms: Terms::new(), is_changed: true };
            self.parts.entry(key).or_insert_with(new).terms.insert(term, postings);
        }
        space.merged = space.next_number;
        Ok(())
    }

    /// Returns a number of buckets, those with the oldest rows first; all buckets if so many are asked for.
    async fn oldest(&self, transaction: &mut Transaction<'_>, count: u64) -> Result<BTreeSet<i64>> {
        if count >= u64::from(BUCKETS) {
            return Ok((0..i64::from(BUCKETS)).collect());
        }
        let read = query(
            "SELECT bucket FROM recall_part WHERE space = $1 AND bucket < $2
             GROUP BY bucket ORDER BY min(first), bucket LIMIT $3",
        );
        let read = read.binds((self.space, UNDIVIDED, count as i64));
        let rows = transaction.fetch_all(&read).await?;
        rows.iter().map(|row| Ok(row.get(0)?)).collect()
    }

    /// Writes changed parts; parts without a term are deleted.
    pub(super) async fn write(
        self,
        transaction: &mut Transaction<'_>,
        space: &mut Space,
    ) -> Result<()> {
        for ((bucket, first), part) in self.parts.into_iter().filter(|(_, part)| part.is_changed) {
            let key = (self.space, bucket, first as i64);
            let statement = if part.terms.is_empty() {
                space.parts = space.parts.saturating_sub(u64::from(bucket == UNDIVIDED));
                query("DELETE FROM recall_part WHERE space = $1 AND bucket = $2 AND first = $3")
                    .binds(key)
            } else {
                query(
                    "INSERT INTO recall_part (space, bucket, first, last, body) VALUES ($1, $2, $3, $4, $5)
                     ON CONFLICT (space, bucket, first) DO UPDATE SET body = excluded.body",
                )
                .binds(key)
                .binds((part.last as i64, encode(&part.terms)))
            };
            transaction.execute(&statement).await?;
        }
        Ok(())
    }

    /// Reads the parts of buckets that can contain numbers between two bounds; changed ones in memory are newer than the
    /// stored ones.
    async fn read(
        &mut self,
        transaction: &mut Transaction<'_>,
        buckets: Vec<i64>,
        (least, most): (u64, u64),
    ) -> Result<()> {
        let one_of = transaction.dialect().one_of("$2");
        let sql = format!(
            "SELECT bucket, first, last, body FROM recall_part
             WHERE space = $1 AND bucket {one_of} AND first <= $4 AND last >= $3"
        );
        let read = query(AssertSqlSafe(sql)).binds((self.space, buckets));
        let read = read.binds((least as i64, most as i64));
        for row in transaction.fetch_all(&read).await? {
            let key = (row.get(0)?, row.get::<i64>(1)? as u64);
            let last = row.get::<i64>(2)? as u64;
            if self.parts.contains_key(&key) {
                continue;
            }
            let mut terms = Terms::new();
            let body: Vec<u8> = row.get(3)?;
            for entry in entries(&body) {
                let (term, postings) = entry.ok_or_else(|| damaged(self.kind))?;
                terms.insert(term.to_owned(), decode(self.kind, postings)?);
            }
            self.parts.insert(key, Part { last, terms, is_changed: false });
        }
        Ok(())
    }
}

/// Returns the bucket of a term, the same in every version; related terms are in one.
fn bucket_of(term: &str) -> i64 {
    let start = beginning(term);
    let bytes = start.as_deref().unwrap_or(term).bytes();
    let sum = bytes.fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte)));
    i64::from(sum % BUCKETS)
}

pub(super) struct Waiting<'a> {
    kind: &'a str,
    /// The space's next number at the time of reading: later items are newer than its statistics.
    next_number: u64,
    bodies: Vec<Vec<u8>>,
}

impl<'a> Waiting<'a> {
    /// Reads the rows in which terms, or related ones, can be.
    pub(super) async fn read(
        database: &Database,
        space: &Space,
        kind: &'a str,
        terms: &BTreeSet<String>,
    ) -> Result<Self> {
        let one_of = database.dialect().one_of("$2");
        let sql = format!("SELECT body FROM recall_part WHERE space = $1 AND bucket {one_of}");
        let mut buckets: Vec<i64> = terms.iter().map(|term| bucket_of(term)).collect();
        buckets.push(UNDIVIDED);
        let read = query(AssertSqlSafe(sql)).bind(space.id).bind(buckets);
        let rows: Vec<Row> = database.fetch_all(&read).await?;
        let bodies = rows.iter().map(|row| row.get(0)).collect::<Result<_, _>>()?;
        Ok(Self { kind, next_number: space.next_number, bodies })
    }

    pub(super) fn kind(&self) -> &'a str {
        self.kind
    }

    /// Adds the postings of terms to the known ones; postings that were merged at this moment are known.
    pub(super) fn add_to(&self, lists: &mut Terms, terms: &BTreeSet<String>) -> Result<()> {
        for body in &self.bodies {
            let mut wanted = terms.iter().peekable();
            for entry in entries(body) {
                let (term, packed) = entry.ok_or_else(|| damaged(self.kind))?;
                while wanted.next_if(|one| one.as_str() < term).is_some() {}
                let Some(found) = wanted.peek() else { break };
                if found.as_str() == term {
                    let postings = decode(self.kind, packed)?;
                    lists.entry(term.to_owned()).or_default().extend(postings);
                }
            }
        }
        for postings in lists.values_mut() {
            postings.retain(|posting| posting.item < self.next_number);
            postings.sort_by_key(|posting| posting.item);
            postings.dedup_by_key(|posting| posting.item);
        }
        Ok(())
    }

    pub(super) fn beginning_with(&self, start: &str) -> Result<BTreeSet<String>> {
        let mut found = BTreeSet::new();
        for body in &self.bodies {
            for entry in entries(body) {
                let (term, _) = entry.ok_or_else(|| damaged(self.kind))?;
                if term.starts_with(start) {
                    found.insert(term.to_owned());
                }
            }
        }
        Ok(found)
    }
}

/// Packs terms with their postings: the lengths of both before each.
fn encode(terms: &Terms) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (term, postings) in terms {
        let postings = pack(postings);
        posting::put(&mut bytes, term.len() as u64);
        posting::put(&mut bytes, postings.len() as u64);
        bytes.extend(term.as_bytes());
        bytes.extend(postings);
    }
    bytes
}

/// Returns the terms of a part in their order, each with its packed postings; ends at invalid bytes.
fn entries(body: &[u8]) -> impl Iterator<Item = Option<(&str, &[u8])>> {
    let mut rest = Some(body);
    std::iter::from_fn(move || {
        let bytes = rest.filter(|bytes| !bytes.is_empty())?;
        let taken = entry(bytes);
        rest = taken.map(|(_, rest)| rest);
        Some(taken.map(|(entry, _)| entry))
    })
}

/// A term with its packed postings.
type Entry<'a> = (&'a str, &'a [u8]);

fn entry(mut bytes: &[u8]) -> Option<(Entry<'_>, &[u8])> {
    let term = usize::try_from(posting::take(&mut bytes)?).ok()?;
    let postings = usize::try_from(posting::take(&mut bytes)?).ok()?;
    let (term, rest) = bytes.split_at_checked(term)?;
    let (postings, rest) = rest.split_at_checked(postings)?;
    Some(((std::str::from_utf8(term).ok()?, postings), rest))
}

fn decode(kind: &str, packed: &[u8]) -> Result<Vec<Posting>> {
    unpack(packed).ok_or_else(|| damaged(kind))
}

fn damaged(kind: &str) -> Error {
    Error::Damaged { kind: kind.to_owned(), what: "what was put last".to_owned() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn packed_parts_are_read_and_bytes_that_are_no_part_are_refused(
            terms in prop::collection::btree_map("[a-zü]{1,9}", prop::collection::btree_set(0_u64..5_000, 1..9), 0..20),
            bytes in prop::collection::vec(any::<u8>(), 0..60),
        ) {
            let posting = |item| Posting { item, count: 4, length: 40 };
            let terms: Terms = terms
                .into_iter()
                .map(|(term, items)| (term, items.into_iter().map(posting).collect()))
                .collect();
            let packed = encode(&terms);
            let mut read = Terms::new();
            for entry in entries(&packed) {
                let (term, postings) = entry.unwrap();
                read.insert(term.to_owned(), decode("k", postings).unwrap());
            }
            prop_assert_eq!(read, terms);
            prop_assert!(entries(&bytes).count() <= bytes.len());
        }
    }
}
