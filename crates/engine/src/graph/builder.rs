//! Declares a graph: nodes, edges, joins, and how names are resolved at run time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::{END, Node, RetryPolicy, State, Target};

type RouteFn<S> = Arc<dyn Fn(&S) -> Vec<Target> + Send + Sync>;

/// The successors of a node that does not choose them with `goto`.
#[derive(Clone)]
pub(super) enum Next<S> {
    Edges(Vec<String>),
    Route(RouteFn<S>),
}

/// A node with its routes and policies.
#[derive(Clone)]
pub struct NodeEntry<S: State> {
    pub(super) node: Arc<dyn Node<S>>,
    pub(super) next: Next<S>,
    pub(super) retry: RetryPolicy,
    pub(crate) timeout: Option<Duration>,
}

impl<S: State> std::fmt::Debug for NodeEntry<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NodeEntry")
            .field("retry", &self.retry)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

impl<S: State> NodeEntry<S> {
    /// Makes an entry without edges: the node routes by `goto`, or its branch ends.
    pub fn new(node: Arc<dyn Node<S>>) -> Self {
        Self { node, next: Next::Edges(Vec::new()), retry: RetryPolicy::NONE, timeout: None }
    }

    /// Returns the node itself.
    pub fn node(&self) -> &Arc<dyn Node<S>> {
        &self.node
    }

    /// Follows the node with another one.
    #[must_use]
    pub fn then(mut self, node: impl Into<String>) -> Self {
        match &mut self.next {
            Next::Edges(edges) => edges.push(node.into()),
            Next::Route(_) => self.next = Next::Edges(vec![node.into()]),
        }
        self
    }

    /// Sets the retry policy.
    #[must_use]
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = policy;
        self
    }

    /// Bounds one attempt of the node.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }
}

/// Finds nodes that were not there when the graph was built.
pub trait Resolver<S: State>: Send + Sync {
    /// Returns the node of that name, if it exists now.
    fn resolve(&self, name: &str) -> Option<Arc<NodeEntry<S>>>;

    /// Returns why a node is missing, if the reason is known; the error of the thread contains it.
    fn absence(&self, _name: &str) -> Option<String> {
        None
    }
}

/// Why a graph could not be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each variant names its fields")]
pub enum BuildError {
    /// Two nodes have the same name.
    #[error("two nodes have the same name: {0}")]
    Duplicate(String),
    /// An edge leads to a node that was not added.
    #[error("{from} leads to an unknown node: {to}")]
    UnknownTarget { from: String, to: String },
    /// An edge leaves a node that was not added before it.
    #[error("an edge leaves a node that is not declared yet: {0}")]
    UnknownSource(String),
    /// A node has the name of the end, [`END`].
    #[error("a node cannot have the name {END}, which is the end of a run")]
    Reserved,
    /// The graph has no entry node.
    #[error("the graph {0} has no entry: call .entry(NODE)")]
    NoEntry(String),
    /// A node has both edges and a route.
    #[error("the node has both edges and a route: {0}")]
    Mixed(String),
    /// A node is the target of two joins, or of a join without sources.
    #[error("a node is the target of two joins, or of a join without sources: {0}")]
    Join(String),
}

/// A way from one node to another one, or to [`END`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The node that the edge leaves.
    pub from: String,
    /// The node that it leads to.
    pub to: String,
    /// Whether a function of the state decides if the edge is followed.
    pub is_conditional: bool,
}

/// A graph ready to run.
pub struct Graph<S: State> {
    name: String,
    nodes: BTreeMap<String, Arc<NodeEntry<S>>>,
    entry: Vec<String>,
    joins: BTreeMap<String, BTreeSet<String>>,
    /// Where routes lead, as far as it is declared.
    ways: BTreeMap<String, Vec<String>>,
    resolver: Option<Arc<dyn Resolver<S>>>,
}

impl<S: State> std::fmt::Debug for Graph<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Graph")
            .field("name", &self.name)
            .field("nodes", &self.nodes.keys())
            .finish_non_exhaustive()
    }
}

impl<S: State> Graph<S> {
    /// Returns the graph's name, which threads keep.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the nodes that an input starts.
    pub fn entry(&self) -> &[String] {
        &self.entry
    }

    /// Returns the names of the fixed nodes.
    pub fn node_names(&self) -> impl Iterator<Item = &str> {
        self.nodes.keys().map(String::as_str)
    }

    /// Finds a node: a fixed one, or through the resolver.
    pub fn resolve(&self, name: &str) -> Option<Arc<NodeEntry<S>>> {
        self.nodes.get(name).cloned().or_else(|| self.resolver.as_ref()?.resolve(name))
    }

    /// Returns the ways between the fixed nodes, as they are declared; a join's sources lead to it, too.
    ///
    /// A route may lead to any node and to the end, unless [`GraphBuilder::leads_to`] says where.
    pub fn edges(&self) -> Vec<Edge> {
        let edge = |from: &str, to: &str, is_conditional| Edge {
            from: from.to_owned(),
            to: to.to_owned(),
            is_conditional,
        };
        let mut edges = Vec::new();
        for (name, entry) in &self.nodes {
            let joins = self.joins.iter().filter(|(_, sources)| sources.contains(name));
            let joins: Vec<Edge> = joins.map(|(to, _)| edge(name, to, false)).collect();
            match &entry.next {
                Next::Route(_) => {
                    let all = || self.nodes.keys().cloned().chain([END.to_owned()]).collect();
                    let ways = self.ways.get(name).cloned().unwrap_or_else(all);
                    edges.extend(ways.iter().map(|to| edge(name, to, true)));
                }
                Next::Edges(next) if next.is_empty() && joins.is_empty() => {
                    edges.push(edge(name, END, false));
                }
                Next::Edges(next) => edges.extend(next.iter().map(|to| edge(name, to, false))),
            }
            edges.extend(joins);
        }
        edges
    }

    pub(super) fn absence(&self, name: &str) -> Option<String> {
        self.resolver.as_ref()?.absence(name)
    }

    /// Returns whether a node of that name is declared, or might be brought by the resolver.
    pub(super) fn may_have(&self, name: &str) -> bool {
        self.resolver.is_some() || self.nodes.contains_key(name)
    }

    pub(super) fn joins(&self) -> &BTreeMap<String, BTreeSet<String>> {
        &self.joins
    }
}

/// Builds a graph; [`GraphBuilder::build`] reports the errors.
#[derive(Debug)]
pub struct GraphBuilder<S: State> {
    graph: Graph<S>,
    errors: Vec<BuildError>,
}

impl<S: State> GraphBuilder<S> {
    /// Starts a graph.
    pub fn new(name: impl Into<String>) -> Self {
        let graph = Graph {
            name: name.into(),
            nodes: BTreeMap::new(),
            entry: Vec::new(),
            joins: BTreeMap::new(),
            ways: BTreeMap::new(),
            resolver: None,
        };
        Self { graph, errors: Vec::new() }
    }

    /// Adds a node.
    #[must_use]
    pub fn node(self, name: impl Into<String>, node: Arc<dyn Node<S>>) -> Self {
        self.entry_node(name, NodeEntry::new(node))
    }

    /// Adds a node with its policies.
    #[must_use]
    pub fn entry_node(mut self, name: impl Into<String>, entry: NodeEntry<S>) -> Self {
        let name = name.into();
        if name == END {
            self.errors.push(BuildError::Reserved);
        }
        if self.graph.nodes.insert(name.clone(), Arc::new(entry)).is_some() {
            self.errors.push(BuildError::Duplicate(name));
        }
        self
    }

    /// Names a node that an input starts; several run in parallel.
    #[must_use]
    pub fn entry(mut self, name: impl Into<String>) -> Self {
        self.graph.entry.push(name.into());
        self
    }

    /// Follows a node with another one; several edges run in parallel.
    #[must_use]
    pub fn edge(mut self, from: &str, to: impl Into<String>) -> Self {
        match self.graph.nodes.get_mut(from).map(|entry| &mut Arc::make_mut(entry).next) {
            Some(Next::Edges(edges)) => edges.push(to.into()),
            Some(Next::Route(_)) => self.errors.push(BuildError::Mixed(from.to_owned())),
            None => self.errors.push(BuildError::UnknownSource(from.to_owned())),
        }
        self
    }

    /// Follows a node by a function of the state after its step.
    #[must_use]
    pub fn route<F>(mut self, from: &str, route: F) -> Self
    where
        F: Fn(&S) -> Vec<Target> + Send + Sync + 'static,
    {
        match self.graph.nodes.get_mut(from) {
            Some(entry) if matches!(&entry.next, Next::Edges(edges) if edges.is_empty()) => {
                Arc::make_mut(entry).next = Next::Route(Arc::new(route));
            }
            Some(_) => self.errors.push(BuildError::Mixed(from.to_owned())),
            None => self.errors.push(BuildError::UnknownSource(from.to_owned())),
        }
        self
    }

    /// Names the nodes that the route of a node leads to, as drawings show them.
    #[must_use]
    pub fn leads_to<'a>(mut self, from: &str, to: impl IntoIterator<Item = &'a str>) -> Self {
        self.graph.ways.insert(from.to_owned(), to.into_iter().map(str::to_owned).collect());
        self
    }

    /// Runs `to` once all of `from` have finished, however many steps apart within one run's input.
    ///
    /// Arrivals count even if the node also follows a route. A join that one of its nodes never reaches does not block
    /// the run, which ends when no other task is left.
    #[must_use]
    pub fn join<'a>(
        mut self,
        from: impl IntoIterator<Item = &'a str>,
        to: impl Into<String>,
    ) -> Self {
        let to = to.into();
        let sources = from.into_iter().map(str::to_owned).collect();
        let is_empty = BTreeSet::is_empty(&sources);
        if self.graph.joins.insert(to.clone(), sources).is_some() || is_empty {
            self.errors.push(BuildError::Join(to));
        }
        self
    }

    /// Finds nodes at run time that are not declared here.
    #[must_use]
    pub fn resolver(mut self, resolver: Arc<dyn Resolver<S>>) -> Self {
        self.graph.resolver = Some(resolver);
        self
    }

    /// Checks and finishes the graph.
    ///
    /// # Errors
    /// The first [`BuildError`]; an unknown target is an error only without a resolver.
    pub fn build(mut self) -> Result<Arc<Graph<S>>, BuildError> {
        let graph = &self.graph;
        if graph.entry.is_empty() {
            self.errors.push(BuildError::NoEntry(graph.name.clone()));
        }
        let mut check = |from: &str, to: &str| {
            if to != END && !graph.may_have(to) {
                self.errors
                    .push(BuildError::UnknownTarget { from: from.to_owned(), to: to.to_owned() });
            }
        };
        for name in &graph.entry {
            check("the entry", name);
        }
        for (name, entry) in &graph.nodes {
            if let Next::Edges(edges) = &entry.next {
                edges.iter().for_each(|to| check(name, to));
            }
        }
        graph.ways.iter().for_each(|(from, to)| to.iter().for_each(|to| check(from, to)));
        for (to, sources) in &graph.joins {
            check("a join", to);
            sources.iter().for_each(|from| check("a join", from));
        }
        match self.errors.into_iter().next() {
            Some(error) => Err(error),
            None => Ok(Arc::new(self.graph)),
        }
    }
}
