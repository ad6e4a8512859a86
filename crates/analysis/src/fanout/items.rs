//! The items that `FROM` joins: tables with their keys, and queries with their groups.

use std::collections::HashMap;

use sqlparser::ast::{Expr, Ident, JoinConstraint, JoinOperator, TableFactor, TableWithJoins};

use super::equalities::{Equalities, Place, Sides};
use super::scope::aliases;
use super::yields::Yield;
use super::{Effect, Look};
use crate::Table;

#[derive(Clone)]
pub struct Item<'a> {
    pub name: String,
    pub table: Option<&'a Table>,
    /// Sets of columns that name at most one row.
    pub keys: Vec<Vec<String>>,
    pub columns: Option<Vec<String>>,
    /// All its keys are known, so that other columns can name several rows.
    pub is_known: bool,
    /// The effects of the joins of a query on the rows behind its columns.
    pub effects: HashMap<String, Effect>,
}

impl<'a> Item<'a> {
    fn of(name: String, yielded: Yield) -> Self {
        let Yield { columns, keys, is_known, effects } = yielded;
        Self { name, table: None, keys, columns, is_known, effects }
    }
}

/// The condition of a join, with its sides where rows stay that it does not hold for.
pub struct Condition<'s> {
    pub on: &'s Expr,
    pub outer: Option<Sides>,
}

impl<'a> Look<'a> {
    /// Returns the items of FROM and the conditions of its joins; `None` for unsupported forms.
    pub(super) fn from<'s>(
        &mut self,
        from: &'s [TableWithJoins],
    ) -> Option<(Vec<Item<'a>>, Vec<Condition<'s>>)> {
        let mut items = Vec::new();
        let mut conditions = Vec::new();
        for one in from {
            self.chain(one, &mut items, &mut conditions)?;
        }
        Some((items, conditions))
    }

    fn chain<'s>(
        &mut self,
        from: &'s TableWithJoins,
        items: &mut Vec<Item<'a>>,
        conditions: &mut Vec<Condition<'s>>,
    ) -> Option<()> {
        let begin = items.len();
        self.item(&from.relation, items, conditions)?;
        for join in &from.joins {
            let middle = items.len();
            self.item(&join.relation, items, conditions)?;
            if let Some(JoinConstraint::On(on)) = constraint(&join.join_operator) {
                let sides = Sides { left: begin..middle, right: middle..items.len() };
                let outer = is_outer(&join.join_operator).then_some(sides);
                conditions.push(Condition { on, outer });
            }
        }
        Some(())
    }

    fn item<'s>(
        &mut self,
        factor: &'s TableFactor,
        items: &mut Vec<Item<'a>>,
        conditions: &mut Vec<Condition<'s>>,
    ) -> Option<()> {
        match factor {
            TableFactor::Table { name, alias, args: None, .. } => {
                let last = name.0.last()?.as_ident()?;
                let called = alias.as_ref().map_or(last, |alias| &alias.name);
                let name_of = self.fold(called);
                let is_cte = name.0.len() == 1;
                if let Some(yielded) = self.scope.find(&self.fold(last)).filter(|_| is_cte) {
                    items.push(Item::of(name_of, yielded.clone()));
                    return Some(());
                }
                let written = name.to_string();
                let table = self.catalogue.named(&written)?;
                if alias.as_ref().is_some_and(|alias| !alias.columns.is_empty()) {
                    items.push(Item::of(name_of, Yield::default()));
                    return Some(());
                }
                let keys = std::iter::once(&table.primary_key).chain(&table.unique);
                let keys: Vec<Vec<String>> = keys.filter(|key| !key.is_empty()).cloned().collect();
                let columns = table.columns.iter().map(|c| c.name.to_lowercase()).collect();
                items.push(Item {
                    name: name_of,
                    table: Some(table),
                    is_known: !table.is_view && !keys.is_empty(),
                    keys,
                    columns: Some(columns),
                    effects: HashMap::new(),
                });
            }
            TableFactor::Derived { subquery, alias, .. } => {
                let names = alias.as_ref().map(|alias| aliases(alias, self.dialect));
                let name = alias.as_ref().map(|alias| self.fold(&alias.name)).unwrap_or_default();
                let yielded = self.yields(subquery).renamed(&names.unwrap_or_default());
                items.push(Item::of(name, yielded));
            }
            TableFactor::NestedJoin { table_with_joins, alias: None } => {
                self.chain(table_with_joins, items, conditions)?;
            }
            other => {
                let alias = match other {
                    TableFactor::Table { alias, .. }
                    | TableFactor::Function { alias, .. }
                    | TableFactor::UNNEST { alias, .. } => alias.as_ref(),
                    _ => return None,
                };
                let name = alias.map(|alias| self.fold(&alias.name)).unwrap_or_default();
                items.push(Item::of(name, Yield::default()));
            }
        }
        Some(())
    }

    /// Reads USING and NATURAL as the equalities that they are.
    pub(super) fn natural(
        &self,
        from: &[TableWithJoins],
        items: &[Item<'_>],
        equal: &mut Equalities,
    ) {
        let mut at = 0;
        for one in from {
            let begin = at;
            at += width(&one.relation);
            for join in &one.joins {
                let here = at..at + width(&join.relation);
                let sides = Sides { left: begin..at, right: here.clone() };
                let outer = is_outer(&join.join_operator).then_some(sides);
                at = here.end;
                let names: Vec<String> = match constraint(&join.join_operator) {
                    Some(JoinConstraint::Using(names)) => names
                        .iter()
                        .filter_map(|name| name.0.last()?.as_ident().map(|name| self.lower(name)))
                        .collect(),
                    Some(JoinConstraint::Natural) => {
                        items.get(here.start).and_then(|i| i.columns.clone()).unwrap_or_default()
                    }
                    _ => continue,
                };
                equal.link(begin..here.end);
                for column in names {
                    let has = |item: &usize| {
                        let columns = items.get(*item).and_then(|item| item.columns.as_ref());
                        columns.is_some_and(|columns| columns.contains(&column))
                    };
                    let left = (begin..here.start).find(has);
                    let right = here.clone().find(has);
                    if let (Some(left), Some(right)) = (left, right) {
                        equal.pair((left, column.clone()), (right, column), outer.as_ref());
                    }
                }
            }
        }
    }

    /// Returns which item a name belongs to, and the column.
    pub(super) fn owner(&self, name: &[Ident], items: &[Item<'_>]) -> Option<Place> {
        match name {
            [column] => {
                let column = self.lower(column);
                let mut found = items.iter().enumerate().filter(|(_, item)| {
                    item.columns.as_ref().is_none_or(|columns| columns.contains(&column))
                });
                let (at, item) = found.next()?;
                (found.next().is_none() && item.columns.is_some()).then_some((at, column))
            }
            [.., item, column] => {
                let item = self.fold(item);
                let at = items.iter().position(|known| known.name == item)?;
                Some((at, self.lower(column)))
            }
            [] => None,
        }
    }
}

fn width(factor: &TableFactor) -> usize {
    match factor {
        TableFactor::NestedJoin { table_with_joins, .. } => {
            let joins = table_with_joins.joins.iter().map(|join| width(&join.relation));
            width(&table_with_joins.relation) + joins.sum::<usize>()
        }
        _ => 1,
    }
}

fn is_outer(operator: &JoinOperator) -> bool {
    !matches!(operator, JoinOperator::Join(_) | JoinOperator::Inner(_) | JoinOperator::CrossJoin(_))
}

fn constraint(operator: &JoinOperator) -> Option<&JoinConstraint> {
    match operator {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint)
        | JoinOperator::Right(constraint)
        | JoinOperator::RightOuter(constraint)
        | JoinOperator::FullOuter(constraint)
        | JoinOperator::CrossJoin(constraint) => Some(constraint),
        _ => None,
    }
}
