//! The SQL that a database speaks, and how it reads and writes names.

use sqlparser::ast::Ident;
use sqlparser::dialect::{DuckDbDialect, MsSqlDialect};
use sqlparser::keywords::Keyword;
use sqlparser::parser::ParserError;
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer, Whitespace};

use crate::literals;

use crate::syntax::{NAMES, NAMES_IN_SQLITE, Postgres, Sqlite, is_space, is_word, lists};

/// Longest name that Postgres keeps; longer ones are cut, and could then mean something else.
pub(crate) const POSTGRES_NAME_BYTES: usize = 63;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    Sqlite,
    Postgres,
    DuckDb,
    /// SQL Server's; statements are checked here and run elsewhere.
    TSql,
}

impl Dialect {
    pub fn title(self) -> &'static str {
        match self {
            Self::Sqlite => "SQLite",
            Self::Postgres => "PostgreSQL",
            Self::DuckDb => "DuckDB",
            Self::TSql => "SQL Server (T-SQL)",
        }
    }

    pub(crate) fn syntax(self) -> &'static dyn sqlparser::dialect::Dialect {
        match self {
            Self::Sqlite => &Sqlite,
            Self::Postgres => &Postgres,
            Self::DuckDb => &DuckDbDialect {},
            Self::TSql => &MsSqlDialect {},
        }
    }

    pub(crate) fn tokens(self, sql: &str) -> Result<Vec<TokenWithSpan>, ParserError> {
        let tokens = Tokenizer::new(self.syntax(), sql).tokenize_with_location()?;
        let mut tokens = literals::as_written(tokens, sql, self)?;
        for token in &mut tokens {
            if let Token::Word(word) = &mut token.token
                && (matches!(self, Self::Sqlite | Self::Postgres) && lists(NAMES, &word.value)
                    || self == Self::Sqlite && lists(NAMES_IN_SQLITE, &word.value))
            {
                word.keyword = Keyword::NoKeyword;
            }
        }
        Ok(match self {
            Self::Sqlite => without_hints(in_two_words(tokens)),
            Self::Postgres => whole_tables(in_two_words(tokens)),
            Self::DuckDb | Self::TSql => tokens,
        })
    }

    /// Returns the name under which the database would look the identifier up.
    pub(crate) fn fold(self, ident: &Ident) -> String {
        match (self, ident.quote_style) {
            (Self::Postgres, Some(_)) => ident.value.clone(),
            // Postgres folds by its own rules beyond ASCII; such names must be quoted to be found.
            _ => ident.value.to_ascii_lowercase(),
        }
    }

    pub fn same(self, known: &str, folded: &str) -> bool {
        match self {
            Self::Postgres => known == folded,
            _ => known.eq_ignore_ascii_case(folded),
        }
    }

    /// Returns whether a `WITH` query can name itself without the word RECURSIVE.
    pub(crate) fn recursion_is_implied(self) -> bool {
        matches!(self, Self::TSql | Self::Sqlite)
    }

    /// Returns whether earlier `WITH` queries see a `WITH` query, which then hides a table of its name.
    pub(crate) fn sees_ahead(self, is_recursive: bool) -> bool {
        is_recursive || self == Self::Sqlite
    }

    pub(crate) fn quote_mark(self) -> char {
        if self == Self::TSql { '[' } else { '"' }
    }

    /// Writes a name so that the database reads it as a name, whatever it looks like.
    pub fn quote(self, name: &str) -> String {
        match self {
            Self::TSql => format!("[{}]", name.replace(']', "]]")),
            _ => format!("\"{}\"", name.replace('"', "\"\"")),
        }
    }
}

/// Writes `x ISNULL` as `x IS NULL`, which the parser knows.
fn in_two_words(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let parted = |token: TokenWithSpan| {
        if !is_word(&token.token, "isnull") {
            return vec![token];
        }
        let words = [
            Token::make_keyword("IS"),
            Token::Whitespace(Whitespace::Space),
            Token::make_keyword("NULL"),
        ];
        words.map(|word| TokenWithSpan::new(word, token.span)).into()
    };
    tokens.into_iter().flat_map(parted).collect()
}

/// Writes Postgres' `TABLE x` as `SELECT * FROM x`; the parser would skip the following text.
fn whole_tables(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    const BEFORE: [&str; 5] = ["union", "except", "intersect", "all", "distinct"];
    let mut kept: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    let mut last: Option<Token> = None;
    for token in tokens {
        let begins = match &last {
            None | Some(Token::LParen) => true,
            Some(before) => BEFORE.iter().any(|word| is_word(before, word)),
        };
        if begins && is_word(&token.token, "table") {
            let space = || Token::Whitespace(Whitespace::Space);
            let written = [
                Token::make_keyword("SELECT"),
                space(),
                Token::Mul,
                space(),
                Token::make_keyword("FROM"),
            ];
            last = written.last().cloned();
            kept.extend(written.map(|part| TokenWithSpan::new(part, token.span)));
            continue;
        }
        if !is_space(&token.token) {
            last = Some(token.token.clone());
        }
        kept.push(token);
    }
    kept
}

/// Words after which `NOT INDEXED` is an expression over a column of that name.
const BEFORE_EXPRESSIONS: &str = "
    all and as between by case distinct else escape from glob having in is join like limit match
    not offset on or regexp select then when where
";

/// Leaves out SQLite's `[NOT] MATERIALIZED`, `NOT INDEXED` and `INDEXED BY`, hints that change no answer and that
/// the parser does not know.
fn without_hints(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut kept: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    let word_before =
        |kept: &[TokenWithSpan]| kept.iter().rposition(|token| !is_space(&token.token));
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        if is_word(&token.token, "indexed") {
            let names_a_table = |at: usize| {
                let Token::Word(word) = &kept[at].token else {
                    return kept[at].token == Token::RParen;
                };
                word.quote_style.is_some() || !lists(BEFORE_EXPRESSIONS, &word.value)
            };
            let before = word_before(&kept);
            let not = before.filter(|at| is_word(&kept[*at].token, "not"));
            if let Some(at) = not
                && word_before(&kept[..at]).is_some_and(names_a_table)
            {
                kept.truncate(at);
                continue;
            }
            let mut rest = tokens.clone().filter(|token| !is_space(&token.token));
            if before.is_some_and(names_a_table)
                && rest.next().is_some_and(|token| is_word(&token.token, "by"))
                && let Some(index) = rest.next()
            {
                tokens.find(|token| token.span == index.span);
                continue;
            }
        }
        if is_word(&token.token, "materialized") {
            let mut before = word_before(&kept);
            if let Some(at) = before.filter(|at| is_word(&kept[*at].token, "not")) {
                before = word_before(&kept[..at]);
            }
            if let Some(at) = before.filter(|at| is_word(&kept[*at].token, "as")) {
                kept.truncate(at + 1);
                continue;
            }
        }
        kept.push(token);
    }
    kept
}
