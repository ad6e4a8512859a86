//! Values from their changes: a full row, then what each later row kept and inserted.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use crate::error::Error;
use crate::msgpack::{self, Kind};

/// One part of a new sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A number of elements of the old sequence, from a position on.
    Kept { start: usize, length: usize },
    /// A number of the inserted elements, in order.
    Inserted { length: usize },
}

/// Writes parts as numbers of variable length.
pub fn write(parts: &[Part]) -> Vec<u8> {
    let mut out = Vec::new();
    for part in parts {
        match *part {
            Part::Kept { start, length } => {
                write_number(&mut out, length << 1);
                write_number(&mut out, start);
            }
            Part::Inserted { length } => write_number(&mut out, length << 1 | 1),
        }
    }
    out
}

fn write_number(out: &mut Vec<u8>, mut number: usize) {
    while number > 127 {
        out.push(number as u8 & 127 | 128);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Reads what `write` wrote.
pub fn read(mut bytes: &[u8]) -> Result<Vec<Part>, Error> {
    let mut parts = Vec::new();
    while !bytes.is_empty() {
        let length = read_number(&mut bytes)?;
        let is_inserted = length & 1 == 1;
        let length = length >> 1;
        parts.push(if is_inserted {
            Part::Inserted { length }
        } else {
            Part::Kept { start: read_number(&mut bytes)?, length }
        });
    }
    Ok(parts)
}

fn read_number(bytes: &mut &[u8]) -> Result<usize, Error> {
    let mut number = 0;
    for shift in (0..63).step_by(7) {
        let (&byte, rest) = bytes.split_first().ok_or(Error::Damaged("a change is cut off"))?;
        *bytes = rest;
        number |= ((byte & 127) as usize) << shift;
        if byte < 128 {
            return Ok(number);
        }
    }
    Err(Error::Damaged("a number is too long"))
}

/// Applies parts to a sequence; fails if they name elements that it does not have.
pub fn apply<T: Clone>(parts: &[Part], old: &mut Vec<T>, inserted: Vec<T>) -> Result<(), Error> {
    const WRONG: Error = Error::Damaged("a change does not fit the value before it");
    // Mostly elements are appended: then the old ones stay where they are.
    if let [Part::Kept { start: 0, length }, rest @ ..] = parts
        && *length == old.len()
        && matches!(rest, [] | [Part::Inserted { .. }])
    {
        let counted: usize = rest
            .iter()
            .map(|part| if let Part::Inserted { length } = part { *length } else { 0 })
            .sum();
        old.extend(Some(inserted).filter(|inserted| inserted.len() == counted).ok_or(WRONG)?);
        return Ok(());
    }
    let mut inserted = inserted.into_iter();
    let mut new = Vec::new();
    for part in parts {
        match *part {
            Part::Kept { start, length } => {
                let end = start.checked_add(length).ok_or(WRONG)?;
                new.extend_from_slice(old.get(start..end).ok_or(WRONG)?);
            }
            Part::Inserted { length } => {
                let before = new.len();
                new.extend(inserted.by_ref().take(length));
                if new.len() - before != length {
                    return Err(WRONG);
                }
            }
        }
    }
    *old = new;
    Ok(())
}

/// The MessagePack of a value from its rows: oldest first, each the parts (empty in the first) and the MessagePack.
#[pyfunction]
pub fn assemble<'py>(
    py: Python<'py>,
    rows: Vec<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)>,
) -> PyResult<Bound<'py, PyBytes>> {
    if let [(_, only)] = rows.as_slice() {
        return Ok(only.clone());
    }
    let mut kind = Kind::Array;
    let mut all: Vec<&[u8]> = Vec::new();
    for (index, (parts, bytes)) in rows.iter().enumerate() {
        let bytes = bytes.as_bytes();
        let found = msgpack::elements(bytes)?;
        let inserted = found.1.iter().map(|(start, end)| &bytes[*start..*end]).collect();
        if index == 0 {
            kind = found.0;
            all = inserted;
        } else {
            apply(&read(parts.as_bytes())?, &mut all, inserted)?;
        }
    }
    let mut out = Vec::with_capacity(5 + all.iter().map(|bytes| bytes.len()).sum::<usize>());
    msgpack::write_head(&mut out, kind, all.len());
    all.iter().for_each(|bytes| out.extend_from_slice(bytes));
    Ok(PyBytes::new(py, &out))
}

/// The list or dict that follows from an older one by a change; for serialisers with bytes that only they can read.
#[pyfunction]
pub fn splice<'py>(
    parts: &[u8],
    old: &Bound<'py, PyAny>,
    inserted: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let parts = read(parts)?;
    let py = old.py();
    if let (Ok(old), Ok(inserted)) = (old.cast::<PyDict>(), inserted.cast::<PyDict>()) {
        let mut entries: Vec<_> = old.iter().collect();
        apply(&parts, &mut entries, inserted.iter().collect())?;
        let new = PyDict::new(py);
        entries.iter().try_for_each(|(key, value)| new.set_item(key, value))?;
        return Ok(new.into_any());
    }
    let mut items: Vec<_> = old.cast::<PyList>()?.iter().collect();
    apply(&parts, &mut items, inserted.cast::<PyList>()?.iter().collect())?;
    Ok(PyList::new(py, items)?.into_any())
}
