//! The settings: each is taken from the first layer that has it, and knows which one that was.
//!
//! The layers are, in this order: flags, environment variables (`WATTLE_…`), the project file (`wattle.toml` in the root), the user
//! file (`wattle/wattle.toml` in the XDG config directory), and the defaults.

mod class;
mod file;
mod model;
pub(crate) mod plain;
mod policy;
mod project;
mod secret;
mod value;

use std::fmt;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value as Json;
use wattle_agent::capability::ai::Budget;
use wattle_agent::capability::egress::{HostRule, Url};
use wattle_agent::capability::git::{Branch, Remote};
use wattle_agent::capability::policy::{Policy, Rule};
use wattle_agent::capability::web::EngineKind;

use wattle_agent::machine::Dollars;
use wattle_agent::model::Prices;
use wattle_agent::rt::{AccountLimits, Limits};
use wattle_agent::{DEFAULT_TENANT, DialectSetting};

use crate::fault::Fault;

pub(crate) use class::Kind;
pub(crate) use model::{ContentGuard, dollars};
pub(crate) use project::{PROJECT_FILE, Project, Request};
pub(crate) use secret::{SecretEntry, SecretList};
pub(crate) use value::{Sandbox, Span, Value, count};

use class::Class;

/// A value with the layer that it comes from.
#[derive(Clone, Debug)]
pub(crate) struct Setting<T> {
    /// The value.
    pub(crate) value: T,
    /// Where it comes from.
    pub(crate) origin: Origin,
}

/// The layer that a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A flag.
    Flag,
    /// The environment variable of that name.
    Environment(&'static str),
    /// The project file.
    Project(PathBuf),
    /// The user file.
    User(PathBuf),
    /// Nothing set it.
    Default,
}

impl Origin {
    /// The layer's name.
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

/// One setting, as it is shown.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// The key.
    pub(crate) name: &'static str,
    /// The value; null where nothing is set.
    pub(crate) value: Json,
    /// Where it comes from.
    pub(crate) origin: Origin,
}

/// A key's name in a file: the field's own, or another one.
macro_rules! key {
    ($name:ident) => {
        stringify!($name)
    };
    ($name:ident $key:literal) => {
        $key
    };
}

/// Declares every key once: its name, its key in a file where that is another one, variable, type, default, and its class: what a project
/// file may set of it. A dot in a key stands for a table: `ai.calls` is `calls` in `[ai]`.
macro_rules! keys {
    ($($(#[$doc:meta])* $name:ident $(as $key:literal)? $variable:literal: $type:ty = $default:expr, $class:expr;)*) => {
        /// What one layer sets.
        #[derive(Clone, Debug, Default)]
        pub(crate) struct Layer {
            $($(#[$doc])* pub(crate) $name: Option<$type>,)*
        }

        /// The settings of one command.
        #[derive(Clone, Debug)]
        pub(crate) struct Config {
            $($(#[$doc])* pub(crate) $name: Setting<$type>,)*
            /// The rules of all layers, weighed against each other.
            pub(crate) policy: Policy,
        }

        /// The keys, each with its class.
        const KEYS: &[(&str, Kind)] = &[$((key!($name $($key)?), {
            const CLASS: Class<$type> = $class;
            CLASS.kind()
        }),)*];

        impl Layer {
            /// What [`Config::granted`] told.
            pub(crate) fn of_granted(granted: &Json) -> Result<Layer, Fault> {
                let unread = |why: String| Fault::failed(format!("the settings of the run cannot be read: {why}"));
                let table = toml::Table::try_from(granted).map_err(|error| unread(error.to_string()))?;
                match table.keys().find(|key| !GRANTED.contains(&key.as_str())) {
                    Some(key) => Err(unread(format!("no setting `{key}`"))),
                    None => Layer::of_table(&table, Path::new("the store")),
                }
            }

            /// What the environment sets. A variable that is set to nothing is not set.
            fn of_environment(get: &dyn Fn(&str) -> Option<std::ffi::OsString>) -> Result<Layer, Fault> {
                Ok(Layer { $($name: variable(get, $variable)?,)* })
            }

            /// What the table of a file sets; its keys are known.
            fn of_table(table: &toml::Table, path: &Path) -> Result<Layer, Fault> {
                Ok(Layer { $($name: entry(table, key!($name $($key)?), path)?,)* })
            }

            /// What a project file that sets this layer asks for, setting by setting, over what the user file sets.
            fn requests(&self, user: &Layer, places: &Places) -> Vec<Request> {
                let mut requests = Vec::new();
                $(if let Some(value) = &self.$name {
                    const CLASS: Class<$type> = $class;
                    let default: fn(&Places) -> $type = $default;
                    let otherwise = user.$name.clone().unwrap_or_else(|| default(places));
                    requests.push(Request {
                        key: key!($name $($key)?),
                        kind: CLASS.kind(),
                        value: value.to_json(),
                        otherwise: otherwise.to_json(),
                        needs_trust: CLASS.needs_trust(value, &otherwise),
                    });
                })*
                requests
            }

            /// The layer without the settings of those keys.
            fn without(mut self, keys: &[&str]) -> Layer {
                $(if keys.contains(&key!($name $($key)?)) {
                    self.$name = None;
                })*
                self
            }
        }

        impl Config {
            /// Takes each value from the first layer that has it.
            fn of_layers(flags: &[Layer], environment: &Layer, project: &File, user: &File, places: &Places) -> Config {
                Config { $($name: {
                    let of_flags = flags.iter().find_map(|layer| layer.$name.clone()).map(|value| (value, Origin::Flag));
                    let found = of_flags
                        .or_else(|| Some((environment.$name.clone()?, Origin::Environment($variable))))
                        .or_else(|| Some((project.layer.$name.clone()?, Origin::Project(project.path.clone()))))
                        .or_else(|| Some((user.layer.$name.clone()?, Origin::User(user.path.clone()))));
                    let default: fn(&Places) -> $type = $default;
                    let (value, origin) = found.unwrap_or_else(|| (default(places), Origin::Default));
                    Setting { value, origin }
                },)* policy: policy::of_layers(flags, environment, project, user) }
            }

            /// What a run may do and where it works: what it needs to be taken up with the same.
            pub(crate) fn granted(&self) -> Json {
                let rows = self.rows().into_iter().filter(|row| GRANTED.contains(&row.name) && !row.value.is_null());
                rows.map(|row| (row.name.to_owned(), row.value)).collect::<serde_json::Map<_, _>>().into()
            }

            /// Every setting, in the order of the manual.
            pub(crate) fn rows(&self) -> Vec<Row> {
                vec![$(Row {
                    name: key!($name $($key)?),
                    value: self.$name.value.to_json(),
                    origin: self.$name.origin.clone(),
                },)*]
            }
        }
    };
}

keys! {
    /// The model's name.
    model "WATTLE_MODEL": Option<String> = |_| None, Class::NeedsTrust;
    /// The URL to which `/chat/completions` is appended.
    base_url "WATTLE_BASE_URL": Option<String> = |_| None, Class::NeedsTrust;
    /// The variable that holds the key.
    api_key_env "WATTLE_API_KEY_ENV": Option<String> = |_| None, Class::NeedsTrust;
    /// The name of a well-known endpoint.
    provider "WATTLE_PROVIDER": Option<String> = |_| None, Class::NeedsTrust;
    /// The recording that answers in place of a model.
    cassette "WATTLE_CASSETTE": Option<PathBuf> = |_| None, Class::NeedsTrust;
    /// The file that the model's answers are recorded to.
    record "WATTLE_RECORD": Option<PathBuf> = |_| None, Class::NeedsTrust;
    /// In which form the model calls programs.
    dialect "WATTLE_DIALECT": DialectSetting = |_| DialectSetting::default(), Class::Presentation;
    /// How many model turns of a run may act; the command's own bound where it is not set.
    max_steps "WATTLE_MAX_STEPS": Option<NonZeroU32> = |_| None, Class::Narrows(class::steps);
    /// The time that a run may take.
    timeout "WATTLE_TIMEOUT": Option<Span> = |_| None, Class::Narrows(class::shorter);
    /// How many tokens a run may take.
    max_tokens_total "WATTLE_MAX_TOKENS_TOTAL": Option<NonZeroU32> = |_| None, Class::Narrows(class::bounded);
    /// What a run may cost.
    max_cost "WATTLE_MAX_COST": Option<Dollars> = |_| None, Class::Narrows(class::cheaper);
    /// What models cost, in dollars per million tokens, beside what is known anyway.
    prices "WATTLE_PRICES": Prices = |_| Prices::default(), Class::NeedsTrust;
    /// What looks at messages before their runs begin.
    guard "WATTLE_GUARD": ContentGuard = |_| ContentGuard::default(), Class::NeedsTrust;
    /// How many requests to the model the programs of a run may make.
    ai_calls as "ai.calls" "WATTLE_AI_CALLS": NonZeroU32 = |_| budget(Budget::default().calls.into()), Class::Narrows(class::at_most);
    /// How many tokens those requests and their answers may take.
    ai_tokens as "ai.tokens" "WATTLE_AI_TOKENS": NonZeroU32 = |_| budget(Budget::default().tokens), Class::Narrows(class::at_most);
    /// The memory that a run's programs and the host for them hold at one time, in MiB.
    limits_memory as "limits.memory_mb" "WATTLE_LIMITS_MEMORY_MB": NonZeroU32 = |_| mebibytes(AccountLimits::default().memory as u64), Class::Narrows(class::at_most);
    /// The processor time of a run.
    limits_cpu as "limits.cpu" "WATTLE_LIMITS_CPU": Span = |_| Span(AccountLimits::default().cpu), Class::Narrows(class::at_most);
    /// What a run receives from the network, in MiB.
    limits_received as "limits.received_mb" "WATTLE_LIMITS_RECEIVED_MB": NonZeroU32 = |_| mebibytes(AccountLimits::default().received), Class::Narrows(class::at_most);
    /// The memory that all runs of the process hold at one time, in MiB.
    limits_process as "limits.process_memory_mb" "WATTLE_LIMITS_PROCESS_MEMORY_MB": NonZeroU32 = |_| mebibytes(Limits::default().process_memory as u64), Class::Narrows(class::at_most);
    /// The model for embeddings; the model itself where it is not set.
    embed_model as "ai.embed_model" "WATTLE_AI_EMBED_MODEL": Option<String> = |_| None, Class::NeedsTrust;
    /// The kind of search engine that searches the web.
    search_engine as "search.engine" "WATTLE_SEARCH_ENGINE": Option<EngineKind> = |_| None, Class::NeedsTrust;
    /// Where it is asked; the kind's own place where it is not set.
    search_url as "search.url" "WATTLE_SEARCH_URL": Option<String> = |_| None, Class::NeedsTrust;
    /// The variable that holds its key.
    search_key_env as "search.key_env" "WATTLE_SEARCH_KEY_ENV": String = |_| "WATTLE_SEARCH_KEY".to_owned(), Class::NeedsTrust;
    /// The workdir.
    root "WATTLE_ROOT": PathBuf = |_| PathBuf::from("."), Class::Never;
    /// Whether programs write to the workdir itself.
    write "WATTLE_WRITE": bool = |_| false, Class::Narrows(class::off);
    /// Whether the changes of a run are carried out at its end.
    apply "WATTLE_APPLY": bool = |_| false, Class::Narrows(class::off);
    /// Whether the run is trusted.
    exec "WATTLE_EXEC": bool = |_| false, Class::Never;
    /// The remote that trusted runs push to.
    git_remote as "git.remote" "WATTLE_GIT_REMOTE": Option<Remote> = |_| None, Class::Never;
    /// The remote's branch.
    git_branch as "git.branch" "WATTLE_GIT_BRANCH": Branch = |_| Branch::default(), Class::Never;
    /// The address of the commits' author, where it is not the tenant's own.
    git_author_email as "git.author_email" "WATTLE_GIT_AUTHOR_EMAIL": Option<String> = |_| None, Class::Never;
    /// The variable that holds the token for a remote over https.
    git_token_env as "git.token_env" "WATTLE_GIT_TOKEN_ENV": Option<String> = |_| None, Class::Never;
    /// The file with the certificates that a remote over https is verified with, in place of the system's.
    git_ca_file as "git.ca_file" "WATTLE_GIT_CA_FILE": Option<PathBuf> = |_| None, Class::Never;
    /// The private key for a remote over ssh, in place of the user's own keys and agent.
    git_ssh_key as "git.ssh_key" "WATTLE_GIT_SSH_KEY": Option<PathBuf> = |_| None, Class::Never;
    /// The file with the host keys of remotes over ssh, in place of the user's own.
    git_known_hosts as "git.known_hosts" "WATTLE_GIT_KNOWN_HOSTS": Option<PathBuf> = |_| None, Class::Never;
    /// The public folder of trusted runs.
    publish_root as "publish.root" "WATTLE_PUBLISH_ROOT": Option<PathBuf> = |_| None, Class::Never;
    /// The URL to which `/images/generations` is appended.
    image_base_url as "image.base_url" "WATTLE_IMAGE_BASE_URL": Option<String> = |_| None, Class::Never;
    /// The model that makes pictures.
    image_model as "image.model" "WATTLE_IMAGE_MODEL": Option<String> = |_| None, Class::Never;
    /// The variable that holds the key of the images endpoint.
    image_api_key_env as "image.api_key_env" "WATTLE_IMAGE_API_KEY_ENV": Option<String> = |_| None, Class::Never;
    /// The secrets that requests may refer to, each with its variable and its hosts.
    secrets "WATTLE_SECRETS": SecretList = |_| SecretList::default(), Class::Never;
    /// Hosts that may be reached even where they are not public.
    allow_host "WATTLE_ALLOW_HOST": Vec<HostRule> = |_| Vec::new(), Class::Narrows(class::fewer_hosts);
    /// What programs may touch.
    allow "WATTLE_ALLOW": Vec<Rule> = |_| Vec::new(), Class::NeedsTrust;
    /// What the user is asked about before a program runs.
    ask "WATTLE_ASK": Vec<Rule> = |_| Vec::new(), Class::Narrows(class::always);
    /// What programs may not touch.
    deny "WATTLE_DENY": Vec<Rule> = |_| Vec::new(), Class::Narrows(class::always);
    /// Folders of programs, later ones over earlier ones and all over the built-in programs.
    catalog "WATTLE_CATALOG": Vec<PathBuf> = |_| Vec::new(), Class::NeedsTrust;
    /// The session that the run belongs to.
    session "WATTLE_SESSION": Option<String> = |_| None, Class::NeedsTrust;
    /// The tenant that the run belongs to, whose state all its sessions share.
    tenant "WATTLE_TENANT": String = |_| DEFAULT_TENANT.to_owned(), Class::NeedsTrust;
    /// How long a session that sees nothing is kept.
    session_ttl "WATTLE_SESSION_TTL": Span = |_| Span(Duration::from_secs(3_600)), Class::NeedsTrust;
    /// The file that keeps sessions.
    store "WATTLE_STORE": Option<PathBuf> = |places| places.store.clone(), Class::NeedsTrust;
    /// Whether programs and observations are shown in full.
    verbose "WATTLE_VERBOSE": bool = |_| false, Class::Presentation;
    /// The walls around the process itself.
    sandbox "WATTLE_SANDBOX": Sandbox = |_| Sandbox::On, Class::Never;
}

/// The settings that say what a run may do and where it works.
const GRANTED: &[&str] = &[
    "root",
    "write",
    "apply",
    "exec",
    "allow_host",
    "allow",
    "ask",
    "deny",
    "catalog",
    "tenant",
    "ai.calls",
    "ai.tokens",
];

/// A default budget as a setting.
fn budget(default: u64) -> NonZeroU32 {
    u32::try_from(default).ok().and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MIN)
}

/// A default amount of memory as a setting.
fn mebibytes(bytes: u64) -> NonZeroU32 {
    u32::try_from(bytes >> 20).ok().and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MIN)
}

/// The places that the user's own files have by default; `None` where the user has no home.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places {
    /// The user file.
    pub(crate) user_file: Option<PathBuf>,
    /// The store.
    pub(crate) store: Option<PathBuf>,
    /// The folders that the user trusts.
    pub(crate) trust: Option<PathBuf>,
    /// The folder of histories and of the server's token.
    pub(crate) state: Option<PathBuf>,
    /// The folder of what can be made anew.
    pub(crate) cache: Option<PathBuf>,
}

impl Places {
    /// The places of the XDG base directories.
    pub(crate) fn of_user() -> Places {
        use etcetera::BaseStrategy;
        match etcetera::base_strategy::Xdg::new() {
            Ok(xdg) => Places {
                user_file: Some(xdg.config_dir().join("wattle/wattle.toml")),
                store: Some(xdg.data_dir().join("wattle/wattle.db")),
                trust: Some(xdg.data_dir().join("wattle/trust.json")),
                state: xdg.state_dir().map(|folder| folder.join("wattle")),
                cache: Some(xdg.cache_dir().join("wattle")),
            },
            Err(_) => Places::default(),
        }
    }
}

/// What a file sets; nothing where there is no file.
#[derive(Clone, Debug, Default)]
pub(crate) struct File {
    path: PathBuf,
    layer: Layer,
}

impl Config {
    /// Gathers the settings from all layers; flags of the command come before those that stand before it.
    ///
    /// # Errors
    /// Where a variable or a file sets something that cannot be read, that there is not, or that it may not set.
    pub(crate) fn gather(flags: &[Layer]) -> Result<Config, Fault> {
        let places = Places::of_user();
        let environment = Layer::of_environment(&|name| std::env::var_os(name))?;
        let user = file::user(&places)?;
        let project = match Project::read(&root(flags, &environment, &user), &user.layer, &places)? {
            Some(project) => crate::trust::admit(project, &places)?,
            None => File::default(),
        };
        let config = Config::of_layers(flags, &environment, &project, &user, &places);
        config.names_no_secret()?;
        Ok(config)
    }

    /// Reads the project file of `folder`, or of the workdir that the settings name, without the settings that it makes.
    ///
    /// # Errors
    /// If a file sets something that cannot be read, that is unknown, or that it may not set.
    pub(crate) fn project(folder: Option<PathBuf>, flags: &[Layer]) -> Result<(PathBuf, Option<Project>), Fault> {
        let places = Places::of_user();
        let environment = Layer::of_environment(&|name| std::env::var_os(name))?;
        let user = file::user(&places)?;
        let folder = folder.unwrap_or_else(|| root(flags, &environment, &user));
        let project = Project::read(&folder, &user.layer, &places)?;
        Ok((folder, project))
    }

    /// Refuses a secret where only the name of one belongs, and does not repeat it: settings are shown, secrets never.
    fn names_no_secret(&self) -> Result<(), Fault> {
        let names = [
            ("api_key_env", self.api_key_env.value.as_deref(), &self.api_key_env.origin),
            ("search.key_env", Some(self.search_key_env.value.as_str()), &self.search_key_env.origin),
            ("git.token_env", self.git_token_env.value.as_deref(), &self.git_token_env.origin),
            ("image.api_key_env", self.image_api_key_env.value.as_deref(), &self.image_api_key_env.origin),
        ];
        for (key, name, origin) in names {
            if !name.is_none_or(is_variable_name) {
                let message = format!("`{key}` (from {origin}) is not the name of a variable");
                let hint = "put the key into a variable, and give the variable's name";
                return Err(Fault::configuration(message).hint(hint));
            }
        }
        let endpoints = [
            ("base_url", &self.base_url, "`--api-key-env VAR`"),
            ("search.url", &self.search_url, "`--search-key-env VAR`"),
            ("image.base_url", &self.image_base_url, "`image.api_key_env`"),
        ];
        for (key, url, by) in endpoints {
            let parsed = url.value.as_deref().and_then(|text| Url::parse(text).ok());
            if parsed.is_some_and(|url| url.password().is_some() || !url.username().is_empty()) {
                let message = format!("`{key}` (from {}) carries a user name or password", url.origin);
                let hint = format!("put the key into a variable, and name it by {by}");
                return Err(Fault::configuration(message).hint(hint));
            }
        }
        Ok(())
    }

    /// Whether programs write to the workdir itself: asked for, or a trusted run.
    pub(crate) fn writes_through(&self) -> bool {
        self.write.value || self.exec.value
    }
}

/// The workdir, whose project file is read: no project file names it.
fn root(flags: &[Layer], environment: &Layer, user: &File) -> PathBuf {
    let root = flags.iter().find_map(|layer| layer.root.as_ref()).or(environment.root.as_ref());
    root.or(user.layer.root.as_ref()).cloned().unwrap_or_else(|| PathBuf::from("."))
}

/// Whether a text can be the name of a variable.
fn is_variable_name(text: &str) -> bool {
    let name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !text.starts_with(|c: char| c.is_ascii_digit()) && text.chars().all(name)
}

fn variable<T: Value>(
    get: &dyn Fn(&str) -> Option<std::ffi::OsString>,
    name: &'static str,
) -> Result<Option<T>, Fault> {
    let Some(value) = get(name).filter(|value| !value.is_empty()) else { return Ok(None) };
    let text = value.to_str().ok_or_else(|| Fault::configuration(format!("the variable `{name}` is not UTF-8")))?;
    if text.trim().is_empty() {
        return Ok(None);
    }
    T::from_text(text).map(Some).map_err(|why| Fault::configuration(format!("the variable `{name}`: {why}")))
}

fn entry<T: Value>(table: &toml::Table, key: &'static str, path: &Path) -> Result<Option<T>, Fault> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let Some(value) = table.get(key) else { return Ok(None) };
    T::from_toml(value, folder)
        .map(Some)
        .map_err(|why| Fault::configuration(format!("the key `{key}` of `{}`: {why}", path.display())))
}
