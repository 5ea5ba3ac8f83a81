//! `wattle catalog test`: runs the examples of programs with their fixtures.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value as Json, json};
use similar::TextDiff;
use tokio::task::JoinSet;
use wattle_agent::Host;
use wattle_agent::host::catalog::{Entry, Folders, Problem};
use wattle_agent::host::{Difference, ExampleFault, check_example};

use crate::commands::print_verdict;
use crate::config::Config;
use crate::fault::{Exit, Fault};
use crate::output::{self, BAD, DIM, GOOD, WARN, paint, visible};
use crate::progress::{Bar, counted};
use crate::setup::Setup;

/// Maximum number of lines printed per difference.
const LINES: usize = 40;

/// The subject of a test: a program, or the problem with an invalid file.
type Tested = Result<Arc<Entry>, Problem>;

/// The result of a test: the program, any problem with the whole program, and the results of its
/// examples.
struct Report {
    tested: Tested,
    problem: Option<Problem>,
    examples: Vec<Result<(), ExampleFault>>,
}

impl Report {
    fn failed(&self) -> usize {
        self.examples.iter().filter(|example| example.is_err()).count()
    }

    fn passes(&self) -> bool {
        self.tested.is_ok() && self.problem.is_none() && self.failed() == 0
    }
}

/// Tests the named programs, or the whole catalog.
pub(super) async fn test(what: Vec<String>, json: bool, config: Config) -> Result<Exit, Fault> {
    let setup = Setup::new(config)?;
    let reports = run(&setup.host, tested(&setup.host, &what)?).await?;
    let sound = reports.iter().all(Report::passes);
    if json {
        let programs: Vec<Json> = reports.iter().map(to_json).collect();
        output::json(&json!({"ok": sound, "programs": programs}))?;
    } else {
        show(&reports)?;
    }
    Ok(Exit::of(sound))
}

/// Resolves the given names, files and folders to programs. If none are given, returns the whole
/// catalog.
fn tested(host: &Host, what: &[String]) -> Result<Vec<Tested>, Fault> {
    let catalog = host.catalog();
    if what.is_empty() {
        let problems = catalog.problems().iter().cloned().map(Err);
        return Ok(catalog.iter().cloned().map(Ok).chain(problems).collect());
    }
    let mut all = Vec::new();
    for name in what {
        let path = Path::new(name);
        if path.is_dir() {
            let found = folder(path)?;
            if found.is_empty() {
                return Err(Fault::usage(format!("there is no program in the folder `{name}`"))
                    .hint(
                        "programs are files that end with .wat; `wattle catalog new NAME` makes \
                         one",
                    ));
            }
            all.extend(found);
        } else if let Some(entry) = catalog.get(name) {
            all.push(Ok(Arc::clone(entry)));
        } else if name.ends_with(".wat") || name.contains(std::path::is_separator) || path.is_file()
        {
            all.push(Entry::read(path).map(Arc::new));
        } else {
            return Err(crate::commands::no_program(
                &catalog,
                name,
                ", and no such file",
                crate::commands::LIST,
            ));
        }
    }
    Ok(all)
}

/// Returns the programs in a folder, and the problems in its files.
fn folder(path: &Path) -> Result<Vec<Tested>, Fault> {
    let folders = Folders::open(&[PathBuf::from(path)], &|_, _| Ok(()));
    let own = folders.catalog().iter().filter(|entry| entry.origin().path().is_some());
    let mut all: Vec<Tested> = own.cloned().map(Ok).collect();
    all.extend(folders.catalog().problems().iter().cloned().map(Err));
    Ok(all)
}

/// Tests all programs concurrently. Returns the reports in the order of the programs.
async fn run(host: &Host, all: Vec<Tested>) -> Result<Vec<Report>, Fault> {
    let mut tasks = JoinSet::new();
    for (at, tested) in all.into_iter().enumerate() {
        let host = host.clone();
        tasks.spawn(async move { (at, report(&host, tested).await) });
    }
    let bar = Bar::new(tasks.len(), "programs");
    let mut reports = Vec::with_capacity(tasks.len());
    while let Some(done) = tasks.join_next().await {
        reports
            .push(done.map_err(|stopped| Fault::failed(format!("a test was stopped: {stopped}")))?);
        bar.step();
    }
    reports.sort_by_key(|(at, _)| *at);
    Ok(reports.into_iter().map(|(_, report)| report).collect())
}

async fn report(host: &Host, tested: Tested) -> Report {
    let (mut problem, mut examples) = (None, Vec::new());
    if let Ok(entry) = &tested {
        problem = host.check(entry).await.err();
        // If a program does not compile, all of its examples fail for the same reason.
        let compiles = host.prepare(entry.source()).await.is_ok();
        for example in entry.meta().examples.iter().filter(|_| compiles) {
            examples.push(check_example(host, entry, example).await);
        }
    }
    Report { tested, problem, examples }
}

fn show(reports: &[Report]) -> Result<(), Fault> {
    let names = reports.iter().filter_map(|report| report.tested.as_ref().ok());
    let width = names.map(|entry| entry.name().as_str().len()).max().unwrap_or(0);
    for report in reports {
        output::styled(&shown(report, width))?;
    }
    let examples = reports.iter().map(|report| report.examples.len()).sum();
    let failed = reports.iter().filter(|report| !report.passes()).count();
    print_verdict(counted(reports.len(), "program"), examples, "", failed)
}

fn shown(report: &Report, width: usize) -> String {
    let entry = match &report.tested {
        Ok(entry) => entry,
        Err(problem) => {
            return format!(
                "{} {}",
                paint(BAD, "FAILED"),
                indented(&visible(&problem.to_string()), 7)
            );
        }
    };
    let (name, total) = (entry.name().as_str(), report.examples.len());
    if report.passes() && total == 0 {
        return format!("{} {name:<width$}  no example", paint(WARN, "none  "));
    }
    if report.passes() {
        return format!(
            "{} {name:<width$}  {}",
            paint(GOOD, "ok    "),
            paint(DIM, &format!("{total} of {total}"))
        );
    }
    let from = paint(DIM, &visible(&entry.origin().to_string()));
    let mut text = format!(
        "{} {name:<width$}  {} of {total}  {from}",
        paint(BAD, "FAILED"),
        total - report.failed()
    );
    if let Some(problem) = &report.problem {
        text += &format!("\n       {}", indented(&visible(&problem.to_string()), 7));
    }
    for (example, fault) in entry.meta().examples.iter().zip(&report.examples) {
        let Err(fault) = fault else { continue };
        let args: Vec<String> = example.args.iter().map(|arg| format!("{arg:?}")).collect();
        text += &visible(&format!("\n       line {}: {name}({})", fault.line, args.join(", ")));
        fault.differences.iter().for_each(|difference| text += &compared(difference));
    }
    text
}

/// Renders a difference: expected lines begin with `-`, found lines with `+`.
fn compared(difference: &Difference) -> String {
    let head = format!("\n         {}", visible(&difference.what));
    let Some(expected) = &difference.expected else {
        return format!("{head}: {}", indented(&visible(&difference.found), 11));
    };
    let diff = TextDiff::from_lines(expected.as_str(), difference.found.as_str());
    let line = |change: similar::Change<&str>| {
        let text = visible(change.value().trim_end_matches('\n'));
        match change.tag() {
            similar::ChangeTag::Equal => format!("\n           {text}"),
            similar::ChangeTag::Delete => {
                format!("\n         {}", paint(BAD, &format!("- {text}")))
            }
            similar::ChangeTag::Insert => {
                format!("\n         {}", paint(GOOD, &format!("+ {text}")))
            }
        }
    };
    let lines: Vec<String> = diff.iter_all_changes().map(line).collect();
    let cut = lines.len().saturating_sub(LINES);
    let more =
        if cut > 0 { format!("\n           … {cut} further lines") } else { String::new() };
    format!(
        "{head} {}{}{more}",
        paint(DIM, "(- expected, + found)"),
        lines.into_iter().take(LINES).collect::<String>()
    )
}

/// Indents all lines of a string except the first.
fn indented(text: &str, column: usize) -> String {
    text.trim_end().replace('\n', &format!("\n{}", " ".repeat(column)))
}

fn to_json(report: &Report) -> Json {
    let problem = |problem: &Problem| {
        json!({
            "line": problem.line(), "message": problem.message(), "hint": problem.hint(),
        })
    };
    let example = |(line, result): (usize, &Result<(), ExampleFault>)| {
        let differences = result.as_ref().err().map_or(&[][..], |fault| &fault.differences);
        let differences = differences
            .iter()
            .map(|d| json!({"what": d.what, "found": d.found, "expected": d.expected}));
        json!({"line": line, "ok": result.is_ok(), "differences": differences.collect::<Vec<_>>()})
    };
    match &report.tested {
        Err(wrong) => json!({
            "name": null, "origin": wrong.path(), "ok": false,
            "problem": problem(wrong), "examples": [],
        }),
        Ok(entry) => {
            let lines = entry.meta().examples.iter().map(|example| example.line);
            json!({
                "name": entry.name().as_str(),
                "origin": entry.origin().to_string(),
                "ok": report.passes(),
                "problem": report.problem.as_ref().map(problem),
                "examples": lines.zip(&report.examples).map(example).collect::<Vec<_>>(),
            })
        }
    }
}
