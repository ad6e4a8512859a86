//! The parser's dialects with what databases accept and the parser does not know.
//!
//! Each wraps the parser's own dialect, hands every question on to it, and adds operators.

mod postgres;
mod sqlite;

use sqlparser::tokenizer::Token;

pub use postgres::Postgres;
pub use sqlite::Sqlite;

/// Words that have a meaning for the parser because of other databases, and are plain names in SQLite and Postgres.
pub const NAMES: &str = "
    anti asof cluster connect distribute div format global match_condition match_recognize minus
    open output pivot prewhere qualify sample semi settings sort start top unpivot view xor
";

pub const NAMES_IN_SQLITE: &str = "
    array convert current_user extract interval lateral localtime localtimestamp overlay position
    prior session_user struct try_convert user
";

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

/// Returns whether a list, in lower case and separated by spaces, contains a word in any case.
pub fn lists(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|known| known.eq_ignore_ascii_case(word))
}

/// Returns whether a token is this word, without quotation marks.
pub fn is_word(token: &Token, text: &str) -> bool {
    matches!(token, Token::Word(w) if w.quote_style.is_none() && w.value.eq_ignore_ascii_case(text))
}

pub fn is_space(token: &Token) -> bool {
    matches!(token, Token::Whitespace(_))
}
