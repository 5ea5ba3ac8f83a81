//! `wattle completions`: completes the words of a command line in a shell.
//!
//! The script of a shell asks this binary for the completions. The names of programs, agents,
//! sessions and runs are those of the settings in the current folder. Nothing is printed or asked
//! about settings with a fault, because the user is typing.

use std::ffi::OsStr;

use clap::Arg;
use clap_complete::engine::{
    ArgValueCandidates, ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter,
};
use clap_complete::env::{CompleteEnv, Shells};
use wattle_agent::agents::Agents;
use wattle_agent::host::catalog::Folders;
use wattle_agent::host::journal::{Journal as _, RunFilter};
use wattle_agent::model::presets;

use crate::config::{Config, Places, keys};
use crate::fault::Fault;
use crate::output::{self, visible};
use crate::setup::{LAST, store_if_there};
use crate::trust::Found;
use crate::{args, invocation, threads, trust};

/// The variable in which a shell's script names the shell when it asks for completions.
const VARIABLE: &str = "WATTLE_COMPLETE";

/// Maximum number of sessions or runs that are offered.
const MOST: usize = 50;

/// Prints the completion script for a shell.
pub(crate) fn completions(shell: clap_complete::Shell) -> Result<(), Fault> {
    let shell = shell.to_string();
    let shells = Shells::builtins();
    let Some(script) = shells.completer(&shell) else {
        return Err(Fault::usage(format!("no completions for the shell `{shell}`")));
    };
    let mut text = Vec::new();
    let written = script.write_registration(VARIABLE, "wattle", "wattle", "wattle", &mut text);
    written.map_err(Fault::failed)?;
    output::data(&text)
}

/// If a shell's script asks for completions, prints them and ends the process.
pub(crate) fn answer() {
    let shells = CompleteEnv::with_factory(|| with_candidates(args::command(), "")).var(VARIABLE);
    let folder = std::env::current_dir().ok();
    match shells.try_complete(invocation::all_args(), folder.as_deref()) {
        Ok(false) => {}
        Ok(true) => std::process::exit(0),
        Err(error) => error.exit(),
    }
}

/// Adds the candidates to the arguments of a command and of those below it.
fn with_candidates(command: clap::Command, name: &str) -> clap::Command {
    command.mut_args(|arg| with_candidates_of(name, arg)).mut_subcommands(|below| {
        let name = args::below_name(name, below.get_name());
        with_candidates(below, &name)
    })
}

fn with_candidates_of(command: &str, arg: Arg) -> Arg {
    let group = command.split(' ').next().unwrap_or_default();
    match (group, arg.get_id().as_str()) {
        ("exec", "program") | ("catalog", "what") => {
            arg.add(ArgValueCompleter::new(programs_and_files))
        }
        ("catalog", "name") if command == "catalog show" => {
            arg.add(ArgValueCandidates::new(programs))
        }
        ("agents", "name") if command == "agents new" => arg,
        ("skills", "name") if command == "skills show" => arg.add(ArgValueCandidates::new(skills)),
        ("skills", "what") => arg.add(ArgValueCompleter::new(skills_and_folders)),
        ("skills", _) => arg,
        (_, "agent") | ("agents", "name" | "names") => arg.add(ArgValueCandidates::new(agents)),
        (_, "session") | ("session", "id" | "ids") => arg.add(ArgValueCandidates::new(sessions)),
        ("run", "resume" | "fork") | (_, "run") => arg.add(ArgValueCandidates::new(runs)),
        ("config", "key") => arg.add(ArgValueCandidates::new(|| each(keys()))),
        (_, "provider") => {
            arg.add(ArgValueCandidates::new(|| each(presets().iter().map(|one| &*one.name))))
        }
        (_, "dialect" | "dialects") => fixed(arg, &["text", "native", "auto"]),
        (_, "on_max_steps") => fixed(arg, &["answer", "stop", "latest"]),
        (_, "orient" | "agents_md" | "sandbox") => fixed(arg, &["on", "off"]),
        (_, "search_engine") => fixed(arg, &["page", "searxng", "brave", "off"]),
        _ => arg,
    }
}

fn fixed(arg: Arg, values: &'static [&'static str]) -> Arg {
    arg.add(ArgValueCandidates::new(|| each(values.iter().copied())))
}

fn each<'a>(values: impl Iterator<Item = &'a str>) -> Vec<CompletionCandidate> {
    values.map(CompletionCandidate::new).collect()
}

/// Returns a candidate with a description.
fn described(value: &str, about: &str) -> CompletionCandidate {
    let about = visible(about.lines().next().unwrap_or_default());
    CompletionCandidate::new(value).help((!about.is_empty()).then(|| about.into()))
}

/// Returns the settings in the current folder.
fn settings() -> Option<Config> {
    trust::gather_in_part(&[]).ok().map(|(config, _)| config)
}

fn programs() -> Vec<CompletionCandidate> {
    let catalog = settings().map(|config| config.catalog.value).unwrap_or_default();
    let folders = Folders::open(&catalog, &|_, _| Ok(()));
    let catalog = folders.catalog();
    let each =
        catalog.iter().map(|entry| described(entry.name().as_str(), &entry.meta().description));
    each.collect()
}

fn programs_and_files(current: &OsStr) -> Vec<CompletionCandidate> {
    let typed = current.to_string_lossy();
    let is_near =
        |one: &CompletionCandidate| one.get_value().to_string_lossy().starts_with(&*typed);
    let programs = programs().into_iter().filter(is_near);
    programs.chain(PathCompleter::any().stdio().complete(current)).collect()
}

fn agents() -> Vec<CompletionCandidate> {
    let folders = settings().map(|config| config.agents.value).unwrap_or_default();
    let agents = Agents::open(&folders).list();
    agents.iter().map(|agent| described(&agent.name, &agent.description)).collect()
}

fn skills() -> Vec<CompletionCandidate> {
    let found = settings()
        .and_then(|config| Found::read(&config, Some(&config.root.value), &Places::of_user()).ok());
    let skills = found.map(|found| found.skills).unwrap_or_default();
    skills.iter().map(|one| described(one.skill.name(), one.skill.description())).collect()
}

fn skills_and_folders(current: &OsStr) -> Vec<CompletionCandidate> {
    let typed = current.to_string_lossy();
    let is_near =
        |one: &CompletionCandidate| one.get_value().to_string_lossy().starts_with(&*typed);
    skills().into_iter().filter(is_near).chain(PathCompleter::dir().complete(current)).collect()
}

fn sessions() -> Vec<CompletionCandidate> {
    let listed = threads::look_up(async {
        let store = settings().map(|config| store_if_there(&config)).transpose()?.flatten();
        let Some(store) = store else { return Ok(Vec::new()) };
        let sessions = store.sessions().await?.into_iter().take(MOST);
        Ok(sessions.map(|one| CompletionCandidate::new(one.id)).collect())
    });
    with_last(listed.unwrap_or_default())
}

fn runs() -> Vec<CompletionCandidate> {
    let listed = threads::look_up(async {
        let store = settings().map(|config| store_if_there(&config)).transpose()?.flatten();
        let Some(store) = store else { return Ok(Vec::new()) };
        let newest = RunFilter { limit: u32::try_from(MOST).ok(), ..RunFilter::default() };
        let runs = store.runs(newest).await?;
        Ok(runs.iter().map(|run| described(&run.id, &run.start.message)).collect())
    });
    with_last(listed.unwrap_or_default())
}

/// Adds the word for the newest one, if there is one.
fn with_last(mut listed: Vec<CompletionCandidate>) -> Vec<CompletionCandidate> {
    if !listed.is_empty() {
        listed.push(CompletionCandidate::new(LAST));
    }
    listed
}
