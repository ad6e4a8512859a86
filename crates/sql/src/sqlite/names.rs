//! The names that a statement gives to its own subqueries, read by SQLite's own lexical rules.
//!
//! SQLite reports to the authorizer the view through which a table is read, and also calls a `WITH` query or an aliased
//! subquery a view. A statement that defines a view's name itself does not get the view's permissions.

use std::collections::HashSet;

#[derive(Debug, PartialEq)]
enum Token {
    /// A bare word or a quoted name, in lower case.
    Word(String),
    Open,
    Close,
    Other,
}

/// Returns the lower-case names of `WITH` queries and of subqueries in `FROM`.
pub fn defined(sql: &str) -> HashSet<String> {
    let tokens = tokens(sql);
    let mut names = HashSet::new();
    let mut opened: Vec<usize> = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Token::Open => opened.push(at),
            Token::Close => {
                let contains_query = opened.pop().is_some_and(|open| is_query(&tokens[open..at]));
                let alias = match &tokens[at + 1..] {
                    [Token::Word(word), Token::Word(alias), ..] if word == "as" => Some(alias),
                    [Token::Word(alias), ..] => Some(alias),
                    _ => None,
                };
                if let Some(alias) = alias.filter(|_| contains_query) {
                    names.insert(alias.clone());
                }
            }
            Token::Word(name) if opens_definition(&tokens[at + 1..]) => {
                names.insert(name.clone());
            }
            Token::Word(_) | Token::Other => {}
        }
    }
    names
}

/// Returns the lower-case words, names and texts of a statement.
pub fn words(sql: &str) -> impl Iterator<Item = String> {
    tokens(sql).into_iter().filter_map(|token| match token {
        Token::Word(word) => Some(word),
        Token::Open | Token::Close | Token::Other => None,
    })
}

/// Returns whether parentheses contain a query, directly or within further ones.
fn is_query(tokens: &[Token]) -> bool {
    let inside = tokens.iter().find(|token| **token != Token::Open);
    matches!(inside, Some(Token::Word(word)) if matches!(word.as_str(), "select" | "with" | "values"))
        // A parenthesised join may contain a subquery further in, under a name of its own.
        || tokens.iter().any(|token| matches!(token, Token::Word(word) if word == "select"))
}

/// Returns whether `name` is followed by `[(columns)] AS [NOT] [MATERIALIZED] (`.
fn opens_definition(after: &[Token]) -> bool {
    let mut rest = after;
    if rest.first() == Some(&Token::Open) {
        let Some(close) = rest.iter().position(|token| *token == Token::Close) else {
            return false;
        };
        rest = &rest[close + 1..];
    }
    let is = |token: Option<&Token>, text: &str| matches!(token, Some(Token::Word(w)) if w == text);
    if !is(rest.first(), "as") {
        return false;
    }
    rest = &rest[1..];
    if is(rest.first(), "not") {
        rest = &rest[1..];
    }
    if is(rest.first(), "materialized") {
        rest = &rest[1..];
    }
    rest.first() == Some(&Token::Open)
}

fn tokens(sql: &str) -> Vec<Token> {
    let bytes = sql.as_bytes();
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(byte) = bytes.get(at).copied() {
        let rest = &sql[at..];
        let length = match byte {
            b'-' if rest.starts_with("--") => rest.find('\n').unwrap_or(rest.len()),
            b'/' if rest.starts_with("/*") => {
                rest[2..].find("*/").map_or(rest.len(), |end| end + 4)
            }
            b'\'' | b'"' | b'`' | b'[' => {
                let end = if byte == b'[' { b']' } else { byte };
                let length = quoted(rest.as_bytes(), end);
                let inside = rest.get(1..length.saturating_sub(1)).unwrap_or_default();
                // SQLite takes a text where a name must stand for a name.
                tokens.push(Token::Word(unquoted(inside, end).to_ascii_lowercase()));
                length
            }
            b'(' => {
                tokens.push(Token::Open);
                1
            }
            b')' => {
                tokens.push(Token::Close);
                1
            }
            _ if is_word(byte) => {
                let length = rest.bytes().take_while(|b| is_word(*b)).count();
                tokens.push(Token::Word(rest[..length].to_ascii_lowercase()));
                length
            }
            _ => {
                if !byte.is_ascii_whitespace() {
                    tokens.push(Token::Other);
                }
                1
            }
        };
        at += length.max(1);
    }
    tokens
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

/// Returns the length of a quoted name or text with its quotes; a doubled closing quote means one.
fn quoted(rest: &[u8], end: u8) -> usize {
    let mut at = 1;
    while at < rest.len() {
        if rest[at] == end {
            if end != b']' && rest.get(at + 1) == Some(&end) {
                at += 1;
            } else {
                return at + 1;
            }
        }
        at += 1;
    }
    rest.len()
}

fn unquoted(inside: &str, end: u8) -> String {
    let mark = char::from(end).to_string();
    inside.replace(&mark.repeat(2), &mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_with_queries_and_of_subqueries_in_from_are_found_in_every_spelling() {
        for sql in [
            "WITH v AS (SELECT 1) SELECT 1",
            "WITH a AS (SELECT 1), V(x, y) AS NOT MATERIALIZED (SELECT 1) SELECT 1",
            "with recursive [v] as materialized(select 1) select 1",
            "SELECT * FROM (SELECT * FROM secret) v",
            "SELECT * FROM (SELECT * FROM secret) AS \"v\"",
            "SELECT * FROM ((SELECT * FROM secret)) AS `V`",
            "SELECT * FROM (VALUES (1)) 'v'",
            "SELECT * FROM (SELECT 1)/* */AS--\nv",
            "WITH \"v\"AS(SELECT 1) SELECT 1",
        ] {
            assert!(defined(sql).contains("v"), "{sql}");
        }
        for sql in ["SELECT sum(x) AS v FROM v", "SELECT v.x FROM v", "SELECT ')) AS v' FROM t"] {
            assert!(!defined(sql).contains("v"), "{sql}");
        }
    }
}
