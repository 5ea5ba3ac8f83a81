//! Compares the tokens of built-in programs with the same programs in plain WAT and in Python.
//! `tests/tokens/` contains the plain version of a program as `NAME.plain.wat` and the Python
//! version as `NAME.py`. All three return the results of the program's examples. `UPDATE=1` updates
//! the figures in `docs/benchmarks.md`.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test prints its figures and what it skips"
)]

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value as Json, json};
use wattle_agent::check_example;
use wattle_catalog::{AiAnswer, Catalog, Entry, Example, Origin, Results};
use wattle_rt::Code;
use wattle_tests::World;

/// The heading of the section that contains the figures in `docs/benchmarks.md`.
const SECTION: &str = "## What programs cost in tokens\n";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tokens")
}

fn text(name: &str, kind: &str) -> String {
    std::fs::read_to_string(folder().join(format!("{name}.{kind}")))
        .unwrap_or_else(|e| panic!("{name}.{kind}: {e}"))
}

/// Returns the names of the compared programs.
fn names() -> Vec<String> {
    let files = std::fs::read_dir(folder())
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> =
        files.filter_map(|file| file.strip_suffix(".plain.wat").map(str::to_owned)).collect();
    names.sort();
    assert!(names.len() >= 30, "{} programs", names.len());
    names
}

#[tokio::test]
async fn plain_versions_do_the_same() {
    let world = World::new();
    let catalog = world.host.catalog();
    let mut wrong = Vec::new();
    for name in names() {
        let entry = catalog.get(&name).unwrap();
        let front = entry.source().lines().filter(|line| line.starts_with(";;;"));
        let plain = front.chain([text(&name, "plain.wat").as_str()]).collect::<Vec<_>>().join("\n");
        let plain =
            Entry::parse(&plain, Origin::File(folder().join(format!("{name}.plain.wat")))).unwrap();
        for example in &plain.meta().examples {
            if let Err(fault) = check_example(&world.host, &plain, example).await {
                wrong.push(format!("{name}: {fault}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Converts an example to the input of the Python version.
fn case(name: &str, entry: &Entry, example: &Example) -> Json {
    let fixtures = &example.fixtures;
    let http: Vec<Json> = fixtures
        .http
        .iter()
        .map(|answer| json!({"url": answer.url, "method": answer.method, "status": answer.status, "body": answer.body}))
        .collect();
    let ai = fixtures.ai.iter().map(|answer| match answer {
        AiAnswer::Next(text) => json!(text),
        AiAnswer::When { when, reply } => json!({"when": when, "reply": reply}),
    });
    json!({
        "name": name,
        "text": text(name, "py"),
        "args": entry.arguments(&example.args).unwrap(),
        "files": fixtures.files,
        "kv": fixtures.kv,
        "http": http,
        "ai": ai.collect::<Vec<_>>(),
    })
}

/// Returns a result with its JSON normalised.
fn plain(result: &str) -> String {
    match serde_json::from_str::<Json>(result) {
        Ok(json @ (Json::Array(_) | Json::Object(_))) => json.to_string(),
        _ => result.to_owned(),
    }
}

/// Describes how the Python version's result differs from the expected one.
fn difference(example: &Example, found: &Json) -> Option<String> {
    let expected = &example.expected;
    let failed = found["failed"].as_str();
    // A program's own errors have a code. Errors of the Python library are exceptions.
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
    python.arg(folder().join("prelude.py")).stdin(Stdio::piped()).stdout(Stdio::piped());
    let Ok(mut child) = python.spawn() else {
        assert!(std::env::var_os("CI").is_none(), "CI has a python3");
        println!("skipped: this machine has no python3, which runs the programs' other versions");
        return;
    };
    let catalog = Catalog::built_in();
    let mut examples = Vec::new();
    for name in names() {
        let entry = catalog.get(&name).unwrap();
        // The sandbox confines paths to the workdir, so a program does not check them.
        let usual =
            entry.meta().examples.iter().filter(|example| example.expected.code != Code::EACCESS);
        examples.extend(
            usual.map(|example| (name.clone(), example.clone(), case(&name, entry, example))),
        );
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

#[test]
fn the_language_is_short() {
    let catalog = Catalog::built_in();
    let encoding = tiktoken_rs::o200k_base().unwrap();
    let count = |text: &str| encoding.encode_ordinary(text).len();
    let mut table =
        String::from("| program | the language | plain WAT | Python |\n|---|---:|---:|---:|\n");
    let mut all = [0; 3];
    for name in names() {
        let entry = catalog.get(&name).unwrap();
        let texts = [
            bare(entry.source(), ";;"),
            bare(&text(&name, "plain.wat"), ";;"),
            bare(&text(&name, "py"), "#"),
        ];
        let [lisp, plain, python] = texts.map(|text| count(&text));
        writeln!(table, "| `{name}` | {lisp} | {plain} | {python} |").unwrap();
        all = [all[0] + lisp, all[1] + plain, all[2] + python];
    }
    let [lisp, plain, python] = all;
    writeln!(table, "| all | {lisp} | {plain} | {python} |").unwrap();
    let percent = |of: usize| (lisp * 1000 / of) as f64 / 10.0;
    writeln!(
        table,
        "| the language in % of it | 100 | {:.1} | {:.1} |",
        percent(plain),
        percent(python)
    )
    .unwrap();
    println!("{table}");

    let path = "../docs/benchmarks.md";
    let document = wattle_cases::read(path);
    let from = document.find(SECTION).unwrap() + SECTION.len();
    let section =
        document[from..].find("\n## ").map_or(&document[from..], |to| &document[from..from + to]);
    let current = section.find("| program |").map_or("", |at| &section[at..]).trim_end();
    wattle_cases::compare(path, &document.replacen(current, table.trim_end(), 1));
    assert!(lisp * 100 <= plain * 25, "more than 25 % of plain WAT:\n{table}");
    assert!(lisp * 10 <= python * 18, "more than 1.8 times Python:\n{table}");
}
