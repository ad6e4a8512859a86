//! Kinds of agents: how the agent of an MCP server works, chosen by `agent = "KIND"` in its table.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;

use crate::{Assignment, GraphState, Report, StarLimits, StarParts, model::RecordedModel};
use perihelion_engine::graph::{Context, NodeError, TaskContext};
use perihelion_mcp::{ServerInfo, ToolDefinition};
use perihelion_settings::config::strict::did_you_mean;

/// The kind that every server's agent can be: a model in a loop with the server's tools.
pub const TOOLS: &str = "tools";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolRole {
    pub name: &'static str,
    /// The purpose of the tool, for an operator who maps one.
    pub about: &'static str,
    /// The kind cannot work without it.
    pub required: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    pub server: &'static str,
    /// Role and tool; the profile fits a server that has all of these tools.
    pub tools: Vec<(&'static str, &'static str)>,
}

pub struct Job {
    pub ctx: Context<GraphState>,
    pub star: Arc<StarParts>,
    pub agent: String,
    pub server: Arc<ServerInfo>,
    pub assignment: Assignment,
    /// Role to tool.
    pub tools: BTreeMap<String, ToolDefinition>,
}

impl Job {
    pub(super) fn limits(&self) -> StarLimits {
        self.star.limits.for_turn(self.ctx.state())
    }

    /// Returns a model for a node of the agent's: `ctx` is its own context, or that of a stage below it.
    pub(super) fn model<'a>(&'a self, ctx: &'a TaskContext) -> RecordedModel<'a> {
        RecordedModel::new(ctx, &self.star).in_turn(self.ctx.state(), self.ctx.place())
    }
}

#[derive(Clone, Debug, Default)]
pub struct KindCard {
    /// The word in the servers file.
    pub name: &'static str,
    pub about: &'static str,
    pub tool_roles: Vec<ToolRole>,
    pub profiles: Vec<Profile>,
    /// The bundled servers whose agents are of this kind unless their table says otherwise.
    pub natural_for: Vec<&'static str>,
    /// Its prompt templates: name and source.
    pub templates: Vec<(&'static str, &'static str)>,
}

#[async_trait]
pub trait Kind: Send + Sync {
    fn card(&self) -> &KindCard;

    /// Works on one assignment.
    ///
    /// # Errors
    /// [`NodeError`] only when a person must answer first or the run stops; an agent that fails reports it.
    async fn work(&self, job: Job) -> Result<Report, NodeError>;
}

#[derive(Clone)]
pub struct Bound {
    pub kind: Arc<dyn Kind>,
    pub tools: BTreeMap<String, ToolDefinition>,
    /// Why it is not the kind that was wanted.
    pub notice: Option<String>,
}

#[derive(Clone)]
pub struct Kinds {
    plain: Arc<dyn Kind>,
    others: BTreeMap<String, Arc<dyn Kind>>,
}

impl std::fmt::Debug for Kinds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

/// Why an agent cannot be of the kind that its server's table asks for.
#[derive(Debug, thiserror::Error)]
pub enum KindError {
    #[error("there is no kind of agent of that name{hint}; the kinds are {known}: {name}")]
    Unknown { name: String, hint: String, known: String },
    #[error("agent_tools names a role that it does not have; it has {names}: {role}")]
    NoRole { role: String, names: String },
    #[error("agent_tools.{role} names a tool that the server does not have: {tool}")]
    NoTool { role: String, tool: String },
    #[error(
        "no tool is known for a role; name it under [mcp_servers.{server}.agent_tools]: {roles}"
    )]
    Lacking { server: String, roles: String },
}

impl Kinds {
    /// Knows the plain kind alone.
    pub fn new(plain: Arc<dyn Kind>) -> Self {
        Self { plain, others: BTreeMap::new() }
    }

    /// Adds a kind, in place of one of the same name.
    #[must_use]
    pub fn with(mut self, kind: Arc<dyn Kind>) -> Self {
        self.others.insert(kind.card().name.to_owned(), kind);
        self
    }

    /// Returns the names, the plain kind's first.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.plain.card().name).chain(self.others.keys().map(String::as_str))
    }

    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Kind>> {
        std::iter::once(&self.plain).chain(self.others.values())
    }

    /// Checks that a kind exists.
    ///
    /// # Errors
    /// [`KindError::Unknown`] that names the nearest.
    pub fn check(&self, name: &str) -> Result<(), KindError> {
        if self.names().any(|known| known == name) {
            return Ok(());
        }
        let known = self.names().collect::<Vec<_>>().join(", ");
        let hint = did_you_mean(name, self.names());
        Err(KindError::Unknown { name: name.to_owned(), hint, known })
    }

    /// Returns the kind for a server: the one in its table, its natural one, or the plain one.
    ///
    /// A kind that lacks a tool for a required role is replaced by the plain one, with a notice.
    pub fn bind(&self, server: &ServerInfo) -> Bound {
        let plain =
            |notice| Bound { kind: Arc::clone(&self.plain), tools: BTreeMap::new(), notice };
        let Some(kind) = self.wanted(server) else {
            let wanted = server.agent.kind.as_deref().unwrap_or_default();
            let is_plain = wanted.is_empty() || wanted == self.plain.card().name;
            let unknown = self.check(wanted).err().filter(|_| !is_plain);
            return plain(unknown.map(|error| error.to_string()));
        };
        match roles(kind.card(), server) {
            Ok(tools) => Bound { kind: Arc::clone(kind), tools, notice: None },
            Err(lack) => plain(Some(format!(
                "works as `{}` in place of `{}`: {lack}",
                self.plain.card().name,
                kind.card().name
            ))),
        }
    }

    fn wanted(&self, server: &ServerInfo) -> Option<&Arc<dyn Kind>> {
        if let Some(name) = &server.agent.kind {
            return self.others.get(name);
        }
        let bundled = server.agent.bundled.as_deref()?;
        self.others.values().find(|kind| kind.card().natural_for.contains(&bundled))
    }
}

/// Finds a tool for each role: as the table says, else as the first profile that fits.
fn roles(
    kind: &KindCard,
    server: &ServerInfo,
) -> Result<BTreeMap<String, ToolDefinition>, KindError> {
    let find = |name: &str| server.tools.iter().find(|tool| tool.name == name);
    let mut tools = BTreeMap::new();
    let fits = |profile: &&Profile| profile.tools.iter().all(|(_, tool)| find(tool).is_some());
    for (role, tool) in kind.profiles.iter().find(fits).into_iter().flat_map(|one| &one.tools) {
        tools.extend(find(tool).map(|found| ((*role).to_owned(), found.clone())));
    }
    for (role, tool) in &server.agent.tools {
        let names = kind.tool_roles.iter().map(|role| role.name);
        if !names.clone().any(|name| name == role) {
            let names = names.collect::<Vec<_>>().join(", ");
            return Err(KindError::NoRole { role: role.clone(), names });
        }
        let missing = || KindError::NoTool { role: role.clone(), tool: tool.clone() };
        let found = find(tool).ok_or_else(missing)?;
        tools.insert(role.clone(), found.clone());
    }
    let lacking = kind.tool_roles.iter().filter(|role| role.required);
    let lacking: Vec<String> = lacking
        .filter(|role| !tools.contains_key(role.name))
        .map(|role| format!("{} ({})", role.name, role.about))
        .collect();
    if lacking.is_empty() {
        Ok(tools)
    } else {
        Err(KindError::Lacking { server: server.name.clone(), roles: lacking.join(", ") })
    }
}
