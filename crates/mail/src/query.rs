//! A search as people write it, as the server reads it.

use serde_json::{Value, json};

use crate::Error;

/// What a message must have.
enum Term {
    From(String),
    To(String),
    Cc(String),
    Subject(String),
    Since(Date),
    Before(Date),
    Unread,
    Flagged,
    Text(String),
}

/// A day.
struct Date {
    year: usize,
    month: usize,
    day: usize,
}

/// Reads words, and `from:`, `to:`, `subject:`, `since:`, `before:`, `unread`, `flagged`; words in quotes belong together.
fn terms(query: &str) -> Result<Vec<Term>, Error> {
    let term = |word: String| {
        Ok(match word.split_once(':') {
            Some(("from", value)) => Term::From(value.to_owned()),
            Some(("to", value)) => Term::To(value.to_owned()),
            Some(("cc", value)) => Term::Cc(value.to_owned()),
            Some(("subject", value)) => Term::Subject(value.to_owned()),
            Some(("since" | "after", value)) => Term::Since(date(value)?),
            Some(("before", value)) => Term::Before(date(value)?),
            Some(("is", "unread")) => Term::Unread,
            Some(("is", "flagged")) => Term::Flagged,
            None if word == "unread" => Term::Unread,
            _ => Term::Text(word),
        })
    };
    if query.chars().any(|c| c.is_control() && !c.is_whitespace()) {
        return Err(Error::Control { what: "a search" });
    }
    words(query)?.into_iter().map(term).collect()
}

/// Writes a search as an IMAP server reads it.
pub fn imap_key(query: &str) -> Result<String, Error> {
    let key = |term: Term| {
        Ok(match term {
            Term::From(text) => format!("FROM {}", quoted("a search", &text)?),
            Term::To(text) => format!("TO {}", quoted("a search", &text)?),
            Term::Cc(text) => format!("CC {}", quoted("a search", &text)?),
            Term::Subject(text) => format!("SUBJECT {}", quoted("a search", &text)?),
            Term::Since(date) => format!("SINCE {}", date.imap()),
            Term::Before(date) => format!("BEFORE {}", date.imap()),
            Term::Unread => "UNSEEN".to_owned(),
            Term::Flagged => "FLAGGED".to_owned(),
            Term::Text(text) => format!("TEXT {}", quoted("a search", &text)?),
        })
    };
    let keys = terms(query)?.into_iter().map(key).collect::<Result<Vec<_>, Error>>()?;
    if keys.is_empty() {
        return Ok("ALL".to_owned());
    }
    let keys = keys.join(" ");
    Ok(if keys.is_ascii() { keys } else { format!("CHARSET UTF-8 {keys}") })
}

/// Writes a search as the conditions of a JMAP server.
pub fn jmap_conditions(query: &str) -> Result<Vec<Value>, Error> {
    let condition = |term: Term| match term {
        Term::From(text) => json!({ "from": phrase(&text) }),
        Term::To(text) => json!({ "to": phrase(&text) }),
        Term::Cc(text) => json!({ "cc": phrase(&text) }),
        Term::Subject(text) => json!({ "subject": phrase(&text) }),
        Term::Since(date) => json!({ "after": date.jmap() }),
        Term::Before(date) => json!({ "before": date.jmap() }),
        Term::Unread => json!({ "notKeyword": "$seen" }),
        Term::Flagged => json!({ "hasKeyword": "$flagged" }),
        Term::Text(text) => json!({ "text": phrase(&text) }),
    };
    Ok(terms(query)?.into_iter().map(condition).collect())
}

/// Keeps words that belong together together.
fn phrase(text: &str) -> String {
    if text.contains(char::is_whitespace) { in_quotes(text) } else { text.to_owned() }
}

/// Writes a text so that it is nothing but a text to the server.
pub fn quoted(what: &'static str, text: &str) -> Result<String, Error> {
    if text.chars().any(char::is_control) {
        return Err(Error::Control { what });
    }
    Ok(in_quotes(text))
}

fn in_quotes(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn words(query: &str) -> Result<Vec<String>, Error> {
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

fn date(text: &str) -> Result<Date, Error> {
    let bad = || Error::BadQuery(format!("dates are YYYY-MM-DD, not: {text}"));
    let parts: Vec<usize> =
        text.split('-').map(|part| part.parse().map_err(|_| bad())).collect::<Result<_, _>>()?;
    let &[year, month, day] = parts.as_slice() else { return Err(bad()) };
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || !(1970..=9999).contains(&year) {
        return Err(bad());
    }
    Ok(Date { year, month, day })
}

impl Date {
    /// Writes it as `1-May-2024`.
    fn imap(&self) -> String {
        const MONTHS: [&str; 12] =
            ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
        let name = MONTHS.get(self.month.saturating_sub(1)).copied().unwrap_or("Jan");
        format!("{}-{name}-{}", self.day, self.year)
    }

    /// Writes when it begins, UTC.
    fn jmap(&self) -> String {
        format!("{:04}-{:02}-{:02}T00:00:00Z", self.year, self.month, self.day)
    }
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
        assert_eq!(imap_key("grüße").unwrap(), "CHARSET UTF-8 TEXT \"grüße\"");
        assert_eq!(imap_key("a\\b").unwrap(), "TEXT \"a\\\\b\"");
        assert!(imap_key("\"x\r\nA1 LOGOUT\"").is_err());
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
