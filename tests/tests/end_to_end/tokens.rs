//! Compares the token counts of programs with those of the same programs in plain WAT and in
//! Python. `tests/tokens/` contains the plain version of a built-in program in `NAME.plain.wat` and
//! the Python version in `NAME.py`. `tests/tokens/algorithms/` contains algorithms in `NAME.wat`
//! and `NAME.py`, and `tests/tokens/jobs/` jobs on data. All versions must return the results of the
//! program's examples. `UPDATE=1` updates the figures in `docs/benchmarks.md`.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use serde_json::{Value as Json, json};
use wattle_agent::host::check_example;
use wattle_catalog::{AiAnswer, Catalog, Entry, Example, Origin, Results};
use wattle_rt::Code;
use wattle_tests::World;

/// A program in Wattle's language and its versions in other languages.
struct Compared {
    entry: Arc<Entry>,
    /// The folder that contains the other versions.
    folder: PathBuf,
}

impl Compared {
    fn name(&self) -> &str {
        self.entry.name().as_str()
    }

    /// Returns the source of the version with the given file extension.
    fn version(&self, ending: &str) -> String {
        wattle_cases::read(self.folder.join(format!("{}{ending}", self.name())))
    }
}

/// A set of compared programs.
struct Set {
    programs: Vec<Compared>,
    /// The heading of the section in `docs/benchmarks.md` that contains the figures.
    section: &'static str,
    /// The other languages: name, file extension, and start of a comment.
    languages: &'static [(&'static str, &'static str, &'static str)],
}

const PYTHON: (&str, &str, &str) = ("Python", ".py", "#");

/// Returns the built-in programs that are compared.
fn built_in() -> Set {
    let catalog = Catalog::built_in();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tokens");
    let programs = names(&folder, ".plain.wat").into_iter().map(|name| Compared {
        entry: Arc::clone(catalog.get(&name).unwrap()),
        folder: folder.clone(),
    });
    Set {
        programs: programs.collect(),
        section: "## What programs cost in tokens\n",
        languages: &[("plain WAT", ".plain.wat", ";;"), PYTHON],
    }
}

/// Returns the algorithms that are compared.
fn algorithms() -> Set {
    with_python("algorithms", "## What algorithms cost in tokens\n")
}

/// Returns the jobs on data that are compared.
fn jobs() -> Set {
    with_python("jobs", "## What jobs on data cost in tokens\n")
}

/// Returns the programs in a folder of `tests/tokens/`, which have versions in Python.
fn with_python(folder: &str, section: &'static str) -> Set {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tokens").join(folder);
    let programs = names(&folder, ".wat").into_iter().map(|name| {
        let path = folder.join(format!("{name}.wat"));
        let entry = Entry::parse(&wattle_cases::read(&path), Origin::File(path)).unwrap();
        Compared { entry: Arc::new(entry), folder: folder.clone() }
    });
    Set { programs: programs.collect(), section, languages: &[PYTHON] }
}

/// Returns the names of the files with the given extension, without the extension.
fn names(folder: &Path, ending: &str) -> Vec<String> {
    let files = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> =
        files.filter_map(|file| file.strip_suffix(ending).map(str::to_owned)).collect();
    names.sort();
    names
}

#[test]
fn the_sets_are_complete() {
    assert_eq!(built_in().programs.len(), 35);
    assert_eq!(algorithms().programs.len(), 12);
    assert_eq!(jobs().programs.len(), 15);
}

/// Runs a program's examples. Returns a description of each one that fails.
pub(super) async fn failing(world: &World, entry: &Entry) -> Vec<String> {
    let mut wrong = Vec::new();
    for example in &entry.meta().examples {
        if let Err(fault) = check_example(&world.host, entry, example).await {
            wrong.push(format!("{}, line {}: {fault}", entry.name(), example.line));
        }
    }
    wrong
}

/// Returns a program with the front matter of another one.
pub(super) fn with_body(entry: &Entry, body: &str) -> Entry {
    let front = entry.source().lines().filter(|line| line.starts_with(";;;"));
    let source = front.chain([body]).collect::<Vec<_>>().join("\n");
    let path = PathBuf::from(format!("{}.wat", entry.name()));
    Entry::parse(&source, Origin::File(path))
        .unwrap_or_else(|error| panic!("{}: {error}", entry.name()))
}

#[tokio::test]
async fn algorithms_and_jobs_return_the_results_of_their_examples() {
    let world = World::new();
    for program in algorithms().programs.into_iter().chain(jobs().programs) {
        assert!(!program.entry.meta().examples.is_empty(), "{} has no example", program.name());
        let wrong = failing(&world, &program.entry).await;
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

#[tokio::test]
async fn plain_versions_do_the_same() {
    let world = World::new();
    let mut wrong = Vec::new();
    for program in built_in().programs {
        let plain = with_body(&program.entry, &program.version(".plain.wat"));
        wrong.extend(failing(&world, &plain).await);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Converts an example to input for the Python version.
fn case(program: &Compared, example: &Example) -> Json {
    let fixtures = &example.fixtures;
    let http: Vec<Json> = fixtures
        .http
        .iter()
        .map(|answer| {
            json!({
                "url": answer.url, "method": answer.method, "status": answer.status,
                "body": answer.body,
            })
        })
        .collect();
    let ai = fixtures.ai.iter().map(|answer| match answer {
        AiAnswer::Next(text) => json!(text),
        AiAnswer::When { when, reply } => json!({"when": when, "reply": reply}),
    });
    json!({
        "name": program.name(),
        "text": program.version(".py"),
        "args": program.entry.arguments(&example.args).unwrap(),
        "files": fixtures.files,
        "kv": fixtures.kv,
        "http": http,
        "ai": ai.collect::<Vec<_>>(),
    })
}

/// Returns a result, normalised if it is a JSON array or object.
fn plain(result: &str) -> String {
    match serde_json::from_str::<Json>(result) {
        Ok(json @ (Json::Array(_) | Json::Object(_))) => json.to_string(),
        _ => result.to_owned(),
    }
}

/// Returns a description of the difference between the Python version's result and the expected
/// result, if any.
fn difference(example: &Example, found: &Json) -> Option<String> {
    let expected = &example.expected;
    let failed = found["failed"].as_str();
    // Errors raised by a program have a code. Errors of the Python library are exceptions without a
    // code.
    let same_end = match failed {
        None => expected.code == Code::SUCCESS,
        Some(code) if Code::from_name(code).is_some() => {
            Code::from_name(code) == Some(expected.code)
        }
        Some(_) => expected.code != Code::SUCCESS,
    };
    if !same_end {
        return Some(format!("ended with {failed:?}, not {}", expected.code));
    }
    // For errors of the Python library, the reason is empty, because their messages differ from
    // Wattle's.
    let reason = found["reason"].as_str().unwrap();
    if let Some(expected) = &expected.reason
        && !reason.is_empty()
        && !reason.contains(expected.as_str())
    {
        return Some(format!("failed with the reason {reason:?}"));
    }
    let results: Vec<String> = found["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|result| plain(result.as_str().unwrap()))
        .collect();
    let same = match &expected.results {
        Results::Any => true,
        Results::Exactly(texts) => texts.iter().map(|text| plain(text)).eq(results.iter().cloned()),
        Results::Containing(parts) => {
            parts.iter().all(|part| results.iter().any(|result| result.contains(part.as_str())))
        }
    };
    if !same {
        return Some(format!("returned {results:?}"));
    }
    let wrong_file = expected
        .files
        .iter()
        .find(|(path, content)| found["files"][path.as_str()] != json!(content));
    let wrong_key =
        expected.kv.iter().find(|(key, value)| found["kv"][key.as_str()] != json!(value));
    wrong_file
        .or(wrong_key)
        .map(|(name, _)| format!("`{name}` is not as expected afterwards: {found}"))
}

#[test]
fn python_versions_do_the_same() {
    let mut python = Command::new("python3");
    python.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tokens/prelude.py"));
    python.stdin(Stdio::piped()).stdout(Stdio::piped());
    let Ok(mut child) = python.spawn() else {
        assert!(std::env::var_os("CI").is_none(), "CI has a python3");
        println!("skipped: this machine has no python3, which runs the programs' other versions");
        return;
    };
    let sets = [built_in(), algorithms(), jobs()];
    let mut examples = Vec::new();
    for program in sets.iter().flat_map(|set| &set.programs) {
        // The sandbox confines paths to the workdir. The Python versions do not check paths.
        let all = program.entry.meta().examples.iter();
        let usual = all.filter(|example| example.expected.code != Code::EACCESS);
        examples.extend(usual.map(|example| (program.name(), example, case(program, example))));
    }
    let cases: Vec<&Json> = examples.iter().map(|(_, _, case)| case).collect();
    child.stdin.take().unwrap().write_all(json!(cases).to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let found: Vec<Json> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found.len(), examples.len());
    let wrong: Vec<String> = examples
        .iter()
        .zip(&found)
        .filter_map(|((name, example, _), found)| {
            difference(example, found)
                .map(|why| format!("{name}, the example at line {}: {why}", example.line))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Removes comments, front matter and empty lines from a program.
fn bare(text: &str, comment: &str) -> String {
    let lines = text
        .lines()
        .filter(|line| !line.trim().is_empty() && !line.trim_start().starts_with(comment));
    lines.map(|line| format!("{}\n", line.trim_end())).collect()
}

/// Returns a set's figures as a table, and the column sums: first for Wattle's language, then for
/// the other languages.
fn figures(set: &Set) -> (String, Vec<usize>) {
    let encoding = tiktoken_rs::o200k_base().unwrap();
    let count = |text: &str, comment: &str| encoding.encode_ordinary(&bare(text, comment)).len();
    let mut table = String::from("| program | the language |");
    for (language, ..) in set.languages {
        write!(table, " {language} |").unwrap();
    }
    writeln!(table, "\n|---|{}", "---:|".repeat(1 + set.languages.len())).unwrap();
    let mut all = vec![0; 1 + set.languages.len()];
    for program in &set.programs {
        let others = set.languages.iter();
        let others = others.map(|(_, ending, comment)| count(&program.version(ending), comment));
        let row = [count(program.entry.source(), ";;")].into_iter().chain(others);
        write!(table, "| `{}` |", program.name()).unwrap();
        for (sum, tokens) in all.iter_mut().zip(row) {
            write!(table, " {tokens} |").unwrap();
            *sum += tokens;
        }
        table.push('\n');
    }
    let sums: String = all.iter().map(|sum| format!(" {sum} |")).collect();
    let shares = all[1..].iter().map(|of| format!(" {:.1} |", percent(all[0], *of)));
    let shares: String = shares.collect();
    writeln!(table, "| all |{sums}\n| the language in % of it | 100 |{shares}").unwrap();
    (table, all)
}

/// Returns `part` as a percentage of `of`, rounded down to one decimal place.
fn percent(part: usize, of: usize) -> f64 {
    (part * 1000 / of) as f64 / 10.0
}

/// Returns the document with the table in a section replaced.
fn updated(document: &str, section: &str, table: &str) -> String {
    let from = document.find(section).unwrap() + section.len();
    let text = document[from..].split("\n## ").next().unwrap();
    let start = from + text.find("| program |").unwrap();
    let end = from + text.trim_end().len();
    format!("{}{}{}", &document[..start], table.trim_end(), &document[end..])
}

#[test]
fn the_language_is_short() {
    let path = "../docs/benchmarks.md";
    let mut document = wattle_cases::read(path);
    let [programs, algorithms, jobs] = [built_in(), algorithms(), jobs()].map(|set| {
        let (table, sums) = figures(&set);
        println!("{table}");
        document = updated(&document, set.section, &table);
        sums
    });
    wattle_cases::compare(path, &document);

    let [lisp, plain, python] = programs[..] else { panic!("three columns") };
    assert!(lisp * 100 <= plain * 25, "more than 25 % of plain WAT: {lisp} of {plain}");
    assert!(lisp * 100 <= python * 98, "more than 0.98 times Python: {lisp} of {python}");
    let [lisp, python] = algorithms[..] else { panic!("two columns") };
    assert!(lisp * 100 <= python * 110, "more than 1.1 times Python: {lisp} of {python}");
    let [lisp, python] = jobs[..] else { panic!("two columns") };
    assert!(lisp <= python, "more than Python: {lisp} of {python}");
}
