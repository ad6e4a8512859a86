//! SQL Server's `OPTION (MAXRECURSION n)` at the end of a statement: how deep a recursive `WITH` query may go.
//!
//! It is carried as the name of a format, which SQL Server does not have. Source: Transact-SQL reference, query hints.

use sqlparser::ast::{FormatClause, Ident, Query};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::{MARK, Reader, is_space, is_word};

/// The deepest that SQL Server reads.
const MOST: u32 = 32_767;

/// Takes the hint off the end of a statement's tokens.
pub fn cut(mut tokens: Vec<TokenWithSpan>) -> (Vec<TokenWithSpan>, Option<String>) {
    let Some(at) = tokens.iter().rposition(|token| is_word(&token.token, "option")) else {
        return (tokens, None);
    };
    let mut reader = Reader { tokens: &tokens, at };
    let Some(hint) = read(&mut reader) else { return (tokens, None) };
    let ends = |token: &TokenWithSpan| {
        is_space(&token.token) || matches!(token.token, Token::SemiColon | Token::EOF)
    };
    if !tokens[reader.at..].iter().all(ends) {
        return (tokens, None);
    }
    tokens.drain(at..reader.at);
    (tokens, Some(hint))
}

fn read(reader: &mut Reader<'_>) -> Option<String> {
    let opens = reader.words(&["option"]) && reader.next() == Some(&Token::LParen);
    let depth = match (opens && reader.words(&["maxrecursion"])).then(|| reader.next())?? {
        Token::Number(number, false) => number.parse::<u32>().ok().filter(|n| *n <= MOST)?,
        _ => return None,
    };
    (reader.next()? == &Token::RParen).then(|| format!("OPTION (MAXRECURSION {depth})"))
}

pub fn hang_on(query: &mut Query, hint: &str) {
    query.format_clause = Some(FormatClause::Identifier(Ident::new(format!("{MARK}{hint}"))));
}

/// Returns whether a query's end came from here.
pub fn is_ours(format: &FormatClause) -> bool {
    matches!(format, FormatClause::Identifier(name) if name.value.starts_with(MARK))
}
