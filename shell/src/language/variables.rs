//! Variables: strings, indexed and associative arrays, their attributes, and the frames that
//! restore variables after a function or a command. Also the expanded words and assignments that
//! set them.

use std::collections::BTreeMap;
use std::collections::hash_map::{Entry, HashMap};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use indexmap::IndexMap;

use crate::ledger::{Charge, Full, Ledger, Text};

/// Number of bytes counted for a variable in addition to its name and its value.
const VARIABLE: u64 = 160;

/// Number of bytes counted for an element of an array in addition to its key and its value.
const ELEMENT: u64 = 24;

/// The reason why a variable cannot be set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AssignError {
    ReadOnly(String),
    Full(Full),
    Index(String),
    /// An index counts back beyond the first element of the array with this name.
    Subscript(String),
    Name(String),
    /// An arithmetic expression is invalid. The string contains the message.
    Arithmetic(String),
}

impl fmt::Display for AssignError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AssignError::ReadOnly(name) => write!(f, "{name}: readonly variable"),
            AssignError::Full(full) => {
                write!(f, "variables hold {full}: write to a file instead")
            }
            AssignError::Index(index) => write!(f, "[{index}]: bad array subscript"),
            AssignError::Subscript(name) => write!(f, "{name}: bad array subscript"),
            AssignError::Name(name) => write!(f, "`{name}': not a valid identifier"),
            AssignError::Arithmetic(message) => f.write_str(message),
        }
    }
}

impl From<Full> for AssignError {
    fn from(full: Full) -> AssignError {
        AssignError::Full(full)
    }
}

impl From<String> for AssignError {
    fn from(message: String) -> AssignError {
        AssignError::Arithmetic(message)
    }
}

/// The value of a variable.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Unset,
    Text(Text),
    List(Arc<Elements<BTreeMap<i64, Text>>>),
    Map(Arc<Elements<IndexMap<Text, Text>>>),
}

/// The elements of an array. Subshells share them until one of the shells changes the array, so
/// they are charged once.
#[derive(Clone, Debug)]
pub(crate) struct Elements<M> {
    all: M,
    /// The charge for the elements, excluding their keys and values.
    charge: Charge,
}

impl<M> Elements<M> {
    fn charge(&mut self, count: usize) {
        self.charge.set(ELEMENT * count as u64);
    }
}

impl<M> Deref for Elements<M> {
    type Target = M;
    fn deref(&self) -> &M {
        &self.all
    }
}

/// Case conversion by `declare -u` and `declare -l`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CaseFold {
    Upper,
    Lower,
}

/// A variable with its attributes.
#[derive(Clone, Debug)]
pub(crate) struct Variable {
    pub(crate) value: Value,
    pub(crate) exported: bool,
    pub(crate) readonly: bool,
    pub(crate) integer: bool,
    pub(crate) reference: bool,
    pub(crate) fold: Option<CaseFold>,
    /// The charge for the name and the attributes. A copy of the variable in a subshell is charged
    /// again.
    charge: Charge,
}

impl Variable {
    fn new(name: &str, ledger: &Arc<Ledger>) -> Variable {
        let mut charge = Charge::new(Arc::clone(ledger));
        charge.set(name.len() as u64 + VARIABLE);
        Variable {
            value: Value::Unset,
            exported: false,
            readonly: false,
            integer: false,
            reference: false,
            fold: None,
            charge,
        }
    }

    /// Replaces the value with an empty array.
    pub(crate) fn clear(&mut self, is_map: bool) {
        self.value = if is_map {
            Value::Map(self.elements(IndexMap::new(), 0))
        } else {
            Value::List(self.elements(BTreeMap::new(), 0))
        };
    }

    /// Creates the elements of an array and charges them.
    fn elements<M>(&self, all: M, count: usize) -> Arc<Elements<M>> {
        let mut elements = Elements { all, charge: self.charge.another() };
        elements.charge(count);
        Arc::new(elements)
    }

    /// Returns the value of an expansion without an index. For an array, this is element 0.
    pub(crate) fn text(&self) -> Option<&Text> {
        match &self.value {
            Value::Unset => None,
            Value::Text(text) => Some(text),
            Value::List(list) => list.get(&0),
            Value::Map(map) => map.get("0"),
        }
    }

    /// Returns all values in order.
    pub(crate) fn texts(&self) -> Vec<Text> {
        match &self.value {
            Value::Unset => Vec::new(),
            Value::Text(text) => vec![text.clone()],
            Value::List(list) => list.values().cloned().collect(),
            Value::Map(map) => map.values().cloned().collect(),
        }
    }

    /// Returns all indices or keys in order.
    pub(crate) fn keys(&self) -> Vec<String> {
        match &self.value {
            Value::Unset => Vec::new(),
            Value::Text(_) => vec!["0".into()],
            Value::List(list) => list.keys().map(i64::to_string).collect(),
            Value::Map(map) => map.keys().map(|key| key.to_string()).collect(),
        }
    }
}

/// Variables that a frame restores when it ends. `None` means that the variable did not exist.
type SavedVariables = Vec<(String, Option<Variable>)>;

/// The variables of one shell.
#[derive(Clone, Debug)]
pub(crate) struct Variables {
    all: HashMap<String, Variable>,
    frames: Vec<SavedVariables>,
    pub(crate) ledger: Arc<Ledger>,
}

/// Returns true if a string is a valid variable name.
pub(crate) fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

impl Variables {
    pub(crate) fn new(ledger: Arc<Ledger>) -> Variables {
        Variables { all: HashMap::new(), frames: Vec::new(), ledger }
    }

    /// Resolves references (`declare -n`) and returns the name of the variable that they refer to.
    pub(crate) fn resolve<'a>(&'a self, name: &'a str) -> &'a str {
        let mut name = name;
        for _ in 0..8 {
            match self.all.get(name) {
                Some(variable) if variable.reference => match variable.text() {
                    Some(text) if is_name(text) => name = text,
                    _ => return name,
                },
                _ => return name,
            }
        }
        name
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Variable> {
        self.all.get(self.resolve(name))
    }

    /// Returns a variable without resolving references.
    pub(crate) fn get_itself(&self, name: &str) -> Option<&Variable> {
        self.all.get(name)
    }

    pub(crate) fn text(&self, name: &str) -> Option<Text> {
        self.get(name)?.text().cloned()
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.all.keys().cloned().collect();
        names.sort_unstable();
        names
    }

    /// Returns the names and values of exported variables, sorted by name.
    pub(crate) fn exported(&self) -> Vec<(String, String)> {
        let mut pairs: Vec<_> = self
            .all
            .iter()
            .filter(|(_, variable)| variable.exported)
            .filter_map(|(name, variable)| Some((name.clone(), variable.text()?.to_string())))
            .collect();
        pairs.sort_unstable();
        pairs
    }

    /// Returns a variable for modification. Creates the variable if it is missing.
    pub(crate) fn entry(&mut self, name: &str) -> Result<&mut Variable, AssignError> {
        let name = self.resolve(name).to_owned();
        self.entry_itself(&name)
    }

    /// Returns a variable for modification, like [`Variables::entry`], but without resolving
    /// references.
    pub(crate) fn entry_itself(&mut self, name: &str) -> Result<&mut Variable, AssignError> {
        let variable = self.attributes(name)?;
        if variable.readonly { Err(AssignError::ReadOnly(name.into())) } else { Ok(variable) }
    }

    /// Returns a variable for modification of its attributes, even if the variable is readonly.
    pub(crate) fn attributes(&mut self, name: &str) -> Result<&mut Variable, AssignError> {
        if !is_name(name) {
            return Err(AssignError::Name(name.into()));
        }
        match self.all.entry(name.to_owned()) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(slot) => {
                let variable = Variable::new(name, &self.ledger);
                if !self.ledger.has_room(0) {
                    return Err(self.ledger.full(0).into());
                }
                Ok(slot.insert(variable))
            }
        }
    }

    /// Sets the value of a variable. For an array, sets element 0.
    pub(crate) fn set(&mut self, name: &str, text: impl Into<String>) -> Result<(), AssignError> {
        let ledger = self.ledger.clone();
        let variable = self.entry(name)?;
        let text = ledger.store(folded(variable.fold, text.into()))?;
        match &variable.value {
            Value::List(_) => variable.edit_list(|list| drop(list.insert(0, text))),
            Value::Map(_) => {
                let key = ledger.store("0".into())?;
                variable.edit_map(|map| drop(map.insert(key, text)));
            }
            Value::Unset | Value::Text(_) => variable.value = Value::Text(text),
        }
        Ok(())
    }

    /// Sets an element of an indexed array. A negative index counts from the end.
    pub(crate) fn set_at(
        &mut self,
        name: &str,
        index: i64,
        text: String,
    ) -> Result<(), AssignError> {
        let ledger = self.ledger.clone();
        let variable = self.entry(name)?;
        let text = ledger.store(folded(variable.fold, text))?;
        variable.edit_list(|list| {
            let position = if index < 0 { past(list).saturating_add(index) } else { index };
            if position < 0 {
                return Err(AssignError::Index(index.to_string()));
            }
            list.insert(position, text);
            Ok(())
        })
    }

    /// Sets an element of an associative array.
    pub(crate) fn set_key(
        &mut self,
        name: &str,
        key: String,
        text: String,
    ) -> Result<(), AssignError> {
        let ledger = self.ledger.clone();
        let variable = self.entry(name)?;
        let key = ledger.store(key)?;
        let text = ledger.store(folded(variable.fold, text))?;
        variable.edit_map(|map| drop(map.insert(key, text)));
        Ok(())
    }

    /// Replaces a variable's value with an indexed array.
    pub(crate) fn set_list(
        &mut self,
        name: &str,
        texts: impl IntoIterator<Item = String>,
    ) -> Result<(), AssignError> {
        let ledger = self.ledger.clone();
        let variable = self.entry(name)?;
        let fold = variable.fold;
        let mut list = BTreeMap::new();
        for (index, text) in (0_i64..).zip(texts) {
            list.insert(index, ledger.store(folded(fold, text))?);
        }
        let variable = self.entry(name)?;
        let count = list.len();
        variable.value = Value::List(variable.elements(list, count));
        Ok(())
    }

    pub(crate) fn unset(&mut self, name: &str) -> Result<(), AssignError> {
        let name = self.resolve(name).to_owned();
        match self.all.get(&name) {
            Some(variable) if variable.readonly => Err(AssignError::ReadOnly(name)),
            _ => {
                self.all.remove(&name);
                Ok(())
            }
        }
    }

    /// Starts a frame. Variables saved in it are restored when it ends.
    pub(crate) fn push_frame(&mut self) {
        self.frames.push(Vec::new());
    }

    /// Ends the innermost frame and restores its variables.
    pub(crate) fn pop_frame(&mut self) {
        for (name, saved) in self.frames.pop().unwrap_or_default().into_iter().rev() {
            match saved {
                Some(variable) => self.all.insert(name, variable),
                None => self.all.remove(&name),
            };
        }
    }

    /// Saves a variable in the innermost frame and removes it. Returns false if there is no frame,
    /// or if the variable has already been saved in it.
    pub(crate) fn shadow(&mut self, name: &str) -> bool {
        let Some(frame) = self.frames.last_mut() else { return false };
        if frame.iter().any(|(saved, _)| saved == name) {
            return false;
        }
        let old = self.all.remove(name);
        frame.push((name.to_owned(), old));
        true
    }

    /// Saves a copy of a variable in the innermost frame.
    pub(crate) fn save(&mut self, name: &str) {
        let old = self.all.get(name).cloned();
        if let Some(frame) = self.frames.last_mut() {
            frame.push((name.to_owned(), old));
        }
    }
}

impl Variable {
    /// Converts the value to an indexed array. A string becomes element 0.
    pub(crate) fn make_list(&mut self) {
        self.edit_list(|_| ());
    }

    /// Edits the value as an indexed array.
    pub(crate) fn edit_list<T>(&mut self, edit: impl FnOnce(&mut BTreeMap<i64, Text>) -> T) -> T {
        let mut list = match std::mem::replace(&mut self.value, Value::Unset) {
            Value::List(list) => list,
            Value::Unset => self.elements(BTreeMap::new(), 0),
            Value::Text(text) => self.elements(BTreeMap::from([(0, text)]), 1),
            Value::Map(map) => {
                let first = map.get("0").cloned();
                self.elements(first.into_iter().map(|text| (0, text)).collect(), 1)
            }
        };
        let elements = Arc::make_mut(&mut list);
        let result = edit(&mut elements.all);
        elements.charge(elements.all.len());
        self.value = Value::List(list);
        result
    }

    /// Edits the value as an associative array.
    pub(crate) fn edit_map<T>(&mut self, edit: impl FnOnce(&mut IndexMap<Text, Text>) -> T) -> T {
        let mut map = match std::mem::replace(&mut self.value, Value::Unset) {
            Value::Map(map) => map,
            _ => self.elements(IndexMap::new(), 0),
        };
        let elements = Arc::make_mut(&mut map);
        let result = edit(&mut elements.all);
        elements.charge(elements.all.len());
        self.value = Value::Map(map);
        result
    }
}

/// Returns the index after the last element of an indexed array.
pub(crate) fn past(list: &BTreeMap<i64, Text>) -> i64 {
    list.last_key_value().map_or(0, |(last, _)| last.saturating_add(1))
}

/// Applies a case conversion.
fn folded(fold: Option<CaseFold>, text: String) -> String {
    match fold {
        None => text,
        Some(CaseFold::Upper) => text.to_uppercase(),
        Some(CaseFold::Lower) => text.to_lowercase(),
    }
}

/// A word of a command after expansion.
#[derive(Clone, Debug)]
pub(crate) enum ExpandedWord {
    Text(String),
    /// An assignment that is passed as an argument, for example to `declare`.
    Setting(Setting),
}

impl ExpandedWord {
    /// Returns the size of the word's text or of the assigned values, in bytes.
    pub(crate) fn size(&self) -> u64 {
        match self {
            ExpandedWord::Text(text) => text.len() as u64,
            ExpandedWord::Setting(setting) => match &setting.value {
                SettingValue::Text(text) => text.len() as u64,
                SettingValue::Array(elements) => {
                    elements.iter().map(|element| element.text.len() as u64).sum()
                }
            },
        }
    }
}

/// An assignment after expansion.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    pub(crate) name: String,
    pub(crate) index: Option<String>,
    pub(crate) append: bool,
    pub(crate) value: SettingValue,
}

/// The value of an assignment.
#[derive(Clone, Debug)]
pub(crate) enum SettingValue {
    Text(String),
    Array(Vec<ArrayElement>),
}

/// An element of an assigned array.
#[derive(Clone, Debug)]
pub(crate) struct ArrayElement {
    pub(crate) index: Option<String>,
    pub(crate) append: bool,
    pub(crate) text: String,
}

impl Setting {
    /// Creates the assignment of a string to a variable, or to an array element if `target` has an
    /// index, as in `name[index]`.
    pub(crate) fn text(target: &str, text: String) -> Setting {
        let (name, index) = split_index(target);
        Setting {
            name: name.into(),
            index: index.map(str::to_owned),
            append: false,
            value: SettingValue::Text(text),
        }
    }
}

/// Splits `name[index]` into its name and index. Without an index, the whole string is the name.
pub(crate) fn split_index(target: &str) -> (&str, Option<&str>) {
    match target.strip_suffix(']').and_then(|text| text.split_once('[')) {
        Some((name, index)) => (name, Some(index)),
        None => (target, None),
    }
}

/// Returns the words as plain strings. An assignment becomes `name=value`, or only its name if its
/// value is an array.
pub(crate) fn texts(words: Vec<ExpandedWord>) -> Vec<String> {
    words
        .into_iter()
        .map(|word| match word {
            ExpandedWord::Text(text) => text,
            ExpandedWord::Setting(setting) => match setting.value {
                SettingValue::Text(text) => format!("{}={text}", setting.name),
                SettingValue::Array(_) => setting.name,
            },
        })
        .collect()
}
