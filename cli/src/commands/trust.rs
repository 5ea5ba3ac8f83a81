//! `wattle trust`, `wattle untrust`, `wattle status`: change and show the user's trust in project
//! files and files for agents.

use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};

use crate::args::{StatusArgs, TrustArgs};
use crate::config::{Config, Layer, PROJECT_FILE, Places, Project, above, repository_folders};
use crate::fault::Fault;
use crate::output::{self, DIM, GOOD, NAME, WARN, paint, visible};
use crate::trust::{AGENTS_FILE, Found, Pins, Records, Source, State, described, short};

/// Trusts the current content of a project file and of the files for agents.
pub(crate) fn trust(args: TrustArgs, flags: &[Layer]) -> Result<(), Fault> {
    let (folder, project) = Config::project(args.dir, flags)?;
    let places = Places::of_user();
    let mut found = Found::of_project(&folder, &places)?;
    if project.is_none() && !found.has_items() {
        found.problems.iter().for_each(|problem| output::warn(&problem.to_string()));
        return Err(none(&folder));
    }
    let whole = folder.canonicalize().unwrap_or_else(|_| folder.clone());
    let whole = project.as_ref().map_or(&whole, |project| &project.folder);
    if whole.to_str().is_none() {
        return Err(Fault::usage(format!(
            "the path `{}` is not UTF-8, and cannot be recorded",
            folder.display()
        )));
    }
    let pins = project.as_ref().map(Pins::of).transpose()?;
    if let Some((project, pins)) = project.as_ref().zip(pins.as_ref()) {
        Records::change(&places, |records| records.set(project, pins, true))?;
    }
    found.record(&places, true, |_| true)?;
    found.problems.iter().for_each(|problem| output::warn(&problem.to_string()));
    output::note(&format!(
        "{} {}, until one of these changes:",
        paint(GOOD, "trusted"),
        whole.display()
    ));
    let requests = project.iter().flat_map(|project| &project.requests);
    requests.for_each(|request| output::note(&format!("  {}", described(request))));
    let listed = pins.iter().flat_map(Pins::listed);
    listed.for_each(|(kind, name)| output::note(&format!("  {} {name}", paint(DIM, kind))));
    for_agents(&found).iter().for_each(|(line, _)| output::note(&format!("  {line}")));
    Ok(())
}

/// Returns a line for each file for agents, with its state.
fn for_agents(found: &Found) -> Vec<(String, &State)> {
    let line = |kind: &str, path: PathBuf, hash: &str| {
        let hash = paint(DIM, &format!("({})", short(hash)));
        format!("{} {} {hash}", paint(DIM, kind), visible(&path.display().to_string()))
    };
    let files = found
        .instructions
        .iter()
        .map(|file| (line("instructions", file.folder.join(AGENTS_FILE), &file.hash), &file.state));
    let skills = found.skills.iter().filter_map(|found| match &found.source {
        Source::Project(folder, place) => {
            Some((line("skill", folder.join(place), &found.hash), &found.state))
        }
        Source::User | Source::Setting => None,
    });
    files.chain(skills).collect()
}

/// Removes the trust record of a folder.
pub(crate) fn untrust(args: TrustArgs, flags: &[Layer]) -> Result<(), Fault> {
    // The project file is not read, because it may be missing or invalid.
    let root = flags.iter().find_map(|layer| layer.root.clone());
    let folder = args.dir.or(root).unwrap_or_else(|| PathBuf::from("."));
    let whole = folder.canonicalize();
    let whole = whole
        .map_err(|error| Fault::usage(format!("failed to find `{}`: {error}", folder.display())))?;
    let folders = || [Some(whole.clone()), above(&whole)].into_iter().flatten();
    let forgotten = Records::change(&Places::of_user(), |records| {
        let project = folders().find(|folder| records.forget(folder));
        let mut content = repository_folders(&whole);
        content.retain(|folder| records.forget_content(folder));
        project.or_else(|| content.into_iter().next())
    })?;
    match forgotten {
        Some(folder) => output::note(&format!("{} is no longer trusted", folder.display())),
        None => output::note(&format!("{} was not trusted", whole.display())),
    }
    Ok(())
}

/// Prints the settings of a project file and the files for agents, and whether they take effect.
pub(crate) fn status(args: StatusArgs, flags: &[Layer]) -> Result<(), Fault> {
    let (folder, project) = Config::project(args.dir, flags)?;
    let places = Places::of_user();
    let found = Found::of_project(&folder, &places)?;
    let mut shown = match project {
        None => json!({
            "folder": folder, "file": null, "state": "no project file", "settings": [],
        }),
        Some(project) => {
            let pins = Pins::of(&project)?;
            let records = Records::open(&places)?;
            let state = State::of(&project, &pins, records.get(&project.folder));
            if !args.json {
                show(&project, &pins, &state)?;
                return show_for_agents(&found);
            }
            document(&project, &pins, &state)
        }
    };
    if !args.json {
        output::text(&format!("{}: no `{PROJECT_FILE}`", folder.display()))?;
        return show_for_agents(&found);
    }
    super::extend(&mut shown, agents_document(&found));
    output::json(&shown)
}

fn show_for_agents(found: &Found) -> Result<(), Fault> {
    for_agents(found).into_iter().try_for_each(|(line, state)| {
        let style = if state.is_trusted() { GOOD } else { WARN };
        output::styled(&format!("  {line} {}", paint(style, state.word())))
    })
}

fn agents_document(found: &Found) -> Json {
    let files = found.instructions.iter().map(|file| {
        let path = file.folder.join(AGENTS_FILE);
        json!({"file": path, "hash": file.hash, "state": file.state.word()})
    });
    let skills = found.skills.iter().map(|found| {
        json!({
            "name": found.skill.name(), "description": found.skill.description(),
            "folder": found.skill.folder(), "hash": found.hash, "state": found.state.word(),
        })
    });
    json!({
        "instructions": files.collect::<Vec<_>>(), "skills": skills.collect::<Vec<_>>(),
    })
}

fn none(folder: &Path) -> Fault {
    Fault::usage(format!(
        "there is no `{PROJECT_FILE}`, no `{AGENTS_FILE}` and no skill in `{}` or above it",
        folder.display()
    ))
    .hint("without one of them there is nothing to trust")
}

fn show(project: &Project, pins: &Pins, state: &State) -> Result<(), Fault> {
    let style = if matches!(state, State::Trusted | State::NotNeeded) { GOOD } else { WARN };
    let head = match state {
        State::NotNeeded => "needs no trust: it only narrows".to_owned(),
        state => state.word().to_owned(),
    };
    output::styled(&format!(
        "{} {}",
        paint(NAME, &project.folder.display().to_string()),
        paint(style, &head)
    ))?;
    if let State::Changed(differences) = state {
        differences
            .iter()
            .try_for_each(|line| output::styled(&format!("  {} {line}", paint(WARN, "changed"))))?;
    }
    output::styled(&format!("  {} {}", paint(DIM, "hash"), pins.hash()))?;
    for request in &project.requests {
        let effect = if request.needs_trust { "needs trust" } else { "takes effect" };
        output::styled(&format!("  {} {}", described(request), paint(DIM, effect)))?;
    }
    pins.listed()
        .try_for_each(|(kind, name)| output::styled(&format!("  {} {name}", paint(DIM, kind))))
}

fn document(project: &Project, pins: &Pins, state: &State) -> Json {
    let settings = project.requests.iter().map(|request| {
        json!({
            "key": request.key, "value": request.value, "otherwise": request.otherwise,
            "class": request.kind.word(), "needs_trust": request.needs_trust,
        })
    });
    let changed =
        if let State::Changed(differences) = state { differences.clone() } else { Vec::new() };
    json!({
        "folder": project.folder, "file": project.folder.join(PROJECT_FILE),
        "state": state.word(), "hash": pins.hash(), "changed": changed,
        "settings": settings.collect::<Vec<_>>(), "programs": pins.programs().collect::<Vec<_>>(),
        "files": pins.files().collect::<Vec<_>>(),
    })
}
