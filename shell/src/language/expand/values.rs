//! The values of an expanded parameter, before its operation is applied.

use crate::language::arithmetic::{Effort, evaluate_within};
use crate::language::interpreter::Interpreter;
use crate::language::variables::{Value, past};

/// The values of a parameter.
pub(super) enum Values {
    One(Option<String>),
    /// The values of a list. `joined` is true for `$*` and `[*]`.
    Many {
        list: Vec<String>,
        joined: bool,
    },
}

/// The elements that an expanded index selects.
pub(super) enum Selection {
    /// `[@]`
    All,
    /// `[*]`
    Joined,
    At(String),
}

impl Interpreter {
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
    pub(crate) fn element(&mut self, name: &str, index: &str) -> Result<Option<String>, String> {
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
    ) -> Result<Option<String>, String> {
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
                        return Err(format!("{name}: bad array subscript"));
                    }
                }
                Ok(list.get(&position).map(|text| text.to_string()))
            }
        }
    }
}
