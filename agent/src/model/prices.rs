//! What models cost.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Serialize};
use wattle_machine::{Dollars, Usage};

/// What a model costs, in US dollars per million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Tokens of the messages sent.
    pub prompt: f64,
    /// Tokens of the answer.
    pub completion: f64,
    /// Tokens of messages that the provider had in its cache; as `prompt` where it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<f64>,
}

/// The prices of models by name. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prices(Arc<BTreeMap<String, Price>>);

impl Prices {
    /// Takes prices that come before those which are known anyway.
    ///
    /// # Errors
    /// Where one of them is no price; the text names the model.
    pub fn new(prices: BTreeMap<String, Price>) -> Result<Self, String> {
        let is_price = |amount: f64| (0.0..=1e6).contains(&amount);
        for (model, Price { prompt, completion, cached }) in &prices {
            if ![*prompt, *completion, cached.unwrap_or_default()].into_iter().all(is_price) {
                return Err(format!(
                    "the prices of `{model}` are not all from 0 to 1,000,000 dollars per million tokens"
                ));
            }
        }
        Ok(Self(Arc::new(prices)))
    }

    /// Gives the prices that were set, by model.
    pub fn set(&self) -> &BTreeMap<String, Price> {
        &self.0
    }

    /// Adds what tokens of that model cost, where the provider did not say and a price is known.
    ///
    /// ```
    /// use wattle_agent::model::Prices;
    /// use wattle_agent::machine::Usage;
    ///
    /// let usage = Usage { prompt: 1_000_000, cached: 500_000, ..Usage::default() };
    /// let cost = |model: &str| Prices::default().priced(model, usage).cost.map(|cost| cost.to_string());
    /// assert_eq!(cost("openai/gpt-4o-mini-2024-07-18").as_deref(), Some("$0.1125"));
    /// assert_eq!(cost("a-model-of-mine"), None);
    /// ```
    #[must_use]
    pub fn priced(&self, model: &str, usage: Usage) -> Usage {
        let known = || find(&self.0, model).or_else(|| find(&LISTED, model));
        let cost = usage.cost.or_else(|| cost(known()?, usage));
        Usage { cost, ..usage }
    }
}

/// The prices that come along.
// The file is compiled in, and a test reads it.
static LISTED: LazyLock<BTreeMap<String, Price>> = LazyLock::new(|| {
    #[derive(Deserialize)]
    struct File {
        prices: BTreeMap<String, Price>,
    }
    toml::from_str(include_str!("prices.toml")).map(|file: File| file.prices).unwrap_or_default()
});

fn find(prices: &BTreeMap<String, Price>, model: &str) -> Option<Price> {
    let bare = model.rsplit('/').next().unwrap_or(model);
    let edition = |rest: &str| rest.starts_with("-latest") || rest.strip_prefix(['-', '@']).is_some_and(is_date);
    let same = |name: &&String| {
        [model, bare]
            .into_iter()
            .any(|full| full.strip_prefix(name.as_str()).is_some_and(|rest| rest.is_empty() || edition(rest)))
    };
    let longest = prices.keys().filter(same).max_by_key(|name| name.len())?;
    prices.get(longest).copied()
}

/// A number of editions has at least four digits: `-4-5` is another model.
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
    fn the_listed_prices_are_read() {
        assert!(LISTED.len() >= 20, "{} prices", LISTED.len());
        assert!(Prices::new(LISTED.clone()).is_ok());
    }

    #[test]
    fn a_price_counts_for_editions_and_for_no_other_model() {
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
    fn prices_of_ones_own_come_first_and_what_the_provider_says_before_them() {
        let own = Price { prompt: 1.0, completion: 2.0, cached: None };
        let prices = Prices::new([("gpt-4o".to_owned(), own)].into()).unwrap();
        let usage = Usage { prompt: 10, completion: 10, cached: 10, cost: None };
        assert_eq!(prices.priced("gpt-4o", usage).cost, Dollars::new(0.00003));
        let told = Usage { cost: Dollars::new(7.0), ..usage };
        assert_eq!(prices.priced("gpt-4o", told).cost, Dollars::new(7.0));
        let wrong = Price { prompt: -1.0, ..own };
        assert!(Prices::new([("m".to_owned(), wrong)].into()).unwrap_err().contains("`m`"));
    }
}
