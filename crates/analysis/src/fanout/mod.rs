//! Whether a join makes an aggregate count its rows more than once.
//!
//! `SUM(orders.total)` over orders joined to their lines adds each total once per line. Enter at [`verdicts`].
//! Invariant: "not multiplied" is reported only if keys prove it: from the table whose column is aggregated, every
//! other table of FROM is reached through its unique key. Deliberately absent: data; if keys are no proof, a counting
//! probe is written.

mod columns;
mod equalities;
mod finding;
mod items;
mod scope;
mod yields;

#[cfg(test)]
mod tests;

use std::ops::ControlFlow;

use sqlparser::ast::{Expr, Function, Ident, Query, Select, Statement, Visit, Visitor};

use crate::joins::key_of;
use crate::on_large_stack;
use crate::{Catalogue, Dialect, Table, guard};
use columns::{Found, is_changed, names_of, values_of};
use equalities::{Equalities, Place};
pub use finding::{Effect, Finding, Verdict};
use items::Item;
use scope::Scope;

/// Returns the facts about every aggregate over a join, including subqueries and `WITH` queries.
pub fn verdicts(sql: &str, dialect: Dialect, catalogue: &Catalogue) -> Vec<Finding> {
    on_large_stack(|| findings(sql, dialect, catalogue))
}

fn findings(sql: &str, dialect: Dialect, catalogue: &Catalogue) -> Vec<Finding> {
    let Ok(statement) = guard::parse_generated(sql, dialect) else { return Vec::new() };
    let mut look = Look { dialect, catalogue, scope: Scope::default(), findings: Vec::new() };
    if let Statement::Query(_) = &statement {
        let ControlFlow::Continue(()) = statement.visit(&mut look);
    }
    look.findings
}

/// Returns a sentence for each aggregate that a join multiplies, or may multiply by its condition.
pub fn warnings(sql: &str, dialect: Dialect, catalogue: &Catalogue) -> Vec<String> {
    let found = verdicts(sql, dialect, catalogue);
    found.iter().filter(|finding| finding.is_reported()).map(Finding::sentence).collect()
}

struct Look<'a> {
    dialect: Dialect,
    catalogue: &'a Catalogue,
    scope: Scope,
    findings: Vec<Finding>,
}

/// The tables and queries of a `SELECT`, and their equal columns.
struct Joined<'a> {
    items: Vec<Item<'a>>,
    equal: Equalities,
}

impl Visitor for Look<'_> {
    type Break = std::convert::Infallible;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Self::Break> {
        self.scope.enter(query, self.dialect);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &Query) -> ControlFlow<Self::Break> {
        let defined = self.scope.defines(query).then(|| self.columns_of(query));
        self.scope.leave(query, &defined.unwrap_or_default());
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<Self::Break> {
        self.select(select);
        ControlFlow::Continue(())
    }
}

impl<'a> Look<'a> {
    fn fold(&self, ident: &Ident) -> String {
        self.dialect.fold(ident)
    }

    fn select(&mut self, select: &Select) {
        let Some(joined) = self.joined(select) else { return };
        let mut calls = Found::calls_of(&select.projection);
        if let Some(having) = &select.having {
            let ControlFlow::Continue(()) = having.visit(&mut calls);
        }
        for function in calls.all.iter().filter(|function| is_changed(function)) {
            if let Some(finding) = self.finding(function, &joined, select)
                && (joined.items.len() > 1 || !finding.effect.by.is_empty())
                && !self.findings.contains(&finding)
            {
                self.findings.push(finding);
            }
        }
    }

    /// Reads FROM and the conditions of a `SELECT`; `None` for unsupported forms.
    fn joined(&mut self, select: &Select) -> Option<Joined<'a>> {
        let (items, conditions) = self.from(&select.from)?;
        let mut equal = Equalities::default();
        for condition in &conditions {
            equal.read(condition.on, condition.outer.as_ref(), &items, self);
        }
        if let Some(condition) = &select.selection {
            equal.read(condition, None, &items, self);
        }
        self.natural(&select.from, &items, &mut equal);
        Some(Joined { items, equal })
    }

    fn finding(
        &self,
        function: &Function,
        joined: &Joined<'a>,
        select: &Select,
    ) -> Option<Finding> {
        let distinct = columns::is_distinct(function);
        let values: Vec<&Expr> = columns::arguments(function).flat_map(values_of).collect();
        // Where only conditions have names, the rows that they choose are counted.
        let named = Some(names_of(&values)).filter(|names| !names.is_empty());
        let names =
            named.unwrap_or_else(|| names_of(&columns::arguments(function).collect::<Vec<_>>()));
        let mut effect = self.effect(&names, joined, select)?;
        if distinct {
            // A count of rows says nothing about values that are left out.
            effect.probe = None;
        }
        Some(Finding { aggregate: function.to_string(), distinct, effect })
    }

    /// Returns what the join does to values that have these names in them; `None` for values of no row.
    fn effect(&self, names: &[Vec<Ident>], joined: &Joined<'a>, select: &Select) -> Option<Effect> {
        let Joined { items, equal } = joined;
        let found: Vec<Option<Place>> = names.iter().map(|name| self.owner(name, items)).collect();
        let places: Vec<&Place> = found.iter().flatten().collect();
        let inner = |owner: usize| equal.inner(owner, &places, items);
        // Of several tables, the one with the most rows decides: it is enough that each reaches the others.
        let cost = |owner: &usize| {
            equal.beyond(*owner, items).len() + inner(*owner).map_or(0, |inner| inner.by.len())
        };
        let Some(owner) = places.iter().map(|place| place.0).min_by_key(cost) else {
            return (!names.is_empty()).then(Effect::default);
        };
        let inner = inner(owner);
        let (sure, unsure): (Vec<usize>, Vec<usize>) = equal
            .multipliers(owner, items)
            .into_iter()
            .partition(|at| equal.is_known_to_repeat(*at, items));
        let inside = inner.map_or(Verdict::NotMultiplied, |inner| inner.verdict);
        let verdict = if places.len() < names.len() {
            Verdict::Undetermined
        } else if !sure.is_empty() || inside == Verdict::Multiplied {
            Verdict::Multiplied
        } else if !unsure.is_empty() || inside == Verdict::Undetermined {
            Verdict::Undetermined
        } else {
            Verdict::NotMultiplied
        };
        let named = if verdict == Verdict::Multiplied { sure } else { [sure, unsure].concat() };
        let is_unread = named.iter().any(|at| equal.is_unread(*at))
            || inner.is_some_and(|inner| inner.is_unread);
        let mut by: Vec<String> = named.iter().map(|at| items[*at].name.clone()).collect();
        by.extend(inner.into_iter().flat_map(|inner| inner.by.iter().cloned()));
        let table =
            inner.map_or_else(|| Some(items[owner].name.clone()), |inner| inner.table.clone());
        let is_whole = items.len() == 1 && select.selection.is_none();
        let probe = match inner {
            Some(inner) => inner.probe.clone().filter(|_| is_whole),
            None => items[owner].table.and_then(|table| self.probe(table, &items[owner], select)),
        };
        Some(Effect { table, verdict, by, is_unread, probe })
    }

    /// Writes the statement that counts joined rows against rows of the table.
    fn probe(&self, table: &Table, item: &Item<'_>, select: &Select) -> Option<String> {
        let with = self.scope.with()?;
        let quote = |name: &str| self.dialect.quote(name);
        let key = key_of(table)?.iter();
        let key: Vec<String> =
            key.map(|part| format!("{}.{}", quote(&item.name), quote(part))).collect();
        let first = key.first()?;
        let from: Vec<String> = select.from.iter().map(ToString::to_string).collect();
        let condition = select
            .selection
            .as_ref()
            .map_or_else(String::new, |condition| format!(" WHERE {condition}"));
        Some(format!(
            "{with}SELECT SUM(n) AS joined_rows, COUNT(*) AS own_rows FROM (SELECT COUNT({first}) AS n FROM {}{condition} \
             GROUP BY {}) AS counted WHERE n > 0",
            from.join(", "),
            key.join(", ")
        ))
    }
}
