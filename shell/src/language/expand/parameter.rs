//! Expansion of parameters: `$name` and `${name…}`.

use super::fields::{Fields, Quoting};
use super::values::{Selection, Values};
use crate::language::ast::{Action, Index, Parameter, Word};
use crate::language::interpreter::{Flow, Interpreter, Jump};
use crate::language::setting::{Setting, SettingValue, split_index};
use crate::language::variables::is_name;

impl Interpreter {
    /// Expands a parameter into `out`.
    pub(super) async fn parameter(
        &mut self,
        parameter: &Parameter,
        quoting: Quoting,
        out: &mut Fields,
    ) -> Flow {
        let quoted = quoting == Quoting::Quoted;
        let (mut name, mut index) =
            (parameter.name.clone(), self.index(parameter.index.as_ref()).await?);
        if parameter.indirect {
            if self.variables.get_itself(&name).is_some_and(|variable| variable.reference) {
                let target = self.variables.resolve(&name).to_owned();
                self.emit(Values::One(Some(target)), quoted, out);
                return Ok(());
            }
            match self.indirect(&name, index.as_ref()).await? {
                Some(found) => (name, index) = found,
                None => {
                    if quoted {
                        out.quoted("");
                    }
                    return Ok(());
                }
            }
        }
        if let Action::Keys | Action::Names { .. } = parameter.action {
            let values = self.names_or_keys(&name, &parameter.action, index.as_ref());
            self.emit(values, quoted, out);
            return Ok(());
        }
        let values = self.values(&name, index.as_ref()).await?;
        let there = match &values {
            Values::One(value) => value.is_some(),
            Values::Many { list, .. } => !list.is_empty(),
        };
        let empty = match &values {
            Values::One(value) => value.as_deref().is_none_or(str::is_empty),
            Values::Many { list, .. } => list.iter().all(String::is_empty) && list.len() < 2,
        };
        let counts = |colon: bool| if colon { !empty } else { there };
        match &parameter.action {
            Action::Default { colon, .. }
            | Action::Assign { colon, .. }
            | Action::Fail { colon, .. }
                if counts(*colon) =>
            {
                self.emit(values, quoted, out)
            }
            Action::Alternative { colon, .. } if !counts(*colon) => {
                if quoted {
                    out.quoted("");
                }
            }
            Action::Default { word, .. } | Action::Alternative { word, .. } => {
                self.operand(word, quoting, out).await?
            }
            Action::Assign { word, .. } => {
                let text = self.assign_default(name, index, word).await?;
                if quoted { out.quoted(&text) } else { out.value(&text) }
            }
            Action::Fail { colon, word } => {
                let message = self.unset_message(word, *colon).await?;
                return Err(self.missing(&format!("{name}: {message}")).await);
            }
            action => {
                if !there
                    && self.options.nounset
                    && matches!(values, Values::One(_))
                    && !matches!(action, Action::Transform('a'))
                {
                    return Err(self.missing(&format!("{name}: unbound variable")).await);
                }
                let values = self.apply(&name, index.as_ref(), values, action).await?;
                self.emit(values, quoted, out);
            }
        }
        Ok(())
    }

    /// Assigns the word of `${name=word}` to the parameter and returns the assigned value.
    async fn assign_default(
        &mut self,
        name: String,
        index: Option<Selection>,
        word: &Word,
    ) -> Flow<String> {
        let text = self.text(word).await?;
        if !is_name(&name) {
            return Err(self.fail(&format!("${name}: cannot assign in this way")).await);
        }
        let index = if let Some(Selection::At(index)) = index { Some(index) } else { None };
        self.assign(Setting {
            name,
            index,
            append: false,
            value: SettingValue::Text(text.clone()),
        })
        .await?;
        Ok(text)
    }

    /// Returns the message of `${name?word}`: the word, or a default message.
    async fn unset_message(&mut self, word: &Word, colon: bool) -> Flow<String> {
        let text = self.text(word).await?;
        Ok(match colon {
            _ if !text.is_empty() => text,
            true => "parameter null or not set".into(),
            false => "parameter not set".into(),
        })
    }

    /// Reports that a required variable is not set. Returns the jump that exits the shell, with the
    /// same status as in bash.
    async fn missing(&mut self, message: &str) -> Jump {
        self.report(message).await;
        self.last.status = if self.options.errexit { 1 } else { 127 };
        Jump::Exit
    }

    /// Expands the word that replaces the value in an operation such as `${x:-word}`.
    async fn operand(&mut self, word: &Word, quoting: Quoting, out: &mut Fields) -> Flow {
        if word.parts.is_empty() && quoting == Quoting::Quoted {
            out.quoted("");
        }
        let quoting = if quoting == Quoting::Quoted { Quoting::Quoted } else { Quoting::Operand };
        self.parts(&word.parts, quoting, out).await
    }

    /// Adds values to `out`: split, joined, or each as one field, depending on the quoting.
    fn emit(&mut self, values: Values, quoted: bool, out: &mut Fields) {
        match values {
            Values::One(Some(text)) if quoted => out.quoted(&text),
            Values::One(Some(text)) => out.value(&text),
            Values::One(None) if quoted => out.quoted(""),
            Values::One(None) => {}
            Values::Many { list, joined } if (joined && quoted) || !out.splits() => {
                let separator = if joined { self.list_separator() } else { " ".into() };
                let text = list.join(&separator);
                if list.is_empty() && !joined {
                    out.add_empty_list();
                } else if quoted {
                    out.quoted(&text);
                } else {
                    out.value(&text);
                }
            }
            Values::Many { list, .. } => {
                if list.is_empty() {
                    out.add_empty_list();
                }
                for (index, text) in list.iter().enumerate() {
                    if index > 0 {
                        out.end_field();
                    }
                    if quoted { out.quoted(text) } else { out.value(text) }
                }
            }
        }
    }

    /// Expands an index.
    async fn index(&mut self, index: Option<&Index>) -> Flow<Option<Selection>> {
        Ok(match index {
            None => None,
            Some(Index::All) => Some(Selection::All),
            Some(Index::Joined) => Some(Selection::Joined),
            Some(Index::At(word)) => Some(Selection::At(self.text(word).await?)),
        })
    }

    /// Returns the name and index that `${!name}` refers to, or `None` if `name` is unset.
    async fn indirect(
        &mut self,
        name: &str,
        index: Option<&Selection>,
    ) -> Flow<Option<(String, Option<Selection>)>> {
        let Values::One(Some(target)) = self.values(name, index).await? else { return Ok(None) };
        let (name, index) = split_index(&target);
        let index = index.map(|index| match index {
            "@" => Selection::All,
            "*" => Selection::Joined,
            index => Selection::At(index.to_owned()),
        });
        let target = name.to_owned();
        let special = matches!(target.as_str(), "@" | "*" | "#" | "?" | "-" | "$" | "!")
            || (!target.is_empty() && target.chars().all(|c| c.is_ascii_digit()));
        if is_name(&target) || special {
            return Ok(Some((target, index)));
        }
        Err(self.fail(&format!("{target}: invalid variable name")).await)
    }

    /// Returns the values of `${!prefix*}` or `${!name[@]}`.
    fn names_or_keys(&self, name: &str, action: &Action, index: Option<&Selection>) -> Values {
        match action {
            Action::Names { joined } => {
                let list = self
                    .variables
                    .names()
                    .into_iter()
                    .filter(|known| known.starts_with(name))
                    .collect();
                Values::Many { list, joined: *joined }
            }
            _ => {
                let list =
                    self.variables.get(name).map(|variable| variable.keys()).unwrap_or_default();
                Values::Many { list, joined: matches!(index, Some(Selection::Joined)) }
            }
        }
    }

    /// Returns the values of a parameter.
    async fn values(&mut self, name: &str, index: Option<&Selection>) -> Flow<Values> {
        match (name, index) {
            ("@", _) => Ok(Values::Many { list: self.parameters.words(), joined: false }),
            ("*", _) => Ok(Values::Many { list: self.parameters.words(), joined: true }),
            (_, Some(chosen @ (Selection::All | Selection::Joined))) => {
                let list = self.list_of(name);
                Ok(Values::Many { list, joined: matches!(chosen, Selection::Joined) })
            }
            (_, Some(Selection::At(index))) => match self.element(name, index) {
                Ok(value) => Ok(Values::One(value)),
                Err(message) => Err(self.fail(&message).await),
            },
            (_, None) => Ok(Values::One(self.value(name))),
        }
    }
}
