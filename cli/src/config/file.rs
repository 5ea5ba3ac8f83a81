//! The two files: what they may set, and which directories are trusted.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::{File, Guard, KEYS, Layer, Value};
use crate::fault::Fault;

/// The project file's name in the root.
const PROJECT_FILE: &str = "wattle.toml";

/// The key of the user file that lists directories whose project files may set everything.
const TRUSTED: &str = "trusted";

/// Reads the user file: what it sets, and the directories that it trusts.
pub(super) fn user(path: &Path) -> Result<(File, Vec<PathBuf>), Fault> {
    let Some(mut table) = read(path)? else { return Ok((File::default(), Vec::new())) };
    let trusted = match table.remove(TRUSTED) {
        None => Vec::new(),
        Some(list) => Vec::from_toml(&list, path.parent().unwrap_or(Path::new("")))
            .map_err(|why| Fault::configuration(format!("the key `{TRUSTED}` of `{}`: {why}", path.display())))?,
    };
    known(&table, path)?;
    Ok((File { layer: Layer::of_table(&table, path)?, path: path.to_owned() }, trusted))
}

/// Reads the project file of a root, and holds it against what it may set.
pub(super) fn project(root: &Path, trusted: &[PathBuf], user_file: Option<&Path>) -> Result<File, Fault> {
    let path = root.join(PROJECT_FILE);
    let Some(table) = read(&path)? else { return Ok(File::default()) };
    let shown = path.display();
    if let Some(key) = table.keys().find(|key| *key == TRUSTED || guard(key) == Some(Guard::User)) {
        let fault = Fault::configuration(format!("the project file `{shown}` may not set `{key}`"));
        return Err(fault.hint("set it in the user file, by a flag or by a variable"));
    }
    known(&table, &path)?;
    let guarded: Vec<String> =
        table.keys().filter(|key| guard(key) == Some(Guard::Trusted)).map(|key| format!("`{key}`")).collect();
    if !guarded.is_empty() && !is_trusted(root, trusted) {
        let message =
            format!("the project file `{shown}` sets {}, and its directory is not trusted", guarded.join(", "));
        let directory = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        let directory = toml::Value::from(directory.to_string_lossy().into_owned());
        let hint = match user_file {
            Some(user) => format!("if you trust that file, add `{TRUSTED} = [{directory}]` to `{}`", user.display()),
            None => "endpoints, keys and grants are set by flags or variables".to_owned(),
        };
        return Err(Fault::configuration(message).hint(hint));
    }
    Ok(File { layer: Layer::of_table(&table, &path)?, path })
}

/// Whether the user trusts that directory or one above it.
fn is_trusted(root: &Path, trusted: &[PathBuf]) -> bool {
    let Ok(root) = root.canonicalize() else { return false };
    trusted.iter().filter_map(|path| path.canonicalize().ok()).any(|path| root.starts_with(path))
}

fn guard(key: &str) -> Option<Guard> {
    KEYS.iter().find(|(name, _)| *name == key).map(|(_, guard)| *guard)
}

/// Gives the table of a file; `None` where there is none.
fn read(path: &Path) -> Result<Option<toml::Table>, Fault> {
    let failed = |why: &str| Fault::configuration(format!("failed to read `{}`: {why}", path.display()));
    match std::fs::metadata(path) {
        Ok(what) if what.is_file() => {}
        Ok(_) => return Err(failed("it is not a plain file")),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
        Err(error) => return Err(failed(&error.to_string())),
    }
    let bytes = std::fs::read(path).map_err(|error| failed(&error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|_| failed("it is not UTF-8"))?;
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| failed(error.to_string().trim_end()))?;
    Ok(Some(table.into_iter().flat_map(|(key, value)| dotted(key, value)).collect()))
}

/// Names the keys of a table by dots, where the table's own name is no key: `calls` in `[ai]` is `ai.calls`.
fn dotted(key: String, value: toml::Value) -> Vec<(String, toml::Value)> {
    match value {
        toml::Value::Table(table) if guard(&key).is_none() && !table.is_empty() => {
            table.into_iter().map(|(name, value)| (format!("{key}.{name}"), value)).collect()
        }
        value => vec![(key, value)],
    }
}

/// Refuses keys that there are not.
fn known(table: &toml::Table, path: &Path) -> Result<(), Fault> {
    let Some(unknown) = table.keys().find(|key| guard(key).is_none()) else { return Ok(()) };
    let fault = Fault::configuration(format!("unknown key `{unknown}` in `{}`", path.display()));
    let nearest = KEYS
        .iter()
        .map(|(name, _)| *name)
        .max_by(|a, b| strsim::jaro_winkler(unknown, a).total_cmp(&strsim::jaro_winkler(unknown, b)));
    Err(match nearest {
        Some(name) if strsim::jaro_winkler(unknown, name) > 0.7 => fault.hint(format!("did you mean `{name}`?")),
        _ => fault.hint(format!("the keys are {}", KEYS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", "))),
    })
}
