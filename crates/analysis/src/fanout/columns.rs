//! The aggregates of a select list and the columns in them.

use std::ops::ControlFlow;

use sqlparser::ast::{Expr, Function, Ident, Visitor};

/// Collects aggregates that a repeated row changes; a subquery's are its own.
pub struct Aggregates(pub Vec<Function>);

impl Visitor for Aggregates {
    type Break = std::convert::Infallible;

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Self::Break> {
        const CHANGED: [&str; 7] =
            ["sum", "avg", "count", "total", "array_agg", "string_agg", "group_concat"];
        if let Expr::Function(function) = expr {
            let name = function.name.to_string().to_ascii_lowercase();
            if CHANGED.contains(&name.trim_matches('"')) {
                self.0.push(function.clone());
            }
        }
        ControlFlow::Continue(())
    }
}

pub struct Names(pub Vec<Vec<Ident>>);

impl Visitor for Names {
    type Break = std::convert::Infallible;

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Self::Break> {
        match expr {
            Expr::Identifier(ident) => self.0.push(vec![ident.clone()]),
            Expr::CompoundIdentifier(parts) => self.0.push(parts.clone()),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}
