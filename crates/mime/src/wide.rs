//! UTF-16 and UTF-32, with a byte order mark or without one.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};

/// Decodes a text of two or four bytes a letter; `None` if neither a mark nor its zero bytes show that it is one.
pub fn wide(bytes: &[u8]) -> Option<String> {
    // Before UTF-16: its little-endian mark is the beginning of UTF-32's.
    if let Some(rest) = bytes.strip_prefix(&[0xFF, 0xFE, 0, 0]) {
        return Some(utf32(rest, u32::from_le_bytes));
    }
    if let Some(rest) = bytes.strip_prefix(&[0, 0, 0xFE, 0xFF]) {
        return Some(utf32(rest, u32::from_be_bytes));
    }
    let marked = Encoding::for_bom(bytes).filter(|(encoding, _)| *encoding != UTF_8);
    if let Some((encoding, mark)) = marked {
        return Some(encoding.decode_without_bom_handling(&bytes[mark..]).0.into_owned());
    }
    unmarked(bytes)
}

/// Decodes a text without a mark: most of its upper bytes are zero.
fn unmarked(bytes: &[u8]) -> Option<String> {
    let sample = &bytes[..bytes.len().min(4096) / 4 * 4];
    if sample.len() < 8 {
        return None;
    }
    let zeros = |residue: usize| {
        sample.iter().skip(residue).step_by(4).filter(|byte| **byte == 0).count() * 4
    };
    let [a, b, c, d] = [0, 1, 2, 3].map(|residue| zeros(residue) * 10 > sample.len() * 7);
    if !a && c && d {
        Some(utf32(bytes, u32::from_le_bytes))
    } else if a && b && !d {
        Some(utf32(bytes, u32::from_be_bytes))
    } else if !a && b && !c && d {
        Some(UTF_16LE.decode(bytes).0.into_owned())
    } else if a && !b && c && !d {
        Some(UTF_16BE.decode(bytes).0.into_owned())
    } else {
        None
    }
}

fn utf32(bytes: &[u8], read: fn([u8; 4]) -> u32) -> String {
    let (units, rest) = bytes.as_chunks::<4>();
    let units = units.iter().map(|unit| char::from_u32(read(*unit)).unwrap_or('\u{FFFD}'));
    units.chain((!rest.is_empty()).then_some('\u{FFFD}')).collect()
}
