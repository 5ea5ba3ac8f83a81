//! Tests trust: calls denied in plain runs, the programs listed for each kind of run, and APIs that
//! the code must not use.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use wattle_agent::host::Trusted;
use wattle_agent::{Resources, Settings};
use wattle_capability::PortFuture;
use wattle_capability::files::Files;
use wattle_capability::git::{NoRepository, Repository};
use wattle_catalog::Catalog;
use wattle_machine::Ending;
use wattle_tests::{Job, Scripted, World};

/// The catalog programs that are listed for every run.
const PLAIN: &[&str] =
    &["help", "shell", "search", "fetch", "web_search", "wattle", "file_issue", "run"];
/// The additional programs that are listed only for trusted runs. Their effects are public and
/// cannot be undone.
const TRUSTED: &[&str] = &["git", "publish", "image"];

/// A repository that records commit messages.
#[derive(Default)]
struct Messages(Mutex<Vec<String>>);

impl Repository for Messages {
    fn commit_push(&self, message: String) -> PortFuture<'_, String> {
        self.0.lock().unwrap().push(message);
        Box::pin(async { Ok("committed and pushed".to_owned()) })
    }
}

fn trusted_job(world: &World, repository: Arc<dyn Repository>, public: Option<Arc<Files>>) -> Job {
    let files = Files::write_through(Files::open_base(world.workdir()).unwrap());
    let trusted = Some(Trusted { repository, public, image_generator: None });
    Job::new("go", Resources { trusted, ..Resources::new(&world.host, Arc::new(files)) }.grants())
}

/// Runs a job whose model returns the given answer, and returns the observation of the call in that
/// answer.
async fn observed(world: &World, job: Job, answer: &str) -> String {
    let model = Scripted::new(&[answer, "ToolCall::Response(\"done\")"]);
    let (report, _) = world.run(&model, &Settings::default(), job).await;
    assert_eq!(report.ending, Ending::Answered { text: "done".to_owned(), data: None });
    model.requests()[1].last().unwrap().content.to_string()
}

/// A repository whose commit moves the workdir away and creates another one.
struct Mover(PathBuf);

impl Repository for Mover {
    fn commit_push(&self, _: String) -> PortFuture<'_, String> {
        std::fs::rename(&self.0, self.0.with_extension("moved")).unwrap();
        std::fs::create_dir(&self.0).unwrap();
        Box::pin(async { Ok("committed and pushed".to_owned()) })
    }
}

#[tokio::test]
async fn a_run_that_writes_stops_when_its_workdir_is_replaced() {
    let world = World::new();
    let job = trusted_job(&world, Arc::new(Mover(world.workdir().to_owned())), None);
    let model = Scripted::new(&["ToolCall::Catalog(\"git\", \"a message\")"]);
    let (report, _) = world.run(&model, &Settings::default(), job).await;
    std::fs::remove_dir_all(world.workdir().with_extension("moved")).unwrap();
    let ending = format!("{:?}", report.ending);
    assert!(ending.contains("was removed, renamed or replaced while the run used it"), "{ending}");
    assert_eq!(model.requests().len(), 1);
}

#[tokio::test]
async fn a_plain_run_is_refused_with_the_reason() {
    let world = World::new();
    for (name, arguments) in
        [("git", "\"a message\""), ("git", ""), ("publish", ""), ("image", "\"a\", \"b.png\"")]
    {
        let arguments = if arguments.is_empty() { String::new() } else { format!(", {arguments}") };
        let observation =
            observed(&world, world.job("go"), &format!("ToolCall::Catalog(\"{name}\"{arguments})"))
                .await;
        assert!(
            observation.ends_with(&format!("\n{name} not permitted (no exec capability)")),
            "{observation}"
        );
    }
    // The call is also denied in an inline program, and in a program that such a program starts.
    for (body, words) in [
        ("(ret (git.commit_push? \"x\"))", "\ngit not permitted (no exec capability)"),
        (
            "(ret (image.make? \"x\" \"a.png\")) (ret (publish.run?))",
            "image not permitted (no exec capability)",
        ),
        (
            "(local $a i32) (local.set $a (str.split? \"x\" \" \")) (each $r (par.map? \"git\" \
             (local.get $a)) (out $r))",
            "git not permitted (no exec capability)",
        ),
    ] {
        let observation =
            observed(&world, world.job("go"), &format!("ToolCall::Wat(```wat\n{body}\n```)")).await;
        assert!(observation.contains(words), "{body}: {observation}");
    }
}

#[tokio::test]
async fn a_trusted_run_has_what_the_operator_set_up() {
    let world = World::new();
    let messages = Arc::new(Messages::default());
    let public = Arc::new(Files::overlay(None, 1 << 20));
    let job = || trusted_job(&world, Arc::<Messages>::clone(&messages), Some(Arc::clone(&public)));
    let observation = observed(&world, job(), "ToolCall::Catalog(\"git\", \"add a page\")").await;
    assert!(observation.contains("committed and pushed"), "{observation}");
    assert_eq!(*messages.0.lock().unwrap(), ["add a page"]);
    std::fs::create_dir(world.workdir().join("blog")).unwrap();
    std::fs::write(world.workdir().join("blog/a.md"), "hello").unwrap();
    std::fs::write(world.workdir().join("private.md"), "no").unwrap();
    std::os::unix::fs::symlink("../private.md", world.workdir().join("blog/link.md")).unwrap();
    let observation = observed(&world, job(), "ToolCall::Catalog(\"publish\")").await;
    assert!(
        observation.contains(
            "published 1 file (5 bytes): blog/a.md; skipped 1 that are not regular files"
        ),
        "{observation}"
    );
    assert_eq!(public.read("blog/a.md").unwrap(), "hello");
    assert!(public.read("blog/link.md").is_err());
    // The error names the missing setting.
    let job = || trusted_job(&world, Arc::new(NoRepository::no_remote()), None);
    for (call, setting) in [
        ("\"git\", \"x\"", "`git.remote`"),
        ("\"publish\"", "`publish.root`"),
        ("\"image\", \"a\", \"b.png\"", "`image.base_url`"),
    ] {
        let observation = observed(&world, job(), &format!("ToolCall::Catalog({call})")).await;
        assert!(
            observation.contains("EACCESS") && observation.contains(setting),
            "{call}: {observation}"
        );
    }
}

/// Returns the names of the programs that the prompt lists for a run with the job's grants.
fn named(world: &World, job: &Job) -> BTreeSet<String> {
    let prompt = world.host.prompt(
        &Settings::default(),
        &job.grants,
        &world.host.listing(None, ""),
        wattle_machine::Dialect::Text,
    );
    let prompt = prompt.to_string();
    let section =
        prompt.split("# Catalog programs").nth(1).unwrap().split("\n# ").next().unwrap().to_owned();
    section
        .lines()
        .filter_map(|line| line.split_once('(').map(|(name, _)| name.to_owned()))
        .filter(|name| name.starts_with(|c: char| c.is_ascii_lowercase()))
        .collect()
}

/// Every run lists the plain programs, and a trusted run additionally lists exactly the trusted
/// programs.
#[test]
fn each_kind_of_run_has_its_tools() {
    let world = World::new();
    let (plain, trusted) =
        (world.job("go"), trusted_job(&world, Arc::new(Messages::default()), None));
    let (of_plain, of_trusted) = (named(&world, &plain), named(&world, &trusted));
    let names = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
    assert!(of_plain.is_superset(&names(PLAIN)), "{of_plain:?}");
    assert_eq!(of_trusted.difference(&of_plain).cloned().collect::<BTreeSet<_>>(), names(TRUSTED));
    assert_eq!(of_plain.difference(&of_trusted).count(), 0);
    // Each capability that only trusted runs receive has a program of the same name, and no other
    // program uses it.
    assert_eq!(wattle_capability::TRUSTED, TRUSTED);
    for entry in Catalog::built_in().iter() {
        let uses: Vec<&str> = entry.meta().uses.iter().flatten().map(String::as_str).collect();
        let trusted: Vec<&str> =
            TRUSTED.iter().copied().filter(|name| uses.contains(name)).collect();
        match TRUSTED.contains(&entry.name().as_str()) {
            true => assert_eq!(trusted, [entry.name().as_str()]),
            false => assert!(trusted.is_empty(), "{} uses {trusted:?}", entry.name()),
        }
    }
    for name in TRUSTED {
        assert!(!plain.grants.allows(name) && trusted.grants.allows(name), "{name}");
    }
    let prompt = world.host.prompt(
        &Settings::default(),
        &plain.grants,
        &world.host.listing(None, ""),
        wattle_machine::Dialect::Text,
    );
    let prompt = prompt.to_string();
    assert!(!prompt.contains("commit_push") && !prompt.contains("exec capability"), "{prompt}");
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Collects the files with the given extension in a folder and its subfolders.
fn sources(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        match path.is_dir() {
            true if name == "target" || name.starts_with('.') => {}
            true => sources(&path, ending, found),
            false if name.ends_with(ending) => found.push(path),
            false => {}
        }
    }
}

/// Returns source code without its tests and comments.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Searches source code for APIs that start a process or load code into the current process.
/// Returns the name of one of these APIs, or `None` if the code uses none.
fn starts_a_process(code: &str) -> Option<&'static str> {
    let allowed = [
        "std::process::exit",
        "std::process::ExitCode",
        "std::process::id",
        "std::process::Termination",
    ];
    let bare = allowed.iter().fold(code.to_owned(), |code, name| code.replace(name, ""));
    let marks = [
        "std::process",
        "process::Command",
        "tokio::process",
        "Command::new(",
        "posix_spawn",
        "libc::fork",
        "unistd::fork",
        "execve",
        "libc::system",
        "CommandExt",
        "libloading",
        "dlopen",
    ];
    marks.into_iter().find(|mark| bare.contains(mark))
}

#[test]
fn only_the_brokers_start_a_process() {
    for (line, found) in [
        ("std::process::exit(130);", None),
        ("use std::process::ExitCode;", None),
        ("use std::process::{Command, Stdio};", Some("std::process")),
        ("let c = tokio::process::Command::new(\"sh\");", Some("process::Command")),
        ("use std::{process, io};\nprocess::Command::new(\"sh\")", Some("process::Command")),
        ("Command::new(\"sh\")", Some("Command::new(")),
        ("enum Command { Run }", None),
    ] {
        assert_eq!(starts_a_process(&code(line)), found, "{line}");
    }
    // The last one says which program the brokers of the command line are.
    let brokers =
        ["capability/src/git", "cli/src/editor.rs", "cli/src/broker.rs", "cli/src/invocation.rs"]
            .map(|path| root().join(path));
    let mut files = Vec::new();
    for package in [
        "rt",
        "agent/machine",
        "capability",
        "shell",
        "catalog",
        "agent",
        "eval",
        "mcp",
        "server",
        "cli",
        "bindings",
        "python",
        "node",
    ] {
        sources(&root().join(package).join("src"), ".rs", &mut files);
    }
    assert!(files.len() > 150, "only {} files were found", files.len());
    let (mut wrong, mut by_a_broker) = (Vec::new(), 0);
    for file in files {
        let Some(mark) = starts_a_process(&code(&std::fs::read_to_string(&file).unwrap())) else {
            continue;
        };
        match brokers.iter().any(|broker| file.starts_with(broker)) {
            true => by_a_broker += 1,
            false => wrong.push(format!("{}: {mark}", file.display())),
        }
    }
    assert!(wrong.is_empty(), "outside of the brokers:\n{}", wrong.join("\n"));
    assert_eq!(by_a_broker, 4, "one file of each broker starts processes");
}

/// Each row of the threat model names its tests in the last column, separated by commas.
#[test]
fn every_threat_names_tests_that_exist() {
    let text = std::fs::read_to_string(root().join("docs/security.md")).unwrap();
    // The table of channels names no tests; one test measures all of its rows.
    let (before, rest) = text.split_once("| channel |").unwrap();
    let (_, after) = rest.split_once("\n\n").unwrap();
    let text = [before, after].concat();
    let mut files = Vec::new();
    sources(&root(), ".rs", &mut files);
    let tests: BTreeSet<String> = files
        .iter()
        .flat_map(|file| {
            let text = std::fs::read_to_string(file).unwrap();
            let names = text.match_indices("fn ").map(|(at, _)| {
                text[at + 3..]
                    .chars()
                    .take_while(|c| c.is_alphanumeric() || *c == '_')
                    .collect::<String>()
            });
            names.collect::<Vec<_>>()
        })
        .collect();
    let rows: Vec<Vec<&str>> = text
        .lines()
        .filter(|line| {
            line.starts_with("| ") && !line.starts_with("| threat") && !line.starts_with("| ---")
        })
        .map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect())
        .filter(|row: &Vec<&str>| row.len() == 4)
        .collect();
    assert!(rows.len() >= 40, "only {} threats", rows.len());
    for row in rows {
        let [threat, stops, verdict, shown] = row.as_slice() else { panic!("{row:?}") };
        assert!(!threat.is_empty() && !stops.is_empty());
        assert!(["holds", "bounded", "accepted"].contains(verdict), "{threat}: {verdict}");
        let names: Vec<&str> = shown.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty() || *verdict == "accepted", "{threat} names no test");
        for name in names {
            assert!(tests.contains(name), "{threat}: there is no test `{name}`");
        }
    }
}
