//! The elements of a stored list or dict, held so that the next version is stored by its changes.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use xxhash_rust::xxh3::xxh3_128;

use crate::assemble::{self, Part};
use crate::error::Error;
use crate::fingerprint;
use crate::msgpack;

/// This number of the last elements are checked for changes in place at each step, and the same number of the rest in
/// turn.
const TAIL: usize = 64;
const TURN: usize = 32;

/// An element: an item of a list, or the key and value of a dict. The references keep addresses from being reused.
struct Element {
    key: Option<Py<PyAny>>,
    value: Py<PyAny>,
    /// `None` if its content cannot be read.
    fingerprint: Option<u64>,
    /// The hash of its MessagePack, if that can be read.
    hash: Option<u128>,
    /// Bytes of its encoding, on average if they cannot be read.
    size: usize,
}

impl Element {
    fn new((key, value): &Pair<'_>, (hash, size): (Option<u128>, usize)) -> Self {
        let key = key.as_ref().map(|key| key.clone().unbind());
        Self { key, value: value.clone().unbind(), fingerprint: fingerprint::of(value), hash, size }
    }

    fn identity(&self) -> (usize, usize) {
        (self.key.as_ref().map_or(0, |key| key.as_ptr() as usize), self.value.as_ptr() as usize)
    }
}

/// A key, in a dict only, and a value.
type Pair<'py> = (Option<Bound<'py, PyAny>>, Bound<'py, PyAny>);

/// A change: its parts, the inserted elements, and the numbers of reused and inserted elements.
type Change<'py> = (Bound<'py, PyBytes>, Bound<'py, PyAny>, usize, usize);

/// The elements of one stored version of a list or dict.
#[pyclass(module = "perihelion._native")]
pub struct Elements {
    is_dict: bool,
    all: Vec<Arc<Element>>,
    /// The addresses of the items of a list, side by side: comparing them is most of the work on a long one.
    addresses: Vec<usize>,
    turn: usize,
    size: usize,
}

/// The keys (of a dict) and values of a Python sequence.
fn pairs<'py>(value: &Bound<'py, PyAny>) -> PyResult<Vec<Pair<'py>>> {
    if let Ok(list) = value.cast::<PyList>() {
        return Ok(list.iter().map(|item| (None, item)).collect());
    }
    let dict =
        value.cast::<PyDict>().map_err(|_| PyTypeError::new_err("neither a list nor a dict"))?;
    Ok(dict.iter().map(|(key, value)| (Some(key), value)).collect())
}

/// Makes the elements of a value from its encoding: MessagePack if `is_plain`, else bytes that only their serialiser reads.
fn elements(
    value: &Bound<'_, PyAny>,
    encoded: &[u8],
    is_plain: bool,
) -> PyResult<Vec<Arc<Element>>> {
    let pairs = pairs(value)?;
    let known: Vec<(Option<u128>, usize)> = if is_plain {
        let bounds = msgpack::elements(encoded)?.1;
        bounds
            .iter()
            .map(|(start, end)| (Some(xxh3_128(&encoded[*start..*end])), end - start))
            .collect()
    } else {
        vec![(None, encoded.len() / pairs.len().max(1)); pairs.len()]
    };
    if known.len() != pairs.len() {
        return Err(Error::Damaged("an encoding has other elements than its value").into());
    }
    Ok(pairs.iter().zip(known).map(|(pair, known)| Arc::new(Element::new(pair, known))).collect())
}

fn size(elements: &[Arc<Element>]) -> usize {
    elements.iter().map(|element| element.size).sum()
}

/// Finds what to keep of old elements, known by a mark each; `None` marks an element that is never kept.
fn difference<M: Copy + Eq + std::hash::Hash>(old: &[Option<M>], new: &[M]) -> Vec<Part> {
    let is_same = |(old, new): &(&Option<M>, &M)| **old == Some(**new);
    let start = old.iter().zip(new).take_while(is_same).count();
    let rest = (&old[start..], &new[start..]);
    let end = rest.0.iter().rev().zip(rest.1.iter().rev()).take_while(is_same).count();
    let middle = &old[start..old.len() - end];
    let mut places: HashMap<M, usize> = HashMap::new();
    if start + end < new.len() {
        for (index, mark) in middle.iter().enumerate() {
            if let Some(mark) = mark
                && let Entry::Vacant(entry) = places.entry(*mark)
            {
                entry.insert(start + index);
            }
        }
    }
    let mut parts = Vec::new();
    push_kept(&mut parts, 0, start);
    for mark in &new[start..new.len() - end] {
        match places.get(mark) {
            Some(place) => push_kept(&mut parts, *place, 1),
            None => match parts.last_mut() {
                Some(Part::Inserted { length }) => *length += 1,
                _ => parts.push(Part::Inserted { length: 1 }),
            },
        }
    }
    push_kept(&mut parts, old.len() - end, end);
    parts
}

fn push_kept(parts: &mut Vec<Part>, start: usize, length: usize) {
    match parts.last_mut() {
        Some(Part::Kept { start: first, length: kept }) if *first + *kept == start => {
            *kept += length
        }
        _ if length > 0 => parts.push(Part::Kept { start, length }),
        _ => {}
    }
}

/// Returns the places of inserted elements in the new sequence.
fn inserted(parts: &[Part]) -> Vec<usize> {
    let mut at = 0;
    let mut places = Vec::new();
    for part in parts {
        match *part {
            Part::Kept { length, .. } => at += length,
            Part::Inserted { length } => {
                places.extend(at..at + length);
                at += length;
            }
        }
    }
    places
}

/// Returns the address of an item, or 0 beyond the end of the list.
///
/// A reference to the item would touch its memory, which costs more than the comparison.
#[expect(unsafe_code, reason = "pyo3 has no way to an item without taking a reference to it")]
fn address(list: &Bound<'_, PyList>, index: usize) -> usize {
    if index >= list.len() {
        return 0;
    }
    // SAFETY: the list is alive and attached to the interpreter, and the index is in it; the pointer is not followed.
    unsafe { ffi::PyList_GetItem(list.as_ptr(), index as ffi::Py_ssize_t) as usize }
}

fn addresses(elements: &[Arc<Element>]) -> impl Iterator<Item = usize> + '_ {
    elements.iter().map(|element| element.identity().1)
}

impl Elements {
    /// Returns the positions of elements that were changed in place, of those that are checked now; `None` if that is
    /// seen in their encoding alone.
    fn changed(&mut self, py: Python<'_>) -> Option<Vec<usize>> {
        let tail = self.all.len().saturating_sub(TAIL);
        let turn = if self.turn < tail { self.turn } else { 0 };
        let end = (turn + TURN).min(tail);
        self.turn = end;
        let mut changed = Vec::new();
        for index in (turn..end).chain(tail..self.all.len()) {
            let element = &self.all[index];
            let now = fingerprint::of(element.value.bind(py));
            if now.is_none() && element.hash.is_some() {
                return None;
            }
            if now.is_none() || now != element.fingerprint {
                changed.push(index);
            }
        }
        Some(changed)
    }

    /// Returns the items that were appended to a list whose other items are the same; `None` after any other change.
    fn appended<'py>(&self, value: &Bound<'py, PyAny>) -> Option<Bound<'py, PyList>> {
        let count = self.all.len();
        let list = value.cast::<PyList>().ok().filter(|list| list.len() >= count)?;
        let is_same =
            self.addresses.iter().enumerate().all(|(index, known)| address(list, index) == *known);
        is_same.then(|| list.get_slice(count, list.len()))
    }

    /// Returns the parts of a new value and the places of its inserted elements, wherever they are.
    fn parts(&self, new: &[Pair<'_>], changed: &[usize]) -> (Vec<Part>, Vec<usize>) {
        // An object can be several elements, all of which changed with it.
        let gone: HashSet<_> = changed.iter().map(|index| self.all[*index].identity().1).collect();
        let mark = |element: &Arc<Element>| {
            Some(element.identity()).filter(|(_, value)| !gone.contains(value))
        };
        let old: Vec<_> = self.all.iter().map(mark).collect();
        let address = |object: &Bound<'_, PyAny>| object.as_ptr() as usize;
        let marks: Vec<_> = new
            .iter()
            .map(|(key, value)| (key.as_ref().map_or(0, address), address(value)))
            .collect();
        let parts = difference(&old, &marks);
        let places = inserted(&parts);
        (parts, places)
    }
}

#[pymethods]
impl Elements {
    /// Holds the elements of a value with its encoding.
    #[new]
    fn new(value: &Bound<'_, PyAny>, encoded: &[u8], is_plain: bool) -> PyResult<Self> {
        let all = elements(value, encoded, is_plain)?;
        let is_dict = value.is_instance_of::<PyDict>();
        let addresses = addresses(&all).collect();
        Ok(Self { is_dict, size: size(&all), all, addresses, turn: 0 })
    }

    /// Bytes of the encoding of all elements.
    #[getter]
    fn size(&self) -> usize {
        self.size
    }

    fn __len__(&self) -> usize {
        self.all.len()
    }

    /// The change to a new value, by identity; `None` if it is of another type, or has elements to be compared by bytes.
    fn diff<'py>(&mut self, value: &Bound<'py, PyAny>) -> PyResult<Option<Change<'py>>> {
        let py = value.py();
        if value.is_instance_of::<PyDict>() != self.is_dict {
            return Ok(None);
        }
        let Some(changed) = self.changed(py) else { return Ok(None) };
        if changed.is_empty()
            && let Some(items) = self.appended(value)
        {
            let mut parts = Vec::new();
            push_kept(&mut parts, 0, self.all.len());
            let count = items.len();
            parts.extend((count > 0).then_some(Part::Inserted { length: count }));
            let written = PyBytes::new(py, &assemble::write(&parts));
            return Ok(Some((written, items.into_any(), self.all.len(), count)));
        }
        let new = pairs(value)?;
        let (parts, places) = self.parts(&new, &changed);
        let chosen = places.iter().map(|place| &new[*place]);
        let added = if self.is_dict {
            let dict = PyDict::new(py);
            chosen.into_iter().try_for_each(|(key, value)| dict.set_item(key, value))?;
            dict.into_any()
        } else {
            PyList::new(py, chosen.map(|(_, value)| value))?.into_any()
        };
        let written = PyBytes::new(py, &assemble::write(&parts));
        Ok(Some((written, added, new.len() - places.len(), places.len())))
    }

    /// The change to a new value, by the bytes of its MessagePack; inserted elements are MessagePack, too.
    fn diff_encoded<'py>(&self, py: Python<'py>, encoded: &[u8]) -> PyResult<Option<Change<'py>>> {
        let (kind, bounds) = msgpack::elements(encoded)?;
        if (kind == msgpack::Kind::Map) != self.is_dict {
            return Ok(None);
        }
        let marks: Vec<u128> =
            bounds.iter().map(|(start, end)| xxh3_128(&encoded[*start..*end])).collect();
        let old: Vec<_> = self.all.iter().map(|element| element.hash).collect();
        let parts = difference(&old, &marks);
        let places = inserted(&parts);
        let mut added = Vec::new();
        msgpack::write_head(&mut added, kind, places.len());
        places.iter().for_each(|place| {
            added.extend_from_slice(&encoded[bounds[*place].0..bounds[*place].1])
        });
        let written = PyBytes::new(py, &assemble::write(&parts));
        let added = PyBytes::new(py, &added).into_any();
        Ok(Some((written, added, bounds.len() - places.len(), places.len())))
    }

    /// Stores the elements after a change: reused ones with their known properties, and those that `diff` returned as
    /// inserted.
    fn advance(
        &mut self,
        parts: &[u8],
        added: &Bound<'_, PyAny>,
        encoded: &[u8],
        is_plain: bool,
    ) -> PyResult<()> {
        let added = elements(added, encoded, is_plain)?;
        let parts = assemble::read(parts)?;
        let grown = self.size + size(&added);
        let before = self.all.len();
        let is_appended =
            matches!(parts.first(), Some(Part::Kept { start: 0, length }) if *length == before);
        assemble::apply(&parts, &mut self.all, added)?;
        if is_appended && parts.len() < 3 {
            self.size = grown;
        } else {
            self.size = size(&self.all);
            self.addresses.clear();
        }
        self.addresses.extend(addresses(&self.all[self.addresses.len()..]));
        Ok(())
    }
}
