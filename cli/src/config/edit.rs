//! Edits settings files. Comments and all other settings in a file stay as they are.

use std::path::{Path, PathBuf};

use toml_edit::{DocumentMut, Item, TableLike, Value};

use super::file::{self, Source};
use super::{Config, File, Kind, Layer, PROJECT_FILE, Places, above, regular_file, secret, table};
use crate::fault::Fault;
use crate::files;

/// A settings file that a command changes.
pub(crate) struct SettingsFile {
    path: PathBuf,
    is_project: bool,
    document: DocumentMut,
}

/// Returns the path of the user file.
///
/// # Errors
/// If the user has no home directory.
pub(crate) fn user_path() -> Result<PathBuf, Fault> {
    Places::of_user().user_file.ok_or_else(|| {
        Fault::configuration("there is no home directory for the user file")
            .hint("set `HOME`, or `XDG_CONFIG_HOME`")
    })
}

/// Returns the path of the project file of a workdir: the one in the folder, the nearest one above
/// it, or a new one in the folder.
pub(crate) fn project_path(workdir: &Path) -> PathBuf {
    let own = workdir.join(PROJECT_FILE);
    match above(workdir) {
        Some(above) if own.symlink_metadata().is_err() => above.join(PROJECT_FILE),
        _ => own,
    }
}

impl SettingsFile {
    /// Opens the user file. A missing file counts as empty.
    ///
    /// # Errors
    /// If the file cannot be read or is not TOML, or the user has no home directory.
    pub(crate) fn of_user() -> Result<SettingsFile, Fault> {
        let path = user_path()?;
        let bytes = regular_file::of_user(&path, regular_file::LARGEST);
        SettingsFile::parse(path, false, bytes)
    }

    /// Opens the project file of a workdir. A missing file counts as empty.
    ///
    /// # Errors
    /// If the file cannot be read, is a link or is not TOML.
    pub(crate) fn of_project(workdir: &Path) -> Result<SettingsFile, Fault> {
        let path = project_path(workdir);
        let folder = path.parent().unwrap_or(workdir);
        let bytes = regular_file::in_folder(folder, PROJECT_FILE, regular_file::LARGEST);
        SettingsFile::parse(path, true, bytes)
    }

    fn parse(
        path: PathBuf,
        is_project: bool,
        bytes: Result<Option<Vec<u8>>, String>,
    ) -> Result<SettingsFile, Fault> {
        let bytes = bytes.map_err(|why| file::unreadable(&path, &why))?.unwrap_or_default();
        let text = file::text(bytes, &path)?;
        let document = text.parse().map_err(|error: toml_edit::TomlError| {
            file::unreadable(&path, error.to_string().trim_end())
        })?;
        Ok(SettingsFile { path, is_project, document })
    }

    /// Returns the path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Sets a setting to a value, which is written as in a variable.
    ///
    /// # Errors
    /// If the key is unknown, if the file may not set it, or if the value is invalid or a secret.
    pub(crate) fn set(&mut self, key: &str, text: &str) -> Result<(), Fault> {
        if secret::looks_like_key(text) {
            let message = format!("the value for `{key}` looks like an API key");
            return Err(Fault::usage(message).hint(secret::KEPT_ELSEWHERE));
        }
        let folder = std::env::current_dir().unwrap_or_default();
        let Some(value) = table::value_in_file(key, text, &folder) else {
            return Err(unknown(key));
        };
        if self.is_project && file::kind(key) == Some(Kind::Never) {
            return Err(Fault::usage(format!("a project file may not set `{key}`"))
                .hint("without `--project`, the user file sets it"));
        }
        let value = value.map_err(|why| Fault::usage(format!("the value for `{key}`: {why}")))?;
        self.check(key, &value)?;
        let value = value.to_string().parse::<Value>();
        self.put(key, value.map_err(|error| Fault::failed(error.to_string()))?)
    }

    /// Checks that the file can contain the value.
    fn check(&self, key: &str, value: &toml::Value) -> Result<(), Fault> {
        let table = toml::Table::from_iter([(key.to_owned(), value.clone())]);
        let layer = Layer::of_table(&table, &Source { path: &self.path, text: "" })?;
        let (project, file) = (File::default(), File { path: self.path.clone(), layer });
        Config::of_layers(&[], &Layer::default(), &project, &file, &Places::default())
            .names_no_secret()
    }

    /// Sets a key to a value. Comments stay.
    ///
    /// # Errors
    /// If the first part of a dotted key is not a table in the file.
    pub(crate) fn put(&mut self, key: &str, mut value: Value) -> Result<(), Fault> {
        let (table, name): (&mut dyn TableLike, &str) = match key.split_once('.') {
            None => (self.document.as_table_mut(), key),
            Some((group, name)) => {
                let item = self.document.entry(group).or_insert_with(toml_edit::table);
                let table = item.as_table_like_mut().ok_or_else(|| {
                    Fault::configuration(format!(
                        "`{group}` of `{}` is not a table",
                        self.path.display()
                    ))
                })?;
                (table, name)
            }
        };
        // The comments above a key belong to the key, and a comment behind it to its value.
        match table.get_mut(name) {
            Some(item) => {
                if let Some(previous) = item.as_value() {
                    *value.decor_mut() = previous.decor().clone();
                }
                *item = Item::Value(value);
            }
            None => drop(table.insert(name, Item::Value(value))),
        }
        Ok(())
    }

    /// Removes a key, also one that is not the key of a setting. Returns false if the file does not
    /// contain it.
    pub(crate) fn remove(&mut self, key: &str) -> bool {
        if self.document.remove(key).is_some() {
            return true;
        }
        let Some((group, name)) = key.split_once('.') else { return false };
        let table = self.document.get_mut(group).and_then(Item::as_table_like_mut);
        table.and_then(|table| table.remove(name)).is_some()
    }

    /// Writes the file. Only the user can read a new user file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn save(&self) -> Result<(), Fault> {
        let (path, text) = (&self.path, self.document.to_string());
        let written = if path.exists() {
            files::replace(path, &text)
        } else if self.is_project {
            files::create(path, &text)
        } else {
            files::write_private(path, text.as_bytes())
        };
        written.map_err(|error| {
            Fault::configuration(format!("failed to write `{}`: {error}", path.display()))
        })
    }
}

/// Returns the fault of an unknown key on the command line.
pub(crate) fn unknown(key: &str) -> Fault {
    let fault = Fault::usage(format!("unknown setting `{key}`"));
    if key.to_ascii_lowercase().ends_with("key") {
        return fault.hint(secret::KEPT_ELSEWHERE);
    }
    match file::nearest(key) {
        Some(name) => fault.hint(format!("did you mean `{name}`?")),
        None => fault.hint("`wattle config show` lists the settings"),
    }
}
