//! Tests of the isolation of tenants. Every command runs as a tenant other than `alice`, and must
//! not show, change or continue anything that belongs to `alice`.

use std::collections::BTreeSet;

use wattle_tests::provider::{Answer, Provider};

use crate::place::Place;

/// A string that no other tenant may see.
const CANARY: &str = "alices-canary";

/// A command that another tenant runs on alice's data, or the reason why the command needs no test.
enum Row {
    /// The arguments, the content of stdin, and the expected exit code. In the arguments, `RUN`
    /// denotes the id of alice's run.
    Call(&'static [&'static str], &'static str, i32),
    /// The reason why the command needs no test here.
    Without(&'static str),
}
use Row::{Call, Without};

const COMMANDS: &[(&str, Row)] = &[
    ("run", Call(&["run", "go on", "--session", "main"], "", 0)),
    (
        "run --no-session-store",
        Call(&["run", "go on", "--session", "main", "--no-session-store"], "", 0),
    ),
    ("run --resume", Call(&["run", "--resume", "RUN"], "", 2)),
    ("run --resume last", Call(&["run", "--resume", "last"], "", 2)),
    ("run --release", Call(&["run", "--resume", "RUN", "--release"], "", 2)),
    ("run --approve", Call(&["run", "--resume", "RUN", "--approve", "1.1"], "", 2)),
    ("run --fork", Call(&["run", "--fork", "RUN", "--step", "0", "more"], "", 2)),
    (
        "exec",
        Call(
            &["exec", "-", "--session", "main"],
            "(ret (default (kv.get \"k\") (default (kv.get \"tenant:v\") \"none\")))",
            0,
        ),
    ),
    ("shell", Call(&["shell", "-c", "echo hello"], "", 0)),
    ("repl", Call(&["repl", "--session", "main"], "what did I say?\n", 0)),
    ("serve", Without("`a_request_gets_nothing_of_another_tenants_session` shows it")),
    ("replay", Call(&["replay", "RUN"], "", 2)),
    ("session list", Call(&["session", "list"], "", 0)),
    ("runs", Call(&["runs"], "", 0)),
    ("show", Call(&["show", "RUN"], "", 2)),
    ("changes", Call(&["changes", "RUN"], "", 2)),
    ("apply", Call(&["apply", "RUN"], "", 2)),
    ("discard", Call(&["discard", "RUN"], "", 2)),
    ("session show", Call(&["session", "show", "main"], "", 2)),
    ("session resume", Call(&["session", "resume", "main"], "what did I say?\n", 0)),
    ("session fork", Call(&["session", "fork", "main", "copy"], "", 2)),
    ("session export", Call(&["session", "export", "main"], "", 2)),
    (
        "session import",
        Call(
            &["session", "import", "-"],
            "{\"wattle_session\":1,\"id\":\"main\",\"messages\":[],\"state\":[]}",
            0,
        ),
    ),
    ("session release", Call(&["session", "release", "RUN"], "", 2)),
    ("session rm", Call(&["session", "rm", "main"], "", 2)),
    ("vars get", Call(&["vars", "get", "v"], "", 1)),
    ("vars set", Call(&["vars", "set", "v", "bob's"], "", 0)),
    (
        "vars set --secret",
        Call(
            &["vars", "set", "token", "-", "--secret", "--host", "b.example"],
            "bob's own secret",
            0,
        ),
    ),
    ("vars list", Call(&["vars", "list", "--json"], "", 0)),
    ("vars list --secret", Call(&["vars", "list", "--secret"], "", 0)),
    ("vars rm", Call(&["vars", "rm", "v"], "", 1)),
    ("vars rm --secret", Call(&["vars", "rm", "token", "--secret"], "", 1)),
    ("memory list", Call(&["memory", "list", "--json"], "", 0)),
    ("memory search", Call(&["memory", "search", "canary", "--json"], "", 0)),
    ("memory add", Call(&["memory", "add", "bob's"], "", 0)),
    ("memory remove", Call(&["memory", "remove", "1"], "", 1)),
    ("token list", Call(&["token", "list", "--json"], "", 0)),
    ("token new", Call(&["token", "new", "laptop"], "", 0)),
    ("token revoke", Call(&["token", "revoke", "alices-token"], "", 2)),
    ("store copy", Without("it copies the whole store, for whoever may read its file")),
    ("store check", Without("as `store copy`, and it prints no content")),
    ("store vacuum", Without("as `store check`")),
    ("store stats", Without("as `store check`")),
    (
        "store accept-keys",
        Without("it changes fingerprints of keys only, for whoever may write the file"),
    ),
    ("prune", Without("as `store check`")),
    ("ledger verify", Call(&["ledger", "verify", "--run", "RUN", "--json"], "", 0)),
    ("ledger key", Call(&["ledger", "key"], "", 1)),
    ("init", Without("it writes the user file, which is no tenant's")),
    ("doctor", Call(&["doctor"], "", 0)),
    ("mcp approve", Without("the servers and their tools are the operator's")),
    ("mcp check", Without("the servers and their tools are the operator's")),
    ("mcp list", Without("the servers and their tools are the operator's")),
    ("mcp login", Without("the servers and their tools are the operator's")),
    ("mcp logout", Without("the servers and their tools are the operator's")),
    ("mcp show", Without("the servers and their tools are the operator's")),
    ("skills check", Without("it reads and writes files")),
    ("skills export", Without("it reads and writes files")),
    ("skills list", Without("it reads and writes files")),
    ("skills new", Without("it reads and writes files")),
    ("skills show", Without("it reads and writes files")),
    ("agents list", Without("it reads files")),
    ("agents show", Without("it reads files")),
    ("agents check", Without("it reads files")),
    ("agents test", Without("each example has a store of its own, which ends with it")),
    ("agents new", Without("it reads files")),
    ("check", Without("it reads files")),
    ("expand", Without("it reads files")),
    ("parse", Without("it reads stdin")),
    ("catalog list", Without("it reads the catalog")),
    ("catalog search", Without("it reads the catalog")),
    ("catalog new", Without("it writes a file")),
    ("catalog test", Without("programs run in a world of their own")),
    ("catalog fmt", Without("it writes files")),
    ("catalog show", Without("it reads the catalog")),
    ("workbook run", Without("a workbook runs like the program of `exec`")),
    ("workbook list", Without("it reads a file")),
    ("workbook lint", Without("it reads a file")),
    ("workbook tangle", Without("it writes files")),
    ("workbook query", Without("it reads a file")),
    ("eval", Without("tasks run in a world of their own")),
    ("trace show", Without("it reads files that lie in a folder, whoever may read that")),
    ("trace query", Without("as `trace show`")),
    ("trace digest", Without("as `trace show`")),
    ("trace feed", Without("as `trace show`")),
    ("trace rotate", Without("it moves files that lie in a folder, whoever may write that")),
    ("telemetry", Without("as `trace show`")),
    ("demo", Without("it plays recordings")),
    ("config show", Without("it reads settings")),
    ("config get", Without("it reads settings")),
    ("config set", Without("it writes settings files, which are no tenant's")),
    ("config unset", Without("as `config set`")),
    ("config path", Without("it prints a path")),
    ("config edit", Without("as `config set`")),
    ("completions", Without("it prints a script")),
    ("man", Without("it writes what the help says")),
    ("status", Without("a folder is trusted by the person at the machine, whatever the tenant")),
    ("trust", Without("as `status`")),
    ("untrust", Without("as `status`")),
];

/// Returns the commands that have no subcommands, as listed in the binary's help.
fn commands(place: &Place, above: &[String]) -> BTreeSet<String> {
    let help =
        place.wattle(above.iter().cloned().chain(["--help".to_owned()])).run().code(0).stdout;
    let list = match help.split_once("Commands:\n") {
        Some((_, list)) => list.split("\n\n").next().unwrap(),
        // The commands of `wattle` are in groups.
        None if above.is_empty() => help.split("Options:\n").next().unwrap(),
        None => return [above.join(" ")].into(),
    };
    let names = list.lines().filter_map(|line| {
        line.strip_prefix("  ")?.split(' ').next().filter(|name| !name.is_empty())
    });
    let below = names.filter(|name| *name != "help").flat_map(|name| {
        let path = above.iter().cloned().chain([name.to_owned()]).collect::<Vec<_>>();
        commands(place, &path)
    });
    below.collect()
}

#[test]
fn every_command_has_a_row() {
    let place = Place::new();
    let found = commands(&place, &[]);
    assert!(found.len() > 30, "{found:?}");
    let rows: BTreeSet<&str> =
        COMMANDS.iter().map(|(name, _)| name.split(" --").next().unwrap()).collect();
    let missing: Vec<&String> =
        found.iter().filter(|command| !rows.contains(command.as_str())).collect();
    assert!(missing.is_empty(), "add a row for each of these commands: {missing:?}");
    let gone: Vec<&&str> = rows.iter().filter(|row| !found.contains(**row)).collect();
    assert!(gone.is_empty(), "these commands do not exist: {gone:?}");
    assert!(COMMANDS.iter().all(|(_, row)| !matches!(row, Without(why) if why.is_empty())));
}

#[test]
fn no_command_shows_or_changes_another_tenants_data() {
    let place = Place::new();
    let provider =
        Provider::answering(|_| Answer::text("ToolCall::Response(\"\"\"an answer\"\"\")"));
    let url = provider.base_url();
    let wattle = |tenant: &str, args: &[&str], stdin: &str| {
        let call = place
            .wattle(args)
            .env("WATTLE_TENANT", tenant)
            .env("WATTLE_STORE", "s.db")
            .stdin(stdin);
        call.env("WATTLE_BASE_URL", &url)
            .env("WATTLE_MODEL", "m")
            .env("WATTLE_API_KEY", "sk-test")
            .run()
    };
    let alice = |args: &[&str], stdin: &str| wattle("alice", args, stdin).code(0);
    alice(&["run", &format!("remember {CANARY}"), "--session", "main"], "");
    alice(
        &["exec", "-", "--session", "main"],
        &format!("(kv.set? \"k\" \"{CANARY}\") (kv.set? \"tenant:v\" \"{CANARY}\") (ret)"),
    );
    alice(
        &["vars", "set", "token", "-", "--secret", "--host", "a.example"],
        &format!("{CANARY}-secret"),
    );
    alice(&["memory", "add", CANARY], "");
    let run = alice(&["runs", "--json"], "").json_lines()[0][0]["run"].as_str().unwrap().to_owned();
    let state = || {
        let all = [
            alice(&["session", "export", "main"], ""),
            alice(&["runs", "--json"], ""),
            alice(&["vars", "list", "--json"], ""),
            alice(&["vars", "list", "--secret"], ""),
            alice(&["memory", "list", "--json"], ""),
        ];
        all.map(|done| done.stdout)
    };
    let before = state();
    // A trace in the workdir is not part of the store, and every user of the workdir sees it.
    place.write("_steps.jsonl", format!("{{\"run_id\":\"{run}\"}}\n"));
    place.write("_ledger.jsonl", "");
    let seen = provider.requests().len();
    for (at, (name, row)) in COMMANDS.iter().enumerate() {
        let Call(args, stdin, code) = row else { continue };
        let args: Vec<&str> =
            args.iter().map(|arg| if *arg == "RUN" { run.as_str() } else { arg }).collect();
        let done = wattle(&format!("bob-{at}"), &args, stdin);
        assert!(!format!("{}{}", done.stdout, done.stderr).contains(CANARY), "{name}: {done:?}");
        assert!(
            !format!("{}{}", done.stdout, done.stderr).contains("panicked"),
            "{name}: {done:?}"
        );
        if *name != "ledger verify" && *name != "ledger key" && *name != "doctor" {
            assert_eq!(done.code, *code, "{name}: {done:?}");
        }
    }
    assert_eq!(state(), before);
    let asked = provider.requests().split_off(seen);
    assert!(
        !asked.is_empty() && asked.iter().all(|request| !request.body.contains(CANARY)),
        "the data reaches no model"
    );
}

#[test]
fn every_command_rejects_an_invalid_tenant() {
    let place = Place::new();
    let long = "x".repeat(65);
    for name in
        ["a b", "../alice", "al\u{ed}ce", "\u{ff41}lice", "alice\u{200b}", ".", "-", "a/b", &long]
    {
        for args in
            [&["session", "list"][..], &["vars", "list"], &["exec", "-"], &["ledger", "key"]]
        {
            let done = place.wattle(args).env("WATTLE_TENANT", name).stdin("(ret \"x\")").run();
            assert_eq!(done.code, 3, "{name:?} {args:?}: {done:?}");
            assert!(done.stderr.contains("a tenant's name has 1 to 64"), "{done:?}");
        }
    }
}

#[test]
fn tenants_that_share_a_folder_do_not_share_traces() {
    let place = Place::new();
    let read = "ToolCall::Wat(```wat\n(out (fs.read \"_steps.jsonl\"))\n```)";
    let run = |tenant: &str| {
        let call = format!("ToolCall::Catalog(\"text_count\", \"of {tenant}\")");
        let ticket = format!("ToolCall::Catalog(\"file_issue\", \"for {tenant}\", \"need\")");
        let answers = [&call, &ticket, read, "ToolCall::Response(\"done\")"].map(Answer::text);
        let provider = Provider::start(answers);
        let url = provider.base_url();
        let args = ["run", "go", "--tenant", tenant, "--base-url", &url, "--model", "m"];
        place.wattle(args).run().code(0);
        provider.requests().pop().unwrap().messages().pop().unwrap()
    };
    assert!(run("alice").contains("of alice"));
    let seen = run("bob");
    assert!(seen.contains("of bob") && !seen.contains("alice"), "{seen}");
    assert_eq!(std::fs::read_dir(place.work()).unwrap().count(), 0, "the workdir stays as it is");
    for (tenant, other) in [("alice", "bob"), ("bob", "alice")] {
        let show = place.wattle(["trace", "show", "--tenant", tenant]).run().code(0).stdout;
        assert!(show.contains(&format!("of {tenant}")) && !show.contains(other), "{show}");
        let digest = place.wattle(["trace", "digest", "--tenant", tenant]).run().code(0).stdout;
        assert!(digest.contains(&format!("for {tenant}")), "{digest}");
        place.wattle(["ledger", "verify", "--tenant", tenant]).run().code(0);
    }
}
