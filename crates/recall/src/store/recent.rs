//! The newest items: the terms of each put in one row, until there are enough of them to merge into the lists.
//!
//! The smaller component of a log-structured merge tree (P. O'Neil and others, “The log-structured merge-tree”, Acta
//! Informatica 33, 1996): a put writes one row instead of a block for each of its terms, and a merge writes each block
//! once for many puts.

use std::collections::{BTreeMap, BTreeSet};

use perihelion_database::{Database, Row, Transaction, query};

use super::{lists::Lists, space::Space};
use crate::bm25::Posting;
use crate::posting::{self, pack, unpack};
use crate::{Error, Result};

/// Items that wait at most; a search reads all that wait, some 25 bytes for each of their terms.
const MOST_ITEMS: u64 = 1_024;

/// Rows that wait at most.
const MOST_PARTS: u64 = 64;

pub(super) type Terms = BTreeMap<String, Vec<Posting>>;

struct Part {
    last: u64,
    terms: Terms,
    is_changed: bool,
}

/// Parts of a space that are being changed, by the number of their first item.
pub(super) struct Recent<'a> {
    kind: &'a str,
    space: i64,
    parts: BTreeMap<u64, Part>,
}

impl<'a> Recent<'a> {
    pub(super) fn of(kind: &'a str, space: i64) -> Self {
        Self { kind, space, parts: BTreeMap::new() }
    }

    /// Removes items from their parts and returns the rest.
    pub(super) async fn remove(
        &mut self,
        transaction: &mut Transaction<'_>,
        numbers: &BTreeSet<u64>,
    ) -> Result<BTreeSet<u64>> {
        let (Some(least), Some(most)) = (numbers.first(), numbers.last()) else {
            return Ok(BTreeSet::new());
        };
        self.read_between(transaction, *least, *most).await?;
        let mut others = numbers.clone();
        for (first, part) in &mut self.parts {
            let within: Vec<u64> = others.range(*first..=part.last).copied().collect();
            if within.is_empty() {
                continue;
            }
            others.retain(|number| !(*first..=part.last).contains(number));
            part.terms.retain(|_, postings| {
                postings.retain(|posting| within.binary_search(&posting.item).is_err());
                !postings.is_empty()
            });
            part.is_changed = true;
        }
        Ok(others)
    }

    /// Adds the terms of a put: as a part, or into the lists together with all parts if too many would wait.
    pub(super) async fn add(
        &mut self,
        transaction: &mut Transaction<'_>,
        space: &mut Space,
        lists: &mut Lists<'_>,
        (first, terms): (u64, Terms),
    ) -> Result<()> {
        let waiting = space.next_number - space.merged;
        if waiting <= MOST_ITEMS && space.parts < MOST_PARTS {
            let last = space.next_number.saturating_sub(1);
            self.parts.insert(first, Part { last, terms, is_changed: true });
            space.parts += 1;
            return Ok(());
        }
        self.read_between(transaction, 0, i64::MAX as u64).await?;
        // In the order of their numbers, as the lists are.
        let mut all = Terms::new();
        for part in self.parts.values_mut() {
            for (term, postings) in std::mem::take(&mut part.terms) {
                all.entry(term).or_default().extend(postings);
            }
            part.is_changed = true;
        }
        for (term, postings) in terms {
            all.entry(term).or_default().extend(postings);
        }
        let names: Vec<String> = all.keys().cloned().collect();
        lists.read_last(transaction, &names).await?;
        for (term, postings) in all {
            for posting in postings {
                lists.add(&term, posting);
            }
        }
        space.merged = space.next_number;
        Ok(())
    }

    /// Writes changed parts; parts without a term are deleted.
    pub(super) async fn write(
        self,
        transaction: &mut Transaction<'_>,
        space: &mut Space,
    ) -> Result<()> {
        for (first, part) in self.parts.into_iter().filter(|(_, part)| part.is_changed) {
            let statement =
                if part.terms.is_empty() {
                    space.parts = space.parts.saturating_sub(1);
                    query("DELETE FROM recall_recent WHERE space = $1 AND first = $2")
                        .bind(self.space)
                        .bind(first as i64)
                } else {
                    query(
                    "INSERT INTO recall_recent (space, first, last, body) VALUES ($1, $2, $3, $4)
                     ON CONFLICT (space, first) DO UPDATE SET body = excluded.body",
                )
                .binds((self.space, first as i64, part.last as i64, encode(&part.terms)))
                };
            transaction.execute(&statement).await?;
        }
        Ok(())
    }

    /// Reads the parts that can contain numbers between two bounds; changed ones in memory are newer than the stored
    /// ones.
    async fn read_between(
        &mut self,
        transaction: &mut Transaction<'_>,
        least: u64,
        most: u64,
    ) -> Result<()> {
        let read = query(
            "SELECT first, last, body FROM recall_recent WHERE space = $1 AND first <= $3 AND last >= $2",
        );
        let read = read.bind(self.space).bind(least as i64).bind(most as i64);
        for row in transaction.fetch_all(&read).await? {
            let first = row.get::<i64>(0)? as u64;
            let last = row.get::<i64>(1)? as u64;
            if self.parts.contains_key(&first) {
                continue;
            }
            let mut terms = Terms::new();
            let body: Vec<u8> = row.get(2)?;
            for entry in entries(&body) {
                let (term, postings) = entry.ok_or_else(|| damaged(self.kind))?;
                terms.insert(term.to_owned(), decode(self.kind, postings)?);
            }
            self.parts.insert(first, Part { last, terms, is_changed: false });
        }
        Ok(())
    }
}

pub(super) struct Waiting<'a> {
    kind: &'a str,
    /// The space's next number at the time of reading: later items are newer than its statistics.
    next_number: u64,
    bodies: Vec<Vec<u8>>,
}

impl<'a> Waiting<'a> {
    pub(super) async fn read(database: &Database, space: &Space, kind: &'a str) -> Result<Self> {
        let next_number = space.next_number;
        if space.merged == next_number {
            return Ok(Self { kind, next_number, bodies: Vec::new() });
        }
        let read = query("SELECT body FROM recall_recent WHERE space = $1 ORDER BY first");
        let rows: Vec<Row> = database.fetch_all(&read.bind(space.id)).await?;
        let bodies = rows.iter().map(|row| row.get(0)).collect::<Result<_, _>>()?;
        Ok(Self { kind, next_number, bodies })
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
