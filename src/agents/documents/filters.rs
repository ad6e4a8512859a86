//! What a task's entities say of the documents that are searched (S3.06).

use chrono::{DateTime, Days, NaiveDate, NaiveTime, Utc};
use serde_json::{Map, Value, json};

use crate::agents::pipeline::Entity;

/// Filters of a search, and what of the task's entities could not be read.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Filters {
    pub by: Map<String, Value>,
    pub remarks: Vec<String>,
}

impl Filters {
    /// Reads those entities that a search can filter by; the others stand in the task's words.
    pub fn of(entities: &[Entity]) -> Self {
        let mut filters = Self::default();
        for Entity { name, value } in entities {
            let value = value.trim();
            let (key, wanted) = match name.trim().to_lowercase().as_str() {
                key @ ("collection" | "section") => (key.to_owned(), Some(json!(value))),
                "format" => {
                    let format = value.trim_start_matches('.').to_lowercase();
                    ("format".to_owned(), Some(json!(format)))
                }
                "author" => ("person".to_owned(), Some(json!(value))),
                key @ "since" => (key.to_owned(), day(value, 0)),
                // The day that is named belongs to it.
                key @ "until" => (key.to_owned(), day(value, 1)),
                _ => continue,
            };
            match wanted {
                Some(wanted) if !value.is_empty() => {
                    filters.by.insert(key, wanted);
                }
                _ => filters.remarks.push(format!("{name} \"{value}\" is no date (YYYY-MM-DD)")),
            }
        }
        filters
    }
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

    /// S3.06
    #[test]
    fn entities_become_filters_and_a_wrong_date_is_reported() {
        let entities = [
            entity("author", "Ada Byron"),
            entity("Format", ".PDF"),
            entity("since", "2024-02-01"),
            entity("until", "2024-02-29"),
            entity("metric", "revenue"),
        ];
        let filters = Filters::of(&entities);
        let expected = json!({
            "person": "Ada Byron", "format": "pdf",
            "since": "2024-02-01T00:00:00Z", "until": "2024-03-01T00:00:00Z",
        });
        assert_eq!(Value::Object(filters.by), expected);
        let wrong = Filters::of(&[entity("since", "last spring")]);
        assert!(wrong.by.is_empty());
        assert_eq!(wrong.remarks, ["since \"last spring\" is no date (YYYY-MM-DD)"]);
    }
}
