//! Binds the names inside expressions, and their subqueries.

use std::iter::once;
use std::ops::ControlFlow;

use sqlparser::ast::{
    AccessExpr, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName,
    OrderByExpr, Query, SetExpr, Values, VisitMut, VisitorMut, WindowFrameBound, WindowSpec,
    WindowType,
};

use super::super::visit::{Flow, flow};
use super::super::{caps, functions};
use super::{Binder, Bound, Columns, Refusal, Relation};
use crate::{Dialect, suggestion};

impl Binder<'_> {
    pub(super) fn expressions(&mut self, list: &mut [Expr]) -> Bound<()> {
        list.iter_mut().try_for_each(|expr| self.expression(expr))
    }

    pub(super) fn order(&mut self, list: &mut [OrderByExpr]) -> Bound<()> {
        list.iter_mut().try_for_each(|item| self.expression(&mut item.expr))
    }

    /// Quotes the names of a window; its expressions too, if no walk over an expression reaches them.
    pub(super) fn window(&mut self, spec: &mut WindowSpec, whole: bool) -> Bound<()> {
        if let Some(name) = &mut spec.window_name {
            self.quote(name)?;
        }
        if whole {
            self.expressions(&mut spec.partition_by)?;
            self.order(&mut spec.order_by)?;
            let frame = spec.window_frame.iter_mut();
            for bound in
                frame.flat_map(|frame| once(&mut frame.start_bound).chain(&mut frame.end_bound))
            {
                if let WindowFrameBound::Preceding(Some(by))
                | WindowFrameBound::Following(Some(by)) = bound
                {
                    self.expression(by)?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn expression(&mut self, expr: &mut Expr) -> Bound<()> {
        let mut walk = Walk { binder: self, aside: Vec::new() };
        match expr.visit(&mut walk) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(refusal) => Err(*refusal),
        }
    }

    pub(super) fn qualified_wildcard(&mut self, name: &mut ObjectName) -> Bound<Columns> {
        let idents: Vec<Ident> =
            name.0.iter().filter_map(|part| part.as_ident().cloned()).collect();
        self.quote_parts(name)?;
        let found = match idents.as_slice() {
            [relation] => self.find(None, relation),
            [schema, relation] => self.find(Some(schema), relation),
            _ => None,
        };
        match found {
            Some(relation) => Ok(relation.columns.clone()),
            None => Err(self.no_relation(&name.to_string())),
        }
    }

    /// Returns what `FROM` calls by a name, looking from the inside out.
    fn find(&self, schema: Option<&Ident>, name: &Ident) -> Option<&Relation> {
        let name = self.dialect.fold(name);
        let schema = schema.map(|schema| self.dialect.fold(schema));
        self.levels.iter().rev().find_map(|level| {
            level.relations.iter().find(|relation| {
                relation.name.as_deref() == Some(name.as_str())
                    && (schema.is_none() || relation.schema == schema)
            })
        })
    }

    fn no_relation(&self, name: &str) -> Refusal {
        let known: Vec<&str> = self
            .levels
            .iter()
            .flat_map(|level| level.relations.iter().filter_map(|r| r.name.as_deref()))
            .collect();
        let hint = if known.is_empty() {
            "; FROM names nothing here".to_owned()
        } else {
            format!("; FROM names: {}", known.join(", "))
        };
        Refusal::Column { name: name.to_owned(), hint }
    }

    /// Resolves a name of several parts; Postgres would call a function without such a column.
    fn compound(&mut self, parts: &mut [Ident]) -> Bound<()> {
        let strict = self.dialect == Dialect::Postgres;
        let shown = parts.iter().map(|part| part.value.as_str()).collect::<Vec<_>>().join(".");
        let (found, column) = match &*parts {
            [relation, column] => (self.find(None, relation), column),
            [schema, relation, column] => (self.find(Some(schema), relation), column),
            _ => return Err(Refusal::Column { name: shown, hint: "; write table.column".into() }),
        };
        let column = self.dialect.fold(column);
        match found {
            None if strict => return Err(self.no_relation(&shown)),
            Some(Relation { columns: Some(columns), .. })
                if strict && !columns.contains(&column) =>
            {
                let best =
                    suggestion(&column, columns.iter().map(String::as_str)).unwrap_or_default();
                let hint = format!("{best} Columns: {}", columns.join(", "));
                return Err(Refusal::Column { name: shown, hint });
            }
            Some(Relation { columns: None, .. }) if strict => {
                let hint = "; the columns of what it names are not known here".into();
                return Err(Refusal::Column { name: shown, hint });
            }
            _ => {}
        }
        self.reached.names += 1;
        parts.iter_mut().try_for_each(|part| self.quote(part))
    }

    /// Reads `(o).id` as `o.id`, where `o` is an item of `FROM` and no column.
    fn field(&self, root: &Expr, chain: &[AccessExpr]) -> Option<Expr> {
        let (Expr::Nested(inner), [AccessExpr::Dot(Expr::Identifier(field))]) = (root, chain)
        else {
            return None;
        };
        let Expr::Identifier(row) = inner.as_ref() else { return None };
        let name = self.dialect.fold(row);
        let mut relations = self.levels.iter().flat_map(|level| &level.relations);
        let is_column = relations.any(|relation| relation.may_have(&name));
        (!is_column && self.find(None, row).is_some())
            .then(|| Expr::CompoundIdentifier(vec![row.clone(), field.clone()]))
    }

    /// Returns whether an expression is a stored column, whose size the data determines.
    pub(in crate::guard) fn is_stored(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Nested(inner) => self.is_stored(inner),
            Expr::Cast { expr, .. } => self.is_stored(expr),
            Expr::CompoundIdentifier(parts) => match parts.as_slice() {
                [.., relation, _] => self.find(None, relation).is_some_and(|r| r.stored),
                _ => false,
            },
            Expr::Identifier(column) => {
                let column = self.dialect.fold(column);
                self.levels
                    .iter()
                    .rev()
                    .flat_map(|level| &level.relations)
                    .find(|relation| relation.may_have(&column))
                    .is_some_and(|relation| relation.stored)
            }
            _ => false,
        }
    }

    fn call(&mut self, function: &mut Function) -> Bound<()> {
        functions::place(function, self.dialect, self.policy)?;
        match &mut function.over {
            Some(WindowType::NamedWindow(name)) => self.quote(name)?,
            Some(WindowType::WindowSpec(spec)) => self.window(spec, false)?,
            None => {}
        }
        if let FunctionArguments::List(list) = &mut function.args {
            for arg in &mut list.args {
                if let FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(name)) = arg {
                    self.qualified_wildcard(name)?;
                }
            }
        }
        Ok(())
    }
}

/// Walks one expression; subqueries are bound on their own and laid aside, so that the walk passes them by.
struct Walk<'w, 'p> {
    binder: &'w mut Binder<'p>,
    aside: Vec<Query>,
}

impl Walk<'_, '_> {
    fn enter(&mut self, expr: &mut Expr) -> Bound<()> {
        if let Expr::CompoundFieldAccess { root, access_chain } = expr
            && let Some(plain) = self.binder.field(root, access_chain)
        {
            *expr = plain;
        }
        if let Expr::CompoundFieldAccess { access_chain, .. } = expr
            && access_chain.iter().any(|access| matches!(access, AccessExpr::Dot(_)))
        {
            return Err(Refusal::Construct(format!("a field of a value: {expr}")));
        }
        match expr {
            Expr::Identifier(ident) => self.binder.quote(ident),
            Expr::CompoundIdentifier(parts) => self.binder.compound(parts),
            Expr::Subquery(query)
            | Expr::Exists { subquery: query, .. }
            | Expr::InSubquery { subquery: query, .. } => self.lay_aside(query),
            Expr::Function(function) => {
                self.binder.call(function)?;
                caps::dateparts(function, self.binder.dialect);
                match &mut function.args {
                    FunctionArguments::Subquery(query) => self.lay_aside(query),
                    _ => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    fn lay_aside(&mut self, query: &mut Query) -> Bound<()> {
        self.binder.query(query, None)?;
        self.aside.push(std::mem::replace(query, nothing()));
        Ok(())
    }

    fn leave(&mut self, expr: &mut Expr) -> Bound<()> {
        let slot = match expr {
            Expr::Subquery(query)
            | Expr::Exists { subquery: query, .. }
            | Expr::InSubquery { subquery: query, .. } => Some(query),
            Expr::Function(Function { args: FunctionArguments::Subquery(query), .. }) => {
                Some(query)
            }
            _ => None,
        };
        if let Some(slot) = slot {
            **slot = self.aside.pop().ok_or_else(misplaced)?;
        }
        caps::cap(expr, self.binder)
    }
}

impl VisitorMut for Walk<'_, '_> {
    type Break = Box<Refusal>;

    fn pre_visit_query(&mut self, query: &mut Query) -> Flow {
        let is_bound = *query == nothing();
        flow(if is_bound { Ok(()) } else { Err(misplaced()) })
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> Flow {
        flow(self.enter(expr))
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> Flow {
        flow(self.leave(expr))
    }
}

fn misplaced() -> Refusal {
    Refusal::Construct("a subquery in an unusual place".into())
}

/// Returns the query that replaces one laid aside.
fn nothing() -> Query {
    let rows = Values { explicit_row: false, value_keyword: false, rows: Vec::new() };
    Query {
        with: None,
        body: Box::new(SetExpr::Values(rows)),
        order_by: None,
        limit_clause: None,
        fetch: None,
        locks: Vec::new(),
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators: Vec::new(),
    }
}
