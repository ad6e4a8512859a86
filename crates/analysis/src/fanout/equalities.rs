//! Which columns of what is joined are equal, and what follows for how many rows match.

use sqlparser::ast::{BinaryOperator, Expr, Ident};

use super::Look;
use super::items::Item;
use crate::joins::type_class;

type Place = (usize, String);

/// Which columns of the items of FROM are equal to others, or to something fixed.
#[derive(Default)]
pub struct Equalities {
    pub pairs: Vec<(Place, Place)>,
    fixed: Vec<Place>,
}

impl Equalities {
    pub fn read(&mut self, condition: &Expr, items: &[Item<'_>], look: &Look<'_>) {
        match condition {
            Expr::Nested(inner) => self.read(inner, items, look),
            Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
                self.read(left, items, look);
                self.read(right, items, look);
            }
            Expr::BinaryOp { left, op: BinaryOperator::Eq, right } => {
                let place = |expr: &Expr| parts(expr).and_then(|name| look.owner(&name, items));
                match (place(left), place(right)) {
                    (Some(one), Some(other)) if one.0 != other.0 => {
                        if same_kind(&one, &other, items) {
                            self.pairs.push((one, other));
                        }
                    }
                    (Some(one), None) if matches!(right.as_ref(), Expr::Value(_)) => {
                        self.fixed.push(one);
                    }
                    (None, Some(other)) if matches!(left.as_ref(), Expr::Value(_)) => {
                        self.fixed.push(other);
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
                    for (one, other) in &self.pairs {
                        if one.0 == *at && reached.contains(&other.0) {
                            known.push(one.1.clone());
                        }
                        if other.0 == *at && reached.contains(&one.0) {
                            known.push(other.1.clone());
                        }
                    }
                    known.extend(self.fixed.iter().filter(|f| f.0 == *at).map(|f| f.1.clone()));
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

    /// Tells whether an item is a table whose keys are known and that is joined by columns.
    pub fn is_joined_by_known_columns(&self, at: usize, items: &[Item<'_>]) -> bool {
        items[at].table.is_some_and(|table| !table.is_view && !items[at].keys.is_empty())
            && self.pairs.iter().any(|(one, other)| one.0 == at || other.0 == at)
    }
}

/// Tells whether two columns hold values of one kind, so that equal values are one value.
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
