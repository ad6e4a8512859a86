//! The filters for the searched documents in a task's entities (S3.06), and the compared sides.

use std::collections::BTreeMap;

use chrono::{DateTime, Days, NaiveDate, NaiveTime, Utc};
use serde_json::{Map, Value, json};

use crate::pipeline::Entity;

const MOST_SIDES: usize = 4;

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Side {
    /// Its difference from the other sides, for reports; empty without a comparison.
    pub name: String,
    pub by: Map<String, Value>,
}

/// The search of the documents, and the task's entities that could not be read.
#[derive(Debug, PartialEq)]
pub(super) struct Filters {
    /// One, or each that a task compares.
    pub sides: Vec<Side>,
    pub remarks: Vec<String>,
}

struct EntityFilter {
    key: &'static str,
    value: Value,
    shown: String,
}

impl Filters {
    pub fn none() -> Self {
        Self { sides: vec![Side::default()], remarks: Vec::new() }
    }

    /// Reads the entities that a search can filter by; the rest is in the task's words. `ids` are those of the named
    /// documents.
    pub fn of(entities: &[Entity], ids: &BTreeMap<String, String>) -> Self {
        let mut remarks = Vec::new();
        let mut wanted: Vec<EntityFilter> = Vec::new();
        for Entity { name, value } in entities {
            let value = value.trim();
            let (key, read) = match name.trim().to_lowercase().as_str() {
                "collection" => ("collection", Some(json!(value))),
                "section" => ("section", Some(json!(value))),
                "document" => match ids.get(value) {
                    Some(id) => ("documents", Some(json!([id]))),
                    None => continue,
                },
                "format" => ("format", Some(json!(value.trim_start_matches('.').to_lowercase()))),
                "author" => ("person", Some(json!(value))),
                "since" => ("since", day(value, 0)),
                // The day that is named belongs to it.
                "until" => ("until", day(value, 1)),
                _ => continue,
            };
            match read.filter(|_| !value.is_empty()) {
                Some(read) if wanted.iter().any(|one| one.key == key && one.value == read) => {}
                Some(read) => {
                    let shown = format!("{} {value}", name.trim());
                    wanted.push(EntityFilter { key, value: read, shown });
                }
                None => remarks.push(format!("{name} \"{value}\" is no date (YYYY-MM-DD)")),
            }
        }
        let (sides, more) = sides(wanted);
        remarks.extend(more);
        Self { sides, remarks }
    }

    pub fn is_narrow(&self) -> bool {
        self.sides.iter().any(|side| !side.by.is_empty())
    }

    pub fn named(&self) -> String {
        let each = |side: &Side| {
            if side.name.is_empty() {
                side.by.iter().map(|(name, value)| format!("{name} {value}")).collect()
            } else {
                vec![side.name.clone()]
            }
        };
        self.sides.iter().flat_map(each).collect::<Vec<String>>().join(", ")
    }
}

/// Makes a side of each value of a repeated kind; the rest applies to all sides.
fn sides(wanted: Vec<EntityFilter>) -> (Vec<Side>, Vec<String>) {
    let times = |key: &str| wanted.iter().filter(|one| one.key == key).count();
    let is_place = |one: &&EntityFilter| !matches!(one.key, "since" | "until");
    let compared = wanted.iter().filter(is_place).map(|one| one.key).find(|key| times(key) > 1);
    let common: Map<String, Value> = wanted
        .iter()
        .filter(|one| Some(one.key) != compared)
        .map(|one| (one.key.to_owned(), one.value.clone()))
        .collect();
    let Some(compared) = compared else {
        return (vec![Side { name: String::new(), by: common }], Vec::new());
    };
    let mut sides: Vec<Side> = Vec::new();
    let mut left_out = Vec::new();
    for one in wanted.into_iter().filter(|one| one.key == compared) {
        if sides.len() == MOST_SIDES {
            left_out.push(format!("not compared, because it is one too many: {}", one.shown));
            continue;
        }
        let mut by = common.clone();
        by.insert(one.key.to_owned(), one.value);
        sides.push(Side { name: one.shown, by });
    }
    (sides, left_out)
}

/// Reads a day or a moment; `more` days are added to a day.
fn day(text: &str, more: u64) -> Option<Value> {
    if let Ok(moment) = DateTime::parse_from_rfc3339(text) {
        return Some(json!(moment.with_timezone(&Utc)));
    }
    let day = text.parse::<NaiveDate>().ok()?.checked_add_days(Days::new(more))?;
    Some(json!(day.and_time(NaiveTime::MIN).and_utc()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entity(name: &str, value: &str) -> Entity {
        Entity { name: name.into(), value: value.into() }
    }

    fn of(entities: &[Entity]) -> Filters {
        Filters::of(entities, &BTreeMap::from([("Lease".to_owned(), "d1".to_owned())]))
    }

    /// S3.06
    #[test]
    fn entities_become_filters_and_a_wrong_date_is_reported() {
        let filters = of(&[
            entity("author", "Ada Byron"),
            entity("Format", ".PDF"),
            entity("since", "2024-02-01"),
            entity("until", "2024-02-29"),
            entity("metric", "revenue"),
            entity("document", "Lease"),
        ]);
        let expected = json!({
            "person": "Ada Byron", "format": "pdf", "documents": ["d1"],
            "since": "2024-02-01T00:00:00Z", "until": "2024-03-01T00:00:00Z",
        });
        assert_eq!(filters.sides.len(), 1);
        assert_eq!(Value::Object(filters.sides[0].by.clone()), expected);
        let wrong = of(&[entity("since", "last spring"), entity("document", "unknown")]);
        assert!(!wrong.is_narrow());
        assert_eq!(wrong.remarks, ["since \"last spring\" is no date (YYYY-MM-DD)"]);
    }

    /// S3.06
    #[test]
    fn filters_named_twice_are_compared_and_the_rest_apply_to_both_sides() {
        let filters = of(&[
            entity("collection", "2023"),
            entity("format", "pdf"),
            entity("collection", "2024"),
            entity("collection", "2024"),
        ]);
        let [first, second] = filters.sides.as_slice() else { panic!("{filters:?}") };
        assert_eq!(json!(first.by), json!({ "collection": "2023", "format": "pdf" }));
        assert_eq!(json!(second.by), json!({ "collection": "2024", "format": "pdf" }));
        assert_eq!(second.name, "collection 2024");
        let many: Vec<Entity> = (0..6).map(|n| entity("section", &n.to_string())).collect();
        let filters = of(&many);
        assert_eq!((filters.sides.len(), filters.remarks.len()), (MOST_SIDES, 2));
    }
}
