//! Threads for clients: the engine's row with the rows next to it.

use std::sync::Arc;

use futures::{StreamExt as _, TryStreamExt as _};
use serde_json::{Value, json};
use uuid::Uuid;

use super::ends::failed;
use super::kept::{Listed, RunFilter, ThreadFilter, ThreadMeta, ThreadOrder};
use super::{Error, Result, Service};
use perihelion_engine::checkpoint::{self, RunStatus, ThreadInfo, ThreadStatus};
use perihelion_engine::clock;
use perihelion_engine::ids::ThreadId;
use perihelion_runtime::{self as runtime, InterruptView, Removal, ThreadState};
use perihelion_star::Artifact;

const READ_AT_ONCE: usize = 8;

/// Threads that are listed at a time for their deletion.
const DELETED_AT_ONCE: u32 = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientStatus {
    Idle,
    Busy,
    /// It waits for a person, or its last run was stopped before its end.
    Interrupted,
    Error,
}

/// The threads of a list whose states are read: a state is as large as all that was said in its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatesOf {
    All,
    /// Those without a title, which is then their first message.
    Untitled,
    None,
}

impl StatesOf {
    /// Leaves an archived thread where it is: a list does not open threads.
    pub(super) fn of_listed(self, info: &ThreadInfo) -> Self {
        if info.archived.is_some() { Self::None } else { self }
    }
}

#[derive(Clone, Debug)]
pub struct ThreadView {
    pub info: ThreadInfo,
    pub status: ClientStatus,
    pub meta: ThreadMeta,
    /// The newest state; `None` before the first input.
    pub state: Option<ThreadState>,
    pub open: Vec<InterruptView>,
    /// The task of the next step that asks each of `open`.
    pub asking: Vec<u32>,
    /// Whether its last run was stopped before its end.
    pub was_stopped: bool,
    /// Why its last run failed, as its clients are shown it.
    pub failure: Option<Value>,
}

impl Service {
    /// Creates a thread and stores the client's metadata; returns the thread.
    ///
    /// # Errors
    /// [`Error::Runtime`] if the ID exists; [`Error::UnknownThread`] if it exists in another tenant.
    pub async fn create_thread(&self, thread: ThreadId, metadata: &Value) -> Result<ThreadView> {
        let metadata = metadata.clone();
        let created = self.to_its_end(move |service| async move {
            service.create_with_owner(thread, metadata).await
        });
        let (info, meta) = created.await?;
        self.view(info, meta, false, StatesOf::All).await
    }

    async fn create_with_owner(
        &self,
        thread: ThreadId,
        metadata: Value,
    ) -> Result<(ThreadInfo, ThreadMeta)> {
        let title = metadata.get("title").and_then(Value::as_str).map(str::to_owned);
        let made = self.graph_noted(&metadata).create(self.tenant(), thread, title).await;
        let info = self.unless_hidden(thread, made).await?;
        let noted = async {
            let mut meta = ThreadMeta::default();
            if metadata.as_object().is_some_and(|fields| !fields.is_empty()) {
                let now = clock::now();
                self.kept().note_thread(thread.0, &metadata, None, now).await?;
                meta = ThreadMeta { metadata, updated_at: Some(now), ..meta };
            }
            if let Some(user) = self.who().person() {
                self.give(thread, user).await?;
            }
            Ok::<_, Error>(meta)
        };
        let noted = noted.await;
        if noted.as_ref().is_err_and(|error| !matches!(error, Error::OthersThread)) {
            self.runtime().threads().remove(&info, Removal::AtRest).await?;
        }
        Ok((info, noted?))
    }

    /// Makes a change in a separate task, which finishes even if the caller's future is dropped; a stop waits for it.
    ///
    /// A new thread without its owner would be anyone's.
    pub(super) async fn to_its_end<T, F>(&self, change: impl FnOnce(Self) -> F) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        runtime::to_its_end(self.parts.tasks.track_future(change(self.clone()))).await
    }

    /// Turns the error for an ID of another tenant into the error for an unknown ID.
    pub(super) async fn unless_hidden<T>(
        &self,
        thread: ThreadId,
        made: Result<T, runtime::Error>,
    ) -> Result<T> {
        use checkpoint::Error::ThreadExists;
        match made {
            Err(runtime::Error::Store(ThreadExists(_))) => {
                self.info(thread).await?;
                Err(checkpoint::Error::ThreadExists(thread).into())
            }
            other => Ok(other?),
        }
    }

    /// Finds the thread of a turn, or creates it if the limits permit it: a refused turn leaves no thread. Returns
    /// whether it is new.
    ///
    /// # Errors
    /// [`Error::TooMuch`], and as [`Service::create_thread`].
    pub async fn thread_for_turn(
        &self,
        named: Option<ThreadId>,
        metadata: &Value,
    ) -> Result<(ThreadId, bool)> {
        let thread = named.unwrap_or_default();
        if named.is_some() && self.known(thread).await?.is_some() {
            return Ok((thread, false));
        }
        self.check_room().await?;
        match self.create_thread(thread, metadata).await {
            // Another request has created it since.
            Err(error) if error.is_of_existing_thread() => Ok((thread, false)),
            created => created.map(|_| (thread, true)),
        }
    }

    /// Returns a thread's row.
    ///
    /// # Errors
    /// [`Error::UnknownThread`], also for one of another graph's or tenant's.
    pub async fn info(&self, thread: ThreadId) -> Result<ThreadInfo> {
        self.known(thread).await?.ok_or(Error::UnknownThread(thread))
    }

    /// Returns a thread's row as [`Service::info`] does; `None` for an unknown one.
    pub async fn known(&self, thread: ThreadId) -> Result<Option<ThreadInfo>> {
        match self.runtime().store().info(thread).await {
            Ok(info) if info.root.is_none() && info.tenant == self.tenant() => Ok(Some(info)),
            Ok(_) | Err(checkpoint::Error::UnknownThread(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    pub async fn thread(&self, thread: ThreadId) -> Result<ThreadView> {
        self.thread_of(self.info(thread).await?).await
    }

    /// Returns a thread whose row was read, with its state and its open questions.
    pub(super) async fn thread_of(&self, info: ThreadInfo) -> Result<ThreadView> {
        let thread = info.id.0;
        let meta = self.kept().thread_meta(thread).await?;
        let is_busy = matches!(info.status, ThreadStatus::Busy | ThreadStatus::Queued);
        let has_open_run = is_busy || !self.kept().open_runs(thread).await?.is_empty();
        self.view(info, meta, has_open_run, StatesOf::All).await
    }

    /// Returns the whole of a large value that a thread keeps.
    ///
    /// # Errors
    /// [`Error::Runtime`] if the store no longer has it, or has an altered one.
    pub async fn artifact(
        &self,
        thread: ThreadId,
        key: &str,
        artifact: &Artifact,
    ) -> Result<Arc<str>> {
        let store = self.runtime().store().as_ref();
        Ok(artifact.whole(store, thread, key).await?)
    }

    /// Finds threads, and their total number; their states are read as far as they are shown.
    pub async fn find_threads(
        &self,
        filter: &ThreadFilter,
        states: StatesOf,
    ) -> Result<(Vec<ThreadView>, u64)> {
        let (listed, total) = self.kept().threads(filter).await?;
        let views = futures::stream::iter(listed).map(|one| self.listed(one, states));
        let views: Vec<Option<ThreadView>> = views.buffered(READ_AT_ONCE).try_collect().await?;
        Ok((views.into_iter().flatten().collect(), total))
    }

    /// Reads a thread that was found; `None` when it was deleted at this moment.
    async fn listed(&self, one: Listed, states: StatesOf) -> Result<Option<ThreadView>> {
        let Some(info) = self.known(ThreadId(one.id)).await? else { return Ok(None) };
        let states = states.of_listed(&info);
        self.view(info, one.meta, one.has_open_run, states).await.map(Some)
    }

    pub(super) async fn view(
        &self,
        info: ThreadInfo,
        meta: ThreadMeta,
        has_open_run: bool,
        states: StatesOf,
    ) -> Result<ThreadView> {
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
        let (open, asking) = match info.status {
            ThreadStatus::Idle => (Vec::new(), Vec::new()),
            _ => self.open_questions(&info).await?,
        };
        let failure = match status {
            ClientStatus::Error => self.failure(&info).await?,
            _ => None,
        };
        let state = None;
        let mut view = ThreadView { info, status, meta, state, open, asking, was_stopped, failure };
        let is_shown = match states {
            StatesOf::All => true,
            StatesOf::Untitled => view.title().is_none(),
            StatesOf::None => false,
        };
        if is_shown {
            view.state = self.newest_state(&view.info).await?;
        }
        Ok(view)
    }

    /// Returns why the last run of a failed thread failed: as its run has it, or by the text of the thread.
    async fn failure(&self, info: &ThreadInfo) -> Result<Option<Value>> {
        let Some(text) = info.shown_error() else { return Ok(None) };
        let newest = RunFilter { status: None, limit: 1, offset: 0 };
        let found = self.kept().runs(info.id.0, &newest).await?.pop().and_then(|run| run.error);
        // A command line may have run the thread since.
        let is_same = |why: &Value| why["message"].as_str().is_some_and(|why| text.ends_with(why));
        Ok(Some(found.filter(is_same).unwrap_or_else(|| failed(Some(&text)))))
    }

    pub async fn open_questions(
        &self,
        info: &ThreadInfo,
    ) -> Result<(Vec<InterruptView>, Vec<u32>)> {
        let view = self.runtime().threads().view(info.id).await?;
        Ok((view.open, view.asking))
    }

    pub async fn delete_thread(&self, thread: ThreadId) -> Result<()> {
        self.remove_thread(&self.info_to_change(thread).await?).await
    }

    /// Passes on whether a run was accepted; if not, deletes the thread that was made for it.
    pub async fn unless_refused<T, E>(
        &self,
        made: Option<ThreadId>,
        accepted: Result<T, E>,
    ) -> Result<T, E> {
        if let Some(thread) = made.filter(|_| accepted.is_err())
            && let Err(error) = self.delete_unused(thread).await
        {
            tracing::warn!(%thread, %error, "failed to delete the thread of a refused run");
        }
        accepted
    }

    /// Deletes a thread without runs: a client that names its threads can have begun another run in it.
    async fn delete_unused(&self, thread: ThreadId) -> Result<()> {
        let info = self.info_to_change(thread).await?;
        let any = RunFilter { status: None, limit: 1, offset: 0 };
        if self.kept().runs(thread.0, &any).await?.is_empty() {
            self.runtime().threads().remove(&info, Removal::AtRest).await?;
        }
        Ok(())
    }

    /// Deletes the threads that an assistant ran last, except those of other users.
    pub async fn delete_threads_of(&self, assistant: Uuid) -> Result<()> {
        let mut filter = ThreadFilter {
            metadata: json!({ "assistant_id": assistant }),
            order: ThreadOrder::Id,
            ascending: true,
            limit: DELETED_AT_ONCE,
            ..ThreadFilter::default()
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
    pub(super) async fn remove_thread(&self, info: &ThreadInfo) -> Result<()> {
        for run in self.kept().open_runs(info.id.0).await? {
            self.stop_driving(run.id);
        }
        Ok(self.runtime().threads().remove(info, Removal::Forced).await?)
    }

    /// Forgets the steps of a thread before its newest one.
    pub async fn shorten_thread(&self, thread: ThreadId) -> Result<()> {
        self.info_to_change(thread).await?;
        self.runtime().graph_of(thread).await?.compact(thread, 1).await?;
        Ok(())
    }

    /// Copies a thread: the copy shares its steps, and the IDs of their checkpoints.
    pub async fn copy_thread(&self, thread: ThreadId) -> Result<ThreadId> {
        self.to_its_end(move |service| async move { service.copy_with_owner(thread).await }).await
    }

    async fn copy_with_owner(&self, thread: ThreadId) -> Result<ThreadId> {
        let info = self.info(thread).await?;
        let mut meta = self.kept().thread_meta(thread.0).await?;
        meta.origins.push((thread.0, info.head));
        let copy = ThreadId::new();
        let graph = self.runtime().graph(&info.graph).ok().map(AsRef::as_ref);
        let title = info.title.clone();
        let fork = self.runtime().threads().fork(thread, info.head, copy, title, graph).await?;
        let noted = async {
            self.kept().note_copy(copy.0, &meta, clock::now()).await?;
            if let Some(user) = self.user_of(thread, &self.target(thread).await?).await? {
                self.give(copy, &user).await?;
            }
            if let Some(graph) = graph {
                graph.ask("copy", json!({ "thread": copy })).await?;
            }
            Ok::<_, Error>(())
        };
        if let Err(error) = noted.await {
            self.remove_thread(&fork).await?;
            return Err(error);
        }
        Ok(copy)
    }
}
