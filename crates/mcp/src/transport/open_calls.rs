//! Passes what a server asks during a call on to that call.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use parking_lot::Mutex;
use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction};

/// A call that can be asked something while it waits for its end.
pub(crate) trait Askable: Send + Sync {
    /// Answers at once: nobody is waited for.
    fn answer(&self, params: &ElicitRequestParams) -> ElicitResult;
}

/// Where the calls in flight of one session are asked.
#[derive(Default)]
pub(crate) struct OpenCalls {
    calls: Mutex<Vec<Arc<dyn Askable>>>,
    shared: AtomicBool,
}

impl OpenCalls {
    /// Takes questions for a call until the guard is dropped.
    pub fn open(self: &Arc<Self>, call: Arc<dyn Askable>) -> OpenCallGuard {
        self.calls.lock().push(Arc::clone(&call));
        OpenCallGuard { open_calls: Arc::clone(self), call }
    }

    /// Tells whether a question came that could not be told apart: from then on calls go one by one.
    pub fn goes_one_by_one(&self) -> bool {
        self.shared.load(Ordering::Relaxed)
    }

    /// Has the one call in flight answer a question; otherwise says `cancel`.
    pub fn answer(&self, params: &ElicitRequestParams) -> ElicitResult {
        let calls = self.calls.lock().clone();
        if let [call] = calls.as_slice() {
            return call.answer(params);
        }
        if !calls.is_empty() {
            tracing::warn!(
                "an MCP server asked during several calls; the question is cancelled, and calls are sent one at a time from now on"
            );
            self.shared.store(true, Ordering::Relaxed);
        }
        ElicitResult::new(ElicitationAction::Cancel)
    }
}

/// Takes a call from the open ones when it ends.
pub(crate) struct OpenCallGuard {
    open_calls: Arc<OpenCalls>,
    call: Arc<dyn Askable>,
}

impl Drop for OpenCallGuard {
    fn drop(&mut self) {
        self.open_calls.calls.lock().retain(|call| !Arc::ptr_eq(call, &self.call));
    }
}
