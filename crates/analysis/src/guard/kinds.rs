//! The operators and types that a statement may use. Lists of the permitted, like that of functions.

use sqlparser::ast::{BinaryOperator, DataType};

use super::Refusal;

pub fn is_allowed_operator(op: &BinaryOperator) -> bool {
    use BinaryOperator as B;
    if let B::Custom(words) = op {
        return matches!(words.as_str(), "NOT GLOB" | "NOT MATCH" | "NOT REGEXP" | "-|-");
    }
    matches!(
        op,
        B::Plus
            | B::Minus
            | B::Multiply
            | B::Divide
            | B::Modulo
            | B::StringConcat
            | B::Gt
            | B::Lt
            | B::GtEq
            | B::LtEq
            | B::Eq
            | B::NotEq
            | B::And
            | B::Or
            | B::BitwiseOr
            | B::BitwiseAnd
            | B::Glob
            | B::PGBitwiseXor
            | B::PGBitwiseShiftLeft
            | B::PGBitwiseShiftRight
            | B::PGExp
            | B::PGOverlap
            | B::PGRegexMatch
            | B::PGRegexIMatch
            | B::PGRegexNotMatch
            | B::PGRegexNotIMatch
            | B::PGStartsWith
            | B::Arrow
            | B::LongArrow
            | B::HashArrow
            | B::HashLongArrow
            | B::AtArrow
            | B::ArrowAt
            | B::Question
            | B::QuestionAnd
            | B::QuestionPipe
            | B::AtQuestion
            | B::AtAt
            | B::HashMinus
            | B::Overlaps
            | B::Regexp
            | B::Match
            | B::PGLikeMatch
            | B::PGILikeMatch
            | B::PGNotLikeMatch
            | B::PGNotILikeMatch
            | B::DuckIntegerDivide
    )
}

/// Accepts the everyday types by name; `regclass` and user-defined types call their own functions.
pub fn plain_type(data_type: &DataType) -> Result<(), Refusal> {
    const TYPES: &str = "\
        bigint, bit, bit varying, blob, bool, boolean, box, bytea, char, character, \
        character varying, cidr, circle, date, datemultirange, daterange, datetime, datetime2, datetimeoffset, decimal, double, double precision, \
        float, float4, float8, inet, int, int2, int4, int4multirange, int4range, int8, \
        int8multirange, int8range, integer, interval, json, jsonb, jsonpath, lseg, macaddr, macaddr8, money, name, numeric, nummultirange, numrange, \
        nvarchar, path, point, polygon, real, signed, smalldatetime, \
        smallint, text, time, time with time zone, time without time zone, timetz, timestamp, \
        timestamp with time zone, timestamp without time zone, timestamptz, tinyint, tsquery, \
        tsmultirange, tsrange, tstzmultirange, tstzrange, tsvector, uniqueidentifier, unsigned, uuid, varbit, varchar";
    let shown = data_type.to_string();
    let mut bare = String::new();
    // Lengths and precisions only: a quoted modifier is in the tree without its quotation marks.
    let mut is_plain = true;
    let mut is_inside = false;
    for c in shown.to_ascii_lowercase().chars() {
        match c {
            '(' if !is_inside => is_inside = true,
            ')' => is_inside = false,
            c if is_inside => is_plain &= c.is_ascii_alphanumeric() || matches!(c, ',' | ' ' | '-'),
            c => bare.push(c),
        }
    }
    let bare = bare.trim_end_matches("[]").trim();
    if is_plain && TYPES.split(", ").any(|known| known == bare) {
        Ok(())
    } else {
        Err(Refusal::Construct(format!("the type {shown}")))
    }
}
