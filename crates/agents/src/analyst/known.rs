//! The operator's notes about the database: searched for the pack, and named if they were used.

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, Utc};
use perihelion_analysis::{Freshness, Knowledge};
use serde::Deserialize as _;

use super::turn::{Doc, Newest};
use crate::pipeline::{AgentError, ErrorKind, ServerInfo};

/// Returns the knowledge of an analyst's server; empty without a file.
///
/// # Errors
/// [`ErrorKind::Configuration`] for a file with other keys or values.
pub fn knowledge_of(server: &ServerInfo) -> Result<Knowledge, AgentError> {
    let Some(knowledge) = &server.agent.knowledge else { return Ok(Knowledge::default()) };
    Knowledge::deserialize(&knowledge.content).map_err(|why| {
        let text = format!("correct the knowledge file {}: {why}", knowledge.file);
        AgentError::new(ErrorKind::Configuration, text)
    })
}

/// Writes the notes that fit a question as pieces of a pack: metrics, and verified queries; also returns the tables of
/// the metrics.
pub fn docs(knowledge: &Knowledge, question: &str) -> (Vec<Doc>, Vec<Doc>, Vec<String>) {
    let found = knowledge.find(question);
    let metric = |metric: &&perihelion_analysis::Metric| {
        let filter = metric.filter.as_ref().map(|filter| format!(" where {filter}"));
        let about =
            if metric.about.is_empty() { String::new() } else { format!(": {}", metric.about) };
        let text = format!(
            "{} = {}{} (from {}){about}",
            metric.name,
            metric.sql,
            filter.unwrap_or_default(),
            metric.tables.join(", ")
        );
        Doc { id: format!("metric:{}", metric.name), text }
    };
    let query = |(number, known): (usize, &&perihelion_analysis::VerifiedQuery)| Doc {
        id: format!("verified:{number}"),
        text: format!("{} -- {}", known.question, known.sql.trim()),
    };
    let tables = found.metrics.iter().flat_map(|metric| metric.tables.iter().cloned()).collect();
    let metrics = found.metrics.iter().map(metric).collect();
    (metrics, (1..).zip(&found.verified_queries).map(query).collect(), tables)
}

/// Describes the freshness of a table: by the operator's declaration, otherwise by its newest past date.
pub fn freshness(
    table: &str,
    declared: Option<&Freshness>,
    newest: &[Newest],
    today: Option<&str>,
) -> Option<String> {
    let column = declared.and_then(|declared| declared.column.as_deref());
    let has_come = |newest: &&Newest| {
        let day = |value: &str| moment(value).map(|moment| moment.date_naive());
        today.is_none_or(|today| day(&newest.value) <= day(today))
    };
    let of_table = newest.iter().filter(|newest| newest.table == table);
    let found = match column {
        Some(column) => of_table.into_iter().find(|newest| newest.column == column),
        None => of_table.filter(has_come).max_by_key(|newest| moment(&newest.value)),
    };
    let reaches =
        found.map(|newest| format!("{} reaches to {} ({})", table, newest.value, newest.column));
    let note = declared.and_then(|declared| declared.note.as_ref());
    match (reaches, note) {
        (Some(reaches), Some(note)) => Some(format!("{reaches}; {note}")),
        (Some(reaches), None) => Some(reaches),
        (None, Some(note)) => Some(format!("{table}: {note}")),
        (None, None) => None,
    }
}

/// Reads a date or a time, as databases write them; one without a zone is in UTC.
fn moment(value: &str) -> Option<DateTime<Utc>> {
    let time = || value.replace(' ', "T").parse::<NaiveDateTime>().ok();
    let day = || value.get(..10)?.parse::<NaiveDate>().ok();
    let zoneless = || time().or_else(|| Some(day()?.and_time(NaiveTime::MIN)));
    value.parse().ok().or_else(|| Some(zoneless()?.and_utc()))
}

pub fn is_date(value: &str) -> bool {
    let bytes = value.as_bytes();
    let digits = |range: std::ops::Range<usize>| {
        bytes.get(range).is_some_and(|part| part.iter().all(u8::is_ascii_digit))
    };
    digits(0..4)
        && digits(5..7)
        && digits(8..10)
        && bytes.get(4) == Some(&b'-')
        && bytes.get(7) == Some(&b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn newest(column: &str, value: &str) -> Newest {
        let table = "orders".into();
        Newest { table, column: column.into(), value: value.into(), is_sample: false }
    }

    #[test]
    fn the_newest_past_date_gives_the_freshness_of_a_table() {
        let all = [newest("ordered_at", "2024-03-01"), newest("due_at", "2031-01-01")];
        let words =
            |declared: Option<&Freshness>| freshness("orders", declared, &all, Some("2026-01-01"));
        assert_eq!(words(None).unwrap(), "orders reaches to 2024-03-01 (ordered_at)");
        let mut declared =
            Freshness { table: "orders".into(), column: Some("due_at".into()), note: None };
        assert_eq!(words(Some(&declared)).unwrap(), "orders reaches to 2031-01-01 (due_at)");
        declared.note = Some("loaded nightly".into());
        declared.column = Some("none".into());
        assert_eq!(words(Some(&declared)).unwrap(), "orders: loaded nightly");
        assert_eq!(freshness("lines", None, &all, None), None);
    }

    #[test]
    fn the_newest_time_is_the_latest_in_any_time_zone() {
        let times =
            ["2026-01-01T12:00:00Z", "2026-01-01 23:00:00+14", "2026-01-01 09:30:00", "2026-01-01"];
        let all: Vec<Newest> = times.iter().map(|time| newest("at", time)).collect();
        let words = freshness("orders", None, &all, Some("2026-01-01")).unwrap();
        assert_eq!(words, "orders reaches to 2026-01-01T12:00:00Z (at)");
        let late =
            [newest("at", "2026-01-02T00:30:00+14:00"), newest("at", "2026-01-01T23:30:00-02:00")];
        let words = freshness("orders", None, &late, Some("2026-01-01")).unwrap();
        assert_eq!(words, "orders reaches to 2026-01-02T00:30:00+14:00 (at)");
    }

    #[test]
    fn dates_are_distinguished_from_other_values() {
        assert!(is_date("2024-03-01") && is_date("2024-03-01 10:00:00"));
        assert!(!is_date("2024") && !is_date("abcd-ef-gh") && !is_date("20240301"));
    }
}
