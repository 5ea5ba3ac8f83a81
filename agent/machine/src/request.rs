//! The choices of a request to a model, and the model's answer.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::event::Usage;
use crate::message::{FunctionCall, ProviderFields};

/// The form in which a model calls programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// Calls are written in the answer's text.
    #[default]
    Text,
    /// Calls are made through the provider's native function calling.
    Native,
    /// There are no calls: the text of an answer is the final answer, whatever it looks like.
    Plain,
}

/// The purpose of a request to the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// The model's next action.
    Act,
    /// A corrected program to replace one that did not compile.
    Repair,
    /// The final answer, because the steps are used up.
    Conclude,
    /// A corrected answer to replace one that does not match the contract.
    Amend,
}

/// The model's answer to a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelAnswer {
    /// The text of the answer, complete and unmodified.
    pub text: String,
    /// The model's function calls, in the order in which the model made them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<FunctionCall>,
    /// If true, the answer was truncated because it reached the provider's length limit.
    #[serde(rename = "truncated", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_truncated: bool,
    /// The model's reasoning, if the provider returns it separately from the text. It is used as
    /// the thought if the text contains none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// The reason that the provider gave for withholding the answer or a part of it, such as
    /// `content_filter`. `None` if it withheld nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filtered: Option<String>,
    /// The provider's own fields, which the next requests to the same model must contain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<ProviderFields>,
    /// The token usage of this request.
    pub usage: Usage,
}

/// A model's reasoning effort, from 0 to 100.
///
/// ```
/// use wattle_machine::ThinkingEffort;
///
/// assert_eq!(ThinkingEffort::new(30).map(ThinkingEffort::get), Some(30));
/// assert_eq!(ThinkingEffort::new(101), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub struct ThinkingEffort(u8);

impl ThinkingEffort {
    /// Creates an effort. Returns `None` if it is above 100.
    #[must_use]
    pub fn new(effort: u8) -> Option<Self> {
        (effort <= 100).then_some(Self(effort))
    }

    /// Returns the effort, from 0 to 100.
    #[must_use]
    pub fn get(self) -> u8 {
        self.0
    }

    /// Returns the level for endpoints with three levels: `low` up to 33, `medium` up to 66, and
    /// otherwise `high`.
    #[must_use]
    pub fn level(self) -> &'static str {
        match self.0 {
            0..=33 => "low",
            34..=66 => "medium",
            _ => "high",
        }
    }
}

impl TryFrom<u8> for ThinkingEffort {
    type Error = String;

    fn try_from(effort: u8) -> Result<Self, String> {
        Self::new(effort).ok_or_else(|| format!("expected a number from 0 to 100, found {effort}"))
    }
}

impl From<ThinkingEffort> for u8 {
    fn from(effort: ThinkingEffort) -> u8 {
        effort.0
    }
}

impl FromStr for ThinkingEffort {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let effort = text.trim().parse().ok().and_then(Self::new);
        effort.ok_or_else(|| format!("expected a number from 0 to 100, found {text:?}"))
    }
}

/// A setting that allows, requires or forbids function calls in a model's answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FunctionChoice {
    /// The model calls functions or answers.
    #[default]
    Auto,
    /// The model must call a function.
    Required,
    /// The model must answer, although it sees the functions.
    None,
}

impl FunctionChoice {
    /// All choices with their names.
    pub const ALL: [(FunctionChoice, &'static str); 3] = [
        (FunctionChoice::Auto, "auto"),
        (FunctionChoice::Required, "required"),
        (FunctionChoice::None, "none"),
    ];

    /// Returns the name of the choice.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            FunctionChoice::Auto => "auto",
            FunctionChoice::Required => "required",
            FunctionChoice::None => "none",
        }
    }
}

impl fmt::Display for FunctionChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for FunctionChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wanted = text.trim();
        let found = Self::ALL.iter().find(|(_, name)| name.eq_ignore_ascii_case(wanted));
        found
            .map(|(choice, _)| *choice)
            .ok_or_else(|| format!("expected `auto`, `required` or `none`, found {text:?}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_and_efforts_are_read() {
        for (choice, name) in FunctionChoice::ALL {
            assert_eq!((name.parse(), choice.name()), (Ok(choice), name));
            assert_eq!(serde_json::to_value(choice).unwrap(), name);
        }
        assert!("maybe".parse::<FunctionChoice>().unwrap_err().contains("`required`"));
        assert_eq!(" 7 ".parse().ok(), ThinkingEffort::new(7));
        for text in ["", "-1", "101", "300", "1.5", "high"] {
            assert!(text.parse::<ThinkingEffort>().unwrap_err().contains("0 to 100"), "{text}");
        }
        assert!(serde_json::from_str::<ThinkingEffort>("101").is_err());
    }

    #[test]
    fn the_levels_divide_the_range_in_three() {
        for (effort, level) in
            [(0, "low"), (33, "low"), (34, "medium"), (66, "medium"), (67, "high")]
        {
            assert_eq!(ThinkingEffort(effort).level(), level, "{effort}");
        }
    }
}
