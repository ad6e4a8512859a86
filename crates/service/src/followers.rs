//! What is sent of runs that nobody asked to hear of as they began.

use std::sync::Arc;

use async_trait::async_trait;

use super::kept::NewDelivery;
use super::{Accept, Error, Service};

/// Says who is to be told of a run besides those whom its request names.
#[async_trait]
pub trait Followers: Send + Sync {
    /// Returns what is sent of a run that is about to be kept.
    ///
    /// # Errors
    /// Whatever the database reports.
    async fn of_next(&self, service: &Service, next: &Accept) -> Result<Vec<NewDelivery>, Error>;
}

impl Service {
    /// Has those told of each run whom the first that was named here says.
    pub fn tell(&self, followers: Arc<dyn Followers>) {
        let _ = self.parts.followers.set(followers);
    }

    /// Returns what is sent of a run besides what its request asks for.
    pub(super) async fn deliveries_to_followers(
        &self,
        next: &Accept,
    ) -> Result<Vec<NewDelivery>, Error> {
        match self.parts.followers.get() {
            Some(followers) => followers.of_next(self, next).await,
            None => Ok(Vec::new()),
        }
    }
}
