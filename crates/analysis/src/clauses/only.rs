//! Postgres' `ONLY` before a table: its own rows, without those of its partitions and of tables that inherit from it.
//!
//! It is carried as the name of a partition, which Postgres does not have.

use sqlparser::ast::{Ident, ObjectNamePart, TableFactor};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::{Cut, MARK, Reader, is_space, is_word};

/// Takes each `ONLY` out of the tokens, with the parentheses that the table's name can have.
pub fn cut(tokens: Vec<TokenWithSpan>) -> (Vec<TokenWithSpan>, Vec<Cut>) {
    let mut kept: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    let mut cuts = Vec::new();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let before = kept.iter().rev().map(|token| &token.token).find(|token| !is_space(token));
        let begins_item = before.is_some_and(|before| {
            matches!(before, Token::Comma | Token::LParen)
                || ["from", "join"].iter().any(|word| is_word(before, word))
        });
        let name = (begins_item && is_word(&token.token, "only")).then(|| name(&tokens, at + 1));
        if let Some((name, end)) = name.flatten() {
            cuts.push(Cut { behind: name.last().map(|last| last.span), clause: "ONLY".into() });
            kept.extend(name);
            at = end;
        } else {
            kept.push(token.clone());
            at += 1;
        }
    }
    (kept, cuts)
}

/// Reads the name of a table, in parentheses or not, and returns where it ends.
fn name(tokens: &[TokenWithSpan], at: usize) -> Option<(Vec<TokenWithSpan>, usize)> {
    let mut reader = Reader { tokens, at };
    let is_enclosed = reader.peek() == Some(&Token::LParen);
    if is_enclosed {
        reader.next();
    }
    let mut name = Vec::new();
    loop {
        if !matches!(reader.next()?, Token::Word(_)) {
            return None;
        }
        name.push(tokens[reader.at - 1].clone());
        if reader.peek() != Some(&Token::Period) {
            break;
        }
        reader.next();
        name.push(tokens[reader.at - 1].clone());
    }
    let ends = !is_enclosed || reader.next()? == &Token::RParen;
    ends.then_some((name, reader.at))
}

pub fn hang_on(factor: &mut TableFactor, cuts: &mut Vec<Cut>) {
    let TableFactor::Table { name, partitions, .. } = factor else { return };
    let place = name.0.last().and_then(ObjectNamePart::as_ident).map(|last| last.span);
    if let Some(at) = cuts.iter().position(|cut| cut.behind == place) {
        cuts.swap_remove(at);
        partitions.push(Ident::new(MARK));
    }
}

/// Returns whether a table's partitions came from here.
pub fn is_ours(partitions: &[Ident]) -> bool {
    matches!(partitions, [mark] if mark.value.starts_with(MARK))
}

pub fn write(factor: &mut TableFactor) {
    if let TableFactor::Table { name, partitions, .. } = factor
        && is_ours(partitions)
        && let Some(ObjectNamePart::Identifier(first)) = name.0.first_mut()
    {
        partitions.clear();
        *first = Ident::new(format!("ONLY {first}"));
    }
}
