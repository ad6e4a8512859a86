//! The lists of terms: read, changed in memory, and written back by statements over many rows.

use std::collections::{BTreeMap, BTreeSet};

use perihelion_database::{Dialect, Query, Row, Transaction, query};
use sqlx::AssertSqlSafe;

use crate::bm25::Posting;
use crate::posting::{BLOCK, pack, unpack};
use crate::{Error, Result};

/// Terms whose blocks are read by one statement.
const TERMS: usize = 500;

/// Terms with their postings.
pub(super) type Terms = BTreeMap<String, Vec<Posting>>;

/// Gathers the postings of each term; they stay in their order.
///
/// Sorting joins long runs, which the parts of an index are, in less time than a look-up of each term.
pub(super) fn terms_of(mut entries: Vec<(String, Vec<Posting>)>) -> Terms {
    entries.sort_by(|one, other| one.0.cmp(&other.0));
    entries.dedup_by(|next, kept| {
        let is_same = next.0 == kept.0;
        if is_same {
            kept.1.append(&mut next.1);
        }
        is_same
    });
    entries.into_iter().collect()
}

/// Blocks of a space that are being changed, by term and first number.
pub(super) struct Lists<'a> {
    kind: &'a str,
    space: i64,
    blocks: BTreeMap<(String, u64), Vec<Posting>>,
    changed: BTreeSet<(String, u64)>,
}

impl<'a> Lists<'a> {
    pub(super) fn of(kind: &'a str, space: i64) -> Self {
        Self { kind, space, blocks: BTreeMap::new(), changed: BTreeSet::new() }
    }

    /// Reads the blocks that can contain numbers between two bounds.
    pub(super) async fn read_between(
        &mut self,
        transaction: &mut Transaction<'_>,
        terms: &[String],
        (least, most): (u64, u64),
    ) -> Result<()> {
        let dialect = transaction.dialect();
        let listed =
            dialect.pick("(SELECT value AS term FROM json_each($2)) w", "unnest($2) AS w (term)");
        let blocks = "p.space = $1 AND p.term = w.term AND p.first <= $4 AND p.first >= coalesce((
                SELECT max(q.first) FROM recall_posting q
                WHERE q.space = $1 AND q.term = w.term AND q.first <= $3), 0)";
        let blocks = dialect.look_up("recall_posting", "p", blocks);
        let sql = format!("SELECT p.term, p.first, p.body FROM {listed} {blocks}");
        for terms in terms.chunks(TERMS) {
            let read = query(AssertSqlSafe(sql.clone())).binds((
                self.space,
                terms.to_vec(),
                least as i64,
                most as i64,
            ));
            self.keep(transaction.fetch_all(&read).await?)?;
        }
        Ok(())
    }

    /// Adds postings to the lists of their terms; their numbers are greater than all there.
    pub(super) async fn append(
        &mut self,
        transaction: &mut Transaction<'_>,
        terms: Terms,
    ) -> Result<()> {
        let names: Vec<String> = terms.keys().cloned().collect();
        self.read_between(transaction, &names, (i64::MAX as u64, i64::MAX as u64)).await?;
        for (term, postings) in terms {
            self.add(&term, &postings);
        }
        Ok(())
    }

    fn keep(&mut self, rows: Vec<Row>) -> Result<()> {
        for row in rows {
            let term: String = row.get(0)?;
            let first = row.get::<i64>(1)? as u64;
            let postings = decode(self.kind, &row.get::<Vec<u8>>(2)?)?;
            // What was changed already is newer than what is stored.
            self.blocks.entry((term, first)).or_insert(postings);
        }
        Ok(())
    }

    pub(super) fn remove(&mut self, numbers: &BTreeSet<u64>) {
        for (key, postings) in &mut self.blocks {
            let before = postings.len();
            postings.retain(|posting| !numbers.contains(&posting.item));
            if postings.len() < before {
                self.changed.insert(key.clone());
            }
        }
    }

    fn add(&mut self, term: &str, mut postings: &[Posting]) {
        let of_term = (term.to_owned(), 0)..=(term.to_owned(), u64::MAX);
        if let Some((key, block)) = self.blocks.range_mut(of_term).next_back()
            && (1..BLOCK).contains(&block.len())
        {
            let (fitting, others) = postings.split_at(postings.len().min(BLOCK - block.len()));
            block.extend(fitting);
            self.changed.insert(key.clone());
            postings = others;
        }
        for block in postings.chunks(BLOCK) {
            let key = (term.to_owned(), block[0].item);
            self.changed.insert(key.clone());
            self.blocks.insert(key, block.to_vec());
        }
    }

    /// Writes changed blocks; empty ones are deleted.
    pub(super) async fn write(self, transaction: &mut Transaction<'_>) -> Result<()> {
        let dialect = transaction.dialect();
        let is_empty = |key: &&(String, u64)| self.blocks.get(*key).is_none_or(Vec::is_empty);
        let (empty, full): (Vec<_>, Vec<_>) = self.changed.iter().partition(|key| is_empty(key));
        for part in parts(&empty) {
            let mut delete = with_rows(
                dialect,
                "DELETE FROM recall_posting WHERE (space, term, first) IN (VALUES ",
                part.len(),
                3,
                ")",
            );
            for (term, first) in part {
                delete = delete.bind(self.space).bind(term).bind(*first as i64);
            }
            transaction.execute(&delete).await?;
        }
        for part in parts(&full) {
            let mut upsert = with_rows(
                dialect,
                "INSERT INTO recall_posting (space, term, first, body) VALUES ",
                part.len(),
                4,
                " ON CONFLICT (space, term, first) DO UPDATE SET body = excluded.body",
            );
            for key in part {
                let body = self.blocks.get(*key).map(|postings| pack(postings)).unwrap_or_default();
                upsert = upsert.bind(self.space).bind(&key.0).bind(key.1 as i64).bind(body);
            }
            transaction.execute(&upsert).await?;
        }
        Ok(())
    }
}

/// Rows of one statement at most: sizes are few, so that a connection keeps few statements prepared.
const SIZES: [usize; 3] = [100, 10, 1];

/// Cuts a list into parts of a few sizes.
pub(super) fn parts<T>(mut list: &[T]) -> Vec<&[T]> {
    let mut parts = Vec::new();
    for size in SIZES {
        while list.len() >= size {
            let (part, rest) = list.split_at(size);
            parts.push(part);
            list = rest;
        }
    }
    parts
}

/// Begins a statement with rows of placeholders: `{before}($1, $2), ($3, $4){after}`.
pub(super) fn with_rows(
    dialect: Dialect,
    before: &str,
    rows: usize,
    columns: usize,
    after: &str,
) -> Query {
    with_cast_rows(dialect, before, rows, &vec![""; columns], after)
}

/// Like [`with_rows`], with a suffix for the placeholder of each column: `::vector`, or empty.
pub(super) fn with_cast_rows(
    dialect: Dialect,
    before: &str,
    rows: usize,
    casts: &[&str],
    after: &str,
) -> Query {
    let row = |number: usize| {
        let places = casts.iter().zip(1..);
        let places = places.map(|(cast, at)| match dialect {
            // SQLite treats a numbered placeholder as a name, and compares it with the names of all others.
            Dialect::Sqlite => "?".to_owned(),
            Dialect::Postgres => format!("${}{cast}", number * casts.len() + at),
        });
        format!("({})", places.collect::<Vec<_>>().join(", "))
    };
    let rows: Vec<String> = (0..rows).map(row).collect();
    query(AssertSqlSafe(format!("{before}{}{after}", rows.join(", "))))
}

pub(super) fn decode(kind: &str, body: &[u8]) -> Result<Vec<Posting>> {
    let what = || Error::Damaged { kind: kind.to_owned(), what: "a block of postings".to_owned() };
    unpack(body).ok_or_else(what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_cut_into_a_few_sizes() {
        let list: Vec<u32> = (0..213).collect();
        let sizes: Vec<usize> = parts(&list).iter().map(|part| part.len()).collect();
        assert_eq!(sizes, [100, 100, 10, 1, 1, 1]);
        assert_eq!(parts(&list).concat(), list);
    }
}
