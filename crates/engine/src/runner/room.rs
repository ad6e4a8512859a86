//! Bounds the states of threads: what comes from outside is taken only while a state has room for it.
//!
//! What nodes write is not refused: it was bounded where it was made, and paid for.

use std::collections::BTreeSet;
use std::io::{self, Write};

use super::outcome::Error;
use super::run::Runner;
use crate::checkpoint::Restored;
use crate::graph::State;

impl<S: State> Runner<S> {
    /// Refuses inputs and edits after which a state would have more than `most` bytes as JSON; without it none is.
    #[must_use]
    pub fn bounded_to(mut self, most: usize) -> Self {
        self.most = Some(most);
        self
    }

    /// Refuses what made `state` of the state that was restored, when it has more bytes than the bound.
    ///
    /// A state has at most the bytes that it was restored from and those that were added to it, so that most are
    /// never measured. The texts that it names count as if they stood in it.
    pub(super) fn check_room(
        &self,
        restored: &Restored<S>,
        added: usize,
        state: &S,
    ) -> Result<(), Error> {
        let Some(most) = self.most else { return Ok(()) };
        let named = texts(state);
        if restored.snapshot_size + restored.since_snapshot + added + named <= most {
            return Ok(());
        }
        let bytes = size(state) + named;
        // What makes a state smaller is taken, however large it is still.
        if bytes <= most || bytes < size(&*restored.state) + texts(&*restored.state) {
            Ok(())
        } else {
            Err(Error::StateFull { thread: restored.info.id, bytes, most })
        }
    }
}

/// Returns how many bytes a state has as JSON; one that cannot be written is refused where it is stored.
fn size<S: State>(state: &S) -> usize {
    let mut counted = Counted(0);
    let _ = serde_json::to_writer(&mut counted, state);
    counted.0
}

/// Returns how many bytes the texts have that a state names.
fn texts<S: State>(state: &S) -> usize {
    let mut named = BTreeSet::new();
    state.each_blob(&mut |blob| named.extend(blob.kept()));
    named.into_iter().map(|name| name.bytes as usize).sum()
}

/// Counts what is written to it.
struct Counted(usize);

impl Write for Counted {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.0 += buf.len();
        Ok(buf.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
