//! Clauses that databases know and the parser does not: a window frame's `EXCLUDE`, `SEARCH` and `CYCLE`
//! after a recursive `WITH` query, `ONLY` before a table, and `OPTION (MAXRECURSION n)` at a statement's end.
//!
//! Enter at [`cut`], which removes them from the tokens; [`attach`] adds them to the tree at their places, [`written`]
//! restores them. Invariant: restored text is one of five fixed texts, or a clause whose every word was read here; a
//! statement that contains [`MARK`] is rejected, so no statement can name a clause itself. Deliberately absent: the
//! meaning of names in a clause, which the guard checks.

mod frames;
mod hint;
mod only;
mod recursion;

use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, Ident, Select, Statement, TableFactor, Value, ValueWithSpan, VisitMut, VisitorMut,
};
use sqlparser::tokenizer::{Span, Token, TokenWithSpan, Whitespace};

use crate::Dialect;
use crate::syntax::{is_space, is_word};

pub use hint::is_ours as is_hint;
pub use only::is_ours as is_only;
pub use recursion::Recursion;

/// Precedes a cut; statements must not contain it.
pub const MARK: char = '\0';

pub struct Cut {
    /// The parenthesis before it, or the name after `ONLY`; `None` at the end of the statement.
    behind: Option<Span>,
    clause: String,
}

pub fn cut(tokens: Vec<TokenWithSpan>, dialect: Dialect) -> (Vec<TokenWithSpan>, Vec<Cut>) {
    match dialect {
        Dialect::Sqlite => (frames::cut(tokens), Vec::new()),
        Dialect::Postgres => {
            let (tokens, mut cuts) = recursion::cut(frames::cut(tokens));
            let (tokens, of_tables) = only::cut(tokens);
            cuts.extend(of_tables);
            (tokens, cuts)
        }
        Dialect::TSql => {
            let (tokens, hint) = hint::cut(tokens);
            (tokens, hint.into_iter().map(|clause| Cut { behind: None, clause }).collect())
        }
        Dialect::DuckDb => (tokens, Vec::new()),
    }
}

/// Adds the clauses to the tree; false if one was at an unsupported place.
pub fn attach(statement: &mut Statement, cuts: Vec<Cut>) -> bool {
    if cuts.is_empty() {
        return true;
    }
    let (of_queries, at_end): (Vec<_>, Vec<_>) =
        cuts.into_iter().partition(|cut| cut.behind.is_some());
    for cut in at_end {
        let Statement::Query(query) = statement else { return false };
        hint::hang_on(query, &cut.clause);
    }
    let mut hanger = recursion::Hanger { cuts: of_queries };
    let ControlFlow::Continue(()) = statement.visit(&mut hanger);
    hanger.cuts.is_empty()
}

/// Writes a statement with its clauses, and removes their marks from the tree; `None` if one is at an unsupported
/// place.
pub fn written(statement: &mut Statement) -> Option<String> {
    let ControlFlow::Continue(()) = statement.visit(&mut Writer);
    let text = statement.to_string();
    let text = text.replace(&format!(" FROM {MARK}"), " ").replace(&format!(" FORMAT {MARK}"), " ");
    (!text.contains(MARK)).then_some(text)
}

/// Prepares a tree for its text.
///
/// The parser writes a quotation mark in a text once or twice, depending on the character next to it. A mark that is
/// doubled in the tree is always written twice.
struct Writer;

impl VisitorMut for Writer {
    type Break = std::convert::Infallible;

    fn pre_visit_value(&mut self, value: &mut ValueWithSpan) -> ControlFlow<Self::Break> {
        if let Value::SingleQuotedString(text) | Value::NationalStringLiteral(text) =
            &mut value.value
        {
            *text = text.replace('\'', "''");
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_ident(&mut self, ident: &mut Ident) -> ControlFlow<Self::Break> {
        if let Some(quote) = ident.quote_style {
            let end = if quote == '[' { ']' } else { quote };
            ident.value = ident.value.replace(end, &format!("{end}{end}"));
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        if let Expr::Function(function) = expr {
            frames::write_call(function);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<Self::Break> {
        frames::write_named(select);
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Self::Break> {
        only::write(factor);
        ControlFlow::Continue(())
    }
}

/// A place among tokens that looks at words only.
struct Reader<'a> {
    tokens: &'a [TokenWithSpan],
    at: usize,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Option<&'a Token> {
        let rest = self.tokens.get(self.at..)?;
        let step = rest.iter().position(|token| !is_space(&token.token))?;
        self.at += step + 1;
        Some(&rest[step].token)
    }

    fn peek(&self) -> Option<&'a Token> {
        Reader { tokens: self.tokens, at: self.at }.next()
    }

    /// Skips these words, or stays in place.
    fn words(&mut self, words: &[&str]) -> bool {
        let before = self.at;
        let all = words.iter().all(|word| self.next().is_some_and(|token| is_word(token, word)));
        if !all {
            self.at = before;
        }
        all
    }
}

fn space() -> Token {
    Token::Whitespace(Whitespace::Space)
}
