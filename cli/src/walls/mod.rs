//! The second wall: the process gives up what its command does not need, before it starts a thread and before anything of a stranger's
//! is read. Programs are in a sandbox of their own; these walls stand where a flaw in that one would let them out.
//!
//! What a command may reach is data ([`Rule`]), made from its settings; Landlock enforces it where the kernel has it ([`kernel`]). Writing
//! core dumps is given up everywhere.

#[cfg_attr(not(target_os = "linux"), path = "elsewhere.rs")]
mod kernel;
mod rules;

use std::fmt;
use std::path::PathBuf;

use rustix::process::{Resource, Rlimit, setrlimit};

use crate::config::{Config, Places, Sandbox};
use crate::fault::Fault;

pub(crate) use rules::{Reach, Rule};

/// What a command needs besides what its settings name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Needs {
    /// Files of the command line that are read.
    pub(crate) reads: Vec<PathBuf>,
    /// Files of the command line that are written; their folders are opened, since files are replaced as a whole.
    pub(crate) writes: Vec<PathBuf>,
    /// If true, nothing in the workdir changes.
    pub(crate) workdir_stays: bool,
    /// If true, runs may be trusted ones, which commit and publish.
    pub(crate) trusted: bool,
    /// If true, the command listens on a port.
    pub(crate) listens: bool,
}

/// The walls that stand around this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Walls {
    /// All of them.
    Whole,
    /// Those that an older kernel has.
    Partial,
    /// None: the kernel has no Landlock, or it is switched off there.
    Missing,
    /// None: a setting or a flag says so.
    Off,
}

/// Puts the walls up. Whatever is started later stands behind them, threads and processes alike; nothing takes them down.
///
/// # Errors
/// If the kernel has Landlock and refuses the rules. A kernel without it is not an error.
pub(crate) fn raise(config: &Config, needs: &Needs) -> Result<Walls, Fault> {
    // A dump of the memory would have keys and messages in it. Where it cannot be forbidden, the system's own setting stays.
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    if config.sandbox.value == Sandbox::Off {
        return Ok(Walls::Off);
    }
    let rules = rules::rules(config, needs, &Places::of_user());
    kernel::enforce(&rules, needs.listens).map_err(|why| {
        Fault::failed(format!("failed to confine the process: {why}"))
            .hint("`--sandbox off` goes on without, and `wattle doctor` shows which walls stand")
    })
}

impl fmt::Display for Walls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Walls::Whole => {
                "the process reaches only the files that it needs (Landlock), and listens on no port of its own accord"
            }
            Walls::Partial => {
                "the process reaches only the files that it needs (Landlock, as far as this kernel has it)"
            }
            Walls::Missing => "this kernel has no Landlock: only the sandbox of each program stands",
            Walls::Off => "off by `sandbox`: only the sandbox of each program stands",
        })
    }
}
