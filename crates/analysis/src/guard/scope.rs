//! Which `WITH` names are in force at a place; by position, so that no name is trusted too early.
//!
//! `WITH secret AS (SELECT * FROM secret) …` reads the real table inside the parentheses: a name counts
//! as a subquery only after its definition ended (inside it too, under `WITH RECURSIVE`).

use sqlparser::ast::Query;

use crate::Dialect;

struct Definition {
    name: String,
    /// Address of its query in the syntax tree, which does not move during a visit.
    query: usize,
    recursive: bool,
}

#[derive(Default)]
struct Frame {
    definitions: Vec<Definition>,
    /// This number of definitions are in scope at the present place.
    in_force: usize,
}

/// The open queries around the present place, outermost first.
#[derive(Default)]
pub struct Scope {
    frames: Vec<Frame>,
}

fn address(query: &Query) -> usize {
    std::ptr::from_ref(query).addr()
}

impl Scope {
    /// Enters a query, which may be the definition of a `WITH` name of the query around it.
    pub fn enter(&mut self, query: &Query, dialect: Dialect) {
        if let Some((frame, index)) = self.definition_of(query) {
            frame.in_force = index + usize::from(frame.definitions[index].recursive);
        }
        let definitions = query.with.iter().flat_map(|with| {
            with.cte_tables.iter().map(|cte| Definition {
                name: dialect.fold(&cte.alias.name),
                query: address(&cte.query),
                recursive: with.recursive || dialect.recursion_is_implied(),
            })
        });
        self.frames.push(Frame { definitions: definitions.collect(), in_force: 0 });
    }

    /// Leaves the query; if it defined a name, that name is in force from here on.
    pub fn leave(&mut self, query: &Query) {
        self.frames.pop();
        if let Some((frame, index)) = self.definition_of(query) {
            frame.in_force = index + 1;
        }
    }

    /// Returns whether the folded name means a `WITH` query at the present place.
    pub fn defines(&self, name: &str) -> bool {
        self.frames
            .iter()
            .any(|frame| frame.definitions.iter().take(frame.in_force).any(|d| d.name == name))
    }

    fn definition_of(&mut self, query: &Query) -> Option<(&mut Frame, usize)> {
        let frame = self.frames.last_mut()?;
        let index = frame.definitions.iter().position(|d| d.query == address(query))?;
        Some((frame, index))
    }
}
