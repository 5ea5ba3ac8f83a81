//! `wattle check`: checks programs without running them, and applies safe fixes.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value as Json, json};
use wattle_agent::host::capability;
use wattle_agent::host::catalog::{Catalog, Entry, Origin, Problem};
use wattle_agent::host::check_front_matter;
use wattle_agent::host::rt::{Certainty, Diagnostic, Limits, Program, Runtime, Severity};

use super::authority;
use crate::args::CheckArgs;
use crate::config::{Config, Layer};
use crate::fault::{Exit, Fault};
use crate::output::{GOOD, diagnostic, paint, visible};
use crate::{files, input, output, setup, trust};

/// Maximum number of findings that are reported for a file.
const MOST: usize = 32;

/// A finding about a file.
enum Finding {
    Unreadable(String),
    Program(Box<Diagnostic>),
    FrontMatter(Problem),
}

impl Finding {
    fn is_error(&self) -> bool {
        !matches!(self, Finding::Program(diagnostic) if diagnostic.severity == Severity::Warning)
    }

    fn is_fixable(&self) -> bool {
        matches!(
            self,
            Finding::Program(diagnostic)
                if diagnostic.fix.as_ref().is_some_and(|fix| fix.certainty == Certainty::Safe)
        )
    }

    fn to_json(&self) -> Json {
        let plain = |code: &str, line: Option<usize>, message: &str, hint: Option<String>| {
            json!({
                "severity": "error", "code": code, "line": line, "column": null, "span": null,
                "message": message, "hint": hint, "fix": null,
            })
        };
        match self {
            Finding::Program(diagnostic) => diagnostic.to_json(),
            Finding::FrontMatter(problem) => {
                plain("front-matter", problem.line(), &problem.message(), problem.hint())
            }
            Finding::Unreadable(why) => plain("unreadable", None, why, None),
        }
    }

    /// Renders the finding for stderr.
    fn shown(&self, file: &str, source: &str) -> String {
        match self {
            Finding::Program(found) => {
                format!("{}: {}", visible(file), diagnostic(found, source).trim_end())
            }
            Finding::FrontMatter(problem) => visible(&format!("error[front-matter]: {problem}")),
            Finding::Unreadable(why) => visible(&format!("error[unreadable]: {why}")),
        }
    }
}

/// The result of checking a file.
struct Checked {
    /// The source that the findings refer to.
    source: String,
    /// The fixes that were applied.
    fixed: Vec<Diagnostic>,
    findings: Vec<Finding>,
    /// The program, if it is valid.
    program: Option<Program>,
}

/// Checks all files. Does not stop at a file with errors.
pub(crate) async fn check(args: CheckArgs, flags: &[Layer]) -> Result<Exit, Fault> {
    let names_program = args.files.iter().any(|path| is_name(path));
    let config = match (names_program, args.authority) {
        (true, _) => Some(trust::gather(flags)?),
        (false, true) => Some(trust::gather_with_warnings(flags)?),
        (false, false) => None,
    };
    let catalog = config.as_ref().map(setup::folders);
    let catalog = catalog.as_ref().map(|folders| folders.catalog());
    let limits = Limits { instances: 1, ..Limits::default() };
    let callables = catalog.map_or_else(
        || Catalog::built_in().callables().clone(),
        |catalog| catalog.callables().clone(),
    );
    let runtime = Runtime::new(capability::ALL, limits).map_err(Fault::failed)?;
    let runtime = runtime.with_callables(&callables);
    let (mut documents, mut sound) = (Vec::new(), true);
    for path in &args.files {
        let file = path.display().to_string();
        let text = match catalog.filter(|_| is_name(path)).and_then(|catalog| catalog.get(&file)) {
            Some(entry) => Ok(entry.source().to_string()),
            None => input::text(path),
        };
        let Checked { source, fixed, findings, program } =
            checked(&runtime, path, text, args.fix).await;
        let is_stdin = path == Path::new("-");
        let ok = !findings.iter().any(Finding::is_error);
        sound &= ok;
        if args.json {
            let to_json =
                |all: &[Diagnostic]| all.iter().map(Diagnostic::to_json).collect::<Vec<_>>();
            let diagnostics: Vec<Json> = findings.iter().map(Finding::to_json).collect();
            let mut document = json!({"file": file, "ok": ok, "diagnostics": diagnostics});
            if args.authority {
                let authority = match &program {
                    Some(program) => authority::to_json(&runtime, program).await,
                    None => Json::Null,
                };
                let mut programs = Vec::new();
                for (entry, program) in called(&runtime, catalog, program.as_ref()).await {
                    programs.push(json!({
                        "name": entry.name().as_str(),
                        "authority": authority::to_json(&runtime, &program).await,
                        "asks": entry.meta().grants,
                        "given": given(&entry, config.as_ref()),
                    }));
                }
                super::extend(&mut document, json!({"authority": authority, "programs": programs}));
            }
            if args.fix {
                super::extend(&mut document, json!({"fixed": to_json(&fixed)}));
            }
            if args.fix && is_stdin {
                super::extend(&mut document, json!({"source": source}));
            }
            documents.push(document);
            continue;
        }
        for fault in &fixed {
            let change = fault.fix.as_ref().map_or("", |fix| &fix.description);
            let what = visible(&format!("{}: {change} ({})", fault.position, fault.message));
            output::note(&format!("{}: {} {what}", visible(&file), paint(GOOD, "fixed")));
        }
        if args.fix && is_stdin {
            output::data(source.as_bytes())?;
        }
        findings.iter().for_each(|finding| output::note(&finding.shown(&file, &source)));
        if let Some(program) = program.as_ref().filter(|_| args.authority) {
            let lines = indented(authority::shown(&runtime, program).await);
            output::styled(&format!("{}\n{lines}", visible(&file)))?;
            for (entry, program) in called(&runtime, catalog, Some(program)).await {
                let lines = indented(authority::shown(&runtime, &program).await);
                let head = format!("{} (a program that it calls)", entry.name());
                let given = given(&entry, config.as_ref()).join(", ");
                let given = match given.as_str() {
                    "" => String::new(),
                    given => format!("  the setting `programs` gives it {}\n", visible(given)),
                };
                output::styled(&format!("{head}\n{lines}{given}"))?;
            }
        }
        match findings.iter().filter(|finding| finding.is_fixable()).count() {
            _ if args.authority && ok => {}
            _ if ok => output::note(&format!("{}: {}", visible(&file), paint(GOOD, "ok"))),
            0 => {}
            _ if args.fix => {}
            count => output::note(&format!(
                "{}: {count} can be fixed with `wattle check --fix`",
                visible(&file)
            )),
        }
    }
    if args.json {
        output::json(&Json::from(documents))?;
    }
    Ok(Exit::of(sound))
}

/// Returns the programs of the catalog that the program calls by name, if both are there.
async fn called(
    runtime: &Runtime,
    catalog: Option<&Catalog>,
    program: Option<&Program>,
) -> Vec<(Arc<Entry>, Program)> {
    match catalog.zip(program) {
        Some((catalog, program)) => authority::called(runtime, catalog, program).await,
        None => Vec::new(),
    }
}

/// Returns what the operator gives to a program.
fn given(entry: &Entry, config: Option<&Config>) -> Vec<String> {
    let grants = config.map_or(&[][..], |config| super::catalog::given(entry, config));
    grants.iter().map(ToString::to_string).collect()
}

fn indented(lines: Vec<String>) -> String {
    lines.into_iter().map(|line| format!("  {line}\n")).collect()
}

/// Checks a file. If `fix` is true, applies the safe fixes to it first.
async fn checked(
    runtime: &Runtime,
    path: &Path,
    text: Result<String, Fault>,
    fix: bool,
) -> Checked {
    let unreadable = |why: String| Checked {
        source: String::new(),
        fixed: Vec::new(),
        findings: vec![Finding::Unreadable(why)],
        program: None,
    };
    let mut source = match text {
        Ok(source) => source,
        Err(fault) => return unreadable(fault.to_string()),
    };
    let mut fixed = Vec::new();
    if fix {
        let repaired = runtime.fix(&source).await;
        if !repaired.applied.is_empty()
            && path != Path::new("-")
            && let Err(error) = files::replace(path, &repaired.source)
        {
            return unreadable(format!("failed to write `{}`: {error}", path.display()));
        }
        (source, fixed) = (repaired.source, repaired.applied);
    }
    let (findings, program) = findings(runtime, path, &source).await;
    Checked { source, fixed, findings, program }
}

async fn findings(runtime: &Runtime, path: &Path, source: &str) -> (Vec<Finding>, Option<Program>) {
    let entry = Entry::has_front_matter(source)
        .then(|| Entry::parse(source, Origin::File(path.to_owned())));
    let prepared = runtime.prepare(source).await;
    let mut findings = Vec::new();
    match (entry, &prepared) {
        (Some(Err(problem)), _) => findings.push(Finding::FrontMatter(problem)),
        (Some(Ok(entry)), Ok(program)) => {
            let problem = check_front_matter(runtime, &entry, program).err();
            findings.extend(problem.map(Finding::FrontMatter));
        }
        _ => {}
    }
    let diagnostics = match &prepared {
        Ok(program) => program.warnings().to_vec(),
        Err(first) => match runtime.check(source, MOST).await {
            // The checks found no error, so only the engine rejects the program.
            none if none.is_empty() => vec![(**first).clone()],
            all => all,
        },
    };
    findings.extend(diagnostics.into_iter().map(|found| Finding::Program(Box::new(found))));
    (findings, prepared.ok())
}

/// Returns true if the argument can be the name of a program and is not an existing file.
fn is_name(path: &Path) -> bool {
    path != Path::new("-")
        && path.extension().is_none()
        && path.components().count() == 1
        && !path.is_file()
}
