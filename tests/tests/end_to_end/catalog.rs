//! Tests the catalog of a host: reloading at run time, and the programs listed in prompts.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use wattle_agent::host::CatalogDiff;
use wattle_agent::{Host, Resources, Settings};
use wattle_capability::egress::{Egress, Policy};
use wattle_capability::files::Files;
use wattle_catalog::Folders;
use wattle_machine::{Message, Role};
use wattle_rt::Limits;
use wattle_tests::{Job, Scripted, built_in_host};

fn host(folder: &Path) -> Host {
    let folders = Folders::open(&[folder], &|_, _| Ok(()));
    Host::new(Limits::default(), folders, Egress::new(Policy::default())).unwrap()
}

fn program(name: &str, description: &str, body: &str) -> String {
    format!(";;; name = \"{name}\"\n;;; description = \"{description}\"\n{body}\n")
}

/// Reloads the catalog until it has changed, and returns the changes. The host checks the files at
/// most once a second.
async fn next_diff(host: &Host) -> CatalogDiff {
    let started = Instant::now();
    loop {
        let diff = host.refresh().await;
        if !diff.is_empty() {
            return diff;
        }
        assert!(started.elapsed() < Duration::from_secs(60), "the catalog does not change");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Runs a job with the given message and returns the system prompt of the first request to the
/// model.
async fn first_request(
    host: &Host,
    session: Option<&str>,
    history: Vec<Message>,
    message: &str,
) -> String {
    let model = Scripted::new(&["ToolCall::Response(\"done\")"]);
    let files = Arc::new(Files::overlay(None, 1 << 20));
    let job = Job {
        session_id: session.map(str::to_owned),
        history,
        ..Job::new(message, Resources::new(host, files).grants())
    };
    let (parts, request) = job.on(host, &model, &Settings::default());
    wattle_agent::host::run(parts, &request, &|_: &_| {}).await;
    let requests = model.requests();
    let first = requests.first().unwrap().first().unwrap();
    assert_eq!(first.role, Role::System);
    first.content.to_string()
}

fn changed(diff: &CatalogDiff) -> Vec<&str> {
    diff.changed.iter().map(|name| name.as_str()).collect()
}

#[tokio::test]
async fn a_valid_change_is_loaded_and_an_invalid_one_keeps_the_previous_version() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("mine.wat");
    fs::write(&path, program("mine", "first", "(ret \"first\")")).unwrap();
    let host = host(dir.path());
    assert!(host.refresh().await.is_empty());
    let before = host.catalog();

    fs::write(&path, program("mine", "second", "(ret \"second\")")).unwrap();
    assert_eq!(changed(&next_diff(&host).await), ["mine"]);
    assert_eq!(host.catalog().get("mine").unwrap().meta().description, "second");
    assert_eq!(
        before.get("mine").unwrap().meta().description,
        "first",
        "a holder of the previous catalog keeps it"
    );

    // The file loads but does not compile.
    fs::write(&path, program("mine", "third", "(ret (str.uper? \"x\"))")).unwrap();
    let diff = next_diff(&host).await;
    assert!(diff.changed.is_empty() && diff.removed.is_empty(), "{diff:?}");
    let problem = diff.problems.first().unwrap();
    assert!(problem.has_previous() && problem.to_string().contains("str.uper"), "{problem}");
    assert_eq!(host.catalog().get("mine").unwrap().meta().description, "second");

    fs::remove_file(&path).unwrap();
    let diff = next_diff(&host).await;
    assert_eq!(diff.removed.iter().map(|name| name.as_str()).collect::<Vec<_>>(), ["mine"]);
    assert!(host.catalog().get("mine").is_none());
}

#[tokio::test]
async fn new_programs_that_call_each_other_are_loaded_together() {
    let dir = tempfile::tempdir().unwrap();
    let host = host(dir.path());
    for (name, other) in [("ping", "pong"), ("pong", "ping")] {
        let body = format!("(when (> (len (args)) 0) (ret ({other})))\n(ret \"{name}\")");
        let text = program(name, "Calls the other one", &body);
        fs::write(dir.path().join(name).with_extension("wat"), text).unwrap();
    }
    let diff = next_diff(&host).await;
    assert_eq!((changed(&diff), diff.problems.as_slice()), (vec!["ping", "pong"], &[][..]));
}

#[tokio::test]
async fn warming_compiles_every_program_and_skips_invalid_ones() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("bad.wat"), program("bad", "Is bad", "(ret (str.uper? \"x\"))"))
        .unwrap();
    let uses = ";;; name = \"uses\"\n;;; description = \"Says too much\"\n;;; uses = \
                [\"http\"]\n(ret \"x\")\n";
    fs::write(dir.path().join("uses.wat"), uses).unwrap();
    let host = host(dir.path());
    assert!(host.catalog().get("bad").is_some());
    host.warm().await;
    assert!(host.catalog().get("bad").is_none() && host.catalog().get("uses").is_none());
    assert!(host.runtime().cached() >= host.catalog().len());
    let diff = host.refresh().await;
    assert_eq!((diff.problems.len(), diff.removed.len()), (2, 2), "{diff:?}");
    assert!(host.refresh().await.is_empty(), "the change is reported once");
}

#[tokio::test]
async fn a_sessions_prompt_stays_the_same_while_the_catalog_changes() {
    let dir = tempfile::tempdir().unwrap();
    let host = host(dir.path());
    let before = first_request(&host, Some("s"), Vec::new(), "hello").await;
    fs::write(dir.path().join("mine.wat"), program("mine", "A new one", "(ret \"x\")")).unwrap();
    next_diff(&host).await;
    let history = vec![Message::user("hello"), Message::assistant("done")];
    assert_eq!(first_request(&host, Some("s"), history, "go on").await, before);
    assert!(
        first_request(&host, Some("t"), Vec::new(), "hello").await.contains("mine() — A new one"),
        "a new session sees it"
    );
    assert!(first_request(&host, None, Vec::new(), "hello").await.contains("mine()"));
}

#[tokio::test]
async fn a_prompt_depends_on_the_first_message_of_a_conversation_alone() {
    let dir = tempfile::tempdir().unwrap();
    for number in 0..120 {
        let text = program(&format!("aa_{number:03}"), "Does something else", "(ret \"x\")");
        fs::write(dir.path().join(format!("{number}.wat")), text).unwrap();
    }
    fs::write(
        dir.path().join("z.wat"),
        program("zz_tide", "Give the height of the tide at a harbour", "0"),
    )
    .unwrap();
    let host = host(dir.path());
    let about =
        first_request(&host, Some("s"), Vec::new(), "How high are the tides in Emden tomorrow?")
            .await;
    assert!(about.contains("\nzz_tide() — Give") && about.contains("\nhelp(topic?)"), "{about}");
    let other = first_request(&host, None, Vec::new(), "hello").await;
    assert!(!other.contains("zz_tide()") && other.contains(" zz_tide\n"), "{other}");

    // The first message of the history determines the listed programs, even in another process.
    let history = vec![
        Message::user("How high are the tides in Emden tomorrow?"),
        Message::assistant("done"),
    ];
    assert_eq!(first_request(&host, None, history, "hello").await, about);
}

#[test]
fn the_manual_answers_by_name_and_by_words() {
    let host = built_in_host(Limits::default());
    let guide = host.manual();
    for (topic, expected) in [
        ("str.cat", "str.cat (a, b)"),
        ("$str.cat", "str.cat (a, b)"),
        ("(http.get? …)", "http.get"),
        ("kv", "kv.set (k, v)"),
        ("http_get", "program http_get(url: url)"),
        ("\"http_get\"", "program http_get(url: url)"),
        ("each", "form (each $x ARR …)"),
        ("enoent", "ENOENT (4): no such entry"),
        ("6", "returned by "),
        ("fetching a page", "http.get"),
        ("colum of a csv", "program csv_column"),
        ("", "programs: ai_answer"),
        ("  ", "error codes: SUCCESS"),
    ] {
        let page = guide.about(topic).unwrap_or_else(|| panic!("nothing about {topic:?}"));
        assert!(page.contains(expected), "{topic:?}: {page}");
    }
    for nothing in ["zymurgy", "\u{0}", "!!!", "99999999999999"] {
        assert_eq!(guide.about(nothing), None, "{nothing:?}");
    }
    // Every function, program, form and error code has its own page.
    let functions =
        host.runtime().capabilities().iter().flat_map(|c| c.functions).map(|f| f.name.to_owned());
    let programs: Vec<String> =
        host.catalog().iter().map(|entry| entry.name().to_string()).collect();
    let forms = wattle_rt::forms().map(|form| form.name.to_owned());
    for name in functions.chain(programs).chain(forms) {
        let page = guide.about(&name).unwrap();
        assert!(!page.starts_with("nothing is called"), "{name}: {page}");
    }
}

#[tokio::test]
async fn help_needs_its_grant_and_touches_nothing() {
    let host = built_in_host(Limits::default());
    let program = host.runtime().prepare("(ret (help.about? \"str\"))").await.unwrap();
    assert_eq!(program.missing(&wattle_capability::pure_grants()), ["help"]);
}
