//! The catalog of a host: what is exchanged while it runs, and what prompts name of it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use wattle_agent::{Access, CatalogDiff, Host, Job, Settings};
use wattle_capability::egress::{Egress, Policy};
use wattle_capability::files::Files;
use wattle_catalog::{Catalog, Folders};
use wattle_machine::{Message, Role};
use wattle_rt::{Grants, Limits};
use wattle_tests::Scripted;

fn host(folder: &Path) -> Host {
    let folders = Folders::open(&[folder], &|_| Ok(()));
    Host::new(Limits::default(), folders, Egress::new(Policy::default())).unwrap()
}

fn program(name: &str, description: &str, body: &str) -> String {
    format!(";;; name = \"{name}\"\n;;; description = \"{description}\"\n{body}\n")
}

/// Refreshes until there is something to tell; a look holds for a second.
async fn news(host: &Host) -> CatalogDiff {
    let begun = Instant::now();
    loop {
        let news = host.refresh().await;
        if !news.is_empty() {
            return news;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "no news");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Runs a message in a session and gives what the model was asked first.
async fn asked(host: &Host, session: Option<&str>, history: Vec<Message>, message: &str) -> String {
    let model = Scripted::new(&["ToolCall::Response(\"done\")"]);
    let files = Arc::new(Files::overlay(None, 1 << 20));
    let job =
        Job { session_id: session.map(str::to_owned), history, ..Job::new(message, Access::new(host, files).grants()) };
    wattle_agent::run(host, &model, &Settings::default(), job, &|_: &_| {}).await;
    let asked = model.asked();
    let first = asked.first().unwrap().first().unwrap();
    assert_eq!(first.role, Role::System);
    first.content.clone()
}

fn changed(news: &CatalogDiff) -> Vec<&str> {
    news.changed.iter().map(|name| name.as_str()).collect()
}

#[tokio::test]
async fn a_change_is_taken_in_and_a_broken_one_keeps_what_worked() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("mine.wat");
    fs::write(&path, program("mine", "first", "(ret \"first\")")).unwrap();
    let host = host(dir.path());
    assert!(host.refresh().await.is_empty());
    let before = host.catalog();

    fs::write(&path, program("mine", "second", "(ret \"second\")")).unwrap();
    assert_eq!(changed(&news(&host).await), ["mine"]);
    assert_eq!(host.catalog().get("mine").unwrap().meta().description, "second");
    assert_eq!(before.get("mine").unwrap().meta().description, "first", "who holds the catalog from before keeps it");

    // It loads, and does not compile.
    fs::write(&path, program("mine", "third", "(ret (str.uper? \"x\"))")).unwrap();
    let told = news(&host).await;
    assert!(told.changed.is_empty() && told.removed.is_empty(), "{told:?}");
    let problem = told.problems.first().unwrap();
    assert!(problem.has_previous() && problem.to_string().contains("str.uper"), "{problem}");
    assert_eq!(host.catalog().get("mine").unwrap().meta().description, "second");

    fs::remove_file(&path).unwrap();
    let told = news(&host).await;
    assert_eq!(told.removed.iter().map(|name| name.as_str()).collect::<Vec<_>>(), ["mine"]);
    assert!(host.catalog().get("mine").is_none());
}

#[tokio::test]
async fn warming_compiles_everything_and_leaves_out_what_does_not_compile() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("bad.wat"), program("bad", "Is bad", "(ret (str.uper? \"x\"))")).unwrap();
    let uses = ";;; name = \"uses\"\n;;; description = \"Says too much\"\n;;; uses = [\"http\"]\n(ret \"x\")\n";
    fs::write(dir.path().join("uses.wat"), uses).unwrap();
    let host = host(dir.path());
    assert!(host.catalog().get("bad").is_some());
    host.warm().await;
    assert!(host.catalog().get("bad").is_none() && host.catalog().get("uses").is_none());
    assert!(host.runtime().cached() >= host.catalog().len());
    let told = host.refresh().await;
    assert_eq!((told.problems.len(), told.removed.len()), (2, 2), "{told:?}");
    assert!(host.refresh().await.is_empty(), "it is told once");
}

#[tokio::test]
async fn a_sessions_prompt_stays_the_same_while_the_catalog_changes() {
    let dir = tempfile::tempdir().unwrap();
    let host = host(dir.path());
    let before = asked(&host, Some("s"), Vec::new(), "hello").await;
    fs::write(dir.path().join("mine.wat"), program("mine", "A new one", "(ret \"x\")")).unwrap();
    news(&host).await;
    let history = vec![Message::user("hello"), Message::assistant("done")];
    assert_eq!(asked(&host, Some("s"), history, "go on").await, before);
    assert!(asked(&host, Some("t"), Vec::new(), "hello").await.contains("mine() — A new one"), "a new session sees it");
    assert!(asked(&host, None, Vec::new(), "hello").await.contains("mine()"));
}

#[tokio::test]
async fn of_many_programs_a_prompt_names_those_that_the_session_is_about() {
    let dir = tempfile::tempdir().unwrap();
    for number in 0..80 {
        let text = program(&format!("aa_{number:02}"), "Does something else", "(ret \"x\")");
        fs::write(dir.path().join(format!("{number}.wat")), text).unwrap();
    }
    fs::write(dir.path().join("z.wat"), program("zz_tide", "Give the height of the tide at a harbour", "0")).unwrap();
    let host = host(dir.path());
    let all = host.catalog().len();
    let lines = |prompt: &str| prompt.lines().filter(|line| line.contains(") — ")).count();

    let about = asked(&host, Some("s"), Vec::new(), "How high are the tides in Emden tomorrow?").await;
    assert!(about.contains("zz_tide() — ") && about.contains("\nhelp(topic?)"), "{about}");
    assert!(about.contains(&format!("… and {} more: ToolCall::Catalog(\"help\"", all - 60)), "{about}");
    let other = asked(&host, None, Vec::new(), "hello").await;
    assert!(!other.contains("zz_tide") && other.contains("\nhelp(topic?)"));
    assert_eq!(lines(&about), lines(&other));
    for tool in ["shell(", "vfs_read(", "vfs_write(", "wattle(", "file_issue(", "run(", "done("] {
        assert!(about.contains(&format!("\n{tool}")) && other.contains(&format!("\n{tool}")), "{tool} is always named");
    }

    // The first message decides, whatever is said later and in whichever process.
    let history = vec![Message::user("How high are the tides in Emden tomorrow?"), Message::assistant("done")];
    assert_eq!(asked(&host, None, history, "hello").await, about);
}

#[test]
fn the_manual_answers_by_name_and_by_words() {
    let host = Host::new(Limits::default(), Catalog::built_in(), Egress::new(Policy::default())).unwrap();
    let guide = host.manual();
    for (topic, expected) in [
        ("str.cat", "str.cat (a, b)"),
        ("$str.cat", "str.cat (a, b)"),
        ("(http.get? …)", "http.get"),
        ("kv", "kv.set (k, v)"),
        ("http_get", "program http_get(url: url)"),
        ("\"http_get\"", "program http_get(url: url)"),
        ("each", "form (each $item ARR …)"),
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
    // Every row, program, form and code has a page of its own.
    let functions = host.runtime().capabilities().iter().flat_map(|c| c.functions).map(|f| f.name.to_owned());
    let programs: Vec<String> = host.catalog().iter().map(|entry| entry.name().to_string()).collect();
    let forms = wattle_rt::forms().map(|form| form.name.to_owned());
    for name in functions.chain(programs).chain(forms) {
        let page = guide.about(&name).unwrap();
        assert!(!page.starts_with("nothing is called"), "{name}: {page}");
    }
}

#[tokio::test]
async fn help_needs_its_grant_and_touches_nothing() {
    let host = Host::new(Limits::default(), Catalog::built_in(), Egress::new(Policy::default())).unwrap();
    let program = host.runtime().prepare("(ret (help.about? \"str\"))").await.unwrap();
    assert_eq!(program.missing(&Grants::new().allow("sys")), ["help"]);
}
