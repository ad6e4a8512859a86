//! Postgres' complaints, without the values that they quote.
//!
//! A condition of the statement may be evaluated on rows that a view leaves out, and the complaint would then
//! quote what nobody may see: `invalid input syntax for type integer: "the hidden text"`.

use sqlx::postgres::PgDatabaseError;

use crate::Error;

/// The class of codes for errors of the statement's text, which quote names and no values.
const TEXT_ERRORS: &str = "42";

pub fn database_error(error: sqlx::Error) -> Error {
    let sqlx::Error::Database(error) = error else {
        return Error::Database { message: error.to_string(), hint: String::new() };
    };
    let of_text = error.code().is_some_and(|code| code.starts_with(TEXT_ERRORS));
    let mut message = error.message().to_owned();
    if of_text {
        if let Some(error) = error.try_downcast_ref::<PgDatabaseError>() {
            for more in [error.detail(), error.hint()].into_iter().flatten() {
                message.push_str(&format!(" ({more})"));
            }
        }
    } else {
        message = without_values(&message);
    }
    Error::Database { message, hint: String::new() }
}

/// Leaves out what stands in double quotes, but for names of types.
fn without_values(message: &str) -> String {
    let mut shown = String::new();
    for (at, part) in message.split('"').enumerate() {
        if at % 2 == 0 {
            shown.push_str(part);
        } else {
            shown.push('…');
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::without_values;

    #[test]
    fn a_value_in_a_complaint_is_left_out() {
        let text = "invalid input syntax for type integer: \"hidden \" text\"";
        assert_eq!(without_values(text), "invalid input syntax for type integer: … text…");
        assert_eq!(without_values("division by zero"), "division by zero");
    }
}
