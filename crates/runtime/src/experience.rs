//! Opens the data that outlives a thread, for runs and for its administrators.

use std::sync::Arc;

use perihelion_database::Database;
use perihelion_memory::{Skills, UserMemory};
use perihelion_recall::{EmbeddingModel, StoredIndex};

use super::Error;
use crate::learned::{MemoryService, Models};
use perihelion_embeddings::Endpoint;
use perihelion_llm::{self as llm, ChatModel, Prompts};
use perihelion_settings::config::Settings;

/// The tenant of the command line's user, as for threads.
pub const LOCAL_TENANT: &str = "default";

pub async fn open_skills(settings: &Settings) -> Result<Skills, Error> {
    Ok(Skills::new(index(settings).await?))
}

/// Opens the memories of users, in the settings' database.
pub async fn open_memory(settings: &Settings) -> Result<UserMemory, Error> {
    Ok(UserMemory::new(index(settings).await?))
}

async fn index(settings: &Settings) -> Result<StoredIndex, Error> {
    let opened = Database::open(settings.store.database.expose()).await;
    Ok(StoredIndex::new(opened.map_err(crate::learned::Error::from)?))
}

/// Returns the skills and memories of runs. `None` if they are disabled, or if threads are encrypted, because skills
/// and memories are not.
pub(super) fn of_runs(
    settings: &Settings,
    database: &Database,
    chat: &Arc<dyn ChatModel>,
    prompts: &Arc<Prompts>,
) -> Result<Option<Arc<MemoryService>>, Error> {
    if !settings.swarm.experience {
        return Ok(None);
    }
    if !settings.encryption.keys.is_empty() {
        tracing::info!("threads are encrypted, so no skills and memories are stored");
        return Ok(None);
    }
    let embeddings = settings.embeddings.as_ref().map(Endpoint::new).transpose();
    let embeddings = embeddings.map_err(llm::Error::from)?;
    let embeddings = embeddings.map(|endpoint| Arc::new(endpoint) as Arc<dyn EmbeddingModel>);
    let models = Models { chat: Arc::clone(chat), prompts: Arc::clone(prompts), embeddings };
    Ok(Some(Arc::new(MemoryService::new(database.clone(), models))))
}
