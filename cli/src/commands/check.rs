//! `wattle check`: what is wrong with programs, without running them.

use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};
use wattle_agent::capability;
use wattle_agent::catalog::{Entry, Origin, Problem};
use wattle_agent::rt::{Diagnostic, Limits, Program, Runtime, Severity};

use super::authority;
use crate::args::CheckArgs;
use crate::config::{Config, Layer};
use crate::fault::{Exit, Fault};
use crate::output::{GOOD, paint, visible};
use crate::{input, output, setup};

/// One thing that is worth telling about a file.
enum Finding {
    Unreadable(String),
    Program(Box<Diagnostic>),
    FrontMatter(Problem),
}

impl Finding {
    fn is_error(&self) -> bool {
        !matches!(self, Finding::Program(diagnostic) if diagnostic.severity == Severity::Warning)
    }

    fn to_json(&self) -> Json {
        match self {
            Finding::Program(diagnostic) => diagnostic.to_json(),
            Finding::FrontMatter(problem) => json!({
                "severity": "error", "code": "front-matter", "line": problem.line(), "column": null,
                "message": problem.message(), "hint": problem.hint(),
            }),
            Finding::Unreadable(why) => json!({
                "severity": "error", "code": "unreadable", "line": null, "column": null, "message": why, "hint": null,
            }),
        }
    }

    /// What stderr shows.
    fn shown(&self, file: &str) -> String {
        match self {
            Finding::Program(diagnostic) => format!("{file}: {}", diagnostic.to_string().trim_end()),
            Finding::FrontMatter(problem) => format!("error[front-matter]: {problem}"),
            Finding::Unreadable(why) => format!("error[unreadable]: {why}"),
        }
    }
}

/// Checks every file; one that is wrong does not keep the others from being checked.
pub(crate) async fn check(args: CheckArgs, outer: Layer) -> Result<Exit, Fault> {
    let named = |path: &PathBuf| *path != *"-" && !path.is_file() && path.extension().is_none();
    let catalog = match args.files.iter().any(named) {
        true => Some(setup::catalog(&Config::gather(&[args.flags.into(), outer])?)),
        false => None,
    };
    let limits = Limits { instances: 1, ..Limits::default() };
    let runtime = Runtime::new(capability::ALL, limits).map_err(|error| Fault::failed(error.to_string()))?;
    let (mut documents, mut sound) = (Vec::new(), true);
    for path in &args.files {
        let file = path.display().to_string();
        let entry = catalog.as_ref().filter(|_| named(path)).and_then(|catalog| catalog.get(&file));
        let source = entry.map_or_else(|| input::text(path), |entry| Ok(entry.source().to_string()));
        let (findings, program) = findings(&runtime, path, source).await;
        let ok = !findings.iter().any(Finding::is_error);
        sound &= ok;
        if args.json {
            let diagnostics: Vec<Json> = findings.iter().map(Finding::to_json).collect();
            let mut document = json!({"file": file, "ok": ok, "diagnostics": diagnostics});
            if let (true, Some(document)) = (args.authority, document.as_object_mut()) {
                let authority = program.as_ref().map(|program| authority::to_json(&runtime, program));
                document.insert("authority".to_owned(), authority.unwrap_or_default());
            }
            documents.push(document);
        } else {
            findings.iter().for_each(|finding| output::note(&visible(&finding.shown(&file))));
            if let (true, Some(program)) = (args.authority, &program) {
                let lines = authority::shown(&runtime, program).into_iter().map(|line| format!("  {line}\n"));
                output::styled(&format!("{}\n{}", visible(&file), lines.collect::<String>()))?;
            } else if ok {
                output::note(&format!("{file}: {}", paint(GOOD, "ok")));
            }
        }
    }
    if args.json {
        output::json(&Json::from(documents))?;
    }
    Ok(if sound { Exit::Done } else { Exit::Failed })
}

async fn findings(runtime: &Runtime, path: &Path, source: Result<String, Fault>) -> (Vec<Finding>, Option<Program>) {
    let source = match source {
        Ok(source) => source,
        Err(fault) => return (vec![Finding::Unreadable(fault.to_string())], None),
    };
    let entry = has_front_matter(&source).then(|| Entry::parse(&source, Origin::File(path.to_owned())));
    let prepared = runtime.prepare(&source).await;
    let mut findings = Vec::new();
    match (entry, &prepared) {
        (Some(Err(problem)), _) => findings.push(Finding::FrontMatter(problem)),
        (Some(Ok(entry)), Ok(program)) => {
            findings.extend(entry.check_uses(program.imports()).err().map(Finding::FrontMatter));
        }
        _ => {}
    }
    match &prepared {
        Ok(program) => findings.extend(program.warnings().iter().map(|w| Finding::Program(Box::new(w.clone())))),
        Err(diagnostic) => findings.push(Finding::Program(Box::new((**diagnostic).clone()))),
    }
    (findings, prepared.ok())
}

/// Whether a text is a catalog program: its first line that is not blank and no plain comment begins with `;;;`.
fn has_front_matter(source: &str) -> bool {
    let mut lines = source.trim_start_matches('\u{feff}').lines().map(str::trim_start);
    let is_comment = |line: &&str| line.is_empty() || (line.starts_with(";;") && !line.starts_with(";;;"));
    lines.find(|line| !is_comment(line)).is_some_and(|line| line.starts_with(";;;"))
}
