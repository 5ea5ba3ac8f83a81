//! `wattle catalog fmt`: formats program files in the standard layout.

use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};
use wattle_agent::host::catalog::{Origin, format};

use crate::args::FmtArgs;
use crate::config::Config;
use crate::fault::{Exit, Fault};
use crate::output::{self, visible};
use crate::{files, input};

/// Formats every file or, with `--check`, lists the files that would change. Continues after a file
/// that cannot be formatted.
pub(super) fn fmt(args: FmtArgs, config: Config) -> Result<Exit, Fault> {
    let paths = paths(if args.files.is_empty() { config.catalog.value } else { args.files })?;
    let (mut documents, mut sound) = (Vec::new(), true);
    for path in &paths {
        let done = file(path, args.check);
        sound &= matches!(done, Ok(changed) if !(changed && args.check));
        if args.json {
            documents.push(to_json(path, &done));
        } else if path != Path::new("-") || done.is_err() {
            report(path, &done, args.check)?;
        }
    }
    if args.json {
        output::json(&Json::from(documents))?;
    }
    Ok(Exit::of(sound))
}

/// Returns the named files, and the program files in the named folders.
fn paths(named: Vec<PathBuf>) -> Result<Vec<PathBuf>, Fault> {
    if named.is_empty() {
        return Err(Fault::usage("no file is named")
            .hint("name files or folders of programs, or `-` for stdin"));
    }
    let each = named
        .into_iter()
        .map(|path| if path.is_dir() { super::files_in(&path) } else { Ok(vec![path]) });
    Ok(each.collect::<Result<Vec<_>, _>>()?.concat())
}

/// Formats a file in place. If `path` is `-`, formats stdin and prints the result. If `check` is
/// true, writes nothing. Returns true if the formatted text differs from the original.
fn file(path: &Path, check: bool) -> Result<bool, String> {
    let text = input::text(path).map_err(|fault| fault.to_string())?;
    let formatted =
        format(&text, Origin::File(path.to_owned())).map_err(|error| error.to_string())?;
    let changed = formatted != text;
    if path == Path::new("-") && !check {
        output::data(formatted.as_bytes()).map_err(|fault| fault.to_string())?;
    } else if changed && !check {
        files::replace(path, &formatted)
            .map_err(|error| format!("failed to write `{}`: {error}", path.display()))?;
    }
    Ok(changed)
}

fn report(path: &Path, done: &Result<bool, String>, check: bool) -> Result<(), Fault> {
    let shown = visible(&path.display().to_string());
    match done {
        Ok(false) => Ok(()),
        Ok(true) if check => output::text(&format!("would change {shown}")),
        Ok(true) => output::text(&format!("formatted {shown}")),
        Err(error) => {
            output::note(&format!("{shown}: {}", visible(error.trim_end())));
            Ok(())
        }
    }
}

fn to_json(path: &Path, done: &Result<bool, String>) -> Json {
    json!({
        "file": path,
        "changed": done.as_ref().is_ok_and(|changed| *changed),
        "error": done.as_ref().err(),
    })
}
