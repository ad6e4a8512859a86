//! Numbers and texts that the parser's words would write back as something else.
//!
//! The parser reads `0x04` and `X'04'` as one kind of word, `0o17` as the number 0 with a name, and does not know
//! `UESCAPE`. Enter at [`as_written`]. Invariant: a word that cannot be read as the database reads it is an error.

use sqlparser::parser::ParserError;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan};

use crate::Dialect;
use crate::syntax::{is_space, is_word};

/// Puts numbers as the database reads them in place of the parser's.
pub fn as_written(
    tokens: Vec<TokenWithSpan>,
    sql: &str,
    dialect: Dialect,
) -> Result<Vec<TokenWithSpan>, ParserError> {
    let mut source = Source { rest: sql, line: 1, column: 1 };
    let mut kept: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    let mut escaped = None;
    for mut token in tokens {
        match &token.token {
            Token::HexStringLiteral(digits) if source.seek(token.span.start).starts_with('0') => {
                token.token = Token::Number(format!("0x{digits}"), false);
            }
            Token::Word(word) if word.quote_style.is_none() && dialect != Dialect::TSql => {
                if let Some(Token::Number(number, _)) = kept.last().map(|last| &last.token) {
                    let number = format!("{number}{}", word.value);
                    if !is_based(&number, dialect) {
                        let text = format!("put a space between a number and a word: {number}");
                        return Err(ParserError::TokenizerError(text));
                    }
                    kept.pop();
                    token.token = Token::Number(number, false);
                }
            }
            Token::UnicodeStringLiteral(_) => escaped = Some(source.seek(token.span.start)),
            Token::SingleQuotedString(escape) => {
                if let (Some(at), Some(text)) = (before_uescape(&kept), escaped.take()) {
                    let text = unescaped(text, escape).ok_or_else(|| {
                        ParserError::TokenizerError(format!(
                            "UESCAPE '{escape}' does not fit its text"
                        ))
                    })?;
                    token.token = Token::SingleQuotedString(text);
                    kept.truncate(at);
                }
            }
            _ => {}
        }
        kept.push(token);
    }
    Ok(kept)
}

/// Returns where the text is to which a `UESCAPE` at the end belongs.
fn before_uescape(kept: &[TokenWithSpan]) -> Option<usize> {
    let mut words = (0..kept.len()).rev().filter(|at| !is_space(&kept[*at].token));
    words.next().filter(|at| is_word(&kept[*at].token, "uescape"))?;
    words.next().filter(|at| matches!(kept[*at].token, Token::UnicodeStringLiteral(_)))
}

/// Reads the beginning of a text as `U&'…'` with an escape character of its own; `None` if the escape is unfit.
fn unescaped(source: &str, escape: &str) -> Option<String> {
    let mut escape = escape.chars();
    let unfit = |c: &char| c.is_ascii_hexdigit() || c.is_whitespace() || "+'\"".contains(*c);
    let escape = escape.next().filter(|c| escape.next().is_none() && !unfit(c))?;
    let mut units = Vec::new();
    let mut rest = source.split_once('\'')?.1.chars();
    while let Some(c) = rest.next() {
        let read = rest.as_str();
        let hex = |from: usize, length: usize| {
            let digits = read.get(from..from + length)?;
            let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
            u32::from_str_radix(digits, 16).ok().filter(|_| is_hex)
        };
        let (c, length) = match c {
            '\'' if !read.starts_with('\'') => break,
            '\'' => (u32::from(c), 1),
            c if c == escape && read.starts_with(escape) => (u32::from(c), 1),
            c if c == escape && read.starts_with('+') => (hex(1, 6)?, 7),
            c if c == escape => (hex(0, 4)?, 4),
            c => (u32::from(c), 0),
        };
        rest.by_ref().take(length).for_each(drop);
        let mut pair = [0; 2];
        match char::from_u32(c) {
            Some(c) => units.extend_from_slice(c.encode_utf16(&mut pair)),
            None => units.push(u16::try_from(c).ok()?),
        }
    }
    String::from_utf16(&units).ok()
}

/// Returns whether a number is in the database's notation for base 16, 8 or 2.
fn is_based(number: &str, dialect: Dialect) -> bool {
    let number = number.to_ascii_lowercase();
    let of = |prefix: &str, is_digit: fn(char) -> bool| {
        number.strip_prefix(prefix).is_some_and(|digits| {
            !digits.is_empty() && digits.chars().all(|c| c == '_' || is_digit(c))
        })
    };
    of("0x", |c| c.is_ascii_hexdigit())
        || (dialect == Dialect::Postgres
            && (of("0o", |c| ('0'..='7').contains(&c)) || of("0b", |c| matches!(c, '0' | '1'))))
}

/// A statement's text, read forwards by the places of its words.
struct Source<'a> {
    rest: &'a str,
    line: u64,
    column: u64,
}

impl<'a> Source<'a> {
    fn seek(&mut self, place: Location) -> &'a str {
        while (self.line, self.column) < (place.line, place.column) {
            let Some(next) = self.rest.chars().next() else { break };
            self.rest = &self.rest[next.len_utf8()..];
            if next == '\n' {
                self.line += 1;
                self.column = 1;
            } else {
                self.column += 1;
            }
        }
        self.rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(sql: &str, dialect: Dialect) -> Result<Vec<Token>, ParserError> {
        let tokens = dialect.tokens(sql)?.into_iter().map(|token| token.token);
        Ok(tokens.filter(|token| !matches!(token, Token::Whitespace(_))).collect())
    }

    #[test]
    fn a_number_of_another_base_is_a_number_and_a_blob_a_blob() {
        let number = |text: &str| Token::Number(text.to_owned(), false);
        for dialect in [Dialect::Sqlite, Dialect::Postgres] {
            assert_eq!(words("0x1F", dialect).unwrap(), [number("0x1F")]);
            assert_eq!(words("0X1F", dialect).unwrap(), [number("0X1F")]);
            assert_eq!(words("\n x'1F'", dialect).unwrap(), [Token::HexStringLiteral("1F".into())]);
            words("1second", dialect).unwrap_err();
            words("0xfg", dialect).unwrap_err();
        }
        assert_eq!(words("0o17", Dialect::Postgres).unwrap(), [number("0o17")]);
        assert_eq!(words("0b101", Dialect::Postgres).unwrap(), [number("0b101")]);
        words("0b101", Dialect::Sqlite).unwrap_err();
    }
}
