//! The result of a query as another one joins it: its columns, its unique ones, and what its own joins did.

use std::collections::HashMap;

use sqlparser::ast::{
    Distinct, Expr, Function, GroupByExpr, Ident, LimitClause, Query, Select, SelectItem,
    SelectItemQualifiedWildcardKind, SetExpr, TopQuantity,
};

use super::columns::{Found, is_aggregate, names_of, values_of};
use super::equalities::{Place, parts};
use super::{Effect, Joined, Look};
use crate::guard;

/// The result of a query, as far as a join with it depends on it.
#[derive(Clone, Debug, Default)]
pub struct Yield {
    pub columns: Option<Vec<String>>,
    /// Sets of columns that name at most one row; an empty one means at most one row in all.
    pub keys: Vec<Vec<String>>,
    pub is_known: bool,
    /// By column: the effect of joins on the rows behind its values.
    pub effects: HashMap<String, Effect>,
}

impl Yield {
    /// Puts a list of aliases over the first of the columns.
    pub fn renamed(self, aliases: &[String]) -> Self {
        let Some(columns) = self.columns.as_ref().filter(|columns| columns.len() >= aliases.len())
        else {
            return if aliases.is_empty() { self } else { Self::default() };
        };
        let new = |name: &String| {
            let at = columns.iter().position(|column| column == name)?;
            Some(aliases.get(at).unwrap_or(name).clone())
        };
        Self {
            keys: self.keys.iter().filter_map(|key| key.iter().map(new).collect()).collect(),
            effects: self
                .effects
                .iter()
                .filter_map(|(name, one)| Some((new(name)?, one.clone())))
                .collect(),
            columns: columns.iter().map(new).collect(),
            is_known: self.is_known,
        }
    }

    /// Forgets a name that several columns have.
    fn without_ambiguous(mut self, outputs: &[Output<'_>]) -> Self {
        let is_one = |name: &String| {
            outputs.iter().filter(|one| one.name.as_ref() == Some(name)).count() < 2
        };
        let keys = self.keys.len();
        self.keys.retain(|key| key.iter().all(is_one));
        self.is_known &= self.keys.len() == keys;
        self.effects.retain(|name, _| is_one(name));
        self
    }
}

struct Output<'s> {
    name: Option<String>,
    expr: Option<&'s Expr>,
    /// The column of FROM that it is.
    place: Option<Place>,
}

impl<'a> Look<'a> {
    /// Returns what a query yields whose WITH is not yet in force.
    pub(super) fn yields(&mut self, query: &Query) -> Yield {
        self.scope.enter(query, self.dialect);
        for cte in query.with.iter().flat_map(|with| &with.cte_tables) {
            self.yields(&cte.query);
        }
        let yielded = self.columns_of(query);
        self.scope.leave(query, &yielded);
        yielded
    }

    /// Returns what a query yields whose WITH is in force.
    pub(super) fn columns_of(&mut self, query: &Query) -> Yield {
        let mut yielded = match query.body.as_ref() {
            SetExpr::Select(select) => self.of_select(select),
            SetExpr::Query(inner) => self.yields(inner),
            SetExpr::Values(values) if values.rows.len() == 1 => {
                Yield { keys: vec![Vec::new()], is_known: true, ..Yield::default() }
            }
            _ => Yield::default(),
        };
        if is_limited_to_one(query) {
            yielded.keys.push(Vec::new());
        }
        yielded
    }

    fn of_select(&mut self, select: &Select) -> Yield {
        let joined = self.joined(select);
        let calls = Found::calls_of(&select.projection);
        let outputs = self.outputs(select, joined.as_ref());
        let columns =
            outputs.as_ref().and_then(|all| all.iter().map(|one| one.name.clone()).collect());
        let mut yielded = Yield { columns, ..Yield::default() };
        // A function of several rows repeats the other columns.
        let makes_rows = |call: &Function| {
            let name = call.name.0.last().and_then(|part| part.as_ident());
            name.is_some_and(|name| {
                guard::is_allowed_table_function(self.dialect, &self.fold(name))
            })
        };
        let Some(outputs) = outputs.filter(|_| !calls.all.iter().any(makes_rows)) else {
            return yielded;
        };
        let GroupByExpr::Expressions(group, modifiers) = &select.group_by else { return yielded };
        if !group.is_empty() {
            yielded
                .keys
                .extend(self.key_of_groups(group, &outputs).filter(|_| modifiers.is_empty()));
            yielded.is_known = !yielded.keys.is_empty();
        } else if select.having.is_some() || calls.all.iter().any(is_aggregate) {
            yielded.keys.push(Vec::new());
            yielded.is_known = true;
        } else if let Some(distinct) = &select.distinct {
            let all = yielded.columns.clone().filter(|_| *distinct == Distinct::Distinct);
            yielded.keys.extend(all);
            yielded.is_known = !yielded.keys.is_empty();
        } else if let Some(joined) = joined {
            yielded.keys = keys_of(&outputs, &joined);
            yielded.is_known = joined.items.iter().all(|item| item.is_known);
            // A number of a row among others is there to choose one of them.
            if calls.all.iter().all(|call| call.over.is_none()) {
                yielded.effects = self.effects(&outputs, &joined, select);
            }
        }
        yielded.without_ambiguous(&outputs)
    }

    /// Returns the columns of a select list; `None` if a `*` is for unknown ones.
    fn outputs<'s>(
        &self,
        select: &'s Select,
        joined: Option<&Joined<'a>>,
    ) -> Option<Vec<Output<'s>>> {
        let items = joined.map_or(&[][..], |joined| &joined.items);
        let all_of = |at: usize| -> Option<Vec<Output<'s>>> {
            let columns = items.get(at)?.columns.as_ref()?.iter();
            let output = |name: &String| Output {
                name: Some(name.clone()),
                expr: None,
                place: Some((at, name.clone())),
            };
            Some(columns.map(output).collect())
        };
        let mut outputs = Vec::new();
        for item in &select.projection {
            match item {
                SelectItem::ExprWithAlias { expr, alias } => {
                    let place = parts(expr).and_then(|name| self.owner(&name, items));
                    outputs.push(Output { name: Some(self.lower(alias)), expr: Some(expr), place });
                }
                SelectItem::UnnamedExpr(expr) => {
                    let name = parts(expr);
                    let place = name.as_ref().and_then(|name| self.owner(name, items));
                    let name = name.and_then(|name| Some(self.lower(name.last()?)));
                    outputs.push(Output { name, expr: Some(expr), place });
                }
                SelectItem::Wildcard(_) => {
                    joined?;
                    for at in 0..items.len() {
                        outputs.extend(all_of(at)?);
                    }
                }
                SelectItem::QualifiedWildcard(
                    SelectItemQualifiedWildcardKind::ObjectName(name),
                    _,
                ) => {
                    let name = self.fold(name.0.last()?.as_ident()?);
                    outputs.extend(all_of(items.iter().position(|item| item.name == name)?)?);
                }
                _ => return None,
            }
        }
        Some(outputs)
    }

    /// Returns a name as items of FROM have it.
    pub(super) fn lower(&self, name: &Ident) -> String {
        self.fold(name).to_lowercase()
    }

    fn key_of_groups(&self, group: &[Expr], outputs: &[Output<'_>]) -> Option<Vec<String>> {
        let written = |expr: &Expr| expr.to_string().to_lowercase();
        let key = group.iter().map(|expr| match expr {
            Expr::Value(value) => {
                let place: usize = value.value.to_string().parse().ok()?;
                outputs.get(place.checked_sub(1)?)?.name.clone()
            }
            Expr::GroupingSets(_) | Expr::Cube(_) | Expr::Rollup(_) => None,
            other => {
                let same = |one: &&Output<'_>| {
                    one.expr.is_some_and(|expr| written(expr) == written(other))
                };
                outputs.iter().find(same)?.name.clone()
            }
        });
        key.collect()
    }

    /// Returns what the joins of a query do to the rows behind its columns.
    fn effects(
        &self,
        outputs: &[Output<'_>],
        joined: &Joined<'a>,
        select: &Select,
    ) -> HashMap<String, Effect> {
        let mut effects = HashMap::new();
        for output in outputs {
            let names = match (output.expr, &output.place) {
                (Some(expr), _) => names_of(&values_of(expr)),
                (None, Some((at, column))) => {
                    vec![vec![
                        Ident::with_quote('"', &joined.items[*at].name),
                        Ident::with_quote('"', column),
                    ]]
                }
                (None, None) => Vec::new(),
            };
            if let (Some(name), Some(effect)) = (&output.name, self.effect(&names, joined, select))
                && effect.table.is_some()
                && !effect.by.is_empty()
            {
                effects.insert(name.clone(), effect);
            }
        }
        effects
    }
}

/// Returns the keys of a query without groups: those of each item for which all others have one row.
fn keys_of(outputs: &[Output<'_>], joined: &Joined<'_>) -> Vec<Vec<String>> {
    let Joined { items, equal } = joined;
    if items.is_empty() {
        return vec![Vec::new()];
    }
    let mut keys = Vec::new();
    for (at, item) in items.iter().enumerate().filter(|(at, _)| equal.beyond(*at, items).is_empty())
    {
        for key in item.keys.iter().filter(|key| !key.is_empty() || items.len() == 1) {
            let places = key.iter().map(|part| (at, part.to_lowercase()));
            let open = places.filter(|place| !equal.is_fixed(place));
            let name = |place: Place| {
                outputs.iter().find(|one| one.place.as_ref() == Some(&place))?.name.clone()
            };
            keys.extend(open.map(name).collect::<Option<Vec<String>>>());
        }
    }
    keys
}

fn is_limited_to_one(query: &Query) -> bool {
    let is_one = |expr: &Expr| expr.to_string() == "1";
    let limited = match &query.limit_clause {
        Some(LimitClause::LimitOffset { limit: Some(limit), .. })
        | Some(LimitClause::OffsetCommaLimit { limit, .. }) => is_one(limit),
        _ => false,
    };
    let fetched = query.fetch.as_ref().is_some_and(|fetch| {
        !fetch.with_ties && !fetch.percent && fetch.quantity.as_ref().is_none_or(is_one)
    });
    let SetExpr::Select(select) = query.body.as_ref() else { return limited || fetched };
    let topped = select.top.as_ref().is_some_and(|top| {
        !top.with_ties
            && !top.percent
            && match &top.quantity {
                Some(TopQuantity::Expr(expr)) => is_one(expr),
                Some(TopQuantity::Constant(count)) => *count == 1,
                None => false,
            }
    });
    limited || fetched || topped
}
