//! Tests of what sessions and runs keep: changes that were not applied, and settings.

use crate::durable::{command, done, value, wat};
use crate::place::{Done, Place};
use wattle_tests::provider::{Answer, Provider, Recorded};

/// Starts a model endpoint that writes a file with the user's message as its name and its content,
/// unless the message begins with `look`.
fn writer() -> Provider {
    Provider::answering(|request: &Recorded| {
        let messages = request.messages();
        let last = messages.last().unwrap();
        Answer::text(if last.starts_with("[Observation") || last.starts_with("look") {
            done()
        } else {
            let name = last.lines().next().unwrap_or_default();
            let ending = if name == "Makefile" { "" } else { ".txt" };
            wat(&format!("(fs.write? \"{name}{ending}\" \"{name}\")"))
        })
    })
}

#[test]
fn changes_that_are_not_applied_stay_in_the_session() {
    let (place, provider) = (Place::new(), writer());
    let run = |args: &[&str]| {
        let all = [args, &["--session", "mine", "--orient", "off"]].concat();
        command(&place, &provider, &all).run().code(0)
    };
    run(&["one"]).reports(&["created one.txt", "not applied; `wattle apply mine` applies them"]);
    run(&["two"]).reports(&["created one.txt", "created two.txt"]);
    assert!(!place.work().join("one.txt").exists());
    // A copy of the session has the changes, too.
    place.wattle(["session", "fork", "mine", "copy", "--store", "runs.db"]).run().code(0);
    run(&["look", "--apply"]).reports(&["created one.txt", "created two.txt", "(applied)"]);
    assert_eq!((place.read("one.txt"), place.read("two.txt")), ("one".into(), "two".into()));
    // The applied changes have left the session.
    let silent = run(&["look"]);
    assert!(!silent.stderr.contains(".txt"), "{}", silent.stderr);

    // Somebody else has changed the file since the session wrote it.
    place.write("one.txt", "theirs");
    let args = ["look", "--session", "copy", "--apply", "--orient", "off"];
    command(&place, &provider, &args).run().code(1).reports(&["one.txt"]);
    assert_eq!(place.read("one.txt"), "theirs");
    let args = ["look", "--session", "copy", "--orient", "off"];
    command(&place, &provider, &args).run().code(0).reports(&["one.txt", "`wattle apply copy`"]);
}

/// Runs a command that shows or applies kept changes.
fn kept(place: &Place, args: &[&str]) -> Done {
    place.wattle(args.iter().chain(&["--store", "runs.db"])).run()
}

#[test]
fn a_run_without_a_session_keeps_the_changes_that_nobody_applied() {
    let (place, provider) = (Place::new(), writer());
    let run = |args: &[&str]| command(&place, &provider, args).run().code(0);
    let first = run(&["one", "--orient", "off"]);
    let listed = kept(&place, &["runs", "--json"]).json_lines().remove(0);
    let first_id = listed[0]["run"].as_str().unwrap().to_owned();
    first.reports(&["created one.txt", &format!("`wattle apply {first_id}` applies them")]);
    run(&["two", "--orient", "off"]);
    // Each run has its own changes, and the newest one is the default.
    for args in [&["changes"][..], &["changes", "last"]] {
        assert_eq!(kept(&place, args).code(0).stdout, "created two.txt (3 bytes)\n");
    }
    let diff = kept(&place, &["changes", &first_id, "--diff"]).code(0).stdout;
    assert!(diff.contains("+one") && !diff.contains("two"), "{diff}");
    let json = kept(&place, &["changes", &first_id, "--json"]).json_lines().remove(0);
    assert_eq!(json[0]["path"], "one.txt");

    kept(&place, &["apply"]).code(0).reports(&["applied 1 change"]);
    assert_eq!(place.read("two.txt"), "two");
    kept(&place, &["changes"]).code(0).reports(&["0 changes not applied"]);
    // Somebody else has written the file since.
    place.write("one.txt", "theirs");
    kept(&place, &["apply", &first_id]).code(1).reports(&["one.txt"]);
    assert_eq!(place.read("one.txt"), "theirs");
    kept(&place, &["changes", &first_id]).code(0).reports(&["1 change not applied"]);
    kept(&place, &["discard", &first_id]).code(0).reports(&["discarded 1 change"]);
    kept(&place, &["changes", &first_id]).code(0).reports(&["0 changes not applied"]);
}

#[test]
fn changes_are_applied_by_path_to_the_workdir_of_their_run() {
    let (place, provider) = (Place::new(), writer());
    std::fs::create_dir(place.work().join("below")).unwrap();
    for message in ["one", "two", "Makefile"] {
        let args = [message, "--session", "mine", "--orient", "off", "-C", "below"];
        command(&place, &provider, &args).run().code(0);
    }
    kept(&place, &["apply", "mine", "none.txt"]).code(2).reports(&["no change of `none.txt`"]);
    kept(&place, &["apply", "none.txt"]).code(2).reports(&["no run or session `none.txt`"]);
    kept(&place, &["apply", "mine", "two.txt"]).code(0).reports(&["applied 1 change"]);
    assert_eq!(place.read("below/two.txt"), "two");
    assert!(!place.work().join("below/one.txt").exists());
    kept(&place, &["discard", "last", "./one.txt"]).code(0).reports(&["discarded 1 change"]);
    let left = kept(&place, &["changes"]).code(0).stdout;
    assert_eq!(left, "created Makefile (8 bytes)\n");
    kept(&place, &["apply"]).code(6).reports(&["created Makefile (8 bytes): a build file"]);
    kept(&place, &["apply", "last", "--allow", "protected"]).code(0);
    assert_eq!(place.read("below/Makefile"), "Makefile");
    assert!(!place.work().join("two.txt").exists());
}

#[test]
fn a_run_that_has_not_ended_has_no_changes_to_apply_yet() {
    let (place, provider) = (Place::new(), writer());
    let args = ["report", "--park", "--ask", "write:report.txt", "--orient", "off"];
    command(&place, &provider, &args).run().code(7);
    kept(&place, &["apply"]).code(2).reports(&["has not ended"]);
    let resume = ["--resume", "last", "--approve", "1.1"];
    command(&place, &provider, &resume).run().code(0).reports(&["`wattle apply "]);
    kept(&place, &["apply"]).code(0);
    assert_eq!(place.read("report.txt"), "report");
}

#[test]
fn programs_share_the_changes_of_their_session() {
    let place = Place::new();
    place.write("write.wat", "(fs.write \"made.txt\" \"here\")");
    place.write("read.wat", "(ret (fs.read \"made.txt\"))");
    let exec = |args: &[&str]| {
        let all = ["exec", "--session", "s", "--store", "runs.db"];
        place.wattle(all.iter().chain(args)).run()
    };
    exec(&["write.wat"]).code(0).reports(&["created made.txt", "`wattle apply s`"]);
    assert_eq!(exec(&["read.wat"]).code(0).stdout, "here\n");
    assert!(!place.work().join("made.txt").exists());
    // Programs that write to the workdir directly do not see the changes, and a warning says so.
    exec(&["read.wat", "--write"]).code(1).reports(&["has changes that were not applied"]);
    exec(&["read.wat", "--apply"]).code(0).reports(&["(applied)"]);
    assert_eq!(place.read("made.txt"), "here");
}

#[test]
fn a_resumed_run_applies_its_changes_on_request() {
    let parked = |place: &Place, provider: &Provider, args: &[&str]| {
        let all =
            [&["report", "--park", "--ask", "write:report.txt", "--orient", "off"], args].concat();
        command(place, provider, &all).run().code(7);
    };
    let resume = ["--resume", "last", "--approve", "1.1"];
    let provider = writer();

    let place = Place::new();
    parked(&place, &provider, &[]);
    let all = [&resume[..], &["--apply"]].concat();
    command(&place, &provider, &all).run().code(0).reports(&["(applied)"]);
    assert_eq!(place.read("report.txt"), "report");

    // A variable has the same effect.
    let place = Place::new();
    parked(&place, &provider, &[]);
    command(&place, &provider, &resume).env("WATTLE_APPLY", "1").run().code(0);
    assert_eq!(place.read("report.txt"), "report");

    // The flag of the first command is still honoured.
    let place = Place::new();
    parked(&place, &provider, &["--apply"]);
    command(&place, &provider, &resume).run().code(0);
    assert_eq!(place.read("report.txt"), "report");

    // A fork applies the changes of the steps that it shares.
    let place = Place::new();
    parked(&place, &provider, &[]);
    command(&place, &provider, &resume).run().code(0).reports(&["not applied"]);
    assert!(!place.work().join("report.txt").exists());
    let fork = ["--fork", "last", "--step", "1", "look"];
    command(&place, &provider, &fork).run().code(0).reports(&["created report.txt"]);
    let changes = kept(&place, &["changes"]).code(0).stdout;
    assert!(changes.contains("created report.txt (6 bytes)\n"), "those of its steps: {changes}");
    let fork = ["--fork", "last", "--step", "0", "look", "--apply"];
    command(&place, &provider, &fork).run().code(0).reports(&["(applied)"]);
    assert_eq!(place.read("report.txt"), "report");
}

#[test]
fn a_flag_that_a_resumed_run_cannot_honour_is_refused() {
    let (place, provider) = (Place::new(), writer());
    let begin =
        ["report", "--park", "--ask", "write:report.txt", "--max-steps", "7", "--session", "s"];
    command(&place, &provider, &begin).run().code(7);
    let cases: &[&[&str]] = &[
        &["--write"],
        &["--exec"],
        &["--allow-host", "127.0.0.1"],
        &["--allow", "write:report.txt"],
        &["--root", "/"],
        &["--catalog", "elsewhere"],
        &["--agents", "elsewhere"],
        &["--agent", "another"],
        &["--session", "another"],
        &["--ai-calls", "3"],
        &["--ai-tokens", "3"],
        &["--max-steps", "8"],
        &["--max-tokens-total", "8"],
        &["--max-cost", "1"],
        &["--timeout", "1m"],
    ];
    for flags in cases {
        for of in
            [&["--resume", "last", "--approve", "1.1"][..], &["--fork", "last", "--step", "0"]]
        {
            let refused = command(&place, &provider, &[of, flags].concat()).run().code(2);
            refused.reports(&["with which it started", &format!("leave out `{}`", flags[0])]);
        }
    }
    let runs = place.wattle(["runs", "--json", "--store", "runs.db"]).run().code(0);
    assert_eq!(runs.json_lines()[0].as_array().unwrap().len(), 1, "nothing was forked");
    // A variable is set for other runs, too, so it causes only a warning. The value with which the
    // run started is no contradiction, and rules are added.
    let resume = ["--resume", "last", "--approve", "1.1", "--max-steps", "7", "--session", "s"];
    command(&place, &provider, &[&resume[..], &["--root", ".", "--deny", "http"]].concat())
        .env("WATTLE_WRITE", "1")
        .run()
        .code(0)
        .reports(&["the run keeps `write = false`", "WATTLE_WRITE has another value"]);
    // A fork parks instead of asking.
    let args = ["--fork", "last", "--step", "0", "--park"];
    command(&place, &provider, &args).run().code(7);
}

#[test]
fn a_fork_returns_to_the_variables_of_its_step() {
    let set = |n: &str| wat(&format!("(kv.set? \"n\" \"{n}\")\n(kv.set? \"tenant:t\" \"{n}\")"));
    let (one, two) = (set("1"), set("2"));
    let provider = Provider::answering(move |request: &Recorded| {
        let messages = request.messages();
        let last = messages.last().unwrap();
        let spoken = messages.iter().filter(|text| text.starts_with("ToolCall")).count();
        Answer::text(match (last.ends_with("show"), spoken) {
            (true, _) => wat("(resv (kv.get? \"n\"))\n(resv (kv.get? \"tenant:t\"))"),
            (false, 0) => one.clone(),
            (false, 1) => two.clone(),
            _ => done(),
        })
    });
    let shown = || provider.requests().last().unwrap().messages().pop().unwrap();
    for session in [&["--session", "s"][..], &[]] {
        let place = Place::new();
        command(&place, &provider, &[&["go"], session].concat()).run().code(0);
        for step in ["1", "2", "1"] {
            let ended = place.wattle(["runs", "--json", "--store", "runs.db"]).run();
            let runs = ended.code(0).json_lines().remove(0);
            let first =
                runs.as_array().unwrap().last().unwrap()["run"].as_str().unwrap().to_owned();
            let args = ["--fork", &first, "--step", step, "show"];
            let forked = command(&place, &provider, &args).run().code(0);
            forked.reports(&[
                &format!("variables as they were after step {step}"),
                "the tenant's variables and memory stay as they are",
            ]);
            assert!(shown().ends_with(&format!("{step}\n2")), "{}", shown());
            if !session.is_empty() {
                assert_eq!(value(&place, "n").as_deref(), Some(step));
            }
        }
    }
}
