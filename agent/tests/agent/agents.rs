//! Tests of declared agents: their files, and the resolution of references to them.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use wattle_agent::agents::{AgentResolver, AgentSpec, Agents};
use wattle_agent::host::capability::egress::Egress;
use wattle_agent::host::capability::files::Files;
use wattle_agent::host::catalog::{Catalog, Entry, Origin, ToolRef};
use wattle_agent::host::machine::{Call, Execution, OnMaxSteps};
use wattle_agent::host::rt::Limits;
use wattle_agent::{Host, Resources, Tenant};

const WHOLE: &str = r#"
name = "house-helper"
title = "House helper"
description = "Helps in the house"
comment = "for the family"
version = "2"
prompt = "Be kind."
model = "class:fast"
temperature = 0.7
max_tokens = 1024
thinking_effort = 30
tool_call = "required"
memory = ["The house is blue."]
memory_contract = { program = "recall", max_items = 2 }
output_schema = { type = "object" }
repair = { max_attempts = 1 }
dialect = "native"
max_steps = 0
on_max_steps = "latest"
max_repetitions = 3
retries = 1
timeout = "2m"
http_timeout = "90s"
retry_for = "10s"
tools = ["text.*", { id = "file_read", alias = "rules", context = { path = "rules.md" } }, { id = "file_list", schema = { required = ["path"] } }]
functions = ["rules"]
delegates = [{ id = "coder", name = "ask_the_coder", rule = "for programs" }]
traits = ["calm", { id = "time_aware", context = { timezone = "UTC", time_interval = "60" } }]
[context]
user_id = "ada"
[policy]
deny = ["http"]
ask = ["write:*"]
[budget]
max_tokens_total = 1000
max_cost = 0.5
ai_calls = 3
[[example]]
message = "What colour has the house?"
recording = "house/colour.txt"
scene = { now = 2026-01-01T00:00:00Z, files = { "a.txt" = "one" } }
expect.answer.contains = "blue"
"#;

#[test]
fn every_field_is_read_and_written() {
    let agent = AgentSpec::parse(WHOLE).unwrap();
    assert_eq!(agent.on_max_steps, Some(OnMaxSteps::Latest));
    assert_eq!(agent.timeout.unwrap().0.0.as_secs(), 120);
    assert_eq!(agent.tools.as_ref().unwrap()[1].context["path"], "rules.md");
    let written = toml::to_string(&agent).unwrap();
    assert_eq!(AgentSpec::parse(&written).unwrap(), agent, "{written}");
    let json = serde_json::to_value(&agent).unwrap();
    assert_eq!(AgentSpec::of_json(&json).unwrap(), agent, "{json}");
    let mut origin = serde_json::json!({"by": "test"});
    agent.write_to(&mut origin);
    // The origin of a run does not contain the agent's examples.
    let without = AgentSpec { examples: Vec::new(), ..agent };
    assert_eq!(AgentSpec::of_origin(&origin).unwrap(), without);
}

#[test]
fn the_default_agent_leaves_no_mark() {
    let mut origin = serde_json::json!({"by": "test"});
    AgentSpec::default().write_to(&mut origin);
    assert_eq!(origin, serde_json::json!({"by": "test"}));
    assert!(AgentSpec::of_origin(&origin).unwrap().is_default());
    AgentSpec::new("other").write_to(&mut origin);
    assert_eq!(AgentSpec::of_origin(&origin).unwrap().name, "other");
    AgentSpec::default().write_to(&mut origin);
    assert_eq!(origin, serde_json::json!({"by": "test"}));
}

#[test]
fn a_new_agents_file_is_valid() {
    let agent = AgentSpec::parse(&AgentSpec::skeleton("new-one")).unwrap();
    assert_eq!(agent.name, "new-one");
    assert!(!agent.prompt.is_empty() && !agent.policy.is_empty());
}

#[test]
fn invalid_files_are_explained() {
    for (text, message) in [
        ("name = \"x\"\npromt = \"a\"", "line 2: unknown key `promt`; did you mean `prompt`?"),
        ("prompt = \"a\"", "line 1: the key `name` is missing"),
        ("name = \"X\"", "line 1: `name`: a name starts with a lowercase letter"),
        ("name = \"x\"\ntemperature = 3", "line 2: `temperature`: expected a number from 0 to 2"),
        ("name = \"x\"\ntimeout = \"soon\"", "line 2: expected a time such as `90s`"),
        ("name = \"x\"\non_max_steps = \"stopp\"", "did you mean `stop`?"),
        ("name = \"x\"\n[policy]\ndeny = [\"\"]", "line 3: "),
        ("name = \"x\"\n[budget]\ntokens = 3", "line 3: unknown key `tokens`"),
        ("name = \"x\"\nthinking_effort = 101", "line 2: expected a number from 0 to 100"),
        ("name = \"x\"\noutput_schema = { type = 3 }", "line 2: `output_schema`: "),
        ("name = \"x\"\nrepair = { max_attempts = 1 }", "`repair`: there is no `output_schema`"),
        ("name = \"x\"\nmax_steps = -1", "line 2: invalid value"),
        ("name = \"x", "line 1: "),
        (
            "name = \"x\"\ndelegates = [{ id = \"a-b\" }, { id = \"a.b\" }]",
            "line 2: `delegates`: two delegates have the name `ask_a_b`",
        ),
    ] {
        let error = AgentSpec::parse(text).unwrap_err().to_string();
        assert!(error.contains(message), "{text}: {error}");
    }
}

fn write(folder: &Path, file: &str, text: &str) {
    std::fs::write(folder.join(file), text).unwrap();
}

fn names(agents: &Agents) -> Vec<String> {
    agents.list().iter().map(|agent| agent.name.clone()).collect()
}

#[tokio::test]
async fn later_folders_replace_agents_and_broken_files_are_problems() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    write(one.path(), "a.toml", "name = \"a\"\ntitle = \"First\"");
    write(one.path(), "again.toml", "name = \"a\"");
    write(one.path(), "notes.txt", "not an agent");
    write(one.path(), ".hidden.toml", "name = \"hidden\"");
    write(two.path(), "a.toml", "name = \"a\"\ntitle = \"Second\"");
    write(two.path(), "default.toml", "name = \"default\"\nprompt = \"House rules.\"");
    write(two.path(), "broken.toml", "name = 3");
    std::os::unix::fs::symlink(one.path().join("a.toml"), two.path().join("link.toml")).unwrap();
    let missing = two.path().join("missing");
    let folders = [one.path().to_owned(), two.path().to_owned(), missing];
    let agents = Agents::open(&folders);
    assert_eq!(names(&agents), ["a", "default"]);
    assert_eq!(agents.load(&Tenant::default(), "second").await.unwrap().name, "a");
    assert_eq!(agents.get("default").unwrap().prompt, "House rules.");
    let problems: Vec<String> = agents.problems().iter().map(ToString::to_string).collect();
    let all = problems.join("\n");
    for part in [
        "again.toml: the agent `a` is also in ",
        "broken.toml:1: invalid type",
        "link.toml: it is not a regular file",
        "missing: failed to read the folder",
    ] {
        assert!(all.contains(part), "{part} not in {all}");
    }
    assert_eq!(problems.len(), 4, "{all}");
}

#[tokio::test]
async fn a_name_that_two_files_of_one_folder_declare_names_no_agent() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::create_dir(two.path().join("traits")).unwrap();
    write(one.path(), "clerk.toml", "name = \"clerk\"\ntitle = \"First\"");
    write(one.path(), "other.toml", "name = \"other\"\ntitle = \"clerk\"");
    for name in ["clerk", "default"] {
        write(two.path(), &format!("a_{name}.toml"), &format!("name = \"{name}\""));
        let strict = format!("name = \"{name}\"\n[policy]\ndeny = [\"http\"]");
        write(two.path(), &format!("b_{name}.toml"), &strict);
    }
    for file in ["traits/a.toml", "traits/b.toml"] {
        write(two.path(), file, "name = \"time_aware\"\nprompt = \"Now.\"");
    }
    let folders = [one.path().to_owned(), two.path().to_owned()];
    let agents = Agents::open(&folders);
    assert_eq!(names(&agents), ["other"]);
    for name in ["clerk", "default"] {
        // Neither the agent of an earlier folder nor an agent with this title is used instead.
        let error = agents.load(&Tenant::default(), name).await.unwrap_err().to_string();
        for part in ["a_", "b_"].map(|start| format!("{start}{name}.toml")) {
            assert!(error.contains(&part), "{part} not in {error}");
        }
        assert!(agents.get(name).is_none() && agents.path(name).is_none());
    }
    assert_eq!(agents.problems().len(), 3, "{:?}", agents.problems());

    let three = tempfile::tempdir().unwrap();
    write(three.path(), "clerk.toml", "name = \"clerk\"\ntitle = \"Third\"");
    let agents = Agents::open(&[&folders[..], &[three.path().to_owned()]].concat());
    assert_eq!(agents.load(&Tenant::default(), "clerk").await.unwrap().title, "Third");
}

#[tokio::test]
async fn an_agent_whose_file_cannot_be_used_is_replaced_by_no_other() {
    let policy = "[policy]\ndeny = [\"http\"]";
    let files = |name: &str| {
        [
            ("a.toml", format!("name = \"{name}\"\ntraits = [\"twice\"]\n{policy}")),
            ("a.toml", format!("name = \"{name}\"\ntraits = [\"missing\"]\n{policy}")),
            ("a.toml", format!("name = \"{name}\"\ntraits = [\"broken\"]\n{policy}")),
            ("a.toml", format!("name = \"{name}\"\npromt = \"x\"\n{policy}")),
            ("a.toml", format!("name = \"{name}\"\n[policy]\ndeny = [\"\"]")),
            // The text is not TOML, but one of its lines names the agent.
            ("a.toml", format!("name = \"{name}\"\nprompt = \"x\n{policy}")),
            // Nothing but the file's own name names the agent.
            (&*format!("{name}.toml"), format!("name = \"{name}\n{policy}")),
            (&*format!("{name}.toml"), format!("name = \"An agent\"\n{policy}")),
        ]
        .map(|(file, text)| (file.to_owned(), text))
    };
    let early = tempfile::tempdir().unwrap();
    write(early.path(), "clerk.toml", "name = \"clerk\"\ntitle = \"Early\"");
    for name in ["default", "clerk"] {
        for (file, text) in files(name) {
            let (late, last) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            std::fs::create_dir(late.path().join("traits")).unwrap();
            for trait_file in ["traits/one.toml", "traits/two.toml"] {
                write(late.path(), trait_file, "name = \"twice\"\nprompt = \"Be strict.\"");
            }
            write(late.path(), "traits/broken.toml", "name = \"broken\"\ntool = []");
            write(late.path(), &file, &text);
            let folders = [early.path().to_owned(), late.path().to_owned()];
            let agents = Agents::open(&folders);
            assert!(agents.get(name).is_none() && agents.path(name).is_none(), "{text}");
            assert!(agents.is_declared(name), "{text}");
            let error = agents.load(&Tenant::default(), name).await.unwrap_err().to_string();
            assert!(error.contains(&file), "{text}: {error}");
            // A later folder overrides it.
            write(last.path(), "a.toml", &format!("name = \"{name}\"\ntitle = \"Last\""));
            let agents = Agents::open(&[&folders[..], &[last.path().to_owned()]].concat());
            assert_eq!(agents.load(&Tenant::default(), name).await.unwrap().title, "Last");
        }
    }
}

#[tokio::test]
async fn a_folder_that_cannot_be_read_hides_all_agents_before_it() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    write(one.path(), "clerk.toml", "name = \"clerk\"");
    write(two.path(), "file", "");
    let agents = Agents::open(&[one.path().to_owned(), two.path().join("file")]);
    for name in ["clerk", "default"] {
        let error = agents.load(&Tenant::default(), name).await.unwrap_err().to_string();
        assert!(error.contains("failed to read the folder"), "{error}");
    }
    assert!(!agents.problems().is_empty());
}

#[tokio::test]
async fn an_unknown_agent_is_reported_with_what_was_tried() {
    struct Custom;
    impl AgentResolver for Custom {
        fn resolve<'a>(
            &'a self,
            tenant: &'a Tenant,
            reference: &'a str,
        ) -> BoxFuture<'a, Result<Option<AgentSpec>, String>> {
            let found = match reference.strip_prefix("custom:") {
                Some("mine") => Ok(Some(AgentSpec::new(tenant.as_str()))),
                Some("broken") => Err("the database is down".to_owned()),
                Some(name) => Ok(Some(AgentSpec::new(name))),
                None => Ok(None),
            };
            async { found }.boxed()
        }
    }
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "coder.toml", "name = \"coder\"");
    let agents = Agents::open(&[folder.path().to_owned()]);
    let unknown = agents.load(&Tenant::default(), "codr").await.unwrap_err().to_string();
    assert_eq!(
        unknown,
        "there is no agent `codr`: looked among the names, the titles; did you mean `coder`?"
    );
    let agents = agents.with_resolver(Arc::new(Custom));
    assert_eq!(agents.load(&Tenant::default(), "custom:support").await.unwrap().name, "support");
    assert_eq!(agents.load(&Tenant::default(), "coder").await.unwrap().name, "coder");
    let unknown = agents.load(&Tenant::default(), "zebra").await.unwrap_err().to_string();
    assert_eq!(
        unknown,
        "there is no agent `zebra`: looked among the resolver, the names, the titles"
    );
    for name in ["alice", "bob"] {
        let tenant = Tenant::new(name).unwrap();
        assert_eq!(agents.load(&tenant, "custom:mine").await.unwrap().name, name);
    }
    let broken = agents.load(&Tenant::default(), "custom:broken").await.unwrap_err().to_string();
    assert!(broken.ends_with("looked among the resolver (the database is down)"), "{broken}");
}

#[tokio::test]
async fn a_program_reads_the_context_of_its_agent_and_no_other() {
    let program = |name: &str, body: &str| {
        let text = format!(";;; name = \"{name}\"\n;;; description = \"d\"\n{body}\n");
        Entry::parse(&text, Origin::BuiltIn("test.wat")).unwrap()
    };
    let all = Catalog::default().with([
        program("tone", "(ret (sys.context \"tone\"))"),
        program("outer", "(ret (str.cat (sys.context \"tone\") (call \"tone\")))"),
    ]);
    let tools = |name: &str| {
        let context = [("tone".to_owned(), "dry".to_owned())].into();
        [ToolRef { context, ..ToolRef::new(name) }]
    };
    let host = Host::new(Limits::default(), all.clone(), Egress::new(Default::default())).unwrap();
    let grants = || {
        let files = Arc::new(Files::overlay(None, 1 << 20));
        Arc::new(Resources::new(&host, files).grants())
    };
    let run = async |catalog: &Catalog, name: &str| {
        let call = Call::catalog(name, Vec::new());
        match wattle_agent::host::perform(host.runtime(), catalog, &grants(), &call).await.unwrap()
        {
            Execution::Ran(ran) => match ran.failure {
                None => ran.results.concat(),
                Some(failure) => failure.reason.unwrap_or_default(),
            },
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(run(&all.select(&tools("tone")).unwrap(), "tone").await, "dry");
    assert_eq!(run(&all, "tone").await, "no value \"tone\": this program has no context");
    // The nested program is not one of the agent's tools.
    let nested = run(&all.select(&tools("outer")).unwrap(), "outer").await;
    assert!(nested.ends_with("no value \"tone\": this program has no context"), "{nested}");
}

#[test]
fn the_examples_of_the_manual_are_valid() {
    let manual = include_str!("../../../docs/agents.md");
    let examples: Vec<&str> =
        manual.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(examples.len() >= 3);
    for example in examples {
        let agent = AgentSpec::parse(example).unwrap_or_else(|why| panic!("{why}:\n{example}"));
        let tools = agent.tools.unwrap_or_default();
        Catalog::built_in().select(&tools).unwrap_or_else(|why| panic!("{why}:\n{example}"));
    }
}

#[test]
fn the_manual_has_every_field() {
    let manual = include_str!("../../../docs/agents.md");
    let whole = AgentSpec::parse(WHOLE).unwrap();
    let json = serde_json::to_value(&whole).unwrap();
    for field in json.as_object().unwrap().keys() {
        assert!(manual.contains(&format!("`{field}`")), "docs/agents.md has no `{field}`");
    }
}

/// Adds to `names` the name of each function in the Rust files under `folder`.
fn functions(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            functions(&path, names);
        } else if name.ends_with(".rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let named = text.split("fn ").skip(1).filter_map(|rest| rest.split_once('('));
            names.extend(named.map(|(name, _)| name.to_owned()));
        }
    }
}

#[test]
fn the_tests_that_the_manual_names_exist() {
    let manual = include_str!("../../../docs/agents.md");
    let (_, table) = manual.split_once("## What is tested where").unwrap();
    let rows = table.lines().filter(|line| line.starts_with("| ")).skip(1);
    let mut known = BTreeSet::new();
    functions(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."), &mut known);
    let mut count = 0;
    for row in rows {
        let tests: Vec<&str> =
            row.rsplit(" | ").next().unwrap().split('`').skip(1).step_by(2).collect();
        assert!(!tests.is_empty(), "{row}");
        for test in tests {
            assert!(known.contains(test), "there is no test `{test}`: {row}");
            count += 1;
        }
    }
    assert!(count >= 40, "only {count} tests were found");
}
