//! The owner of a thread, and the user on whose behalf a caller works on it.
//!
//! A thread always belongs to the user who created it or asked the first question in it. Memories about a user are
//! shown to runs of their threads, so only this user can run or change them.

use super::{Error, Result, Service};
use perihelion_engine::checkpoint::ThreadInfo;
use perihelion_engine::clock;
use perihelion_engine::ids::ThreadId;

impl Service {
    /// Returns the user who owns the thread, if there is one: as stored, or from a turn of the command line.
    async fn user_of(&self, thread: ThreadId) -> Result<Option<String>> {
        if let Some(user) = self.kept().thread_user(thread.0).await? {
            return Ok(Some(user));
        }
        let info = self.info(thread).await?;
        // Only the state of the supervisor graph names one.
        let Some(graph) = self.runtime().graph(&info.graph).ok().filter(|_| info.head > 0) else {
            return Ok(None);
        };
        Ok(graph.state(thread, None).await?.star().user.clone())
    }

    /// Decides on whose behalf a request changes a thread, if it names `named`.
    ///
    /// # Errors
    /// [`Error::OthersThread`]; [`Error::People`] if the caller names another user.
    pub async fn user_on(&self, thread: ThreadId, named: Option<&str>) -> Result<Option<String>> {
        let acting = self.who().acting_as(named)?;
        let may_any = self.who().may_act_as_users();
        if may_any && acting.is_none() {
            // It continues in the name that the thread has.
            return Ok(None);
        }
        match (self.user_of(thread).await?, acting) {
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

    /// Makes a copy of a thread the user's whose the thread is.
    pub(super) async fn give_copy(&self, from: ThreadId, copy: ThreadId) -> Result<()> {
        match self.user_of(from).await? {
            Some(user) => self.give(copy, &user).await,
            None => Ok(()),
        }
    }

    /// Refuses to continue with a thread whose user was disabled, no matter who asks for it.
    pub(super) async fn check_enabled(&self, thread: ThreadId) -> Result<()> {
        let Some(user) = self.kept().thread_user(thread.0).await? else { return Ok(()) };
        if self.people().is_disabled(self.tenant(), &user).await? {
            Err(Error::UserDisabled(user))
        } else {
            Ok(())
        }
    }

    /// Checks at the start of a run that its thread did not get another owner while it waited.
    pub(super) async fn check_user(&self, thread: ThreadId, user: Option<&str>) -> Result<()> {
        match self.user_of(thread).await? {
            Some(of) if Some(of.as_str()) != user => Err(Error::OthersThread),
            _ => Ok(()),
        }
    }
}
