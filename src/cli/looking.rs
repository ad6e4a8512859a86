//! Shows the progress of server discovery if it takes long.

use std::convert::Infallible;
use std::time::Duration;

use tokio::sync::watch;

use super::output::note;
use perihelion_engine::clock;
use perihelion_runtime::Looked;

/// Time without output, before the first line and between lines.
const SILENCE: Duration = Duration::from_secs(2);

/// Awaits what looks at servers; unless it is to be `quiet`, says every two seconds how many are known if that changed.
pub(super) async fn shown<T>(
    quiet: bool,
    looking: impl AsyncFnOnce(&watch::Sender<Looked>) -> T,
) -> T {
    let looks = watch::Sender::default();
    let seen = looks.subscribe();
    tokio::select! {
        biased;
        found = looking(&looks) => found,
        never = tell(quiet, seen) => match never {},
    }
}

async fn tell(quiet: bool, mut seen: watch::Receiver<Looked>) -> Infallible {
    loop {
        clock::sleep(SILENCE).await;
        if !seen.has_changed().unwrap_or(false) {
            continue;
        }
        let Looked { done, all } = *seen.borrow_and_update();
        if done < all && !quiet {
            note(&format!("discovering MCP servers: {done} of {all}"));
        }
    }
}
