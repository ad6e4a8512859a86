//! Where a run pauses for somebody to look: before nodes, or after them.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// The word for all nodes.
const ALL: &str = "*";

/// Some nodes of a graph, by name; as JSON a list of names, in which `*` stands for all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<String>", into = "Vec<String>")]
pub enum Nodes {
    /// No node.
    #[default]
    None,
    /// Every node.
    All,
    /// These; a name that no node has is that of one that may appear.
    Named(BTreeSet<String>),
}

impl Nodes {
    /// Tells whether a node is among them.
    pub fn has(&self, node: &str) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Named(names) => names.contains(node),
        }
    }
}

impl From<Vec<String>> for Nodes {
    fn from(names: Vec<String>) -> Self {
        if names.is_empty() {
            return Self::None;
        }
        if names.iter().any(|name| name == ALL) {
            Self::All
        } else {
            Self::Named(names.into_iter().collect())
        }
    }
}

impl<const N: usize> From<[&str; N]> for Nodes {
    fn from(names: [&str; N]) -> Self {
        names.map(str::to_owned).to_vec().into()
    }
}

impl From<Nodes> for Vec<String> {
    fn from(nodes: Nodes) -> Self {
        match nodes {
            Nodes::None => Self::new(),
            Nodes::All => vec![ALL.to_owned()],
            Nodes::Named(names) => names.into_iter().collect(),
        }
    }
}

/// Where a run pauses: it then ends as interrupted, with no question open, and a resume continues it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pauses {
    /// Before a step with one of these starts.
    pub before: Nodes,
    /// After a step in which one of these ran is committed, unless the graph has come to its end.
    pub after: Nodes,
    /// Whether a resumed run may pause before its first step as well; else it passes that one, at which an earlier run
    /// may have paused.
    #[serde(skip)]
    pub at_start: bool,
}

impl Pauses {
    /// Tells whether it pauses nowhere.
    pub fn is_empty(&self) -> bool {
        self.before == Nodes::None && self.after == Nodes::None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_among_the_names_stands_for_all_nodes() {
        assert!(Nodes::from(["a", "*"]).has("b"));
        assert!(Nodes::from(["a"]).has("a") && !Nodes::from(["a"]).has("b"));
        assert!(!Nodes::from([]).has("a"));
        let written = serde_json::to_string(&Nodes::from(["b", "a"])).unwrap();
        assert_eq!(written, r#"["a","b"]"#);
    }
}
