//! The options of the command line that set settings. The row of a setting declares its option.

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches};

use super::Value;

/// A group of options, which commands accept together. The help shows the groups in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Group {
    /// The model, or a recording that replaces it.
    Model,
    /// The endpoint of the model.
    Endpoint,
    /// The recording of the model's answers.
    Record,
    /// The limits of an agent run.
    Limits,
    /// The form of an agent run: its calls and its first request.
    Form,
    /// The loop of an agent run.
    Engine,
    /// The time of a run.
    Time,
    /// The requests that programs make to models.
    Ai,
    /// The web search engine.
    Search,
    /// Whether a run changes the workdir, and whether it is trusted.
    Write,
    /// The hosts that are not public.
    Hosts,
    /// The rules of the policy.
    Policy,
    /// The session of a run.
    Session,
    /// The store.
    Store,
    /// The tenant in the store.
    Tenant,
    /// The confinement of the process.
    Sandbox,
    /// Verbose output.
    Verbose,
    /// The workdir.
    Root,
    /// The folders of programs.
    Folders,
    /// The folders of agents.
    AgentFolders,
    /// The agent of a run.
    Agent,
}

/// The option that sets a setting.
#[derive(Clone, Copy)]
pub(super) struct Flag {
    pub(super) group: Group,
    /// The name of the value in the help. A switch has no value.
    value: Option<&'static str>,
    help: &'static str,
    short: Option<char>,
    /// If true, the short help of commands shows the option, too.
    is_common: bool,
}

/// The names of a setting in the layers.
#[derive(Clone, Copy)]
pub(super) struct Names {
    /// The field, which determines the option.
    pub(super) field: &'static str,
    /// The key in a file.
    pub(super) key: &'static str,
    /// The environment variable.
    pub(super) variable: &'static str,
}

impl Flag {
    /// Declares an option with a value. The option of a list can be repeated.
    pub(super) const fn value(group: Group, value: &'static str, help: &'static str) -> Flag {
        Flag { group, value: Some(value), help, short: None, is_common: false }
    }

    /// Declares an option without a value, which sets its setting to true.
    pub(super) const fn switch(group: Group, help: &'static str) -> Flag {
        Flag { group, value: None, help, short: None, is_common: false }
    }

    /// Adds a short name.
    pub(super) const fn short(self, short: char) -> Flag {
        Flag { short: Some(short), ..self }
    }

    /// Shows the option in the short help of commands, too.
    pub(super) const fn common(self) -> Flag {
        Flag { is_common: true, ..self }
    }

    /// Returns the option for the command line.
    pub(super) fn option<T: Value>(self, names: Names) -> Arg {
        let Names { field, key, variable } = names;
        let option = Arg::new(field)
            .long(field.replace('_', "-"))
            .short(self.short)
            .help(self.help)
            .long_help(format!("{}\n[key: {key}, variable: {variable}]", self.help))
            .hide_short_help(!self.is_common)
            .help_heading("Settings");
        match self.value {
            Some(value) => T::parsed(option.value_name(value).action(ArgAction::Set)),
            None => option.action(ArgAction::SetTrue),
        }
    }
}

/// Returns the value of an option, or `None` if the command line does not contain the option.
pub(super) fn given<T: Value>(matches: &ArgMatches, field: &str) -> Option<T> {
    matches.value_source(field).filter(|source| *source == ValueSource::CommandLine)?;
    T::given(matches, field)
}
