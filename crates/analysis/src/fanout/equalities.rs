//! The equal columns of joined items, and the consequences for how many rows match.

use std::collections::BTreeSet;
use std::ops::{ControlFlow, Range};

use sqlparser::ast::{BinaryOperator, Expr, Ident, Visit as _};

use super::columns::Found;
use super::items::Item;
use super::{Effect, Look};
use crate::joins::type_class;

/// A column of an item, both by their place in FROM and their name.
pub type Place = (usize, String);

/// The items on the two sides of an outer join.
#[derive(Clone, Debug)]
pub struct Sides {
    pub left: Range<usize>,
    pub right: Range<usize>,
}

impl Sides {
    /// Returns whether the join's condition restricts an item's rows for one row of `owner`.
    ///
    /// A row stays even if the condition fails, so it does not restrict the owner's own side.
    fn says_of(&self, at: usize, owner: usize) -> bool {
        if self.right.contains(&owner) { self.left.contains(&at) } else { self.right.contains(&at) }
    }
}

/// A condition, with the outer join it belongs to.
struct Claim<T> {
    what: T,
    outer: Option<Sides>,
}

impl<T> Claim<T> {
    fn applies(&self, at: usize, owner: usize) -> bool {
        self.outer.as_ref().is_none_or(|sides| sides.says_of(at, owner))
    }
}

/// The columns of FROM items that equal other ones, or a constant.
#[derive(Default)]
pub struct Equalities {
    pairs: Vec<Claim<(Place, Place)>>,
    fixed: Vec<Claim<Place>>,
    /// Items that some condition connects with another one.
    linked: BTreeSet<usize>,
}

impl Equalities {
    /// Notes that two columns are equal.
    pub fn pair(&mut self, one: Place, other: Place, outer: Option<&Sides>) {
        self.pairs.push(Claim { what: (one, other), outer: outer.cloned() });
    }

    fn fixed(&mut self, place: Place, outer: Option<&Sides>) {
        self.fixed.push(Claim { what: place, outer: outer.cloned() });
    }

    /// Reads a condition; `outer` is the outer join that it belongs to, if it belongs to one.
    pub fn read(
        &mut self,
        condition: &Expr,
        outer: Option<&Sides>,
        items: &[Item<'_>],
        look: &Look<'_>,
    ) {
        match condition {
            Expr::Nested(inner) => self.read(inner, outer, items, look),
            Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
                self.read(left, outer, items, look);
                self.read(right, outer, items, look);
            }
            Expr::BinaryOp { left, op: BinaryOperator::Eq, right } => {
                let place = |expr: &Expr| parts(expr).and_then(|name| look.owner(&name, items));
                match (place(left), place(right)) {
                    (Some(one), Some(other))
                        if one.0 != other.0 && same_kind(&one, &other, items) =>
                    {
                        self.pair(one, other, outer);
                    }
                    (Some(one), None) if is_constant(right, items, look) => self.fixed(one, outer),
                    (None, Some(other)) if is_constant(left, items, look) => {
                        self.fixed(other, outer);
                    }
                    _ => self.read_names(condition, items, look),
                }
            }
            _ => self.read_names(condition, items, look),
        }
    }

    /// Notes what a condition connects whose effect is not known; a name of no known item may be that of any.
    fn read_names(&mut self, condition: &Expr, items: &[Item<'_>], look: &Look<'_>) {
        let mut names = Found::names().everywhere();
        let ControlFlow::Continue(()) = condition.visit(&mut names);
        let owners = names.all.iter().map(|name| look.owner(name, items).map(|place| place.0));
        match owners.collect::<Option<BTreeSet<usize>>>() {
            Some(owners) if owners.len() < 2 => {}
            Some(owners) => self.link(owners),
            None => self.link(0..items.len()),
        }
    }

    pub fn link(&mut self, items: impl IntoIterator<Item = usize>) {
        self.linked.extend(items);
    }

    /// Returns the items that are not reached from `owner` through unique keys of theirs.
    pub fn beyond(&self, owner: usize, items: &[Item<'_>]) -> Vec<usize> {
        let mut reached = vec![owner];
        loop {
            let is_next = |at: &usize| {
                !reached.contains(at)
                    && self.is_one_row(*at, owner, items, |one| reached.contains(&one))
            };
            match (0..items.len()).find(is_next) {
                Some(at) => reached.push(at),
                None => return (0..items.len()).filter(|at| !reached.contains(at)).collect(),
            }
        }
    }

    /// Returns whether at most one row of an item matches a row of each reached one.
    fn is_one_row(
        &self,
        at: usize,
        owner: usize,
        items: &[Item<'_>],
        is_reached: impl Fn(usize) -> bool,
    ) -> bool {
        let mut known: Vec<&str> = Vec::new();
        for claim in self.pairs.iter().filter(|claim| claim.applies(at, owner)) {
            let (one, other) = &claim.what;
            if one.0 == at && is_reached(other.0) {
                known.push(&one.1);
            }
            if other.0 == at && is_reached(one.0) {
                known.push(&other.1);
            }
        }
        let fixed =
            self.fixed.iter().filter(|claim| claim.applies(at, owner) && claim.what.0 == at);
        known.extend(fixed.map(|claim| claim.what.1.as_str()));
        let is_known = |part: &String| known.contains(&part.to_lowercase().as_str());
        items[at].keys.iter().any(|key| key.iter().all(is_known))
    }

    /// Returns the items beyond `owner` that repeat its rows directly, not through items between.
    pub fn multipliers(&self, owner: usize, items: &[Item<'_>]) -> Vec<usize> {
        let beyond = self.beyond(owner, items);
        let repeats = |at: &usize| !self.is_one_row(*at, owner, items, |one| one != *at);
        let repeating: Vec<usize> = beyond.iter().copied().filter(repeats).collect();
        if repeating.is_empty() { beyond } else { repeating }
    }

    /// Returns whether an item can have several rows for one: by its keys, or because nothing connects it.
    pub fn is_known_to_repeat(&self, at: usize, items: &[Item<'_>]) -> bool {
        if self.is_paired(at) { items[at].is_known } else { !self.linked.contains(&at) }
    }

    /// Returns whether an item is joined by something else than equal columns.
    pub fn is_unread(&self, at: usize) -> bool {
        self.linked.contains(&at) && !self.is_paired(at)
    }

    fn is_paired(&self, at: usize) -> bool {
        self.pairs.iter().any(|claim| claim.what.0.0 == at || claim.what.1.0 == at)
    }

    /// Returns whether a column has one value in all rows.
    pub fn is_fixed(&self, place: &Place) -> bool {
        self.fixed.iter().any(|claim| claim.outer.is_none() && claim.what == *place)
    }

    /// Returns what the query of an item did to the rows of these columns; nothing if one has the query's own rows, or
    /// a condition chooses among them.
    pub fn inner<'i>(
        &self,
        owner: usize,
        places: &[&Place],
        items: &'i [Item<'_>],
    ) -> Option<&'i Effect> {
        let is_chosen = self.fixed.iter().any(|claim| claim.what.0 == owner);
        let own = places.iter().filter(|place| place.0 == owner && !is_chosen);
        let effects = own.map(|place| items[owner].effects.get(&place.1));
        effects.collect::<Option<Vec<_>>>()?.first().copied()
    }
}

/// Returns whether an expression is a literal, or a column of a query around this one.
fn is_constant(expr: &Expr, items: &[Item<'_>], look: &Look<'_>) -> bool {
    match expr {
        Expr::Value(_) => true,
        Expr::CompoundIdentifier(parts) => {
            let table = parts.len().checked_sub(2).and_then(|at| parts.get(at));
            table.is_some_and(|table| items.iter().all(|item| item.name != look.fold(table)))
        }
        _ => false,
    }
}

/// Returns whether two columns have values of one kind, so that equal values are one value.
fn same_kind(one: &Place, other: &Place, items: &[Item<'_>]) -> bool {
    let kind = |place: &Place| {
        let column = items[place.0].table?.column(&place.1)?;
        Some(type_class(&column.data_type))
    };
    match (kind(one), kind(other)) {
        (Some(one), Some(other)) => one == other,
        _ => true,
    }
}

/// Returns the name that an expression is.
pub fn parts(expr: &Expr) -> Option<Vec<Ident>> {
    match expr {
        Expr::Identifier(ident) => Some(vec![ident.clone()]),
        Expr::CompoundIdentifier(parts) => Some(parts.clone()),
        Expr::Nested(inner) => parts(inner),
        _ => None,
    }
}
