//! The table of settings, with one row for each. The layers, the settings of a command, the options
//! of the command line and the manual are generated from it.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value as Json;
use wattle_agent::Settings;
use wattle_agent::host::capability::ai::Budget;
use wattle_agent::host::capability::egress::HostRule;
use wattle_agent::host::capability::git::{Branch, Remote};
use wattle_agent::host::capability::policy::{Policy, Privileges, Rule};
use wattle_agent::host::engine::Bounds;
use wattle_agent::host::machine::{self, Dollars, OnMaxSteps};
use wattle_agent::host::rt::{AccountLimits, Limits};
use wattle_agent::host::{DEFAULT_TENANT, DialectSetting, Retention, StoreLimits, Timeout};
use wattle_agent::model::{FunctionChoice, Mask, Prices, ThinkingEffort, Timeouts};

use super::class::{self, Class, Kind};
use super::classes::ModelClasses;
use super::content::Content;
use super::file::Source;
use super::flag::{self, Flag, Group, Names};
use super::mcp::McpServers;
use super::model::{ContentGuard, Temperature};
use super::project::Request;
use super::secret::SecretList;
use super::store::{BlobLocation, StoreLocation, TraceLocation};
use super::value::{KeepTime, Sandbox, SearchEngine, Value};
use super::{File, Origin, Places, Row, Setting, policy};
use crate::fault::Fault;
use crate::output;

/// Expands to the key of a setting in a file: the string after `as`, if there is one, or else the
/// name of the field.
macro_rules! key {
    ($name:ident) => {
        stringify!($name)
    };
    ($name:ident $key:literal) => {
        $key
    };
}

/// Expands to the option of a row, or `None` if the row has none.
macro_rules! flag {
    () => {
        None
    };
    ($flag:expr) => {
        Some($flag)
    };
}

/// Expands to true if a row has the mark `granted`.
macro_rules! is_granted {
    () => {
        false
    };
    (granted) => {
        true
    };
}

/// Declares every setting once: its meaning, its field, its key in a file if that differs from the
/// field, its variable, its type, its default and its class, which decides what a project file may
/// set. A dot in a key denotes a table: `ai.calls` is `calls` in `[ai]`. The mark `granted` makes a
/// resumed run keep the setting. The option of the command line, if there is one, follows `=>`. It
/// has the name of the field.
macro_rules! keys {
    ($(
        $(#[doc = $doc:literal])+
        $name:ident $(as $key:literal)? $variable:literal: $type:ty = $default:expr, $class:expr
            $(, $granted:ident)? $(=> $flag:expr)?;
    )*) => {
        /// The settings of one layer. A setting is `None` if the layer does not set it.
        #[derive(Clone, Debug, Default)]
        pub(crate) struct Layer {
            $($(#[doc = $doc])+ pub(crate) $name: Option<$type>,)*
        }

        /// The settings of one command.
        #[derive(Clone, Debug)]
        pub(crate) struct Config {
            $($(#[doc = $doc])+ pub(crate) $name: Setting<$type>,)*
            /// The policy that results from the rules of all layers.
            pub(crate) policy: Policy,
            /// The guidance files and the skills, if the command reads them.
            pub(crate) content: Arc<Content>,
            /// The mask for the records of the tenant.
            pub(crate) mask: Mask,
        }

        /// The keys of all settings.
        pub(super) const KEYS: &[Key] = &[$(Key {
            name: key!($name $($key)?),
            kind: {
                const CLASS: Class<$type> = $class;
                CLASS.kind()
            },
            granted: is_granted!($($granted)?),
        },)*];

        /// The environment variables of all settings.
        pub(crate) const VARIABLES: &[&str] = &[$($variable,)*];

        /// Returns the options for which `accepts` returns true for their group, in the order of
        /// the help.
        pub(crate) fn options(accepts: &dyn Fn(Group) -> bool) -> Vec<clap::Arg> {
            let mut options: Vec<(Group, clap::Arg)> = Vec::new();
            $({
                let flag: Option<Flag> = flag!($($flag)?);
                let names = Names {
                    field: stringify!($name),
                    key: key!($name $($key)?),
                    variable: $variable,
                };
                options.extend(flag.map(|flag| (flag.group, flag.option::<$type>(names))));
            })*
            options.retain(|(group, _)| accepts(*group));
            options.sort_by_key(|(group, _)| *group);
            options.into_iter().map(|(_, option)| option).collect()
        }

        /// Returns the manual's rows, one for each setting.
        #[cfg(test)]
        pub(super) fn manual(places: &Places) -> Vec<super::manual::Row> {
            vec![$({
                const CLASS: Class<$type> = $class;
                let default: fn(&Places) -> $type = $default;
                super::manual::Row {
                    field: stringify!($name),
                    key: key!($name $($key)?),
                    variable: $variable,
                    default: default(places).to_json(),
                    kind: CLASS.kind(),
                    has_flag: Option::<Flag>::is_some(&flag!($($flag)?)),
                    meaning: concat!($($doc),+).trim(),
                }
            }),*]
        }

        impl Layer {
            /// Reads the settings that [`Config::granted`] returned.
            pub(crate) fn of_granted(granted: &Json) -> Result<Layer, Fault> {
                let unread = |why: String| {
                    Fault::failed(format!("failed to read the settings of the run: {why}"))
                };
                let table =
                    toml::Table::try_from(granted).map_err(|error| unread(error.to_string()))?;
                match table.keys().find(|key| !is_granted(key)) {
                    Some(key) => Err(unread(format!("unknown setting `{key}`"))),
                    None => {
                        let source = Source { path: Path::new("the store"), text: "" };
                        Layer::of_table(&table, &source)
                    }
                }
            }

            /// Reads the settings from the options of a command, which accepts the groups for
            /// which `accepts` returns true.
            pub(crate) fn of_options(
                matches: &clap::ArgMatches,
                accepts: &dyn Fn(Group) -> bool,
            ) -> Layer {
                Layer { $($name: {
                    let flag: Option<Flag> = flag!($($flag)?);
                    flag.filter(|flag| accepts(flag.group))
                        .and_then(|_| flag::given(matches, stringify!($name)))
                },)* }
            }

            /// Reads the settings from environment variables. An empty variable counts as absent.
            pub(super) fn of_environment(
                get: &dyn Fn(&str) -> Option<std::ffi::OsString>,
            ) -> Result<Layer, Fault> {
                Ok(Layer { $($name: variable(get, $variable)?,)* })
            }

            /// Reads the settings from a file's table. The caller has checked that all keys are
            /// known.
            pub(super) fn of_table(
                table: &toml::Table,
                source: &Source<'_>,
            ) -> Result<Layer, Fault> {
                Ok(Layer { $($name: entry(table, key!($name $($key)?), source)?,)* })
            }

            /// Returns a request for each setting of this layer, which must be a project file's
            /// layer. `user` contains the settings of the user file.
            pub(super) fn requests(&self, user: &Layer, places: &Places) -> Vec<Request> {
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

            /// Returns the layer without the settings for these keys.
            pub(super) fn without(mut self, keys: &[&str]) -> Layer {
                $(if keys.contains(&key!($name $($key)?)) {
                    self.$name = None;
                })*
                self
            }
        }

        /// Parses the value of the setting `key` as in a variable, and returns it as in a file.
        /// Relative paths are relative to `folder`. Returns `None` if the key is unknown.
        pub(super) fn value_in_file(
            key: &str,
            text: &str,
            folder: &Path,
        ) -> Option<Result<toml::Value, String>> {
            $(if key == key!($name $($key)?) {
                return Some(in_file::<$type>(text, folder));
            })*
            None
        }

        impl Config {
            /// Creates the settings. Each value comes from the first layer that sets it.
            pub(super) fn of_layers(
                flags: &[Layer],
                environment: &Layer,
                project: &File,
                user: &File,
                places: &Places,
            ) -> Config {
                Config { $($name: {
                    let default: fn(&Places) -> $type = $default;
                    let lower = [
                        (environment, Origin::Environment($variable)),
                        (&project.layer, Origin::Project(project.path.clone())),
                        (&user.layer, Origin::User(user.path.clone())),
                    ];
                    let layers = flags.iter().map(|layer| (layer, Origin::Flag)).chain(lower);
                    let mut values = layers
                        .filter_map(|(layer, origin)| Some((layer.$name.clone()?, origin)));
                    let (value, origin) =
                        values.next().unwrap_or_else(|| (default(places), Origin::Default));
                    Setting { value, origin }
                },)* policy: policy::of_layers(flags, environment, project, user), content: Arc::default(), mask: output::mask().clone() }
            }

            /// Returns the settings that a resumed run keeps: its permissions, its folders, its
            /// tenant, and its budget for model requests. Paths are absolute.
            pub(crate) fn granted(&self) -> Json {
                let rows = self.rows().into_iter();
                let rows = rows.filter(|row| is_granted(row.name) && !row.value.is_null());
                rows.map(|row| (row.name.to_owned(), row.absolute()))
                    .collect::<serde_json::Map<_, _>>()
                    .into()
            }

            /// Returns every setting, in the order of the manual.
            pub(crate) fn rows(&self) -> Vec<Row> {
                vec![$(Row {
                    name: key!($name $($key)?),
                    value: self.$name.value.to_json(),
                    origin: self.$name.origin.clone(),
                    is_path: <$type>::IS_PATH,
                },)*]
            }
        }
    };
}

keys! {
    /// The name of the model. It may begin with a preset: `openai:gpt-5`.
    model "WATTLE_MODEL": Option<String> = |_| None, Class::NeedsTrust
        => Flag::value(Group::Model, "NAME", "Use this model").short('m').common();
    /// The URL of the endpoint, without `/chat/completions`.
    base_url "WATTLE_BASE_URL": Option<String> = |_| None, Class::NeedsTrust
        => Flag::value(Group::Endpoint, "URL", "Call this chat-completions endpoint, such as http://127.0.0.1:8080/v1");
    /// The environment variable that contains the API key.
    api_key_env "WATTLE_API_KEY_ENV": Option<String> = |_| None, Class::NeedsTrust
        => Flag::value(Group::Endpoint, "VAR", "Read the API key from this environment variable");
    /// The preset for a well-known endpoint: `openrouter`, `openai`, `ollama`, …
    provider "WATTLE_PROVIDER": Option<String> = |_| None, Class::NeedsTrust
        => Flag::value(Group::Endpoint, "PRESET", "Use a well-known endpoint: openrouter, openai, ollama, …").common();
    /// The file of recorded model answers to replay instead of asking a model.
    cassette "WATTLE_CASSETTE": Option<PathBuf> = |_| None, Class::NeedsTrust
        => Flag::value(Group::Model, "FILE", "Answer from a recording instead of a model");
    /// The file in which the model's answers are recorded.
    record "WATTLE_RECORD": Option<PathBuf> = |_| None, Class::NeedsTrust
        => Flag::value(Group::Record, "FILE", "Record the model's answers in a file");
    /// The form in which the model calls programs: `text`, `native` or `auto`.
    dialect "WATTLE_DIALECT": DialectSetting = |_| DialectSetting::default(), Class::Presentation
        => Flag::value(Group::Form, "DIALECT", "Choose the form of calls: text, native or auto [default: auto]");
    /// The model of each class, such as `fast = "small-model"`. Agents refer to a class as
    /// `class:fast`.
    models "WATTLE_MODELS": ModelClasses = |_| ModelClasses::default(), Class::NeedsTrust;
    /// The sampling temperature of the model, from 0 to 2.
    temperature "WATTLE_TEMPERATURE": Temperature = |_| Temperature::default(), Class::Presentation;
    /// Maximum length of a model answer, in tokens.
    max_tokens "WATTLE_MAX_TOKENS": NonZeroU32 = |_| budget(Settings::default().max_tokens.into()), Class::Narrows(class::at_most);
    /// The effort that the model spends on reasoning, from 0 to 100. By default, the model decides.
    thinking_effort "WATTLE_THINKING_EFFORT": Option<ThinkingEffort> = |_| None, Class::NeedsTrust;
    /// The file whose text is the beginning of the system prompt of each run.
    system "WATTLE_SYSTEM": Option<PathBuf> = |_| None, Class::Never
        => Flag::value(Group::Form, "FILE", "Start the system prompt with the text of a file");
    /// The use of functions in the native dialect: the model may call one (`auto`), must call one
    /// (`required`), or must not call any (`none`).
    tool_call "WATTLE_TOOL_CALL": FunctionChoice = |_| FunctionChoice::default(), Class::Presentation;
    /// The engine: the file of a WebAssembly component that is the loop of each run. By default, the
    /// loop is that of Wattle itself.
    engine as "engine.file" "WATTLE_ENGINE": Option<PathBuf> = |_| None, Class::Never, granted
        => Flag::value(Group::Engine, "FILE", "Use a component as the loop of the run");
    /// Maximum memory of an engine in one run, in MiB.
    engine_memory as "engine.memory_mb" "WATTLE_ENGINE_MEMORY_MB": NonZeroU32 = |_| mebibytes(Bounds::default().memory as u64), Class::Narrows(class::at_most);
    /// Maximum processor time of an engine between two of its requests.
    engine_turn as "engine.turn" "WATTLE_ENGINE_TURN": Timeout = |_| Timeout(Bounds::default().turn), Class::Narrows(class::at_most);
    /// Maximum duration of a request to the model.
    http_timeout "WATTLE_HTTP_TIMEOUT": Timeout = |_| Timeout(Timeouts::default().request), Class::Narrows(class::at_most);
    /// Time for which a request to the model that fails temporarily is repeated. By default, 1
    /// minute, and 15 seconds in a terminal.
    retry_for "WATTLE_RETRY_FOR": Option<Timeout> = |_| None, Class::Narrows(class::retries);
    /// If true, the first request of a run lists the files and folders in the workdir, and shows
    /// the files that the message names: small ones whole, of the others the first lines.
    orient "WATTLE_ORIENT": bool = |_| true, Class::Narrows(class::off)
        => Flag::value(Group::Form, "SWITCH", "Show the model the workdir's file names: on or off [default: on]");
    /// If true, runs get the instructions in the files `AGENTS.md` of the workdir and of the folders
    /// above it, up to the root of the repository.
    agents_md "WATTLE_AGENTS_MD": bool = |_| true, Class::Narrows(class::off)
        => Flag::value(Group::Form, "SWITCH", "Read instructions in AGENTS.md: on or off [default: on]");
    /// Maximum number of steps of a run, or 0 for no limit. By default, each command has its own
    /// limit. A request to the server may ask for fewer steps, but not for more.
    max_steps "WATTLE_MAX_STEPS": Option<u32> = |_| None, Class::Narrows(class::steps)
        => Flag::value(Group::Limits, "N", "Limit the steps of a run; 0 for no limit").common();
    /// The behaviour of a run that has used up its steps. With `answer`, the model gets one last
    /// turn, in which it must answer. With `stop`, the result says that the steps are used up. With
    /// `latest`, the result is the last text that the model wrote.
    on_max_steps "WATTLE_ON_MAX_STEPS": OnMaxSteps = |_| OnMaxSteps::default(), Class::Presentation
        => Flag::value(Group::Limits, "END", "Choose the end at the limit of steps: answer, stop or latest");
    /// Maximum number of consecutive steps with the same calls and the same results, or 0 for no
    /// limit. A run that reaches it ends.
    max_repetitions "WATTLE_MAX_REPETITIONS": u32 = |_| machine::Settings::default().max_repetitions, Class::Narrows(class::repetitions)
        => Flag::value(Group::Limits, "N", "Stop after N identical steps; 0 for no limit [default: 5]");
    /// Maximum duration of a run.
    timeout "WATTLE_TIMEOUT": Option<Timeout> = |_| None, Class::Narrows(class::bounded)
        => Flag::value(Group::Time, "TIME", "Limit the time of a run, such as 90s or 2m").common();
    /// Maximum number of tokens that a run uses.
    max_tokens_total "WATTLE_MAX_TOKENS_TOTAL": Option<NonZeroU32> = |_| None, Class::Narrows(class::bounded)
        => Flag::value(Group::Limits, "N", "Limit the tokens of a run");
    /// Maximum cost of a run, in dollars.
    max_cost "WATTLE_MAX_COST": Option<Dollars> = |_| None, Class::Narrows(class::cheaper)
        => Flag::value(Group::Limits, "DOLLARS", "Limit the cost of a run in dollars, such as 0.50");
    /// The prices of models that are missing from the built-in list, in dollars per million tokens.
    prices "WATTLE_PRICES": Prices = |_| Prices::default(), Class::NeedsTrust;
    /// The content guard, which checks each message before its run starts.
    guard "WATTLE_GUARD": ContentGuard = |_| ContentGuard::default(), Class::NeedsTrust;
    /// Maximum number of model requests that the programs of a run make.
    ai_calls as "ai.calls" "WATTLE_AI_CALLS": NonZeroU32 = |_| budget(Budget::default().calls.into()), Class::Narrows(class::at_most), granted
        => Flag::value(Group::Ai, "N", "Limit the requests that programs make to models [default: 50]");
    /// Maximum number of tokens in the model requests of a run's programs and in the answers.
    ai_tokens as "ai.tokens" "WATTLE_AI_TOKENS": NonZeroU32 = |_| budget(Budget::default().tokens), Class::Narrows(class::at_most), granted
        => Flag::value(Group::Ai, "N", "Limit the tokens of programs' model requests [default: 500000]");
    /// Maximum memory of a run, in MiB, including memory that the host uses for its programs.
    limits_memory as "limits.memory_mb" "WATTLE_LIMITS_MEMORY_MB": NonZeroU32 = |_| mebibytes(AccountLimits::default().memory as u64), Class::Narrows(class::at_most);
    /// Maximum processor time of a run.
    limits_cpu as "limits.cpu" "WATTLE_LIMITS_CPU": Timeout = |_| Timeout(AccountLimits::default().cpu), Class::Narrows(class::at_most);
    /// Maximum size of the data that a run receives from the network, in MiB.
    limits_received as "limits.received_mb" "WATTLE_LIMITS_RECEIVED_MB": NonZeroU32 = |_| mebibytes(AccountLimits::default().received), Class::Narrows(class::at_most);
    /// Maximum memory of all runs and requests in the process, in MiB.
    limits_process as "limits.process_memory_mb" "WATTLE_LIMITS_PROCESS_MEMORY_MB": NonZeroU32 = |_| mebibytes(Limits::default().process_memory as u64), Class::Narrows(class::at_most);
    /// Maximum number of programs that run at the same time in the process. Each reserves 8 GiB of
    /// addresses, which are not memory.
    limits_programs as "limits.programs" "WATTLE_LIMITS_PROGRAMS": NonZeroU32 = |_| budget(Limits::default().instances.into()), Class::Narrows(class::at_most);
    /// Maximum size of the record of a run in the store, in MiB: its turns, calls and events.
    limits_run_store as "limits.run_store_mb" "WATTLE_LIMITS_RUN_STORE_MB": NonZeroU32 = |_| mebibytes(StoreLimits::default().run), Class::Narrows(class::at_most);
    /// Maximum size of all data of a tenant in the store, in MiB.
    limits_tenant_store as "limits.tenant_store_mb" "WATTLE_LIMITS_TENANT_STORE_MB": NonZeroU32 = |_| mebibytes(StoreLimits::default().tenant), Class::Never;
    /// Maximum size of all data of all tenants in the store, in MiB.
    limits_store as "limits.store_mb" "WATTLE_LIMITS_STORE_MB": NonZeroU32 = |_| mebibytes(StoreLimits::default().store), Class::Never;
    /// Maximum number of runs that a server drives at the same time. Additional runs are queued.
    serve_runs as "serve.runs" "WATTLE_SERVE_RUNS": NonZeroU32 = |_| budget(64), Class::Never;
    /// Maximum number of runs of a tenant that all servers of a store drive at the same time. By
    /// default, a tenant other than the server's own may have half of `serve.runs` on each server.
    serve_tenant as "serve.runs_per_tenant" "WATTLE_SERVE_RUNS_PER_TENANT": Option<NonZeroU32> = |_| None, Class::Never;
    /// Maximum number of queued runs of a tenant. Servers refuse additional runs.
    serve_queue as "serve.queue" "WATTLE_SERVE_QUEUE": NonZeroU32 = |_| budget(1_000), Class::Never;
    /// The model for embeddings. Without it, programs cannot search by meaning.
    embed_model as "ai.embed_model" "WATTLE_AI_EMBED_MODEL": Option<String> = |_| None, Class::NeedsTrust
        => Flag::value(Group::Ai, "NAME", "Use this model for embeddings");
    /// The web search engine: `page` (the HTML page of an engine that needs no key), `searxng` or
    /// `brave`. If `off`, programs cannot search the web.
    search_engine as "search.engine" "WATTLE_SEARCH_ENGINE": SearchEngine = |_| SearchEngine::default(), Class::Narrows(class::no_search)
        => Flag::value(Group::Search, "KIND", "Select the engine: page, searxng, brave or off [default: page]");
    /// The URL of the search engine. By default, the engine's own URL.
    search_url as "search.url" "WATTLE_SEARCH_URL": Option<String> = |_| None, Class::NeedsTrust
        => Flag::value(Group::Search, "URL", "Send searches to this URL");
    /// The environment variable that contains the search engine's key.
    search_key_env as "search.key_env" "WATTLE_SEARCH_KEY_ENV": String = |_| "WATTLE_SEARCH_KEY".to_owned(), Class::NeedsTrust
        => Flag::value(Group::Search, "VAR", "Read the engine's key from a variable [default: WATTLE_SEARCH_KEY]");
    /// The path of the workdir.
    root "WATTLE_ROOT": PathBuf = |_| PathBuf::from("."), Class::Never, granted
        => Flag::value(Group::Root, "DIR", "Work in this folder [default: .]").short('C').common();
    /// If true, programs write directly to the workdir instead of to the overlay.
    write "WATTLE_WRITE": bool = |_| false, Class::Narrows(class::off), granted
        => Flag::switch(Group::Write, "Write to the workdir directly, without the overlay").common();
    /// If true, the changes of a successful run are applied to the workdir at its end.
    apply "WATTLE_APPLY": bool = |_| false, Class::Narrows(class::off), granted
        => Flag::switch(Group::Write, "Apply the overlay's changes to the workdir at the end").common();
    /// If true, the run is trusted: it may commit, publish and generate images.
    exec "WATTLE_EXEC": bool = |_| false, Class::Never, granted
        => Flag::switch(Group::Write, "Trust the run; implies --write");
    /// The remote to which trusted runs push.
    git_remote as "git.remote" "WATTLE_GIT_REMOTE": Option<Remote> = |_| None, Class::Never;
    /// The branch to which trusted runs push.
    git_branch as "git.branch" "WATTLE_GIT_BRANCH": Branch = |_| Branch::default(), Class::Never;
    /// The email address of the author of commits. By default, `TENANT@wattle.invalid`.
    git_author_email as "git.author_email" "WATTLE_GIT_AUTHOR_EMAIL": Option<String> = |_| None, Class::Never;
    /// The environment variable that contains the token for HTTPS remotes.
    git_token_env as "git.token_env" "WATTLE_GIT_TOKEN_ENV": Option<String> = |_| None, Class::Never;
    /// The CA certificate file used to verify HTTPS remotes. By default, the system's CA
    /// certificates.
    git_ca_file as "git.ca_file" "WATTLE_GIT_CA_FILE": Option<PathBuf> = |_| None, Class::Never;
    /// The private key file for SSH remotes. By default, the user's keys and SSH agent.
    git_ssh_key as "git.ssh_key" "WATTLE_GIT_SSH_KEY": Option<PathBuf> = |_| None, Class::Never;
    /// The file that lists the known host keys of SSH remotes. By default, the user's `known_hosts`
    /// file.
    git_known_hosts as "git.known_hosts" "WATTLE_GIT_KNOWN_HOSTS": Option<PathBuf> = |_| None, Class::Never;
    /// The public folder to which trusted runs publish.
    publish_root as "publish.root" "WATTLE_PUBLISH_ROOT": Option<PathBuf> = |_| None, Class::Never;
    /// The URL of the images endpoint, without `/images/generations`.
    image_base_url as "image.base_url" "WATTLE_IMAGE_BASE_URL": Option<String> = |_| None, Class::Never;
    /// The model that generates images.
    image_model as "image.model" "WATTLE_IMAGE_MODEL": Option<String> = |_| None, Class::Never;
    /// The environment variable that contains the key of the images endpoint.
    image_api_key_env as "image.api_key_env" "WATTLE_IMAGE_API_KEY_ENV": Option<String> = |_| None, Class::Never;
    /// The secrets that requests may contain, each with its environment variable and its hosts. A
    /// server uses them for the configured tenant only, unless `shared` is true.
    secrets "WATTLE_SECRETS": SecretList = |_| SecretList::default(), Class::Never;
    /// The MCP servers whose tools programs may call, each with its command or its URL. A server uses
    /// them for the configured tenant only, unless `shared` is true.
    mcp "WATTLE_MCP": McpServers = |_| McpServers::default(), Class::Never;
    /// The privileges of single programs of the catalog: for each program's name, `sha256`, the hash
    /// of its text, and `grants`, the rules and secrets that this text gets beyond the policy.
    programs "WATTLE_PROGRAMS": Privileges = |_| Privileges::default(), Class::Never;
    /// The hosts that programs may reach even if they are not public.
    allow_host "WATTLE_ALLOW_HOST": Vec<HostRule> = |_| Vec::new(), Class::Narrows(class::fewer_hosts), granted
        => Flag::value(Group::Hosts, "HOST[:PORT]", "Allow a host that is not public; repeatable");
    /// The policy rules that allow effects.
    allow "WATTLE_ALLOW": Vec<Rule> = |_| Vec::new(), Class::NeedsTrust, granted
        => Flag::value(Group::Policy, "RULE", "Allow what matches a rule, such as http or write:notes; repeatable");
    /// The policy rules that require approval for effects.
    ask "WATTLE_ASK": Vec<Rule> = |_| Vec::new(), Class::Narrows(class::always), granted
        => Flag::value(Group::Policy, "RULE", "Ask about what matches a rule, such as kv.set; repeatable");
    /// The policy rules that deny effects.
    deny "WATTLE_DENY": Vec<Rule> = |_| Vec::new(), Class::Narrows(class::always), granted
        => Flag::value(Group::Policy, "RULE", "Deny what matches a rule, such as host:*.example.com; repeatable");
    /// The folders of programs. Programs in later folders override those in earlier ones. A program
    /// overrides a built-in program only if it declares `replaces`.
    catalog "WATTLE_CATALOG": Vec<PathBuf> = |_| Vec::new(), Class::NeedsTrust, granted
        => Flag::value(Group::Folders, "DIR", "Load programs from a folder; repeatable");
    /// The folders of skills, in addition to `skills` in the folder of the user file and to those of
    /// the project. Skills in later folders override those in earlier ones.
    skills "WATTLE_SKILLS": Vec<PathBuf> = |_| Vec::new(), Class::Never, granted
        => Flag::value(Group::Folders, "DIR", "Load skills from a folder; repeatable");
    /// The folders of agents. Agents in later folders override those in earlier ones.
    agents "WATTLE_AGENTS": Vec<PathBuf> = |_| Vec::new(), Class::NeedsTrust, granted
        => Flag::value(Group::AgentFolders, "DIR", "Load agents from a folder; repeatable");
    /// The catalog program that resolves agent references with a `:`, such as `custom:support`.
    agent_resolver "WATTLE_AGENT_RESOLVER": Option<String> = |_| None, Class::NeedsTrust;
    /// The name of the agent.
    agent "WATTLE_AGENT": Option<String> = |_| None, Class::NeedsTrust
        => Flag::value(Group::Agent, "NAME", "Run as this agent").common();
    /// The session of the run.
    session "WATTLE_SESSION": Option<String> = |_| None, Class::NeedsTrust
        => Flag::value(Group::Session, "ID", "Continue this session, with its conversation and its state").common();
    /// The tenant of the run. All sessions of a tenant share its variables.
    tenant "WATTLE_TENANT": String = |_| DEFAULT_TENANT.to_owned(), Class::NeedsTrust, granted
        => Flag::value(Group::Tenant, "NAME", "Act for this tenant [default: default]");
    /// The time after which a server removes an unused session. `keep.sessions` applies to all other
    /// commands.
    session_ttl "WATTLE_SESSION_TTL": Timeout = |_| Timeout(Duration::from_secs(3_600)), Class::NeedsTrust;
    /// The time for which a session is kept after its last use, or `forever`. Servers use
    /// `session_ttl` instead.
    keep_sessions as "keep.sessions" "WATTLE_KEEP_SESSIONS": KeepTime = |_| KeepTime(None), Class::Never;
    /// The time for which a run is kept after its end, or `forever`.
    keep_runs as "keep.runs" "WATTLE_KEEP_RUNS": KeepTime = |_| KeepTime(Retention::default().runs), Class::Never;
    /// The time for which the events of a run are kept after its end. With `forever`, they are kept
    /// as long as the run. The last event is always kept as long as the run.
    keep_events as "keep.events" "WATTLE_KEEP_EVENTS": KeepTime = |_| KeepTime(Retention::default().events), Class::Never;
    /// The store of sessions and runs: a file, or the URL `postgres://…` of a database.
    store "WATTLE_STORE": Option<StoreLocation> = |places| places.store.clone().map(StoreLocation::File), Class::NeedsTrust
        => Flag::value(Group::Store, "FILE|URL", "Keep sessions and runs in this file or database");
    /// The location of files of more than 256 KiB: a folder `file:///…` or a bucket `s3://…`.
    /// Without it, the store contains them.
    blobs "WATTLE_BLOBS": Option<BlobLocation> = |_| None, Class::NeedsTrust
        => Flag::value(Group::Store, "URL", "Keep files of more than 256 KiB in this folder or bucket");
    /// The folder of traces: a folder for the traces of all workdirs, or `workdir` to keep them in
    /// the workdir of each run. By default, the folder `traces` beside the store.
    trace_dir as "trace.dir" "WATTLE_TRACE_DIR": Option<TraceLocation> = |_| None, Class::Never;
    /// If true, programs and observations are printed in full.
    verbose "WATTLE_VERBOSE": bool = |_| false, Class::Presentation
        => Flag::switch(Group::Verbose, "Show programs and observations in full, and debug messages").short('v').common();
    /// If true, the terminal's bell rings when a run that took at least 10 seconds ends or asks.
    bell "WATTLE_BELL": bool = |_| true, Class::Presentation;
    /// The sandbox around the process: `on` or `off`.
    sandbox "WATTLE_SANDBOX": Sandbox = |_| Sandbox::On, Class::Never
        => Flag::value(Group::Sandbox, "SWITCH", "Confine the process itself: on or off [default: on]");
}

/// A setting's key in a file.
pub(super) struct Key {
    /// The key.
    pub(super) name: &'static str,
    /// The class, which determines whether a project file may set the setting.
    pub(super) kind: Kind,
    /// If true, a resumed run keeps the setting.
    granted: bool,
}

/// Returns the keys of all settings, in the order of the manual.
pub(crate) fn keys() -> impl Iterator<Item = &'static str> {
    KEYS.iter().map(|key| key.name)
}

/// Returns true if a resumed run keeps the setting with this key.
fn is_granted(key: &str) -> bool {
    KEYS.iter().any(|own| own.granted && own.name == key)
}

/// Converts a default budget to a setting.
fn budget(default: u64) -> NonZeroU32 {
    u32::try_from(default).ok().and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MIN)
}

/// Converts a default size in bytes to a setting in MiB.
fn mebibytes(bytes: u64) -> NonZeroU32 {
    u32::try_from(bytes >> 20).ok().and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MIN)
}

/// Reads the value of an environment variable. Returns `None` if the variable is not set or
/// contains only whitespace.
fn variable<T: Value>(
    get: &dyn Fn(&str) -> Option<std::ffi::OsString>,
    name: &'static str,
) -> Result<Option<T>, Fault> {
    let Some(value) = get(name).filter(|value| !value.is_empty()) else { return Ok(None) };
    let text = value
        .to_str()
        .ok_or_else(|| Fault::configuration(format!("the variable `{name}` is not UTF-8")))?;
    if text.trim().is_empty() {
        return Ok(None);
    }
    T::from_text(text)
        .map(Some)
        .map_err(|why| Fault::configuration(format!("the variable `{name}`: {why}")))
}

/// Reads the value of a key. Returns `None` if the table does not contain the key.
fn entry<T: Value>(
    table: &toml::Table,
    key: &'static str,
    source: &Source<'_>,
) -> Result<Option<T>, Fault> {
    let folder = source.path.parent().unwrap_or(Path::new(""));
    let Some(value) = table.get(key) else { return Ok(None) };
    T::from_toml(value, folder).map(Some).map_err(|why| source.wrong_value(key, &why))
}

/// Parses the text of a value, and returns the value as in a file.
fn in_file<T: Value>(text: &str, folder: &Path) -> Result<toml::Value, String> {
    let in_toml = |value: T| {
        toml::Value::try_from(value.to_json()).map_err(|_| "expected a value".to_owned())
    };
    in_toml(T::from_toml(&in_toml(T::from_text(text)?)?, folder)?)
}
