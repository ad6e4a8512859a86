//! A model whose calls are counted, with those whose answers were of no use.

use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;

use super::Runtime;
use perihelion_llm::{ChatModel, ChatRequest, ChatResponse, Error, TokenSink};
use perihelion_settings::config::Prices;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModelCost {
    pub calls: u64,
    /// Input and output together.
    pub tokens: u64,
    /// Billionths of a US dollar, as far as the prices are known.
    pub nano_usd: u64,
}

pub struct Metered {
    model: Arc<dyn ChatModel>,
    prices: Prices,
    cost: Mutex<ModelCost>,
}

impl Metered {
    pub(super) fn new(model: Arc<dyn ChatModel>, prices: Prices) -> Self {
        Self { model, prices, cost: Mutex::default() }
    }

    /// Returns what the calls since the last one of this took.
    pub fn take(&self) -> ModelCost {
        std::mem::take(&mut *self.cost.lock())
    }
}

#[async_trait]
impl ChatModel for Metered {
    async fn chat(
        &self,
        request: &ChatRequest,
        sink: Option<TokenSink<'_>>,
    ) -> Result<ChatResponse, Error> {
        let response = self.model.chat(request, sink).await?;
        let usage = response.usage;
        let price = self.prices.of(request.role.as_str(), &response.model);
        let mut cost = self.cost.lock();
        cost.calls += 1;
        cost.tokens += usage.total();
        cost.nano_usd += price.map_or(0, |price| {
            price.nano_usd(usage.input_tokens, usage.cached_tokens, usage.output_tokens)
        });
        Ok(response)
    }
}

impl Runtime {
    /// Returns the model of the settings with a count of its calls from here on.
    pub fn metered_model(&self) -> Metered {
        Metered::new(Arc::clone(self.model()), self.settings().models.price_list())
    }
}
