//! Opens a runtime on parts that are there already: a model, servers, a store, kinds of agents.

use std::sync::Arc;

use super::assemble::Parts;
use super::{Error, Runtime};
use crate::agents;
use crate::checkpoint::Store;
use crate::config::Settings;
use crate::llm::ChatModel;
use crate::mcp::{Pool, PoolOptions, ServersFile};
use crate::swarm::Kinds;
use crate::telemetry::GoesOn;

impl Runtime {
    /// Opens a runtime on parts that are there already; servers that did not come from a file have no pins.
    ///
    /// # Errors
    /// As [`Runtime::open`].
    pub async fn with(
        settings: Settings,
        model: Arc<dyn ChatModel>,
        file: ServersFile,
        store: Arc<dyn Store>,
    ) -> Result<Self, Error> {
        Self::with_pool(settings, model, Pool::new(file, PoolOptions::default()), store).await
    }

    /// Opens a runtime on parts that are there already, a pool of servers among them.
    ///
    /// # Errors
    /// As [`Runtime::open`].
    pub async fn with_pool(
        settings: Settings,
        model: Arc<dyn ChatModel>,
        pool: Pool,
        store: Arc<dyn Store>,
    ) -> Result<Self, Error> {
        Self::going_on(settings, model, pool, store, GoesOn::WithNone).await
    }

    /// Does the same for a process that is to continue with unfinished runs.
    pub(super) async fn going_on(
        settings: Settings,
        model: Arc<dyn ChatModel>,
        pool: Pool,
        store: Arc<dyn Store>,
        goes_on: GoesOn,
    ) -> Result<Self, Error> {
        let kinds = Arc::new(agents::kinds());
        let parts =
            Parts { model, pool, source: ServersFile::default().into(), kinds, learns: false };
        Self::assemble(settings, parts, store, goes_on).await
    }

    /// Opens a runtime on parts that are there already, with kinds of agents of one's own.
    ///
    /// # Errors
    /// As [`Runtime::open`].
    pub async fn with_kinds(
        settings: Settings,
        model: Arc<dyn ChatModel>,
        pool: Pool,
        store: Arc<dyn Store>,
        kinds: Kinds,
    ) -> Result<Self, Error> {
        let source = ServersFile::default().into();
        let kinds = Arc::new(kinds);
        let parts = Parts { model, pool, source, kinds, learns: false };
        Self::assemble(settings, parts, store, GoesOn::WithNone).await
    }
}
