//! Bytes as hexadecimal digits, also as a field of JSON: a hash of 32 bytes, or a key of any length.

use serde::{Deserialize, Deserializer, Serializer, de::Error as _};

use super::{Error, Result};

pub(super) fn to_hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from(b"0123456789abcdef"[usize::from(nibble & 15)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(*byte)]).collect()
}

pub(super) fn from_hex(text: &str) -> Result<Vec<u8>> {
    let wrong = || Error::damaged(format!("no hexadecimal bytes: {}", text.escape_debug()));
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8).ok_or_else(wrong);
    match text.as_bytes().as_chunks::<2>() {
        (pairs, []) => {
            pairs.iter().map(|[high, low]| Ok(digit(*high)? << 4 | digit(*low)?)).collect()
        }
        _ => Err(wrong()),
    }
}

pub(super) fn serialize<S: Serializer>(bytes: &impl AsRef<[u8]>, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&to_hex(bytes.as_ref()))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>, T: TryFrom<Vec<u8>>>(
    from: D,
) -> Result<T, D::Error> {
    let text = String::deserialize(from)?;
    let bytes = from_hex(&text).map_err(D::Error::custom)?;
    bytes.try_into().map_err(|_| D::Error::invalid_length(text.len() / 2, &"a hash of 32 bytes"))
}
