//! Data that outlives a thread, as the star uses it: solved tasks, memories about a user, teams (S1.10, S1.11, S3.03).

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::{CallRecord, Material, TeamDesign};
use perihelion_engine::checkpoint::Cause;
use perihelion_mcp::ServerInfo;

/// How a task like the present one was solved before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownSkill {
    pub id: String,
    pub task: String,
    /// The calls, with values as parameters.
    pub solution: String,
}

#[derive(Clone, Copy, Debug)]
pub struct Work<'a> {
    pub tenant: &'a str,
    pub agent: &'a str,
    pub server: &'a ServerInfo,
    pub task: &'a str,
    /// Names the work: done again after a crash, it has the same name.
    pub source: &'a str,
    pub calls: &'a [CallRecord],
    /// It was approved unchanged, without any open-world content.
    pub is_exemplary: bool,
    pub succeeded: bool,
    pub skills: &'a [ShownSkill],
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Known {
    /// `fact` or `preference`.
    pub kind: &'static str,
    pub key: String,
    pub value: String,
    pub since: DateTime<Utc>,
}

#[derive(Clone, Debug)]
pub struct Statement {
    pub tenant: String,
    pub user: String,
    pub thread: String,
    pub turn: u32,
    pub text: String,
}

/// Stores data that outlives a thread, for each tenant separately; its failures never fail a run.
#[async_trait]
pub trait Experience: Send + Sync {
    /// Returns skills of an agent that are like a task, best first.
    async fn skills(
        &self,
        tenant: &str,
        agent: &str,
        server: &ServerInfo,
        task: &str,
    ) -> Vec<ShownSkill>;

    /// Starts to learn from work, or from its failure, and returns immediately; the agent's next task gets the result.
    fn worked(&self, work: Work<'_>);

    /// Returns the memories about a user for a prompt, within a bound.
    async fn known(&self, tenant: &str, user: &str, question: &str) -> Vec<Known>;

    /// Starts to store memories from a user's words, and returns immediately.
    fn heard(&self, heard: Statement);
}

/// Keeps teams, and has them offered.
#[async_trait]
pub trait Founder: Send + Sync {
    /// Returns what teams of a tenant can be made of: servers with their tools, and the teams that there are.
    async fn material(&self, tenant: &str) -> Result<(Vec<ServerInfo>, Material), Cause>;

    /// Stores a design of a tenant and offers the team; an unchanged design keeps its version.
    async fn found(&self, tenant: &str, design: &TeamDesign) -> Result<u32, Cause>;

    /// Returns whether a person has to agree first.
    fn asks(&self) -> bool;
}
