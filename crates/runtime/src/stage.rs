//! A model, servers and processes that replace those of the settings.

use std::any::Any;

use perihelion_mcp::{PoolOptions, ServersFile};

/// The tenant of the demo's threads, which no worker continues.
pub const DEMO_TENANT: &str = "demo";

/// A model and servers that replace those of the settings. The threads belong to [`DEMO_TENANT`].
pub struct Stage {
    pub model_url: String,
    pub model: &'static str,
    pub servers: ServersFile,
    pub pool: PoolOptions,
    /// Ends when the runtime is closed.
    pub companions: Companions,
}

/// Anything that ends when it is dropped.
pub type Companions = Box<dyn Any + Send + Sync>;
