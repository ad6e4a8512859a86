//! The nodes of a pipeline's graph: its stages, and the last one, which judges the finding or sends it back.

use std::sync::Arc;

use async_trait::async_trait;
use futures::future::BoxFuture;

use super::state::{Attempt, Outcome, StageError, StageResult, Step, To};
use super::{PipelineState, PipelineUpdate, REFLECT, stage::Stage};
use crate::reflection::{Attempted, Judged, judge, rejected};
use crate::{AgentError, AgentEvent, ErrorKind, Job, ReflectionVerdict, Result};
use perihelion_engine::graph::{Context, Node, NodeError, NodeOutput, State, Target};

/// Stages that one attempt may run; more of them are a loop that does not end.
const MOST_STAGES: u32 = 64;

pub(super) type Run<W> = Arc<dyn Fn(Stage<W>) -> BoxFuture<'static, StageResult<W>> + Send + Sync>;

pub(super) struct StageNode<W: State> {
    pub name: String,
    pub next: Option<String>,
    pub names: Arc<[String]>,
    pub run: Run<W>,
    pub job: Arc<Job>,
}

#[async_trait]
impl<W: State> Node<PipelineState<W>> for StageNode<W> {
    async fn run(&self, ctx: Context<PipelineState<W>>) -> Result<NodeOutput<PipelineState<W>>> {
        let attempt = ctx.state().attempt.number;
        AgentEvent::PipelineStage {
            agent: self.job.agent.clone(),
            stage: self.name.clone(),
            attempt,
        }
        .publish(&ctx);
        if ctx.state().stages >= MOST_STAGES * attempt.max(1) {
            let message = format!("more than {MOST_STAGES} stages ran for one attempt");
            let error = AgentError::new(ErrorKind::Budget, message);
            return Ok(failed(PipelineUpdate::default(), error));
        }
        let stage = Stage::new(ctx, Arc::clone(&self.job));
        let result = (self.run)(stage.clone()).await;
        let update = stage.take();
        match result.and_then(|step| self.target(step)) {
            Ok((work, outcome, target)) => {
                let update = PipelineUpdate { work: Some(work), outcome, ..update };
                Ok(NodeOutput::goto(update, [Target::node(target)]))
            }
            Err(StageError::Stop(stop)) => Err(stop),
            Err(StageError::Failed(error)) => Ok(failed(update, error)),
        }
    }
}

impl<W: State> StageNode<W> {
    fn target(
        &self,
        Step { update, to }: Step<W>,
    ) -> Result<(W::Update, Option<Outcome>, String), StageError> {
        let misled = |message: String| AgentError::new(ErrorKind::Configuration, message);
        match to {
            To::Done(finding) => {
                Ok((update, Some(Outcome::Found { finding: *finding }), REFLECT.to_owned()))
            }
            To::Next => match &self.next {
                Some(next) => Ok((update, None, next.clone())),
                None => {
                    Err(misled(format!("the last stage ended without a finding: {}", self.name))
                        .into())
                }
            },
            To::Stage(name) if self.names.contains(&name) => Ok((update, None, name)),
            To::Stage(name) => {
                let stages = self.names.join(", ");
                Err(misled(format!("there is no such stage; the stages are {stages}: {name}"))
                    .into())
            }
        }
    }
}

fn failed<W: State>(update: PipelineUpdate<W>, error: AgentError) -> NodeOutput<PipelineState<W>> {
    let failed = Outcome::Failed { error, finding: Default::default(), reflection: None };
    NodeOutput::goto(PipelineUpdate { outcome: Some(failed), ..update }, [])
}

pub(super) struct Reflect {
    pub first: String,
    pub job: Arc<Job>,
}

#[async_trait]
impl<W: State> Node<PipelineState<W>> for Reflect {
    async fn run(&self, ctx: Context<PipelineState<W>>) -> Result<NodeOutput<PipelineState<W>>> {
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
            spent: state.spent,
        };
        let Judged { verdict, text } = judge(&model, attempt).await?;
        let update = PipelineUpdate { spent: Some(model.spent()), ..PipelineUpdate::default() };
        let mut finding = finding.clone();
        let mut next = None;
        let outcome = match verdict {
            ReflectionVerdict::Approved | ReflectionVerdict::Unverified => {
                Outcome::Judged { finding, reflection: verdict }
            }
            ReflectionVerdict::Fixed => {
                finding.output = text;
                Outcome::Judged { finding, reflection: verdict }
            }
            ReflectionVerdict::Rejected if number > job.limits().max_reflections => {
                let error = rejected(number, &text);
                Outcome::Failed { error, finding, reflection: Some(verdict) }
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
