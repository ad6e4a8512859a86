//! Decides what every name of a statement means, and writes it so that the database reads the same.
//!
//! Postgres takes `f.x` for the call `x(f)` where `f` has no column `x`, and `FROM only t` for the table
//! `t`. So every name is quoted, every table is named with its schema, and every qualified name must be a
//! known column of what `FROM` calls by that name. Enter at [`bind`]. Invariant: a compound name or a query that this
//! walk did not reach makes the statement refused. Deliberately absent: types.

mod expressions;
mod names;
mod relations;

use std::ops::ControlFlow;

use sqlparser::ast::{
    Distinct, Expr, GroupByExpr, Ident, LimitClause, NamedWindowExpr, OrderByKind, Query, Select,
    SelectItem, SelectItemQualifiedWildcardKind, SetExpr, Statement, Top, TopQuantity, Visit,
    Visitor,
};

use super::Refusal;
use super::normal::take;
use super::policy::{Policy, TableName};
use crate::Dialect;
use crate::clauses::Recursion;
use names::{Columns, Level, Relation, figure};

type Bound<T> = Result<T, Refusal>;

pub struct Bindings {
    pub tables: Vec<TableName>,
    /// The columns of its result, as far as they are known.
    pub columns: Vec<String>,
}

/// Binds every name of the statement in place.
///
/// # Errors
/// [`Refusal::Table`] or [`Refusal::Column`] with the nearest name; [`Refusal::Construct`] for a place this
/// walk does not know.
pub fn bind(
    statement: &mut Statement,
    dialect: Dialect,
    policy: &Policy,
) -> Result<Bindings, Refusal> {
    let mut binder = Binder {
        dialect,
        policy,
        levels: Vec::new(),
        ctes: Vec::new(),
        ahead: Vec::new(),
        reached: Reached::default(),
        filtering: false,
        depth: 0,
        tables: Vec::new(),
    };
    let Statement::Query(query) = statement else {
        return Err(Refusal::NotASelect(super::shapes::first_word(statement)));
    };
    let columns = binder.query(query, None)?.map_or_else(Vec::new, |columns| columns.to_vec());
    let mut all = Reached::default();
    let ControlFlow::Continue(()) = statement.visit(&mut all);
    if all != binder.reached {
        return Err(Refusal::Construct("a name or a subquery in an unusual place".into()));
    }
    Ok(Bindings { tables: binder.tables, columns })
}

/// Counts `a.b` and queries, so that no name stays unresolved and no query unbound.
#[derive(Default, PartialEq)]
struct Reached {
    names: usize,
    queries: usize,
}

impl Visitor for Reached {
    type Break = std::convert::Infallible;

    fn pre_visit_query(&mut self, _query: &Query) -> ControlFlow<Self::Break> {
        self.queries += 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Self::Break> {
        self.names += usize::from(matches!(expr, Expr::CompoundIdentifier(_)));
        ControlFlow::Continue(())
    }
}

struct Cte {
    name: String,
    columns: Columns,
}

/// The name of a `WITH RECURSIVE` query, which is in scope once its first arm is known.
struct Pending<'a> {
    name: String,
    aliases: &'a [Ident],
    /// Its position among the names in scope: outside those of its own WITH.
    at: usize,
}

pub(super) struct Binder<'a> {
    dialect: Dialect,
    policy: &'a Policy,
    /// The relations of `FROM` around the present place, outermost first.
    levels: Vec<Level>,
    /// `WITH` names in force, innermost last.
    ctes: Vec<Cte>,
    /// Names that a WITH RECURSIVE around the present place defines later.
    ahead: Vec<String>,
    /// Compound names and queries that were bound so far.
    reached: Reached,
    /// An operator's row filter is being bound, whose table is not filtered again.
    filtering: bool,
    /// Queries around the present place.
    depth: usize,
    tables: Vec<TableName>,
}

impl Binder<'_> {
    pub(super) fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Quotes a name as the database would have looked it up.
    fn quote(&self, ident: &mut Ident) -> Bound<()> {
        if ident.quote_style.is_none() && self.dialect == Dialect::Postgres {
            ident.value = self.dialect.fold(ident);
        }
        let too_long = self.dialect == Dialect::Postgres
            && ident.value.len() > crate::dialect::POSTGRES_NAME_BYTES;
        // Postgres joins two texts in a row, or refuses them; neither is a name.
        let unwritable = ident.value.contains('\0')
            || (self.dialect == Dialect::Postgres && ident.quote_style == Some('\''))
            || (self.dialect == Dialect::TSql && ident.value.contains(']'));
        if too_long || unwritable || ident.value.is_empty() {
            return Err(Refusal::Construct(format!("the name {}", ident.value)));
        }
        ident.quote_style = Some(self.dialect.quote_mark());
        Ok(())
    }

    /// Binds a query; `pending` comes into scope after the first arm of its body.
    fn query(&mut self, query: &mut Query, mut pending: Option<Pending<'_>>) -> Bound<Columns> {
        let ctes = self.ctes.len();
        self.depth += 1;
        self.reached.queries += 1;
        if let Some(with) = &mut query.with {
            let recursive = with.recursive || self.dialect.recursion_is_implied();
            let sees_ahead = self.dialect.sees_ahead(with.recursive);
            let ahead = self.ahead.len();
            if sees_ahead {
                let names = with.cte_tables.iter().rev();
                self.ahead.extend(names.map(|cte| self.dialect.fold(&cte.alias.name)));
            }
            for cte in &mut with.cte_tables {
                if sees_ahead {
                    self.ahead.pop();
                }
                let aliases = self.quote_alias(&mut cte.alias)?;
                let name = self.dialect.fold(&cte.alias.name);
                let outer = self.ctes.len();
                let pending =
                    recursive.then(|| Pending { name: name.clone(), aliases: &aliases, at: outer });
                let columns = self.query(&mut cte.query, pending)?;
                self.ctes.truncate(outer);
                let columns = self.renamed(&columns, &aliases);
                let columns = self.recursion(cte, columns)?;
                self.ctes.push(Cte { name, columns });
            }
            self.ahead.truncate(ahead);
        }
        let levels = self.levels.len();
        let columns = self.body(&mut query.body, &mut pending)?;
        // What follows a plain SELECT still sees its FROM.
        if let Some(order) = &mut query.order_by
            && let OrderByKind::Expressions(list) = &mut order.kind
        {
            self.order(list)?;
        }
        match &mut query.limit_clause {
            Some(LimitClause::LimitOffset { limit, offset, .. }) => {
                limit.iter_mut().try_for_each(|expr| self.expression(expr))?;
                offset.iter_mut().try_for_each(|offset| self.expression(&mut offset.value))?;
            }
            Some(LimitClause::OffsetCommaLimit { offset, limit }) => {
                self.expression(offset)?;
                self.expression(limit)?;
            }
            None => {}
        }
        if let Some(quantity) = query.fetch.as_mut().and_then(|fetch| fetch.quantity.as_mut()) {
            self.expression(quantity)?;
        }
        self.levels.truncate(levels);
        self.ctes.truncate(ctes);
        self.depth -= 1;
        Ok(columns)
    }

    /// Binds the parts between WITH and ORDER BY; a plain SELECT leaves its level open for the caller.
    fn body(&mut self, body: &mut SetExpr, pending: &mut Option<Pending<'_>>) -> Bound<Columns> {
        let columns = match body {
            SetExpr::Select(select) => self.select(select)?,
            SetExpr::Query(query) => self.query(query, None)?,
            SetExpr::SetOperation { left, right, .. } => {
                let levels = self.levels.len();
                let columns = self.body(left, pending)?;
                self.levels.truncate(levels);
                self.body(right, &mut None)?;
                self.levels.truncate(levels);
                columns
            }
            SetExpr::Values(values) => {
                let width = values.rows.first().map_or(0, |row| row.len());
                for row in &mut values.rows {
                    row.iter_mut().try_for_each(|expr| self.expression(expr))?;
                }
                Some((1..=width).map(|number| format!("column{number}")).collect())
            }
            other => return Err(Refusal::Construct(format!("in a query: {other}"))),
        };
        if let Some(Pending { name, aliases, at }) = pending.take() {
            let columns = self.renamed(&columns, aliases);
            self.ctes.insert(at, Cte { name, columns });
        }
        Ok(columns)
    }

    /// Binds `SEARCH` and `CYCLE` after a `WITH` query; returns its columns with the added ones.
    fn recursion(&self, cte: &mut sqlparser::ast::Cte, columns: Columns) -> Bound<Columns> {
        let Some(mut clause) = Recursion::of(cte) else { return Ok(columns) };
        let mut columns = columns.map(|columns| columns.to_vec());
        let of = columns.clone();
        let known = |ident: &Ident| match &of {
            Some(of) if !of.contains(&ident.value) => {
                let hint = format!("; columns: {}", of.join(", "));
                Err(Refusal::Column { name: ident.value.clone(), hint })
            }
            _ => Ok(()),
        };
        if let Some(search) = &mut clause.search {
            for name in &mut search.by {
                self.quote(name)?;
                known(name)?;
            }
            self.quote(&mut search.column)?;
            add(&mut columns, [search.column.value.clone()]);
        }
        if let Some(cycle) = &mut clause.cycle {
            for name in &mut cycle.of {
                self.quote(name)?;
                known(name)?;
            }
            self.quote(&mut cycle.mark)?;
            self.quote(&mut cycle.path)?;
            add(&mut columns, [cycle.mark.value.clone(), cycle.path.value.clone()]);
        }
        clause.hang_on(cte);
        Ok(columns.map(Into::into))
    }

    /// Puts a list of column aliases over the first of the columns.
    fn renamed(&self, columns: &Columns, aliases: &[Ident]) -> Columns {
        let aliases: Vec<String> = aliases.iter().map(|alias| self.dialect.fold(alias)).collect();
        let Some(columns) = columns else {
            return (!aliases.is_empty()).then(|| aliases.into());
        };
        let rest = columns.iter().skip(aliases.len()).cloned();
        Some(aliases.iter().cloned().chain(rest).collect())
    }

    fn select(&mut self, select: &mut Select) -> Bound<Columns> {
        let mut level = Level::default();
        for from in &mut select.from {
            let relations = self.joined(from, &level)?;
            level.relations.extend(relations);
        }
        self.levels.push(level);
        if let Some(Distinct::On(list)) = &mut select.distinct {
            self.expressions(list)?;
        }
        if let Some(Top { quantity: Some(TopQuantity::Expr(quantity)), .. }) = &mut select.top {
            self.expression(quantity)?;
        }
        let columns = self.projection(&mut select.projection)?;
        select.selection.iter_mut().try_for_each(|expr| self.expression(expr))?;
        if let GroupByExpr::Expressions(list, _) = &mut select.group_by {
            self.expressions(list)?;
        }
        select.having.iter_mut().try_for_each(|expr| self.expression(expr))?;
        for definition in &mut select.named_window {
            self.quote(&mut definition.0)?;
            match &mut definition.1 {
                NamedWindowExpr::NamedWindow(name) => self.quote(name)?,
                NamedWindowExpr::WindowSpec(spec) => self.window(spec, true)?,
            }
        }
        Ok(columns)
    }

    fn projection(&mut self, items: &mut [SelectItem]) -> Bound<Columns> {
        let mut columns = Some(Vec::new());
        for item in items {
            match item {
                SelectItem::UnnamedExpr(expr) => {
                    let name = figure(expr).map(|name| self.dialect.fold(&name));
                    let is_column =
                        matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
                    self.expression(expr)?;
                    // Other databases name what is no column by its text.
                    let is_named = is_column || self.dialect == Dialect::Postgres;
                    let text = (!is_named).then(|| expr.to_string());
                    let shown = text.or_else(|| name.clone());
                    add(&mut columns, [shown.unwrap_or_else(|| "?column?".into())]);
                    // Inside, the name that Postgres would choose is written, so that it is no guess.
                    let inside = self.depth > 1 && self.dialect == Dialect::Postgres;
                    let renamed = figure(expr).map(|now| self.dialect.fold(&now)) != name;
                    if let Some(name) = name.filter(|_| renamed || (inside && !is_column)) {
                        let alias = Ident::with_quote('"', name);
                        *item = SelectItem::ExprWithAlias { expr: take(expr), alias };
                    }
                }
                SelectItem::ExprWithAlias { expr, alias } => {
                    self.expression(expr)?;
                    self.quote(alias)?;
                    add(&mut columns, [self.dialect.fold(alias)]);
                }
                SelectItem::Wildcard(_) => {
                    let all = self.levels.last().and_then(Level::columns);
                    columns = columns.zip(all).map(|(columns, all)| [columns, all].concat());
                }
                SelectItem::QualifiedWildcard(
                    SelectItemQualifiedWildcardKind::ObjectName(name),
                    _,
                ) => {
                    let of = self.qualified_wildcard(name)?;
                    columns =
                        columns.zip(of).map(|(columns, of)| [columns.as_slice(), &of].concat());
                }
                other => return Err(Refusal::Construct(other.to_string())),
            }
        }
        Ok(columns.map(Into::into))
    }
}

fn add(columns: &mut Option<Vec<String>>, names: impl IntoIterator<Item = String>) {
    if let Some(columns) = columns {
        columns.extend(names);
    }
}
