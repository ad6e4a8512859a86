//! Texts that steps reference: turned into rows, read back, and reported if missing.
//!
//! A step names its texts in its delta, which the hash chain covers; a snapshot has a separate list under its checksum.
//! So whatever reads a whole thread knows which texts there must be, and a text's name is its hash.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use serde::Deserialize;

use super::{BlobRow, Cause, Codec, Encoded, Error, Result, Steps, ThreadDump};
use crate::graph::{Blob, BlobName, BlobText, State, step_at_the_top};
use crate::ids::ThreadId;

/// Makes the row of a text that a step of `owner` names.
///
/// # Errors
/// As [`Encoded::json`].
pub fn blob_row(
    owner: ThreadId,
    step: u64,
    text: &BlobText,
    compress_above: usize,
) -> Result<BlobRow> {
    let body = Encoded::json(&*text.text, compress_above)?;
    Ok(BlobRow { owner, step, hash: text.name.hash, body })
}

/// Sorts the rows of texts in one order, the earliest of each text alone, so that no two writers of the same texts wait
/// for each other.
pub(super) fn in_order<'r>(rows: impl IntoIterator<Item = &'r BlobRow>) -> Vec<&'r BlobRow> {
    let mut rows: Vec<_> = rows.into_iter().collect();
    rows.sort_by_key(|row| (row.owner, row.hash, row.step));
    rows.dedup_by_key(|row| (row.owner, row.hash));
    rows
}

/// Lists the texts that a state names, for its snapshot.
///
/// # Errors
/// As [`Encoded::json`].
pub fn names_of_state<S: State>(state: &S, compress_above: usize) -> Result<Option<Encoded>> {
    let names = names_in(state);
    if names.is_empty() { Ok(None) } else { Encoded::json(&names, compress_above).map(Some) }
}

pub(crate) fn names_in<S: State>(state: &S) -> BTreeSet<BlobName> {
    let mut names = BTreeSet::new();
    state.each_blob(&mut |blob| names.extend(blob.kept()));
    names
}

/// Returns the text of a blob of a thread; `called` is its name in an error.
///
/// # Errors
/// [`Error::Blob`] if it is missing or has another hash, and any error of the store.
pub async fn read_blob(
    store: &dyn Steps,
    thread: ThreadId,
    blob: &Blob,
    called: &str,
) -> Result<Arc<str>> {
    let name = match (blob.text(), blob.kept()) {
        (Some(text), _) => return Ok(Arc::clone(text)),
        (None, name) => name.unwrap_or_else(|| blob.name()),
    };
    let refused = |reason: Cause| Error::Blob { thread, what: called.to_owned(), reason };
    let row = match store.blob(thread, &name.hash).await {
        Ok(row) => row.ok_or_else(|| refused("it is missing in the database".into()))?,
        Err(error @ (Error::Damaged(_) | Error::Forged { .. })) => {
            return Err(refused(error.into()));
        }
        Err(error) => return Err(error),
    };
    let text = row.body.decode::<String>().map_err(|error| match error {
        Error::NoKey { .. } => error,
        other => refused(other.into()),
    })?;
    if BlobName::of(&text) == name {
        Ok(text.into())
    } else {
        Err(refused("its hash does not fit its content".into()))
    }
}

/// The part of a task's write that concerns texts.
#[derive(Deserialize)]
struct Named {
    #[serde(rename = "b", default)]
    blobs: Vec<BlobName>,
}

/// The texts that the rows of a dump name, each with the first step of the thread at the top that does.
struct Names {
    first: BTreeMap<BlobName, u64>,
    /// Whether there are rows that cannot be read without their key.
    is_sealed: bool,
}

impl Names {
    fn of(dump: &ThreadDump) -> Result<Self> {
        let mut names = Self { first: BTreeMap::new(), is_sealed: false };
        for one in dump.family() {
            let place = &one.info.namespace;
            for row in one.snapshot.iter().chain(&one.returned) {
                let Some(list) = &row.blobs else { continue };
                let list = names.decode::<Vec<BlobName>>(list)?.unwrap_or_default();
                names.add(list, step_at_the_top(place, row.seq));
            }
            for row in &one.steps {
                // Whatever is no list of what tasks wrote names nothing.
                let written = names.decode::<Vec<Named>>(&row.delta).ok().flatten();
                let list = written.into_iter().flatten().flat_map(|one| one.blobs).collect();
                names.add(list, step_at_the_top(place, row.seq));
            }
            for row in &one.pending {
                let written = names.decode::<(u32, Named)>(&row.body).ok().flatten();
                let list = written.map_or_else(Vec::new, |(_, one)| one.blobs);
                names.add(list, step_at_the_top(place, row.step));
            }
        }
        Ok(names)
    }

    fn decode<T: for<'de> Deserialize<'de>>(&mut self, body: &Encoded) -> Result<Option<T>> {
        if body.codec == Codec::Sealed {
            self.is_sealed = true;
            return Ok(None);
        }
        body.decode().map(Some)
    }

    fn add(&mut self, names: Vec<BlobName>, step: u64) {
        for name in names {
            let first = self.first.entry(name).or_insert(step);
            *first = step.min(*first);
        }
    }
}

/// Keeps in a dump only those texts that its readable rows reference.
pub(super) fn keep_named(dump: &mut ThreadDump) -> Result<()> {
    if dump.blobs.is_empty() {
        return Ok(());
    }
    let names = Names::of(dump)?;
    if names.is_sealed {
        return Ok(());
    }
    let steps: HashMap<[u8; 32], u64> =
        names.first.iter().map(|(name, step)| (name.hash, *step)).collect();
    let owner = dump.info.id;
    dump.blobs.retain(|row| steps.contains_key(&row.hash));
    for row in &mut dump.blobs {
        row.owner = owner;
        row.step = steps[&row.hash];
    }
    dump.blobs.sort_by_key(|row| (row.step, row.hash));
    dump.blobs.dedup_by_key(|row| row.hash);
    Ok(())
}

/// Checks that a dump contains each referenced text, with the right hash.
///
/// References in encrypted rows are not visible; the process that encrypted them checks first.
pub(super) fn verify(dump: &ThreadDump) -> Result<()> {
    let names = Names::of(dump)?;
    let thread = dump.info.id;
    let refused = |name: &BlobName, reason: Cause| Error::Blob {
        thread,
        what: format!("a text of {} bytes that step {} names", name.bytes, names.first[name]),
        reason,
    };
    let kept: HashMap<[u8; 32], &BlobRow> = dump.blobs.iter().map(|row| (row.hash, row)).collect();
    for name in names.first.keys() {
        let Some(row) = kept.get(&name.hash) else {
            return Err(refused(name, "it is missing in the database".into()));
        };
        if row.body.codec == Codec::Sealed {
            continue;
        }
        let text = row.body.decode::<String>();
        let text = text.map_err(|error| refused(name, error.into()))?;
        if BlobName::of(&text) != *name {
            return Err(refused(name, "its hash does not fit its content".into()));
        }
    }
    Ok(())
}
