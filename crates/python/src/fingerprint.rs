//! A cheap fingerprint of an object's content, which shows a change in place.

use std::hash::Hasher;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyBool, PyBytes, PyDict, PyFloat, PyFrozenSet, PyInt, PyList, PySet, PyString, PyTuple, PyType,
};
use xxhash_rust::xxh3::Xxh3Default;

/// Containers are read this deep; deeper ones count by identity.
const DEEPEST: usize = 4;

/// Of longer containers the first items and the length count.
const ITEMS: usize = 64;

/// Returns the fingerprint of an object: equal for an unchanged object, nearly always another after a change in place.
///
/// `None` if the content cannot be read: the object may have changed.
pub fn of(object: &Bound<'_, PyAny>) -> Option<u64> {
    let mut hasher = Xxh3Default::new();
    add(&mut hasher, object, 0)?;
    Some(hasher.finish())
}

fn add(hasher: &mut Xxh3Default, object: &Bound<'_, PyAny>, depth: usize) -> Option<()> {
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
    } else if depth == DEEPEST || object.is_instance_of::<PyType>() {
        hasher.write_usize(object.as_ptr() as usize);
    } else if let Ok(dict) = object.cast::<PyDict>() {
        add_dict(hasher, dict, depth)?;
    } else if is_sequence(object) {
        hasher.write_usize(object.len().ok()?);
        for item in object.try_iter().ok()?.take(ITEMS) {
            add(hasher, &item.ok()?, depth + 1)?;
        }
    } else {
        let has_fields = add_fields(hasher, object, depth)?;
        let hash = hash_of_content(object);
        hasher.write_isize(hash.unwrap_or_default());
        return (has_fields || hash.is_some()).then_some(());
    }
    Some(())
}

fn add_dict(hasher: &mut Xxh3Default, dict: &Bound<'_, PyDict>, depth: usize) -> Option<()> {
    hasher.write_usize(dict.len());
    for (key, value) in dict.iter().take(ITEMS) {
        add(hasher, &key, depth + 1)?;
        add(hasher, &value, depth + 1)?;
    }
    Some(())
}

fn is_sequence(object: &Bound<'_, PyAny>) -> bool {
    static DEQUE: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let deque = DEQUE.import(object.py(), "collections", "deque");
    object.is_instance_of::<PyList>()
        || object.is_instance_of::<PyTuple>()
        || object.is_instance_of::<PySet>()
        || object.is_instance_of::<PyFrozenSet>()
        || deque.is_ok_and(|deque| object.is_instance(deque).unwrap_or_default())
}

/// Adds the attributes of an object, and returns whether it can have any.
fn add_fields(hasher: &mut Xxh3Default, object: &Bound<'_, PyAny>, depth: usize) -> Option<bool> {
    static SLOTS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = object.py();
    let attributes = object.getattr(pyo3::intern!(py, "__dict__")).ok();
    let attributes = attributes.and_then(|found| found.cast_into::<PyDict>().ok());
    if let Some(attributes) = &attributes {
        add_dict(hasher, attributes, depth)?;
    }
    let slots = SLOTS.import(py, "copyreg", "_slotnames").ok()?;
    let slots = slots.call1((object.get_type(),)).ok()?.cast_into::<PyList>().ok()?;
    for name in &slots {
        // What else pydantic notes of a model is not stored.
        let is_noted = name
            .extract::<&str>()
            .is_ok_and(|name| name.starts_with("__pydantic_") && name != "__pydantic_extra__");
        if !is_noted && let Ok(value) = object.getattr(name.cast::<PyString>().ok()?) {
            add(hasher, &value, depth + 1)?;
        }
    }
    Some(attributes.is_some() || !slots.is_empty())
}

/// Returns the hash of an object that has one by its content, not by its identity: it does not change.
fn hash_of_content(object: &Bound<'_, PyAny>) -> Option<isize> {
    static IDENTITY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = object.py();
    let name = pyo3::intern!(py, "__hash__");
    let identity = IDENTITY
        .get_or_try_init(py, || Ok::<_, PyErr>(py.get_type::<PyAny>().getattr(name)?.unbind()));
    let own = object.get_type().getattr(name).ok()?;
    if own.is_none() || own.is(identity.ok()?) {
        return None;
    }
    object.hash().ok()
}
