//! What a webhook is told of a run that has ended.

use serde_json::{Value, json};

use super::{wait, wire};
use perihelion_engine::clock;
use perihelion_service::Service;
use perihelion_service::kept::Run;

/// Shows a run that has ended, with the state that it left.
///
/// # Errors
/// Why the state could not be read for now.
pub(crate) async fn called(service: &Service, run: &Run) -> Result<Value, String> {
    let mut shown = wire::shown_run(run);
    let values = wait::values_after(service, run).await;
    shown["values"] = values.map_err(|refusal| refusal.1)?;
    shown["run_started_at"] = json!(run.created_at);
    shown["run_ended_at"] = json!(run.updated_at);
    shown["webhook_sent_at"] = json!(clock::now());
    if let Some(why) = &run.error {
        shown["error"] = why.clone();
    }
    Ok(shown)
}
