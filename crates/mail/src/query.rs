//! A search as people write it, as the server reads it.

use crate::Error;

/// Reads words, and `from:`, `to:`, `subject:`, `since:`, `before:`, `unread`, `flagged`; words in quotes belong together.
pub fn search(query: &str) -> Result<String, Error> {
    let mut keys = Vec::new();
    for word in words(query)? {
        let key = match word.split_once(':') {
            Some(("from", value)) => format!("FROM {}", quoted(value)?),
            Some(("to", value)) => format!("TO {}", quoted(value)?),
            Some(("cc", value)) => format!("CC {}", quoted(value)?),
            Some(("subject", value)) => format!("SUBJECT {}", quoted(value)?),
            Some(("since" | "after", value)) => format!("SINCE {}", date(value)?),
            Some(("before", value)) => format!("BEFORE {}", date(value)?),
            Some(("is", "unread")) => "UNSEEN".to_owned(),
            Some(("is", "flagged")) => "FLAGGED".to_owned(),
            _ if word == "unread" => "UNSEEN".to_owned(),
            _ => format!("TEXT {}", quoted(&word)?),
        };
        keys.push(key);
    }
    if keys.is_empty() {
        return Ok("ALL".to_owned());
    }
    let keys = keys.join(" ");
    Ok(if keys.is_ascii() { keys } else { format!("CHARSET UTF-8 {keys}") })
}

/// Writes a text so that it is nothing but a text to the server.
pub fn quoted(text: &str) -> Result<String, Error> {
    if text.chars().any(char::is_control) {
        return Err(Error::Control { what: "a search" });
    }
    Ok(format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")))
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

/// Writes `2024-05-01` as `1-May-2024`.
fn date(text: &str) -> Result<String, Error> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let bad = || Error::BadQuery(format!("dates are YYYY-MM-DD, not: {text}"));
    let parts: Vec<usize> =
        text.split('-').map(|part| part.parse().map_err(|_| bad())).collect::<Result<_, _>>()?;
    let [year, month, day] = parts.as_slice() else { return Err(bad()) };
    let name = month.checked_sub(1).and_then(|index| MONTHS.get(index)).ok_or_else(bad)?;
    if !(1..=31).contains(day) || !(1970..=9999).contains(year) {
        return Err(bad());
    }
    Ok(format!("{day}-{name}-{year}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_is_words_and_fields_and_can_hold_no_commands() {
        assert_eq!(
            search("from:ann \"q3 report\" unread").unwrap(),
            "FROM \"ann\" TEXT \"q3 report\" UNSEEN"
        );
        assert_eq!(
            search("subject:\"a b\" since:2024-05-01").unwrap(),
            "SUBJECT \"a b\" SINCE 1-May-2024"
        );
        assert_eq!(search(" ").unwrap(), "ALL");
        assert_eq!(search("grüße").unwrap(), "CHARSET UTF-8 TEXT \"grüße\"");
        assert_eq!(search("a\\b").unwrap(), "TEXT \"a\\\\b\"");
        assert!(search("\"x\r\nA1 LOGOUT\"").is_err());
        assert!(search("\"x").is_err() && search("since:yesterday").is_err());
    }
}
