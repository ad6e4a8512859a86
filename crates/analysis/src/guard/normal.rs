//! Brings a statement into a form that is read back as it was written, and that means the same.
//!
//! Operands get parentheses if the writer would join two signs (`- -1` as a comment), literals become plain ones, and
//! every alias is written with `AS`.

use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident,
    ObjectName, Statement, TableFactor, TrimWhereField, Value, ValueWithSpan, VisitMut, VisitorMut,
};

use crate::Dialect;

pub fn form(statement: &mut Statement, dialect: Dialect) {
    let ControlFlow::Continue(()) = statement.visit(&mut Former { dialect });
}

struct Former {
    dialect: Dialect,
}

/// Puts an operand that is more than one word into parentheses.
fn apart(expr: &mut Expr) {
    let plain = match expr {
        Expr::Identifier(_)
        | Expr::CompoundIdentifier(_)
        | Expr::Function(_)
        | Expr::Nested(_)
        | Expr::Subquery(_)
        | Expr::Tuple(_)
        | Expr::Array(_)
        | Expr::Case { .. }
        | Expr::Extract { .. }
        | Expr::Substring { .. }
        | Expr::Trim { .. }
        | Expr::Position { .. }
        | Expr::Ceil { .. }
        | Expr::Floor { .. }
        | Expr::Overlay { .. } => true,
        Expr::Cast { kind, .. } => *kind == sqlparser::ast::CastKind::Cast,
        Expr::Value(value) => {
            !matches!(&value.value, Value::Number(text, _) if text.starts_with('-'))
        }
        _ => false,
    };
    if !plain {
        *expr = Expr::Nested(Box::new(take(expr)));
    }
}

/// Writes `substring(a, 1)`, `trim(a)`, `ceil(a)` and `floor(a)` as the calls that they are for Postgres, which looks them up
/// by name.
fn as_call(expr: &mut Expr) {
    let (name, arguments) = match expr {
        Expr::Substring { expr, substring_from, substring_for, special: true, shorthand } => {
            let name = if *shorthand { "substr" } else { "substring" };
            let rest = [substring_from.take(), substring_for.take()].into_iter().flatten();
            (name, std::iter::once(take(expr)).chain(rest.map(|boxed| *boxed)).collect())
        }
        Expr::Trim { expr, trim_where, trim_characters, .. } => {
            let name = match trim_where {
                Some(TrimWhereField::Leading) => "ltrim",
                Some(TrimWhereField::Trailing) => "rtrim",
                Some(TrimWhereField::Both) | None => "btrim",
            };
            let rest = trim_characters.take().into_iter().flatten();
            (name, std::iter::once(take(expr)).chain(rest).collect())
        }
        Expr::Ceil { expr, .. } => ("ceil", vec![take(expr)]),
        Expr::Floor { expr, .. } => ("floor", vec![take(expr)]),
        _ => return,
    };
    *expr = call(ObjectName::from(vec![Ident::new(name)]), arguments);
}

pub fn take(expr: &mut Expr) -> Expr {
    std::mem::replace(expr, Expr::Value(Value::Null.into()))
}

pub fn call(name: ObjectName, arguments: Vec<Expr>) -> Expr {
    let args = arguments.into_iter().map(|arg| FunctionArg::Unnamed(FunctionArgExpr::Expr(arg)));
    Expr::Function(Function {
        name,
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: args.collect(),
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

impl VisitorMut for Former {
    type Break = std::convert::Infallible;

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Self::Break> {
        if let TableFactor::Table { alias: Some(alias), .. }
        | TableFactor::Derived { alias: Some(alias), .. }
        | TableFactor::Function { alias: Some(alias), .. }
        | TableFactor::UNNEST { alias: Some(alias), .. }
        | TableFactor::NestedJoin { alias: Some(alias), .. } = factor
        {
            alias.explicit = true;
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_value(&mut self, value: &mut ValueWithSpan) -> ControlFlow<Self::Break> {
        if self.dialect == Dialect::Postgres {
            let plain = match &value.value {
                Value::EscapedStringLiteral(text) | Value::UnicodeStringLiteral(text) => Some(text),
                Value::DollarQuotedString(quoted) => Some(&quoted.value),
                _ => None,
            };
            if let Some(text) = plain.filter(|text| !text.contains('\0')) {
                value.value = Value::SingleQuotedString(text.clone());
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        if self.dialect == Dialect::Postgres {
            as_call(expr);
        }
        match expr {
            Expr::UnaryOp { expr: operand, .. }
            | Expr::Collate { expr: operand, .. }
            | Expr::AtTimeZone { timestamp: operand, .. }
            | Expr::Cast { kind: sqlparser::ast::CastKind::DoubleColon, expr: operand, .. } => {
                apart(operand)
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}
