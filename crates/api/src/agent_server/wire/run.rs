//! Runs in the clients' format.

use serde_json::{Value, json};

use perihelion_service::kept::Run;

/// Shows a run.
pub(crate) fn shown(run: &Run) -> Value {
    json!({
        "run_id": run.id,
        "thread_id": run.thread,
        "assistant_id": run.assistant,
        "metadata": run.metadata,
        "status": run.status.as_str(),
        "kwargs": run.kwargs["shown"],
        "multitask_strategy": run.multitask.as_str(),
        "created_at": run.created_at,
        "updated_at": run.updated_at,
    })
}

/// Says why a run failed, where it did.
pub(crate) fn failure(run: &Run) -> Option<&Value> {
    run.error.as_ref()
}
