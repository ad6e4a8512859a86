//! SQLite's syntax: also shifts and `IS` between any two values.

use sqlparser::ast::{BinaryOperator, Expr, Statement, UnaryOperator};
use sqlparser::dialect::{Dialect, Precedence, SQLiteDialect};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

use super::as_inner;

const INNER: SQLiteDialect = SQLiteDialect {};

#[derive(Debug)]
pub struct Sqlite;

impl Dialect for Sqlite {
    as_inner! {
        supports_filter_during_aggregation
        supports_start_transaction_modifier
        supports_in_empty_list
        supports_limit_comma
        supports_asc_desc_in_column_definition
        supports_dollar_placeholder
        supports_notnull_operator
        supports_comma_separated_trim
        supports_numeric_literal_underscores
    }

    fn identifier_quote_style(&self, _: &str) -> Option<char> {
        Some('"')
    }

    fn supports_bitwise_shift_operators(&self) -> bool {
        true
    }

    fn supports_cross_join_constraint(&self) -> bool {
        true
    }

    fn parse_prefix(&self, parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
        let op = match &parser.peek_token_ref().token {
            Token::Minus => UnaryOperator::Minus,
            Token::Plus => UnaryOperator::Plus,
            Token::Tilde => UnaryOperator::BitwiseNot,
            _ => return None,
        };
        parser.advance_token();
        // Nothing binds more tightly: `~a || b` is `(~a) || b`.
        let operand = parser.parse_subexpr(self.prec_value(Precedence::DoubleColon));
        Some(operand.map(|expr| Expr::UnaryOp { op, expr: Box::new(expr) }))
    }

    fn parse_statement(&self, parser: &mut Parser<'_>) -> Option<Result<Statement, ParserError>> {
        INNER.parse_statement(parser)
    }

    fn parse_infix(
        &self,
        parser: &mut Parser<'_>,
        expr: &Expr,
        precedence: u8,
    ) -> Option<Result<Expr, ParserError>> {
        if keyword(parser, 0) == Keyword::NOT
            && matches!(keyword(parser, 1), Keyword::GLOB | Keyword::MATCH | Keyword::REGEXP)
        {
            parser.advance_token();
            let matched = INNER.parse_infix(parser, expr, precedence)?;
            return Some(matched.map(not_matched));
        }
        INNER
            .parse_infix(parser, expr, precedence)
            .or_else(|| is_value(parser, expr, self.prec_value(Precedence::Is)))
    }
}

/// Writes `a GLOB b` as `a NOT GLOB b`.
fn not_matched(expr: Expr) -> Expr {
    match expr {
        Expr::BinaryOp { left, op, right } => {
            let op = BinaryOperator::Custom(format!("NOT {op}"));
            Expr::BinaryOp { left, op, right }
        }
        other => other,
    }
}

/// Reads `a IS b` and `a IS NOT b`, if `b` is none of the parser's expected words.
fn is_value(
    parser: &mut Parser<'_>,
    left: &Expr,
    precedence: u8,
) -> Option<Result<Expr, ParserError>> {
    if !parser.peek_keyword(Keyword::IS) {
        return None;
    }
    let negated = keyword(parser, 1) == Keyword::NOT;
    let next = if negated { 2 } else { 1 };
    let known = matches!(
        keyword(parser, next),
        Keyword::NULL | Keyword::TRUE | Keyword::FALSE | Keyword::DISTINCT
    );
    if known {
        return None;
    }
    for _ in 0..next {
        parser.advance_token();
    }
    let left = Box::new(left.clone());
    Some(parser.parse_subexpr(precedence).map(|right| {
        if negated {
            Expr::IsDistinctFrom(left, Box::new(right))
        } else {
            Expr::IsNotDistinctFrom(left, Box::new(right))
        }
    }))
}

fn keyword(parser: &Parser<'_>, ahead: usize) -> Keyword {
    match &parser.peek_nth_token_ref(ahead).token {
        Token::Word(word) => word.keyword,
        _ => Keyword::NoKeyword,
    }
}
