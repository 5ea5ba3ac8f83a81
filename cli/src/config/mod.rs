//! The settings. Each setting takes its value from the first layer that sets it, and records that
//! layer.
//!
//! The layers are, in this order: flags, environment variables (`WATTLE_…`), the project file
//! (`wattle.toml` in the workdir or above it), the user file (`wattle/wattle.toml` in the XDG config
//! directory), and the defaults.

mod class;
mod classes;
mod content;
mod edit;
mod file;
mod flag;
#[cfg(test)]
mod manual;
mod mcp;
mod model;
mod places;
mod policy;
mod privilege;
mod project;
pub(crate) mod regular_file;
mod secret;
mod store;
mod table;
mod value;

use std::fmt;
use std::path::PathBuf;

use serde_json::Value as Json;
use wattle_agent::host::capability::egress::Url;

use crate::fault::Fault;
use crate::output;

pub(crate) use class::{Kind, RETRY_IN_TERMINAL};
pub(crate) use classes::ModelClass;
pub(crate) use content::Content;
pub(crate) use edit::{SettingsFile, project_path, unknown, user_path};
pub(crate) use flag::Group;
pub(crate) use mcp::McpServers;
pub(crate) use model::Temperature;
pub(crate) use places::Places;
pub(crate) use project::{
    PROJECT_FILE, Project, Request, above, repository_folders, untrusted_settings,
};
pub(crate) use secret::{KEPT_ELSEWHERE, SecretEntry, looks_like_key};
pub(crate) use store::{BlobLocation, StoreLocation, TraceLocation};
pub(crate) use table::{Config, Layer, VARIABLES, keys, options};
pub(crate) use value::{Sandbox, SearchEngine, Value};
pub(crate) use wattle_agent::host::Timeout;

use table::KEYS;
use value::KeepTime;

/// A value with the layer that it comes from.
#[derive(Clone, Debug)]
pub(crate) struct Setting<T> {
    /// The value.
    pub(crate) value: T,
    /// The layer that the value comes from.
    pub(crate) origin: Origin,
}

/// The layer that a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A flag.
    Flag,
    /// An environment variable. The string contains its name.
    Environment(&'static str),
    /// The project file.
    Project(PathBuf),
    /// The user file.
    User(PathBuf),
    /// No layer: the value is the default.
    Default,
}

impl Origin {
    /// Returns the layer's name.
    pub(crate) fn layer(&self) -> &'static str {
        match self {
            Origin::Flag => "flag",
            Origin::Environment(_) => "environment",
            Origin::Project(_) => "project",
            Origin::User(_) => "user",
            Origin::Default => "default",
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Flag => f.write_str("a flag"),
            Origin::Environment(variable) => f.write_str(variable),
            Origin::Project(path) => write!(f, "project file {}", path.display()),
            Origin::User(path) => write!(f, "user file {}", path.display()),
            Origin::Default => f.write_str("default"),
        }
    }
}

/// A setting as `wattle config show` prints it.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// The key.
    pub(crate) name: &'static str,
    /// The value, or null if none is set.
    pub(crate) value: Json,
    /// The layer that the value comes from.
    pub(crate) origin: Origin,
    /// If true, the value is a path, or a list of paths.
    pub(crate) is_path: bool,
}

impl Row {
    /// Returns the value with absolute paths.
    fn absolute(self) -> Json {
        let absolute = |path: Json| match path.as_str().map(std::path::absolute) {
            Some(Ok(path)) => Json::from(path.to_string_lossy()),
            _ => path,
        };
        match self.value {
            Json::Array(paths) if self.is_path => paths.into_iter().map(absolute).collect(),
            path if self.is_path => absolute(path),
            value => value,
        }
    }
}

/// The settings of a file. They are empty if the file is absent.
#[derive(Clone, Debug, Default)]
pub(crate) struct File {
    path: PathBuf,
    layer: Layer,
}

impl Config {
    /// Gathers the settings from all layers. Flags after the command take precedence over flags
    /// before it. `admit` decides which settings of a project file take effect.
    ///
    /// # Errors
    /// If an environment variable has an invalid value, or if a file contains an unknown key, an
    /// invalid value or a key that it may not set.
    pub(crate) fn gather(
        flags: &[Layer],
        admit: impl FnOnce(Project, &Places) -> Result<File, Fault>,
    ) -> Result<Config, Fault> {
        let places = Places::of_user();
        let environment = Layer::of_environment(&|name| std::env::var_os(name))?;
        let user = file::user(&places)?;
        let root = root(flags, &environment, &user);
        let project = Project::read(&root, &user.layer, &places)?;
        let project = project.map(|project| admit(project, &places)).transpose()?;
        let project = project.unwrap_or_default();
        let config = Config::of_layers(flags, &environment, &project, &user, &places);
        config.names_no_secret()?;
        Ok(config)
    }

    /// Gathers the settings for a command that changes nothing: a file with a fault has no effect.
    /// `admit` returns the settings of a project file that take effect, and the fault if these are not
    /// all. Returns the faults of the files, too.
    ///
    /// # Errors
    /// If an environment variable has an invalid value, or a setting contains a secret in place of its
    /// name.
    pub(crate) fn gather_in_part(
        flags: &[Layer],
        admit: impl FnOnce(Project, &Places) -> (File, Option<Fault>),
    ) -> Result<(Config, Vec<Fault>), Fault> {
        let places = Places::of_user();
        let environment = Layer::of_environment(&|name| std::env::var_os(name))?;
        let mut faults = Vec::new();
        let user = file::user(&places).unwrap_or_else(|fault| {
            faults.push(fault);
            File::default()
        });
        let root = root(flags, &environment, &user);
        let project = match Project::read(&root, &user.layer, &places) {
            Ok(project) => project.map(|project| admit(project, &places)),
            Err(fault) => Some((File::default(), Some(fault))),
        };
        let (project, fault) = project.unwrap_or_default();
        faults.extend(fault);
        let config = Config::of_layers(flags, &environment, &project, &user, &places);
        // The settings may be printed.
        config.names_no_secret()?;
        Ok((config, faults))
    }

    /// Reads the project file of `folder`, or of the workdir that the settings name. Returns the
    /// folder, and the project file if there is one. A user file with a fault has no effect.
    ///
    /// # Errors
    /// If an environment variable has an invalid value, or if the project file contains an unknown
    /// key, an invalid value or a key that it may not set.
    pub(crate) fn project(
        folder: Option<PathBuf>,
        flags: &[Layer],
    ) -> Result<(PathBuf, Option<Project>), Fault> {
        let places = Places::of_user();
        let (workdir, user) = workdir_and_user(flags, &places)?;
        let folder = folder.unwrap_or(workdir);
        let project = Project::read(&folder, &user.layer, &places)?;
        Ok((folder, project))
    }

    /// Returns the workdir that the settings name.
    ///
    /// # Errors
    /// If an environment variable has an invalid value.
    pub(crate) fn workdir(flags: &[Layer]) -> Result<PathBuf, Fault> {
        workdir_and_user(flags, &Places::of_user()).map(|(workdir, _)| workdir)
    }

    /// Checks that no setting contains a key in place of a variable's name, or a user name or
    /// password in a URL. The error omits the value, because secrets are never printed.
    fn names_no_secret(&self) -> Result<(), Fault> {
        let models = || {
            let classes = self.models.value.0.iter();
            classes.map(|(name, class)| (format!("models.{name}"), class, &self.models.origin))
        };
        let own = |key: &str, setting: &Setting<Option<String>>| {
            (key.to_owned(), setting.value.clone(), setting.origin.clone())
        };
        let search_key = Setting {
            value: Some(self.search_key_env.value.clone()),
            origin: self.search_key_env.origin.clone(),
        };
        let names = [
            own("api_key_env", &self.api_key_env),
            own("search.key_env", &search_key),
            own("git.token_env", &self.git_token_env),
            own("image.api_key_env", &self.image_api_key_env),
        ];
        let of_models =
            models().map(|(key, class, from)| (key, class.api_key_env.clone(), from.clone()));
        for (key, name, origin) in names.into_iter().chain(of_models) {
            if !name.as_deref().is_none_or(is_variable_name) {
                let message = format!("`{key}` (from {origin}) is not the name of a variable");
                let hint = "put the key into a variable, and set the variable's name";
                return Err(Fault::configuration(message).hint(hint));
            }
        }
        let endpoints = [
            (own("base_url", &self.base_url), "`--api-key-env VAR`"),
            (own("search.url", &self.search_url), "`--search-key-env VAR`"),
            (own("image.base_url", &self.image_base_url), "`image.api_key_env`"),
        ];
        let of_models = models().map(|(key, class, from)| {
            ((key, class.base_url.clone(), from.clone()), "`api_key_env`")
        });
        for ((key, url, origin), by) in endpoints.into_iter().chain(of_models) {
            let parsed = url.and_then(|text| Url::parse(&text).ok());
            if parsed.is_some_and(|url| url.password().is_some() || !url.username().is_empty()) {
                let message = format!("`{key}` (from {origin}) contains a user name or password");
                let hint = format!("put the key into a variable, and name it by {by}");
                return Err(Fault::configuration(message).hint(hint));
            }
        }
        Ok(())
    }

    /// Returns the settings of a server, which keeps sessions for `session_ttl`.
    pub(crate) fn for_server(self) -> Config {
        let Setting { value: Timeout(span), origin } = self.session_ttl.clone();
        let keep_sessions = Setting { value: KeepTime(Some(span)), origin };
        Config { keep_sessions, ..self }
    }

    /// Returns true if programs write to the workdir directly, because `write` is set or the run is
    /// trusted.
    pub(crate) fn writes_through(&self) -> bool {
        self.write.value || self.exec.value
    }
}

/// Returns the workdir and the settings of the user file, which are empty after a warning if the
/// file has a fault.
fn workdir_and_user(flags: &[Layer], places: &Places) -> Result<(PathBuf, File), Fault> {
    let environment = Layer::of_environment(&|name| std::env::var_os(name))?;
    let user = file::user(places).unwrap_or_else(|fault| {
        output::warn(fault.message());
        File::default()
    });
    Ok((root(flags, &environment, &user), user))
}

/// Returns the workdir, which determines the project file. Therefore a project file cannot set the
/// workdir.
fn root(flags: &[Layer], environment: &Layer, user: &File) -> PathBuf {
    let root = flags.iter().find_map(|layer| layer.root.as_ref()).or(environment.root.as_ref());
    root.or(user.layer.root.as_ref()).cloned().unwrap_or_else(|| PathBuf::from("."))
}

/// Returns true if `text` can be the name of an environment variable.
fn is_variable_name(text: &str) -> bool {
    let name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !text.starts_with(|c: char| c.is_ascii_digit()) && text.chars().all(name)
}
