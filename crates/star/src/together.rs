//! The calls of one model answer: independent ones at once, the rest in the given order.
//!
//! Adjacent read-only and repeatable calls run concurrently, up to the server's limit. A call that changes something
//! waits for those before it, and those after it wait for it. They begin, are recorded and are shown to the model in
//! the order of the answer, whichever ends first.

use futures::future::BoxFuture;
use futures::stream::{self, StreamExt};

use super::caller::ToolReply;
use super::toolbox::{Prepared, Toolbox};
use crate::Result;
use perihelion_engine::graph::{Interrupt, NodeError};
use perihelion_llm::ToolCall;

impl Toolbox<'_> {
    /// Performs the calls of an answer, at most `limit` of the task, and returns the model's text for each.
    pub(super) async fn call_all(
        &mut self,
        calls: &[ToolCall],
        limit: usize,
    ) -> Result<Vec<String>> {
        let mut replies = Vec::with_capacity(calls.len());
        while replies.len() < calls.len() {
            let left = limit.saturating_sub(self.log.calls.len());
            if left == 0 {
                replies.push(format!(
                    "not called: the limit of {limit} tool calls was reached; answer with what you have"
                ));
                continue;
            }
            let group = self.group(calls, replies.len(), left);
            for (prepared, reply) in self.perform(group).await? {
                replies.push(self.note(prepared, reply)?);
            }
        }
        Ok(replies)
    }

    /// Prepares the calls from `place` on that may be in flight together, `left` at most: at least one.
    fn group<'c>(&mut self, calls: &'c [ToolCall], place: usize, left: usize) -> Vec<Prepared<'c>> {
        let mut group = Vec::new();
        for (place, call) in calls.iter().enumerate().skip(place).take(left) {
            // Equal calls are counted, and what is recorded of them is told apart by their order.
            let before = &calls[place - group.len()..place];
            let is_same =
                |other: &ToolCall| other.name == call.name && other.arguments == call.arguments;
            let may_join = self.commutes(call) && !before.iter().any(is_same);
            if !group.is_empty() && !may_join {
                break;
            }
            group.push(self.prepare(place, call));
            if !may_join {
                break;
            }
        }
        group
    }

    /// Performs a group of calls; all of them end, even if one of them waits for a person.
    async fn perform<'c>(
        &mut self,
        mut group: Vec<Prepared<'c>>,
    ) -> Result<Vec<(Prepared<'c>, ToolReply)>> {
        if group.len() == 1
            && let Some(alone) = group.pop()
        {
            let reply = self.reply(&alone).await?;
            return Ok(vec![(alone, reply)]);
        }
        let at_once = self.at_once();
        let mut sent: Vec<BoxFuture<'_, Result<ToolReply>>> = Vec::new();
        for prepared in &group {
            sent.push(Box::pin(self.send(prepared)));
        }
        let replies = stream::iter(sent).buffered(at_once).collect().await;
        let replies = all(replies)?;
        Ok(group.into_iter().zip(replies).collect())
    }
}

/// Returns every reply, or everything that people are asked, or the first other error.
fn all(replies: Vec<Result<ToolReply>>) -> Result<Vec<ToolReply>> {
    let mut given = Vec::with_capacity(replies.len());
    let mut open: Vec<Interrupt> = Vec::new();
    for reply in replies {
        match reply {
            Ok(reply) => given.push(reply),
            Err(NodeError::Interrupted(more)) => open.extend(more),
            Err(error) => return Err(error),
        }
    }
    if open.is_empty() { Ok(given) } else { Err(NodeError::Interrupted(open)) }
}
