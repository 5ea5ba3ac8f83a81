//! Tests of runs that outlive their process: they are killed at random moments and resumed, parked,
//! replayed and forked.

use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::{Duration, Instant};

use wattle_agent::host::capability::kv::Backend as _;
use wattle_agent::{Store, Tenant};
use wattle_tests::provider::{Answer, Provider, Recorded};

use crate::place::{Done, Place};

/// Starts a model endpoint whose answer depends on the number of earlier answers in the request. It
/// also answers requests to paths other than `/chat/completions`.
fn endpoint(turns: Vec<String>) -> Provider {
    Provider::answering(move |request: &Recorded| {
        if !request.path.ends_with("/chat/completions") {
            return Answer::body(format!("thanks for {}", request.body));
        }
        let body = request.json();
        let messages = body["messages"].as_array().unwrap().iter();
        let spoken = messages.filter(|message| message["role"] == "assistant").count();
        let turn = turns
            .get(spoken)
            .cloned()
            .unwrap_or_else(|| "ToolCall::Response(\"off the script\")".to_owned());
        Answer::text(turn)
    })
}

pub(crate) fn wat(body: &str) -> String {
    format!("ToolCall::Wat(```wat\n{body}\n(i32.const 0)\n```)")
}

pub(crate) fn done() -> String {
    "ToolCall::Response(\"\"\"all done\"\"\")".to_owned()
}

/// Prepares a `run` command that uses the test's store and the model endpoint.
pub(crate) fn command(place: &Place, provider: &Provider, args: &[&str]) -> crate::place::Call {
    let all = ["run", "--store", "runs.db", "--base-url", &provider.base_url(), "--model", "m"];
    place.wattle(all.iter().chain(args)).env("WATTLE_API_KEY", "sk-test")
}

pub(crate) fn value(place: &Place, key: &str) -> Option<String> {
    let store = Store::open(&place.work().join("runs.db"), Duration::from_secs(3600)).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let value =
        runtime.block_on(store.tenant(&Tenant::default()).state("s").get(key.to_owned())).unwrap();
    value.map(|bytes| String::from_utf8(bytes).unwrap())
}

/// Kills a run's processes after random delays, until a process completes the run. Returns the
/// number of kills, and the result of the last process.
fn killed(place: &Place, provider: &Provider, random: &mut Moments) -> (usize, Done) {
    let host = provider.host();
    let begin = ["go", "--session", "s", "--write", "--allow-host", &host];
    let mut kills = 0;
    let mut child = command(place, provider, &begin).start();
    loop {
        let end = Instant::now() + random.next();
        while Instant::now() < end && child.try_wait().unwrap().is_none() {
            sleep(Duration::from_millis(1));
        }
        if child.try_wait().unwrap().is_some() {
            let done = Done::of(child);
            // A process that was killed before the run started leaves no run. A run that has ended
            // cannot be resumed.
            if done.code == 0 || done.stderr.contains("has ended") {
                return (kills, done);
            }
            assert!(done.stderr.contains("no run `last`"), "{done:?}");
            child = command(place, provider, &begin).start();
            continue;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        kills += 1;
        // A run that was killed twice between two turns is parked. The test itself killed the run,
        // so it can safely release the run.
        child = command(place, provider, &["--resume", "last", "--release"]).start();
    }
}

/// The pseudo-random delays before processes are killed. They are the same each time the test runs.
/// The maximum delay increases within a run, so that the run makes progress.
struct Moments(u64, u64);

impl Moments {
    fn next(&mut self) -> Duration {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.1 += 1;
        Duration::from_micros((self.0 >> 33) % (60_000 * self.1))
    }
}

#[test]
#[allow(clippy::print_stdout, reason = "the figure is what the test is for")]
fn a_run_that_is_killed_at_any_moment_resumes_and_does_nothing_twice() {
    const KILLS: usize = 50;
    let (mut kills, mut runs, mut unknown) = (0, 0, 0);
    let mut random = Moments(7, 0);
    let began = Instant::now();
    while kills < KILLS {
        let place = Place::new();
        let form = std::sync::Arc::new(std::sync::OnceLock::<String>::new());
        let url = std::sync::Arc::clone(&form);
        let turns = move |n: usize| {
            let form = url.get().unwrap();
            wat(&format!(
                "(resv (str.from_int (kv.incr? \"n{n}\" 1)))\n(fs.append? \"log.txt\" \"line \
                 {n}\\n\")\n(resv (http.post? \"{form}/{n}\" \"a\" \"\"))\n(kv.set? \"k\" \"{n}\")"
            ))
        };
        let provider = Provider::answering(move |request: &Recorded| {
            if !request.path.ends_with("/chat/completions") {
                return Answer::body("thanks");
            }
            let body = request.json();
            let messages = body["messages"].as_array().unwrap().iter();
            match messages.filter(|message| message["role"] == "assistant").count() {
                spoken @ 0..4 => Answer::text(turns(spoken)),
                _ => Answer::text(done()),
            }
        });
        form.set(provider.base_url().replace("/v1", "/form")).unwrap();
        random.1 = 0;
        let (killed, last) = killed(&place, &provider, &mut random);
        kills += killed;
        runs += 1;
        let text = format!("{}{}", last.stdout, last.stderr);
        assert!(text.contains("all done") || text.contains("has ended"), "{last:?}");

        let requests = provider.requests();
        let mut posts: BTreeMap<&str, usize> = BTreeMap::new();
        for request in requests.iter().filter(|request| request.path.starts_with("/form")) {
            *posts.entry(&request.path).or_default() += 1;
        }
        assert!(posts.values().all(|count| *count == 1), "posted twice: {posts:?}");
        let said = requests.iter().filter(|request| request.path.ends_with("/chat/completions"));
        let lines =
            said.flat_map(Recorded::messages).filter(|text| text.contains("outcome unknown: "));
        let lost: std::collections::BTreeSet<String> =
            lines.map(|text| text.lines().take(2).collect()).collect();
        unknown += lost.len();
        let log = place.read("log.txt");
        for n in 0..4 {
            let counted = value(&place, &format!("n{n}"));
            assert_eq!(
                counted.as_deref(),
                Some("1"),
                "state is changed once, even if the process is killed: {n}"
            );
            assert!(
                log.lines().filter(|line| *line == format!("line {n}")).count() <= 1,
                "appended twice: {log}"
            );
        }
        if lost.is_empty() {
            assert_eq!((log.lines().count(), posts.len()), (4, 4), "nothing is missing: {log}");
        }
        let steps: Vec<u64> = place
            .read_trace("_steps.jsonl")
            .lines()
            .map(|line| {
                serde_json::from_str::<serde_json::Value>(line).unwrap()["step"].as_u64().unwrap()
            })
            .collect();
        assert_eq!(steps, [1, 2, 3, 4], "each step is in the trace once");
        let played = place.wattle(["replay", "last", "--store", "runs.db"]).run().code(0);
        assert!(played.stdout.contains("matches its record"), "{played:?}");
        let verified = place.wattle(["ledger", "verify", "--store", "runs.db"]).run().code(0);
        assert!(verified.stdout.contains("sound 4 lines"), "{verified:?}");
    }
    println!(
        "{kills} kills in {runs} runs, {:.1} s: nothing was repeated, and notes reported {unknown} \
         unknown outcomes to the model",
        began.elapsed().as_secs_f32()
    );
}

#[test]
fn a_parked_run_resumes_with_an_approval_or_a_denial() {
    let place = Place::new();
    let form = Provider::answering(|_| Answer::body("thanks"));
    let post = wat(&format!("(resv (http.post? \"{}\" \"a\" \"\"))", form.base_url()));
    let provider = endpoint(vec![post, done()]);
    let (own, other) = (provider.host(), form.host());
    let args = ["go", "--park", "--ask", "http", "--allow-host", &own, "--allow-host", &other];
    let parked = command(&place, &provider, &args).run().code(7);
    let parked = parked.reports(&["call 1.1", "http.post", "--approve 1.1", "--refuse 1.1"]);
    assert_eq!((parked.stdout.as_str(), form.requests().len()), ("", 0));
    command(&place, &provider, &["--resume", "last"])
        .run()
        .code(7)
        .reports(&["waits for an answer", "--approve 1.1"]);
    command(&place, &provider, &["--resume", "last", "--approve", "3.1"])
        .run()
        .code(2)
        .reports(&["`3.1`"]);
    let went_on =
        command(&place, &provider, &["--resume", "last", "--approve", "1.1"]).run().code(0);
    assert_eq!((went_on.stdout.as_str(), form.requests().len()), ("all done\n", 1));
    command(&place, &provider, &["--resume", "last"]).run().code(2).reports(&["has ended"]);
    let played = place.wattle(["replay", "last", "--store", "runs.db", "--json"]).run().code(0);
    assert_eq!(played.json_lines()[0]["difference"], serde_json::Value::Null);

    let args =
        ["go", "--park", "--ask", "http", "--allow-host", &own, "--allow-host", &other, "--json"];
    let parked = command(&place, &provider, &args).run().code(7);
    assert_eq!(parked.json_lines().last().unwrap()["type"], "parked");
    let refused =
        command(&place, &provider, &["--resume", "last", "--refuse", "1.1"]).run().code(0);
    assert_eq!((refused.stdout.as_str(), form.requests().len()), ("all done\n", 1));
    let observed = provider.requests().last().unwrap().messages().pop().unwrap();
    assert!(observed.contains("the user denied it"), "{observed}");
}

#[test]
fn a_run_is_replayed_and_forked() {
    let place = Place::new();
    place.write(
        "programs/greet.wat",
        ";;; name = \"greet\"\n;;; description = \"Greets\"\n;;; returns = \"a greeting\"\n(resv \
         \"hello\")\n(i32.const 0)\n",
    );
    let provider = endpoint(vec!["ToolCall::Catalog(\"greet\")".to_owned(), done()]);
    command(&place, &provider, &["go", "--catalog", "programs"]).run().code(0);
    let replay = |args: &[&str]| {
        place.wattle(["replay", "last", "--store", "runs.db"].iter().chain(args)).run()
    };
    assert!(replay(&[]).code(0).stdout.contains("matches its record (4 turns, 1 program)"));

    let forked =
        command(&place, &provider, &["--fork", "last", "--step", "1", "and now?"]).run().code(0);
    assert_eq!(forked.stdout, "all done\n");
    let asked = provider.requests().last().unwrap().messages();
    assert!(asked.last().unwrap().ends_with("and now?"), "{asked:?}");
    command(&place, &provider, &["--fork", "last", "--step", "9"])
        .run()
        .code(2)
        .reports(&["cannot be forked at step 9"]);
    command(&place, &provider, &["--fork", "none", "--step", "1"])
        .run()
        .code(2)
        .reports(&["no run `none`"]);

    command(&place, &provider, &["again", "--catalog", "programs"]).run().code(0);
    place.write(
        "programs/greet.wat",
        ";;; name = \"greet\"\n;;; description = \"Greets\"\n;;; returns = \"a greeting\"\n(resv \
         \"good day\")\n(i32.const 0)\n",
    );
    let differs = replay(&[]).code(1);
    assert!(differs.stdout.contains("differs in step 1: the program"), "{differs:?}");
}

#[test]
fn sessions_are_listed_copied_exported_and_removed() {
    let place = Place::new();
    let provider = endpoint(vec![wat("(resv (str.from_int (kv.incr? \"n\" 1)))"), done()]);
    command(&place, &provider, &["go", "--session", "a"]).run().code(0);
    let session = |args: &[&str]| {
        place.wattle(["session"].iter().chain(args).chain(&["--store", "runs.db"])).run()
    };
    assert!(
        session(&["list"]).code(0).stdout.starts_with("a "),
        "the state of a run without a session is not a session"
    );
    let listed = session(&["list"]).code(0).stdout;
    assert!(listed.contains(" 4 messages ") && listed.ends_with(" B  go\n"), "{listed}");
    let listed = session(&["list", "--json"]).code(0).json_lines().remove(0);
    assert_eq!((&listed[0]["messages"], &listed[0]["title"]), (&4.into(), &"go".into()));
    let shown = session(&["show", "a"]).code(0).stdout;
    assert!(
        shown.starts_with("user: go\n") && shown.contains("assistant: ToolCall::Response"),
        "{shown}"
    );
    let runs = place.wattle(["runs", "--json", "--store", "runs.db"]).run().code(0).json_lines();
    assert_eq!((&runs[0][0]["status"], &runs[0][0]["session"]), (&"ended".into(), &"a".into()));

    assert_eq!(session(&["fork", "a", "b"]).code(0).stdout, "b\n");
    session(&["fork", "a", "b"]).code(2).reports(&["`b` already"]);
    session(&["fork", "a", "b c"]).code(2).reports(&["a session id is"]);
    let exported = session(&["export", "b"]).code(0).stdout;
    assert!(exported.contains(r#"["n","1"]"#), "{exported}");
    place.write("b.json", &exported);
    let read = session(&["export", "b", "--markdown"]).code(0).stdout;
    assert!(read.starts_with("# Session b\n\n## User\n\ngo\n"), "{read}");
    session(&["import", "b.json", "--as", "c"]).code(0);
    place.write("bad.json", "{\"wattle_session\":2}");
    session(&["import", "bad.json"]).code(2).reports(&["is not an exported session"]);
    session(&["rm", "b", "a"]).code(0);
    session(&["rm", "a"]).code(2).reports(&["no session `a`"]);
    session(&["show", "a"]).code(2);
    assert_eq!(session(&["list", "--json"]).code(0).json_lines()[0].as_array().unwrap().len(), 1);
    command(&place, &provider, &["go on", "--session", "c"]).run().code(0);
    let asked = provider.requests().last().unwrap().messages();
    assert!(asked.iter().any(|said| said == "go"), "an imported session continues: {asked:?}");
    command(&place, &provider, &["go", "--session", "a b"])
        .run()
        .code(3)
        .reports(&["a session id is"]);
}

/// Four processes increment one key of one session. None of the 10,000 increments is lost.
#[test]
fn processes_that_share_a_key_lose_nothing() {
    let place = Place::new();
    let program = "(let $i 0)\n(loop $more\n  (drop (kv.incr? \"n\" 1))\n  (set $i (+ $i 1))\n  \
                   (br_if $more (< $i 2500)))\n(i32.const 0)\n";
    place.write("add.wat", program);
    let children: Vec<_> = (0..4)
        .map(|_| place.wattle(["exec", "add.wat", "--session", "s", "--store", "runs.db"]).start())
        .collect();
    for child in children {
        Done::of(child).code(0);
    }
    assert_eq!(value(&place, "n").as_deref(), Some("10000"));
}

/// An endpoint that kills client processes, up to a given number of times.
struct Killer {
    provider: Provider,
    /// The process id of the next client.
    child: std::sync::Arc<std::sync::Mutex<Option<u32>>>,
    kills: std::sync::Arc<std::sync::atomic::AtomicUsize>,
}

impl Killer {
    /// Creates an endpoint that kills the client process if its request contains the word.
    fn of(word: &'static str) -> Killer {
        let child = std::sync::Arc::new(std::sync::Mutex::new(None::<u32>));
        let kills = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(usize::MAX));
        let (of, left) = (std::sync::Arc::clone(&child), std::sync::Arc::clone(&kills));
        let provider = Provider::answering(move |request: &Recorded| {
            let kills =
                request.body.contains(word) && left.load(std::sync::atomic::Ordering::SeqCst) > 0;
            if !kills {
                return Answer::text(done());
            }
            left.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
            let pid = loop {
                if let Some(pid) = of.lock().unwrap().take() {
                    break pid;
                }
                sleep(Duration::from_millis(1));
            };
            std::process::Command::new("kill").args(["-KILL", &pid.to_string()]).status().unwrap();
            Answer::close()
        });
        Killer { provider, child, kills }
    }

    fn run(&self, place: &Place, args: &[&str]) -> Done {
        let child = command(place, &self.provider, args).start();
        *self.child.lock().unwrap() = Some(child.id());
        Done::of(child)
    }
}

#[test]
fn a_run_that_ends_its_process_is_parked_at_the_third_attempt_and_can_be_released() {
    let place = Place::new();
    let killer = Killer::of("poison");
    assert_eq!(killer.run(&place, &["poison"]).code, -1);
    assert_eq!(killer.run(&place, &["--resume", "last"]).code, -1);
    let asked = killer.provider.requests().len();
    let words = [
        "this run ended its process 2 times; it is parked",
        "step 1: the model was asked",
        "--release",
    ];
    killer.run(&place, &["--resume", "last"]).code(7).reports(&words);
    killer.run(&place, &["--resume", "last"]).code(7).reports(&words);
    assert_eq!(killer.provider.requests().len(), asked, "the parked run does not continue");

    let session = |args: &[&str]| {
        place.wattle(["session"].iter().chain(args).chain(&["--store", "runs.db"])).run()
    };
    let runs =
        |args: &[&str]| place.wattle(["runs", "--store", "runs.db"].iter().chain(args)).run();
    let listed = runs(&["--json"]).code(0).json_lines().remove(0);
    let run = listed[0]["run"].as_str().unwrap().to_owned();
    assert_eq!(
        (&listed[0]["status"], &listed[0]["waiting"]),
        (&"parked".into(), &serde_json::json!([]))
    );
    assert!(
        listed[0]["reason"].as_str().unwrap().starts_with("this run ended its process"),
        "{listed}"
    );
    let shown = runs(&[]).code(0).stdout;
    assert!(
        shown.contains("it is parked") && shown.contains(&format!("wattle session release {run}")),
        "{shown}"
    );
    assert_eq!(killer.run(&place, &["hello"]).code(0).stdout, "all done\n", "other runs continue");

    session(&["release", "none"]).code(2).reports(&["no run `none` is parked because"]);
    session(&["release", &run, "--tenant", "bob"]).code(2);
    session(&["release", &run]).code(0);
    session(&["release", &run]).code(2);
    assert_eq!(killer.run(&place, &["--resume", &run]).code, -1, "the released run is tried again");
    assert_eq!(killer.run(&place, &["--resume", &run]).code, -1);
    killer.run(&place, &["--resume", &run]).code(7);
    killer.kills.store(0, std::sync::atomic::Ordering::SeqCst);
    assert_eq!(killer.run(&place, &["--resume", &run, "--release"]).code(0).stdout, "all done\n");
    killer.run(&place, &["--resume", &run]).code(2).reports(&["has ended"]);
}

#[test]
fn the_store_detects_a_run_that_was_removed_from_its_ledger() {
    let place = Place::new();
    let provider = endpoint(vec![wat("(resv \"x\")"), done()]);
    command(&place, &provider, &["go"]).run().code(0);
    let verify = |args: &[&str]| {
        place.wattle(["ledger", "verify", "--store", "runs.db"].iter().chain(args)).run()
    };
    verify(&[]).code(0);
    let steps = place.read_trace("_steps.jsonl");
    std::fs::remove_file(place.traces().join("_ledger.jsonl")).unwrap();
    place.write_trace("_steps.jsonl", "");
    let removed = verify(&[]).code(1);
    assert!(
        removed.stdout.contains("the store has this run, which ended with 1 sealed lines"),
        "{removed:?}"
    );
    let key = place.wattle(["ledger", "key", "--store", "runs.db"]).run().code(0).stdout;
    verify(&["--key", key.trim()]).code(0);
    verify(&["--tenant", "other"]).code(2).reports(&["failed to read"]);
    place.write_trace("_steps.jsonl", steps);
    assert!(verify(&[]).code(1).stdout.contains("`_ledger.jsonl` is missing"));
}

#[test]
fn a_ledger_in_the_workdir_has_the_runs_of_all_tenants() {
    let place = Place::new();
    for tenant in ["default", "alice"] {
        let provider = endpoint(vec![wat("(resv \"x\")"), done()]);
        let args = ["go", "--tenant", tenant];
        command(&place, &provider, &args).env("WATTLE_TRACE_DIR", "workdir").run().code(0);
    }
    let verify = || place.wattle(["ledger", "verify", "--store", "runs.db"]).run();
    assert_eq!(verify().code(0).stdout.lines().count(), 2);
    let seals = place.read("_ledger.jsonl");
    let last: serde_json::Value = serde_json::from_str(seals.lines().last().unwrap()).unwrap();
    assert_eq!(last["tenant"], "alice");
    let run = last["run"].as_str().unwrap();
    for file in ["_steps.jsonl", "_ledger.jsonl"] {
        let text = place.read(file);
        let kept = text.lines().filter(|line| !line.contains(run));
        place.write(file, kept.map(|line| format!("{line}\n")).collect::<String>());
    }
    let removed = verify().code(1).stdout;
    assert!(removed.contains(run) && removed.contains("the store has this run"), "{removed}");
    assert_eq!(removed.matches("sound").count(), 1, "{removed}");
}
