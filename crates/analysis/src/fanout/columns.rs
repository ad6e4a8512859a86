//! The aggregates of a select list, and the columns whose values they take.

use std::ops::ControlFlow;

use sqlparser::ast::{
    BinaryOperator, DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArguments, Ident, Query, SelectItem, Visit, Visitor,
};

use crate::syntax::lists;

/// Aggregates that a repeated row changes, and that equal values do not change under DISTINCT.
const OF_VALUES: &str = "
    array_agg count count_big group_concat json_agg json_group_array json_group_object json_object_agg
    jsonb_agg jsonb_group_array jsonb_group_object jsonb_object_agg list string_agg
";

/// Aggregates that a repeated row changes, and that need each row once even if its value is that of another.
const OF_ROWS: &str = "
    avg corr covar_pop covar_samp median mode percentile percentile_cont percentile_disc quantile
    quantile_cont quantile_disc regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope
    regr_sxx regr_sxy regr_syy stddev stddev_pop stddev_samp stdev stdevp sum total var var_pop
    var_samp variance varp
";

/// Aggregates that a repeated row does not change.
const UNCHANGED: &str = "
    any_value approx_count_distinct arg_max arg_min bit_and bit_or bit_xor bool_and bool_or every
    first last max min range_agg range_intersect_agg
";

fn is_in(list: &str, function: &Function) -> bool {
    let last = function.name.0.last().and_then(|part| part.as_ident());
    last.is_some_and(|name| lists(list, &name.value))
}

pub fn is_aggregate(function: &Function) -> bool {
    function.over.is_none()
        && [OF_VALUES, OF_ROWS, UNCHANGED].iter().any(|list| is_in(list, function))
}

/// Returns whether a repeated row changes the result of a call.
pub fn is_changed(function: &Function) -> bool {
    is_in(OF_ROWS, function) || (is_in(OF_VALUES, function) && !is_distinct(function))
}

pub fn is_distinct(function: &Function) -> bool {
    let FunctionArguments::List(list) = &function.args else { return false };
    list.duplicate_treatment == Some(DuplicateTreatment::Distinct)
}

/// Returns the arguments of a call, and what `WITHIN GROUP` sorts.
pub fn arguments(function: &Function) -> impl Iterator<Item = &Expr> {
    let list = match &function.args {
        FunctionArguments::List(list) => list.args.as_slice(),
        _ => &[],
    };
    let plain = list.iter().filter_map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
        _ => None,
    });
    plain.chain(function.within_group.iter().map(|item| &item.expr))
}

/// Returns the parts of an expression that become its value; conditions only choose among them.
pub fn values_of(expr: &Expr) -> Vec<&Expr> {
    match expr {
        Expr::Nested(inner)
        | Expr::Cast { expr: inner, .. }
        | Expr::UnaryOp { expr: inner, .. } => values_of(inner),
        Expr::Case { conditions, else_result, .. } => {
            let results = conditions.iter().map(|when| &when.result);
            results.chain(else_result.as_deref()).flat_map(values_of).collect()
        }
        Expr::BinaryOp { left, op, right } if !is_condition(op) => {
            [left, right].into_iter().flat_map(|side| values_of(side)).collect()
        }
        Expr::BinaryOp { .. }
        | Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::InList { .. }
        | Expr::Between { .. }
        | Expr::Like { .. } => Vec::new(),
        Expr::Function(function) => {
            let chooses = usize::from(is_in("if iif", function));
            arguments(function).skip(chooses).flat_map(values_of).collect()
        }
        other => vec![other],
    }
}

fn is_condition(op: &BinaryOperator) -> bool {
    use BinaryOperator as B;
    matches!(op, B::Eq | B::NotEq | B::Lt | B::LtEq | B::Gt | B::GtEq | B::And | B::Or)
}

/// Returns the names of columns in expressions, without subqueries.
pub fn names_of(expressions: &[&Expr]) -> Vec<Vec<Ident>> {
    let mut names = Found::names();
    for expr in expressions {
        let ControlFlow::Continue(()) = expr.visit(&mut names);
    }
    names.all
}

/// Collects what `read` makes of expressions outside subqueries.
pub struct Found<T> {
    pub all: Vec<T>,
    read: fn(&Expr) -> Option<T>,
    /// Subqueries count too.
    everywhere: bool,
    depth: usize,
}

impl<T> Found<T> {
    fn new(read: fn(&Expr) -> Option<T>) -> Self {
        Self { all: Vec::new(), read, everywhere: false, depth: 0 }
    }

    pub fn everywhere(self) -> Self {
        Self { everywhere: true, ..self }
    }
}

impl Found<Vec<Ident>> {
    pub fn names() -> Self {
        Self::new(|expr| match expr {
            Expr::Identifier(ident) => Some(vec![ident.clone()]),
            Expr::CompoundIdentifier(parts) => Some(parts.clone()),
            _ => None,
        })
    }
}

impl Found<Function> {
    pub fn calls_of(items: &[SelectItem]) -> Self {
        let mut calls = Self::new(|expr| match expr {
            Expr::Function(function) => Some(function.clone()),
            _ => None,
        });
        for item in items {
            let ControlFlow::Continue(()) = item.visit(&mut calls);
        }
        calls
    }
}

impl<T> Visitor for Found<T> {
    type Break = std::convert::Infallible;

    fn pre_visit_query(&mut self, _query: &Query) -> ControlFlow<Self::Break> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &Query) -> ControlFlow<Self::Break> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Self::Break> {
        if self.depth == 0 || self.everywhere {
            self.all.extend((self.read)(expr));
        }
        ControlFlow::Continue(())
    }
}
