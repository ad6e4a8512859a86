//! A search as people write it, as the server reads it.

use chrono::{Datelike as _, NaiveDate};
use serde_json::{Value, json};

use crate::{Error, Result};

enum Term {
    /// A field, in lower case, and its text.
    Field(&'static str, String),
    Since(NaiveDate),
    Before(NaiveDate),
    Unread,
    Flagged,
}

/// Reads words, and `from:`, `to:`, `subject:`, `since:`, `before:`, `unread`, `flagged`; words in quotes belong together.
fn terms(query: &str) -> Result<Vec<Term>> {
    let term = |word: String| {
        let field = word.split_once(':').map(|(field, value)| (field.to_ascii_lowercase(), value));
        Ok(match field.as_ref().map(|(field, value)| (field.as_str(), *value)) {
            Some(("from", value)) => Term::Field("from", value.to_owned()),
            Some(("to", value)) => Term::Field("to", value.to_owned()),
            Some(("cc", value)) => Term::Field("cc", value.to_owned()),
            Some(("subject", value)) => Term::Field("subject", value.to_owned()),
            Some(("since" | "after", value)) => Term::Since(date(value)?),
            Some(("before", value)) => Term::Before(date(value)?),
            Some(("is", "unread")) => Term::Unread,
            Some(("is", "flagged")) => Term::Flagged,
            None if word == "unread" => Term::Unread,
            _ => Term::Field("text", word),
        })
    };
    if query.chars().any(|c| c.is_control() && !c.is_whitespace()) {
        return Err(Error::Control { what: "a search" });
    }
    words(query)?.into_iter().map(term).collect()
}

pub fn imap_key(query: &str) -> Result<String> {
    let key = |term: Term| {
        Ok(match term {
            Term::Field(name, text) => {
                format!("{} {}", name.to_uppercase(), searched(&text)?)
            }
            Term::Since(date) => format!("SINCE {}", date.format("%-d-%b-%Y")),
            Term::Before(date) => format!("BEFORE {}", date.format("%-d-%b-%Y")),
            Term::Unread => "UNSEEN".to_owned(),
            Term::Flagged => "FLAGGED".to_owned(),
        })
    };
    let keys = terms(query)?.into_iter().map(key).collect::<Result<Vec<_>>>()?;
    if keys.is_empty() {
        return Ok("ALL".to_owned());
    }
    let keys = keys.join(" ");
    Ok(if keys.is_ascii() { keys } else { format!("CHARSET UTF-8 {keys}") })
}

pub fn jmap_conditions(query: &str) -> Result<Vec<Value>> {
    let condition = |term: Term| match term {
        Term::Field(name, text) => json!({ name: phrase(&text) }),
        Term::Since(date) => json!({ "after": format!("{date}T00:00:00Z") }),
        Term::Before(date) => json!({ "before": format!("{date}T00:00:00Z") }),
        Term::Unread => json!({ "notKeyword": "$seen" }),
        Term::Flagged => json!({ "hasKeyword": "$flagged" }),
    };
    Ok(terms(query)?.into_iter().map(condition).collect())
}

fn phrase(text: &str) -> String {
    if text.contains(char::is_whitespace) { in_quotes(text) } else { text.to_owned() }
}

/// Quotes a text, so that the server reads it only as text.
pub fn quoted(what: &'static str, text: &str) -> Result<String> {
    if text.chars().any(char::is_control) {
        return Err(Error::Control { what });
    }
    Ok(in_quotes(text))
}

/// Writes a text to search for: a quoted one is ASCII, any other is a literal.
fn searched(text: &str) -> Result<String> {
    let quoted = quoted("a search", text)?;
    Ok(if text.is_ascii() { quoted } else { format!("{{{}}}\r\n{text}", text.len()) })
}

fn in_quotes(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn words(query: &str) -> Result<Vec<String>> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut is_quoted = false;
    for c in query.chars() {
        match c {
            '"' => is_quoted = !is_quoted,
            c if c.is_whitespace() && !is_quoted => {
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
            }
            c => word.push(c),
        }
    }
    if is_quoted {
        return Err(Error::BadQuery("a quotation mark is not closed".to_owned()));
    }
    if !word.is_empty() {
        words.push(word);
    }
    Ok(words)
}

fn date(text: &str) -> Result<NaiveDate> {
    let date = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok();
    date.filter(|date| (1970..=9999).contains(&date.year()))
        .ok_or_else(|| Error::BadQuery(format!("dates are YYYY-MM-DD, not: {text}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_is_words_and_fields_and_can_hold_no_commands() {
        assert_eq!(
            imap_key("from:ann \"q3 report\" unread").unwrap(),
            "FROM \"ann\" TEXT \"q3 report\" UNSEEN"
        );
        assert_eq!(
            imap_key("subject:\"a b\" since:2024-05-01").unwrap(),
            "SUBJECT \"a b\" SINCE 1-May-2024"
        );
        assert_eq!(imap_key(" ").unwrap(), "ALL");
        assert_eq!(imap_key("grüße").unwrap(), "CHARSET UTF-8 TEXT {7}\r\ngrüße");
        assert_eq!(
            imap_key("From:ann Subject:ö").unwrap(),
            "CHARSET UTF-8 FROM \"ann\" SUBJECT {2}\r\nö"
        );
        assert_eq!(imap_key("a\\b").unwrap(), "TEXT \"a\\\\b\"");
        assert!(imap_key("\"x\r\nA1 LOGOUT\"").is_err() && imap_key("\"ü\r\nA1 LOGOUT\"").is_err());
        assert!(imap_key("\"x").is_err() && imap_key("since:yesterday").is_err());
    }

    #[test]
    fn the_same_search_is_conditions_of_a_jmap_server() {
        let conditions = jmap_conditions("from:ann \"q3 report\" unread since:2024-05-01").unwrap();
        assert_eq!(
            Value::Array(conditions),
            json!([{ "from": "ann" }, { "text": "\"q3 report\"" }, { "notKeyword": "$seen" }, { "after": "2024-05-01T00:00:00Z" }])
        );
        assert!(jmap_conditions("since:2024-13-01").is_err());
    }
}
