//! A run at a glance: which ways it took how often, and what each agent did and cost.

use serde::Serialize;

use super::Spent;
use crate::{About, Reason, Span};

/// The ways a run took, and the shares of those who worked in it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Overview {
    /// In the order in which they were first taken.
    pub hops: Vec<Hop>,
    /// In the order in which they first worked; subgraphs' own nodes are in the share of the node that ran them.
    pub agents: Vec<AgentShare>,
}

/// A way from one node to another.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Hop {
    pub from: String,
    pub to: String,
    /// How often it was taken.
    pub count: u32,
    /// Why, each reason once.
    pub reasons: Vec<Reason>,
}

/// What one node did.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct AgentShare {
    pub agent: String,
    /// Times it ran.
    pub turns: u32,
    pub failed: u32,
    /// Times its work was judged.
    pub judged: u32,
    pub rejected: u32,
    /// Tool calls that were sent.
    pub tool_calls: u32,
    /// Time it worked, its turns added up.
    pub milliseconds: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spent: Option<Spent>,
}

/// Sums a trace up; [`bill`](super::bill) comes first.
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
