//! What a demo is played with.

use super::atlas::Atlas;
use perihelion_llm::scripted::ScriptedServer;
use perihelion_mcp::ServersFile;

/// What a demo brings: its servers, and what runs beside them.
pub(crate) struct Stage {
    pub servers: ServersFile,
    pub companions: Companions,
}

/// What ends with the runtime of a demo.
pub(crate) struct Companions {
    /// The scripted model.
    pub model: ScriptedServer,
    /// The API of the demo that asks one.
    pub(super) _atlas: Option<Atlas>,
}

impl Stage {
    /// Sets a stage on which a scripted model answers.
    pub(super) fn new(servers: ServersFile, model: ScriptedServer) -> Self {
        Self { servers, companions: Companions { model, _atlas: None } }
    }
}
