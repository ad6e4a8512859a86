//! The last node of every pipeline: judges what was found, and sends what was rejected back to the first stage.

use std::sync::Arc;

use async_trait::async_trait;

use super::outcome::{Attempt, Outcome};
use super::{PipelineState, PipelineUpdate};
use crate::instruction;
use crate::kind::Job;
use crate::model::RecordedModel;
use crate::reflection::{Judged, Subject, is_given, judge};
use crate::result::{AgentError, ErrorKind};
use crate::{AgentEvent, Finding};
use perihelion_engine::graph::{Context, Node, NodeError, NodeOutput, State, Target};
use perihelion_settings::metrics;

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
        let model = RecordedModel::new(&ctx, &job.star);
        let calls: Vec<_> = state.calls.iter().cloned().collect();
        let instructions: Vec<_> = state.instructions.iter().cloned().collect();
        let task = instruction::effective(&job.assignment.described(), &instructions);
        let subject = Subject {
            thread: job.star.thread(job.ctx.place()),
            agent: &job.agent,
            task: &task,
            calls: &calls,
            is_given: is_given(job.ctx.state(), &job.assignment),
            output: &finding.output,
        };
        let judged = judge(&model, &job.star.prompts, subject).await?;
        let attempt = state.attempt.number;
        let rounds = job.star.limits.max_reflections + 1;
        if model.was_live() {
            metrics::reflected(&job.agent, judged.verdict().as_str());
        }
        AgentEvent::Reflection {
            agent: job.agent.clone(),
            status: judged.verdict(),
            attempt,
            of: rounds,
            feedback: judged.feedback().map(str::to_owned),
        }
        .publish(&ctx);
        let reflection = judged.verdict().as_str().to_owned();
        let update = PipelineUpdate { spent: Some(model.spent()), ..PipelineUpdate::default() };
        let (outcome, next) = match judged {
            Judged::Approved | Judged::Unverified(_) => {
                (Outcome::Judged { finding: finding.clone(), reflection }, None)
            }
            Judged::Fixed(output) => {
                let finding = Finding { output, ..finding.clone() };
                (Outcome::Judged { finding, reflection }, None)
            }
            Judged::Rejected(feedback) if attempt >= rounds => {
                let message =
                    format!("the output was rejected {attempt} times, last because: {feedback}");
                let error = AgentError::new(ErrorKind::Rejected, message);
                let finding = finding.clone();
                (Outcome::Failed { error, finding, reflection: Some(reflection) }, None)
            }
            Judged::Rejected(feedback) => {
                let next = Attempt { number: attempt + 1, feedback: Some(feedback) };
                (Outcome::Working, Some(next))
            }
        };
        let targets = next.is_some().then(|| Target::node(&self.first));
        let update = PipelineUpdate { outcome: Some(outcome), attempt: next, ..update };
        Ok(NodeOutput::goto(update, targets))
    }
}
