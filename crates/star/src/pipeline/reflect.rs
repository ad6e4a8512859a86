//! The last node of every pipeline: judges what was found, and sends what was rejected back to the first stage.

use std::sync::Arc;

use async_trait::async_trait;

use super::outcome::{Attempt, Outcome};
use super::{PipelineState, PipelineUpdate};
use crate::kind::Job;
use crate::reflection::{Attempted, Judged, judge, rejected};
use crate::verdict::ReflectionVerdict;
use perihelion_engine::graph::{Context, Node, NodeError, NodeOutput, State, Target};

/// Judges a finding.
pub(super) struct Reflect {
    pub first: String,
    pub job: Arc<Job>,
}

#[async_trait]
impl<W: State> Node<PipelineState<W>> for Reflect {
    async fn run(
        &self,
        ctx: Context<PipelineState<W>>,
    ) -> Result<NodeOutput<PipelineState<W>>, NodeError> {
        let state = ctx.state();
        let job = &self.job;
        let Outcome::Found { finding } = &state.outcome else {
            return Err(NodeError::failed("pipeline", "there is nothing to judge"));
        };
        let model = job.model(&ctx);
        let calls: Vec<_> = state.calls.iter().cloned().collect();
        let instructions: Vec<_> = state.instructions.iter().cloned().collect();
        let number = state.attempt.number;
        let attempt = Attempted {
            ctx: &ctx,
            job,
            calls: &calls,
            instructions: &instructions,
            output: &finding.output,
            number,
        };
        let Judged { verdict, text } = judge(&model, attempt).await?;
        let reflection = verdict.as_str().to_owned();
        let update = PipelineUpdate { spent: Some(model.spent()), ..PipelineUpdate::default() };
        let mut finding = finding.clone();
        let mut next = None;
        let outcome = match verdict {
            ReflectionVerdict::Approved | ReflectionVerdict::Unverified => {
                Outcome::Judged { finding, reflection }
            }
            ReflectionVerdict::Fixed => {
                finding.output = text;
                Outcome::Judged { finding, reflection }
            }
            ReflectionVerdict::Rejected if number > job.limits().max_reflections => {
                let error = rejected(number, &text);
                Outcome::Failed { error, finding, reflection: Some(reflection) }
            }
            ReflectionVerdict::Rejected => {
                next = Some(Attempt { number: number + 1, feedback: Some(text) });
                Outcome::Working
            }
        };
        let targets = next.is_some().then(|| Target::node(&self.first));
        let update = PipelineUpdate { outcome: Some(outcome), attempt: next, ..update };
        Ok(NodeOutput::goto(update, targets))
    }
}
