//! Counts how many steps it takes to check a value against a schema, so that no check is begun that does not end.
//!
//! References make a short schema as large as one likes: forty definitions, each of which names the next one twice, are
//! a million million. The maximum steps of a validator are counted, each pair of schema and value once; no clock is
//! involved, so a replay has the same result.

use std::collections::HashMap;

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

use super::text::shorten;

/// Steps of one check, unless the value is so large that it is fewer for each of its parts than [`MOST_OF_PART`].
const MOST: u64 = 1_000_000;
const MOST_OF_PART: u64 = 16;
/// Steps of a schema at one place of a value, whatever the value is.
const MOST_IN_PLACE: u64 = 10_000;
/// Schemas within schemas on the way to one place of a value.
const DEEPEST: usize = 256;
/// The cost of a pattern with backtracking, in addition to any other.
const BACKTRACKING: u64 = 10_000;
/// Characters that a pattern reads in one step.
const CHARACTERS: usize = 16;

/// Keywords whose schemas are about the same value.
const IN_PLACE: [&str; 9] =
    ["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"];
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];
const OF_MEMBERS: [&str; 4] =
    ["additionalProperties", "unevaluatedProperties", "properties", "patternProperties"];
const OF_ITEMS: [&str; 5] =
    ["items", "prefixItems", "additionalItems", "contains", "unevaluatedItems"];
const STORES: [&str; 2] = ["$defs", "definitions"];

/// Why the check of a value would not end, or takes too long.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unbounded {
    #[error("a schema in it has its own $id: {}", shorten(.0))]
    OwnId(String),
    #[error("its schemas are nested deeper than {DEEPEST} levels")]
    Deep,
    #[error("it refers to itself without end")]
    Endless,
    #[error("to check it takes more steps than: {0}")]
    Steps(u64),
    #[error("it refers to a part that it does not have: {}", shorten(.0))]
    Missing(String),
}

/// Checks that a schema can be used: its references exist in it and are not endless.
pub(crate) fn bounded(schema: &Value) -> Result<(), Unbounded> {
    if let Some(id) = own_id(schema, true) {
        return Err(Unbounded::OwnId(id.to_owned()));
    }
    let mut count = Count::new(schema, MOST_IN_PLACE);
    let mut open = vec![(schema, 0)];
    while let Some((schema, depth)) = open.pop() {
        if depth > DEEPEST {
            return Err(Unbounded::Deep);
        }
        count.sum(schema, &Value::Null, 0)?;
        let keywords = schema.as_object().into_iter().flatten();
        let of = |keyword: &str| {
            let all = [&IN_PLACE[..], &OF_MEMBERS, &OF_ITEMS, &STORES, &["propertyNames"]];
            all.iter().any(|some| some.contains(&keyword))
        };
        let inner = keywords.filter(|(keyword, _)| of(keyword));
        open.extend(inner.flat_map(|(key, value)| schemas(key, value)).map(|one| (one, depth + 1)));
    }
    Ok(())
}

/// Returns how many steps the check of a value takes at most.
pub(super) fn steps(schema: &Value, value: &Value) -> Result<u64, Unbounded> {
    let large = size(value).saturating_mul(MOST_OF_PART);
    Ok(Count::new(schema, MOST.max(large)).sum(schema, value, 0)?.steps)
}

fn size(value: &Value) -> u64 {
    parts(value).fold(1, |sum, part| sum + size(part))
}

#[derive(Clone, Copy, Default)]
struct Sum {
    steps: u64,
    /// Schemas within schemas.
    height: usize,
}

impl Sum {
    fn add(&mut self, part: Self) {
        self.steps = self.steps.saturating_add(part.steps);
        self.height = self.height.max(part.height);
    }
}

struct Count<'a> {
    root: &'a Value,
    most: u64,
    /// Pairs of schema and value by their addresses; `None` while one is being counted.
    known: HashMap<(*const Value, *const Value), Option<Sum>>,
}

impl<'a> Count<'a> {
    fn new(root: &'a Value, most: u64) -> Self {
        Self { root, most, known: HashMap::new() }
    }

    fn sum(&mut self, schema: &'a Value, value: &Value, depth: usize) -> Result<Sum, Unbounded> {
        let Value::Object(keywords) = schema else { return Ok(Sum { steps: 1, height: 1 }) };
        let is_leaf = !value.is_object() && !value.is_array();
        if is_leaf && !keywords.keys().any(|keyword| is_in_place(keyword)) {
            return Ok(Sum { steps: 1 + text_steps(keywords, value), height: 1 });
        }
        // What is not there but could be, such as a name to be checked, is the same wherever it is not.
        let value = if value.is_null() { &Value::Null } else { value };
        let pair = (std::ptr::from_ref(schema), std::ptr::from_ref(value));
        match self.known.get(&pair) {
            Some(Some(sum)) if depth + sum.height > DEEPEST => return Err(Unbounded::Deep),
            Some(Some(sum)) => return Ok(*sum),
            Some(None) => return Err(Unbounded::Endless),
            None if depth > DEEPEST => return Err(Unbounded::Deep),
            None if self.known.len() as u64 > self.most => return Err(self.too_many()),
            None => {}
        }
        self.known.insert(pair, None);
        let mut sum = self.in_place(keywords, value, depth + 1)?;
        if keywords.keys().any(|keyword| keyword.starts_with("unevaluated")) {
            // They look once more at what the schemas beside them have looked at.
            sum.steps = sum.steps.saturating_mul(2);
        }
        sum.add(self.inner(keywords, value, depth + 1)?);
        sum = Sum { steps: sum.steps.saturating_add(1), height: sum.height + 1 };
        if sum.steps > self.most {
            return Err(self.too_many());
        }
        self.known.insert(pair, Some(sum));
        Ok(sum)
    }

    fn too_many(&self) -> Unbounded {
        Unbounded::Steps(self.most)
    }

    fn in_place(
        &mut self,
        keywords: &'a Map<String, Value>,
        value: &Value,
        depth: usize,
    ) -> Result<Sum, Unbounded> {
        let mut sum = Sum { steps: text_steps(keywords, value), height: 0 };
        for (keyword, it) in keywords.iter().filter(|(keyword, _)| is_in_place(keyword)) {
            let schemas = match it {
                Value::String(target) => vec![find(self.root, target)?],
                it => schemas(keyword, it),
            };
            for schema in schemas {
                sum.add(self.sum(schema, value, depth)?);
            }
        }
        Ok(sum)
    }

    fn inner(
        &mut self,
        keywords: &'a Map<String, Value>,
        value: &Value,
        depth: usize,
    ) -> Result<Sum, Unbounded> {
        let mut sum = Sum::default();
        let (places, names) = match value {
            Value::Object(members) => (&OF_MEMBERS[..], members.len() as u64),
            Value::Array(_) => (&OF_ITEMS[..], 0),
            _ => return Ok(sum),
        };
        if let Some(schema) = keywords.get("propertyNames").filter(|_| names > 0) {
            let each = self.sum(schema, &Value::Null, depth)?;
            sum.add(Sum { steps: each.steps.saturating_mul(names), ..each });
        }
        for (keyword, it) in keywords.iter().filter(|(it, _)| places.contains(&it.as_str())) {
            match (keyword.as_str(), it, value) {
                ("properties", Value::Object(named), Value::Object(members)) => {
                    for (name, schema) in named {
                        if let Some(member) = members.get(name) {
                            sum.add(self.sum(schema, member, depth)?);
                        }
                    }
                }
                ("items" | "prefixItems", Value::Array(listed), Value::Array(items)) => {
                    for (schema, item) in listed.iter().zip(items) {
                        sum.add(self.sum(schema, item, depth)?);
                    }
                }
                (keyword, it, value) => {
                    for schema in schemas(keyword, it) {
                        for part in parts(value) {
                            sum.add(self.sum(schema, part, depth)?);
                        }
                    }
                }
            }
            if sum.steps > self.most {
                return Err(self.too_many());
            }
        }
        Ok(sum)
    }
}

fn is_in_place(keyword: &str) -> bool {
    IN_PLACE.contains(&keyword) || REFERENCES.contains(&keyword)
}

/// Counts what patterns do with a text, or with the names of an object.
fn text_steps(keywords: &Map<String, Value>, value: &Value) -> u64 {
    let cost = |pattern: &str, text: &str| {
        // Look-around and back references are not found in one pass.
        let goes_back = ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|sign| pattern.contains(sign))
            || pattern.as_bytes().windows(2).any(|two| matches!(two, [b'\\', b'1'..=b'9' | b'k']));
        let own = if goes_back { BACKTRACKING } else { 0 };
        own.saturating_add((text.len() / CHARACTERS) as u64)
    };
    let pattern = keywords.get("pattern").and_then(Value::as_str);
    let of_names = keywords.get("patternProperties").and_then(Value::as_object);
    match value {
        Value::String(text) => pattern.map_or(0, |pattern| cost(pattern, text)),
        Value::Object(members) => {
            let pairs = of_names.into_iter().flat_map(Map::keys);
            let costs = pairs.map(|pattern| members.keys().map(|name| cost(pattern, name)).sum());
            costs.fold(0, u64::saturating_add)
        }
        _ => 0,
    }
}

fn parts(value: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    match value {
        Value::Object(members) => Box::new(members.values()),
        Value::Array(items) => Box::new(items.iter()),
        _ => Box::new(std::iter::empty()),
    }
}

/// Returns the schemas under a keyword: one, a list, or some by name.
fn schemas<'a>(keyword: &str, value: &'a Value) -> Vec<&'a Value> {
    let by_name = ["properties", "patternProperties", "dependentSchemas", "dependencies"];
    match value {
        Value::Array(listed) => listed.iter().collect(),
        Value::Object(named) if by_name.contains(&keyword) || STORES.contains(&keyword) => {
            named.values().collect()
        }
        one => vec![one],
    }
}

/// Resolves a reference within the schema itself; fetches no documents.
fn find<'a>(root: &'a Value, reference: &str) -> Result<&'a Value, Unbounded> {
    let missing = || Unbounded::Missing(reference.to_owned());
    let (document, place) = reference.split_once('#').unwrap_or((reference, ""));
    let own = root.get("$id").and_then(Value::as_str).unwrap_or_default();
    if !document.is_empty() && document != own.trim_end_matches('#') {
        return Err(missing());
    }
    let Ok(place) = percent_decode_str(place).decode_utf8() else { return Err(missing()) };
    if place.is_empty() || place.starts_with('/') {
        return root.pointer(&place).ok_or_else(missing);
    }
    let mut named = Vec::new();
    anchors(root, &place, &mut named);
    match named.as_slice() {
        [one] => Ok(*one),
        _ => Err(missing()),
    }
}

/// Collects the schemas of a name, in whatever draft's way it is given.
fn anchors<'a>(value: &'a Value, name: &str, found: &mut Vec<&'a Value>) {
    let says = |keyword: &str| value.get(keyword).and_then(Value::as_str);
    let is_named = says("$anchor") == Some(name)
        || says("$dynamicAnchor") == Some(name)
        || says("$id").and_then(|id| id.strip_prefix('#')) == Some(name);
    if is_named {
        found.push(value);
    }
    parts(value).for_each(|part| anchors(part, name, found));
}

/// Finds an inner schema that starts a separate document, in which references would have another meaning.
fn own_id(value: &Value, is_root: bool) -> Option<&str> {
    let id = value.get("$id").and_then(Value::as_str).filter(|id| !is_root && !id.starts_with('#'));
    id.or_else(|| parts(value).find_map(|part| own_id(part, false)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Definitions of which each names the next one twice.
    fn doubling(levels: usize, twice: impl Fn(Value) -> Value) -> Value {
        let mut all = Map::new();
        for level in 0..levels {
            let next = json!({ "$ref": format!("#/$defs/a{}", level + 1) });
            all.insert(format!("a{level}"), twice(next));
        }
        all.insert(format!("a{levels}"), json!({ "type": "object" }));
        json!({ "properties": { "x": { "$ref": "#/$defs/a0" } }, "$defs": all })
    }

    #[test]
    fn a_schema_of_unbounded_cost_is_refused_before_there_is_a_value() {
        let wide = doubling(40, |next| json!({ "allOf": [next.clone(), next] }));
        assert_eq!(bounded(&wide), Err(Unbounded::Steps(10_000)));
        let other = doubling(40, |next| json!({ "if": next.clone(), "then": next }));
        assert!(bounded(&other).is_err());
        let long = doubling(400, |next| next);
        assert_eq!(bounded(&long), Err(Unbounded::Deep));
        let circle = json!({ "$defs": { "a": { "anyOf": [{ "$ref": "#/$defs/a" }] } } });
        assert_eq!(bounded(&circle), Err(Unbounded::Endless));
        for elsewhere in ["https://example.com/x", "#/$defs/none", "#none", "x.json#/a"] {
            let missing = Unbounded::Missing(elsewhere.to_owned());
            assert_eq!(bounded(&json!({ "$ref": elsewhere })), Err(missing));
        }
        let inner = json!({ "$defs": { "a": { "$id": "https://b", "$ref": "#/c" } } });
        assert_eq!(bounded(&inner), Err(Unbounded::OwnId("https://b".to_owned())));
    }

    #[test]
    fn ordinary_schemas_are_accepted() {
        // Large over many places, small at each.
        let tree = doubling(30, |next| json!({ "properties": { "l": next.clone(), "r": next } }));
        bounded(&tree).unwrap();
        assert!(steps(&tree, &json!({ "x": { "l": { "r": {} } } })).unwrap() < 20);
        let node = json!({
            "$id": "https://example.com/tree#", "type": "object",
            "properties": {
                "children": { "items": { "$ref": "#" } }, "$ref": { "type": "string" },
                "one": { "$ref": "#/definitions/A%3Cb%3E" }, "two": { "$ref": "#there" },
                "three": { "$ref": "https://example.com/tree#/definitions/A<b>" },
            },
            "definitions": { "A<b>": { "type": "string" }, "c": { "$anchor": "there" } },
        });
        bounded(&node).unwrap();
        let value = json!({ "children": [{ "children": [] }, { "one": "x", "two": 1 }] });
        assert!(steps(&node, &value).unwrap() < 20);
    }

    #[test]
    fn a_schema_whose_cost_grows_with_the_depth_of_a_value_is_refused_with_the_value() {
        let twice = json!({ "properties": { "x": { "$ref": "#" } } });
        let schema = json!({ "allOf": [twice, twice], "type": "object" });
        bounded(&schema).unwrap();
        let deep = |levels| (0..levels).fold(json!({}), |inner, _| json!({ "x": inner }));
        assert!(steps(&schema, &deep(5)).is_ok());
        assert!(matches!(steps(&schema, &deep(40)), Err(Unbounded::Steps(_))));
        let pattern = json!({ "items": { "pattern": "^(?=((a+)+)+$)b" } });
        assert!(steps(&pattern, &json!(vec!["aaaa"; 10])).is_ok());
        assert!(steps(&pattern, &json!(vec!["aaaa"; 1000])).is_err());
    }
}
