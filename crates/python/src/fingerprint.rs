//! A cheap fingerprint of an object's content, which shows a change in place.

use std::hash::Hasher;

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use xxhash_rust::xxh3::Xxh3Default;

/// Containers are read this deep; deeper ones count by identity.
const DEEPEST: usize = 4;

/// Of longer containers the first items and the length count.
const ITEMS: usize = 64;

/// Returns the fingerprint of an object: equal for an unchanged object, nearly always another after a change in place.
pub fn of(object: &Bound<'_, PyAny>) -> u64 {
    let mut hasher = Xxh3Default::new();
    add(&mut hasher, object, 0);
    hasher.finish()
}

fn add(hasher: &mut Xxh3Default, object: &Bound<'_, PyAny>, depth: usize) {
    let is_plain = object.is_exact_instance_of::<PyString>()
        || object.is_none()
        || object.is_exact_instance_of::<PyBool>()
        || object.is_exact_instance_of::<PyInt>()
        || object.is_exact_instance_of::<PyBytes>();
    hasher.write_usize(object.get_type_ptr() as usize);
    // Python has one hash for -1 and -2.
    if let Ok(float) = object.cast_exact::<PyFloat>() {
        hasher.write_u64(float.value().to_bits());
    } else if is_plain && let Ok(number) = object.extract::<i64>() {
        hasher.write_i64(number);
    } else if is_plain {
        // A string caches its hash, so this reads it once only.
        hasher.write_isize(object.hash().unwrap_or_default());
    } else if depth == DEEPEST {
        hasher.write_usize(object.as_ptr() as usize);
    } else if let Ok(dict) = object.cast::<PyDict>() {
        add_dict(hasher, dict, depth);
    } else if let Ok(list) = object.cast::<PyList>() {
        hasher.write_usize(list.len());
        list.iter().take(ITEMS).for_each(|item| add(hasher, &item, depth + 1));
    } else if let Ok(tuple) = object.cast::<PyTuple>() {
        hasher.write_usize(tuple.len());
        tuple.iter().take(ITEMS).for_each(|item| add(hasher, &item, depth + 1));
    } else if let Some(attributes) = attributes(object) {
        add_dict(hasher, &attributes, depth);
    } else {
        hasher.write_usize(object.as_ptr() as usize);
    }
}

fn add_dict(hasher: &mut Xxh3Default, dict: &Bound<'_, PyDict>, depth: usize) {
    hasher.write_usize(dict.len());
    for (key, value) in dict.iter().take(ITEMS) {
        add(hasher, &key, depth + 1);
        add(hasher, &value, depth + 1);
    }
}

fn attributes<'py>(object: &Bound<'py, PyAny>) -> Option<Bound<'py, PyDict>> {
    let found = object.getattr(pyo3::intern!(object.py(), "__dict__")).ok()?;
    found.cast_into::<PyDict>().ok()
}
