//! A pipeline as a kind of agent: declared by its stages, tools and prompts, run as a subgraph of the agent's node.

use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;

use super::node::{Reflect, Run, StageNode};
use super::state::{Attempt, Outcome, StageResult};
use super::{GRAPH_PREFIX, PipelineState, PipelineUpdate, REFLECT, stage::Stage};
use crate::{GraphState, Job, Kind, KindCard, Profile, Report, Result, ToolRole, question, taint};
use perihelion_engine::graph::{BuildError, Graph, GraphBuilder, NodeError, State};
use perihelion_engine::runner::Subgraph;

impl<W: State> Pipeline<W> {
    pub fn into_kind(self) -> Arc<dyn Kind> {
        Arc::new(self)
    }
}

#[async_trait]
impl<W: State> Kind for Pipeline<W> {
    fn card(&self) -> &KindCard {
        &self.card
    }

    async fn work(&self, job: Job) -> Result<Report> {
        let job = Arc::new(job);
        let graph = self.graph(&job).map_err(|error| {
            NodeError::failed(
                "pipeline",
                format!("the kind {} is no graph: {error}", self.card.name),
            )
        })?;
        let runner = job.star.home.runner(graph);
        let opening = Arc::clone(&job);
        let subgraph = Subgraph::<GraphState, PipelineState<W>>::new(
            runner,
            move |_| Ok(opening_of(&opening)),
            |_, _| Err(NodeError::failed("pipeline", "a pipeline's end is read, not merged")),
        );
        let end = subgraph.run_to_end(&job.ctx).await;
        Ok(report_of(&*end.map_err(|error| question::asked_as(&job.agent, error))?))
    }
}

impl<W: State> Pipeline<W> {
    fn graph(&self, job: &Arc<Job>) -> Result<Arc<Graph<PipelineState<W>>>, BuildError> {
        let stages = &self.stages;
        let names: Arc<[String]> = stages.iter().map(|(name, _)| (*name).to_owned()).collect();
        let first = names.first().cloned().unwrap_or_else(|| REFLECT.to_owned());
        let mut graph = GraphBuilder::new(format!("{GRAPH_PREFIX}{}", self.card.name));
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

fn opening_of<W: State>(job: &Job) -> PipelineUpdate<W> {
    let mut tainted_by = taint::of_opening(job.ctx.state(), &job.assignment);
    tainted_by.extend(job.server.open_world.then(|| job.server.name.clone()));
    let attempt = Some(Attempt { number: 1, feedback: None });
    PipelineUpdate { tainted_by, attempt, ..PipelineUpdate::default() }
}

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
            report.reflection = *reflection;
        }
        Outcome::Failed { error, finding, reflection } => {
            report.finding = finding.clone();
            report.error = Some(error.clone());
            report.reflection = reflection.unwrap_or_default();
        }
        Outcome::Working | Outcome::Found { .. } => {
            let message = "the pipeline ended before it had a result";
            report.error = Some(crate::AgentError::new(Default::default(), message));
        }
    }
    report
}

/// Declares a kind of agent as a list of stages over the state `W`.
#[must_use]
pub struct Pipeline<W: State> {
    card: KindCard,
    stages: Vec<(&'static str, Run<W>)>,
}

impl<W: State> Pipeline<W> {
    /// Starts the declaration of a kind; `name` is the word in the servers file.
    pub fn new(name: &'static str) -> Self {
        Self { card: KindCard { name, ..KindCard::default() }, stages: Vec::new() }
    }

    pub fn about(mut self, about: &'static str) -> Self {
        self.card.about = about;
        self
    }

    /// Adds a stage at the end; names are unique, and `reflect` is reserved.
    pub fn stage<F, Fut>(mut self, name: &'static str, run: F) -> Self
    where
        F: Fn(Stage<W>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = StageResult<W>> + Send + 'static,
    {
        self.stages.push((name, Arc::new(move |stage| Box::pin(run(stage)))));
        self
    }

    pub fn tool(mut self, name: &'static str, about: &'static str) -> Self {
        self.card.tool_roles.push(ToolRole { name, about, required: true });
        self
    }

    /// Uses a tool that plays a role, if the server has one.
    pub fn optional_tool(mut self, name: &'static str, about: &'static str) -> Self {
        self.card.tool_roles.push(ToolRole { name, about, required: false });
        self
    }

    /// Knows the tools of a server: role and tool. It fits every server that has all of them.
    pub fn profile(mut self, server: &'static str, tools: &[(&'static str, &'static str)]) -> Self {
        self.card.profiles.push(Profile { server, tools: tools.to_vec() });
        self
    }

    pub fn natural_for(mut self, server: &'static str) -> Self {
        self.card.natural_for.push(server);
        self
    }

    /// Adds a prompt template, which a user's directory of prompts can replace.
    pub fn template(mut self, name: &'static str, source: &'static str) -> Self {
        self.card.templates.push((name, source));
        self
    }
}
