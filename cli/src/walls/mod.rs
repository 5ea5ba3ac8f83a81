//! The confinement of the process itself. Before it starts a thread or reads untrusted data, the
//! process gives up the access that its command does not need. Programs run in their own sandbox.
//! The confinement is a second barrier, in case the sandbox has a flaw.
//!
//! A list of [`Rule`]s describes the allowed access. The rules are derived from the command's
//! settings. Landlock enforces them if the kernel supports it ([`kernel`]). Core dumps are disabled
//! on every system.

#[cfg_attr(not(target_os = "linux"), path = "elsewhere.rs")]
mod kernel;
mod rules;

use std::fmt;
use std::path::PathBuf;

use rustix::process::{Resource, Rlimit, setrlimit};

use crate::config::{Config, Places, Sandbox};
use crate::fault::Fault;

pub(crate) use rules::{Reach, Rule, USUAL_PATH};

/// The access that a command needs in addition to the access that its settings require.
#[derive(Clone, Debug, Default)]
pub(crate) struct Needs {
    /// The files named on the command line that the command reads.
    pub(crate) reads: Vec<PathBuf>,
    /// The files named on the command line that the command writes. The rules allow access to their
    /// folders, because a write replaces the file.
    pub(crate) writes: Vec<PathBuf>,
    /// If true, the command changes nothing in the workdir.
    pub(crate) workdir_stays: bool,
    /// If true, the command may start trusted runs, which can commit and publish.
    pub(crate) trusted: bool,
    /// If true, the command listens on a port.
    pub(crate) listens: bool,
    /// If true, an administrator may save programs in the catalog folders.
    pub(crate) saves_programs: bool,
}

/// The extent to which this process is confined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Walls {
    /// All rules are enforced.
    Complete,
    /// Some rules are not enforced, because the kernel is too old.
    Partial,
    /// No rule is enforced, because the kernel has no Landlock or Landlock is disabled.
    Missing,
    /// No rule is enforced, because a setting or a flag disables the confinement.
    Off,
}

/// Confines the process. The confinement applies to this thread and to all threads and child
/// processes that it starts, and cannot be undone.
///
/// # Errors
/// If the kernel has Landlock and rejects the rules. A kernel without Landlock is not an error.
pub(crate) fn raise(config: &Config, needs: &Needs) -> Result<Walls, Fault> {
    // A core dump would contain keys and messages. If it cannot be disabled, the system's own
    // setting applies.
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    if config.sandbox.value == Sandbox::Off {
        return Ok(Walls::Off);
    }
    let rules = rules::rules(config, needs, &Places::of_user());
    kernel::enforce(&rules, needs.listens, true).map_err(|why| {
        Fault::failed(format!("failed to confine the process: {why}")).hint(
            "`--sandbox off` runs without confinement; `wattle doctor` shows the active walls",
        )
    })
}

/// Confines this process before it becomes a program: the server of tools that the user configured.
/// The program may read and execute what it is made of, the system's files, and what `rules` name. Its
/// temporary folder is the user's. Without `connects`, it opens no TCP connection.
///
/// # Errors
/// If the kernel rejects the rules, or has no Landlock: the user asked for walls.
pub(crate) fn around_program(
    program: &str,
    rules: Vec<Rule>,
    connects: bool,
) -> Result<(), String> {
    let rules = rules::of_program(program, rules);
    match kernel::enforce(&rules, false, connects).map_err(|why| why.to_string())? {
        Walls::Missing | Walls::Off => Err("this kernel has no Landlock; remove `read`, `write` \
                                            and `network` of the server to run it without walls"
            .to_owned()),
        Walls::Complete | Walls::Partial => Ok(()),
    }
}

impl fmt::Display for Walls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Walls::Complete => {
                "the process reaches only the files that it needs (Landlock), and listens on no \
                 port unless the command asks for it"
            }
            Walls::Partial => {
                "the process reaches only the files that it needs (Landlock, as far as this kernel \
                 has it)"
            }
            Walls::Missing => {
                "this kernel has no Landlock: only the sandbox of each program is active"
            }
            Walls::Off => "off by `sandbox`: only the sandbox of each program is active",
        })
    }
}
