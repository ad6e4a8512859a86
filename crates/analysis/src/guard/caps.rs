//! Limits of a few functions that build or search texts: Postgres checks no time limit inside them.
//!
//! `strpos`, `replace` and `LIKE` over texts of hundreds of megabytes cannot be cancelled. Computed texts are therefore
//! cut before they are searched and joined; stored columns stay unchanged.

use sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident,
    ObjectName, Value,
};

use super::bind::Binder;
use super::functions::placed;
use super::normal::take;
use super::{Policy, Refusal, normal};
use crate::Dialect;
use crate::syntax::lists;

/// Longest computed text, in characters.
const MAX_TEXT: u32 = 100_000;
const MAX_REPEATS: u32 = 10_000;
/// Maximum values of a series with constant bounds.
const MAX_SERIES: f64 = 1_000_000_000.0;

/// Functions whose result can be much longer than their arguments.
const BUILDS: &str = "
    array_to_string concat concat_ws format lpad regexp_replace repeat replace rpad string_agg
";

/// Functions that search, and how many of their first arguments are texts.
const SEARCHES: &[(&str, usize)] = &[
    ("regexp_count", 2),
    ("regexp_instr", 2),
    ("regexp_like", 2),
    ("regexp_match", 2),
    ("regexp_matches", 2),
    ("regexp_replace", 3),
    ("regexp_split_to_array", 2),
    ("regexp_substr", 2),
    ("replace", 3),
    ("split_part", 2),
    ("string_to_array", 2),
    ("strpos", 2),
    ("translate", 3),
];

/// Parts of a date that T-SQL writes as bare words.
const DATEPARTS: &str = "
    year yy yyyy quarter qq q month mm m dayofyear dy y day dd d week wk ww iso_week isowk isoww
    weekday dw hour hh minute mi n second ss s millisecond ms microsecond mcs
";

/// Functions of T-SQL that take such a part.
const DATED: &str = "dateadd datediff datediff_big datename datepart datetrunc";

/// Keeps the bare word of T-SQL's date functions from being quoted like a column.
pub fn dateparts(function: &mut Function, dialect: Dialect) {
    if dialect != Dialect::TSql || !lists(DATED, last(&function.name)) {
        return;
    }
    if let FunctionArguments::List(list) = &mut function.args
        && let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(first))) = list.args.first_mut()
        && let Expr::Identifier(word) = first
        && word.quote_style.is_none()
        && lists(DATEPARTS, &word.value)
    {
        // A number is written as it stands; read back it is the bare word again.
        *first = Expr::Value(Value::Number(word.value.clone(), false).into());
    }
}

/// Cuts the texts that an expression builds or searches.
pub fn cap(expr: &mut Expr, binder: &Binder<'_>) -> Result<(), Refusal> {
    if binder.dialect() != Dialect::Postgres {
        return Ok(());
    }
    let cut = |expr: &mut Expr| {
        if !is_literal(expr) && !binder.is_stored(expr) && !is_call(expr, "left") {
            shorten(expr);
        }
    };
    match expr {
        Expr::Position { expr, r#in } => {
            cut(expr);
            cut(r#in);
        }
        Expr::Like { expr, pattern, .. }
        | Expr::ILike { expr, pattern, .. }
        | Expr::SimilarTo { expr, pattern, .. } => {
            cut(expr);
            each(pattern, &cut);
        }
        Expr::BinaryOp { left, op, right }
        | Expr::AnyOp { left, compare_op: op, right, .. }
        | Expr::AllOp { left, compare_op: op, right }
            if is_search(op) =>
        {
            cut(left);
            each(right, &cut);
        }
        Expr::Function(function) => {
            let name = last(&function.name).to_ascii_lowercase();
            let searched = SEARCHES.iter().find(|(known, _)| *known == name);
            for argument in arguments(function).take(searched.map_or(0, |(_, texts)| *texts)) {
                cut(argument);
            }
            match name.as_str() {
                "format" => plain_format(function)?,
                "generate_series" => series(arguments(function))?,
                "repeat" => at_most(function, MAX_REPEATS),
                "lpad" | "rpad" => at_most(function, MAX_TEXT),
                _ => {}
            }
            if lists(BUILDS, &name) {
                shorten(expr);
            }
        }
        _ => {}
    }
    Ok(())
}

/// Rejects a series that is too long to read.
pub fn series<'a>(bounds: impl Iterator<Item = &'a mut Expr>) -> Result<(), Refusal> {
    let bounds: Vec<Option<f64>> = bounds.map(|bound| value(bound)).collect();
    let (Some(Some(start)), Some(Some(stop))) = (bounds.first(), bounds.get(1)) else {
        return Ok(());
    };
    let step = bounds.get(2).copied().flatten().unwrap_or(1.0);
    if ((stop - start) / step).abs() <= MAX_SERIES {
        return Ok(());
    }
    Err(Refusal::Construct(format!("a series of more than {MAX_SERIES} values")))
}

fn value(expr: &Expr) -> Option<f64> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::Number(text, _) => {
                let text = text.replace('_', "").to_ascii_lowercase();
                let based =
                    [("0x", 16), ("0o", 8), ("0b", 2)].into_iter().find_map(|(prefix, base)| {
                        i128::from_str_radix(text.strip_prefix(prefix)?, base).ok()
                    });
                based.map_or_else(|| text.parse().ok(), |number| Some(number as f64))
            }
            _ => None,
        },
        Expr::Nested(inner) => value(inner),
        Expr::Cast { expr, .. } => value(expr),
        Expr::UnaryOp { op: sqlparser::ast::UnaryOperator::Minus, expr } => {
            value(expr).map(|number| -number)
        }
        _ => None,
    }
}

/// Cuts a pattern, or each one of a list; a query that makes patterns stays as it is.
fn each(pattern: &mut Expr, cut: &impl Fn(&mut Expr)) {
    match pattern {
        Expr::Array(list) => list.elem.iter_mut().for_each(cut),
        Expr::Tuple(list) => list.iter_mut().for_each(cut),
        Expr::Nested(inner) => each(inner, cut),
        Expr::Subquery(_) => {}
        one => cut(one),
    }
}

fn is_search(op: &BinaryOperator) -> bool {
    use BinaryOperator as B;
    matches!(
        op,
        B::PGLikeMatch
            | B::PGILikeMatch
            | B::PGNotLikeMatch
            | B::PGNotILikeMatch
            | B::PGRegexMatch
            | B::PGRegexIMatch
            | B::PGRegexNotMatch
            | B::PGRegexNotIMatch
    )
}

/// Returns whether an expression is a literal, whose size the statement's length bounds.
fn is_literal(expr: &Expr) -> bool {
    match expr {
        Expr::Value(_) | Expr::TypedString(_) => true,
        Expr::Nested(inner) | Expr::Cast { expr: inner, .. } => is_literal(inner),
        _ => false,
    }
}

/// Returns the name of a function without its schema, which is the known one here.
fn last(name: &ObjectName) -> &str {
    let last = name.0.last().and_then(|part| part.as_ident());
    last.map_or("", |ident| &ident.value)
}

fn is_call(expr: &Expr, name: &str) -> bool {
    matches!(expr, Expr::Function(function) if last(&function.name).eq_ignore_ascii_case(name))
}

/// Bounds the second argument of a call, if it has one.
fn at_most(function: &mut Function, most: u32) {
    if let Some(count) = arguments(function).nth(1) {
        *count = call("least", vec![take(count), number(most)]);
    }
}

fn arguments(function: &mut Function) -> impl Iterator<Item = &mut Expr> {
    let list = match &mut function.args {
        FunctionArguments::List(list) => list.args.as_mut_slice(),
        _ => &mut [],
    };
    list.iter_mut().filter_map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
        _ => None,
    })
}

/// Accepts a literal format with little padding.
fn plain_format(function: &mut Function) -> Result<(), Refusal> {
    let refused = || Err(Refusal::Construct("format with a computed or padding pattern".into()));
    let Some(Expr::Value(pattern)) = arguments(function).next() else { return refused() };
    let Value::SingleQuotedString(pattern) = &pattern.value else { return refused() };
    let digits = pattern.split(|c: char| !c.is_ascii_digit()).map(str::len).max().unwrap_or(0);
    if pattern.contains('*') || digits > 4 { refused() } else { Ok(()) }
}

fn shorten(expr: &mut Expr) {
    let whole = take(expr);
    *expr = call("left", vec![whole, number(MAX_TEXT)]);
}

fn number(value: u32) -> Expr {
    Expr::Value(Value::Number(value.to_string(), false).into())
}

fn call(name: &str, args: Vec<Expr>) -> Expr {
    let mut name = ObjectName::from(vec![Ident::new(name)]);
    placed(&mut name, Dialect::Postgres, &Policy::default());
    normal::call(name, args)
}
