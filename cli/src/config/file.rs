//! Reads settings files.

use std::path::Path;

use toml::de::DeTable;
use wattle_agent::host::rt::{decode_text, truncate};

use super::{File, KEYS, Kind, Layer, Places, regular_file};
use crate::fault::Fault;

/// Reads the user file.
///
/// # Errors
/// If the file cannot be read, or contains an unknown key or an invalid value.
pub(super) fn user(places: &Places) -> Result<File, Fault> {
    let Some(path) = &places.user_file else { return Ok(File::default()) };
    let bytes = regular_file::of_user(path, regular_file::LARGEST);
    let Some(bytes) = bytes.map_err(|why| unreadable(path, &why))? else {
        return Ok(File::default());
    };
    let text = text(bytes, path)?;
    let source = Source { path, text: &text };
    let table = source.table()?;
    if table.contains_key("trusted") {
        let message =
            format!("the key `trusted` of `{}` is not a setting any more", path.display());
        return Err(Fault::configuration(message).hint(
            "remove it, and trust each folder by `wattle trust DIR`, which pins what the project \
             file sets",
        ));
    }
    source.check_keys(&table)?;
    Ok(File { layer: Layer::of_table(&table, &source)?, path: path.clone() })
}

/// Returns the error for a file that cannot be read.
pub(super) fn unreadable(path: &Path, why: &str) -> Fault {
    Fault::configuration(format!("failed to read `{}`: {why}", path.display()))
}

/// Maximum length of a TOML parser message, in characters. A longer message, which quotes a long
/// line of the file, is printed without the quotation.
const EXCERPT: usize = 400;

/// Decodes the content of a file.
///
/// # Errors
/// If the bytes are not UTF-8.
pub(super) fn text(bytes: Vec<u8>, path: &Path) -> Result<String, Fault> {
    decode_text(bytes).map_err(|_| unreadable(path, "it is not UTF-8"))
}

/// Flattens a table into dotted keys, such as `ai.calls` for `calls` in `[ai]`. A table whose
/// dotted name is the key of a setting is not flattened.
fn dotted(key: String, value: toml::Value) -> Vec<(String, toml::Value)> {
    match value {
        toml::Value::Table(table)
            if kind(&key).is_none() && (!table.is_empty() || is_group(&key)) =>
        {
            table.into_iter().map(|(name, value)| (format!("{key}.{name}"), value)).collect()
        }
        value => vec![(key, value)],
    }
}

/// Returns true if the keys of some settings are in the table `name`.
fn is_group(name: &str) -> bool {
    KEYS.iter().any(|own| own.name.split_once('.').is_some_and(|(group, _)| group == name))
}

/// Returns the class of the setting with this key, or `None` if the key is unknown.
pub(super) fn kind(key: &str) -> Option<Kind> {
    KEYS.iter().find(|own| own.name == key).map(|own| own.kind)
}

/// Returns the key that the user may have meant by an unknown one.
pub(super) fn nearest(unknown: &str) -> Option<&'static str> {
    let names = || KEYS.iter().map(|own| own.name);
    // The key may be right, but in the wrong table.
    let plain = unknown.rsplit('.').next().unwrap_or(unknown);
    let alike = |name: &&str| strsim::jaro_winkler(unknown, name);
    let nearest =
        names().max_by(|a, b| alike(a).total_cmp(&alike(b))).filter(|name| alike(name) > 0.7);
    names().find(|name| *name == plain).or(nearest)
}

/// Maximum length of an unknown key in a message, in characters.
const SHOWN_KEY: usize = 80;

/// Maximum number of unknown keys in a message.
const SHOWN_KEYS: usize = 5;

/// The path and the text of a settings file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source<'a> {
    pub(super) path: &'a Path,
    pub(super) text: &'a str,
}

impl Source<'_> {
    /// Parses the text and flattens its tables into dotted keys. The TOML parser limits the nesting
    /// of values.
    ///
    /// # Errors
    /// If the text is not TOML.
    pub(super) fn table(&self) -> Result<toml::Table, Fault> {
        let table: toml::Table = self.text.parse().map_err(|error: toml::de::Error| {
            let whole = error.to_string();
            if whole.chars().count() > EXCERPT {
                unreadable(self.path, error.message())
            } else {
                unreadable(self.path, whole.trim_end())
            }
        })?;
        Ok(table.into_iter().flat_map(|(key, value)| dotted(key, value)).collect())
    }

    /// Checks that all keys of the file's table are known.
    ///
    /// # Errors
    /// If there are unknown keys. The error names their lines and the nearest known keys.
    pub(super) fn check_keys(&self, table: &toml::Table) -> Result<(), Fault> {
        let mut unknown: Vec<(String, &String)> = table
            .keys()
            .filter(|key| kind(key).is_none())
            .map(|key| (self.place_of(key), key))
            .collect();
        unknown.sort_by_key(|(_, key)| self.line_of(key));
        let path = self.path.display();
        match unknown.as_slice() {
            [] => Ok(()),
            [(place, key)] => {
                let shown = truncate(key, SHOWN_KEY);
                let fault =
                    Fault::configuration(format!("unknown key `{shown}` in `{path}`{place}"));
                Err(match nearest(&shown) {
                    Some(name) => fault.hint(format!("did you mean `{name}`?")),
                    None => fault.hint("docs/configuration.md lists the keys"),
                })
            }
            unknown => {
                let line = |(place, key): &(String, &String)| {
                    let shown = truncate(key, SHOWN_KEY);
                    let near = nearest(&shown);
                    let near = near.map(|name| format!(": did you mean `{name}`?"));
                    format!("\n  `{shown}`{place}{}", near.unwrap_or_default())
                };
                let lines: String = unknown.iter().take(SHOWN_KEYS).map(line).collect();
                let message = format!("{} unknown keys in `{path}`:{lines}", unknown.len());
                Err(Fault::configuration(message).hint("docs/configuration.md lists the keys"))
            }
        }
    }

    /// Returns the fault of the value of a key.
    pub(super) fn wrong_value(&self, key: &str, why: &str) -> Fault {
        let (path, place) = (self.path.display(), self.place_of(key));
        Fault::configuration(format!("the key `{key}` of `{path}`{place}: {why}"))
    }

    /// Returns the line of a dotted key, for a message: `, line 3`. Returns an empty string if the
    /// line is not known.
    fn place_of(&self, key: &str) -> String {
        self.line_of(key).map(|line| format!(", line {line}")).unwrap_or_default()
    }

    /// Returns the number of the line that contains a dotted key.
    fn line_of(&self, key: &str) -> Option<usize> {
        let table = DeTable::parse(self.text).ok()?;
        let start = table.get_ref().iter().find_map(|(name, value)| {
            let below = key.strip_prefix(name.get_ref().as_ref())?;
            let Some(below) = below.strip_prefix('.') else {
                return below.is_empty().then(|| name.span().start);
            };
            let inner = value.get_ref().as_table()?.iter();
            inner
                .map(|(name, _)| name)
                .find(|name| name.get_ref() == below)
                .map(|name| name.span().start)
        })?;
        Some(self.text.get(..start)?.matches('\n').count() + 1)
    }
}
