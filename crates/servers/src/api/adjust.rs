//! The parts of a request that come from its caller's context: its base address, its headers, and parameters that a
//! refusal shows to be missing.

use perihelion_openapi::{Arguments, Location, Operation};
use serde_json::{Map, Value};

/// The field for the context, in `_meta` of a call.
pub const CONTEXT: &str = "dev.perihelion/context";

#[derive(Clone, Debug, Default)]
pub struct Context {
    pub entries: Map<String, Value>,
    /// Whether a model wrote it, as an argument of the call.
    pub is_argument: bool,
}

impl Context {
    pub fn base(&self) -> Option<&str> {
        let texts =
            ["api_base_url", "base_url"].iter().filter_map(|key| self.entries.get(*key)?.as_str());
        texts.map(str::trim).find(|text| !text.is_empty())
    }

    /// Adds the context's headers, which the call's own headers override.
    pub fn add_headers(&self, arguments: &mut Arguments) {
        let given = match self.entries.get("api_headers") {
            Some(Value::Object(headers)) => headers.clone(),
            // On a command line a value is text.
            Some(Value::String(text)) => serde_json::from_str(text).unwrap_or_default(),
            _ => return,
        };
        for (name, value) in given {
            let is_given = arguments.headers.keys().any(|known| known.eq_ignore_ascii_case(&name));
            if !is_given {
                arguments.headers.insert(name, value);
            }
        }
    }

    /// Fills query parameters in that the operation declares, the call leaves out and the context knows; names them.
    pub fn fill(&self, operation: &Operation, arguments: &mut Arguments) -> Vec<String> {
        let mut filled = Vec::new();
        for parameter in
            operation.parameters.iter().filter(|parameter| parameter.location == Location::Query)
        {
            if arguments.query.get(&parameter.name).is_some_and(|given| !given.is_null()) {
                continue;
            }
            if let Some(value) = self.value_for(&parameter.name) {
                arguments.query.insert(parameter.name.clone(), value.clone());
                filled.push(parameter.name.clone());
            }
        }
        filled
    }

    fn value_for(&self, name: &str) -> Option<&Value> {
        let plain = plain(name);
        let same =
            self.entries.iter().find(|(key, _)| self::plain(key) == plain).map(|(_, value)| value);
        same.or_else(|| self.entries.get(date_key(&plain)?))
            .filter(|value| value.is_string() || value.is_number())
    }
}

fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Which date of the context a parameter of this name asks for.
fn date_key(plain: &str) -> Option<&'static str> {
    match plain {
        "startdatetime" | "starttime" | "fromdatetime" | "begindatetime" => {
            Some("current_date_start_hour")
        }
        "enddatetime" | "endtime" | "todatetime" | "untildatetime" => Some("current_date_end_hour"),
        "startdate" | "enddate" | "fromdate" | "todate" | "date" | "day" => Some("current_date"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use perihelion_openapi::Catalogue;
    use serde_json::json;

    use super::*;

    #[test]
    fn missing_dates_are_filled_from_the_context_and_given_ones_are_unchanged() {
        let text = "endpoints:\n  - path: /r\n    query_params: [startDateTime, endDateTime, region, other]\n";
        let catalogue = Catalogue::read(text).unwrap();
        let context = json!({"current_date_start_hour": "2024-01-02 00", "current_date_end_hour": "2024-01-02 23", "Region": "eu"});
        let entries = context.as_object().unwrap().clone();
        let context = Context { entries, is_argument: false };
        let mut arguments = Arguments::default();
        arguments.query.insert("endDateTime".into(), "x".into());
        assert_eq!(
            context.fill(&catalogue.operations[0], &mut arguments),
            ["startDateTime", "region"]
        );
        assert_eq!(
            Value::from(arguments.query),
            json!({"endDateTime": "x", "startDateTime": "2024-01-02 00", "region": "eu"})
        );
    }
}
