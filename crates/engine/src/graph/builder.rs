//! Declares a graph: nodes, edges, joins, and how names are resolved at run time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::{END, Node, State, Target};

/// How often and how fast a failed node is tried again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetryPolicy {
    /// Attempts in all; 1 means no retry.
    pub max_attempts: u32,
    /// Wait before the second attempt.
    pub initial: Duration,
    /// What each further wait is multiplied by.
    pub factor: f64,
    /// Longest wait.
    pub max_delay: Duration,
}

impl RetryPolicy {
    /// Tries once.
    pub const NONE: Self =
        Self { max_attempts: 1, initial: Duration::ZERO, factor: 1.0, max_delay: Duration::ZERO };

    /// Tries so often in all, and waits a second, then twice as long each time, at most a minute.
    #[must_use]
    pub fn attempts(max_attempts: u32) -> Self {
        Self { max_attempts, ..Self::default() }
    }

    /// Returns the wait after a failed attempt (1-based), or `None` when it was the last.
    pub fn delay_after(&self, attempt: u32) -> Option<Duration> {
        if attempt >= self.max_attempts {
            return None;
        }
        let factor = self.factor.max(1.0).powi(attempt.saturating_sub(1).min(64).cast_signed());
        let seconds = (self.initial.as_secs_f64() * factor).min(self.max_delay.as_secs_f64());
        Some(Duration::from_secs_f64(seconds))
    }
}

impl Default for RetryPolicy {
    /// Tries three times in all, after a second and after two.
    fn default() -> Self {
        Self {
            max_attempts: 3,
            initial: Duration::from_secs(1),
            factor: 2.0,
            max_delay: Duration::from_secs(60),
        }
    }
}

type RouteFn<S> = Arc<dyn Fn(&S) -> Vec<Target> + Send + Sync>;

/// Where a node's branch goes when the node does not say.
pub(super) enum Next<S> {
    Edges(Vec<String>),
    Route(RouteFn<S>),
}

impl<S> Clone for Next<S> {
    fn clone(&self) -> Self {
        match self {
            Self::Edges(edges) => Self::Edges(edges.clone()),
            Self::Route(route) => Self::Route(Arc::clone(route)),
        }
    }
}

/// A node with its routes and policies.
#[derive(Clone)]
pub struct NodeEntry<S: State> {
    pub(super) node: Arc<dyn Node<S>>,
    pub(super) next: Next<S>,
    pub(super) retry: RetryPolicy,
    pub(super) timeout: Option<Duration>,
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

    /// Returns the bound on one attempt.
    pub fn time_limit(&self) -> Option<Duration> {
        self.timeout
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

    /// Returns why a node is not there now, where that is known; the thread that needs it is told.
    fn absence(&self, _name: &str) -> Option<String> {
        None
    }
}

/// Why a graph could not be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    #[error("two nodes have the same name: {0}")]
    Duplicate(String),
    #[error("{from} leads to an unknown node: {to}")]
    UnknownTarget { from: String, to: String },
    #[error("an edge leaves a node that is not declared yet: {0}")]
    UnknownSource(String),
    #[error("a node may not be named {END}: it is where a run ends")]
    Reserved,
    #[error("the graph {0} has no entry: call .entry(NODE)")]
    NoEntry(String),
    #[error("the node has both edges and a route: {0}")]
    Mixed(String),
    #[error("a node is the target of two joins, or of a join of nothing: {0}")]
    Join(String),
}

/// A way from one node to another one, or to [`END`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    pub from: String,
    pub to: String,
    /// Whether a function of the state decides if it is taken.
    pub is_conditional: bool,
}

/// A graph ready to run.
pub struct Graph<S: State> {
    name: String,
    nodes: BTreeMap<String, Arc<NodeEntry<S>>>,
    entry: Vec<String>,
    joins: BTreeMap<String, BTreeSet<String>>,
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
    /// A function decides after a node with a route, so it may lead to any node and to the end.
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
                    let others = self.nodes.keys().map(String::as_str).chain([END]);
                    edges.extend(others.map(|to| edge(name, to, true)));
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

/// Declares a graph step by step; errors are reported by [`GraphBuilder::build`].
pub struct GraphBuilder<S: State> {
    graph: Graph<S>,
    errors: Vec<BuildError>,
}

impl<S: State> std::fmt::Debug for GraphBuilder<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("GraphBuilder").field(&self.graph).finish()
    }
}

impl<S: State> GraphBuilder<S> {
    /// Starts a graph.
    pub fn new(name: impl Into<String>) -> Self {
        let graph = Graph {
            name: name.into(),
            nodes: BTreeMap::new(),
            entry: Vec::new(),
            joins: BTreeMap::new(),
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

    /// Runs `to` once all of `from` have finished, however many steps apart within one run's input.
    ///
    /// Arrivals count whatever route a node takes besides. A join that one of its nodes never reaches
    /// does not hold the run: it ends when nothing else is left to do.
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
    /// The first [`BuildError`]; unknown targets are only errors where there is no resolver.
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
