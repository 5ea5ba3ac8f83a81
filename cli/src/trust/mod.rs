//! Trust in folders: whether what a project file sets beyond narrowing takes effect.
//!
//! The user trusts a folder by `wattle trust`, or when asked on a terminal. What is trusted is content: the project file and the programs
//! of the catalog folders that it names, each by its hash ([`pins`]), kept in the user's data folder ([`record`]). When any of them
//! changes, the folder is not trusted until the user says so again.

mod pins;
mod record;

use std::io::{BufRead, Read, stdin};

use crate::config::{File, Places, Project, Request};
use crate::fault::{Exit, Fault};
use crate::output::{self, DIM, WARN, paint};

pub(crate) use pins::Pins;
pub(crate) use record::{Record, Records};

/// What is known of a folder's project file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Everything it sets needs no trust.
    NotNeeded,
    /// The user trusts it as it is now.
    Trusted,
    /// The user trusted other content; each line is one difference.
    Changed(Vec<String>),
    /// The user was asked about this content, and declined.
    Declined,
    /// The user was not asked.
    Unknown,
}

impl State {
    /// Compares a project file with what was recorded of its folder.
    pub(crate) fn of(project: &Project, pins: &Pins, record: Option<&Record>) -> State {
        if project.untrusted().next().is_none() {
            return State::NotNeeded;
        }
        match record {
            None => State::Unknown,
            Some(record) if record.pins == *pins => match record.trusted {
                true => State::Trusted,
                false => State::Declined,
            },
            Some(record) if record.trusted => State::Changed(record.differences(project, pins)),
            Some(_) => State::Unknown,
        }
    }

    /// The word for it in what is printed.
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

/// Decides what a project file sets: all of it in a trusted folder and where it only narrows; else the user is asked on a terminal, and
/// elsewhere the command ends. A user who declines goes on without what needs trust, and is not asked about the same content again.
///
/// # Errors
/// If the folder is not trusted and nobody can be asked, or if what was recorded cannot be read.
pub(crate) fn admit(project: Project, places: &Places) -> Result<File, Fault> {
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
                "`{}` sets {}, which takes no effect: `wattle trust` would let it",
                project.path.display(),
                names(&project)
            ));
            Ok(project.narrowing())
        }
        State::Changed(_) | State::Unknown => {
            ask(&project, &pins, &state);
            let trusted = is_yes();
            let kept = Records::change(places, |records| records.set(&project, &pins, trusted));
            kept.unwrap_or_else(|fault| output::warn(fault.message()));
            Ok(if trusted { project.whole() } else { project.narrowing() })
        }
    }
}

/// The keys that need trust, as a list in a sentence.
fn names(project: &Project) -> String {
    project.untrusted().map(|request| format!("`{}`", request.key)).collect::<Vec<_>>().join(", ")
}

fn refused(project: &Project, state: &State) -> Fault {
    let (path, sets) = (project.path.display(), names(project));
    let message = match state {
        State::Changed(differences) => format!(
            "the project file `{path}` sets {sets}, and has changed since its folder was trusted:\n  {}",
            differences.join("\n  ")
        ),
        _ => format!("the project file `{path}` sets {sets}, and its folder is not trusted"),
    };
    Fault::new(Exit::Configuration, message)
        .hint(format!("`wattle status` shows what it sets; if you trust it: {}", command(project)))
}

/// The command that trusts a folder. A path that a shell would not take for one word is left out: whoever named the folder does not write
/// commands for the user.
fn command(project: &Project) -> String {
    let folder = project.folder.to_string_lossy();
    let plain = |c: char| c.is_alphanumeric() || "/._-+".contains(c);
    match folder.chars().all(plain) {
        true => format!("wattle trust {folder}"),
        false => "`wattle trust` in that folder".to_owned(),
    }
}

/// Lists what a file would change, and asks.
fn ask(project: &Project, pins: &Pins, state: &State) {
    let path = project.path.display();
    let head = match state {
        State::Changed(_) => format!("the project file `{path}` has changed since you trusted its folder:"),
        _ => format!("the project file `{path}` sets what needs your trust:"),
    };
    output::note(&paint(WARN, &head));
    if let State::Changed(differences) = state {
        differences.iter().for_each(|line| output::note(&format!("  {line}")));
        output::note("it now sets:");
    }
    project.untrusted().for_each(|request| output::note(&format!("  {}", described(request))));
    pins.programs().for_each(|program| output::note(&format!("  {} {program}", paint(DIM, "program"))));
    output::note("trust it? y: yes, until it changes; anything else: go on without these settings");
}

/// One setting, and the value that it takes the place of.
pub(crate) fn described(request: &Request) -> String {
    match request.otherwise.is_null() {
        true => request.to_string(),
        false => format!("{request} {}", paint(DIM, &format!("(without the file: {})", request.otherwise))),
    }
}

/// Maximum length of an answer, in bytes.
const ANSWER: u64 = 1 << 10;

fn is_yes() -> bool {
    let mut said = Vec::new();
    // A terminal that cannot be read says nothing.
    let _ = stdin().lock().take(ANSWER).read_until(b'\n', &mut said);
    matches!(said.trim_ascii().to_ascii_lowercase().as_slice(), b"y" | b"yes")
}
