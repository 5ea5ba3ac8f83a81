//! Trust in folders. A project file can always narrow the user's settings. It can do more only if
//! the user trusts its folder.
//!
//! The user trusts a folder with `wattle trust`, or when asked on a terminal. Trust applies to
//! content: the project file and the programs, agents, traits and recording that its settings load,
//! each identified by its hash ([`pins`]). It is recorded in the user's data folder ([`record`]).
//! After any change, the folder is not trusted until the user trusts it again.
//!
//! A project can also have files for agents, which are trusted one by one ([`content`]).

mod content;
mod pins;
mod record;

use std::path::Path;

use crate::config::{Config, File, Layer, Places, Project, Request};
use crate::fault::{Exit, Fault};
use crate::output::{self, DIM, WARN, paint};

pub(crate) use content::{
    AGENTS_FILE, Found, FoundSkill, Source, short, with_content, with_content_of,
    with_trusted_content,
};
pub(crate) use pins::{AGENT, PROGRAM, Pins};
pub(crate) use record::{Record, Records};

/// The state of a folder's project file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// No setting of the file needs trust.
    NotNeeded,
    /// The user trusts its current content.
    Trusted,
    /// The content has changed since the user trusted it. Each string describes one difference.
    Changed(Vec<String>),
    /// The user was asked about this content and declined.
    Declined,
    /// The user was not asked about this content.
    Unknown,
}

impl State {
    /// Compares a project file with the record of its folder.
    pub(crate) fn of(project: &Project, pins: &Pins, record: Option<&Record>) -> State {
        if project.untrusted().next().is_none() {
            return State::NotNeeded;
        }
        match record {
            None => State::Unknown,
            Some(record) if record.pins == *pins => {
                if record.trusted {
                    State::Trusted
                } else {
                    State::Declined
                }
            }
            Some(record) if record.trusted => State::Changed(record.differences(project, pins)),
            Some(_) => State::Unknown,
        }
    }

    /// Returns true if the content takes effect.
    pub(crate) fn is_trusted(&self) -> bool {
        matches!(self, State::NotNeeded | State::Trusted)
    }

    /// Returns the printed name of the state.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            State::NotNeeded => "not needed",
            State::Trusted => "trusted",
            State::Changed(_) => "changed",
            State::Declined => "declined",
            State::Unknown => "not trusted",
        }
    }
}

/// Gathers the settings from all layers. The settings of a project file take effect as far as its
/// folder is trusted.
///
/// # Errors
/// If a layer has an invalid setting, or a folder is not trusted and nobody can be asked.
pub(crate) fn gather(flags: &[Layer]) -> Result<Config, Fault> {
    Config::gather(flags, admit)
}

/// Gathers the settings for a command that changes nothing. A file with a fault, and the settings of a
/// folder that is not trusted, have no effect, and nobody is asked. Returns their faults, too.
///
/// # Errors
/// If an environment variable has an invalid value, or a setting contains a secret in place of its name.
pub(crate) fn gather_in_part(flags: &[Layer]) -> Result<(Config, Vec<Fault>), Fault> {
    Config::gather_in_part(flags, |project, places| {
        let state = Pins::of(&project).and_then(|pins| {
            let records = Records::open(places)?;
            Ok(State::of(&project, &pins, records.get(&project.folder)))
        });
        match state {
            Ok(State::NotNeeded | State::Trusted) => (project.whole(), None),
            Ok(state) => {
                let fault = refused(&project, &state);
                (project.narrowing(), Some(fault))
            }
            Err(fault) => (project.narrowing(), Some(fault)),
        }
    })
}

/// Gathers the settings like [`gather_in_part`], and prints the faults as warnings.
///
/// # Errors
/// The same as for [`gather_in_part`].
pub(crate) fn gather_with_warnings(flags: &[Layer]) -> Result<Config, Fault> {
    let (config, faults) = gather_in_part(flags)?;
    faults.iter().for_each(|fault| output::warn(fault.message()));
    Ok(config)
}

/// Decides which settings of a project file take effect: all of them if the folder is trusted or if
/// they only narrow the user's settings. Otherwise, asks the user at the terminal, or fails if
/// there is no terminal. If the user declines, the settings that need trust are ignored, and the
/// user is not asked about the same content again.
///
/// # Errors
/// If the folder is not trusted and nobody can be asked, or if the record cannot be read.
fn admit(project: Project, places: &Places) -> Result<File, Fault> {
    if project.untrusted().next().is_none() {
        return Ok(project.whole());
    }
    let pins = Pins::of(&project)?;
    let records = Records::open(places)?;
    let state = State::of(&project, &pins, records.get(&project.folder));
    match state {
        State::NotNeeded | State::Trusted => Ok(project.whole()),
        _ if !crate::ask::is_terminal() => Err(refused(&project, &state)),
        State::Declined => {
            output::warn(&format!(
                "`{}` sets {}, which has no effect; `wattle trust` enables it",
                project.path.display(),
                names(&project)
            ));
            Ok(project.narrowing())
        }
        State::Changed(_) | State::Unknown => {
            ask(&project, &pins, &state);
            // If the terminal cannot be read, the answer is no.
            let reply = crate::stdin::lock().answer(None).ok().flatten().unwrap_or_default();
            let trusted = crate::ask::is_yes(&reply);
            let kept = Records::change(places, |records| records.set(&project, &pins, trusted));
            kept.unwrap_or_else(|fault| output::warn(fault.message()));
            Ok(if trusted { project.whole() } else { project.narrowing() })
        }
    }
}

/// Returns the keys of the settings that need trust, separated by commas.
fn names(project: &Project) -> String {
    project.untrusted().map(|request| format!("`{}`", request.key)).collect::<Vec<_>>().join(", ")
}

fn refused(project: &Project, state: &State) -> Fault {
    let (path, sets) = (project.path.display(), names(project));
    let message = match state {
        State::Changed(differences) => format!(
            "the project file `{path}` sets {sets}, and has changed since its folder was \
             trusted:\n  {}",
            differences.join("\n  ")
        ),
        _ => format!("the project file `{path}` sets {sets}, and its folder is not trusted"),
    };
    Fault::new(Exit::Configuration, message)
        .hint(format!("`wattle status` shows its settings; if you trust it: {}", command(project)))
}

/// Returns the command that trusts the folder of a project file.
fn command(project: &Project) -> String {
    command_for(&project.folder)
}

/// Returns the command that trusts a folder. A path that needs quoting in a shell is omitted,
/// because the author of the folder chose the path.
fn command_for(folder: &Path) -> String {
    let folder = folder.to_string_lossy();
    let plain = |c: char| c.is_alphanumeric() || "/._-+".contains(c);
    if folder.chars().all(plain) {
        format!("wattle trust {folder}")
    } else {
        "`wattle trust` in that folder".to_owned()
    }
}

/// Lists the settings and files that need trust, and asks the user whether to trust them. If the
/// file has changed since it was trusted, also lists the differences.
fn ask(project: &Project, pins: &Pins, state: &State) {
    let path = project.path.display();
    let head = match state {
        State::Changed(_) => {
            format!("the project file `{path}` has changed since you trusted its folder:")
        }
        _ => format!("the project file `{path}` has settings that need your trust:"),
    };
    output::note(&paint(WARN, &head));
    if let State::Changed(differences) = state {
        differences.iter().for_each(|line| output::note(&format!("  {line}")));
        output::note("it now sets:");
    }
    project.untrusted().for_each(|request| output::note(&format!("  {}", described(request))));
    pins.listed().for_each(|(kind, name)| output::note(&format!("  {} {name}", paint(DIM, kind))));
    output::note(
        "trust it? y: yes, until it changes; anything else: continue without these settings",
    );
}

/// Describes a setting, and the value that it replaces.
pub(crate) fn described(request: &Request) -> String {
    if request.otherwise.is_null() {
        request.to_string()
    } else {
        format!("{request} {}", paint(DIM, &format!("(without the file: {})", request.otherwise)))
    }
}
