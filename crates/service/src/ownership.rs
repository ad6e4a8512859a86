//! Whose thread it is, and in whose name somebody works on it.
//!
//! A thread is the user's who made it, or who first asked something in it, and stays theirs: what is remembered of a
//! user is shown to runs of their threads, so nobody else runs or changes these.

use super::{Error, Service};
use perihelion_engine::checkpoint::ThreadInfo;
use perihelion_engine::clock;
use perihelion_engine::ids::ThreadId;
use perihelion_star::GRAPH;

impl Service {
    /// Returns the user whose thread it is, if anybody's: as noted, or as a turn of the command line's says.
    async fn user_of(&self, thread: ThreadId) -> Result<Option<String>, Error> {
        if let Some(user) = self.kept().thread_user(thread.0).await? {
            return Ok(Some(user));
        }
        let info = self.info(thread).await?;
        if info.head == 0 || info.graph != GRAPH {
            return Ok(None);
        }
        Ok(self.runtime().threads().state(thread, None).await?.state.user.clone())
    }

    /// Decides in whose name something is done on a thread, where the request names `named`.
    ///
    /// # Errors
    /// [`Error::OthersThread`]; [`Error::People`] where somebody names a user whom they are not.
    pub async fn user_on(
        &self,
        thread: ThreadId,
        named: Option<&str>,
    ) -> Result<Option<String>, Error> {
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
    /// [`Error::UnknownThread`]; [`Error::OthersThread`] where it is another user's, who may only look at it.
    pub async fn info_to_change(&self, thread: ThreadId) -> Result<ThreadInfo, Error> {
        let info = self.info(thread).await?;
        self.user_on(thread, None).await?;
        Ok(info)
    }

    /// Makes a thread a user's, for good.
    ///
    /// # Errors
    /// [`Error::OthersThread`] when it is another user's already.
    pub(super) async fn give(&self, thread: ThreadId, user: &str) -> Result<(), Error> {
        let owner = self.kept().give_thread(thread.0, user, clock::now()).await?;
        if owner.is_none_or(|owner| owner == user) { Ok(()) } else { Err(Error::OthersThread) }
    }

    /// Makes a copy of a thread the user's whose the thread is.
    pub(super) async fn give_copy(&self, from: ThreadId, copy: ThreadId) -> Result<(), Error> {
        match self.user_of(from).await? {
            Some(user) => self.give(copy, &user).await,
            None => Ok(()),
        }
    }

    /// Refuses to continue with a thread whose user was disabled, no matter who asks for it.
    ///
    /// # Errors
    /// [`Error::UserDisabled`].
    pub(super) async fn check_enabled(&self, thread: ThreadId) -> Result<(), Error> {
        let Some(user) = self.kept().thread_user(thread.0).await? else { return Ok(()) };
        if self.people().is_disabled(self.tenant(), &user).await? {
            Err(Error::UserDisabled(user))
        } else {
            Ok(())
        }
    }

    /// Checks once more, where a run begins, that its thread did not become another user's while it waited.
    pub(super) async fn check_user(
        &self,
        thread: ThreadId,
        user: Option<&str>,
    ) -> Result<(), Error> {
        match self.user_of(thread).await? {
            Some(of) if Some(of.as_str()) != user => Err(Error::OthersThread),
            _ => Ok(()),
        }
    }
}
