//! The API keys that `wattle init` keeps for the user. They are in a file of the state folder that
//! only the user can read, and that no program can. An environment variable of the same name takes
//! precedence.

use std::collections::BTreeMap;
use std::path::PathBuf;

use parking_lot::Mutex;

use crate::config::{Places, regular_file};
use crate::fault::Fault;
use crate::{files, output};

/// The keys, by the names of their variables. `None` until they are needed.
static KEYS: Mutex<Option<BTreeMap<String, String>>> = Mutex::new(None);

/// Returns the path of the file. Returns `None` if the user has no home directory.
pub(crate) fn path() -> Option<PathBuf> {
    Places::of_user().state.map(|folder| folder.join("api-keys.toml"))
}

/// Returns the key that is kept for a variable.
pub(crate) fn kept(variable: &str) -> Option<String> {
    let mut keys = KEYS.lock();
    keys.get_or_insert_with(|| {
        // Without the keys, a command fails only if it needs one.
        read().unwrap_or_else(|fault| {
            output::warn(fault.message());
            BTreeMap::new()
        })
    })
    .get(variable)
    .cloned()
}

/// Returns the value of an environment variable, or else the key that is kept for it. Returns `None`
/// if both are absent or the variable is not UTF-8.
pub(crate) fn variable(name: &str) -> Option<String> {
    match std::env::var(name) {
        Ok(value) if !value.trim().is_empty() => Some(value),
        Err(std::env::VarError::NotUnicode(_)) => None,
        _ => kept(name),
    }
}

/// Makes this process use a key for a variable.
pub(crate) fn hold(variable: &str, key: &str) {
    let _ = kept(variable);
    KEYS.lock().get_or_insert_default().insert(variable.to_owned(), key.to_owned());
}

/// Writes a key to the file.
///
/// # Errors
/// If the file cannot be read or written, or the user has no home directory.
pub(crate) fn keep(variable: &str, key: &str) -> Result<PathBuf, Fault> {
    let path = path().ok_or_else(|| {
        Fault::configuration("there is no home directory for the file of keys")
            .hint("set `HOME`, or `XDG_STATE_HOME`")
    })?;
    let mut keys = read()?;
    keys.insert(variable.to_owned(), key.to_owned());
    let text = toml::to_string(&keys).map_err(Fault::failed)?;
    files::write_private(&path, text.as_bytes()).map_err(|error| {
        Fault::configuration(format!("failed to write `{}`: {error}", path.display()))
    })?;
    Ok(path)
}

fn read() -> Result<BTreeMap<String, String>, Fault> {
    let Some(path) = path() else { return Ok(BTreeMap::new()) };
    // The parser would quote the line of a fault, and with it a key.
    let failed = |why: &str| {
        Fault::configuration(format!("failed to read the keys in `{}`: {why}", path.display()))
    };
    let bytes = regular_file::of_user(&path, regular_file::LARGEST).map_err(|why| failed(&why))?;
    let text = String::from_utf8(bytes.unwrap_or_default());
    let text = text.map_err(|_| failed("it is not UTF-8"))?;
    toml::from_str(&text).map_err(|_| failed("a line is not `VARIABLE = \"KEY\"`"))
}
