//! Decides whether a model's SQL may run: one reading query over the permitted tables, or a refusal.
//!
//! Enter at [`guard`]. Invariant: the statement that runs is written again from its syntax tree, never the model's
//! text, with every name quoted and every table named with its schema; statements that are not known to be harmless are
//! rejected. Deliberately absent: any database; the layers below (read-only connection, authorizer, limits) do not rely
//! on this one.

mod bind;
mod caps;
mod counting;
mod functions;
mod kinds;
mod normal;
mod policy;
mod scope;
mod shapes;
mod visit;

#[cfg(test)]
mod accepted_tests;
#[cfg(test)]
mod cases_tests;
#[cfg(test)]
mod places_tests;
#[cfg(test)]
mod server_tests;

pub use functions::{
    OF_EXTENSIONS as EXTENSION_FUNCTIONS, allowed_functions, is_allowed_function,
    is_allowed_table_function,
};
pub(crate) use policy::shown;
pub use policy::{Permitted, Policy, TableName, table_hint};

use std::convert::Infallible;
use std::ops::ControlFlow;

use sqlparser::ast::{
    DescribeAlias, Statement, UtilityOption, Value, ValueWithSpan, Visit, Visitor,
};
use sqlparser::parser::{Parser, ParserError};

use crate::on_large_stack;
use crate::syntax::is_space;
use crate::{Dialect, clauses};

/// Longest accepted statement, in bytes.
const MAX_BYTES: usize = 32 * 1024;
/// Most tokens of a statement; bounds the depth of chains like `1+1+1…`, which the parser builds in a loop.
const MAX_TOKENS: usize = 4_000;
/// Deepest nesting that the parser follows.
const MAX_DEPTH: usize = 50;
/// How much longer a statement may become when it is written again with full names.
const GROWTH: usize = 8;

/// A statement that passed the guard; only such statements are sent to a database on a model's behalf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guarded {
    sql: String,
    tables: Vec<TableName>,
    /// Names of its columns, if they are known.
    columns: Vec<String>,
    /// Bytes of the `EXPLAIN …` before the query.
    explain: usize,
}

impl Guarded {
    pub fn as_str(&self) -> &str {
        &self.sql
    }

    /// Returns the query, without an EXPLAIN before it.
    pub fn query(&self) -> &str {
        &self.sql[self.explain..]
    }

    /// Returns whether the statement requests the plan of a query and not its rows.
    pub fn explains(&self) -> bool {
        self.explain > 0
    }

    /// Returns the tables that it reads, by name, each once.
    pub fn tables(&self) -> &[TableName] {
        &self.tables
    }

    /// Returns a name that several columns of the result have.
    pub fn repeated_column(&self) -> Option<&String> {
        let mut columns = self.columns.iter().enumerate();
        let repeated = columns.find(|(at, name)| self.columns[..*at].contains(name));
        repeated.map(|(_, name)| name)
    }

    /// Vouches for a statement written in the program, with identifiers quoted by the caller.
    pub fn ours(sql: String) -> Self {
        Self { sql, tables: Vec::new(), columns: Vec::new(), explain: 0 }
    }
}

/// Why a statement was refused; the text is meant for the model, which repairs and tries again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error(
        "the statement is too long; at most {MAX_BYTES} bytes and {MAX_TOKENS} tokens are read"
    )]
    TooLong,
    #[error("the statement nests too deeply; at most {MAX_DEPTH} levels are read")]
    TooDeep,
    #[error("cannot parse the statement: {0}")]
    Syntax(String),
    #[error("send exactly one statement; found: {0}")]
    NotOneStatement(usize),
    #[error("only a single SELECT may run here (WITH and UNION are fine); refused: {0}")]
    NotASelect(String),
    #[error("no such table among the permitted ones: {name}{hint}")]
    Table { name: String, hint: String },
    #[error("no such column: {name}{hint}")]
    Column { name: String, hint: String },
    #[error("this function is not permitted: {0}")]
    Function(String),
    #[error("this construct is not permitted: {0}")]
    Construct(String),
    #[error("the row filter of {table}, set by the operator, cannot be used: {reason}")]
    Filter { table: String, reason: String },
}

impl From<ParserError> for Refusal {
    fn from(error: ParserError) -> Self {
        match error {
            ParserError::RecursionLimitExceeded => Self::TooDeep,
            ParserError::ParserError(text) | ParserError::TokenizerError(text) => {
                Self::Syntax(text)
            }
        }
    }
}

/// Checks one statement and returns it written again from its syntax tree.
///
/// # Errors
/// A [`Refusal`] with the necessary change.
pub fn guard(sql: &str, dialect: Dialect, policy: &Policy) -> Result<Guarded, Refusal> {
    on_large_stack(|| guarded(sql, dialect, policy))
}

fn guarded(sql: &str, dialect: Dialect, policy: &Policy) -> Result<Guarded, Refusal> {
    let (explain, mut statement) = explained(parse(sql, dialect)?, dialect)?;
    normal::form(&mut statement, dialect);
    check(&statement, dialect, policy)?;
    let bind::Bindings { tables, columns } = bind::bind(&mut statement, dialect, policy)?;
    let texts = Texts::of(&statement);
    let written = text(&mut statement)?;
    // What will run is parsed and checked itself: a flaw in the writer must not open a way round.
    let mut again = read(&written, dialect, GROWTH)?;
    check(&again, dialect, policy)?;
    if Texts::of(&again) != texts || text(&mut again)? != written {
        return Err(Refusal::Construct("a statement that does not read back as written".into()));
    }
    Ok(Guarded { sql: format!("{explain}{written}"), tables, columns, explain: explain.len() })
}

/// Separates a query from the EXPLAIN before it, if that only requests the plan.
fn explained(statement: Statement, dialect: Dialect) -> Result<(String, Statement), Refusal> {
    let Statement::Explain {
        describe_alias: DescribeAlias::Explain,
        analyze,
        verbose: false,
        query_plan,
        estimate: false,
        statement,
        format: None,
        options,
    } = statement
    else {
        return Ok((String::new(), statement));
    };
    let options = options.unwrap_or_default();
    let is_plain = |option: &UtilityOption| {
        let value = option.arg.as_ref().map(ToString::to_string).unwrap_or_default();
        let values: &[&str] = match option.name.value.to_ascii_lowercase().as_str() {
            "costs" => &["", "on", "off", "true", "false"],
            "format" => &["text", "json", "xml", "yaml"],
            _ => &[],
        };
        values.contains(&value.to_ascii_lowercase().as_str())
    };
    if analyze || !options.iter().all(is_plain) {
        let what = "EXPLAIN with ANALYZE or an option other than COSTS and FORMAT";
        return Err(Refusal::Construct(what.into()));
    }
    let options: Vec<String> = options.iter().map(ToString::to_string).collect();
    let written = match dialect {
        Dialect::Sqlite if query_plan => "EXPLAIN QUERY PLAN ".to_owned(),
        Dialect::Postgres if !query_plan && !options.is_empty() => {
            format!("EXPLAIN ({}) ", options.join(", "))
        }
        Dialect::Sqlite | Dialect::Postgres if !query_plan => "EXPLAIN ".to_owned(),
        _ => return Err(Refusal::Construct("EXPLAIN".into())),
    };
    Ok((written, *statement))
}

/// The texts of a statement, sorted: one that ends early when it is read becomes another one.
#[derive(PartialEq)]
struct Texts(Vec<String>);

impl Texts {
    fn of(statement: &Statement) -> Self {
        let mut texts = Self(Vec::new());
        let ControlFlow::Continue(()) = statement.visit(&mut texts);
        texts.0.sort_unstable();
        texts
    }
}

impl Visitor for Texts {
    type Break = Infallible;

    fn pre_visit_value(&mut self, value: &ValueWithSpan) -> ControlFlow<Infallible> {
        if let Value::SingleQuotedString(text) | Value::NationalStringLiteral(text) = &value.value {
            self.0.push(text.clone());
        }
        ControlFlow::Continue(())
    }
}

fn text(statement: &mut Statement) -> Result<String, Refusal> {
    let misplaced =
        || Refusal::Construct("EXCLUDE, SEARCH, CYCLE or ONLY in an unusual place".into());
    clauses::written(statement).ok_or_else(misplaced)
}

/// Parses one statement within the bounds of the guard.
pub(crate) fn parse(sql: &str, dialect: Dialect) -> Result<Statement, Refusal> {
    read(sql, dialect, 1)
}

/// As [`parse`], for the guard's output, which can be longer.
pub(crate) fn parse_generated(sql: &str, dialect: Dialect) -> Result<Statement, Refusal> {
    read(sql, dialect, GROWTH)
}

fn read(sql: &str, dialect: Dialect, growth: usize) -> Result<Statement, Refusal> {
    if sql.len() > MAX_BYTES * growth {
        return Err(Refusal::TooLong);
    }
    if sql.contains(clauses::MARK) {
        return Err(Refusal::Syntax("the statement contains a NUL character".into()));
    }
    let tokens = dialect.tokens(sql)?;
    let words = tokens.iter().filter(|token| !is_space(&token.token)).count();
    if words > MAX_TOKENS * growth {
        return Err(Refusal::TooLong);
    }
    let (tokens, cuts) = clauses::cut(tokens, dialect);
    let mut statements = Parser::new(dialect.syntax())
        .with_recursion_limit(MAX_DEPTH)
        .with_tokens_with_locations(tokens)
        .parse_statements()?;
    match (statements.pop(), statements.len()) {
        (Some(mut statement), 0) => {
            if clauses::attach(&mut statement, cuts) {
                Ok(statement)
            } else {
                Err(Refusal::Construct(
                    "SEARCH or CYCLE outside WITH, ONLY before what is no table, or OPTION after what is no query".into(),
                ))
            }
        }
        (Some(_), others) => Err(Refusal::NotOneStatement(others + 1)),
        (None, _) => Err(Refusal::NotOneStatement(0)),
    }
}

fn check(statement: &Statement, dialect: Dialect, policy: &Policy) -> Result<(), Refusal> {
    if !matches!(statement, Statement::Query(_)) {
        return Err(Refusal::NotASelect(shapes::first_word(statement)));
    }
    match statement.visit(&mut visit::Inspector::new(dialect, policy)) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(refusal) => Err(*refusal),
    }
}
