//! An item to be found, and its place, which decides who can find it.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use crate::{Error, Result};

/// One thing to be found: a tool, a skill, a chunk of a document.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Item {
    /// Unique within its scope and kind; putting an item replaces the one of the same id.
    pub id: String,
    /// Its parent, to remove and filter together: the version of a document, a server.
    pub parent: Option<String>,
    pub fields: Vec<Field>,
    /// The text for the embedding model; the text of all fields if empty.
    pub meaning: Option<String>,
    /// What filters compare.
    pub attributes: BTreeMap<String, String>,
    /// The date of its content, for filters.
    pub at: Option<DateTime<Utc>>,
    /// Data that a hit returns: offsets, a title; not searched.
    pub payload: serde_json::Value,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// How much a word counts here, in quarters of one: between 0.25 and 16.
    pub weight: f64,
    pub text: String,
}

impl Item {
    pub fn new(id: impl Into<String>, text: impl Into<String>) -> Self {
        Self { id: id.into(), ..Self::default() }.with_field(1.0, text)
    }

    /// Adds a part of the text, with how much its words count.
    #[must_use]
    pub fn with_field(mut self, weight: f64, text: impl Into<String>) -> Self {
        self.fields.push(Field { weight, text: text.into() });
        self
    }

    #[must_use]
    pub fn with_parent(mut self, parent: impl Into<String>) -> Self {
        self.parent = Some(parent.into());
        self
    }

    #[must_use]
    pub fn with_attribute(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.attributes.insert(name.into(), value.into());
        self
    }

    #[must_use]
    pub fn with_payload(mut self, payload: serde_json::Value) -> Self {
        self.payload = payload;
        self
    }

    pub fn meaning_text(&self) -> String {
        self.meaning.clone().unwrap_or_else(|| {
            let texts: Vec<&str> = self.fields.iter().map(|field| field.text.as_str()).collect();
            texts.join("\n")
        })
    }
}

/// A tenant and an owner within it: a user, an agent, a team, or the tenant itself under a name of the caller's choice.
///
/// There is no default and no wildcard: a lookup without a scope does not compile, one with an empty name is refused.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Scope {
    tenant: String,
    owner: String,
}

impl Scope {
    /// Names a scope.
    ///
    /// # Errors
    /// [`Error::Nobody`] when one of the two is empty.
    pub fn new(tenant: impl Into<String>, owner: impl Into<String>) -> Result<Self> {
        let tenant = tenant.into();
        let owner = owner.into();
        if tenant.trim().is_empty() || owner.trim().is_empty() {
            Err(Error::Nobody)
        } else {
            Ok(Self { tenant, owner })
        }
    }

    pub fn tenant(&self) -> &str {
        &self.tenant
    }

    pub fn owner(&self) -> &str {
        &self.owner
    }
}
