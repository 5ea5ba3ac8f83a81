//! Tests the base tools as a model uses them: called by name in a run, with their observations and
//! effects.

mod workbooks;

use std::sync::Arc;

use serde_json::{Value as Json, json};
use wattle_agent::host::IssueFile;
use wattle_agent::host::capability::PortFuture;
use wattle_agent::host::capability::files::{Files, OVERLAY_LIMIT};
use wattle_agent::host::capability::shell::{Shell, ShellOutput};
use wattle_agent::{Resources, Settings};
use wattle_machine::{Ending, Role};
use wattle_rt::Account;
use wattle_tests::{Job, Scripted, World};

/// A shell that prints its command line and reports whether a file exists.
struct Parrot;

impl Shell for Parrot {
    fn run(
        &self,
        _: &Account,
        files: Arc<Files>,
        script: String,
        _: Vec<u8>,
        _: std::time::Instant,
    ) -> PortFuture<'_, ShellOutput> {
        let seen = files.stat("notes.txt").is_ok();
        let (stdout, stderr) = (format!("said {script}").into_bytes(), b"warning\n".to_vec());
        Box::pin(
            async move { Ok(ShellOutput { stdout, stderr, status: if seen { 0 } else { 3 } }) },
        )
    }
}

fn job(world: &World) -> Job {
    let base = Files::open_base(world.workdir()).unwrap();
    let access = Resources {
        shell: Some(Arc::new(Parrot)),
        issues: Some(Arc::new(IssueFile::of(world.workdir()))),
        ..Resources::new(&world.host, Arc::new(Files::overlay(Some(base), OVERLAY_LIMIT)))
    };
    Job { trace_dir: Some(world.workdir().to_owned()), ..Job::new("go", access.grants()) }
}

/// Runs a job with a model that returns the given answers. Returns the run's ending and the
/// observation of each call.
async fn run(world: &World, answers: &[&str]) -> (Ending, Vec<String>) {
    let model = Scripted::new(answers);
    let (report, _) = world.run(&model, &Settings::default(), job(world)).await;
    let read = model
        .requests()
        .into_iter()
        .skip(1)
        .map(|messages| messages.last().unwrap().content.to_string())
        .collect();
    (report.ending, read)
}

const END: &str = "ToolCall::Response(\"over\")";

#[tokio::test]
async fn each_tool_does_its_work_by_name() {
    let world = World::new();
    for (call, reads) in [
        (
            r#"("vfs_write", "notes.txt", "rain\n")"#,
            "Execution result:\nwrote 5 bytes to notes.txt",
        ),
        (r#"("vfs_read", "/notes.txt")"#, "ENOENT (4)"),
        (r#"("shell", "ls -l")"#, "Execution result:\nsaid ls -l\nwarning\n[exit code 3]"),
        (r#"("wattle", "catalog run text_count 'a b'")"#, "Execution result:\n"),
        (r#"("wattle")"#, "vars get NAME"),
        (r#"("wattle", "git push")"#, "unknown command `git push`"),
        (r#"("file_issue", "no fax", "send it")"#, "Execution result:\nfiled: no fax"),
        (
            r#"("run", "[components.a]\nprogram = 'help'\nargs = ['ENOENT']\n[exports]\na = 'a'")"#,
            r#"{"a":"ENOENT (4): no such entry"#,
        ),
        (
            r#"("vfs_read", "/etc/shadow")"#,
            "/etc/shadow is outside the run's folder; only files in it can be read",
        ),
        (
            r#"("vfs_write", "../x", "y")"#,
            "../x is outside the run's folder; only files in it can be written",
        ),
        (r#"("vfs_write", "/x/y", "z")"#, "Execution result:\nwrote 1 bytes to x/y"),
        (r#"("done", "")"#, "the result is empty"),
    ] {
        let (ending, read) = run(&world, &[&format!("ToolCall::Catalog{call}"), END]).await;
        assert_eq!(ending.text(), "over", "{call}");
        assert!(read[0].contains(reads), "{call}: {}", read[0]);
    }
    // The overlay keeps the run's writes out of the workdir. Only files written by the host appear
    // there.
    assert!(!world.workdir().join("notes.txt").exists());
    let tickets = std::fs::read_to_string(world.workdir().join("_issues.jsonl")).unwrap();
    let ticket: Json = serde_json::from_str(tickets.trim_end()).unwrap();
    assert_eq!(
        (&ticket["title"], &ticket["need"], &ticket["tried"]),
        (&json!("no fax"), &json!("send it"), &json!(""))
    );
    assert_eq!(ticket["run"].as_str().map(str::len), Some(26));
    assert!(ticket["ts"].is_u64());
}

#[tokio::test]
async fn tools_see_the_same_files_and_the_steps_before() {
    let world = World::new();
    let write = r#"ToolCall::Catalog("vfs_write", "notes.txt", "rain")"#;
    let wat = "ToolCall::Wat(```wat\n(out (vfs.read? \"notes.txt\")) (out (shell.run? \"x\")) \
               (ret (wattle.run? \"trace show\"))\n```)";
    let (_, read) = run(&world, &[write, wat, END]).await;
    let observation =
        read[1].strip_prefix("[Observation (step 2)] Execution result:\nrain\nsaid x\n").unwrap();
    assert!(
        observation.starts_with("step 1: vfs_write(\"notes.txt\", \"rain\") in "),
        "{observation}"
    );
    assert!(observation.ends_with(" ms: wrote 4 bytes to notes.txt"), "{observation}");
}

#[tokio::test]
async fn a_program_can_run_every_permitted_nesting_of_a_line() {
    let world = World::new();
    let nested = |open: &str, middle: &str, close: &str| {
        format!("{}{middle}{}", open.repeat(45), close.repeat(45))
    };
    let lines = [
        format!("echo {}", nested("$(echo ", "a", ")")),
        format!("echo {}", nested("${x:-", "a", "}")),
        nested("{ ", "echo a; ", "}; "),
        nested("( ", "echo a", " )"),
        nested("if true; then ", "echo a; ", "fi; "),
        "f() { if [ $1 -lt 190 ]; then f $(($1+1)); else echo a; fi; }; f 0".to_owned(),
        "f() { eval f; }; f".to_owned(),
    ];
    for line in lines {
        let model = Scripted::new(&[&format!(r#"ToolCall::Catalog("shell", "{line}")"#), END]);
        let base = Files::open_base(world.workdir()).unwrap();
        let files = Arc::new(Files::overlay(Some(base), OVERLAY_LIMIT));
        let access =
            Resources { shell: Some(world.host.shell()), ..Resources::new(&world.host, files) };
        let job = Job::new("go", access.grants());
        let (report, _) = world.run(&model, &Settings::default(), job).await;
        assert_eq!(report.ending.text(), "over", "{line}");
        let read = model.requests()[1].last().unwrap().content.to_string();
        assert!(read.contains("result:\na") || read.contains("nested deeper"), "{line}: {read}");
    }
}

#[tokio::test]
async fn done_ends_the_run_as_an_answer_does() {
    let world = World::new();
    for call in [
        r#"ToolCall::Catalog("done", "It is four.")"#,
        "ToolCall::Wat(```wat\n(sys.done? \"It is four.\")\n```)",
        "ToolCall::Wat(```wat\n(out \"noise\") (sys.done? \"It is four.\") (out \"more\")\n```)",
    ] {
        let model = Scripted::new(&[call]);
        let (report, events) = world.run(&model, &Settings::default(), job(&world)).await;
        assert_eq!(
            report.ending,
            Ending::Answered { text: "It is four.".to_owned(), data: None },
            "{call}"
        );
        assert_eq!((report.steps, model.requests().len()), (1, 1));
        let last = report.turns.last().unwrap();
        assert_eq!((last.role, last.content.as_str()), (Role::Assistant, "It is four."));
        let kinds: Vec<String> = events
            .iter()
            .filter(|e| !e.event.is_part())
            .map(|e| serde_json::to_value(e).unwrap()["type"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(kinds[kinds.len() - 3..], ["tool_start", "tool_result", "response"]);
    }
    // A program that fails after `sys.done` does not end the run, and neither does a nested
    // program.
    for call in [
        "ToolCall::Wat(```wat\n(sys.done? \"four\") (fail EPARSE)\n```)",
        r#"ToolCall::Catalog("wattle", "catalog run done four")"#,
        r#"ToolCall::Catalog("run", "[components.a]\nprogram = 'done'\nargs = ['x']\n[exports]\na = 'a'")"#,
    ] {
        let (ending, read) = run(&world, &[call, END]).await;
        assert_eq!(ending.text(), "over", "{call}");
        assert!(read[0].contains("Execution FAILED:"), "{}", read[0]);
    }
}

#[tokio::test]
async fn errors_about_arguments_have_one_form() {
    let world = World::new();
    for (tool, arg) in [
        ("shell", "pipeline"),
        ("vfs_read", "path"),
        ("vfs_write", "path"),
        ("file_issue", "title"),
        ("done", "result"),
        ("run", "workbook"),
        ("http_get", "url"),
        ("csv_sum", "path"),
    ] {
        let (_, read) = run(&world, &[&format!("ToolCall::Catalog(\"{tool}\")"), END]).await;
        let words =
            format!("{tool} error: required arg `{arg}` missing or not a string\nhint: expected ");
        assert!(read[0].contains(&words), "{}", read[0]);
    }
    let (_, read) = run(&world, &[r#"ToolCall::Catalog("shell", "ls", "pwd")"#, END]).await;
    assert!(read[0].contains("shell error: takes 1 argument, 2 given"), "{}", read[0]);
    // Within a program, the same error is a code with a reason.
    let nothing = "ToolCall::Wat(```wat\n(shell.run? 999999)\n```)";
    let (_, read) = run(&world, &[nothing, END]).await;
    assert!(read[0].contains("Execution FAILED:"), "{}", read[0]);
}

#[tokio::test]
async fn a_ticket_without_a_workdir_is_kept_for_the_tenant() {
    let world = World::new();
    let model = Scripted::new(&[
        r#"ToolCall::Catalog("file_issue", "no printer", "print files", "lpr")"#,
        r#"ToolCall::Catalog("kv_get", "tenant:_issues.jsonl")"#,
        END,
    ]);
    let (_, _) = world.run(&model, &Settings::default(), world.job("go")).await;
    let requests = model.requests();
    let read = |at: usize| requests[at].last().unwrap().content.to_string();
    assert!(read(1).contains("filed: no printer"), "{}", read(1));
    assert!(read(2).contains("\"need\":\"print files\",\"tried\":\"lpr\""), "{}", read(2));
    assert!(!world.workdir().join("_issues.jsonl").exists());
}
