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
