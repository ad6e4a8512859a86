//! Queries, and what they find.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use crate::Scope;

#[derive(Clone, Debug)]
pub struct Search {
    /// The places to search: the caller's own scope, and further ones of the same or another tenant that the caller has
    /// checked.
    pub scopes: Vec<Scope>,
    pub kind: String,
    pub text: String,
    pub vector: Option<QueryVector>,
    pub filter: Filter,
    pub weights: Weights,
    pub limit: usize,
}

/// The vector of a question, and the model that made it: vectors of different models are never compared.
#[derive(Clone, Debug)]
pub struct QueryVector {
    pub model: String,
    pub values: Vec<f32>,
}

/// The conditions for items to be ranked; an empty filter accepts all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    /// Attributes that must have exactly these values.
    pub attributes: BTreeMap<String, String>,
    /// Parents of which one must be the item's; empty for any.
    pub parents: Vec<String>,
    /// Not before this time; items without one do not pass.
    pub since: Option<DateTime<Utc>>,
    /// Not at this time or after it; items without one do not pass.
    pub until: Option<DateTime<Utc>>,
}

impl Filter {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// How much each way of looking counts when ranks are fused.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weights {
    pub words: f64,
    pub meaning: f64,
}

impl Default for Weights {
    fn default() -> Self {
        Self { words: 1.0, meaning: 1.0 }
    }
}

impl Search {
    /// Asks for the ten best by words.
    pub fn new(scope: &Scope, kind: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            scopes: vec![scope.clone()],
            kind: kind.into(),
            text: text.into(),
            vector: None,
            filter: Filter::default(),
            weights: Weights::default(),
            limit: 10,
        }
    }

    #[must_use]
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    #[must_use]
    pub fn with_vector(mut self, vector: Option<QueryVector>) -> Self {
        self.vector = vector;
        self
    }

    #[must_use]
    pub fn with_filter(mut self, filter: Filter) -> Self {
        self.filter = filter;
        self
    }

    /// Looks in a further scope, which the caller has checked that the asker may read.
    #[must_use]
    pub fn and_in(mut self, scope: &Scope) -> Self {
        self.scopes.push(scope.clone());
        self
    }
}

impl Search {
    /// Returns the scopes, each once, in the order in which they were named.
    pub(crate) fn distinct_scopes(&self) -> Vec<&Scope> {
        let mut scopes: Vec<&Scope> = Vec::new();
        for scope in &self.scopes {
            if !scopes.contains(&scope) {
                scopes.push(scope);
            }
        }
        scopes
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// Best first.
    pub hits: Vec<Hit>,
    /// Whether vectors were used; false without a vector, or if the index has no vectors of that model.
    pub by_meaning: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    pub id: String,
    pub payload: serde_json::Value,
    /// Fused rank; comparable within one answer only.
    pub score: f64,
    /// The share of the query words' weight that the item contains, from 0 to 1.
    pub coverage: f64,
    /// Cosine similarity, when vectors were compared.
    pub similarity: Option<f64>,
}
