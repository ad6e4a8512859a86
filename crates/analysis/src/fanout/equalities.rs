//! The equal columns of joined items, and the consequences for how many rows match.

use std::ops::Range;

use sqlparser::ast::{BinaryOperator, Expr, Ident};

use super::Look;
use super::items::Item;
use crate::joins::type_class;

type Place = (usize, String);

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
                    (Some(one), None) if matches!(right.as_ref(), Expr::Value(_)) => {
                        self.fixed(one, outer);
                    }
                    (None, Some(other)) if matches!(left.as_ref(), Expr::Value(_)) => {
                        self.fixed(other, outer);
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }

    /// Returns the items that are not reached from `owner` through unique keys of theirs.
    pub fn beyond(&self, owner: usize, items: &[Item<'_>]) -> Vec<usize> {
        let mut reached = vec![owner];
        loop {
            let next = (0..items.len()).find(|at| {
                !reached.contains(at) && {
                    let mut known: Vec<String> = Vec::new();
                    let equality =
                        self.pairs.iter().filter(|equality| equality.applies(*at, owner));
                    for (one, other) in equality.map(|equality| &equality.what) {
                        if one.0 == *at && reached.contains(&other.0) {
                            known.push(one.1.clone());
                        }
                        if other.0 == *at && reached.contains(&one.0) {
                            known.push(other.1.clone());
                        }
                    }
                    let fixed = self.fixed.iter().filter(|equality| equality.applies(*at, owner));
                    let fixed = fixed.map(|equality| &equality.what).filter(|place| place.0 == *at);
                    known.extend(fixed.map(|place| place.1.clone()));
                    items[*at].keys.iter().any(|key| {
                        !key.is_empty()
                            && key.iter().all(|part| known.contains(&part.to_lowercase()))
                    })
                }
            });
            match next {
                Some(at) => reached.push(at),
                None => return (0..items.len()).filter(|at| !reached.contains(at)).collect(),
            }
        }
    }

    pub fn is_joined_by_known_columns(&self, at: usize, items: &[Item<'_>]) -> bool {
        items[at].table.is_some_and(|table| !table.is_view && !items[at].keys.is_empty())
            && self.pairs.iter().any(|equality| equality.what.0.0 == at || equality.what.1.0 == at)
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

fn parts(expr: &Expr) -> Option<Vec<Ident>> {
    match expr {
        Expr::Identifier(ident) => Some(vec![ident.clone()]),
        Expr::CompoundIdentifier(parts) => Some(parts.clone()),
        Expr::Nested(inner) => parts(inner),
        _ => None,
    }
}
