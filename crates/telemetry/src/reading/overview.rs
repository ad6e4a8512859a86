//! A summary of a run: how often each route was taken, the share of each agent, and the cost of model calls, from the
//! call up to the run.

use std::collections::HashMap;

use serde::Serialize;

use crate::{About, Reason, Span, SpanId};
use perihelion_settings::config::Prices;

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Overview {
    /// In the order in which they were first taken.
    pub hops: Vec<Hop>,
    /// In the order in which they first worked; subgraphs' own nodes are in the share of the node that ran them.
    pub agents: Vec<AgentShare>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Hop {
    pub from: String,
    pub to: String,
    pub count: u32,
    /// Why, each reason once.
    pub reasons: Vec<Reason>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct AgentShare {
    pub agent: String,
    pub turns: u32,
    pub failed: u32,
    pub judged: u32,
    pub rejected: u32,
    pub tool_calls: u32,
    /// Time it worked, its turns added up.
    pub milliseconds: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spent: Option<Spent>,
}

/// Sums a trace up; [`bill`] comes first.
pub fn overview(spans: &[Span]) -> Overview {
    let mut overview = Overview::default();
    for span in spans.iter().filter(|span| span.within.is_none()) {
        match &span.about {
            About::Transition { from, to, reason, .. } => {
                to.iter().for_each(|to| overview.hop(from, to, *reason));
                if !matches!(reason, Reason::Edge | Reason::Edit) {
                    overview.turn(from, span);
                }
            }
            About::Agent { agent, tools, .. } => {
                let share = overview.turn(agent, span);
                share.tool_calls += tools.iter().map(|one| one.calls).sum::<u32>();
            }
            About::Reflection { agent, verdict, .. } => {
                let share = overview.share(agent);
                share.judged += 1;
                share.rejected += u32::from(verdict.as_deref() == Some("REJECTED"));
            }
            _ => {}
        }
    }
    overview
}

impl Overview {
    fn hop(&mut self, from: &str, to: &str, reason: Reason) {
        let known = self.hops.iter_mut().find(|hop| hop.from == from && hop.to == to);
        match known {
            Some(hop) => {
                hop.count += 1;
                if !hop.reasons.contains(&reason) {
                    hop.reasons.push(reason);
                }
            }
            None => {
                let from = from.to_owned();
                let to = to.to_owned();
                self.hops.push(Hop { from, to, count: 1, reasons: vec![reason] });
            }
        }
    }

    fn share(&mut self, agent: &str) -> &mut AgentShare {
        let at = self.agents.iter().position(|share| share.agent == agent);
        let at = at.unwrap_or_else(|| {
            self.agents.push(AgentShare { agent: agent.to_owned(), ..AgentShare::default() });
            self.agents.len() - 1
        });
        &mut self.agents[at]
    }

    fn turn(&mut self, agent: &str, span: &Span) -> &mut AgentShare {
        let share = self.share(agent);
        share.turns += 1;
        share.failed += u32::from(span.failed());
        share.milliseconds += span.duration().num_milliseconds();
        if let Some(spent) = span.spent {
            share.spent.get_or_insert_default().add(spent);
        }
        share
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Spent {
    /// Model calls, those without an answer too.
    pub calls: u32,
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// Billionths of a US dollar; `None` if no call has a price.
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

/// Writes into each span the usage of the model calls in it and below it: per call, round, hop, agent and run.
///
/// Parents must precede their children, as in the output of [`project`](crate::project).
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
