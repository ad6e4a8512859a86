//! The labels by which people sort traces: user, tags, and the environment.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{About, Span};

/// Characters of one label; Langfuse drops longer ones.
const LABEL: usize = 200;

/// Labels of a trace, the same on each of its spans.
///
/// An operator sets them for all runs, a caller for one: with `trace.user`, `trace.tags` (separated by
/// commas) and `trace.environment` in the request's context. Other context is content and is not read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Labels {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
}

impl Labels {
    pub(super) fn of_request(context: &BTreeMap<String, String>) -> Self {
        let label = |key: &str| context.get(key).and_then(|text| short(text));
        let tags = context.get("trace.tags").map(String::as_str).unwrap_or_default();
        Self {
            user: label("trace.user"),
            tags: tags.split(',').filter_map(short).collect(),
            environment: label("trace.environment"),
        }
    }

    /// Fills in missing labels of a trace; tags are added to its own.
    pub fn apply(&self, spans: &mut [Span]) {
        let Some(About::Workflow { labels, .. }) = spans.first_mut().map(|root| &mut root.about)
        else {
            return;
        };
        labels.user = labels.user.take().or_else(|| self.user.clone());
        labels.environment = labels.environment.take().or_else(|| self.environment.clone());
        for tag in &self.tags {
            if !labels.tags.contains(tag) {
                labels.tags.push(tag.clone());
            }
        }
    }
}

fn short(text: &str) -> Option<String> {
    let text: String = text.trim().chars().take(LABEL).collect();
    (!text.is_empty()).then_some(text)
}
