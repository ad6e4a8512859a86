//! The seam at which teams are kept that are designed while a run is under way (S1.10).

use async_trait::async_trait;

use super::team::{Material, TeamDesign};
use perihelion_mcp::ServerInfo;

/// Keeps teams, and has them offered.
#[async_trait]
pub trait Founder: Send + Sync {
    /// Returns what teams of a tenant can be made of: servers with their tools, and the teams that there are.
    ///
    /// # Errors
    /// Why it cannot be found out.
    async fn material(&self, tenant: &str) -> Result<(Vec<ServerInfo>, Material), String>;

    /// Keeps a design of a tenant and offers the team; one that is kept as it is already stays the version that it is.
    ///
    /// # Errors
    /// Why it was not kept.
    async fn found(&self, tenant: &str, design: &TeamDesign) -> Result<u32, String>;

    /// Returns whether a person has to agree first.
    fn asks(&self) -> bool;
}
