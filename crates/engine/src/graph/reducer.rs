//! State, its partial updates, and the reducers that merge one into the other (S1.01).

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{Blob, Cause, Dict, Log};

/// A graph's state: a struct with one reducer per field, declared by [`graph_state!`](crate::graph_state).
///
/// `Clone` should be cheap: the runner clones a state while an older one is still in use. [`Log`] and [`Dict`] clone in
/// constant time.
pub trait State:
    std::fmt::Debug + Clone + Default + Serialize + DeserializeOwned + Send + Sync + 'static
{
    /// The update that a node returns and the store contains: every field is optional.
    type Update: Update;

    /// Version of the stored form; raise it when a field is renamed, removed or changes its type.
    const SCHEMA_VERSION: u32;

    /// Merges an update, field by field, through the declared reducers.
    fn apply(&mut self, update: Self::Update);

    /// Rewrites a stored state or update of an older schema version into the present form.
    ///
    /// # Errors
    /// The reason why the data cannot be migrated.
    fn upcast(version: u32, stored: Value) -> Result<Value, Cause>;

    /// Calls a function with each [`Blob`] of the state; the default has no blobs.
    fn each_blob(&self, _see: &mut dyn FnMut(&Blob)) {}
}

/// A partial update of a [`State`].
pub trait Update:
    std::fmt::Debug + Clone + Default + Serialize + DeserializeOwned + Send + Sync + 'static
{
    /// Returns whether no field is set.
    fn is_empty(&self) -> bool;

    /// Calls a function with each [`Blob`] of the update, which removes long texts; the default has no blobs.
    fn each_blob_mut(&mut self, _see: &mut dyn FnMut(&mut Blob)) {}
}

/// Merges an update into a field.
#[diagnostic::on_unimplemented(
    message = "the reducer `{Self}` cannot merge into a field of type `{T}`",
    note = "`append` takes Vec and Log, `merge` takes maps and Dict, `overwrite` takes anything; use `with(path)` for your own function"
)]
pub trait Reducer<T> {
    /// The type of updates of such a field.
    type Update;

    /// Merges `update` into `current`.
    fn reduce(current: &mut T, update: Self::Update);
}

/// Items are added at the end; items are never lost.
#[derive(Debug)]
pub struct Append;

impl<T> Reducer<Vec<T>> for Append {
    type Update = Vec<T>;
    fn reduce(current: &mut Vec<T>, update: Vec<T>) {
        current.extend(update);
    }
}

impl<T: Clone> Reducer<Log<T>> for Append {
    type Update = Vec<T>;
    fn reduce(current: &mut Log<T>, update: Vec<T>) {
        for item in update {
            current.push_back_mut(item);
        }
    }
}

/// Keys of the update replace or extend the keys of the dictionary.
#[derive(Debug)]
pub struct Merge;

macro_rules! merged_by_extending {
    ($([$($generic:tt)*] $kind:ty;)+) => {$(
        impl<$($generic)*> Reducer<$kind> for Merge {
            type Update = $kind;
            fn reduce(current: &mut $kind, update: $kind) {
                current.extend(update);
            }
        }
    )+};
}

merged_by_extending! {
    [K: Ord, V] BTreeMap<K, V>;
    [K: Eq + Hash, V] HashMap<K, V>;
    [] serde_json::Map<String, Value>;
}

impl<V: Clone> Reducer<Dict<V>> for Merge {
    type Update = BTreeMap<String, V>;
    fn reduce(current: &mut Dict<V>, update: BTreeMap<String, V>) {
        for (key, value) in update {
            current.insert_mut(key, value);
        }
    }
}
