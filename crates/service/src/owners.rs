//! Which graph and which user a thread belongs to, read once for a request with all else that its run depends on.
//!
//! A thread always belongs to the user who created it or asked the first question in it. Memories about a user are
//! shown to runs of their threads, so only this user can run or change them.

use super::kept::RunTarget;
use super::{Error, Result, Service};
use perihelion_engine::checkpoint::ThreadInfo;
use perihelion_engine::clock;
use perihelion_engine::ids::ThreadId;
use perihelion_people::normal_name;
use perihelion_runtime::Served;
use serde_json::{Value, json};
use std::sync::Arc;
use uuid::Uuid;

impl Service {
    /// Reads what is known of a thread of the tenant when a run is accepted for it.
    pub(super) async fn target(&self, thread: ThreadId) -> Result<RunTarget> {
        self.kept().run_target(thread.0).await?.ok_or(Error::UnknownThread(thread))
    }

    /// Returns the graph in the metadata of a thread or a run; the supervisor graph by default.
    pub fn graph_noted(&self, metadata: &Value) -> &Arc<dyn Served> {
        self.runtime().graph_for(metadata["graph_id"].as_str().unwrap_or_default())
    }

    /// Assigns a new thread to a graph, by default to the one that its run is noted to be of; a thread that has run keeps
    /// its graph, unless both are hosted: a run of the other one takes it over when it begins.
    ///
    /// # Errors
    /// [`Error::OtherGraph`]; [`Error::Runtime`] for a graph that this program does not have.
    pub(super) async fn fit(
        &self,
        thread: ThreadId,
        target: &RunTarget,
        graph: Option<&str>,
        noted: &str,
    ) -> Result<()> {
        let graph = graph.unwrap_or(if target.head == 0 { noted } else { &target.graph });
        let is_hosted = self.runtime().graph(graph)?.about().is_hosted;
        let was_hosted =
            || self.runtime().graph(&target.graph).is_ok_and(|own| own.about().is_hosted);
        if target.graph == graph
            || self.kept().give_to_graph(thread.0, graph, 0).await?
            || is_hosted && was_hosted()
        {
            return Ok(());
        }
        Err(Error::OtherGraph { thread, graph: target.graph.clone() })
    }

    /// Stores the graph and the assistant of a thread in its metadata.
    pub async fn note_assistant(
        &self,
        thread: ThreadId,
        graph: &str,
        assistant: Uuid,
    ) -> Result<()> {
        let metadata = json!({ "graph_id": graph, "assistant_id": assistant });
        let config = json!({ "configurable": {} });
        Ok(self.kept().note_thread(thread.0, &metadata, Some(&config), clock::now()).await?)
    }

    /// Returns the user who owns the thread, if there is one: as stored, or from a turn of the command line.
    pub(super) async fn user_of(
        &self,
        thread: ThreadId,
        target: &RunTarget,
    ) -> Result<Option<String>> {
        if target.user.is_some() {
            return Ok(target.user.clone());
        }
        // Only the state of the supervisor graph names one.
        let Some(graph) = self.runtime().graph(&target.graph).ok().filter(|_| target.head > 0)
        else {
            return Ok(None);
        };
        Ok(graph.state(thread, None).await?.star().user.clone())
    }

    /// Decides on whose behalf a request changes a thread, if it names `named`.
    ///
    /// # Errors
    /// [`Error::OthersThread`]; [`Error::People`] if the caller names another user.
    pub async fn user_on(&self, thread: ThreadId, named: Option<&str>) -> Result<Option<String>> {
        if self.continues_in_any_name(named)? {
            return Ok(None);
        }
        self.user_to_change(thread, &self.target(thread).await?, named).await
    }

    /// Returns whether a request continues a thread in the name that the thread has.
    fn continues_in_any_name(&self, named: Option<&str>) -> Result<bool> {
        Ok(self.who().may_act_as_users() && self.who().acting_as(named)?.is_none())
    }

    /// Decides on whose behalf a request changes a thread, as [`Service::user_on`] does.
    pub(super) async fn user_to_change(
        &self,
        thread: ThreadId,
        target: &RunTarget,
        named: Option<&str>,
    ) -> Result<Option<String>> {
        if self.continues_in_any_name(named)? {
            return Ok(None);
        }
        let acting = self.who().acting_as(named)?;
        match (self.user_of(thread, target).await?, acting) {
            (None, acting) => Ok(acting),
            (Some(of), Some(acting)) if of == acting => Ok(Some(of)),
            (Some(_), _) => Err(Error::OthersThread),
        }
    }

    /// Finds a thread for who is to change it.
    ///
    /// # Errors
    /// [`Error::UnknownThread`]; [`Error::OthersThread`] if it belongs to another user, whose threads the caller can
    /// only view.
    pub async fn info_to_change(&self, thread: ThreadId) -> Result<ThreadInfo> {
        let info = self.info(thread).await?;
        self.user_on(thread, None).await?;
        Ok(info)
    }

    /// Makes a user the permanent owner of a thread.
    pub(super) async fn give(&self, thread: ThreadId, user: &str) -> Result<()> {
        let owner = self.kept().give_thread(thread.0, user, clock::now()).await?;
        if owner.is_none_or(|owner| owner == user) { Ok(()) } else { Err(Error::OthersThread) }
    }

    /// Refuses to continue with a thread whose user was disabled, no matter who asks for it.
    pub(super) async fn check_enabled(&self, thread: ThreadId) -> Result<()> {
        self.check_owner(&self.target(thread).await?, None).await
    }

    /// Refuses a run of a thread whose user was disabled; `user` is the one who owns it from this run on.
    pub(super) async fn check_owner(&self, target: &RunTarget, user: Option<&str>) -> Result<()> {
        let Some(owner) = target.user.as_deref().or(user) else { return Ok(()) };
        // What was read with the thread is about a user of exactly this name.
        let is_known = target.user.is_some() && normal_name(owner) == owner;
        let is_disabled = if is_known {
            target.is_disabled
        } else {
            self.people().is_disabled(self.tenant(), owner).await?
        };
        if is_disabled { Err(Error::UserDisabled(owner.to_owned())) } else { Ok(()) }
    }

    /// Checks at the start of a run that its thread did not get another owner while it waited.
    pub(super) async fn check_user(&self, thread: ThreadId, user: Option<&str>) -> Result<()> {
        match self.user_of(thread, &self.target(thread).await?).await? {
            Some(of) if Some(of.as_str()) != user => Err(Error::OthersThread),
            _ => Ok(()),
        }
    }
}
