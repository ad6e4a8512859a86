//! Messages about runs that have no followers of their own.

use std::sync::Arc;

use async_trait::async_trait;

use super::kept::NewDelivery;
use super::{Accept, Result, Service};

/// Selects the additional followers of a run.
#[async_trait]
pub trait Followers: Send + Sync {
    /// Returns the messages about a run that is about to be stored.
    async fn of_next(&self, service: &Service, next: &Accept) -> Result<Vec<NewDelivery>>;
}

impl Service {
    /// Notifies the followers that the first registered selector returns for each run.
    pub fn tell(&self, followers: Arc<dyn Followers>) {
        let _ = self.parts.followers.set(followers);
    }

    /// Returns the messages about a run in addition to those of its request.
    pub(super) async fn deliveries_to_followers(&self, next: &Accept) -> Result<Vec<NewDelivery>> {
        match self.parts.followers.get() {
            Some(followers) => followers.of_next(self, next).await,
            None => Ok(Vec::new()),
        }
    }
}
