//! Tests complete runs with a scripted model and the real runtime: their observations, files, and
//! stored state.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value as Json;
use wattle_agent::model::{Cassette, Timeouts};
use wattle_agent::{Host, Resources, Settings};
use wattle_capability::egress::{self, Egress};
use wattle_capability::files::Files;
use wattle_capability::kv::Backend as _;
use wattle_capability::policy::{Policy, Preflight};
use wattle_catalog::Folders;
use wattle_machine::{Bound, EXAMPLE_PROGRAM, Ending, Event, Message, OnMaxSteps, Role};
use wattle_rt::Limits;
use wattle_tests::{Job, Scripted, World, plain};

fn text(messages: &[Message]) -> String {
    messages.iter().map(|m| m.content.as_str()).collect::<Vec<_>>().join("\n")
}

const BROKEN: &str = "<reasoning>count them</reasoning>\nToolCall::Wat(```wat\n(argv 0 $s)\n(resv \
                      (call $str.from_int (call $str.measure (local.get $s))))\n(i32.const \
                      0)\n```, \"four\")";
const MENDED: &str = "ToolCall::Wat(```wat\n(argv 0 $s)\n(resv (call $str.from_int (call $str.len \
                      (local.get $s))))\n(i32.const 0)\n```, \"four\")";

#[tokio::test]
async fn a_catalog_step_a_repair_and_the_answer() {
    let world = World::new();
    std::fs::write(world.workdir().join("notes.txt"), "one two\nthree\n").unwrap();
    let model = Scripted::new(&[
        "I'll read the file.\nToolCall::Catalog(\"file_read\", \"notes.txt\")",
        BROKEN,
        MENDED,
        "ToolCall::Response(\"\"\"\nThree words, and four letters.\n\"\"\")",
    ]);
    let (report, events) = world.run(&model, &Settings::default(), world.job("look")).await;
    assert_eq!(
        report.ending,
        Ending::Answered { text: "Three words, and four letters.".to_owned(), data: None }
    );
    assert_eq!(report.steps, 2);

    let requests = model.requests();
    assert_eq!(requests.len(), 4);
    assert!(
        text(&requests[1]).contains("[Observation (step 1)] Execution result:\none two\nthree")
    );
    let repair = &requests[2].last().unwrap().content;
    assert!(repair.contains("$str.measure") && repair.contains("`$str.len`"), "{repair}");
    assert!(repair.contains("line 2, column"), "{repair}");
    assert!(
        !text(&requests[3]).contains("measure"),
        "the broken program is not in the later conversation"
    );
    assert!(text(&requests[3]).contains("[Observation (step 2)] Execution result:\n4"));
    assert!(
        requests.windows(2).all(|pair| pair[0][0] == pair[1][0]),
        "the system prompt stays the same"
    );
    assert_eq!(requests[0][0].role, Role::System);

    let kinds: Vec<String> = events
        .iter()
        .filter(|e| !e.event.is_part())
        .map(|e| serde_json::to_value(e).unwrap()["type"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        kinds.join(" "),
        "thinking tool_start tool_result thinking tool_start retry tool_start tool_result response"
    );
    assert!(events.iter().all(|event| event.run_id == report.run_id));
    let mut kept = events.iter().filter(|event| !event.event.is_part()).zip(1..);
    assert!(kept.all(|(event, seq)| event.seq == seq));

    let steps = world.steps();
    assert_eq!(steps.len(), 3, "a program that did not compile is in the trace");
    assert_eq!(steps[0]["tool"], "file_read");
    assert_eq!(steps[0]["args"], serde_json::json!({"path": "notes.txt"}));
    assert_eq!(steps[0]["exit_code"], 0);
    assert_eq!(steps[1]["exit_code"], Json::Null);
    assert!(steps[1]["error"].as_str().unwrap().contains("unknown-function"));
    assert_eq!((steps[2]["step"].as_u64(), steps[2]["output"].as_str()), (Some(2), Some("4")));
}

/// The report of a failure does not contain the source of a catalog program, because the model has
/// never seen it.
#[tokio::test]
async fn a_failure_in_a_catalog_program_shows_its_arguments_and_no_line() {
    let folder = tempfile::tempdir().unwrap();
    for (name, body) in [
        ("divides", "(ret (str.from_int (/ 1 (str.to_int? (arg 0)))))"),
        ("loops", "(while 1)"),
        ("fails", "(fail EBOUND \"too far\")"),
        ("breaks", "(ret (str.uper? (arg 0)))"),
    ] {
        let text = format!(
            ";;; name = \"{name}\"\n;;; description = \"Does it\"\n;;; [[args]]\n;;; name = \
             \"a\"\n;;; description = \"A text\"\n{body} ;; secret_line\n"
        );
        std::fs::write(folder.path().join(format!("{name}.wat")), text).unwrap();
    }
    let limits = Limits { time: Duration::from_millis(200), ..Limits::default() };
    let folders = Folders::open(&[folder.path()], &|_, _| Ok(()));
    let host = Host::new(limits, folders, Egress::new(egress::Policy::default())).unwrap();
    let long = "x".repeat(150);
    for (call, expected) in [
        (r#"ToolCall::Catalog("divides", "0")"#, "program error in divides(\"0\"): "),
        (r#"ToolCall::Catalog("loops", "z")"#, "tool error: loops(\"z\") timed out after 200ms"),
        (r#"ToolCall::Catalog("fails", "z")"#, "in fails(\"z\")\nreason: too far"),
        (r#"ToolCall::Catalog("breaks", "z")"#, "the program `breaks` of the catalog does not"),
        (r#"ToolCall::Catalog("divides", "")"#, "EPARSE"),
        (&format!("ToolCall::Catalog(\"fails\", \"{long}\")"), &format!("{}\"…)", &long[..100])),
    ] {
        let model = Scripted::new(&[call, "ToolCall::Response(\"done\")"]);
        let files = Arc::new(Files::overlay(None, 1 << 20));
        let job = Job::new("go", Resources::new(&host, files).grants());
        let (parts, request) = job.on(&host, &model, &Settings::default());
        wattle_agent::host::run(parts, &request, &|_: &_| {}).await;
        let observation = model.requests()[1].last().unwrap().content.to_string();
        assert!(observation.contains(expected), "{call}: {observation}");
        for foreign in ["secret_line", "at line", "(line ", "str.uper"] {
            let is_named = foreign == "str.uper" && call.contains("breaks");
            assert!(is_named || !observation.contains(foreign), "{call}: {observation}");
        }
    }
}

/// Unambiguous mistakes are fixed, and the program runs in the same step. If an error remains, the
/// model is asked to repair the program.
#[tokio::test]
async fn mistakes_are_fixed_within_the_step() {
    let world = World::new();
    let wat = |body: &str| format!("ToolCall::Wat(```wat\n{body}\n```)");
    let slips = wat("(resv “one”)\n(call $dbg.lgo \"x\") // done\n(resv (call $str.from_int \
                     (i32.div_s (i32.const 4) (i32.const 2))))");
    let fails = wat("(resv “one”)\n(unreachable)");
    let half = wat("(resv “one”)\n(call $telegram.send \"x\")\n(call $signal.send \"x\")");
    let model = Scripted::new(&[&slips, &fails, &half, "ToolCall::Response(\"done\")"]);
    let (report, events) = world.run(&model, &Settings::default(), world.job("go")).await;
    assert_eq!(report.steps, 2);
    let requests = model.requests();
    let notes =
        ["line 1: `“one”` → `\"one\"`", "line 2: `//` → `;;`", "line 2: `$dbg.lgo` → `$dbg.log`"];
    assert_eq!(
        requests[1].last().unwrap().content,
        format!(
            "[Observation (step 1)] Execution result:\n[Note] fixed before running: {}\none\n2",
            notes.join("; ")
        )
    );
    let stopped = &requests[2].last().unwrap().content;
    assert!(
        stopped.contains(
            "FAILED:\n[Note] fixed before running: line 1: `“one”` → `\"one\"`\nprogram error:"
        ),
        "{stopped}"
    );
    let repair = &requests[3].last().unwrap().content;
    for fault in ["(resv “one”)", "line 1, column 7", "`$telegram.send`", "`$signal.send`"] {
        assert!(
            repair.contains(fault),
            "all faults of the text as it was written are reported: {repair}"
        );
    }
    let fixed = events.iter().filter_map(|e| match &e.event {
        Event::ToolResult { fixes, output, .. } => {
            Some((fixes.len(), output.starts_with("[Note]")))
        }
        _ => None,
    });
    assert_eq!(fixed.collect::<Vec<_>>(), [(3, false), (1, false)]);
    assert_eq!(world.steps()[0]["fixed"], serde_json::json!(notes));
    assert_eq!(world.steps()[2].get("fixed"), None);
}

#[tokio::test]
async fn errors_are_reported_to_the_model_and_the_run_continues() {
    let world = World::with(Limits { time: Duration::from_millis(200), ..Limits::default() });
    for (answer, expected) in [
        (
            "ToolCall::Catalog(\"file_reed\", \"x\")",
            "there is no program `file_reed` in the catalog; the nearest: `file_read`",
        ),
        ("ToolCall::Catalog(\"file_read\")", "file_read error: required arg `path` missing"),
        (
            "ToolCall::Catalog(\"file_read\", \"none.txt\")",
            "Execution FAILED:\nENOENT (4): no such entry\nfrom fs.read\nin \
             file_read(\"none.txt\")\nreason: no such file or folder `none.txt`",
        ),
        (
            "ToolCall::Catalog(\"file_read\", \"../../etc/passwd\")",
            "EACCESS (3): access denied\nfrom fs.read\nin \
             file_read(\"../../etc/passwd\")\nreason: ../../etc/passwd is outside the run's \
             folder; only files in it can be read",
        ),
        (
            "ToolCall::Wat(```wat\n(loop $l (br $l))\n(i32.const 0)\n```)",
            "tool error: wat timed out after 200ms (killed) at line 1",
        ),
        (
            "ToolCall::Wat(```wat\n(resv \"before\")\n(i32.div_s (i32.const 1) (i32.const \
             0))\n```)",
            "program error: integer division by zero (line 2, column 2)\nprinted before \
             that:\nbefore",
        ),
        (
            "ToolCall::Wat(```wat\n(call $ai.assist \"a\" \"b\" (i32.const 0)) (drop) (drop) \
             (i32.const 0)\n```)",
            "denied before it ran: `ai` is not granted",
        ),
        (
            "ToolCall::Wat(```wat\n(call $http.get \"http://127.0.0.1:9/\") (local $e i32) \
             (local.set $e) (drop) (check $e) (i32.const 0)\n```)",
            "EACCESS (3): access denied\nfrom http.get at line 1",
        ),
    ] {
        let model = Scripted::new(&[answer, "ToolCall::Response(\"done\")"]);
        let (report, _) = world.run(&model, &Settings::default(), world.job("go")).await;
        assert_eq!(report.ending, Ending::Answered { text: "done".to_owned(), data: None });
        let observation = model.requests()[1].last().unwrap().content.to_string();
        assert!(
            observation.contains("[Observation (step 1)] Execution FAILED:")
                && observation.contains(expected),
            "{observation}"
        );
    }
}

#[tokio::test]
async fn limits_end_a_run() {
    let world = World::new();
    let call = "ToolCall::Wat(```wat\n(i32.const 0)\n```)";
    let mut settings = Settings::default();
    settings.machine.max_steps = 2;
    let model = Scripted::new(&[call, call, "ToolCall::Response(\"what I have\")"]);
    let (report, _) = world.run(&model, &settings, world.job("go")).await;
    assert_eq!(
        report.ending,
        Ending::Exhausted { text: "what I have".to_owned(), bound: Bound::Steps, data: None }
    );

    let hangs = Scripted::new(&[]);
    let settings = Settings { timeout: Some(Duration::from_millis(50)), ..Settings::default() };
    let (report, _) = world.run(&hangs, &settings, world.job("go")).await;
    assert_eq!(report.ending.text(), "stopped: reached timeout (50 ms)");

    let short = Timeouts {
        request: Duration::from_millis(20),
        retry_for: Duration::ZERO,
        slack: Duration::from_millis(20),
        ..Timeouts::default()
    };
    let (report, events) = world
        .run(&hangs, &Settings { timeouts: short, ..Settings::default() }, world.job("go"))
        .await;
    assert_eq!(report.ending, Ending::Failed { message: "error: llm hard timeout".to_owned() });
    assert!(matches!(
        &events.last().unwrap().event,
        Event::Error { message } if message == "error: llm hard timeout"
    ));
}

#[tokio::test]
async fn cancelling_reaches_a_running_program_and_an_open_request() {
    let world = World::new();
    let endless = "ToolCall::Wat(```wat\n(loop $l (br $l))\n(i32.const 0)\n```)";
    for (answers, closed) in [(&[endless][..], 1), (&[], 0)] {
        let model = Scripted::new(answers);
        let job = world.job("go");
        let cancel = job.cancel.clone();
        let canceller = async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            cancel.cancel("enough");
        };
        let settings = Settings::default();
        let ((report, events), ()) = tokio::join!(world.run(&model, &settings, job), canceller);
        assert_eq!(
            report.ending,
            Ending::Cancelled { text: "stopped: cancelled (enough)".to_owned() }
        );
        let results =
            events.iter().filter(|e| matches!(&e.event, Event::ToolResult { success: false, .. }));
        assert_eq!(results.count(), closed, "every started call is reported as ended");
    }
    assert_eq!(world.steps()[0]["error"], "stopped: cancelled (enough)");
}

#[tokio::test]
async fn a_session_keeps_its_conversation_and_its_state() {
    let world = World::new();
    let set = Scripted::new(&[
        "ToolCall::Catalog(\"kv_set\", \"colour\", \"green\")",
        "ToolCall::Response(\"kept\")",
    ]);
    let (report, _) = world.run(&set, &Settings::default(), world.job("remember green")).await;
    world.store.extend("s", report.turns).await.unwrap();

    let get = Scripted::new(&[
        "ToolCall::Catalog(\"kv_get\", \"colour\")",
        "ToolCall::Response(\"green\")",
    ]);
    let history = world.store.history("s", None).await.unwrap().messages;
    let (_, _) =
        world.run(&get, &Settings::default(), Job { history, ..world.job("which colour?") }).await;
    let requests = get.requests();
    assert!(
        text(&requests[0]).contains("remember green")
            && text(&requests[0]).ends_with("which colour?")
    );
    assert!(requests[1].last().unwrap().content.ends_with("Execution result:\ngreen"));
}

#[tokio::test]
async fn a_session_can_be_continued_after_a_run() {
    const ACT: &str = "ToolCall::Wat(```wat\n(resv \"7\")\n(i32.const 0)\n```)";
    const ANSWER: &str = "ToolCall::Response(\"seven\")";
    const LOOP: &str = "ToolCall::Wat(```wat\n(loop $l (br $l))\n(i32.const 0)\n```)";
    const OBSERVED: &str = "[Observation (step 1)] Execution result:\n7";
    let world = World::new();
    let usual = Settings::default();
    let one_step = |on_max_steps| {
        let mut settings = Settings::default();
        settings.machine.max_steps = 1;
        settings.machine.on_max_steps = on_max_steps;
        settings
    };
    let timed = Settings { timeout: Some(Duration::from_millis(1_200)), ..Settings::default() };
    let fails = Timeouts {
        request: Duration::from_millis(20),
        retry_for: Duration::ZERO,
        slack: Duration::from_millis(20),
        ..Timeouts::default()
    };
    let fails = Settings { timeouts: fails, ..Settings::default() };
    for (name, settings, cancelled, answers, saved) in [
        ("answered", &usual, false, &[ACT, ANSWER][..], &["go", ACT, OBSERVED, ANSWER][..]),
        (
            "forced to answer",
            &one_step(OnMaxSteps::Answer),
            false,
            &[ACT, ANSWER],
            &["go", ACT, OBSERVED, ANSWER],
        ),
        (
            "out of steps",
            &one_step(OnMaxSteps::Stop),
            false,
            &[ACT],
            &["go", ACT, OBSERVED, "stopped: reached max_steps (1)"],
        ),
        (
            "out of time before the first answer",
            &timed,
            false,
            &[],
            &["go", "stopped: reached timeout (1200 ms)"],
        ),
        (
            "out of time in a program",
            &timed,
            false,
            &[LOOP],
            &["go", "stopped: reached timeout (1200 ms)"],
        ),
        (
            "out of time later",
            &timed,
            false,
            &[ACT],
            &["go", ACT, OBSERVED, "stopped: reached timeout (1200 ms)"],
        ),
        ("cancelled at once", &usual, true, &[], &["go", "stopped: cancelled"]),
        ("failed at once", &fails, false, &[], &[]),
        ("failed later", &fails, false, &[ACT], &[]),
    ] {
        let model = Scripted::new(answers);
        let job = world.job("go");
        if cancelled {
            job.cancel.cancel("");
        }
        let (report, _) = world.run(&model, settings, job).await;
        let messages: Vec<String> =
            report.turns.iter().map(|turn| plain(turn.content.trim_end())).collect();
        assert_eq!(messages, saved, "{name}");
        let roles = [Role::User, Role::Assistant].into_iter().cycle();
        assert!(
            report.turns.iter().zip(roles).all(|(turn, role)| turn.role == role),
            "{name}: {:?}",
            report.turns
        );
        assert_ne!(report.turns.last().map(|turn| turn.role), Some(Role::User), "{name}");
    }
}

#[tokio::test]
async fn the_prompts_example_runs() {
    let world = World::new();
    let job = world.job("x");
    let program = world.host.runtime().prepare(EXAMPLE_PROGRAM).await.unwrap();
    let args = vec!["red\nblue\nred wine".to_owned(), "red".to_owned()];
    let outcome = world.host.runtime().run(&program, &job.grants, args).await.unwrap();
    assert!(outcome.success());
    assert_eq!(outcome.texts(), ["2"]);
}

#[tokio::test]
async fn every_built_in_program_passes_its_examples() {
    let world = World::new();
    let mut wrong = Vec::new();
    for entry in world.host.catalog().iter() {
        assert!(!entry.meta().examples.is_empty(), "{} has no example", entry.name());
        for example in &entry.meta().examples {
            if let Err(fault) = wattle_agent::host::check_example(&world.host, entry, example).await
            {
                wrong.push(format!("{}: {fault}", entry.name()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(world.host.catalog().problems().is_empty());
}

#[tokio::test]
async fn a_cassette_plays_a_run() {
    let world = World::new();
    let tape = "{\"wattle_cassette\":1,\"model\":\"demo\"}\n{\"reply\":\"ToolCall::Catalog(\\\"\
                text_count\\\", \\\"a b\\\")\"}\n{\"reply\":\"two words\"}\n";
    let model = Arc::new(Cassette::parse(tape).unwrap());
    let (report, _) = world.run(&model, &Settings::default(), world.job("count")).await;
    assert_eq!(report.ending.text(), "two words");
}

#[tokio::test]
async fn a_program_outside_the_policy_is_refused_before_it_runs() {
    let world = World::new();
    let program = "ToolCall::Wat(```wat\n(check (call $kv.set \"seen\" \"yes\"))\n(check (call \
                   $fs.write \"secret/a.txt\" \"x\"))\n(i32.const 0)\n```)";
    let model = Scripted::new(&[program, "ToolCall::Response(\"no\")"]);
    let policy = Policy::new(Vec::new(), Vec::new(), vec!["write:secret".parse().unwrap()]);
    let job = world.job("write it");
    let guarded = job.grants.as_ref().clone().guarded(Arc::new(Preflight::new(policy, None)));
    let (report, events) =
        world.run(&model, &Settings::default(), Job { grants: Arc::new(guarded), ..job }).await;
    assert_eq!(report.ending.text(), "no");
    let observation = model.requests()[1].last().unwrap().content.to_string();
    assert!(
        observation.contains(
            "Execution FAILED:\ndenied before it ran: `fs.write` may not write secret/a.txt \
             (denied by the rule `write:/secret`)"
        ),
        "{observation}"
    );
    assert!(observation.contains("(line 2: (check (call $fs.write"), "{observation}");
    assert_eq!(
        world.store.state("s").get("seen".to_owned()).await.unwrap(),
        None,
        "nothing of it ran"
    );
    assert!(events.iter().any(|e| matches!(
        &e.event,
        Event::ToolResult { success: false, exit_code: None, dur_ms: 0, .. }
    )));
}
