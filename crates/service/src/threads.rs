//! Threads as clients look at them: the engine's row with what is noted beside it.

use std::sync::Arc;

use futures::{StreamExt as _, TryStreamExt as _};
use serde_json::{Value, json};
use uuid::Uuid;

use super::kept::{Listed, ThreadFilter, ThreadMeta, ThreadOrder};
use super::{Error, Service};
use perihelion_engine::checkpoint::{self, RunStatus, ThreadDump, ThreadInfo, ThreadStatus};
use perihelion_engine::clock;
use perihelion_engine::ids::ThreadId;
use perihelion_engine::runner;
use perihelion_runtime::{self as runtime, InterruptView, Removal, Served, ThreadState};
use perihelion_star::Artifact;

/// Threads of a list that are read at the same time.
const READ_AT_ONCE: usize = 8;

/// Threads that are listed at a time for their deletion.
const DELETED_AT_ONCE: u32 = 100;

/// How a thread stands for a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientStatus {
    Idle,
    Busy,
    /// It waits for a person, or its last run was stopped before its end.
    Interrupted,
    Error,
}

/// A thread with its state and its open questions.
#[derive(Clone, Debug)]
pub struct ThreadView {
    pub info: ThreadInfo,
    pub status: ClientStatus,
    pub meta: ThreadMeta,
    /// The newest state; none before the first input.
    pub state: Option<ThreadState>,
    pub open: Vec<InterruptView>,
    /// The task of the next step that asks each of `open`.
    pub asking: Vec<u32>,
    /// Whether its last run was stopped before its end.
    pub was_stopped: bool,
}

impl Service {
    /// Makes a thread and notes what the client says of it.
    ///
    /// # Errors
    /// [`Error::Runtime`] when the id is taken; [`Error::UnknownThread`] when it is taken where this tenant does not see it.
    pub async fn create_thread(&self, thread: ThreadId, metadata: &Value) -> Result<(), Error> {
        let title = metadata.get("title").and_then(Value::as_str).map(str::to_owned);
        let graph = self.graph_noted(metadata);
        let made = self.runtime().create_for(graph, self.tenant(), thread, title).await;
        self.unless_hidden(thread, made).await?;
        self.kept().note_thread(thread.0, metadata, None, clock::now()).await?;
        match self.who().person() {
            Some(user) => self.give(thread, user).await,
            None => Ok(()),
        }
    }

    /// Returns the graph that metadata of a thread or a run name; the supervisor graph where they name none.
    pub fn graph_noted(&self, metadata: &Value) -> &Arc<dyn Served> {
        let runtime = self.runtime();
        let named = metadata["graph_id"].as_str().and_then(|name| runtime.own_graph(name));
        named.unwrap_or_else(|| runtime.supervisor())
    }

    /// Makes a thread that has not run yet one of a graph; one that has run stays its graph's.
    ///
    /// # Errors
    /// [`Error::OtherGraph`].
    pub(super) async fn fit(&self, thread: ThreadId, graph: &str) -> Result<(), Error> {
        let info = self.info(thread).await?;
        if info.graph == graph || self.kept().give_to_graph(thread.0, graph).await? {
            return Ok(());
        }
        Err(Error::OtherGraph { thread, graph: info.graph })
    }

    /// Says of an id that is taken where this tenant does not see it what is said of any id that it does not see.
    async fn unless_hidden<T>(
        &self,
        thread: ThreadId,
        made: Result<T, runtime::Error>,
    ) -> Result<T, Error> {
        use checkpoint::Error::ThreadExists;
        match made {
            Err(
                runtime::Error::Store(ThreadExists(_))
                | runtime::Error::Run(runner::Error::Store(ThreadExists(_))),
            ) => {
                self.info(thread).await?;
                Err(checkpoint::Error::ThreadExists(thread).into())
            }
            other => Ok(other?),
        }
    }

    /// Imports a thread from a file; it is this tenant's then.
    ///
    /// # Errors
    /// As [`Service::create_thread`], and [`Error::Runtime`] where the file is not what was exported.
    pub async fn import_thread(&self, dump: ThreadDump) -> Result<ThreadInfo, Error> {
        let thread = dump.info.id;
        let imported = self.runtime().threads().import(dump, Some(self.tenant())).await;
        self.unless_hidden(thread, imported).await
    }

    /// Makes a thread for a turn, where there is room for one: a turn that is refused leaves no thread behind.
    ///
    /// # Errors
    /// [`Error::TooMuch`], and as [`Service::create_thread`].
    pub async fn create_thread_for_turn(
        &self,
        thread: ThreadId,
        metadata: &Value,
    ) -> Result<(), Error> {
        self.check_room().await?;
        self.create_thread(thread, metadata).await
    }

    /// Returns a thread's row.
    ///
    /// # Errors
    /// [`Error::UnknownThread`], also for one of another graph's or tenant's.
    pub async fn info(&self, thread: ThreadId) -> Result<ThreadInfo, Error> {
        match self.runtime().store().info(thread).await {
            Ok(info) if info.root.is_none() && info.tenant == self.tenant() => Ok(info),
            Ok(_) | Err(checkpoint::Error::UnknownThread(_)) => Err(Error::UnknownThread(thread)),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns a thread with its state and its open questions.
    ///
    /// # Errors
    /// [`Error::UnknownThread`].
    pub async fn thread(&self, thread: ThreadId) -> Result<ThreadView, Error> {
        let info = self.info(thread).await?;
        let meta = self.kept().thread_meta(thread.0).await?;
        let is_busy = matches!(info.status, ThreadStatus::Busy | ThreadStatus::Queued);
        let has_open_run = is_busy || !self.kept().open_runs(thread.0).await?.is_empty();
        self.view(info, meta, has_open_run).await
    }

    /// Returns the whole of a large value that a thread keeps.
    ///
    /// # Errors
    /// [`Error::Runtime`] when it is not in the store any more, or altered there.
    pub async fn artifact(
        &self,
        thread: ThreadId,
        key: &str,
        artifact: &Artifact,
    ) -> Result<Arc<str>, Error> {
        let store = self.runtime().store().as_ref();
        Ok(artifact.whole(store, thread, key).await?)
    }

    /// Finds threads, and says how many there are in all.
    pub async fn find_threads(
        &self,
        filter: &ThreadFilter,
    ) -> Result<(Vec<ThreadView>, u64), Error> {
        let (listed, total) = self.kept().threads(filter).await?;
        let views = futures::stream::iter(listed).map(|one| self.listed(one));
        let views: Vec<Option<ThreadView>> = views.buffered(READ_AT_ONCE).try_collect().await?;
        Ok((views.into_iter().flatten().collect(), total))
    }

    /// Reads a thread that was found; `None` when it was deleted at this moment.
    async fn listed(&self, one: Listed) -> Result<Option<ThreadView>, Error> {
        match self.info(ThreadId(one.id)).await {
            Ok(info) => self.view(info, one.meta, one.has_open_run).await.map(Some),
            Err(Error::UnknownThread(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn view(
        &self,
        info: ThreadInfo,
        meta: ThreadMeta,
        has_open_run: bool,
    ) -> Result<ThreadView, Error> {
        let store = self.runtime().store().as_ref();
        let mut was_stopped = false;
        let status = match info.overall_status() {
            ThreadStatus::Idle => ClientStatus::Idle,
            ThreadStatus::Busy | ThreadStatus::Queued => ClientStatus::Busy,
            ThreadStatus::Interrupted => ClientStatus::Interrupted,
            ThreadStatus::Parked => ClientStatus::Error,
            ThreadStatus::Failed if info.status == ThreadStatus::Idle => ClientStatus::Error,
            ThreadStatus::Failed => {
                let last = store.runs(info.id).await?.pop().map(|run| run.status);
                was_stopped = last == Some(RunStatus::Cancelled);
                if last == Some(RunStatus::Failed) {
                    ClientStatus::Error
                } else {
                    ClientStatus::Interrupted
                }
            }
        };
        // A run that waits for its turn makes its thread busy, too.
        let status = if has_open_run { ClientStatus::Busy } else { status };
        // Of a graph that this program does not have, nobody here can tell the state.
        let graph = self.runtime().graph(&info.graph).ok().filter(|_| info.head > 0);
        let state = match graph {
            Some(graph) => Some(graph.state(info.id, None).await?),
            None => None,
        };
        let (open, asking) = match info.status {
            ThreadStatus::Idle => (Vec::new(), Vec::new()),
            _ => self.open_questions(&info).await?,
        };
        Ok(ThreadView { info, status, meta, state, open, asking, was_stopped })
    }

    /// Returns the open questions of a thread, with the tasks that ask them.
    pub async fn open_questions(
        &self,
        info: &ThreadInfo,
    ) -> Result<(Vec<InterruptView>, Vec<u32>), Error> {
        let view = self.runtime().threads().view(info.id).await?;
        Ok((view.open, view.asking))
    }

    /// Deletes a thread with everything of it.
    ///
    /// # Errors
    /// [`Error::UnknownThread`], [`Error::OthersThread`].
    pub async fn delete_thread(&self, thread: ThreadId) -> Result<(), Error> {
        self.remove_thread(&self.info_to_change(thread).await?).await
    }

    /// Deletes the threads that an assistant ran last, but for those of other users.
    pub async fn delete_threads_of(&self, assistant: Uuid) -> Result<(), Error> {
        let mut filter = ThreadFilter {
            graphs: self.runtime().graph_names(),
            ids: Vec::new(),
            metadata: json!({ "assistant_id": assistant }),
            statuses: Vec::new(),
            order: ThreadOrder::Id,
            ascending: true,
            limit: DELETED_AT_ONCE,
            offset: 0,
        };
        loop {
            let (listed, _) = self.kept().threads(&filter).await?;
            let is_last = listed.len() < DELETED_AT_ONCE as usize;
            for one in listed {
                match self.delete_thread(ThreadId(one.id)).await {
                    Ok(()) | Err(Error::UnknownThread(_)) => {}
                    Err(Error::OthersThread) => filter.offset += 1,
                    Err(error) => return Err(error),
                }
            }
            if is_last {
                return Ok(());
            }
        }
    }

    /// Ends what this process does on a thread, and deletes it.
    pub(super) async fn remove_thread(&self, info: &ThreadInfo) -> Result<(), Error> {
        for run in self.kept().open_runs(info.id.0).await? {
            self.stop_driving(run.id);
        }
        Ok(self.runtime().threads().remove(info, Removal::Forced).await?)
    }

    /// Forgets the steps of a thread before its newest one.
    ///
    /// # Errors
    /// [`Error::UnknownThread`], [`Error::OthersThread`].
    pub async fn shorten_thread(&self, thread: ThreadId) -> Result<(), Error> {
        self.info_to_change(thread).await?;
        self.runtime().graph_of(thread).await?.compact(thread, 1).await?;
        Ok(())
    }

    /// Copies a thread: the copy shares its steps, and the IDs of their checkpoints.
    ///
    /// # Errors
    /// [`Error::UnknownThread`].
    pub async fn copy_thread(&self, thread: ThreadId) -> Result<ThreadId, Error> {
        let info = self.info(thread).await?;
        let mut meta = self.kept().thread_meta(thread.0).await?;
        meta.origins.push((thread.0, info.head));
        let copy = ThreadId::new();
        self.runtime().threads().fork(thread, info.head, copy, info.title.clone()).await?;
        self.kept().note_copy(copy.0, &meta, clock::now()).await?;
        self.give_copy(thread, copy).await?;
        Ok(copy)
    }

    /// Notes of a thread by which assistant it was run.
    pub async fn note_assistant(
        &self,
        thread: ThreadId,
        graph: &str,
        assistant: Uuid,
    ) -> Result<(), Error> {
        let metadata = json!({ "graph_id": graph, "assistant_id": assistant });
        let config = json!({ "configurable": {} });
        Ok(self.kept().note_thread(thread.0, &metadata, Some(&config), clock::now()).await?)
    }
}
