//! The public text of an error: one line, without credentials, queries and directories of this machine (S2.11).

use serde_json::{Value, json};

use super::result::AgentError;

/// Characters of a message.
const CHARS: usize = 600;

/// Returns an error with a public message; its details have the complete text.
pub(super) fn sanitised(error: AgentError) -> AgentError {
    let message = plain(&error.message);
    if message == error.message {
        return error;
    }
    let whole = json!(error.message);
    let details = match error.details {
        Some(Value::Object(mut fields)) => {
            fields.entry("whole").or_insert(whole);
            Value::Object(fields)
        }
        Some(other) => json!({ "whole": whole, "details": other }),
        None => json!({ "whole": whole }),
    };
    AgentError { message, details: Some(details), ..error }
}

fn plain(text: &str) -> String {
    let is_odd = |letter: char| letter.is_control() || letter == '\u{feff}';
    let line: String =
        text.chars().map(|letter| if is_odd(letter) { ' ' } else { letter }).collect();
    let words: Vec<String> = line.split_whitespace().map(word).collect();
    super::window::clip(&words.join(" "), CHARS)
}

/// Returns a word without accounts, queries and directories.
fn word(word: &str) -> String {
    if let Some((scheme, rest)) = word.split_once("://") {
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (host, path) = rest.split_at(end);
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
        let path = path.split_once(['?', '#']).map_or(path, |(path, _)| path);
        return format!("{scheme}://{host}{path}");
    }
    let is_edge = |letter: char| "\"'`()[]{}<>,;:".contains(letter);
    let inner = word.trim_matches(is_edge);
    let is_path = inner.starts_with('/') && inner.matches('/').count() > 2;
    match inner.rsplit_once('/').filter(|_| is_path) {
        Some((_, name)) if !name.is_empty() => word.replacen(inner, name, 1),
        _ => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    /// S2.11
    #[test]
    fn people_see_one_line_without_accounts_queries_and_directories_and_the_details_have_it_whole()
    {
        let content = "cannot read '/srv/data/private/data.csv':\n  GET https://ann:secret@api.example.org/v1?key=abc failed";
        let shown = sanitised(AgentError::new(ErrorKind::Http, content));
        assert_eq!(shown.message, "cannot read 'data.csv': GET https://api.example.org/v1 failed");
        assert_eq!(shown.details.unwrap()["whole"], content);
        let usual = AgentError::new(ErrorKind::Query, "no such column: x/y");
        assert_eq!(sanitised(usual.clone()), usual);
    }
}
