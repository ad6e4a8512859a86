//! The prices of models, for budgets in money.

use std::collections::BTreeMap;

use serde::Deserialize;

/// A model's price in USD per million tokens; a table `[models.prices."<model name>"]`.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    pub input_per_mtok: f64,
    pub output_per_mtok: f64,
    /// Of cached input; by default as other input.
    pub cached_per_mtok: Option<f64>,
}

/// Returns US dollars in billionths.
pub fn nano_usd(usd: f64) -> u64 {
    // A float to an integer saturates.
    (usd * 1e9) as u64
}

impl Price {
    /// Returns the cost of tokens, in billionths of a US dollar, rounded up; cached ones are a part of the input.
    pub fn nano_usd(&self, input_tokens: u64, cached_tokens: u64, output_tokens: u64) -> u64 {
        // USD per million tokens is a thousand billionths per token; a float to an integer saturates.
        let cost = |tokens: u64, price: f64| tokens as f64 * price * 1_000.0;
        let cached = cached_tokens.min(input_tokens);
        let of_cached = self.cached_per_mtok.unwrap_or(self.input_per_mtok);
        let input = cost(input_tokens - cached, self.input_per_mtok) + cost(cached, of_cached);
        (input + cost(output_tokens, self.output_per_mtok)).ceil() as u64
    }
}

#[derive(Clone, Debug, Default)]
pub struct Prices {
    pub(super) models: BTreeMap<String, Price>,
    pub(super) roles: BTreeMap<String, String>,
}

impl Prices {
    /// Returns the price of a call: that of the model that answered, otherwise of the role's model.
    ///
    /// Endpoints often answer under a longer name than the one they were asked by: the longest name that it begins with
    /// counts.
    pub fn of(&self, role: &str, answered_by: &str) -> Option<Price> {
        let longer = || {
            let named = self.models.iter().filter(|(name, _)| answered_by.starts_with(*name));
            named.max_by_key(|(name, _)| name.len()).map(|(_, price)| price)
        };
        let asked = || self.models.get(self.roles.get(role)?);
        self.models.get(answered_by).or_else(longer).or_else(asked).copied()
    }
}

/// Returns the first key of the table in the file with an invalid price, and the price.
pub(super) fn unusable(prices: &BTreeMap<String, Price>) -> Option<(String, f64)> {
    let values = prices.iter().flat_map(|(model, price)| {
        let cached = price.cached_per_mtok.unwrap_or_default();
        [
            (model, "input_per_mtok", price.input_per_mtok),
            (model, "output_per_mtok", price.output_per_mtok),
            (model, "cached_per_mtok", cached),
        ]
    });
    let mut wrong = values.filter(|(.., value)| !value.is_finite() || *value < 0.0);
    wrong.next().map(|(model, key, value)| (format!("models.prices.{model:?}.{key}"), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_costs_by_the_model_that_answered_or_else_by_the_one_asked() {
        let price = |input, output| Price {
            input_per_mtok: input,
            output_per_mtok: output,
            cached_per_mtok: None,
        };
        let prices = Prices {
            models: BTreeMap::from([
                ("big".into(), price(2.0, 8.0)),
                ("other".into(), price(0.01, 0.0)),
            ]),
            roles: BTreeMap::from([("qa".into(), "big".into())]),
        };
        assert_eq!(
            prices.of("qa", "big-2025-04-14").unwrap().nano_usd(1_000_000, 0, 500_000),
            6_000_000_000
        );
        let kept = Price { cached_per_mtok: Some(0.5), ..price(2.0, 8.0) };
        assert_eq!(kept.nano_usd(1_000_000, 400_000, 0), 1_400_000_000);
        assert_eq!(price(2.0, 8.0).nano_usd(1_000_000, 400_000, 0), 2_000_000_000);
        assert_eq!(prices.of("qa", "other").unwrap().nano_usd(1, 0, 1), 10);
        assert_eq!(prices.of("agent", "unheard-of"), None);
    }
}
