//! Bytes as hexadecimal digits.

use super::Error;

pub(super) fn to_hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from(b"0123456789abcdef"[usize::from(nibble & 15)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(*byte)]).collect()
}

pub(super) fn from_hex(text: &str) -> Result<Vec<u8>, Error> {
    let wrong = || Error::Damaged(format!("no hexadecimal bytes: {}", text.escape_debug()));
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8).ok_or_else(wrong);
    match text.as_bytes().as_chunks::<2>() {
        (pairs, []) => {
            pairs.iter().map(|[high, low]| Ok(digit(*high)? << 4 | digit(*low)?)).collect()
        }
        _ => Err(wrong()),
    }
}

/// A hash of 32 bytes as a field of JSON.
pub(super) mod digest {
    use serde::{Deserialize, Deserializer, Serializer, de::Error as _};

    pub(in super::super) fn serialize<S: Serializer>(
        bytes: &[u8; 32],
        to: S,
    ) -> Result<S::Ok, S::Error> {
        super::key::serialize(bytes, to)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<[u8; 32], D::Error> {
        let text = String::deserialize(from)?;
        let bytes = super::from_hex(&text).map_err(D::Error::custom)?;
        let wrong = |_| D::Error::custom(format!("the hash has not 32 bytes: {text}"));
        bytes.try_into().map_err(wrong)
    }
}

/// Bytes of any length as a field of JSON.
pub(super) mod key {
    use serde::{Deserialize, Deserializer, Serializer, de::Error as _};

    pub(in super::super) fn serialize<S: Serializer>(
        bytes: &[u8],
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.serialize_str(&super::to_hex(bytes))
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<u8>, D::Error> {
        super::from_hex(&String::deserialize(from)?).map_err(D::Error::custom)
    }
}
