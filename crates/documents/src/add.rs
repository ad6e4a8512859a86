//! Adding a document, step by step: each may run again, and what was paid for is not paid for twice.

use std::collections::HashSet;

use perihelion_recall::ContentHash;

use crate::library::{KIND, check_collection};
use crate::text::Places;
use crate::{Error, Input, Library, Prepared, prepare};

/// How far the adding of a document is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Parse,
    Describe,
    Embed { done: usize, of: usize },
    Keep,
}

impl Library {
    /// Parses and divides a document; pieces of its last version that still stand are kept as they are.
    ///
    /// # Errors
    /// [`Error::Parse`], [`Error::Collection`], [`Error::Full`].
    pub async fn prepare(&self, input: Input) -> Result<Prepared, Error> {
        check_collection(&input.collection)?;
        let id = prepare::id(&self.scope, &input.collection, &input.path);
        if self.by_id(&id).await?.is_none() {
            self.check_new().await?;
        }
        let parsed = self.parser.parse(&input.path, &input.bytes).await?;
        let (version, before) = match self.by_id(&id).await? {
            Some(last) => (last.version + 1, self.pieces(&last.id).await?),
            None => (1, HashSet::new()),
        };
        let prepared = Prepared::new(id, input, parsed, version, &before);
        self.check_room(&prepared).await?;
        Ok(prepared)
    }

    /// Claims the vectors of the pieces, so that they can be kept before the document is there.
    ///
    /// # Errors
    /// [`Error::Recall`].
    pub async fn stage(&self, prepared: &Prepared) -> Result<(), Error> {
        self.begin_prepared(prepared).await?;
        let hashes: Vec<ContentHash> =
            prepared.meanings().into_iter().map(|(hash, _)| hash).collect();
        Ok(self.index.claim(&self.scope, &prepared.id, &hashes).await?)
    }

    /// Returns the texts of a document's pieces.
    async fn pieces(&self, id: &str) -> Result<HashSet<String>, Error> {
        let read = self.query(
            "SELECT i.payload FROM recall_item i JOIN recall_space s ON s.id = i.space
             WHERE s.tenant = $1 AND s.owner = $2 AND s.kind = $3 AND i.parent = $4",
        );
        let read = read.bind(KIND).bind(id);
        let body = self.body(id).await?;
        let rows = self.database().fetch_all(&read).await?;
        let mut ranges = Vec::new();
        for row in &rows {
            let payload: serde_json::Value = row.get(0)?;
            let payload = serde_json::from_value::<prepare::Payload>(payload).ok();
            ranges.extend(payload.map(|payload| (payload.start, payload.end)));
        }
        // In their order, so that the text is gone through once.
        ranges.sort_unstable();
        let mut places = Places::new(&body);
        let pieces = ranges.into_iter().filter_map(|(start, end)| places.part(start, end));
        Ok(pieces.map(str::to_owned).collect())
    }
}
