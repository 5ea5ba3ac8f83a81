//! Prices of models.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Serialize};
use wattle_machine::{Dollars, Usage};

/// A model's prices, in US dollars per million tokens, and the size of its context window.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Price of prompt tokens.
    pub prompt: f64,
    /// Price of completion tokens.
    pub completion: f64,
    /// Price of cached prompt tokens; the same as `prompt` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<f64>,
    /// Size of the context window, in tokens. Unknown if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
}

/// Prices, keyed by model name. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prices(Arc<BTreeMap<String, Price>>);

impl Prices {
    /// Creates a price table that takes precedence over the built-in prices.
    ///
    /// # Errors
    /// If an amount is not a valid price. The error names the model.
    pub fn new(prices: BTreeMap<String, Price>) -> Result<Self, String> {
        let is_price = |amount: f64| (0.0..=1e6).contains(&amount);
        for (model, Price { prompt, completion, cached, .. }) in &prices {
            if ![*prompt, *completion, cached.unwrap_or_default()].into_iter().all(is_price) {
                return Err(format!(
                    "the prices of `{model}` are not all from 0 to 1,000,000 dollars per million \
                     tokens"
                ));
            }
        }
        Ok(Self(Arc::new(prices)))
    }

    /// Returns the configured prices, keyed by model name.
    pub fn set(&self) -> &BTreeMap<String, Price> {
        &self.0
    }

    /// Returns the size of the model's context window, in tokens, or `None` if it is unknown.
    /// ```
    /// use wattle_model::Prices;
    ///
    /// assert_eq!(Prices::default().window("openai/gpt-4o"), Some(128_000));
    /// assert_eq!(Prices::default().window("a-model-of-mine"), None);
    /// ```
    #[must_use]
    pub fn window(&self, model: &str) -> Option<u64> {
        let of = |prices| find(prices, model)?.window;
        of(&self.0).or_else(|| of(&BUILT_IN))
    }

    /// Returns `usage` with its cost. A cost that the provider reported is kept. If the model's
    /// price is unknown, no cost is added.
    /// ```
    /// use wattle_model::Prices;
    /// use wattle_machine::Usage;
    ///
    /// let usage = Usage { prompt: 1_000_000, cached: 500_000, ..Usage::default() };
    /// let cost = |model: &str| {
    ///     Prices::default().priced(model, usage).cost.map(|cost| cost.to_string())
    /// };
    /// assert_eq!(cost("openai/gpt-4o-mini-2024-07-18").as_deref(), Some("$0.1125"));
    /// assert_eq!(cost("a-model-of-mine"), None);
    /// ```
    #[must_use]
    pub fn priced(&self, model: &str, usage: Usage) -> Usage {
        let known = || find(&self.0, model).or_else(|| find(&BUILT_IN, model));
        let cost = usage.cost.or_else(|| cost(known()?, usage));
        Usage { cost, ..usage }
    }
}

/// The built-in prices.
// The file is compiled in, and a test checks that it can be parsed.
static BUILT_IN: LazyLock<BTreeMap<String, Price>> = LazyLock::new(|| {
    #[derive(Deserialize)]
    struct File {
        prices: BTreeMap<String, Price>,
    }
    toml::from_str(include_str!("prices.toml")).map(|file: File| file.prices).unwrap_or_default()
});

fn find(prices: &BTreeMap<String, Price>, model: &str) -> Option<Price> {
    let bare = model.rsplit('/').next().unwrap_or(model);
    let edition = |rest: &str| {
        rest.starts_with("-latest") || rest.strip_prefix(['-', '@']).is_some_and(is_date)
    };
    let same = |name: &&String| {
        [model, bare].into_iter().any(|full| {
            full.strip_prefix(name.as_str()).is_some_and(|rest| rest.is_empty() || edition(rest))
        })
    };
    let longest = prices.keys().filter(same).max_by_key(|name| name.len())?;
    prices.get(longest).copied()
}

/// Returns true if the text begins with a date, which has at least four digits. A shorter number,
/// as in `-4-5`, belongs to the version of a different model.
fn is_date(text: &str) -> bool {
    text.chars().take_while(char::is_ascii_digit).count() >= 4
}

fn cost(price: Price, usage: Usage) -> Option<Dollars> {
    let cached = usage.cached.min(usage.prompt);
    let fresh = usage.prompt.saturating_sub(cached);
    let amount = fresh as f64 * price.prompt
        + cached as f64 * price.cached.unwrap_or(price.prompt)
        + usage.completion as f64 * price.completion;
    Dollars::new(amount / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_prices_are_valid() {
        assert!(BUILT_IN.len() >= 20, "{} prices", BUILT_IN.len());
        assert!(Prices::new(BUILT_IN.clone()).is_ok());
    }

    #[test]
    fn a_price_applies_to_dated_editions_and_no_other_model() {
        let usage = Usage { completion: 1_000_000, ..Usage::default() };
        for (model, cost) in [
            ("gpt-4o", Some("$10.00")),
            ("gpt-4o-2024-08-06", Some("$10.00")),
            ("openai/gpt-4o-mini", Some("$0.60")),
            ("claude-sonnet-4-5-20250929", Some("$15.00")),
            ("claude-sonnet-4-20250514", Some("$15.00")),
            ("mistral-large-latest", Some("$6.00")),
            ("gpt-4o-audio-preview", None),
            ("claude-sonnet-4-6", None),
            ("gpt-5:free", None),
            ("", None),
        ] {
            let found = Prices::default().priced(model, usage).cost.map(|cost| cost.to_string());
            assert_eq!(found.as_deref(), cost, "{model}");
        }
    }

    #[test]
    fn the_reported_cost_precedes_configured_and_built_in_prices() {
        let own = Price { prompt: 1.0, completion: 2.0, cached: None, window: None };
        let prices = Prices::new([("gpt-4o".to_owned(), own)].into()).unwrap();
        let usage = Usage { prompt: 10, completion: 10, cached: 10, cost: None };
        assert_eq!(prices.priced("gpt-4o", usage).cost, Dollars::new(0.00003));
        let reported = Usage { cost: Dollars::new(7.0), ..usage };
        assert_eq!(prices.priced("gpt-4o", reported).cost, Dollars::new(7.0));
        let wrong = Price { prompt: -1.0, ..own };
        assert!(Prices::new([("m".to_owned(), wrong)].into()).unwrap_err().contains("`m`"));
    }
}
