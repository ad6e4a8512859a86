//! Why no thread could be found.

use perihelion_engine::checkpoint;

/// Why the dispatcher could not look or listen.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Store(#[from] checkpoint::Error),
    /// The queue in the database refused; threads are still found by looking.
    #[error(
        "the queue in the database failed: {0}; the user needs the right to make and use the schema graphile_worker"
    )]
    Queue(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    pub(super) fn queue(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Queue(Box::new(error))
    }
}
