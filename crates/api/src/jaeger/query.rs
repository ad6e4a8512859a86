//! The query in the address of a request.

use chrono::{DateTime, TimeDelta, Utc};

use super::Generation::{self, V1, V3};
use super::{Refusal, SERVICE};
use perihelion_telemetry::TraceId;
use perihelion_telemetry::reading::Query;

/// Traces of a search that names no limit.
const LIMIT: usize = 100;

/// Traces of any search.
const MOST: usize = 1_000;

/// The parameters of a request, in order; a name can be repeated.
pub(super) struct Parameters {
    pub list: Vec<(String, String)>,
    pub generation: Generation,
}

impl Parameters {
    /// Returns the first value that is not empty under any of the names.
    pub(super) fn get(&self, names: &[&str]) -> Option<&str> {
        let value = |name: &&str| {
            let mut found =
                self.list.iter().filter(|(known, value)| known == name && !value.is_empty());
            found.next().map(|(_, value)| value.as_str())
        };
        names.iter().find_map(value)
    }

    fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.list.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    fn read<T>(
        &self,
        names: &[&str],
        wanted: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, Refusal> {
        let Some(value) = self.get(names) else { return Ok(None) };
        let name = names.first().copied().unwrap_or_default();
        match read(value) {
            Some(read) => Ok(Some(read)),
            None => Err(Refusal::malformed(self.generation, name, value, wanted)),
        }
    }

    fn limit(&self, names: &[&str]) -> Result<usize, Refusal> {
        let limit = self.read(names, "a whole number", |text| text.parse::<usize>().ok())?;
        Ok(limit.unwrap_or(LIMIT).min(MOST))
    }

    fn object(&self, names: &[&str], tags: &mut Vec<(String, String)>) -> Result<(), Refusal> {
        let wanted = "a JSON object of texts";
        let read = |text: &str| {
            serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(text).ok()
        };
        for (name, value) in self.read(names, wanted, read)?.unwrap_or_default() {
            // UIs write a bare true or 5 as the text it is.
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            tags.push((name, value));
        }
        Ok(())
    }
}

/// Reads the search of the first generation; `None` for an unknown service.
pub(super) fn v1(list: Vec<(String, String)>) -> Result<Option<Query>, Refusal> {
    let asked = Parameters { list, generation: V1 };
    let micros = |text: &str| text.parse().ok().and_then(DateTime::from_timestamp_micros);
    let mut tags = Vec::new();
    asked.object(&["tags"], &mut tags)?;
    for tag in asked.all("tag") {
        let Some((name, value)) = tag.split_once(':') else {
            return Err(Refusal::malformed(V1, "tag", tag, "NAME:VALUE"));
        };
        tags.push((name.to_owned(), value.to_owned()));
    }
    let wanted = "microseconds since 1970";
    let query = Query {
        operation: asked.get(&["operation"]).map(str::to_owned),
        tags,
        after: asked.read(&["start"], wanted, micros)?,
        before: asked.read(&["end"], wanted, micros)?,
        shortest: asked.read(&["minDuration"], "a duration such as 1.5s", duration)?,
        longest: asked.read(&["maxDuration"], "a duration such as 1.5s", duration)?,
        limit: asked.limit(&["limit"])?,
    };
    Ok(is_ours(asked.get(&["service"])).then_some(query))
}

/// Reads the trace IDs of a search of the first generation that names them.
pub(super) fn ids(list: &[(String, String)]) -> Result<Vec<TraceId>, Refusal> {
    let named = list.iter().filter(|(name, _)| name == "traceID").map(|(_, value)| value);
    named.map(|value| id(V1, value)).collect()
}

/// Reads the search of the third generation; `None` for an unknown service.
pub(super) fn v3(list: Vec<(String, String)>) -> Result<Option<Query>, Refusal> {
    let asked = Parameters { list, generation: V3 };
    let moment = |text: &str| {
        DateTime::parse_from_rfc3339(text).ok().map(|moment| moment.with_timezone(&Utc))
    };
    let mut tags = Vec::new();
    asked.object(&["query.attributes"], &mut tags)?;
    let wanted = "a time such as 2026-01-31T12:00:00Z";
    let length = "a duration such as 1.5s";
    let query = Query {
        operation: asked.get(&["query.operationName", "query.operation_name"]).map(str::to_owned),
        tags,
        after: asked.read(&["query.startTimeMin", "query.start_time_min"], wanted, moment)?,
        before: asked.read(&["query.startTimeMax", "query.start_time_max"], wanted, moment)?,
        shortest: asked.read(&["query.durationMin", "query.duration_min"], length, duration)?,
        longest: asked.read(&["query.durationMax", "query.duration_max"], length, duration)?,
        limit: asked.limit(&["query.searchDepth", "query.search_depth", "query.num_traces"])?,
    };
    let service = asked.get(&["query.serviceName", "query.service_name"]);
    Ok(is_ours(service).then_some(query))
}

pub(super) fn is_ours(service: Option<&str>) -> bool {
    service.is_none_or(|service| service == SERVICE)
}

pub(super) fn id(generation: Generation, text: &str) -> Result<TraceId, Refusal> {
    let wanted = "up to 32 hexadecimal digits";
    TraceId::from_hex(text).ok_or_else(|| Refusal::malformed(generation, "traceID", text, wanted))
}

/// Units and their length in nanoseconds; longer names first.
const UNITS: [(&str, f64); 7] =
    [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9), ("m", 60e9), ("h", 3_600e9)];

/// Reads a duration; `None` if it is negative, invalid or too long.
fn duration(text: &str) -> Option<TimeDelta> {
    let mut rest = text.trim();
    let mut total = 0.0;
    if rest == "0" {
        return Some(TimeDelta::zero());
    }
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..end].parse().ok()?;
        let unit = &rest[end..];
        // `m` is also how `ms` begins, so the longest that fits is meant.
        let fitting = UNITS.iter().filter(|(name, _)| unit.starts_with(name));
        let (name, length) = fitting.max_by_key(|(name, _)| name.len())?;
        total += number * length;
        rest = &unit[name.len()..];
    }
    let is_sane = !text.trim().is_empty() && total < 9e18;
    is_sane.then(|| TimeDelta::nanoseconds(total.round() as i64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_writes_them() {
        let ms = |ms| Some(TimeDelta::milliseconds(ms));
        let read = ["1.5s", "100ms", "1h2m", "250us", "0", "2m3s"].map(duration);
        let expected = [
            ms(1_500),
            ms(100),
            ms(3_720_000),
            Some(TimeDelta::microseconds(250)),
            ms(0),
            ms(123_000),
        ];
        assert_eq!(read, expected);
        for wrong in ["", "s", "5", "1.2.3s", "-1s", "1 s", "1d", "9999999999h"] {
            assert_eq!(duration(wrong), None, "{wrong}");
        }
    }
}
