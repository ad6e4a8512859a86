//! Declares a pipeline: its stages, the tools that it needs, its prompts.

use std::future::Future;
use std::sync::Arc;

use super::node::Run;
use super::stage::Stage;
use super::step::StageResult;
use crate::{ModelStage, Profile, ToolRole};
use perihelion_engine::graph::State;
use perihelion_llm::Role;

/// Declares a kind of agent as a list of stages over the state `W`.
pub struct Pipeline<W: State> {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) stages: Vec<(&'static str, Run<W>)>,
    pub(super) roles: Vec<ToolRole>,
    pub(super) profiles: Vec<Profile>,
    pub(super) natural_for: Vec<&'static str>,
    pub(super) templates: Vec<(&'static str, &'static str)>,
    pub(super) models: Vec<ModelStage>,
}

impl<W: State> Pipeline<W> {
    /// Starts the declaration of a kind; `name` is what stands in the servers file.
    pub fn new(name: &'static str) -> Self {
        Self {
            name,
            about: "",
            stages: Vec::new(),
            roles: Vec::new(),
            profiles: Vec::new(),
            natural_for: Vec::new(),
            templates: Vec::new(),
            models: Vec::new(),
        }
    }

    /// Says in a phrase what the kind is good for.
    #[must_use]
    pub fn about(mut self, about: &'static str) -> Self {
        self.about = about;
        self
    }

    /// Adds a stage after those there are; names are unique, and none is `reflect`.
    #[must_use]
    pub fn stage<F, Fut>(mut self, name: &'static str, run: F) -> Self
    where
        F: Fn(Stage<W>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = StageResult<W>> + Send + 'static,
    {
        self.stages.push((name, Arc::new(move |stage| Box::pin(run(stage)))));
        self
    }

    /// Needs a tool that plays a role.
    #[must_use]
    pub fn tool(mut self, name: &'static str, about: &'static str) -> Self {
        self.roles.push(ToolRole { name, about, required: true });
        self
    }

    /// Uses a tool that plays a role, where the server has one.
    #[must_use]
    pub fn optional_tool(mut self, name: &'static str, about: &'static str) -> Self {
        self.roles.push(ToolRole { name, about, required: false });
        self
    }

    /// Knows the tools of a server: role and tool. It fits every server that has all of them.
    #[must_use]
    pub fn profile(mut self, server: &'static str, tools: &[(&'static str, &'static str)]) -> Self {
        self.profiles.push(Profile { server, tools: tools.to_vec() });
        self
    }

    /// Makes this the natural kind of a bundled server.
    #[must_use]
    pub fn natural_for(mut self, server: &'static str) -> Self {
        self.natural_for.push(server);
        self
    }

    /// Adds a prompt template, which a user's directory of prompts can replace.
    #[must_use]
    pub fn template(mut self, name: &'static str, source: &'static str) -> Self {
        self.templates.push((name, source));
        self
    }

    /// Lists a model call among those that the kind makes, for the one who looks at it.
    #[must_use]
    pub fn model(mut self, role: Role, stage: &'static str, schema: &'static str) -> Self {
        self.models.push(ModelStage { role, stage, schema });
        self
    }
}
