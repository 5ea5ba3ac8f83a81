//! The values of variables, array elements and special parameters, and assignments to them.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use super::arithmetic::{Effort, evaluate_within};
use super::interpreter::{Attempt, Flow, Interpreter, Stop};
use super::variables::{ArrayElement, AssignError, Setting, SettingValue, Value, is_name, past};
use crate::ledger::Text;

impl Interpreter {
    /// Returns the value of a variable or a special parameter, or `None` if it is unset. For an
    /// array, returns element 0.
    pub(crate) fn value(&mut self, name: &str) -> Option<String> {
        let mut chars = name.chars();
        match (chars.next(), chars.next()) {
            (Some(digit), _) if digit.is_ascii_digit() => {
                return match name.parse() {
                    Ok(0) => Some(self.parameters.name.to_string()),
                    Ok(number) => {
                        let at = usize::saturating_sub(number, 1);
                        self.parameters.arguments.get(at).map(|text| text.to_string())
                    }
                    Err(_) => None,
                };
            }
            (Some('?'), None) => return Some(self.last.status.to_string()),
            (Some('#'), None) => return Some(self.parameters.arguments.len().to_string()),
            (Some('$'), None) => return Some("2".into()),
            (Some('!'), None) => return self.jobs.last_pid().map(|pid| pid.to_string()),
            (Some('_'), None) => {
                return Some(self.last.word.as_deref().unwrap_or_default().to_owned());
            }
            (Some('-'), None) => return Some(self.option_letters()),
            _ => {}
        }
        match name {
            "RANDOM" => Some(self.random.u32(0..32768).to_string()),
            "SRANDOM" => Some(fastrand::u32(..).to_string()),
            "SECONDS" => {
                let base = self.variables.text(name).and_then(|text| text.parse::<i64>().ok());
                let elapsed = self.lifecycle.started.elapsed().as_secs().cast_signed();
                Some(base.unwrap_or_default().wrapping_add(elapsed).to_string())
            }
            "EPOCHSECONDS" => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                Some(now.as_secs().to_string())
            }
            "LINENO" => Some(self.execution.line.to_string()),
            "BASHPID" => Some("2".into()),
            "FUNCNAME" => self.execution.calls.last().cloned(),
            _ => self.variables.text(name).map(|text| text.to_string()),
        }
    }

    /// Returns the value of a variable, if it is set.
    pub(crate) fn variable(&self, name: &str) -> Option<Text> {
        self.variables.text(name)
    }

    /// Returns all values of a variable.
    pub(crate) fn list_of(&self, name: &str) -> Vec<String> {
        if name == "FUNCNAME" {
            return self.execution.calls.iter().rev().cloned().collect();
        }
        self.variables
            .get(name)
            .map(|variable| variable.texts().iter().map(|text| text.to_string()).collect())
            .unwrap_or_default()
    }

    /// Returns the value of an array element. Fails with a message if the index is invalid.
    pub(crate) fn element(
        &mut self,
        name: &str,
        index: &str,
    ) -> Result<Option<String>, AssignError> {
        let mut effort = Effort::default();
        let value = self.element_within(name, index, &mut effort);
        self.run.charge(effort.steps());
        value
    }

    /// Returns the value of an array element. The index is evaluated as part of an arithmetic
    /// evaluation that is in progress, so its depth and its steps are added to those in `effort`.
    pub(crate) fn element_within(
        &mut self,
        name: &str,
        index: &str,
        effort: &mut Effort,
    ) -> Result<Option<String>, AssignError> {
        if name == "FUNCNAME" {
            let position = evaluate_within(index, self, effort)?;
            return Ok(usize::try_from(position)
                .ok()
                .and_then(|position| self.execution.calls.iter().rev().nth(position).cloned()));
        }
        match self.variables.get(name).map(|variable| variable.value.clone()) {
            None | Some(Value::Unset) => Ok(None),
            Some(Value::Map(map)) => Ok(map.get(index).map(|text| text.to_string())),
            Some(Value::Text(text)) => {
                Ok((evaluate_within(index, self, effort)? == 0).then(|| text.to_string()))
            }
            Some(Value::List(list)) => {
                let mut position = evaluate_within(index, self, effort)?;
                if position < 0 {
                    position = position.saturating_add(past(&list));
                    if position < 0 {
                        return Err(AssignError::Subscript(name.to_owned()));
                    }
                }
                Ok(list.get(&position).map(|text| text.to_string()))
            }
        }
    }

    /// Performs an assignment. If it fails, reports the error and abandons the line, as bash does.
    pub(crate) async fn assign(&mut self, setting: Setting) -> Flow {
        let assigned = self.try_assign(setting).await;
        self.or_abandon(assigned).await
    }

    /// Performs an assignment.
    pub(crate) async fn try_assign(&mut self, setting: Setting) -> Attempt {
        self.checkpoint().await?;
        let mut effort = Effort::default();
        let result = self.perform(setting, &mut effort);
        self.run.charge(effort.steps());
        result.map_err(|error| self.assign_failure(error))
    }

    /// Returns the failure of an assignment. Ends the script if there is no room for the value.
    pub(crate) fn assign_failure(&mut self, error: AssignError) -> Stop {
        match error {
            AssignError::Full(_) => self.exceed(error.to_string()).into(),
            AssignError::Arithmetic(message) => Stop::Abandoned(message),
            error => error.to_string().into(),
        }
    }

    fn perform(&mut self, setting: Setting, effort: &mut Effort) -> Result<(), AssignError> {
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
    ) -> Result<(), AssignError> {
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
    ) -> Result<(), AssignError> {
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
        self.variables.set(name, text)
    }

    fn set_element(
        &mut self,
        name: &str,
        index: &str,
        append: bool,
        text: String,
        effort: &mut Effort,
    ) -> Result<(), AssignError> {
        let is_map = self.is_map(name);
        let old = if append { self.element_within(name, index, effort)? } else { None };
        let text = self.combine(name, old.as_deref(), text, effort)?;
        if is_map {
            return self.variables.set_key(name, index.to_owned(), text);
        }
        if index.trim().is_empty() {
            return Err(AssignError::Index(format!("{name}[{index}")));
        }
        let position = evaluate_within(index, self, effort)?;
        self.variables.set_at(name, position, text)
    }

    /// Returns the string to store: `text` appended to `old`, or the sum of both if the variable is
    /// an integer.
    fn combine(
        &mut self,
        name: &str,
        old: Option<&str>,
        text: String,
        effort: &mut Effort,
    ) -> Result<String, AssignError> {
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
    pub(crate) async fn set(&mut self, name: &str, text: impl Into<String>) -> Attempt {
        let setting = Setting::text(name, text.into());
        if !is_name(&setting.name) {
            return Err(AssignError::Name(name.into()).to_string().into());
        }
        self.try_assign(setting).await
    }

    /// Sets a variable to an indexed array.
    pub(crate) fn set_list(&mut self, name: &str, texts: Vec<String>) -> Attempt {
        self.variables.set_list(name, texts).map_err(|error| self.assign_failure(error))
    }

    /// Returns the value of a variable or an array element in an arithmetic expression, or `None` if
    /// it is unset.
    pub(crate) fn operand_value(
        &mut self,
        name: &str,
        index: Option<&str>,
        effort: &mut Effort,
    ) -> Result<Option<String>, String> {
        let value = match index {
            None => self.value(name),
            Some(index) => {
                self.element_within(name, index, effort).map_err(|error| error.to_string())?
            }
        };
        if value.is_none() && self.options.nounset {
            self.execution.is_missing = true;
            return Err(format!("{name}: unbound variable"));
        }
        Ok(value)
    }

    /// Sets a variable or an array element to the result of an arithmetic expression.
    pub(crate) fn set_operand(
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
        let value = SettingValue::Text(value.to_string());
        let setting = Setting { name: name.into(), index, append: false, value };
        self.perform(setting, effort).map_err(|failure| failure.to_string())
    }
}
