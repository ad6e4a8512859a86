//! The lines of the file, one kind per row of a store.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::value::RawValue;

use super::super::{
    BlobRow, Codec, EffectRow, Encoded, PendingRow, Result, RunRow, SnapshotRow, StepRow,
    ThreadInfo, encoded::from_hex,
};
use crate::graph::BlobName;
use crate::ids::ThreadId;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Form {
    /// For any store: every value is decoded.
    Thread,
    /// For the database that it came from: encrypted values stay encrypted.
    Archive,
}

impl Form {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Thread => "perihelion-thread",
            Self::Archive => "perihelion-archive",
        }
    }

    pub(super) fn body(self, value: &Encoded) -> Result<Encoded> {
        match value.codec {
            Codec::Sealed if self == Self::Archive => Ok(value.clone()),
            _ => value.plain(),
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Line {
    Header(Header),
    Thread(Box<ThreadInfo>),
    Snapshot(SnapshotRow),
    /// The state of a return to an earlier step, if earlier steps were dropped.
    Returned(SnapshotRow),
    Step(Box<StepRow>),
    Pending(PendingRow),
    Effect(Box<EffectRow>),
    Run(RunRow),
    Blob(Blob),
    /// Proves that no line is missing before it.
    End(End),
}

#[derive(Serialize, Deserialize)]
pub(super) struct Header {
    pub(super) format: String,
    pub(super) version: u32,
}

#[derive(Serialize, Deserialize)]
pub(super) struct End {
    /// Lines of the file, this one included.
    pub(super) lines: u64,
    /// BLAKE3 over the lines before this one, their line feeds included, in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) digest: Option<String>,
}

/// Bytes that keep their exact form: they are written as JSON if that preserves each byte.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Verbatim {
    Json(Box<RawValue>),
    Hex(String),
    /// An encrypted value, as a file of the archive has it.
    Sealed(String),
}

/// Bodies longer than this are compressed on the way in, whatever they were before.
const COMPRESS_ABOVE: usize = 2048;

impl Verbatim {
    fn new(bytes: &[u8]) -> Self {
        let text = std::str::from_utf8(bytes).ok().filter(|text| !text.contains(['\n', '\r']));
        let raw = text.and_then(|text| serde_json::from_str::<Box<RawValue>>(text).ok());
        match raw {
            // Spaces around the value would be lost.
            Some(raw) if raw.get().len() == bytes.len() => Self::Json(raw),
            _ => Self::Hex(hex::encode(bytes)),
        }
    }

    fn into_bytes(self) -> Result<Vec<u8>> {
        match self {
            Self::Json(raw) => Ok(raw.get().as_bytes().to_vec()),
            Self::Hex(text) | Self::Sealed(text) => from_hex(&text),
        }
    }

    fn into_encoded(self) -> Result<Encoded> {
        match self {
            Self::Json(raw) => Encoded::json(&raw, COMPRESS_ABOVE),
            Self::Hex(text) => Ok(Encoded { codec: Codec::Json, bytes: from_hex(&text)? }),
            Self::Sealed(text) => Ok(Encoded { codec: Codec::Sealed, bytes: from_hex(&text)? }),
        }
    }
}

impl Encoded {
    /// Decodes it, so that it can be written as it is.
    fn plain(&self) -> Result<Self> {
        Ok(Self { codec: Codec::Json, bytes: self.to_json_bytes()?.into_owned() })
    }
}

impl Serialize for Encoded {
    /// Writes an `Encoded::plain` value: its bytes are the JSON; or an encrypted one as it is.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.codec {
            Codec::Sealed => Verbatim::Sealed(hex::encode(&self.bytes)).serialize(to),
            _ => Verbatim::new(&self.bytes).serialize(to),
        }
    }
}

impl<'de> Deserialize<'de> for Encoded {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Verbatim::deserialize(from)?.into_encoded().map_err(D::Error::custom)
    }
}

/// Bytes that are no [`Encoded`], written as [`Verbatim`].
pub(in super::super) mod verbatim {
    use super::{Deserialize, Deserializer, Serialize, Serializer, Verbatim};
    use serde::de::Error as _;

    pub(in super::super::super) fn serialize<S: Serializer>(
        bytes: &[u8],
        to: S,
    ) -> Result<S::Ok, S::Error> {
        Verbatim::new(bytes).serialize(to)
    }

    pub(in super::super::super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<u8>, D::Error> {
        Verbatim::deserialize(from)?.into_bytes().map_err(D::Error::custom)
    }
}

/// A text that earlier rows reference, by its hash and length.
#[derive(Serialize, Deserialize)]
pub(super) struct Blob {
    text: Encoded,
    /// The other columns of its row, if the rows are encrypted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stored: Option<Stored>,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    step: u64,
    #[serde(with = "hex::serde")]
    hash: [u8; 32],
}

impl Blob {
    pub(super) fn new(row: &BlobRow, form: Form) -> Result<Self> {
        let stored = Stored { step: row.step, hash: row.hash };
        Ok(Self { text: form.body(&row.body)?, stored: (form == Form::Archive).then_some(stored) })
    }

    /// Unless the file has it, the step that names it is found when the whole file is read.
    pub(super) fn into_row(self, owner: ThreadId) -> Result<BlobRow> {
        let Stored { step, hash } = match self.stored {
            Some(stored) => stored,
            None => Stored { step: 0, hash: BlobName::of(&self.text.decode::<String>()?).hash },
        };
        Ok(BlobRow { owner, step, hash, body: self.text })
    }
}
