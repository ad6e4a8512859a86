//! Opens a service, and waits for a database that is starting or restarting.

use std::time::Duration;

use super::output;
use perihelion_engine::clock;
use perihelion_runtime as runtime;

/// How long a service waits for its database when it starts.
const PATIENCE: Duration = Duration::from_secs(60);

/// Time between two attempts.
const WAIT: Duration = Duration::from_secs(1);

/// Opens, and retries for up to [`PATIENCE`] while the database is unreachable. Warns once, immediately.
///
/// # Errors
/// Whatever `open` returned last.
pub(super) async fn opened<T>(
    open: impl AsyncFn() -> Result<T, runtime::Error>,
) -> Result<T, runtime::Error> {
    let begun = clock::monotonic();
    let mut is_stated = false;
    loop {
        match open().await {
            Err(error) if error.is_unreachable() && begun.elapsed() < PATIENCE => {
                if !is_stated {
                    let bound = PATIENCE.as_secs();
                    output::warning(&format!("{error}; waiting up to {bound} s for the database"));
                    is_stated = true;
                }
                clock::sleep(WAIT).await;
            }
            opened => return opened,
        }
    }
}
