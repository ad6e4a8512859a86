//! Whether a join makes an aggregate count its rows more than once.
//!
//! `SUM(orders.total)` over orders joined to their lines adds each total once per line. Enter at [`verdicts`].
//! Invariant: "not multiplied" is reported only if keys prove it: from the table whose column is aggregated, every
//! other table of FROM is reached through its unique key. Deliberately absent: data; if keys are no proof, a counting
//! probe is written.

mod columns;
mod equalities;
mod items;

use std::collections::HashMap;
use std::ops::ControlFlow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sqlparser::ast::{
    DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments,
    GroupByExpr, Ident, Query, Select, SelectItem, SetExpr, Statement, Visit, Visitor,
};

use crate::joins::key_of;
use crate::on_large_stack;
use crate::{Catalogue, Dialect, Table, guard};
use columns::{Aggregates, Names};
use equalities::Equalities;
use items::{Item, Yield};

/// What is known of one aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// A joined table can have several rows for one that is aggregated.
    Multiplied,
    /// Keys prove that each row is counted once.
    NotMultiplied,
    Undetermined,
}

/// An aggregate over joined tables.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// As it stands in the statement.
    pub aggregate: String,
    /// The table whose rows are meant, as `FROM` calls it.
    pub table: Option<String>,
    pub verdict: Verdict,
    /// What `FROM` joins that may have several rows for one.
    pub by: Vec<String>,
    /// A statement that counts joined rows and rows of the table: their ratio is the factor.
    pub probe: Option<String>,
}

/// Returns the facts about every aggregate over a join, including subqueries and `WITH` queries.
pub fn verdicts(sql: &str, dialect: Dialect, catalogue: &Catalogue) -> Vec<Finding> {
    on_large_stack(|| findings(sql, dialect, catalogue))
}

fn findings(sql: &str, dialect: Dialect, catalogue: &Catalogue) -> Vec<Finding> {
    let Ok(statement) = guard::parse_generated(sql, dialect) else { return Vec::new() };
    let mut look = Look { dialect, catalogue, ctes: HashMap::new(), findings: Vec::new() };
    let Statement::Query(query) = &statement else { return Vec::new() };
    look.ctes_of(query);
    let ControlFlow::Continue(()) = statement.visit(&mut look);
    look.findings
}

/// Returns a sentence for each aggregate that a join multiplies.
pub fn warnings(sql: &str, dialect: Dialect, catalogue: &Catalogue) -> Vec<String> {
    let multiplied = verdicts(sql, dialect, catalogue)
        .into_iter()
        .filter(|finding| finding.verdict == Verdict::Multiplied);
    multiplied
        .map(|finding| {
            format!(
                "{} counts a row of {} once per matching row of {}; aggregate before the join, or count distinct keys",
                finding.aggregate,
                finding.table.unwrap_or_default(),
                finding.by.join(", ")
            )
        })
        .collect()
}

struct Look<'a> {
    dialect: Dialect,
    catalogue: &'a Catalogue,
    ctes: HashMap<String, Yield>,
    findings: Vec<Finding>,
}

impl Visitor for Look<'_> {
    type Break = std::convert::Infallible;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Self::Break> {
        self.ctes_of(query);
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

    fn ctes_of(&mut self, query: &Query) {
        for cte in query.with.iter().flat_map(|with| &with.cte_tables) {
            let mut yielded = self.yields(&cte.query);
            if !cte.alias.columns.is_empty() {
                yielded = Yield::default();
            }
            self.ctes.insert(self.fold(&cte.alias.name), yielded);
        }
    }

    /// Returns the columns of a query and the unique ones: those of its groups.
    fn yields(&self, query: &Query) -> Yield {
        let SetExpr::Select(select) = query.body.as_ref() else { return Yield::default() };
        let mut columns = Vec::new();
        let mut grouped: HashMap<String, String> = HashMap::new();
        for item in &select.projection {
            let (expr, name) = match item {
                SelectItem::ExprWithAlias { expr, alias } => (expr, self.fold(alias)),
                SelectItem::UnnamedExpr(expr @ Expr::Identifier(ident)) => (expr, self.fold(ident)),
                SelectItem::UnnamedExpr(expr @ Expr::CompoundIdentifier(parts)) => {
                    (expr, parts.last().map(|last| self.fold(last)).unwrap_or_default())
                }
                _ => return Yield::default(),
            };
            grouped.insert(expr.to_string().to_lowercase(), name.clone());
            columns.push(name);
        }
        let GroupByExpr::Expressions(group, modifiers) = &select.group_by else {
            return Yield { columns: Some(columns), keys: Vec::new() };
        };
        if group.is_empty() || !modifiers.is_empty() {
            return Yield { columns: Some(columns), keys: Vec::new() };
        }
        let key: Option<Vec<String>> = group
            .iter()
            .map(|expr| match expr {
                Expr::Value(value) => {
                    let place: usize = value.value.to_string().parse().ok()?;
                    columns.get(place.checked_sub(1)?).cloned()
                }
                Expr::GroupingSets(_) | Expr::Cube(_) | Expr::Rollup(_) => None,
                other => grouped.get(&other.to_string().to_lowercase()).cloned(),
            })
            .collect();
        Yield { columns: Some(columns), keys: key.into_iter().collect() }
    }

    fn select(&mut self, select: &Select) {
        let Some((items, conditions)) = self.from(&select.from) else { return };
        if items.len() < 2 {
            return;
        }
        let mut equal = Equalities::default();
        for condition in &conditions {
            equal.read(condition.on, condition.outer.as_ref(), &items, self);
        }
        if let Some(condition) = &select.selection {
            equal.read(condition, None, &items, self);
        }
        self.natural(&select.from, &items, &mut equal);
        let mut aggregates = Aggregates(Vec::new());
        for item in &select.projection {
            let ControlFlow::Continue(()) = item.visit(&mut aggregates);
        }
        if let Some(having) = &select.having {
            let ControlFlow::Continue(()) = having.visit(&mut aggregates);
        }
        for function in aggregates.0 {
            if let Some(finding) = self.finding(&function, &items, &equal, select)
                && !self.findings.contains(&finding)
            {
                self.findings.push(finding);
            }
        }
    }

    fn finding(
        &self,
        function: &Function,
        items: &[Item<'a>],
        equal: &Equalities,
        select: &Select,
    ) -> Option<Finding> {
        let FunctionArguments::List(list) = &function.args else { return None };
        if list.duplicate_treatment == Some(DuplicateTreatment::Distinct) {
            return None;
        }
        let mut names = Names(Vec::new());
        for argument in &list.args {
            if let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = argument {
                let ControlFlow::Continue(()) = expr.visit(&mut names);
            }
        }
        let mut owners: Vec<usize> = Vec::new();
        let mut unknown = false;
        for name in &names.0 {
            match self.owner(name, items) {
                Some((item, _)) if !owners.contains(&item) => owners.push(item),
                Some(_) => {}
                None => unknown = true,
            }
        }
        let aggregate = function.to_string();
        let owner = match owners.as_slice() {
            // COUNT(*) counts the joined rows, as it says.
            [] if !unknown => return None,
            [] => {
                let verdict = Verdict::Undetermined;
                let by = Vec::new();
                return Some(Finding { aggregate, table: None, verdict, by, probe: None });
            }
            [first, ..] => *first,
        };
        let mut by = Vec::new();
        let mut sure = !unknown;
        // Of several tables, the one with the most rows decides: it is enough that each reaches the others.
        let mut best: Option<Vec<usize>> = None;
        for owner in &owners {
            let missing = equal.beyond(*owner, items);
            if best.as_ref().is_none_or(|known| missing.len() < known.len()) {
                best = Some(missing);
            }
        }
        for at in best.unwrap_or_default() {
            by.push(items[at].name.clone());
            sure &= equal.is_joined_by_known_columns(at, items);
        }
        let verdict = if !sure {
            Verdict::Undetermined
        } else if by.is_empty() {
            Verdict::NotMultiplied
        } else {
            Verdict::Multiplied
        };
        let table = Some(items[owner].name.clone());
        let probe = items[owner].table.and_then(|table| self.probe(table, &items[owner], select));
        Some(Finding { aggregate, table, verdict, by, probe })
    }

    /// Writes the statement that counts joined rows against rows of the table.
    fn probe(&self, table: &Table, item: &Item<'_>, select: &Select) -> Option<String> {
        let [key] = key_of(table)? else { return None };
        let from: Vec<String> = select.from.iter().map(ToString::to_string).collect();
        let condition = select
            .selection
            .as_ref()
            .map_or_else(String::new, |condition| format!(" WHERE {condition}"));
        let quote = |name: &str| self.dialect.quote(name);
        let column = format!("{}.{}", quote(&item.name), quote(key));
        Some(format!(
            "SELECT COUNT({column}) AS joined_rows, COUNT(DISTINCT {column}) AS own_rows FROM {}{condition}",
            from.join(", ")
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::catalogue;

    fn verdict(sql: &str) -> Vec<(String, Verdict)> {
        verdicts(sql, Dialect::Sqlite, &catalogue())
            .into_iter()
            .map(|finding| (finding.aggregate, finding.verdict))
            .collect()
    }

    #[test]
    fn a_total_summed_over_its_lines_is_multiplied_and_one_summed_over_its_customer_is_not() {
        for (sql, expected) in [
            (
                "SELECT SUM(o.total) FROM orders o JOIN lines l ON l.order_id = o.id",
                Verdict::Multiplied,
            ),
            (
                "SELECT c.country, SUM(o.total) FROM orders o JOIN customers c ON c.id = o.customer_id GROUP BY 1",
                Verdict::NotMultiplied,
            ),
            (
                "SELECT SUM(l.quantity * p.price) FROM lines l, products p WHERE p.id = l.product_id",
                Verdict::NotMultiplied,
            ),
            (
                "SELECT COUNT(c.id) FROM customers c LEFT JOIN orders o ON o.customer_id = c.id",
                Verdict::Multiplied,
            ),
            ("SELECT SUM(total) FROM orders, notes", Verdict::Undetermined),
            (
                "SELECT SUM(o.total) FROM orders o JOIN (SELECT order_id, SUM(quantity) AS q FROM lines GROUP BY order_id) l ON l.order_id = o.id",
                Verdict::NotMultiplied,
            ),
            (
                "SELECT SUM(o.total) FROM orders o JOIN lines l ON l.order_id = o.id AND l.line = 1",
                Verdict::NotMultiplied,
            ),
            (
                "SELECT COUNT(f.id) FROM flights f JOIN airports a ON a.code = f.origin JOIN airports b ON b.code = f.destination",
                Verdict::NotMultiplied,
            ),
        ] {
            let found = verdict(sql);
            assert_eq!(found.len(), 1, "{sql}: {found:?}");
            assert_eq!(found[0].1, expected, "{sql}");
        }
    }

    #[test]
    fn counting_rows_or_distinct_values_or_one_table_gives_no_warning() {
        for sql in [
            "SELECT COUNT(*) FROM orders o JOIN lines l ON l.order_id = o.id",
            "SELECT COUNT(DISTINCT o.id) FROM orders o JOIN lines l ON l.order_id = o.id",
            "SELECT MAX(o.total) FROM orders o JOIN lines l ON l.order_id = o.id",
            "SELECT SUM(total) FROM orders",
        ] {
            assert_eq!(verdict(sql), [], "{sql}");
        }
    }
}
