//! The parser's dialects with what databases accept and the parser does not know.
//!
//! Each wraps the parser's own dialect, hands every question on to it, and adds operators.

mod postgres;
mod sqlite;

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

pub use postgres::Postgres;
pub use sqlite::Sqlite;

/// Returns whether a word has a meaning for the parser because of other databases, and is a plain name in SQLite and
/// Postgres.
pub fn is_name(keyword: Keyword) -> bool {
    use Keyword as K;
    matches!(
        keyword,
        K::ANTI
            | K::ASOF
            | K::CLUSTER
            | K::CONNECT
            | K::DISTRIBUTE
            | K::DIV
            | K::FORMAT
            | K::GLOBAL
            | K::MATCH_CONDITION
            | K::MATCH_RECOGNIZE
            | K::MINUS
            | K::OPEN
            | K::OUTPUT
            | K::PIVOT
            | K::PREWHERE
            | K::QUALIFY
            | K::SAMPLE
            | K::SEMI
            | K::SETTINGS
            | K::SORT
            | K::START
            | K::TOP
            | K::UNPIVOT
            | K::VIEW
            | K::XOR
    )
}

/// Passes questions on to the wrapped dialect: yes-or-no questions, and the characters of names.
macro_rules! as_inner {
    ($($question:ident)*) => {
        $(fn $question(&self) -> bool {
            INNER.$question()
        })*

        fn dialect(&self) -> std::any::TypeId {
            INNER.dialect()
        }

        fn is_delimited_identifier_start(&self, letter: char) -> bool {
            INNER.is_delimited_identifier_start(letter)
        }

        fn is_identifier_start(&self, letter: char) -> bool {
            INNER.is_identifier_start(letter)
        }

        fn is_identifier_part(&self, letter: char) -> bool {
            INNER.is_identifier_part(letter)
        }
    };
}
use as_inner;

pub fn is_name_in_sqlite(keyword: Keyword) -> bool {
    use Keyword as K;
    matches!(
        keyword,
        K::ARRAY
            | K::CONVERT
            | K::CURRENT_USER
            | K::EXTRACT
            | K::INTERVAL
            | K::LATERAL
            | K::LOCALTIME
            | K::LOCALTIMESTAMP
            | K::OVERLAY
            | K::POSITION
            | K::PRIOR
            | K::SESSION_USER
            | K::STRUCT
            | K::TRY_CONVERT
            | K::USER
    )
}

/// Returns whether a token is this word, without quotation marks.
pub fn is_word(token: &Token, text: &str) -> bool {
    matches!(token, Token::Word(w) if w.quote_style.is_none() && w.value.eq_ignore_ascii_case(text))
}

pub fn is_space(token: &Token) -> bool {
    matches!(token, Token::Whitespace(_))
}
