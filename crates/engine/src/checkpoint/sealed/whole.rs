//! Lists of rows and whole threads: decrypted, with a check of the owner of each value.

use super::super::{BlobRow, Error, Loaded, Result, SnapshotRow, ThreadDump};
use super::SealedStore;
use super::label::{Label, open_info, read_label, seal_error, seal_label};
use super::values::{Owner, Values};
use crate::ids::ThreadId;

impl SealedStore {
    /// Checks the owners of the values in a thread's history, each with its step.
    ///
    /// A value of another thread is accepted only if this thread was forked from it. A plain value is accepted only if
    /// the thread, or the shared part of its history, was written without encryption.
    async fn admit(&self, thread: ThreadId, values: &[(u64, Owner)]) -> Result<()> {
        let is_own = |owner: &Owner| *owner == Some(*thread.0.as_bytes());
        if values.iter().all(|(_, owner)| is_own(owner)) {
            return Ok(());
        }
        let label = read_label(&self.keys, &self.inner.info(thread).await?)?;
        let is_in_place = |seq: u64, owner: &Owner| match (&label, owner) {
            (None, owner) => owner.is_none(),
            (Some(label), None) => label.shares_any(seq),
            (Some(label), Some(owner)) => label.shares(owner, seq),
        };
        match values.iter().find(|(seq, owner)| !is_own(owner) && !is_in_place(*seq, owner)) {
            None => Ok(()),
            Some((seq, _)) => Err(Error::Forged { thread, what: format!("step {seq}") }),
        }
    }

    pub(super) async fn open_loaded(&self, loaded: Loaded) -> Result<Loaded> {
        let thread = loaded.info.id;
        Ok(Loaded {
            snapshot: self.open_snapshot(thread, loaded.snapshot).await?,
            steps: self.open_each(thread, loaded.steps, Values::open_step).await?,
            pending: self.open_each(thread, loaded.pending, Values::open_pending).await?,
            info: open_info(&self.keys, loaded.info),
        })
    }

    async fn open_snapshot(
        &self,
        thread: ThreadId,
        row: Option<SnapshotRow>,
    ) -> Result<Option<SnapshotRow>> {
        let rows = row.into_iter().collect();
        Ok(self.open_each(thread, rows, Values::open_snapshot).await?.pop())
    }

    /// Decrypts rows of a thread, and checks the owners of their values.
    pub(super) async fn open_each<'k, T>(
        &'k self,
        thread: ThreadId,
        rows: Vec<T>,
        open: impl Fn(Values<'k>, T) -> Result<(T, u64, Owner)>,
    ) -> Result<Vec<T>> {
        let mut opened = Vec::with_capacity(rows.len());
        let mut owners = Vec::new();
        for row in rows {
            let (row, seq, owner) = open(self.of(thread), row)?;
            owners.push((seq, owner));
            opened.push(row);
        }
        self.admit(thread, &owners).await?;
        Ok(opened)
    }

    /// Finds a text under the name that it has in the database: its owner's, with any of the keys.
    pub(super) async fn find_blob(
        &self,
        thread: ThreadId,
        hash: &[u8; 32],
    ) -> Result<Option<BlobRow>> {
        if let Some(row) = self.blob_of(thread, thread, hash).await? {
            return Ok(Some(row));
        }
        let mut owners = vec![thread];
        let mut next = Some(thread);
        while let Some(id) = next {
            let info = self.inner.info(id).await?;
            let label = read_label(&self.keys, &info)?.unwrap_or_default();
            owners.extend(label.origins.iter().map(|(origin, _)| *origin));
            owners.extend(info.root);
            next = info.root;
        }
        for owner in owners.into_iter().skip(1) {
            if let Some(row) = self.blob_of(thread, owner, hash).await? {
                return Ok(Some(row));
            }
        }
        // From before the first key was set.
        self.inner.blob(thread, hash).await
    }

    async fn blob_of(
        &self,
        thread: ThreadId,
        owner: ThreadId,
        hash: &[u8; 32],
    ) -> Result<Option<BlobRow>> {
        for key in self.keys.keys() {
            if let Some(row) = self.inner.blob(thread, &key.blind_hash("text", owner, hash)).await?
            {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }

    pub(super) async fn open_dump(&self, mut dump: ThreadDump) -> Result<ThreadDump> {
        let thread = dump.info.id;
        dump.snapshot = self.open_snapshot(thread, dump.snapshot).await?;
        dump.returned = self.open_each(thread, dump.returned, Values::open_snapshot).await?;
        dump.steps = self.open_each(thread, dump.steps, Values::open_step).await?;
        dump.pending = self.open_each(thread, dump.pending, Values::open_pending).await?;
        dump.effects = self.open_each(thread, dump.effects, Values::open_effect).await?;
        let texts = std::mem::take(&mut dump.blobs).into_iter();
        let texts = texts.map(|row| self.of(thread).open_blob(row));
        dump.blobs = texts.collect::<Result<_, _>>()?;
        dump.info = open_info(&self.keys, dump.info);
        Ok(dump)
    }

    pub(super) fn seal_dump(&self, dump: &ThreadDump) -> Result<ThreadDump> {
        let keys = &self.keys;
        let thread = dump.info.id;
        let values = self.of(thread);
        let label = Label { title: dump.info.title.clone(), origins: Vec::new() };
        let mut info = dump.info.clone();
        info.title = Some(seal_label(keys, thread, &label)?);
        info.error = info.error.map(|error| seal_error(keys, thread, &error)).transpose()?;
        let snapshot = dump.snapshot.as_ref();
        Ok(ThreadDump {
            info,
            snapshot: snapshot.map(|row| values.seal_snapshot(row)).transpose()?,
            returned: each(&dump.returned, |row| values.seal_snapshot(row))?,
            steps: each(&dump.steps, |row| values.seal_step(row))?,
            pending: each(&dump.pending, |row| values.seal_pending(row))?,
            effects: each(&dump.effects, |row| values.seal_effect(row))?,
            runs: dump.runs.clone(),
            blobs: values.seal_blobs(&dump.blobs)?,
            children: each(&dump.children, |child| self.seal_dump(child))?,
        })
    }
}

fn each<T>(rows: &[T], seal: impl FnMut(&T) -> Result<T>) -> Result<Vec<T>> {
    rows.iter().map(seal).collect()
}
