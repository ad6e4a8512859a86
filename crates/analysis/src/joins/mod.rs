//! How tables join: by declared foreign keys, and by keys that names and types suggest.
//!
//! Enter at [`JoinGraph::new`]. Invariant: two keys from one table to another are two paths, never one; inferred ones
//! are marked.

mod inference;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::guard::TableName;
use crate::{Catalogue, Table};
pub(crate) use inference::type_class;

const MAX_PATHS: usize = 5;
/// Most joins of one way between two tables.
const MAX_JOINS: usize = 4;

/// One step from a table to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Join {
    /// The table that holds the reference.
    pub table: String,
    pub columns: Vec<String>,
    /// The table that is referred to.
    pub to_table: String,
    pub to_columns: Vec<String>,
    /// As a statement writes it; a table that is joined to itself is called `NAME_2` the second time.
    pub condition: String,
    /// Suggested by names and types; the database declares no such key.
    pub inferred: bool,
}

/// One way to join tables.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JoinPath {
    /// The tables on the way, in order; more than were asked for where others lie between.
    pub tables: Vec<String>,
    pub joins: Vec<Join>,
}

/// Ways to join some tables.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JoinPaths {
    /// Shortest first; several where tables refer to each other in several ways.
    pub paths: Vec<JoinPath>,
    /// Tables that no key leads to.
    pub unreachable: Vec<String>,
}

/// The tables of a catalogue and the keys between them.
pub struct JoinGraph<'a> {
    catalogue: &'a Catalogue,
    edges: Vec<Edge>,
    /// Edges by the table at either end.
    at: Vec<Vec<usize>>,
}

#[derive(Clone, Debug)]
struct Edge {
    from: usize,
    columns: Vec<String>,
    to: usize,
    to_columns: Vec<String>,
    inferred: bool,
}

impl<'a> JoinGraph<'a> {
    /// Reads the declared keys and infers further ones.
    pub fn new(catalogue: &'a Catalogue) -> Self {
        let names = catalogue.tables.iter().map(|table| &table.name);
        let names = names.map(|name| (name.schema.as_str(), name.name.as_str()));
        let index: HashMap<(&str, &str), usize> = names.zip(0..).collect();
        let mut edges = Vec::new();
        for (from, table) in catalogue.tables.iter().enumerate() {
            for key in &table.foreign_keys {
                let exact = index.get(&(key.table.schema.as_str(), key.table.name.as_str()));
                let to = exact.copied().or_else(|| position(catalogue, &key.table));
                let Some(to) = to else { continue };
                let columns = key.columns.clone();
                edges.push(Edge { from, columns, to, to_columns: key.to.clone(), inferred: false });
            }
        }
        inference::infer(catalogue, &mut edges);
        let mut at = vec![Vec::new(); catalogue.tables.len()];
        for (number, edge) in edges.iter().enumerate() {
            at[edge.from].push(number);
            if edge.to != edge.from {
                at[edge.to].push(number);
            }
        }
        Self { catalogue, edges, at }
    }

    pub fn joins(&self) -> Vec<Join> {
        self.edges.iter().map(|edge| self.join(edge)).collect()
    }

    pub fn paths(&self, tables: &[TableName]) -> JoinPaths {
        let wanted: Vec<usize> =
            tables.iter().filter_map(|name| position(self.catalogue, name)).collect();
        let Some((first, others)) = wanted.split_first() else { return JoinPaths::default() };
        if let [second] = others {
            let paths = self.between(*first, *second);
            let unreachable = if paths.is_empty() { vec![self.shown(*second)] } else { Vec::new() };
            return JoinPaths { paths, unreachable };
        }
        let mut joined = vec![*first];
        let mut chosen: Vec<usize> = Vec::new();
        let mut unreachable = Vec::new();
        for (at, other) in others.iter().enumerate() {
            // A table that is named again is joined to itself, if it has such a key.
            let mut edges = self.at[*other].iter().copied();
            let itself = edges.find(|edge| self.ends(*edge) == [*other; 2]);
            let itself = itself.filter(|_| wanted[..=at].contains(other)).map(|edge| vec![edge]);
            match itself.or_else(|| self.nearest(&joined, *other)) {
                Some(edges) => {
                    self.add_ends(&edges, &mut joined);
                    let new = edges.into_iter().filter(|edge| !chosen.contains(edge));
                    let new: Vec<usize> = new.collect();
                    chosen.extend(new);
                }
                None => unreachable.push(self.shown(*other)),
            }
        }
        let mut tables: Vec<String> = joined.iter().map(|at| self.shown(*at)).collect();
        let itself = chosen.iter().map(|edge| self.ends(*edge)).filter(|[from, to]| from == to);
        tables.extend(itself.map(|[_, to]| self.with_alias(to)));
        let paths = self.with_parallels(chosen).into_iter().map(|edges| JoinPath {
            tables: tables.clone(),
            joins: edges.iter().map(|edge| self.join(&self.edges[*edge])).collect(),
        });
        JoinPaths { paths: paths.collect(), unreachable }
    }

    /// Returns some edges, and the same with each other key between two of their tables in its place.
    fn with_parallels(&self, edges: Vec<usize>) -> Vec<Vec<usize>> {
        let are_parallel = |one: usize, other: usize| {
            let [from, to] = self.ends(other);
            one != other && [[from, to], [to, from]].contains(&self.ends(one))
        };
        let mut found = vec![edges];
        let mut at = 0;
        while let Some(edges) = found.get(at).cloned() {
            for (place, edge) in edges.iter().enumerate() {
                for other in (0..self.edges.len()).filter(|other| are_parallel(*edge, *other)) {
                    let mut changed = edges.clone();
                    changed[place] = other;
                    if found.len() < MAX_PATHS
                        && !edges.contains(&other)
                        && !found.contains(&changed)
                    {
                        found.push(changed);
                    }
                }
            }
            at += 1;
        }
        found
    }

    /// Adds to a set of tables those between them, so that all can be joined.
    pub fn closure(&self, tables: &[usize]) -> Vec<usize> {
        let mut all: Vec<usize> = Vec::new();
        for table in tables {
            if all.contains(table) {
                continue;
            }
            if !all.is_empty()
                && let Some(edges) = self.nearest(&all, *table)
                && edges.len() <= 3
            {
                self.add_ends(&edges, &mut all);
            }
            if !all.contains(table) {
                all.push(*table);
            }
        }
        all
    }

    fn ends(&self, edge: usize) -> [usize; 2] {
        [self.edges[edge].from, self.edges[edge].to]
    }

    fn add_ends(&self, edges: &[usize], tables: &mut Vec<usize>) {
        for end in edges.iter().flat_map(|edge| self.ends(*edge)) {
            if !tables.contains(&end) {
                tables.push(end);
            }
        }
    }

    /// Returns the ways between two tables, shortest first.
    fn between(&self, start: usize, end: usize) -> Vec<JoinPath> {
        let mut found = Vec::new();
        let mut queue: VecDeque<(Vec<usize>, Vec<usize>)> = VecDeque::from([(vec![start], vec![])]);
        let mut looked = 0;
        while let Some((tables, edges)) = queue.pop_front() {
            looked += 1;
            if found.len() == MAX_PATHS || looked > 20_000 {
                break;
            }
            let last = tables.last().copied().unwrap_or(start);
            if last == end && !edges.is_empty() {
                found.push(self.path(&tables, &edges));
                continue;
            }
            // Longer ways than the shortest by one are detours.
            let shortest = found.first().map_or(MAX_JOINS, |path| path.joins.len() + 1);
            if edges.len() >= shortest.min(MAX_JOINS) {
                continue;
            }
            for edge in &self.at[last] {
                let other = self.other_end(*edge, last);
                if !tables.contains(&other) || (start == end && other == end) {
                    let mut tables = tables.clone();
                    tables.push(other);
                    let mut edges = edges.clone();
                    edges.push(*edge);
                    queue.push_back((tables, edges));
                }
            }
        }
        found.sort_by_key(|path| (path.joins.len(), path.joins.iter().any(|join| join.inferred)));
        found
    }

    /// Returns the edges of the shortest way from any of some tables to another; declared keys come first.
    fn nearest(&self, from: &[usize], to: usize) -> Option<Vec<usize>> {
        if from.contains(&to) {
            return Some(Vec::new());
        }
        let mut queue: VecDeque<usize> = from.iter().copied().collect();
        let mut came: HashMap<usize, (usize, usize)> = HashMap::new();
        while let Some(table) = queue.pop_front() {
            let mut edges = self.at[table].clone();
            edges.sort_by_key(|edge| self.edges[*edge].inferred);
            for edge in edges {
                let other = self.other_end(edge, table);
                if from.contains(&other) || came.contains_key(&other) {
                    continue;
                }
                came.insert(other, (edge, table));
                if other == to {
                    let mut path = Vec::new();
                    let mut at = to;
                    while let Some((edge, before)) = came.get(&at) {
                        path.push(*edge);
                        at = *before;
                    }
                    path.reverse();
                    return Some(path);
                }
                queue.push_back(other);
            }
        }
        None
    }

    fn other_end(&self, edge: usize, end: usize) -> usize {
        let edge = &self.edges[edge];
        if edge.from == end { edge.to } else { edge.from }
    }

    fn shown(&self, at: usize) -> String {
        self.catalogue.tables[at].name.shown()
    }

    /// Returns the name of a table that a statement names a second time.
    fn again(&self, at: usize) -> String {
        crate::guard::shown(&format!("{}_2", self.catalogue.tables[at].name.name))
    }

    fn with_alias(&self, at: usize) -> String {
        format!("{} AS {}", self.shown(at), self.again(at))
    }

    /// Writes a way from table to table; one that ends where it began has an alias there.
    fn path(&self, tables: &[usize], edges: &[usize]) -> JoinPath {
        let last = tables.len().saturating_sub(1);
        let is_again = |place: usize| place == last && place > 0 && tables[place] == tables[0];
        let called = |place: usize| {
            if is_again(place) { self.again(tables[place]) } else { self.shown(tables[place]) }
        };
        let joins = edges.iter().enumerate().map(|(place, edge)| {
            let edge = &self.edges[*edge];
            let next = place + 1;
            if edge.from == tables[place] {
                self.named(edge, &called(place), &called(next))
            } else {
                self.named(edge, &called(next), &called(place))
            }
        });
        let table = |place: usize| {
            if is_again(place) { self.with_alias(tables[place]) } else { self.shown(tables[place]) }
        };
        JoinPath { joins: joins.collect(), tables: (0..tables.len()).map(table).collect() }
    }

    fn join(&self, edge: &Edge) -> Join {
        let to = if edge.from == edge.to { self.again(edge.to) } else { self.shown(edge.to) };
        self.named(edge, &self.shown(edge.from), &to)
    }

    /// Writes a key with the names that a statement has for its tables.
    fn named(&self, edge: &Edge, from: &str, to: &str) -> Join {
        let shown = crate::guard::shown;
        let pairs = edge.columns.iter().zip(&edge.to_columns);
        let condition: Vec<String> = pairs
            .map(|(column, of)| format!("{from}.{} = {to}.{}", shown(column), shown(of)))
            .collect();
        Join {
            table: self.shown(edge.from),
            columns: edge.columns.clone(),
            to_table: self.shown(edge.to),
            to_columns: edge.to_columns.clone(),
            condition: condition.join(" AND "),
            inferred: edge.inferred,
        }
    }
}

fn position(catalogue: &Catalogue, name: &TableName) -> Option<usize> {
    let exact = |table: &Table| table.name.schema == name.schema && table.name.name == name.name;
    let alike = |table: &Table| {
        table.name.schema == name.schema && table.name.name.eq_ignore_ascii_case(&name.name)
    };
    let tables = &catalogue.tables;
    tables.iter().position(exact).or_else(|| tables.iter().position(alike))
}

/// Returns the first column that distinguishes two tables' rows, for a probe.
pub(crate) fn key_of(table: &Table) -> Option<&[String]> {
    if table.primary_key.is_empty() {
        table.unique.first().map(Vec::as_slice)
    } else {
        Some(&table.primary_key)
    }
}
