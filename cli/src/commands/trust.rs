//! `wattle trust`, `wattle untrust`, `wattle status`: change and show the user's trust in project
//! files.

use std::path::PathBuf;

use serde_json::{Value as Json, json};

use crate::args::{StatusArgs, TrustArgs};
use crate::config::{Config, Layer, PROJECT_FILE, Places, Project, above};
use crate::fault::Fault;
use crate::output::{self, DIM, GOOD, NAME, WARN, paint};
use crate::trust::{Pins, Records, State, described};

/// Trusts the current content of a project file.
pub(crate) fn trust(args: TrustArgs, flags: &[Layer]) -> Result<(), Fault> {
    let (folder, project) = Config::project(args.dir, flags)?;
    let project = project.ok_or_else(|| none(&folder))?;
    if project.folder.to_str().is_none() {
        return Err(Fault::usage(format!(
            "the path `{}` is not UTF-8, and cannot be recorded",
            folder.display()
        )));
    }
    let pins = Pins::of(&project)?;
    Records::change(&Places::of_user(), |records| records.set(&project, &pins, true))?;
    output::note(&format!(
        "{} {}, until one of these changes:",
        paint(GOOD, "trusted"),
        project.folder.display()
    ));
    project.requests.iter().for_each(|request| output::note(&format!("  {}", described(request))));
    pins.listed().for_each(|(kind, name)| output::note(&format!("  {} {name}", paint(DIM, kind))));
    Ok(())
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
        folders().find(|folder| records.forget(folder))
    })?;
    match forgotten {
        Some(folder) => output::note(&format!("{} is no longer trusted", folder.display())),
        None => output::note(&format!("{} was not trusted", whole.display())),
    }
    Ok(())
}

/// Prints the settings of a project file, and whether each of them takes effect.
pub(crate) fn status(args: StatusArgs, flags: &[Layer]) -> Result<(), Fault> {
    let (folder, project) = Config::project(args.dir, flags)?;
    let Some(project) = project else {
        if !args.json {
            return output::text(&format!("{}: no `{PROJECT_FILE}`", folder.display()));
        }
        return output::json(&json!({
            "folder": folder, "file": null, "state": "no project file", "settings": [],
        }));
    };
    let pins = Pins::of(&project)?;
    let records = Records::open(&Places::of_user())?;
    let state = State::of(&project, &pins, records.get(&project.folder));
    if args.json {
        output::json(&document(&project, &pins, &state))
    } else {
        show(&project, &pins, &state)
    }
}

fn none(folder: &std::path::Path) -> Fault {
    Fault::usage(format!("there is no `{PROJECT_FILE}` in `{}` or above it", folder.display()))
        .hint("without a project file there is nothing to trust")
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
