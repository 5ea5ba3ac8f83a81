//! Expanded words and assignments.

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
