//! The builtins `declare`, `typeset`, `local`, `export`, `readonly`, and `unset`.

use std::sync::Arc;

use super::Arguments;
use crate::language::interpreter::{Attempt, Interpreter, Stop, usage};
use crate::language::variables::{
    AssignError, CaseFold, ExpandedWord, Setting, SettingValue, Value, Variable, is_name, past,
    split_index, texts,
};
use crate::language::{arithmetic, escape};

/// Options of a declaration.
#[derive(Clone, Copy, Debug, Default)]
struct DeclareOptions {
    list: bool,
    map: bool,
    integer: Option<bool>,
    fold: Option<Option<CaseFold>>,
    reference: Option<bool>,
    readonly: bool,
    exported: Option<bool>,
    print: bool,
    functions: bool,
    names_only: bool,
    global: bool,
}

impl Variable {
    /// Returns the letters of the variable's attributes.
    pub(crate) fn letters(&self) -> String {
        let all = [
            (matches!(self.value, Value::List(_)), 'a'),
            (matches!(self.value, Value::Map(_)), 'A'),
            (self.integer, 'i'),
            (self.reference, 'n'),
            (self.readonly, 'r'),
            (self.exported, 'x'),
            (self.fold == Some(CaseFold::Lower), 'l'),
            (self.fold == Some(CaseFold::Upper), 'u'),
        ];
        all.into_iter().filter(|(on, _)| *on).map(|(_, letter)| letter).collect()
    }
}

impl Interpreter {
    /// Returns a command that recreates a variable, in the form of `declare -p`, or `None` if the
    /// variable does not exist.
    pub(crate) fn declaration(&self, name: &str) -> Option<String> {
        let variable = self.variables.get_itself(name)?;
        let letters = variable.letters();
        let letters = if letters.is_empty() { "--".to_owned() } else { format!("-{letters}") };
        let element = |key: &str, text: &str| format!("[{key}]={}", escape::double_quoted(text));
        let value = match &variable.value {
            Value::Unset => String::new(),
            Value::Text(text) => format!("={}", escape::double_quoted(text)),
            Value::List(list) => {
                let elements = list.iter().map(|(index, text)| element(&index.to_string(), text));
                format!("=({})", elements.collect::<Vec<_>>().join(" "))
            }
            Value::Map(map) => {
                let elements = map.iter().map(|(key, text)| {
                    let plain = key.chars().all(|c| c.is_alphanumeric() || c == '_');
                    let key = if plain { key.to_string() } else { escape::double_quoted(key) };
                    element(&key, text) + " "
                });
                format!("=({})", elements.collect::<String>())
            }
        };
        Some(format!("declare {letters} {name}{value}"))
    }

    pub(super) async fn declare(&mut self, builtin: &str, given: Vec<ExpandedWord>) -> Attempt<u8> {
        let mut options = DeclareOptions {
            readonly: builtin == "readonly",
            exported: (builtin == "export").then_some(true),
            ..DeclareOptions::default()
        };
        let mut rest = Vec::new();
        let mut in_options = true;
        for one in given {
            match &one {
                ExpandedWord::Text(word) if in_options && word == "--" => in_options = false,
                ExpandedWord::Text(word)
                    if in_options && word.len() > 1 && word.starts_with(['-', '+']) =>
                {
                    if let Err(letter) = options.apply(word, builtin) {
                        return Err(usage(format!("{word}: invalid option `{letter}`")));
                    }
                }
                _ => {
                    in_options = false;
                    rest.push(one);
                }
            }
        }
        if builtin == "local" && self.execution.calls.is_empty() {
            return Err("can only be used in a function".into());
        }
        if options.functions {
            return self.declare_functions(&options, rest, builtin).await;
        }
        if rest.is_empty() || options.print {
            return self.print_declarations(builtin, options, rest).await;
        }
        let local = builtin == "local"
            || (matches!(builtin, "declare" | "typeset")
                && !self.execution.calls.is_empty()
                && !options.global);
        let mut status = 0;
        for one in rest {
            let setting = match one {
                ExpandedWord::Setting(setting) => Ok((setting, true)),
                ExpandedWord::Text(word) => parse_setting(&word),
            };
            let done = match setting {
                Ok((setting, has_value)) => {
                    self.declare_one(setting, has_value, &options, local).await
                }
                Err(message) => Err(message.into()),
            };
            match done {
                Ok(()) => {}
                Err(Stop::Failed { message, .. }) => {
                    self.report(&format!("{builtin}: {message}")).await;
                    status = 1;
                }
                Err(jump) => return Err(jump),
            }
        }
        Ok(status)
    }

    async fn declare_one(
        &mut self,
        setting: Setting,
        has_value: bool,
        options: &DeclareOptions,
        local: bool,
    ) -> Attempt {
        let name = setting.name.clone();
        if !is_name(&name) {
            return Err(AssignError::Name(name).to_string().into());
        }
        if local
            && self.variables.get_itself(&name).is_some_and(|variable| variable.readonly)
            && has_value
        {
            return Err(AssignError::ReadOnly(name).to_string().into());
        }
        if local {
            self.variables.shadow(&name);
        }
        let variable = match self.variables.attributes(&name) {
            Ok(variable) => variable,
            Err(error) => return Err(self.assign_failure(error)),
        };
        if options.map && !matches!(variable.value, Value::Map(_)) {
            variable.clear(true);
        }
        if options.list && !matches!(variable.value, Value::List(_)) {
            variable.make_list();
        }
        if let Some(integer) = options.integer {
            variable.integer = integer;
        }
        if let Some(fold) = options.fold {
            variable.fold = fold;
        }
        if options.reference == Some(false) {
            variable.reference = false;
        }
        if has_value {
            self.try_assign(setting).await?;
        }
        if let Ok(variable) = self.variables.attributes(&name) {
            variable.readonly |= options.readonly;
            if let Some(exported) = options.exported {
                variable.exported = exported;
            }
            if options.reference == Some(true) {
                variable.reference = true;
            }
        }
        Ok(())
    }

    async fn declare_functions(
        &mut self,
        options: &DeclareOptions,
        rest: Vec<ExpandedWord>,
        builtin: &str,
    ) -> Attempt<u8> {
        if builtin == "export" || options.readonly {
            return Ok(0);
        }
        let mut names = texts(rest);
        if names.is_empty() {
            names.extend(self.definitions.functions.keys().cloned());
        }
        names.sort_unstable();
        let mut status = 0;
        for name in names {
            if self.definitions.functions.contains_key(&name) {
                let before = if options.names_only { "" } else { "declare -f " };
                self.print(format!("{before}{name}\n")).await?;
            } else {
                status = 1;
            }
        }
        Ok(status)
    }

    async fn print_declarations(
        &mut self,
        builtin: &str,
        options: DeclareOptions,
        rest: Vec<ExpandedWord>,
    ) -> Attempt<u8> {
        let names = texts(rest);
        let all = names.is_empty();
        let mut status = 0;
        for name in if all { self.variables.names() } else { names } {
            let Some(variable) = self.variables.get_itself(&name) else {
                status = 1;
                self.report(&format!("{builtin}: {name}: not found")).await;
                continue;
            };
            let wanted = (!options.readonly || variable.readonly)
                && (options.exported != Some(true) || variable.exported)
                && (!options.list || matches!(variable.value, Value::List(_)))
                && (!options.map || matches!(variable.value, Value::Map(_)));
            if (!all || wanted)
                && let Some(line) = self.declaration(&name)
            {
                self.print(format!("{line}\n")).await?;
            }
        }
        Ok(status)
    }

    pub(super) async fn unset(&mut self, words: Vec<String>) -> Attempt<u8> {
        let given = Arguments::parse(words, "fnv")?;
        let functions = given.has('f');
        let variables = given.has('v');
        if functions && variables {
            return Err("cannot simultaneously unset a function and a variable".into());
        }
        let mut status = 0;
        for name in &given.words {
            let function = functions
                || (!variables
                    && self.variables.get_itself(name).is_none()
                    && self.definitions.functions.contains_key(name));
            if function {
                Arc::make_mut(&mut self.definitions.functions).remove(name);
                continue;
            }
            self.checkpoint().await?;
            if let Err(message) = self.unset_one(name, given.has('n')) {
                status = self.failed(1, &format!("unset: {message}")).await?;
            }
        }
        Ok(status)
    }

    pub(super) fn unset_one(&mut self, name: &str, reference: bool) -> Result<(), String> {
        let Some((array, index)) = name.strip_suffix(']').and_then(|text| text.split_once('['))
        else {
            if !is_name(name) {
                return Err(AssignError::Name(name.into()).to_string());
            }
            if reference && let Ok(variable) = self.variables.entry_itself(name) {
                variable.reference = false;
            }
            return self.variables.unset(name).map_err(|error| error.to_string());
        };
        // No clone of the value is kept, because removing an element would then copy the array.
        let is_map = match self.variables.get(array).map(|variable| &variable.value) {
            Some(Value::Map(_)) => true,
            Some(Value::List(_)) => false,
            _ => return Ok(()),
        };
        if is_map {
            let index = index.trim_matches(['"', '\'']);
            let variable = self.variables.entry(array).map_err(|error| error.to_string())?;
            variable.edit_map(|map| map.shift_remove(index));
            return Ok(());
        }
        if matches!(index, "@" | "*") {
            return self.variables.unset(array).map_err(|error| error.to_string());
        }
        let position = arithmetic::evaluate(index, self)?;
        let variable = self.variables.entry(array).map_err(|error| error.to_string())?;
        variable.edit_list(|list| {
            let from = if position < 0 { past(list) } else { 0 };
            list.remove(&position.saturating_add(from))
        });
        Ok(())
    }
}

impl DeclareOptions {
    /// Applies the option letters of one argument. Fails with the first invalid letter.
    fn apply(&mut self, word: &str, builtin: &str) -> Result<(), char> {
        let on = word.starts_with('-');
        for letter in word.chars().skip(1) {
            match letter {
                'a' => self.list = on,
                'A' => self.map = on,
                'i' => self.integer = Some(on),
                'l' => self.fold = Some(on.then_some(CaseFold::Lower)),
                'u' => self.fold = Some(on.then_some(CaseFold::Upper)),
                'n' if builtin == "export" => self.exported = Some(false),
                'n' => self.reference = Some(on),
                'r' => self.readonly = on,
                'x' => self.exported = Some(on),
                'p' => self.print = true,
                'f' => self.functions = true,
                'F' => {
                    self.functions = true;
                    self.names_only = true;
                }
                'g' => self.global = true,
                't' | 'I' => {}
                other => return Err(other),
            }
        }
        Ok(())
    }
}

/// Parses an argument that expanded to an assignment, such as `"$name=$value"`. The returned flag
/// is true if the argument contains a value.
fn parse_setting(word: &str) -> Result<(Setting, bool), String> {
    let (left, value) = match word.split_once('=') {
        Some((left, value)) => (left, Some(value)),
        None => (word, None),
    };
    let (left, append) = match left.strip_suffix('+') {
        Some(left) if value.is_some() => (left, true),
        _ => (left, false),
    };
    let (name, index) = split_index(left);
    let index = index.map(str::to_owned);
    if !is_name(name) {
        return Err(format!("`{word}': not a valid identifier"));
    }
    let setting = Setting {
        name: name.into(),
        index,
        append,
        value: SettingValue::Text(value.unwrap_or_default().into()),
    };
    Ok((setting, value.is_some()))
}
