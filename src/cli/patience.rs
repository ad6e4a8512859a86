//! Opens what a service needs, and waits for a database that is away for a moment: one that restarts, or starts with it.

use std::time::Duration;

use super::output;
use perihelion_engine::clock;
use perihelion_runtime as runtime;

/// How long a database may be away when a service starts; then its supervisor starts it again, or tells somebody.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long it is until the next try.
const WAIT: Duration = Duration::from_secs(1);

/// Opens, again and again while the database cannot be reached, for as long as [`PATIENCE`]; the reason is said at once.
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
                    output::warning(&format!("{error}; waiting for it, up to {bound} s"));
                    is_stated = true;
                }
                clock::sleep(WAIT).await;
            }
            opened => return opened,
        }
    }
}
