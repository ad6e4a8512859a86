//! The `WITH` queries in force at a place, so that a name means what it means to the database.

use sqlparser::ast::{Cte, Query, SetExpr, TableAlias};

use super::yields::Yield;
use crate::Dialect;

/// A `WITH` name that is in force.
struct Known {
    name: String,
    yielded: Yield,
    /// The definition, as it is written; none inside itself.
    text: Option<String>,
    is_recursive: bool,
}

/// A `WITH` name of an open query.
struct Definition {
    /// Address of its query in the syntax tree, which does not move during a visit.
    query: usize,
    name: String,
    aliases: Vec<String>,
    text: String,
    is_recursive: bool,
    /// Its query reads the rows that it made before.
    reads_itself: bool,
}

impl Definition {
    fn new(cte: &Cte, is_recursive: bool, dialect: Dialect) -> Self {
        let unites = matches!(*cte.query.body, SetExpr::SetOperation { .. });
        Self {
            query: address(&cte.query),
            name: dialect.fold(&cte.alias.name),
            aliases: aliases(&cte.alias, dialect),
            text: cte.to_string(),
            is_recursive,
            reads_itself: unites && (is_recursive || dialect.recursion_is_implied()),
        }
    }
}

struct Frame {
    /// Number of names in force around the query.
    before: usize,
    definitions: Vec<Definition>,
}

/// The open queries around the present place, and the names in force there.
#[derive(Default)]
pub struct Scope {
    frames: Vec<Frame>,
    known: Vec<Known>,
}

/// Returns the names that an alias gives to columns, as items of FROM have them.
pub fn aliases(alias: &TableAlias, dialect: Dialect) -> Vec<String> {
    alias.columns.iter().map(|column| dialect.fold(&column.name).to_lowercase()).collect()
}

fn address(query: &Query) -> usize {
    std::ptr::from_ref(query).addr()
}

impl Scope {
    pub fn enter(&mut self, query: &Query, dialect: Dialect) {
        let before = self.known.len();
        if let Some(itself) = self.definition(query).filter(|definition| definition.reads_itself) {
            let known = Known {
                name: itself.name.clone(),
                yielded: Yield::default(),
                text: None,
                is_recursive: itself.is_recursive,
            };
            self.known.push(known);
        }
        let with = query.with.iter().flat_map(|with| {
            with.cte_tables.iter().map(|cte| Definition::new(cte, with.recursive, dialect))
        });
        self.frames.push(Frame { before, definitions: with.collect() });
    }

    /// Leaves the query; if it defined a name, that name is in force from here on.
    pub fn leave(&mut self, query: &Query, yielded: &Yield) {
        if let Some(frame) = self.frames.pop() {
            self.known.truncate(frame.before);
        }
        if let Some(definition) = self.definition(query) {
            let known = Known {
                name: definition.name.clone(),
                yielded: yielded.clone().renamed(&definition.aliases),
                text: Some(definition.text.clone()),
                is_recursive: definition.is_recursive,
            };
            self.known.push(known);
        }
    }

    /// Returns whether a query is the definition of a `WITH` name; the query itself may be open.
    pub fn defines(&self, query: &Query) -> bool {
        let of = |frame: &Frame| frame.definitions.iter().any(|one| one.query == address(query));
        self.frames.iter().rev().nth(1).is_some_and(of)
    }

    /// Returns the columns of the `WITH` query that the folded name means.
    pub fn find(&self, name: &str) -> Option<&Yield> {
        self.known.iter().rev().find(|known| known.name == name).map(|known| &known.yielded)
    }

    /// Writes a WITH of every name in force; none where one hides another.
    pub fn with(&self) -> Option<String> {
        let hides = |(at, known): (usize, &Known)| {
            self.known[..at].iter().any(|one| one.name == known.name)
        };
        if self.known.is_empty() {
            return Some(String::new());
        }
        if self.known.iter().enumerate().any(hides) {
            return None;
        }
        let texts: Vec<&str> =
            self.known.iter().map(|known| known.text.as_deref()).collect::<Option<_>>()?;
        let recursive = self.known.iter().any(|known| known.is_recursive);
        Some(format!("WITH {}{} ", if recursive { "RECURSIVE " } else { "" }, texts.join(", ")))
    }

    fn definition(&self, query: &Query) -> Option<&Definition> {
        self.frames.last()?.definitions.iter().find(|one| one.query == address(query))
    }
}
