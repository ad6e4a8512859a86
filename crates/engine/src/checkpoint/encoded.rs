//! Stored bytes: JSON, compressed if that saves space.

use std::cell::RefCell;

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use zstd::bulk::Compressor;

use super::{Error, Result, sealed::key_name};

/// The encoding of [`Encoded::bytes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[repr(i16)]
pub enum Codec {
    /// UTF-8 JSON.
    Json = 0,
    /// UTF-8 JSON in one zstd frame.
    JsonZstd = 1,
    /// Encrypted by a [`SealedStore`](super::SealedStore), which also knows the inner encoding.
    Sealed = 2,
}

impl Codec {
    /// Reads the number a store keeps.
    pub fn from_number(number: i16) -> Option<Self> {
        match number {
            0 => Some(Self::Json),
            1 => Some(Self::JsonZstd),
            2 => Some(Self::Sealed),
            _ => None,
        }
    }
}

/// A value ready to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encoded {
    /// How `bytes` are encoded.
    pub codec: Codec,
    /// The encoded value.
    pub bytes: Vec<u8>,
}

/// Fastest zstd level: about 20 µs for 2 KiB of prose.
const LEVEL: i32 = 1;

/// zstd level of snapshots up to [`YOUNG`] bytes: threads are young more often than old, and many at a time.
const YOUNG_LEVEL: i32 = 3;
const YOUNG: usize = 256 << 10;

/// zstd level of larger snapshots: they are most of what snapshots take on disk, and no step waits for them.
const SNAPSHOT_LEVEL: i32 = 6;

/// Largest accepted size after decompression, so that a damaged row cannot exhaust memory: 1 GiB.
const MAX_DECODED: usize = 1 << 30;

impl Encoded {
    /// Encodes as JSON, compressing when the JSON is longer than `compress_above` bytes.
    ///
    /// # Errors
    /// [`Error::Encode`] when the value has no JSON form (a map with keys that are not strings).
    pub fn json<T: Serialize + ?Sized>(value: &T, compress_above: usize) -> Result<Self> {
        Self::json_text(serde_json::to_vec(value).map_err(Error::Encode)?, compress_above)
    }

    /// Takes JSON text, compressing when it is longer than `compress_above` bytes.
    ///
    /// # Errors
    /// [`Error::Compress`] when memory for the compressor is short.
    pub fn json_text(bytes: Vec<u8>, compress_above: usize) -> Result<Self> {
        if bytes.len() <= compress_above {
            return Ok(Self { codec: Codec::Json, bytes });
        }
        let bytes = pack(&bytes).map_err(Error::Compress)?;
        Ok(Self { codec: Codec::JsonZstd, bytes })
    }

    /// Encodes a large value, packed as it is written; returns the JSON's length as well.
    ///
    /// `expected` is about how many bytes of JSON it will be: the packer's tables are made for that size. A store
    /// without compression (`compress_above` is `usize::MAX`) gets plain JSON.
    ///
    /// # Errors
    /// As [`Encoded::json`].
    pub fn json_streamed<T: Serialize + ?Sized>(
        value: &T,
        compress_above: usize,
        expected: usize,
    ) -> Result<(Self, usize)> {
        if compress_above == usize::MAX {
            let whole = Self::json(value, compress_above)?;
            let size = whole.bytes.len();
            return Ok((whole, size));
        }
        let level = if expected <= YOUNG { YOUNG_LEVEL } else { SNAPSHOT_LEVEL };
        let mut inner = zstd::Encoder::new(Vec::new(), level).map_err(Error::Compress)?;
        inner.window_log(window_log(expected)).map_err(Error::Compress)?;
        // No hash chain covers a snapshot, so the frame carries its own checksum.
        inner.include_checksum(true).map_err(Error::Compress)?;
        let mut sink = Counting::new(inner);
        serde_json::to_writer(&mut sink, value).map_err(Error::Encode)?;
        let count = sink.count;
        let bytes = sink.inner.finish().map_err(Error::Compress)?;
        Ok((Self { codec: Codec::JsonZstd, bytes }, count))
    }

    /// Returns the JSON text's bytes.
    ///
    /// # Errors
    /// [`Error::Damaged`] if the bytes do not match the codec, [`Error::NoKey`] if they are encrypted.
    pub fn to_json_bytes(&self) -> Result<std::borrow::Cow<'_, [u8]>> {
        match self.codec {
            Codec::Json => Ok((&self.bytes[..]).into()),
            Codec::JsonZstd => {
                let mut out = Vec::new();
                let decoder = zstd::Decoder::new(&self.bytes[..]).map_err(Error::damaged)?;
                std::io::Read::read_to_end(
                    &mut std::io::Read::take(decoder, MAX_DECODED as u64 + 1),
                    &mut out,
                )
                .map_err(Error::damaged)?;
                if out.len() > MAX_DECODED {
                    return Err(Error::damaged(format!(
                        "a stored value is longer than {MAX_DECODED} bytes"
                    )));
                }
                Ok(out.into())
            }
            Codec::Sealed => Err(Error::NoKey { key: key_name(&self.bytes) }),
        }
    }

    /// Returns the columns of a value that may be missing.
    pub(super) fn columns(value: Option<&Self>) -> (Option<i16>, Option<&[u8]>) {
        (value.map(|it| it.codec as i16), value.map(|it| &it.bytes[..]))
    }

    /// Decodes into a type.
    ///
    /// # Errors
    /// [`Error::Damaged`] when the bytes do not hold a `T`.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_slice(&self.to_json_bytes()?).map_err(Error::damaged)
    }
}

/// Reads hexadecimal digits of a file or a stored label.
pub(super) fn from_hex(text: &str) -> Result<Vec<u8>> {
    hex::decode(text).map_err(|error| Error::damaged(format!("no hexadecimal bytes: {error}")))
}

thread_local! {
    /// Made once per thread, because making one costs several times as much as compressing a step.
    static PACKER: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
}

fn pack(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    PACKER.with_borrow_mut(|packer| match packer {
        Some(packer) => packer.compress(bytes),
        None => packer.insert(Compressor::new(LEVEL)?).compress(bytes),
    })
}

/// Returns the exponent of the smallest window for `expected` bytes, between 128 KiB and the 2 MiB that the level uses
/// by default. The tables have the same size, and clearing them costs as much as packing a small state.
fn window_log(expected: usize) -> u32 {
    expected.saturating_add(expected / 4).max(1).next_power_of_two().ilog2().clamp(17, 21)
}

/// Counts the bytes that are written through it.
pub(crate) struct Counting<W> {
    inner: W,
    pub(crate) count: usize,
}

impl<W> Counting<W> {
    pub(crate) fn new(inner: W) -> Self {
        Self { inner, count: 0 }
    }
}

impl<W: std::io::Write> std::io::Write for Counting<W> {
    fn write(&mut self, buf: &[u8]) -> std::io::Result<usize> {
        let n = self.inner.write(buf)?;
        self.count += n;
        Ok(n)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_reads_back_the_same_whether_compressed_or_not() {
        let value: Vec<String> = (0..500).map(|n| format!("row {n}")).collect();
        for limit in [0, usize::MAX] {
            assert_eq!(
                Encoded::json(&value, limit).unwrap().decode::<Vec<String>>().unwrap(),
                value
            );
        }
        let (streamed, length) = Encoded::json_streamed(&value, 0, 0).unwrap();
        assert_eq!(streamed.decode::<Vec<String>>().unwrap(), value);
        assert_eq!(length, serde_json::to_vec(&value).unwrap().len());
    }

    #[test]
    fn damaged_bytes_are_an_error_and_never_a_panic() {
        let damaged = Encoded { codec: Codec::JsonZstd, bytes: vec![1, 2, 3] };
        assert!(matches!(damaged.decode::<String>(), Err(Error::Damaged(_))));
    }
}
