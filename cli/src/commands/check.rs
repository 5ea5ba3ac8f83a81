//! `wattle check`: what is wrong with programs, without running them.

use std::path::Path;

use serde_json::{Value as Json, json};
use wattle_agent::capability;
use wattle_agent::catalog::{Entry, Origin, Problem};
use wattle_agent::rt::{Diagnostic, Limits, Runtime, Severity};

use crate::args::CheckArgs;
use crate::fault::{Exit, Fault};
use crate::output::{GOOD, paint, visible};
use crate::{input, output};

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
pub(crate) async fn check(args: CheckArgs) -> Result<Exit, Fault> {
    let limits = Limits { instances: 1, ..Limits::default() };
    let runtime = Runtime::new(capability::ALL, limits).map_err(|error| Fault::failed(error.to_string()))?;
    let (mut documents, mut sound) = (Vec::new(), true);
    for path in &args.files {
        let file = path.display().to_string();
        let findings = findings(&runtime, path).await;
        let ok = !findings.iter().any(Finding::is_error);
        sound &= ok;
        if args.json {
            let diagnostics: Vec<Json> = findings.iter().map(Finding::to_json).collect();
            documents.push(json!({"file": file, "ok": ok, "diagnostics": diagnostics}));
        } else {
            findings.iter().for_each(|finding| output::note(&visible(&finding.shown(&file))));
            if ok {
                output::note(&format!("{file}: {}", paint(GOOD, "ok")));
            }
        }
    }
    if args.json {
        output::json(&Json::from(documents))?;
    }
    Ok(if sound { Exit::Done } else { Exit::Failed })
}

async fn findings(runtime: &Runtime, path: &Path) -> Vec<Finding> {
    let source = match input::text(path) {
        Ok(source) => source,
        Err(fault) => return vec![Finding::Unreadable(fault.to_string())],
    };
    let entry = Entry::has_front_matter(&source).then(|| Entry::parse(&source, Origin::File(path.to_owned())));
    let prepared = runtime.prepare(&source).await;
    let mut findings = Vec::new();
    match (entry, &prepared) {
        (Some(Err(problem)), _) => findings.push(Finding::FrontMatter(problem)),
        (Some(Ok(entry)), Ok(program)) => {
            findings.extend(entry.check_uses(program.imports()).err().map(Finding::FrontMatter));
        }
        _ => {}
    }
    match prepared {
        Ok(program) => findings.extend(program.warnings().iter().map(|w| Finding::Program(Box::new(w.clone())))),
        Err(diagnostic) => findings.push(Finding::Program(Box::new((*diagnostic).clone()))),
    }
    findings
}
