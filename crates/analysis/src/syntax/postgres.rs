//! Postgres' syntax: also `BETWEEN SYMMETRIC`, `COLLATE` after any expression, signs that bind as tightly as Postgres
//! binds them, `substring(… SIMILAR …)`, and every form of `trim(…)`.

use sqlparser::ast::{BinaryOperator, Expr, TrimWhereField, UnaryOperator};
use sqlparser::dialect::{Dialect, PostgreSqlDialect, Precedence};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

use super::as_inner;

const INNER: PostgreSqlDialect = PostgreSqlDialect {};
/// The precedence of `COLLATE`, in the parser's numbers.
const COLLATE: u8 = 120;

#[derive(Debug)]
pub struct Postgres;

impl Dialect for Postgres {
    as_inner! {
        supports_unicode_string_literal
        supports_filter_during_aggregation
        supports_group_by_expr
        supports_alter_user_as_alter_role
        allow_extract_custom
        allow_extract_single_quotes
        supports_create_index_with_clause
        supports_explain_with_utility_options
        supports_listen_notify
        supports_exclude_constraint
        supports_factorial_operator
        supports_bitwise_shift_operators
        supports_comment_on
        supports_load_extension
        supports_named_fn_args_with_colon_operator
        supports_named_fn_args_with_expr_name
        supports_empty_projections
        supports_nested_comments
        supports_string_escape_constant
        supports_numeric_literal_underscores
        supports_array_typedef_with_brackets
        supports_geometric_types
        supports_order_by_using_operator
        supports_set_names
        supports_alter_column_type_using
        supports_left_associative_joins_without_parens
        supports_notnull_operator
        supports_interval_options
        supports_insert_table_alias
        supports_create_table_like_parenthesized
        supports_select_wildcard_with_alias
        supports_comma_separated_trim
        supports_xml_expressions
        supports_aliased_function_args
        supports_comment_optimizer_hint
    }

    fn identifier_quote_style(&self, identifier: &str) -> Option<char> {
        INNER.identifier_quote_style(identifier)
    }

    fn is_reserved_for_identifier(&self, keyword: Keyword) -> bool {
        INNER.is_reserved_for_identifier(keyword)
    }

    fn is_table_alias(&self, keyword: &Keyword, parser: &mut Parser<'_>) -> bool {
        INNER.is_table_alias(keyword, parser)
    }

    fn supports_string_literal_concatenation_with_newline(&self) -> bool {
        true
    }

    fn is_custom_operator_part(&self, ch: char) -> bool {
        INNER.is_custom_operator_part(ch)
    }

    fn get_next_precedence(&self, parser: &Parser<'_>) -> Option<Result<u8, ParserError>> {
        INNER.get_next_precedence(parser)
    }

    fn prec_value(&self, precedence: Precedence) -> u8 {
        INNER.prec_value(precedence)
    }

    fn parse_prefix(&self, parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
        let op = match &parser.peek_token_ref().token {
            Token::Minus => UnaryOperator::Minus,
            Token::Plus => UnaryOperator::Plus,
            Token::Word(word) if word.keyword == Keyword::SUBSTRING => {
                let similar = parser
                    .maybe_parse(|parser| substring(parser, self.prec_value(Precedence::Between)));
                return similar.transpose();
            }
            Token::Word(word) if word.keyword == Keyword::TRIM => {
                return parser.maybe_parse(trim).transpose();
            }
            _ => return None,
        };
        parser.advance_token();
        // Only `::` and `[…]` bind more tightly: `-2 ^ 2` is 4.
        let operand = parser.parse_subexpr(COLLATE);
        Some(operand.map(|expr| Expr::UnaryOp { op, expr: Box::new(expr) }))
    }

    fn parse_infix(
        &self,
        parser: &mut Parser<'_>,
        expr: &Expr,
        _: u8,
    ) -> Option<Result<Expr, ParserError>> {
        if parser.parse_keyword(Keyword::COLLATE) {
            let expr = Box::new(expr.clone());
            let collation = parser.parse_object_name(false);
            return Some(collation.map(|collation| Expr::Collate { expr, collation }));
        }
        if let Some(compare_op) = like_all(parser) {
            return Some(all(parser, expr, compare_op));
        }
        let negated = parser.parse_keywords(&[Keyword::NOT, Keyword::BETWEEN, Keyword::SYMMETRIC]);
        if !negated && !parser.parse_keywords(&[Keyword::BETWEEN, Keyword::SYMMETRIC]) {
            return None;
        }
        Some(symmetric(parser, expr, negated, self.prec_value(Precedence::Between)))
    }
}

/// Writes `x BETWEEN SYMMETRIC a AND b` as its meaning: between in either order.
fn symmetric(
    parser: &mut Parser<'_>,
    expr: &Expr,
    negated: bool,
    precedence: u8,
) -> Result<Expr, ParserError> {
    let one = parser.parse_subexpr(precedence)?;
    parser.expect_keyword_is(Keyword::AND)?;
    let other = parser.parse_subexpr(precedence)?;
    let between = |low: &Expr, high: &Expr| {
        Box::new(Expr::Between {
            expr: Box::new(expr.clone()),
            negated,
            low: Box::new(low.clone()),
            high: Box::new(high.clone()),
        })
    };
    let op = if negated { BinaryOperator::And } else { BinaryOperator::Or };
    let either = Expr::BinaryOp { left: between(&one, &other), op, right: between(&other, &one) };
    Ok(Expr::Nested(Box::new(either)))
}

/// Reads `[NOT] {LIKE | ILIKE} ALL` as the operator that it is another word for.
fn like_all(parser: &mut Parser<'_>) -> Option<BinaryOperator> {
    use Keyword::{ALL, ILIKE, LIKE, NOT};
    [
        (&[LIKE, ALL][..], BinaryOperator::PGLikeMatch),
        (&[ILIKE, ALL], BinaryOperator::PGILikeMatch),
        (&[NOT, LIKE, ALL], BinaryOperator::PGNotLikeMatch),
        (&[NOT, ILIKE, ALL], BinaryOperator::PGNotILikeMatch),
    ]
    .into_iter()
    .find_map(|(words, operator)| parser.parse_keywords(words).then_some(operator))
}

/// Reads the array or the query in parentheses whose every value is compared.
fn all(
    parser: &mut Parser<'_>,
    left: &Expr,
    compare_op: BinaryOperator,
) -> Result<Expr, ParserError> {
    parser.expect_token(&Token::LParen)?;
    let right = match parser.maybe_parse(|parser| parser.parse_query())? {
        Some(query) => Expr::Subquery(query),
        None => parser.parse_expr()?,
    };
    parser.expect_token(&Token::RParen)?;
    Ok(Expr::AllOp { left: Box::new(left.clone()), compare_op, right: Box::new(right) })
}

/// Reads `SUBSTRING(text SIMILAR pattern ESCAPE escape)`, another way to write `FROM` and `FOR`.
fn substring(parser: &mut Parser<'_>, precedence: u8) -> Result<Expr, ParserError> {
    parser.expect_keyword_is(Keyword::SUBSTRING)?;
    parser.expect_token(&Token::LParen)?;
    let expr = Box::new(parser.parse_subexpr(precedence)?);
    parser.expect_keyword_is(Keyword::SIMILAR)?;
    let substring_from = Some(Box::new(parser.parse_subexpr(precedence)?));
    parser.expect_keyword_is(Keyword::ESCAPE)?;
    let substring_for = Some(Box::new(parser.parse_subexpr(precedence)?));
    parser.expect_token(&Token::RParen)?;
    Ok(Expr::Substring { expr, substring_from, substring_for, special: false, shorthand: false })
}

/// Reads `TRIM([BOTH | LEADING | TRAILING] [characters FROM] text, …)`, each part of which can be missing.
fn trim(parser: &mut Parser<'_>) -> Result<Expr, ParserError> {
    parser.expect_keyword_is(Keyword::TRIM)?;
    parser.expect_token(&Token::LParen)?;
    let trim_where = [
        (Keyword::BOTH, TrimWhereField::Both),
        (Keyword::LEADING, TrimWhereField::Leading),
        (Keyword::TRAILING, TrimWhereField::Trailing),
    ];
    let trim_where = trim_where.into_iter().find(|(word, _)| parser.parse_keyword(*word));
    let mut parts = Vec::new();
    if !parser.peek_keyword(Keyword::FROM) {
        parts = parser.parse_comma_separated(Parser::parse_expr)?;
    }
    if parser.parse_keyword(Keyword::FROM) {
        let mut of = parser.parse_comma_separated(Parser::parse_expr)?;
        of.append(&mut parts);
        parts = of;
    }
    parser.expect_token(&Token::RParen)?;
    let expr = Box::new(parts.remove(0));
    let trim_where = trim_where.map(|(_, place)| place);
    Ok(Expr::Trim { expr, trim_where, trim_what: None, trim_characters: Some(parts) })
}
