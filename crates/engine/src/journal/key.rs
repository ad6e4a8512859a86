//! The key of an effect: its place and its request; and a check that recorded effects have the right key.
//!
//! A key is made of the thread, its creation time, the place and the request, so it is a checksum of all of them. A
//! node that runs again would not find a call under another key, and would repeat it.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use crate::checkpoint::{EffectKind, EffectRow, Error, Result, ThreadDump, ThreadInfo};
use crate::graph::NodeLocation;
use crate::ids::RunId;

/// Computes the permanent key of an effect: BLAKE3 over thread, its creation time, step, task, name, request and
/// occurrence.
///
/// The creation time of the thread is included because a name gives the same ID in every database, and again after the
/// thread was deleted, and receivers remember keys for longer than that. The position within the task is not included,
/// so that a node whose prompts changed between two versions still finds its earlier calls. The order of an object's
/// fields is not included either, because a hash map changes it in every process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EffectKey([u8; 32]);

impl EffectKey {
    /// Derives the key; `made_at` is the time at which the thread was made, in microseconds since the Unix epoch, and
    /// `occurrence` counts equal requests within one task from 0.
    pub fn derive(
        place: &NodeLocation,
        made_at: i64,
        name: &str,
        request: &Value,
        occurrence: u32,
    ) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("perihelion effect key v2");
        hasher.update(&made_at.to_le_bytes());
        Self::finish(hasher, place, name, request, occurrence)
    }

    /// Derives the key under which earlier versions recorded the effect.
    pub(super) fn derive_v1(
        place: &NodeLocation,
        name: &str,
        request: &Value,
        occurrence: u32,
    ) -> Self {
        let hasher = blake3::Hasher::new_derive_key("perihelion effect key v1");
        Self::finish(hasher, place, name, request, occurrence)
    }

    fn finish(
        mut hasher: blake3::Hasher,
        place: &NodeLocation,
        name: &str,
        request: &Value,
        occurrence: u32,
    ) -> Self {
        // Hashed as a whole: a request has hundreds of names and values.
        let mut bytes = Vec::new();
        bytes.extend(place.thread.0.as_bytes());
        bytes.extend(place.step.to_le_bytes());
        bytes.extend(place.task.to_le_bytes());
        text(&mut bytes, name);
        value(&mut bytes, request);
        bytes.extend(occurrence.to_le_bytes());
        Self(*hasher.update(&bytes).finalize().as_bytes())
    }

    /// Returns the bytes under which the effect is stored.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl std::fmt::Display for EffectKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

fn text(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend((text.len() as u64).to_le_bytes());
    bytes.extend(text.as_bytes());
}

/// Writes JSON without the order of its objects' fields.
fn value(bytes: &mut Vec<u8>, json: &Value) {
    match json {
        Value::Array(items) => {
            bytes.push(b'[');
            bytes.extend((items.len() as u64).to_le_bytes());
            items.iter().for_each(|item| value(bytes, item));
        }
        Value::Object(fields) => {
            bytes.push(b'{');
            bytes.extend((fields.len() as u64).to_le_bytes());
            let mut fields: Vec<(&String, &Value)> = fields.iter().collect();
            fields.sort_unstable_by_key(|(name, _)| *name);
            for (name, field) in fields {
                text(bytes, name);
                value(bytes, field);
            }
        }
        Value::String(string) => {
            bytes.push(b'"');
            text(bytes, string);
        }
        plain => {
            bytes.push(b'=');
            text(bytes, &plain.to_string());
        }
    }
}

/// Calls that may be missing, because they were never recorded.
const MISSING: u32 = 1024;

/// Checks the keys of a thread's recorded calls, in a time that grows with their number.
///
/// # Errors
/// [`Error::Corrupt`] naming the step and the call.
pub fn verify_keys(info: &ThreadInfo, rows: &[EffectRow]) -> Result<()> {
    let mut of_task: HashMap<(u64, u32), u32> = HashMap::new();
    for row in rows {
        *of_task.entry((row.step, row.task)).or_default() += 1;
    }
    let mut in_order: HashMap<EffectKey, u32> = HashMap::new();
    let mut others: HashMap<EffectKey, BTreeMap<&[u8], &EffectRow>> = HashMap::new();
    for row in rows {
        // An imported file can name any number.
        let recorded = of_task.get(&(row.step, row.task)).copied().unwrap_or(1);
        if row.number >= recorded.saturating_add(MISSING) {
            return Err(misplaced(info, row));
        }
        let Some(call) = Call::of(info, row)? else { continue };
        let first = call.key(0);
        let next = in_order.entry(first).or_default();
        let is_next = call.keys(*next).any(|key| row.key == key.as_bytes());
        *next += u32::from(is_next);
        if !is_next {
            others.entry(first).or_default().insert(&row.key, row);
        }
    }
    // Of equal calls, some may have been recorded in another order, or not at all.
    let mut tries = rows.len() + MISSING as usize;
    for mut equal in others.into_values() {
        let Some(row) = equal.values().next().copied() else { continue };
        let Some(call) = Call::of(info, row)? else { continue };
        for number in 0.. {
            let Some(row) = equal.values().next().copied() else { break };
            if call.keys(number).filter_map(|key| equal.remove(&key.as_bytes()[..])).count() > 0 {
                continue;
            }
            tries = tries.checked_sub(1).ok_or_else(|| misplaced(info, row))?;
        }
    }
    Ok(())
}

fn misplaced(info: &ThreadInfo, row: &EffectRow) -> Error {
    let reason = format!(
        "its recorded call {} (task {}, call {}) does not stand under the key of its request",
        row.name, row.task, row.number
    );
    Error::corrupt(info.id, row.step, reason)
}

/// Checks the keys of all calls of a whole thread and its subgraphs' threads.
///
/// # Errors
/// As [`verify_keys`].
pub fn verify_dump(dump: &ThreadDump) -> Result<()> {
    verify_keys(&dump.info, &dump.effects)?;
    dump.children.iter().try_for_each(verify_dump)
}

/// The parts of a recorded call from which its key is derived.
struct Call {
    place: NodeLocation,
    made_at: i64,
    name: String,
    request: Value,
}

impl Call {
    /// Reads the call of a row; `None` if the row is not enough to derive its key.
    fn of(info: &ThreadInfo, row: &EffectRow) -> Result<Option<Self>> {
        let (name, request) = match row.kind {
            EffectKind::Model | EffectKind::Tool => (row.name.clone(), row.request.decode()?),
            EffectKind::Clock | EffectKind::Random => (row.kind.as_str().to_owned(), Value::Null),
            EffectKind::Observed => (format!("observed {}", row.name), row.request.decode()?),
            // The part of the key that distinguishes questions is not in the row.
            EffectKind::Interrupt => return Ok(None),
        };
        // Reading a fraction may round it otherwise than it was when the key was made.
        if has_fraction(&request) {
            return Ok(None);
        }
        let place = NodeLocation {
            thread: info.id,
            run: RunId(uuid::Uuid::nil()),
            step: row.step,
            task: row.task,
            node: "".into(),
            attempt: 1,
            namespace: "".into(),
            tenant: "".into(),
            request: None,
        };
        let made_at = info.created_at.timestamp_micros();
        Ok(Some(Self { place, made_at, name, request }))
    }

    fn key(&self, number: u32) -> EffectKey {
        EffectKey::derive(&self.place, self.made_at, &self.name, &self.request, number)
    }

    /// Returns the keys of the call that has this number among equal ones: by this version, and by earlier ones.
    fn keys(&self, number: u32) -> impl Iterator<Item = EffectKey> {
        let before = move || EffectKey::derive_v1(&self.place, &self.name, &self.request, number);
        std::iter::once(self.key(number)).chain(std::iter::once_with(before))
    }
}

fn has_fraction(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.is_f64(),
        Value::Array(items) => items.iter().any(has_fraction),
        Value::Object(fields) => fields.values().any(has_fraction),
        Value::Null | Value::Bool(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::checkpoint::{EffectStatus, Encoded, MemoryStore, NewThread, Threads as _};
    use crate::ids::ThreadId;

    #[test]
    fn the_key_depends_on_the_request_and_its_place_but_not_on_field_order_or_attempt() {
        let place = NodeLocation {
            thread: ThreadId::new(),
            run: RunId::new(),
            step: 3,
            task: 0,
            node: Arc::from("a"),
            attempt: 1,
            namespace: Arc::from(""),
            tenant: Arc::from(""),
            request: None,
        };
        let key = |request| EffectKey::derive(&place, 7, "files.read", &request, 0);
        let plain = key(json!({ "path": "a", "deep": { "x": 1, "y": [1, 2] } }));
        assert_eq!(plain, key(json!({ "deep": { "y": [1, 2], "x": 1 }, "path": "a" })));
        assert_ne!(plain, key(json!({ "path": "a", "deep": { "x": 1, "y": [2, 1] } })));
        assert_ne!(key(json!(["ab", "c"])), key(json!(["a", "bc"])));
        assert_ne!(key(json!("1")), key(json!(1)));
        let other = |place: &NodeLocation| EffectKey::derive(place, 7, "files.read", &json!(1), 0);
        let later = NodeLocation { attempt: 2, run: RunId::new(), ..place.clone() };
        assert_eq!(other(&place), other(&later), "a retry finds the effects of the attempt before");
        let again = EffectKey::derive(&place, 8, "files.read", &json!(1), 0);
        assert_ne!(other(&place), again, "a thread made again under its name calls again");
        assert_ne!(other(&place), other(&NodeLocation { step: 4, ..place.clone() }));
        assert_ne!(other(&place), other(&NodeLocation { task: 1, ..place.clone() }));
    }

    async fn info() -> ThreadInfo {
        let new = NewThread {
            id: ThreadId::new(),
            graph: "story".to_owned(),
            title: None,
            root: None,
            namespace: String::new(),
            tenant: "default".to_owned(),
        };
        MemoryStore::new().create(new).await.unwrap()
    }

    fn place(info: &ThreadInfo) -> NodeLocation {
        NodeLocation {
            thread: info.id,
            run: RunId::new(),
            step: 1,
            task: 0,
            node: Arc::from("a"),
            attempt: 1,
            namespace: Arc::from(""),
            tenant: Arc::from(""),
            request: None,
        }
    }

    fn row(info: &ThreadInfo, kind: EffectKind, key: EffectKey, number: u32) -> EffectRow {
        EffectRow {
            step: 1,
            task: 0,
            key: key.as_bytes().to_vec(),
            number,
            kind,
            status: EffectStatus::Started,
            name: "files.read".to_owned(),
            request: Encoded::json(&1, usize::MAX).unwrap(),
            outcome: None,
            attempt: 1,
            started_at: info.created_at,
            ended_at: None,
        }
    }

    /// S3.04: a file can name any number, and its check must end soon.
    #[tokio::test]
    async fn a_number_far_beyond_the_calls_of_its_task_is_refused_at_once() {
        let info = info().await;
        let place = place(&info);
        let key = |occurrence| {
            let made_at = info.created_at.timestamp_micros();
            EffectKey::derive(&place, made_at, "files.read", &json!(1), occurrence)
        };
        let row = |key: EffectKey, number| row(&info, EffectKind::Tool, key, number);
        let check = |row| verify_keys(&info, &[row]).is_ok();
        assert!(check(row(key(0), 0)) && check(row(key(1000), 1000)), "others were not recorded");
        for number in [u32::MAX, u32::MAX - 1] {
            assert!(!check(row(key(5000), number)) && !check(row(key(0), number)), "{number}");
        }
        let next = [row(key(0), u32::MAX)].into_iter().collect::<crate::journal::Recorded>();
        assert_eq!(next.next_number(0), u32::MAX);
    }

    /// X1: the check of many equal calls takes a time that grows with their number, not with its square.
    #[tokio::test]
    async fn many_equal_draws_of_a_task_are_checked_soon() {
        let info = info().await;
        let place = place(&info);
        let made_at = info.created_at.timestamp_micros();
        let key = |number| EffectKey::derive(&place, made_at, "clock", &Value::Null, number);
        let draw = |number| row(&info, EffectKind::Clock, key(number), number);
        let mut rows: Vec<_> = (0..50_000).map(draw).collect();
        verify_keys(&info, &rows).unwrap();
        rows.reverse();
        verify_keys(&info, &rows).unwrap();
        rows[1].key = rows[0].key.iter().map(|byte| !byte).collect();
        assert!(verify_keys(&info, &rows).is_err());
    }

    /// S3.04: a file can name any place among equal calls, and its check must end soon.
    #[tokio::test]
    async fn different_calls_that_all_miss_equal_ones_are_refused_soon() {
        let info = info().await;
        let place = place(&info);
        let made_at = info.created_at.timestamp_micros();
        let late = |number: u32| {
            let key = EffectKey::derive(&place, made_at, "files.read", &json!(number), number);
            let request = Encoded::json(&number, usize::MAX).unwrap();
            EffectRow { request, ..row(&info, EffectKind::Tool, key, number) }
        };
        let rows: Vec<_> = (0..50_000).map(late).collect();
        assert!(verify_keys(&info, &rows).is_err());
        verify_keys(&info, &rows[..40]).unwrap();
    }
}
