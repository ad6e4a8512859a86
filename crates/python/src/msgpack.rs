//! A minimal MessagePack reader: the positions of the elements of an array or a map, and the head of a new one.

use crate::error::Error;

const CUT: Error = Error::Damaged("MessagePack is cut off");

/// Deeper nesting is refused.
const DEEPEST: usize = 512;

/// The kind of sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Array,
    /// Its elements are its entries, key and value.
    Map,
}

/// Reads the head of an array or map: its kind, its length and where its first element begins.
fn head(bytes: &[u8]) -> Result<Option<(Kind, usize, usize)>, Error> {
    let first = *bytes.first().ok_or(CUT)?;
    Ok(match first {
        0x80..=0x8f => Some((Kind::Map, (first & 15) as usize, 1)),
        0x90..=0x9f => Some((Kind::Array, (first & 15) as usize, 1)),
        0xdc => Some((Kind::Array, number(bytes, 1, 2)?, 3)),
        0xdd => Some((Kind::Array, number(bytes, 1, 4)?, 5)),
        0xde => Some((Kind::Map, number(bytes, 1, 2)?, 3)),
        0xdf => Some((Kind::Map, number(bytes, 1, 4)?, 5)),
        _ => None,
    })
}

fn number(bytes: &[u8], at: usize, width: usize) -> Result<usize, Error> {
    let found = bytes.get(at..at + width).ok_or(CUT)?;
    Ok(found.iter().fold(0, |number, byte| number << 8 | *byte as usize))
}

/// Returns the end of the value at a position.
fn end(bytes: &[u8], at: usize, depth: usize) -> Result<usize, Error> {
    if depth > DEEPEST {
        return Err(Error::Damaged("MessagePack is nested too deeply"));
    }
    let rest = bytes.get(at..).ok_or(CUT)?;
    if let Some((kind, length, start)) = head(rest)? {
        let values = length * if kind == Kind::Map { 2 } else { 1 };
        return (0..values).try_fold(at + start, |at, _| end(bytes, at, depth + 1));
    }
    let first = *rest.first().ok_or(CUT)?;
    let length = match first {
        0x00..=0x7f | 0xe0..=0xff | 0xc0..=0xc3 => 1,
        0xa0..=0xbf => 1 + (first & 31) as usize,
        0xc4 | 0xd9 => 2 + number(rest, 1, 1)?,
        0xc5 | 0xda => 3 + number(rest, 1, 2)?,
        0xc6 | 0xdb => 5 + number(rest, 1, 4)?,
        0xc7 => 3 + number(rest, 1, 1)?,
        0xc8 => 4 + number(rest, 1, 2)?,
        0xc9 => 6 + number(rest, 1, 4)?,
        0xcc | 0xd0 => 2,
        0xcd | 0xd1 => 3,
        0xca | 0xce | 0xd2 => 5,
        0xcb | 0xcf | 0xd3 => 9,
        0xd4..=0xd8 => 2 + (1 << (first - 0xd4)),
        _ => return Err(Error::Damaged("unknown MessagePack")),
    };
    Some(at + length).filter(|end| *end <= bytes.len()).ok_or(CUT)
}

/// Returns the kind of a sequence and the bounds of its elements; fails if the bytes are anything else.
pub fn elements(bytes: &[u8]) -> Result<(Kind, Vec<(usize, usize)>), Error> {
    let (kind, length, mut at) =
        head(bytes)?.ok_or(Error::Damaged("neither an array nor a map"))?;
    let mut bounds = Vec::with_capacity(length.min(bytes.len()));
    for _ in 0..length {
        let start = at;
        at = end(bytes, at, 0)?;
        if kind == Kind::Map {
            at = end(bytes, at, 0)?;
        }
        bounds.push((start, at));
    }
    if at != bytes.len() {
        return Err(Error::Damaged("bytes after the value"));
    }
    Ok((kind, bounds))
}

/// Returns the contents of an array of three texts or byte strings.
pub fn texts(bytes: &[u8]) -> Result<[&[u8]; 3], Error> {
    let bounds = elements(bytes)?.1;
    let contents: Vec<&[u8]> =
        bounds.iter().map(|(start, end)| content(&bytes[*start..*end])).collect();
    contents.try_into().map_err(|_| Error::Damaged("not three texts"))
}

fn content(value: &[u8]) -> &[u8] {
    let head = match value.first() {
        Some(0xc4 | 0xd9) => 2,
        Some(0xc5 | 0xda) => 3,
        Some(0xc6 | 0xdb) => 5,
        _ => 1,
    };
    value.get(head..).unwrap_or_default()
}

/// Writes the head of a sequence.
pub fn write_head(out: &mut Vec<u8>, kind: Kind, length: usize) {
    let (short, medium, long) = match kind {
        Kind::Array => (0x90, 0xdc, 0xdd),
        Kind::Map => (0x80, 0xde, 0xdf),
    };
    if length < 16 {
        out.push(short | length as u8);
    } else if let Ok(length) = u16::try_from(length) {
        out.push(medium);
        out.extend(length.to_be_bytes());
    } else {
        out.push(long);
        out.extend((length as u32).to_be_bytes());
    }
}
