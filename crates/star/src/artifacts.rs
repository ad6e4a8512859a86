//! Artifacts: results too long for a prompt, kept on the blackboard and read piece by piece.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::{Artifact, Result, Sources, tool_names::READ_ARTIFACT, window::clip};
use perihelion_engine::checkpoint::{self, Steps, read_blob};
use perihelion_engine::graph::{Blob, Dict, TaskContext};
use perihelion_engine::ids::ThreadId;
use perihelion_llm::ToolSpec;

/// Characters of an artifact that the agent that made it is shown at once.
const PREVIEW_CHARS: usize = 1_000;

/// Characters of a piece, unless the model asks for another length.
const PIECE_CHARS: usize = 8_000;

/// Bytes of all artifacts of a thread together, as an agent finds them: a thread is not a store of files.
pub(super) const MAX_BYTES: usize = 64 * 1024 * 1024;

const LISTED_KEYS: usize = 20;

/// The artifacts that an agent can read: the thread's and its own.
pub(super) struct Artifacts {
    of_thread: Dict<Artifact>,
    /// Bytes above which a result becomes an artifact, and that a piece never exceeds.
    result_bytes: usize,
    pub made: BTreeMap<String, Artifact>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ArtifactQuery {
    key: String,
    #[serde(default)]
    offset: usize,
    limit: Option<usize>,
}

/// A piece of an artifact for the model, and the source of the whole.
pub(super) struct Piece {
    pub text: String,
    pub source: String,
    pub tainted_by: Sources,
}

impl Artifacts {
    pub(super) fn new(of_thread: Dict<Artifact>, result_bytes: usize) -> Self {
        Self { of_thread, result_bytes, made: BTreeMap::new() }
    }

    /// Returns the built-in tool's definition, if there is anything to read.
    pub(super) fn spec(&self) -> Option<ToolSpec> {
        if self.made.is_empty() && self.of_thread.is_empty() {
            return None;
        }
        Some(ToolSpec {
            name: READ_ARTIFACT.to_owned(),
            description:
                "Reads a piece of an artifact, which is a result too long to be shown whole. \
                          Costs no call of the server."
                    .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "key": { "type": "string", "description": "The artifact's key." },
                    "offset": {
                        "type": "integer", "minimum": 0,
                        "description": "Characters to pass over; 0 by default."
                    },
                    "limit": {
                        "type": "integer", "minimum": 1,
                        "description": format!("Characters to read at most; {PIECE_CHARS} by default.")
                    },
                },
                "required": ["key"],
                "additionalProperties": false,
            }),
        })
    }

    /// Stores a result that is too long, and returns its preview for the model.
    pub(super) fn bounded(
        &mut self,
        key: String,
        source: &str,
        output: String,
        tainted_by: &Sources,
    ) -> String {
        if output.len() <= self.result_bytes {
            return output;
        }
        let preview = clip(&output, PREVIEW_CHARS);
        let bytes = output.len();
        let listed = self.of_thread.iter().map(|(_, artifact)| artifact.content.bytes());
        let kept: usize = listed.chain(self.made.values().map(|one| one.content.bytes())).sum();
        if kept + bytes > MAX_BYTES {
            return format!(
                "The result has {bytes} bytes and could not be kept: the artifacts of this thread have {kept} of at \
                 most {MAX_BYTES} bytes. Ask for less. It begins:\n{preview}"
            );
        }
        let shown = format!(
            "The result has {bytes} bytes and is kept as the artifact {key}; read on with \
             {READ_ARTIFACT}. It begins:\n{preview}"
        );
        self.made.insert(key, Artifact::of_text(source, preview, output, tainted_by));
        shown
    }

    /// Reads a piece, or explains to the model why there is none; the same state gives the same piece.
    pub(super) async fn read(
        &self,
        ctx: &TaskContext,
        arguments: &Value,
    ) -> Result<Result<Piece, String>> {
        let (wanted, artifact) = match self.wanted(arguments) {
            Ok(found) => found,
            Err(problem) => return Ok(Err(problem)),
        };
        let whole = content_of(ctx, &wanted.key, &artifact.content).await?;
        Ok(Ok(self.piece(&wanted, artifact, &whole)))
    }

    fn wanted(&self, arguments: &Value) -> Result<(ArtifactQuery, &Artifact), String> {
        let wanted: ArtifactQuery = serde_json::from_value(arguments.clone()).map_err(|error| {
            format!("the arguments of {READ_ARTIFACT} do not fit its schema: {error}")
        })?;
        let artifact = self.find(&wanted.key).ok_or_else(|| self.unknown(&wanted.key))?;
        if let Some(media_type) = &artifact.media_type {
            return Err(format!("the artifact {} is no text, but {media_type}", wanted.key));
        }
        Ok((wanted, artifact))
    }

    fn piece(&self, wanted: &ArtifactQuery, artifact: &Artifact, whole: &str) -> Piece {
        let mut piece: String =
            whole.chars().skip(wanted.offset).take(wanted.limit.unwrap_or(PIECE_CHARS)).collect();
        piece.truncate(piece.floor_char_boundary(self.result_bytes));
        let total = whole.chars().count();
        let end = wanted.offset.saturating_add(piece.chars().count());
        let text = if piece.is_empty() {
            format!(
                "The artifact {} has {total} characters; there are none at offset {}.",
                wanted.key, wanted.offset
            )
        } else {
            format!(
                "Characters {} to {end} of {total} of the artifact {}:\n{piece}",
                wanted.offset, wanted.key
            )
        };
        Piece { text, source: artifact.source.clone(), tainted_by: artifact.tainted_by.clone() }
    }

    /// Returns an artifact; the agent's own come first.
    pub(super) fn find(&self, key: &str) -> Option<&Artifact> {
        self.made.get(key).or_else(|| self.of_thread.get(key))
    }

    /// Says that there is no such artifact, and which there are.
    pub(super) fn unknown(&self, key: &str) -> String {
        let of_thread = self.of_thread.keys().map(String::as_str);
        let keys: Vec<&str> =
            self.made.keys().map(String::as_str).chain(of_thread).take(LISTED_KEYS).collect();
        format!("there is no artifact {key}; there are: {}", keys.join(", "))
    }
}

pub(super) async fn content_of(ctx: &TaskContext, key: &str, content: &Blob) -> Result<Arc<str>> {
    ctx.read(content, &called(key)).await
}

impl Artifact {
    pub(super) fn of_text(
        source: &str,
        preview: String,
        text: String,
        tainted_by: &Sources,
    ) -> Self {
        Self {
            source: source.to_owned(),
            preview,
            bytes: text.len(),
            content: text.into(),
            media_type: None,
            tainted_by: tainted_by.clone(),
        }
    }

    /// Returns the whole of an artifact of a thread, which the thread knows by a key.
    ///
    /// # Errors
    /// [`checkpoint::Error::Blob`] if the store no longer has it or has an altered one, and any error of the store.
    pub async fn whole(
        &self,
        store: &dyn Steps,
        thread: ThreadId,
        key: &str,
    ) -> Result<Arc<str>, checkpoint::Error> {
        read_blob(store, thread, &self.content, &called(key)).await
    }
}

fn called(key: &str) -> String {
    format!("the artifact {key}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece_of(artifacts: &Artifacts, arguments: &Value) -> Result<Piece, String> {
        let (wanted, artifact) = artifacts.wanted(arguments)?;
        let whole = artifact.content.text().unwrap();
        Ok(artifacts.piece(&wanted, artifact, whole))
    }

    #[test]
    fn an_artifact_is_read_in_pieces_that_join_to_the_whole() {
        let mut artifacts = Artifacts::new(Dict::default(), 100);
        assert!(artifacts.spec().is_none(), "nothing to read yet");
        assert_eq!(artifacts.bounded("k".into(), "s.t", "short".into(), &Sources::new()), "short");
        let long: String = "äöü".repeat(50);
        let shown = artifacts.bounded("1.1.t1/1".into(), "s.t", long.clone(), &Sources::new());
        assert!(shown.contains("300 bytes") && shown.contains("1.1.t1/1"), "{shown}");
        assert!(artifacts.spec().is_some());

        let mut read = String::new();
        while let Some(piece) = {
            let arguments = json!({ "key": "1.1.t1/1", "offset": read.chars().count() });
            let piece = piece_of(&artifacts, &arguments).unwrap();
            assert_eq!(piece.source, "s.t");
            piece.text.split_once(":\n").map(|(_, piece)| piece.to_owned())
        } {
            assert!(piece.len() <= 100);
            read.push_str(&piece);
        }
        assert_eq!(read, long);
    }

    #[test]
    fn a_wrong_key_or_argument_is_reported_with_the_fix() {
        let mut artifacts = Artifacts::new(Dict::default(), 1);
        artifacts.bounded("a/1".into(), "s.t", "long".into(), &Sources::new());
        let reported = |arguments| piece_of(&artifacts, &arguments).err().unwrap();
        assert_eq!(reported(json!({ "key": "b" })), "there is no artifact b; there are: a/1");
        assert!(reported(json!({ "offset": 1 })).contains("missing field `key`"));
        assert!(reported(json!({ "key": "a/1", "offset": -1 })).contains("invalid value"));
    }
}
