//! Makes threads of other tenants than the runner's own.

use super::outcome::Error;
use super::run::Runner;
use crate::checkpoint::{NewThread, ThreadInfo};
use crate::failpoint::{Point, wrap};
use crate::graph::State;
use crate::ids::ThreadId;

impl<S: State> Runner<S> {
    /// Makes a thread of a named tenant that has not run yet.
    ///
    /// # Errors
    /// As [`Threads::create`](crate::checkpoint::Threads::create).
    pub async fn create_for(
        &self,
        tenant: &str,
        thread: ThreadId,
        title: Option<String>,
    ) -> Result<ThreadInfo, Error> {
        let new = NewThread { tenant: tenant.to_owned(), ..self.new_thread(thread, title) };
        Ok(wrap(Point::ThreadCreate, self.store().create(new)).await?)
    }
}
