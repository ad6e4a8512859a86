//! A pipeline as a kind of agent: its graph, run as a subgraph of the agent's node.

use std::sync::Arc;

use async_trait::async_trait;

use super::builder::Pipeline;
use super::node::StageNode;
use super::outcome::{Attempt, Outcome};
use super::reflect::Reflect;
use super::{GRAPH_PREFIX, PipelineState, PipelineUpdate, REFLECT};
use crate::kind::{Job, Kind, Profile, ToolRole};
use crate::report::Report;
use crate::state::GraphState;
use crate::{ModelStage, taint};
use perihelion_engine::graph::{BuildError, Graph, GraphBuilder, NodeError, State};
use perihelion_engine::runner::Subgraph;

impl<W: State> Pipeline<W> {
    /// Makes the declaration a kind of agent.
    pub fn into_kind(self) -> Arc<dyn Kind> {
        Arc::new(self)
    }
}

#[async_trait]
impl<W: State> Kind for Pipeline<W> {
    fn name(&self) -> &str {
        self.name
    }

    fn about(&self) -> &str {
        self.about
    }

    fn tool_roles(&self) -> &[ToolRole] {
        &self.roles
    }

    fn profiles(&self) -> &[Profile] {
        &self.profiles
    }

    fn natural_for(&self) -> &[&'static str] {
        &self.natural_for
    }

    fn templates(&self) -> &[(&'static str, &'static str)] {
        &self.templates
    }

    fn model_stages(&self) -> &[ModelStage] {
        &self.models
    }

    async fn work(&self, job: Job) -> Result<Report, NodeError> {
        let job = Arc::new(job);
        let graph = self.graph(&job).map_err(|error| {
            NodeError::failed("pipeline", format!("the kind {} is no graph: {error}", self.name))
        })?;
        let runner = job.star.home.runner(graph);
        let opening = Arc::clone(&job);
        let subgraph = Subgraph::<GraphState, PipelineState<W>>::new(
            runner,
            move |_| Ok(opening_of(&opening)),
            |_, _| Err(NodeError::failed("pipeline", "a pipeline's end is read, not merged")),
        );
        let end = subgraph.run_to_end(&job.ctx).await;
        Ok(report_of(&*end.map_err(|error| asked_by(&job.agent, error))?))
    }
}

impl<W: State> Pipeline<W> {
    /// Declares the graph for one assignment.
    fn graph(&self, job: &Arc<Job>) -> Result<Arc<Graph<PipelineState<W>>>, BuildError> {
        let stages = &self.stages;
        let names: Arc<[String]> = stages.iter().map(|(name, _)| (*name).to_owned()).collect();
        let first = names.first().cloned().unwrap_or_else(|| REFLECT.to_owned());
        let mut graph = GraphBuilder::new(format!("{GRAPH_PREFIX}{}", self.name));
        for (at, (name, run)) in stages.iter().enumerate() {
            let stage = StageNode {
                name: (*name).to_owned(),
                next: names.get(at + 1).cloned(),
                names: Arc::clone(&names),
                run: Arc::clone(run),
                job: Arc::clone(job),
            };
            graph = graph.node(*name, Arc::new(stage));
        }
        let reflect = Reflect { first: first.clone(), job: Arc::clone(job) };
        graph.node(REFLECT, Arc::new(reflect)).entry(first).build()
    }
}

/// Returns what a pipeline begins with: where its task's words come from.
fn opening_of<W: State>(job: &Job) -> PipelineUpdate<W> {
    let mut tainted_by = taint::of_opening(job.ctx.state(), &job.assignment);
    tainted_by.extend(job.server.open_world.then(|| job.server.name.clone()));
    let attempt = Some(Attempt { number: 1, feedback: None });
    PipelineUpdate { tainted_by, attempt, ..PipelineUpdate::default() }
}

/// Reads a pipeline's end.
fn report_of<W: State>(end: &PipelineState<W>) -> Report {
    let mut report = Report {
        attempts: end.attempt.number,
        calls: end.calls.iter().cloned().collect(),
        artifacts: end.artifacts.iter().map(|(key, one)| (key.clone(), one.clone())).collect(),
        tainted_by: end.tainted_by.clone(),
        instructions: end.instructions.iter().cloned().collect(),
        spent: end.spent,
        ..Report::default()
    };
    match &end.outcome {
        Outcome::Judged { finding, reflection } => {
            report.finding = finding.clone();
            report.reflection = reflection.clone();
        }
        Outcome::Failed { error, finding, reflection } => {
            report.finding = finding.clone();
            report.error = Some(error.clone());
            report.reflection = reflection.clone().unwrap_or(report.reflection);
        }
        Outcome::Working | Outcome::Found { .. } => {
            let message = "the pipeline ended before it had a result";
            report.error = Some(crate::AgentError::new(Default::default(), message));
        }
    }
    report
}

/// Lets questions of stages be the agent's, by whose name people know it.
fn asked_by(agent: &str, error: NodeError) -> NodeError {
    match error {
        NodeError::Interrupted(mut open) => {
            for question in &mut open {
                question.node = agent.to_owned();
            }
            NodeError::Interrupted(open)
        }
        other => other,
    }
}
