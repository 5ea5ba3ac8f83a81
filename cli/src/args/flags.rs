//! The command-line options that override settings, in groups. Each command lists the groups that
//! it uses.

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::Args;
use wattle_agent::host::DialectSetting;
use wattle_agent::host::capability::egress::HostRule;
use wattle_agent::host::capability::policy::Rule;
use wattle_agent::host::machine::Dollars;

use crate::config::{
    BlobLocation, Layer, Sandbox, SearchEngine, StoreLocation, Timeout, count, dollars, switch,
};

/// Declares groups of options. Each option sets the field of [`Layer`] with the same name. The
/// expression after `=>` converts the option's value.
macro_rules! groups {
    ($($(#[$doc:meta])* $group:ident {
        $($(#[$attribute:meta])* $name:ident: $type:ty => |$value:ident| $set:expr;)*
    })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Default, Args)]
        #[command(next_help_heading = "Settings")]
        pub(crate) struct $group {
            $($(#[$attribute])* pub(crate) $name: $type,)*
        }

        impl $group {
            fn set(self, layer: &mut Layer) {
                $(let $value = self.$name; layer.$name = $set;)*
            }
        }

        impl From<$group> for Layer {
            fn from(flags: $group) -> Layer {
                let mut layer = Layer::default();
                flags.set(&mut layer);
                layer
            }
        }
    )*};
}

groups! {
    /// Options that select the model, or a recording that replaces it.
    ModelFlags {
        /// Use this model
        #[arg(long, value_name = "NAME")]
        model: Option<String> => |value| value.map(Some);
        /// Answer from a recording instead of a model
        #[arg(long, value_name = "FILE")]
        cassette: Option<PathBuf> => |value| value.map(Some);
    }

    /// Options that select the endpoint of the model.
    EndpointFlags {
        /// Call this chat-completions endpoint, such as http://127.0.0.1:8080/v1
        #[arg(long, value_name = "URL")]
        base_url: Option<String> => |value| value.map(Some);
        /// Read the API key from this environment variable
        #[arg(long, value_name = "VAR")]
        api_key_env: Option<String> => |value| value.map(Some);
        /// Use a well-known endpoint: openrouter, openai, ollama, …
        #[arg(long, value_name = "PRESET")]
        provider: Option<String> => |value| value.map(Some);
    }

    /// The option that records the model's answers.
    RecordFlags {
        /// Record the model's answers in a file
        #[arg(long, value_name = "FILE")]
        record: Option<PathBuf> => |value| value.map(Some);
    }

    /// Options that limit an agent run and select the form of its calls.
    RunLimitFlags {
        /// Limit the steps of a run
        #[arg(long, value_name = "N", value_parser = count)]
        max_steps: Option<NonZeroU32> => |value| value.map(Some);
        /// Limit the tokens of a run
        #[arg(long, value_name = "N", value_parser = count)]
        max_tokens_total: Option<NonZeroU32> => |value| value.map(Some);
        /// Limit the cost of a run in dollars, such as 0.50
        #[arg(long, value_name = "DOLLARS", value_parser = dollars)]
        max_cost: Option<Dollars> => |value| value.map(Some);
        /// Choose the form of calls: text, native or auto [default: auto]
        #[arg(long, value_name = "DIALECT")]
        dialect: Option<DialectSetting> => |value| value;
        /// Show the model the workdir's file names: on or off [default: on]
        #[arg(long, value_name = "SWITCH", value_parser = switch)]
        orient: Option<bool> => |value| value;
    }

    /// The option that limits the time of a run.
    TimeFlags {
        /// Limit the time of a run, such as 90s or 2m
        #[arg(long, value_name = "TIME")]
        timeout: Option<Timeout> => |value| value.map(Some);
    }

    /// Options for the requests that programs make to models.
    AiFlags {
        /// Limit the requests that programs make to models [default: 50]
        #[arg(long, value_name = "N", value_parser = count)]
        ai_calls: Option<NonZeroU32> => |value| value;
        /// Limit the tokens of programs' model requests [default: 500000]
        #[arg(long, value_name = "N", value_parser = count)]
        ai_tokens: Option<NonZeroU32> => |value| value;
        /// Use this model for embeddings
        #[arg(long, value_name = "NAME")]
        embed_model: Option<String> => |value| value.map(Some);
    }

    /// Options that select the web search engine.
    SearchFlags {
        /// Select the engine: page, searxng, brave or off [default: page]
        #[arg(long, value_name = "KIND")]
        search_engine: Option<SearchEngine> => |value| value;
        /// Send searches to this URL
        #[arg(long, value_name = "URL")]
        search_url: Option<String> => |value| value.map(Some);
        /// Read the engine's key from a variable [default: WATTLE_SEARCH_KEY]
        #[arg(long, value_name = "VAR")]
        search_key_env: Option<String> => |value| value;
    }

    /// Options that let a run change the workdir, and the option that makes the run trusted.
    WriteFlags {
        /// Write to the workdir directly, without the overlay
        #[arg(long)]
        write: bool => |value| value.then_some(true);
        /// Apply the overlay's changes to the workdir at the end
        #[arg(long)]
        apply: bool => |value| value.then_some(true);
        /// Trust the run; implies --write
        #[arg(long)]
        exec: bool => |value| value.then_some(true);
    }

    /// The option that lets runs reach hosts that are not public.
    HostFlags {
        /// Allow a host that is not public; repeatable
        #[arg(long, value_name = "HOST[:PORT]")]
        allow_host: Vec<HostRule> => |value| given(value);
    }

    /// Options that add rules to the policy.
    PolicyFlags {
        /// Allow what matches a rule, such as http or write:notes; repeatable
        #[arg(long, value_name = "RULE")]
        allow: Vec<Rule> => |value| given(value);
        /// Ask about what matches a rule, such as kv.set; repeatable
        #[arg(long, value_name = "RULE")]
        ask: Vec<Rule> => |value| given(value);
        /// Deny what matches a rule, such as host:*.example.com; repeatable
        #[arg(long, value_name = "RULE")]
        deny: Vec<Rule> => |value| given(value);
    }

    /// The option that names folders of agents.
    AgentFolderFlags {
        /// Load agents from a folder; repeatable
        #[arg(long, value_name = "DIR")]
        agents: Vec<PathBuf> => |value| given(value);
    }

    /// The option that selects the agent of a run.
    AgentFlags {
        /// Run as this agent
        #[arg(long, value_name = "NAME")]
        agent: Option<String> => |value| value.map(Some);
    }

    /// The option that selects the session of a run.
    SessionFlags {
        /// Continue this session, with its conversation and its state
        #[arg(long, value_name = "ID")]
        session: Option<String> => |value| value.map(Some);
    }

    /// Options that select the store, and the tenant in it.
    StoreFlags {
        /// Keep sessions and runs in this file or database
        #[arg(long, value_name = "FILE|URL")]
        store: Option<StoreLocation> => |value| value.map(Some);
        /// Keep files of more than 256 KiB in this folder or bucket
        #[arg(long, value_name = "URL")]
        blobs: Option<BlobLocation> => |value| value.map(Some);
        /// Act for this tenant [default: default]
        #[arg(long, value_name = "NAME")]
        tenant: Option<String> => |value| value;
    }

    /// The option that enables or disables the confinement of the process.
    SandboxFlags {
        /// Confine the process itself: on or off [default: on]
        #[arg(long, value_name = "SWITCH")]
        sandbox: Option<Sandbox> => |value| value;
    }

    /// The option that enables verbose output.
    VerboseFlags {
        /// Show programs and observations in full, and debug messages
        #[arg(short, long)]
        verbose: bool => |value| value.then_some(true);
    }

    /// The option that selects the workdir.
    RootFlags {
        /// Work in this folder [default: .]
        #[arg(long, value_name = "DIR")]
        root: Option<PathBuf> => |value| value;
    }

    /// The option that names folders of programs.
    FolderFlags {
        /// Load programs from a folder; repeatable
        #[arg(long, value_name = "DIR")]
        catalog: Vec<PathBuf> => |value| given(value);
    }
}

/// Returns `None` for an empty list, so that an omitted option does not override the other layers.
fn given<T>(list: Vec<T>) -> Option<Vec<T>> {
    (!list.is_empty()).then_some(list)
}

/// Declares the settings of a command as a list of option groups. The values of all groups become
/// one layer.
macro_rules! settings {
    ($($(#[$doc:meta])* $name:ident { $($field:ident: $group:ident,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Default, Args)]
        pub(crate) struct $name {
            $(#[command(flatten)] $field: $group,)*
        }

        impl From<$name> for Layer {
            fn from(flags: $name) -> Layer {
                let mut layer = Layer::default();
                $(flags.$field.set(&mut layer);)*
                layer
            }
        }
    )*};
}

settings! {
    /// All options that override settings. `run`, `repl`, `config show` and `wattle` itself accept
    /// them.
    Flags {
        model: ModelFlags,
        endpoint: EndpointFlags,
        record: RecordFlags,
        limits: RunLimitFlags,
        time: TimeFlags,
        ai: AiFlags,
        search: SearchFlags,
        write: WriteFlags,
        hosts: HostFlags,
        policy: PolicyFlags,
        session: SessionFlags,
        store: StoreFlags,
        sandbox: SandboxFlags,
        verbose: VerboseFlags,
        root: RootFlags,
        folders: FolderFlags,
        agents: AgentFolderFlags,
        agent: AgentFlags,
    }

    /// The settings of `session resume`, which takes the session's id as an argument.
    ResumeFlags {
        model: ModelFlags,
        endpoint: EndpointFlags,
        record: RecordFlags,
        limits: RunLimitFlags,
        time: TimeFlags,
        ai: AiFlags,
        search: SearchFlags,
        write: WriteFlags,
        hosts: HostFlags,
        policy: PolicyFlags,
        store: StoreFlags,
        sandbox: SandboxFlags,
        verbose: VerboseFlags,
        root: RootFlags,
        folders: FolderFlags,
        agents: AgentFolderFlags,
        agent: AgentFlags,
    }

    /// The settings of `serve`. The server's runs write nothing to the workdir, and each request
    /// names its session.
    ServeFlags {
        model: ModelFlags,
        endpoint: EndpointFlags,
        record: RecordFlags,
        limits: RunLimitFlags,
        time: TimeFlags,
        ai: AiFlags,
        search: SearchFlags,
        hosts: HostFlags,
        policy: PolicyFlags,
        store: StoreFlags,
        sandbox: SandboxFlags,
        verbose: VerboseFlags,
        root: RootFlags,
        folders: FolderFlags,
        agents: AgentFolderFlags,
    }

    /// The settings of `exec`. The program may ask a model, but there is no agent loop to limit.
    ExecFlags {
        model: ModelFlags,
        endpoint: EndpointFlags,
        record: RecordFlags,
        time: TimeFlags,
        ai: AiFlags,
        search: SearchFlags,
        write: WriteFlags,
        hosts: HostFlags,
        policy: PolicyFlags,
        session: SessionFlags,
        store: StoreFlags,
        sandbox: SandboxFlags,
        verbose: VerboseFlags,
        root: RootFlags,
        folders: FolderFlags,
    }

    /// The settings of `shell`. A script can access files, but neither a model nor the network. The
    /// options for the store and for the folders of programs tell the command which files a script
    /// must not change.
    ShellFlags {
        time: TimeFlags,
        write: WriteFlags,
        policy: PolicyFlags,
        store: StoreFlags,
        sandbox: SandboxFlags,
        verbose: VerboseFlags,
        root: RootFlags,
        folders: FolderFlags,
    }

    /// The settings of `doctor`, which checks each of them.
    DoctorFlags {
        model: ModelFlags,
        endpoint: EndpointFlags,
        search: SearchFlags,
        hosts: HostFlags,
        store: StoreFlags,
        sandbox: SandboxFlags,
        verbose: VerboseFlags,
        root: RootFlags,
        folders: FolderFlags,
    }

    /// The settings of `replay`, which uses neither a model nor the network.
    ReplayFlags {
        store: StoreFlags,
        verbose: VerboseFlags,
        root: RootFlags,
        folders: FolderFlags,
    }

    /// The settings of `eval`. The tasks themselves set the limits of their runs.
    EvalFlags {
        endpoint: EndpointFlags,
        verbose: VerboseFlags,
        folders: FolderFlags,
        agents: AgentFolderFlags,
        agent: AgentFlags,
    }

    /// The settings of commands that read the catalog.
    CatalogFlags {
        root: RootFlags,
        folders: FolderFlags,
    }

    /// The settings of commands that read agents.
    AgentsFlags {
        root: RootFlags,
        folders: FolderFlags,
        agents: AgentFolderFlags,
    }

    /// The settings of `agents test`. Each example defines its own files.
    AgentsTestFlags {
        endpoint: EndpointFlags,
        root: RootFlags,
        folders: FolderFlags,
        agents: AgentFolderFlags,
    }
}
