//! Data that outlives a thread: skills of agents, and memories about users.
//!
//! Enter at [`MemoryService`], which the star knows as [`swarm::Experience`](perihelion_star::Experience).
//! Invariants: a failure here never fails a run; no run waits for its lessons to be stored, or for a user's words to be
//! understood; every row has a tenant and an owner. Deliberately absent: storage (the crate `perihelion-memory`) and
//! search (`perihelion-recall`).

mod learning;
mod queues;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use perihelion_database::Database;
use perihelion_memory::{Entry, EntryKind, Skills, UserMemory};
use perihelion_recall::{EmbeddingModel, QueryVector, Scope, StoredIndex, embed_pending};
use tokio_util::task::TaskTracker;

use self::queues::Queues;
use perihelion_embeddings::Endpoint;
use perihelion_engine::clock;
use perihelion_llm::{self as llm, ChatModel, Prompts};
use perihelion_mcp::ServerInfo;
use perihelion_settings::config::Settings;
use perihelion_star::{Experience, Known, ShownSkill, Statement, Work};

/// How long the end of a program waits for lessons to be stored and users' words to be understood.
const FAREWELL: Duration = Duration::from_secs(30);

const NOTHING_LEARNED: &str = "cannot learn a skill from a task";

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Database(#[from] perihelion_database::Error),
    #[error(transparent)]
    Memory(#[from] perihelion_memory::Error),
    #[error(transparent)]
    Recall(#[from] perihelion_recall::Error),
    #[error(transparent)]
    Model(#[from] llm::Error),
}

/// Skills and memories, of each tenant for itself, with the models that they need.
pub struct MemoryService {
    skills: Skills,
    /// The tasks that store lessons and memories; the program's end waits for them.
    tasks: TaskTracker,
    lessons: Queues,
    /// What users said, understood in the order in which they said it.
    statements: Queues,
    shared: Arc<Shared>,
}

/// The parts that separate tasks use.
struct Shared {
    memory: UserMemory,
    model: Arc<dyn ChatModel>,
    prompts: Arc<Prompts>,
    /// Without it, only keyword search is used.
    embeddings: Option<Arc<dyn EmbeddingModel>>,
}

impl MemoryService {
    /// Waits up to half a minute for skills and memories that are still being stored.
    pub async fn close(&self) {
        self.tasks.close();
        if tokio::time::timeout(FAREWELL, self.tasks.wait()).await.is_err() {
            tracing::warn!("some skills and memories were not stored in time");
        }
    }

    async fn of_user(&self, tenant: &str, user: &str, question: &str) -> Result<Vec<Entry>, Error> {
        let scope = Scope::new(tenant, user)?;
        let vector = self.vector(&scope, question).await;
        Ok(self.shared.memory.for_prompt(&scope, question, vector).await?)
    }

    /// Returns the vector of a question; `None` without a model, or if it fails: keyword search finds much alone.
    async fn vector(&self, scope: &Scope, text: &str) -> Option<QueryVector> {
        let model = self.shared.embeddings.as_ref()?;
        let generations = self.skills.index.generations(scope).await.ok()?;
        generations.iter().find(|one| one.is_active && one.model == model.model())?;
        match model.embed(&[text.to_owned()]).await {
            Ok(vectors) => {
                let values = vectors.into_iter().next()?;
                Some(QueryVector { model: model.model().to_owned(), values })
            }
            Err(error) => {
                tracing::warn!(%error, "searching by words alone");
                None
            }
        }
    }
}

/// Embeds new texts, and makes searches use a model's vectors when they are complete.
async fn embed(
    index: &StoredIndex,
    model: Option<&Arc<dyn EmbeddingModel>>,
    scope: &Scope,
) -> Result<(), perihelion_recall::Error> {
    let Some(model) = model else { return Ok(()) };
    embed_pending(index, scope, model.as_ref()).await?;
    let generations = index.generations(scope).await?;
    if generations.iter().any(|one| one.model == model.model() && !one.is_active) {
        index.finish_generation(scope, model.model()).await
    } else {
        Ok(())
    }
}

/// Returns a result's value; a failure is a line in the log.
fn noted<T: Default>(what: &str, result: Result<T, Error>) -> T {
    result.unwrap_or_else(|error| {
        tracing::warn!(%error, "{what}");
        T::default()
    })
}

#[async_trait]
impl Experience for MemoryService {
    async fn skills(
        &self,
        tenant: &str,
        agent: &str,
        server: &ServerInfo,
        task: &str,
    ) -> Vec<ShownSkill> {
        noted("cannot look up skills", self.similar(tenant, agent, server, task).await)
    }

    fn worked(&self, work: Work<'_>) {
        noted(NOTHING_LEARNED, self.learn(work));
    }

    async fn known(&self, tenant: &str, user: &str, question: &str) -> Vec<Known> {
        let found = self.of_user(tenant, user, question).await;
        let entries = noted("cannot look up memories of the user", found);
        let known = |entry: Entry| Known {
            kind: match entry.kind {
                EntryKind::Fact => "fact",
                EntryKind::Preference => "preference",
            },
            key: entry.key,
            value: entry.value,
            since: entry.since,
        };
        entries.into_iter().map(known).collect()
    }

    fn heard(&self, heard: Statement) {
        let Ok(scope) = Scope::new(&heard.tenant, &heard.user) else { return };
        let shared = Arc::clone(&self.shared);
        let owner = scope.clone();
        let at = clock::now();
        let listening = async move { learning::listen(&shared, &owner, heard, at).await };
        self.tasks.spawn(self.statements.queue(scope, listening));
    }
}

/// The tenant of the command line's user, as for threads.
pub const LOCAL_TENANT: &str = "default";

pub async fn open_skills(settings: &Settings) -> Result<Skills, crate::Error> {
    Ok(Skills { index: index(settings).await? })
}

pub async fn open_memory(settings: &Settings) -> Result<UserMemory, crate::Error> {
    Ok(UserMemory { index: index(settings).await? })
}

async fn index(settings: &Settings) -> Result<StoredIndex, crate::Error> {
    let opened = Database::open(settings.store.database.expose()).await;
    Ok(StoredIndex::new(opened.map_err(Error::from)?))
}

/// Returns the skills and memories of runs. `None` if they are disabled, or if threads are encrypted, because skills
/// and memories are not.
pub(crate) fn of_runs(
    settings: &Settings,
    database: &Database,
    chat: &Arc<dyn ChatModel>,
    prompts: &Arc<Prompts>,
) -> Result<Option<Arc<MemoryService>>, crate::Error> {
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
    let index = StoredIndex::new(database.clone());
    let memory = UserMemory { index: index.clone() };
    let model = Arc::clone(chat);
    let prompts = Arc::clone(prompts);
    Ok(Some(Arc::new(MemoryService {
        skills: Skills { index },
        tasks: TaskTracker::new(),
        lessons: Queues::default(),
        statements: Queues::default(),
        shared: Arc::new(Shared { memory, model, prompts, embeddings }),
    })))
}
