//! What model calls took, rolled up from the calls to the run.

use std::collections::HashMap;

use serde::Serialize;

use crate::{About, Span, SpanId};
use perihelion_settings::config::Prices;

/// What the model calls in a span and below it took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Spent {
    /// Model calls, those without an answer too.
    pub calls: u32,
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// Billionths of a US dollar; none when no call has a price.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nano_usd: Option<u64>,
    /// Answered calls without a configured price, which are not in `nano_usd`.
    #[serde(skip_serializing_if = "is_zero")]
    pub unpriced: u32,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Spent {
    fn of(about: &About, prices: &Prices) -> Option<Self> {
        let About::Chat { role, model, usage, .. } = about else { return None };
        let price = prices.of(role, model.as_deref().unwrap_or_default());
        let answered = model.is_some() || *usage != perihelion_llm::Usage::default();
        Some(Self {
            calls: 1,
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            nano_usd: price.map(|price| {
                price.nano_usd(usage.input_tokens, usage.cached_tokens, usage.output_tokens)
            }),
            unpriced: u32::from(price.is_none() && answered),
        })
    }

    /// Adds what other calls took.
    pub fn add(&mut self, other: Self) {
        self.calls += other.calls;
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
        self.unpriced += other.unpriced;
        self.nano_usd = match (self.nano_usd, other.nano_usd) {
            (Some(one), Some(other)) => Some(one.saturating_add(other)),
            (one, other) => one.or(other),
        };
    }
}

/// Writes into each span what the model calls in it and below it took: per call, round, hop, agent and run.
///
/// Parents must stand before their children, as [`project`](crate::project) puts them.
pub fn bill(spans: &mut [Span], prices: &Prices) {
    let places: HashMap<SpanId, usize> =
        spans.iter().enumerate().map(|(at, span)| (span.span_id, at)).collect();
    for span in spans.iter_mut() {
        span.spent = Spent::of(&span.about, prices);
    }
    for at in (0..spans.len()).rev() {
        let parent = spans[at].parent.and_then(|parent| places.get(&parent)).copied();
        if let (Some(spent), Some(parent)) = (spans[at].spent, parent) {
            spans[parent].spent.get_or_insert_default().add(spent);
        }
    }
}
