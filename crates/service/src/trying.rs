//! Recorded model calls, asked again with another prompt; their usage counts for the tenant's day.

use perihelion_people::{EndedRun, Taken};
use uuid::Uuid;

use super::{Result, Service};
use perihelion_engine::clock;
use perihelion_engine::ids::ThreadId;
use perihelion_runtime::AnswerAgain;

impl Service {
    /// Asks a recorded model call again with another system prompt; `None` if the trace has no such call.
    ///
    /// # Errors
    /// [`Error::DaySpent`](crate::Error::DaySpent), [`Error::Runtime`](crate::Error::Runtime).
    pub async fn ask_again(
        &self,
        thread: ThreadId,
        run: Option<u32>,
        call: &str,
        prompt: String,
    ) -> Result<Option<AnswerAgain>> {
        self.info(thread).await?;
        self.check_day().await?;
        let answer = self.runtime().ask_again(thread, run, call, prompt).await?;
        if let Some(AnswerAgain { usage, nano_usd, latency_ms, .. }) = &answer {
            // The call belongs to no run, so it is counted like a run on a separate thread.
            let tenant = self.tenant().to_owned();
            let thread = Uuid::new_v4();
            let run = EndedRun { tenant, thread, part: 0, run: Uuid::new_v4(), at: clock::now() };
            let taken = Taken {
                tokens: usage.total(),
                nano_usd: nano_usd.unwrap_or_default(),
                millis: *latency_ms,
                ..Taken::default()
            };
            self.people().note_taken(&run, taken).await?;
        }
        Ok(answer)
    }
}
