//! Postgres' `SEARCH` and `CYCLE` after a recursive `WITH` query.

use std::fmt;
use std::ops::ControlFlow;

use sqlparser::ast::{Cte, Ident, Query, TableFactor, VisitorMut};
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

use super::{Cut, MARK, Reader, only};
use crate::Dialect;

/// In which order the rows are found, as a column by which to sort.
#[derive(Debug, PartialEq, Eq)]
pub struct Search {
    /// `DEPTH` or `BREADTH`.
    order: &'static str,
    pub by: Vec<Ident>,
    pub column: Ident,
}

/// How an earlier row is found, with the columns that mark it.
#[derive(Debug, PartialEq, Eq)]
pub struct Cycle {
    pub of: Vec<Ident>,
    pub mark: Ident,
    /// The values of the mark for an earlier row, and for another one, as literals.
    values: Option<(String, String)>,
    pub path: Ident,
}

/// The text after a `WITH` query.
#[derive(Debug, PartialEq, Eq)]
pub struct Recursion {
    pub search: Option<Search>,
    pub cycle: Option<Cycle>,
}

impl Recursion {
    /// Reads what [`attach`](super::attach) hung on a `WITH` query.
    pub fn of(cte: &Cte) -> Option<Self> {
        let text = cte.from.as_ref()?.value.strip_prefix(MARK)?;
        let dialect = Dialect::Postgres.syntax();
        let tokens = Tokenizer::new(dialect, text).tokenize_with_location().ok()?;
        let mut reader = Reader { tokens: &tokens, at: 0 };
        let read = Self::read(&mut reader);
        read.filter(|_| reader.peek().is_none())
    }

    pub fn hang_on(&self, cte: &mut Cte) {
        cte.from = Some(Ident::new(format!("{MARK}{self}")));
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let search = if reader.words(&["search"]) { Some(search(reader)?) } else { None };
        let cycle = if reader.words(&["cycle"]) { Some(cycle(reader)?) } else { None };
        (search.is_some() || cycle.is_some()).then_some(Self { search, cycle })
    }
}

fn search(reader: &mut Reader<'_>) -> Option<Search> {
    let order = if reader.words(&["depth", "first", "by"]) {
        "DEPTH"
    } else if reader.words(&["breadth", "first", "by"]) {
        "BREADTH"
    } else {
        return None;
    };
    let by = names(reader)?;
    let column = reader.words(&["set"]).then(|| name(reader))??;
    Some(Search { order, by, column })
}

fn cycle(reader: &mut Reader<'_>) -> Option<Cycle> {
    let of = names(reader)?;
    let mark = reader.words(&["set"]).then(|| name(reader))??;
    let values = if reader.words(&["to"]) {
        let there = literal(reader)?;
        let other = reader.words(&["default"]).then(|| literal(reader))??;
        Some((there, other))
    } else {
        None
    };
    let path = reader.words(&["using"]).then(|| name(reader))??;
    Some(Cycle { of, mark, values, path })
}

fn name(reader: &mut Reader<'_>) -> Option<Ident> {
    match reader.next()? {
        Token::Word(word) if matches!(word.quote_style, None | Some('"')) => {
            Some(Ident { quote_style: word.quote_style, ..Ident::new(word.value.clone()) })
        }
        _ => None,
    }
}

fn names(reader: &mut Reader<'_>) -> Option<Vec<Ident>> {
    let mut names = vec![name(reader)?];
    while reader.peek() == Some(&Token::Comma) {
        reader.next();
        names.push(name(reader)?);
    }
    Some(names)
}

/// Reads a literal whose text the writer can repeat.
fn literal(reader: &mut Reader<'_>) -> Option<String> {
    match reader.next()? {
        Token::SingleQuotedString(text) => Some(format!("'{}'", text.replace('\'', "''"))),
        Token::Number(number, false) => Some(number.clone()),
        Token::Word(word) if word.quote_style.is_none() => {
            let value = word.value.to_ascii_uppercase();
            matches!(value.as_str(), "TRUE" | "FALSE").then_some(value)
        }
        _ => None,
    }
}

fn listed(names: &[Ident]) -> String {
    names.iter().map(Ident::to_string).collect::<Vec<_>>().join(", ")
}

impl fmt::Display for Recursion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(Search { order, by, column }) = &self.search {
            write!(f, "SEARCH {order} FIRST BY {} SET {column}", listed(by))?;
        }
        if let Some(Cycle { of, mark, values, path }) = &self.cycle {
            let gap = if self.search.is_some() { " " } else { "" };
            write!(f, "{gap}CYCLE {} SET {mark}", listed(of))?;
            if let Some((there, other)) = values {
                write!(f, " TO {there} DEFAULT {other}")?;
            }
            write!(f, " USING {path}")?;
        }
        Ok(())
    }
}

/// Takes each clause that follows a closing parenthesis out of the tokens.
pub fn cut(tokens: Vec<TokenWithSpan>) -> (Vec<TokenWithSpan>, Vec<Cut>) {
    let mut kept = Vec::with_capacity(tokens.len());
    let mut cuts = Vec::new();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        kept.push(token.clone());
        at += 1;
        if token.token != Token::RParen {
            continue;
        }
        let mut reader = Reader { tokens: &tokens, at };
        if let Some(clause) = Recursion::read(&mut reader) {
            cuts.push(Cut { behind: Some(token.span), clause: clause.to_string() });
            at = reader.at;
        }
    }
    (kept, cuts)
}

/// Adds each clause to the `WITH` query whose closing parenthesis precedes it, and each `ONLY` to its table.
pub struct Hanger {
    pub cuts: Vec<Cut>,
}

impl VisitorMut for Hanger {
    type Break = std::convert::Infallible;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        for cte in query.with.iter_mut().flat_map(|with| &mut with.cte_tables) {
            let place = cte.closing_paren_token.0.span;
            if let Some(at) = self.cuts.iter().position(|cut| cut.behind == Some(place)) {
                let cut = self.cuts.swap_remove(at);
                cte.from = Some(Ident::new(format!("{MARK}{}", cut.clause)));
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Self::Break> {
        only::hang_on(factor, &mut self.cuts);
        ControlFlow::Continue(())
    }
}
