//! Tests of the commands that `wattle.run` accepts.

use std::sync::Arc;

use serde_json::json;
use wattle_capability::history::{RunHistory, RunHistoryGrant};
use wattle_capability::policy::{Policy, Preflight};
use wattle_rt::{Code, Grants};

use super::failure;
use crate::world::World;

const RUN: &str = "(ret (wattle.run? (arg 0)))";

/// Runs a command and returns its output or the failure.
async fn perform(
    world: &World,
    grants: &Arc<Grants>,
    command: &str,
) -> Result<String, (Code, String)> {
    let outcome =
        world.run_granted(RUN, &[command], grants).await.map_err(|why| (Code::EACCESS, why))?;
    if outcome.success() { Ok(outcome.texts()[0].clone()) } else { Err(failure(&outcome)) }
}

/// A workbook of one component.
const BOOK: &str = "[components.part]\nsource = '(ret (str.upper (arg 0)))'\nargs = [\"it's\"]\n\
                    [exports]\nsaid = \"part\"\n";

#[tokio::test]
async fn commands_print_their_output() {
    let world = World::new();
    let grants = world.grants();
    let book = |verb: &str| json!(["workbook", verb, BOOK]).to_string();
    let query = |filter: &str| json!(["workbook", "query", BOOK, filter]).to_string();
    for (command, expected) in [
        ("vars list", "there are no variables"),
        ("vars set city 'New York'", "city is set"),
        ("wattle vars set note \"two\nlines\"", "note is set"),
        ("vars get city", "New York"),
        ("vars list", "city=New York\nnote=two\\nlines\n"),
        ("catalog run upper 'a b'", "A B"),
        ("catalog run two x", "x\nx"),
        (
            "catalog search upper",
            "upper  (argv 0 $a) (call $str.upper (local.get $a)) (drop) (call $sys.resv) \
             (i32.const 0)\n",
        ),
        ("catalog show file_read", "(ret (fs.read? (arg 0)))"),
        ("check upper", "the program compiles"),
        (r#"["check", "(ret \"it's\")"]"#, "the program compiles"),
        (r#"["wattle", "vars", "set", "quoted", "'"]"#, "quoted is set"),
        ("vars get quoted", "'"),
        (&book("lint"), "the workbook has no problems"),
        (&book("tangle"), r#"{"part":"(ret (str.upper (arg 0)))"}"#),
        (
            &book("list"),
            r#"[{"name":"part","source":"(ret (str.upper (arg 0)))","args":["it's"],"needs":[],"exports":["said"]}]"#,
        ),
        (&query(".[].name"), "part"),
    ] {
        assert_eq!(perform(&world, &grants, command).await.as_deref(), Ok(expected), "{command}");
    }
    assert!(
        perform(&world, &grants, "catalog list")
            .await
            .unwrap()
            .lines()
            .any(|line| line.starts_with("spin "))
    );
    let help = perform(&world, &grants, "help").await.unwrap();
    for command in ["", "--help", "wattle help", "wattle"] {
        assert_eq!(perform(&world, &grants, command).await.as_ref(), Ok(&help), "{command:?}");
    }
    // A variable is a key of the tenant's state.
    let outcome = world.run_granted("(ret (kv.get? \"tenant:city\"))", &[], &grants).await.unwrap();
    assert_eq!(outcome.texts(), ["New York"]);
}

#[tokio::test]
async fn unknown_commands_and_failures_are_reported() {
    let world = World::new();
    let grants = world.grants();
    for (command, code, words) in [
        (
            "rm -rf /",
            Code::EPARSE,
            "unknown command `rm -rf /`; the commands are `vars list`, `vars get NAME`",
        ),
        (
            "vars",
            Code::EPARSE,
            "unknown command `vars`; the commands are `vars list`, `vars get NAME`, `vars set \
             NAME VALUE`",
        ),
        ("vars set a", Code::EPARSE, "`vars set NAME VALUE`"),
        ("vars set a b c", Code::EPARSE, "`vars set NAME VALUE`"),
        ("catalog new x", Code::EPARSE, "the commands are `catalog list`"),
        ("catalog search", Code::EPARSE, "the commands are `catalog list`"),
        ("exec x.wat", Code::EPARSE, "`help`"),
        ("serve", Code::EPARSE, "`help`"),
        ("vars get 'a", Code::EPARSE, "an unclosed quote"),
        ("vars get a", Code::ENOENT, "the tenant's state has no key \"tenant:a\""),
        ("vars get ''", Code::EBOUND, "the key is empty"),
        ("catalog show none", Code::ENOENT, "there is no program `none`"),
        ("catalog run none", Code::ENOENT, "there is no program `none`"),
        ("catalog search none", Code::ENOENT, "no program of the catalog matches \"none\""),
        ("catalog run fetch http://h/refused", Code::EACCESS, "that host is not allowed"),
        ("catalog run deeper x", Code::EBOUND, "nested 3 deep"),
        ("trace", Code::ENOENT, "there is no trace"),
        ("check none", Code::ENOENT, "there is no program `none`"),
        ("check '(ret (len'", Code::EPARSE, "`len` takes 1 argument"),
        (r#"["vars", 1]"#, Code::EPARSE, "a JSON list of strings"),
        ("workbook lint '[components]'", Code::EPARSE, "components"),
        ("workbook query '[components]' '.['", Code::EPARSE, ""),
        ("workbook new", Code::EPARSE, "the commands are `workbook list TEXT`"),
    ] {
        let (found, why) = perform(&world, &grants, command).await.unwrap_err();
        assert_eq!(found, code, "{command}: {why}");
        assert!(why.contains(words), "{command}: {why}");
    }
}

#[tokio::test]
async fn a_policy_applies_to_effects_of_commands() {
    let world = World::new();
    let denying = |deny: &str| {
        let policy = Policy::new(Vec::new(), Vec::new(), vec![deny.parse().unwrap()]);
        Arc::new(world.grants().as_ref().clone().guarded(Arc::new(Preflight::new(policy, None))))
    };
    for (deny, denied, free) in [
        ("program:upper", "catalog run upper a", "catalog run two a"),
        ("key:tenant:a", "vars set ab 1", "vars set b 1"),
        ("key:tenant:a", "vars list", "vars set b 1"),
        ("http", "catalog run fetch http://h/x", "catalog list"),
    ] {
        let grants = denying(deny);
        let (code, why) = perform(&world, &grants, denied).await.unwrap_err();
        assert_eq!(code, Code::EACCESS, "{denied}: {why}");
        assert!(why.contains(&format!("rule `{deny}`")), "{denied}: {why}");
        assert!(perform(&world, &grants, free).await.is_ok(), "{free}");
    }
    assert!(perform(&world, &denying("wattle"), "help").await.is_err());
}

struct Twice;

impl RunHistory for Twice {
    fn run_id(&self) -> &str {
        "the run"
    }

    fn steps(&self) -> Vec<String> {
        vec!["step 1: a".to_owned(), "step 2: b".to_owned()]
    }
}

#[tokio::test]
async fn a_run_can_print_its_steps() {
    let world = World::new();
    let grants = Arc::new(world.grants().as_ref().clone().with(RunHistoryGrant(Arc::new(Twice))));
    for command in ["trace", "trace show"] {
        assert_eq!(perform(&world, &grants, command).await.as_deref(), Ok("step 1: a\nstep 2: b"));
    }
    world.run_granted("(issue.file? \"a\" \"b\")", &[], &grants).await.unwrap();
    assert_eq!(world.tracker.0.lock().unwrap()[0].run.as_deref(), Some("the run"));
}
