//! Reading what a committed step holds, without its state's type.

use super::{Error, StepRow};
use crate::graph::{Frontier, StoredWrite};

impl StepRow {
    /// Reads what runs after the step.
    ///
    /// # Errors
    /// [`Error::Damaged`] that names the step.
    pub fn frontier(&self) -> Result<Frontier, Error> {
        serde_json::from_slice(&self.frontier).map_err(|error| self.damaged("frontier", error))
    }

    /// Reads what the step's tasks wrote, in the form in which it is stored; [`read_delta`](super::read_delta) reads it as a state's.
    ///
    /// # Errors
    /// [`Error::Damaged`] that names the step; what [`Encoded::to_json_bytes`](super::Encoded::to_json_bytes) says of a delta that cannot be decoded.
    pub fn written(&self) -> Result<Vec<StoredWrite>, Error> {
        let json = self.delta.to_json_bytes()?;
        serde_json::from_slice(&json).map_err(|error| self.damaged("delta", error))
    }

    fn damaged(&self, what: &str, error: serde_json::Error) -> Error {
        Error::Damaged(format!("the {what} of step {} cannot be read: {error}", self.seq))
    }
}
