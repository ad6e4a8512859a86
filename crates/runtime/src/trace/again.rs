//! A recorded model call, asked again with another prompt.

use serde::Serialize;

use super::Error;
use crate::Runtime;
use perihelion_engine::clock;
use perihelion_engine::ids::ThreadId;
use perihelion_llm::{ChatMessage, MessageRole, ToolCall, Usage};
use perihelion_settings::config::Price;
use perihelion_telemetry::About;

/// A model's answer to a recorded request with another prompt.
#[derive(Clone, Debug, Serialize)]
pub struct AnswerAgain {
    pub output: String,
    pub calls: Vec<ToolCall>,
    pub model: String,
    pub usage: Usage,
    /// Billionths of a US dollar, if the price is known.
    pub nano_usd: Option<u64>,
    pub latency_ms: u64,
}

impl Runtime {
    /// Sends the request of a recorded model call again with another system prompt, and stores nothing.
    ///
    /// The rest is as recorded: messages, tools and the form of the answer. `None` if the trace has no such call.
    pub async fn ask_again(
        &self,
        thread: ThreadId,
        run: Option<u32>,
        call: &str,
        prompt: String,
    ) -> Result<Option<AnswerAgain>, Error> {
        let trace = self.traces().read(thread, run).await?;
        let found = trace.spans.into_iter().find(|span| span.span_id.to_string() == call);
        let Some(About::Chat { input: Some(mut request), .. }) = found.map(|span| span.about)
        else {
            return Ok(None);
        };
        request.messages.retain(|message| message.role != MessageRole::System);
        request.messages.insert(0, ChatMessage::system(prompt));
        let started = clock::now();
        let answer = self.model().chat(&request, None).await?;
        let price = self.settings().models.price_list().of(request.role.as_str(), &answer.model);
        let usage = answer.usage;
        let cost = |price: Price| {
            price.nano_usd(usage.input_tokens, usage.cached_tokens, usage.output_tokens)
        };
        Ok(Some(AnswerAgain {
            output: answer.content,
            calls: answer.tool_calls,
            model: answer.model,
            usage,
            nano_usd: price.map(cost),
            latency_ms: (clock::now() - started).num_milliseconds().unsigned_abs(),
        }))
    }
}
