//! Clauses that databases know and the parser does not: a window frame's `EXCLUDE`, `SEARCH` and `CYCLE`
//! after a recursive `WITH` query, and `OPTION (MAXRECURSION n)` at a statement's end.
//!
//! Enter at [`cut`], which takes them out of the tokens; [`attach`] hangs them on the tree where they stood, [`written`] puts
//! them back. Invariant: what is put back is one of four fixed texts, or a clause whose every word was read
//! here; a text of a statement that holds [`MARK`] is refused, so that no statement can name a clause itself.
//! Deliberately absent: what the names of a clause mean, which is for the guard.

mod frames;
mod hint;
mod recursion;

use std::ops::ControlFlow;

use sqlparser::ast::{Expr, Select, Statement, VisitMut, VisitorMut};
use sqlparser::tokenizer::{Span, Token, TokenWithSpan, Whitespace};

use crate::Dialect;

pub use hint::is_ours as is_hint;
pub use recursion::Recursion;

/// Stands before what was cut out; no statement may hold it.
pub const MARK: char = '\0';

/// A clause that was cut out.
pub struct Cut {
    /// The parenthesis before it; none where it ended the statement.
    behind: Option<Span>,
    clause: String,
}

/// Takes the clauses out of a statement's tokens.
pub fn cut(tokens: Vec<TokenWithSpan>, dialect: Dialect) -> (Vec<TokenWithSpan>, Vec<Cut>) {
    match dialect {
        Dialect::Sqlite => (frames::cut(tokens), Vec::new()),
        Dialect::Postgres => recursion::cut(frames::cut(tokens)),
        Dialect::TSql => {
            let (tokens, hint) = hint::cut(tokens);
            (tokens, hint.into_iter().map(|clause| Cut { behind: None, clause }).collect())
        }
        Dialect::DuckDb => (tokens, Vec::new()),
    }
}

/// Hangs the clauses on the tree; false where one stood somewhere else.
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

/// Writes a statement with its clauses, which takes their marks off the tree; nothing where one stands at a place
/// that has none.
pub fn written(statement: &mut Statement) -> Option<String> {
    let ControlFlow::Continue(()) = statement.visit(&mut Writer);
    let text = statement.to_string();
    let text = text.replace(&format!(" FROM {MARK}"), " ").replace(&format!(" FORMAT {MARK}"), " ");
    (!text.contains(MARK)).then_some(text)
}

struct Writer;

impl VisitorMut for Writer {
    type Break = std::convert::Infallible;

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

    /// Passes by these words, or stays where it is.
    fn words(&mut self, words: &[&str]) -> bool {
        let before = self.at;
        let all = words.iter().all(|word| self.next().is_some_and(|token| is_word(token, word)));
        if !all {
            self.at = before;
        }
        all
    }
}

fn is_space(token: &Token) -> bool {
    matches!(token, Token::Whitespace(_))
}

fn is_word(token: &Token, text: &str) -> bool {
    matches!(token, Token::Word(w) if w.quote_style.is_none() && w.value.eq_ignore_ascii_case(text))
}

fn space() -> Token {
    Token::Whitespace(Whitespace::Space)
}
