//! Assignments to variables.

use std::fmt;
use std::time::Instant;

use super::Interpreter;
use super::flow::Flow;
use crate::language::arithmetic::{Effort, Names, evaluate_within};
use crate::language::setting::{ArrayElement, Setting, SettingValue};
use crate::language::variables::{AssignError, Value, is_name, past};

impl Interpreter {
    /// Performs an assignment. If it fails, reports the error and exits the shell, as bash does.
    pub(crate) async fn assign(&mut self, setting: Setting) -> Flow {
        match self.try_assign(setting).await? {
            Ok(()) => Ok(()),
            Err(message) => Err(self.fail(&message).await),
        }
    }

    /// Performs an assignment. If it fails, returns a message that the caller reports.
    pub(crate) async fn try_assign(&mut self, setting: Setting) -> Flow<Result<(), String>> {
        self.checkpoint().await?;
        let mut effort = Effort::default();
        let result = self.perform(setting, &mut effort);
        self.run.charge(effort.steps());
        match result {
            Ok(()) => Ok(Ok(())),
            Err(AssignFailure::Variable(error @ AssignError::Full(_))) => {
                Err(self.exceed(error.to_string()))
            }
            Err(failure) => Ok(Err(failure.to_string())),
        }
    }

    fn perform(&mut self, setting: Setting, effort: &mut Effort) -> Result<(), AssignFailure> {
        let Setting { name, index, append, value } = setting;
        if self.options.allexport {
            self.variables.attributes(&name)?.exported = true;
        }
        match value {
            SettingValue::Text(text) => match index {
                Some(index) => self.set_element(&name, &index, append, text, effort),
                None => self.set_text(&name, append, text, effort),
            },
            SettingValue::Array(elements) => self.set_array(&name, append, elements, effort),
        }
    }

    /// Sets the elements of an array, or appends to it.
    fn set_array(
        &mut self,
        name: &str,
        append: bool,
        elements: Vec<ArrayElement>,
        effort: &mut Effort,
    ) -> Result<(), AssignFailure> {
        let is_map = self.is_map(name);
        if !append {
            self.variables.entry(name)?.clear(is_map);
        } else if !is_map {
            self.variables.entry(name)?.make_list();
        }
        let mut next = self.next_index(name);
        // In a map, elements without an index alternate between keys and values.
        let mut pending_key: Option<String> = None;
        for ArrayElement { index, append, text } in elements {
            match index {
                Some(index) => {
                    if !is_map {
                        next = evaluate_within(&index, self, effort)?.saturating_add(1);
                    }
                    self.set_element(name, &index, append, text, effort)?;
                }
                None if is_map => match pending_key.take() {
                    None => pending_key = Some(text),
                    Some(key) => self.set_element(name, &key, false, text, effort)?,
                },
                None => {
                    let text = self.combine(name, None, text, effort)?;
                    self.variables.set_at(name, next, text)?;
                    next = next.saturating_add(1);
                }
            }
        }
        if let Some(key) = pending_key {
            self.set_element(name, &key, false, String::new(), effort)?;
        }
        Ok(())
    }

    /// Returns true if a variable is an associative array.
    fn is_map(&self, name: &str) -> bool {
        matches!(self.variables.get(name).map(|variable| &variable.value), Some(Value::Map(_)))
    }

    /// Returns the index after the last element of an indexed array.
    fn next_index(&self, name: &str) -> i64 {
        match self.variables.get(name).map(|variable| &variable.value) {
            Some(Value::List(list)) => past(list),
            _ => 0,
        }
    }

    fn set_text(
        &mut self,
        name: &str,
        append: bool,
        text: String,
        effort: &mut Effort,
    ) -> Result<(), AssignFailure> {
        match name {
            "RANDOM" => {
                self.random = fastrand::Rng::with_seed(text.parse().unwrap_or_default());
                return Ok(());
            }
            "SECONDS" => self.lifecycle.started = Instant::now(),
            "OPTIND" => self.parameters.getopts_offset = 0,
            _ => {}
        }
        let old = if append { self.variables.text(name) } else { None };
        let text = self.combine(name, old.as_deref(), text, effort)?;
        Ok(self.variables.set(name, text)?)
    }

    fn set_element(
        &mut self,
        name: &str,
        index: &str,
        append: bool,
        text: String,
        effort: &mut Effort,
    ) -> Result<(), AssignFailure> {
        let is_map = self.is_map(name);
        let old = if append { self.element_within(name, index, effort)? } else { None };
        let text = self.combine(name, old.as_deref(), text, effort)?;
        if is_map {
            return Ok(self.variables.set_key(name, index.to_owned(), text)?);
        }
        if index.trim().is_empty() {
            return Err(AssignFailure::Variable(AssignError::Index(format!("{name}[{index}"))));
        }
        let position = evaluate_within(index, self, effort)?;
        Ok(self.variables.set_at(name, position, text)?)
    }

    /// Returns the string to store: `text` appended to `old`, or the sum of both if the variable is
    /// an integer.
    fn combine(
        &mut self,
        name: &str,
        old: Option<&str>,
        text: String,
        effort: &mut Effort,
    ) -> Result<String, AssignFailure> {
        if self.variables.get(name).is_some_and(|variable| variable.integer) {
            let value = evaluate_within(&text, self, effort)?;
            let old = match old {
                Some(old) => evaluate_within(old, self, effort)?,
                None => 0,
            };
            return Ok(old.wrapping_add(value).to_string());
        }
        Ok(match old {
            Some(old) => format!("{old}{text}"),
            None => text,
        })
    }

    /// Sets the value of a variable or of an array element, for builtins such as `read`.
    pub(crate) async fn set(
        &mut self,
        name: &str,
        text: impl Into<String>,
    ) -> Flow<Result<(), String>> {
        let setting = Setting::text(name, text.into());
        if !is_name(&setting.name) {
            return Ok(Err(format!("`{name}': not a valid identifier")));
        }
        self.try_assign(setting).await
    }

    /// Sets a variable to an indexed array.
    pub(crate) fn set_list(&mut self, name: &str, texts: Vec<String>) -> Flow<Result<(), String>> {
        match self.variables.set_list(name, texts) {
            Ok(()) => Ok(Ok(())),
            Err(error @ AssignError::Full(_)) => Err(self.exceed(error.to_string())),
            Err(error) => Ok(Err(error.to_string())),
        }
    }
}

/// The reason why an assignment failed: the variable cannot be set, or an expression is invalid.
enum AssignFailure {
    Variable(AssignError),
    Arithmetic(String),
}

impl From<AssignError> for AssignFailure {
    fn from(error: AssignError) -> AssignFailure {
        AssignFailure::Variable(error)
    }
}

impl From<String> for AssignFailure {
    fn from(words: String) -> AssignFailure {
        AssignFailure::Arithmetic(words)
    }
}

impl fmt::Display for AssignFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AssignFailure::Variable(error) => error.fmt(f),
            AssignFailure::Arithmetic(message) => f.write_str(message),
        }
    }
}

/// Provides the shell's variables to arithmetic expressions.
impl Names for Interpreter {
    fn get(
        &mut self,
        name: &str,
        index: Option<&str>,
        effort: &mut Effort,
    ) -> Result<Option<String>, String> {
        let value = match index {
            None => self.value(name),
            Some(index) => self.element_within(name, index, effort)?,
        };
        if value.is_none() && self.options.nounset {
            return Err(format!("{name}: unbound variable"));
        }
        Ok(value)
    }

    fn set(
        &mut self,
        name: &str,
        index: Option<&str>,
        value: i64,
        effort: &mut Effort,
    ) -> Result<(), String> {
        let is_map = self.is_map(name);
        let index = match index {
            Some(index) if !is_map => Some(evaluate_within(index, self, effort)?.to_string()),
            other => other.map(str::to_owned),
        };
        let setting = Setting {
            name: name.into(),
            index,
            append: false,
            value: SettingValue::Text(value.to_string()),
        };
        self.perform(setting, effort).map_err(|failure| failure.to_string())
    }

    fn charge(&mut self, steps: u64) {
        self.run.charge(steps);
    }
}
