//! Tests the traits of agents: text, tools and programs that several agents share.

use std::path::Path;

use wattle_agent::agents::{AgentBase, AgentParts, AgentSpec, Agents};
use wattle_agent::host::catalog::Folders;
use wattle_agent::host::rt::Limits;
use wattle_agent::{Host, Settings, Tenant};
use wattle_capability::egress::{Egress, Policy};
use wattle_capability::sys::FixedSources;
use wattle_machine::{Envelope, Event, Message};
use wattle_tests::{Job, Scripted, World, calls};

const DONE: &str = "ToolCall::Response(\"done\")";

/// Programs of traits, each with its name, its arguments and its body.
const PROGRAMS: &[(&str, &str, &str)] = &[
    (
        "greet",
        ";;; [[args]]\n;;; name = \"tone\"\n;;; type_hint = \"string\"\n;;; description = \"t\"\n",
        "(ret (fmt \"Greet in a {} tone.\" (arg 0)))",
    ),
    ("note", "", "(kv.incr \"steps\" 1)"),
    ("count", "", "(ret (fmt \"{} notes\" (default (kv.get \"steps\") \"0\")))"),
    (
        "plan",
        "",
        "(ret \"{\\\"prompt\\\":\\\"Use the tools.\\\",\\\"tools\\\":[\\\"secret_*\\\"]}\")",
    ),
    (
        "page",
        "",
        "(fs.write \"p\" \"{\\\"prompt\\\":\\\"Hi.\\\",\\\"tools\\\":[\\\"secret_*\\\"]}\")\n\
         (ret (fs.read \"p\"))",
    ),
    ("braces", "", "(fs.write \"p\" \"{ a page }\")\n(ret (fs.read \"p\"))"),
    ("secret_word", "", "(ret (sys.context \"word\"))"),
    ("broken", "", "(fail EREMOTE \"out of order\")"),
    ("wrong", "", "(ret \"{\\\"tool\\\":[]}\")"),
    (
        "listen",
        ";;; [[args]]\n;;; name = \"conversation\"\n;;; type_hint = \"string\"\n;;; description = \
         \"c\"\n",
        "(ret (fmt \"Heard: {}\" (arg 0)))",
    ),
];

/// An environment whose catalog contains [`PROGRAMS`] and whose agents are defined in a folder.
struct House {
    world: World,
    agents: Agents,
    _folder: tempfile::TempDir,
}

fn write(folder: &Path, name: &str, text: &str) {
    std::fs::create_dir_all(folder.join(name).parent().unwrap()).unwrap();
    std::fs::write(folder.join(name), text).unwrap();
}

fn house(files: &[(&str, &str)]) -> House {
    let folder = tempfile::tempdir().unwrap();
    for (name, args, body) in PROGRAMS {
        let front =
            format!(";;; name = \"{name}\"\n;;; description = \"{name}\"\n{args}\n{body}\n");
        write(folder.path(), &format!("programs/{name}.wat"), &front);
    }
    for (name, text) in files {
        write(folder.path(), &format!("agents/{name}.toml"), text);
    }
    let folders = Folders::open(&[folder.path().join("programs")], &|_, _| Ok(()));
    let host = Host::new(Limits::default(), folders, Egress::new(Policy::default())).unwrap();
    let agents = Agents::open(&[folder.path().join("agents")]);
    House { world: World { host, ..World::new() }, agents, _folder: folder }
}

impl House {
    fn parts(&self, agent: &AgentSpec) -> Result<AgentParts, String> {
        let base = AgentBase {
            host: &self.world.host,
            settings: &Settings { orient: false, ..Settings::default() },
            agents: &self.agents,
            max_steps: None,
        };
        agent.parts(base).map_err(|error| error.to_string())
    }

    async fn agent(&self, name: &str) -> AgentSpec {
        self.agents.load(&Tenant::default(), name).await.unwrap().as_ref().clone()
    }

    /// Runs an agent with the clock fixed at `now`.
    async fn run(&mut self, agent: &AgentSpec, model: &Scripted, now: &str) -> Vec<Envelope> {
        let AgentParts { host, settings, .. } = self.parts(agent).unwrap();
        self.world.host = host;
        let job = self.world.job("hello");
        let clock = FixedSources::new(Some(now), &[]).unwrap();
        let grants = job.grants.as_ref().clone().with(clock);
        let job = Job { grants: grants.into(), ..job };
        self.world.run(model, &settings, job).await.1
    }
}

/// Returns the messages of a request as one string.
fn text(messages: &[Message]) -> String {
    messages.iter().map(|message| format!("{}\n", message.content)).collect()
}

fn contributed(events: &[Envelope]) -> Vec<String> {
    let of = |envelope: &Envelope| match &envelope.event {
        Event::Contributed { step, program, error } => {
            Some(format!("{step} {program} {}", error.as_deref().unwrap_or("ok")))
        }
        _ => None,
    };
    events.iter().filter_map(of).collect()
}

const NOON: &str = "2026-03-01T12:07:00Z";

#[tokio::test]
async fn a_trait_contributes_text_tools_and_programs() {
    let mut house = house(&[
        (
            "host",
            "name = \"host\"\nprompt = \"You are the host.\"\ntools = [\"file_read\"]\n\
             traits = [{ id = \"house_style\", context = { tone = \"dry ${user}\" } }]\n\
             [context]\nuser = \"Ada\"\n",
        ),
        (
            "traits/house_style",
            "name = \"house_style\"\nprompt = \"Be ${tone} to ${user}.\"\n\
             tools = [\"text_count\"]\n\
             [context]\ntone = \"warm\"\n[programs]\nstep = \"note\"\nprompt = \"greet\"\n",
        ),
    ]);
    assert_eq!(house.agents.problems(), []);
    let agent = house.agent("host").await;
    let model = Scripted::new(&["ToolCall::Catalog(\"text_count\", \"a b\")", DONE]);
    let events = house.run(&agent, &model, NOON).await;
    let requests = model.requests();
    let first = text(&requests[0]);
    assert!(first.contains("You are the host.\n\nBe dry Ada to Ada."), "{first}");
    assert!(first.contains("text_count(") && first.contains("file_read("), "{first}");
    assert!(!first.contains("file_write(") && !first.contains("note("), "{first}");
    assert!(first.contains("Greet in a dry Ada tone."), "{first}");
    assert_eq!(contributed(&events), ["1 house_style.prompt ok"]);
    let second = text(&requests[1]);
    assert!(second.starts_with(first.trim_end()), "a request begins with the one before it");
    assert_eq!(second.matches("Greet in").count(), 1, "text that is the same comes once");
    let lines: Vec<String> = house
        .world
        .steps()
        .iter()
        .map(|line| format!("{} {}", line["step"], line["tool"].as_str().unwrap()))
        .collect();
    let each = ["house_style.step", "house_style.prompt"];
    let expected = [
        format!("1 {}", each[0]),
        format!("1 {}", each[1]),
        "1 text_count".to_owned(),
        format!("2 {}", each[0]),
        format!("2 {}", each[1]),
    ];
    assert_eq!(lines, expected);
}

#[tokio::test]
async fn a_session_keeps_the_mark_of_what_a_trait_adds() {
    let house = house(&[(
        "host",
        "name = \"host\"\ntraits = [{ name = \"calm\", context = { tone = \"calm\" }, programs = \
         { prompt = \"greet\" } }]",
    )]);
    let AgentParts { host, settings, .. } = house.parts(&house.agent("host").await).unwrap();
    let world = World { host, ..house.world };
    let model = Scripted::new(&[DONE]);
    let (report, _) = world.run(&model, &settings, world.job("hello")).await;
    world.store.extend("s", report.turns.clone()).await.unwrap();
    let history = world.store.history("s", None).await.unwrap().messages;
    assert_eq!(history, report.turns);
    let added: Vec<bool> = history.iter().map(Message::is_added).collect();
    assert_eq!(added, [false, true, false], "{history:?}");
    let exported = world.store.export("s").await.unwrap().unwrap();
    let texts: Vec<&str> = exported.messages.iter().map(|one| one.content.as_str()).collect();
    assert_eq!(texts[0], "hello");
    assert!(texts.len() == 2 && !texts.concat().contains("Greet in"), "{texts:?}");
}

#[tokio::test]
async fn a_schema_of_a_tool_is_offered_and_checked_before_the_program_runs() {
    let house = house(&[(
        "host",
        "name = \"host\"\nfunctions = [\"count_words\"]\n[[tools]]\nid = \"text_count\"\nalias = \"count_words\"\n\
         [tools.schema]\nproperties.text = { maxLength = 9, description = \"at most 9 letters\" }",
    )]);
    let AgentParts { host, settings, .. } = house.parts(&house.agent("host").await).unwrap();
    let world = World { host, ..house.world };
    for native in [false, true] {
        let arguments = ["a text that is too long", "short"];
        let model = match native {
            false => Scripted::new(&[
                &format!("ToolCall::Catalog(\"count_words\", {:?})", arguments[0]),
                &format!("ToolCall::Catalog(\"count_words\", {:?})", arguments[1]),
                DONE,
            ]),
            true => {
                let call = |text: &str| {
                    calls(&[("count_words", &serde_json::json!({"text": text}).to_string())])
                };
                Scripted::calling([
                    call(arguments[0]),
                    call(arguments[1]),
                    calls(&[("done", "{\"result\":\"done\"}")]),
                ])
            }
        };
        let (report, _) = world.run(&model, &settings, world.job("count")).await;
        assert_eq!(report.ending.text(), "done");
        let requests = model.requests();
        let refused = &requests[1].last().unwrap().content;
        assert!(
            refused
                .contains("count_words error: the arguments do not match the schema: at /text: ")
                && refused.contains("longer than 9 characters"),
            "{refused}"
        );
        assert!(!requests[2].last().unwrap().content.contains("error"), "{:?}", requests[2]);
        match native {
            false => assert!(text(&requests[0]).contains("count_words(")),
            true => {
                let functions = model.functions();
                let offered = functions[0].iter().find(|one| one.name == "count_words").unwrap();
                let property = &offered.parameters["properties"]["text"];
                assert_eq!(property["maxLength"], 9, "{}", offered.parameters);
                assert_eq!(property["description"], "at most 9 letters");
            }
        }
    }
}

#[tokio::test]
async fn text_that_changes_follows_the_text_before() {
    let mut house = house(&[]);
    let agent = AgentSpec::parse(
        "name = \"a\"\ntraits = [{ name = \"diary\", programs = { step = \"note\", prompt = \
         \"count\" } }]",
    )
    .unwrap();
    let model = Scripted::new(&["ToolCall::Catalog(\"date_now\")", DONE]);
    let events = house.run(&agent, &model, NOON).await;
    let requests = model.requests();
    let (first, second) = (text(&requests[0]), text(&requests[1]));
    assert!(first.contains("1 notes") && second.starts_with(first.trim_end()), "{second}");
    assert!(second.contains("2 notes"), "{second}");
    assert_eq!(contributed(&events), ["1 diary.prompt ok", "2 diary.prompt ok"]);
}

#[tokio::test]
async fn a_build_program_adds_a_prompt_and_tools_once() {
    let mut house = house(&[]);
    let agent = AgentSpec::parse(
        "name = \"a\"\ntools = [\"file_read\"]\ncontext = { word = \"plum\" }\n\
         traits = [{ name = \"planner\", programs = { build = \"plan\" } }]",
    )
    .unwrap();
    let native = calls(&[("secret_word", "{}")]);
    let model = Scripted::calling([native, calls(&[("done", "{\"result\":\"done\"}")])]);
    let events = house.run(&agent, &model, NOON).await;
    assert_eq!(contributed(&events), ["1 planner.build ok"]);
    let requests = model.requests();
    let system = &requests[0][0].content;
    assert!(system.contains("Use the tools.\n\nFurther programs:\nsecret_word()"), "{system}");
    assert_eq!(requests[1][0].content, *system, "it is built once");
    assert_eq!(model.offered()[0], ["catalog", "wat", "fix", "done"]);
    let ran = events
        .iter()
        .any(|envelope| matches!(&envelope.event, Event::ToolResult { success: true, .. }));
    assert!(ran, "{events:?}");
}

#[tokio::test]
async fn text_from_outside_adds_no_tools_unless_the_trait_says_so() {
    for (build, may_add, found, adds) in [
        ("page", "", "1 t.build its result may not add tools or delegates", false),
        ("page", ", build_may_add = true", "1 t.build ok", true),
        ("braces", "", "1 t.build ok", false),
        ("plan", "", "1 t.build ok", true),
    ] {
        let mut house = house(&[]);
        let agent = AgentSpec::parse(&format!(
            "name = \"a\"\ntools = [\"file_read\"]\ntraits = [{{ name = \"t\", programs = \
             {{ build = \"{build}\"{may_add} }} }}]"
        ));
        let model = Scripted::new(&[DONE]);
        let events = house.run(&agent.unwrap(), &model, NOON).await;
        assert!(contributed(&events)[0].starts_with(found), "{build}: {:?}", contributed(&events));
        let system = &model.requests()[0][0].content;
        assert_eq!(system.contains("secret_word"), adds, "{build}: {system}");
        assert_eq!(system.contains("{ a page }"), build == "braces", "{system}");
    }
}

#[tokio::test]
async fn a_program_that_fails_is_a_warning() {
    for (kind, program, why) in [
        ("step", "broken", "EREMOTE: out of order"),
        ("prompt", "broken", "EREMOTE: out of order"),
        ("build", "broken", "EREMOTE: out of order"),
        ("build", "wrong", "it returned no object with `prompt`, `tools` and `delegates`"),
    ] {
        let mut house = house(&[]);
        let agent = AgentSpec::parse(&format!(
            "name = \"a\"\ntraits = [{{ name = \"t\", programs = {{ {kind} = \"{program}\" }} }}]"
        ))
        .unwrap();
        let model = Scripted::new(&[DONE]);
        let events = house.run(&agent, &model, NOON).await;
        let found = contributed(&events);
        assert!(found[0].starts_with(&format!("1 t.{kind} {why}")), "{found:?}");
        let is_done = |envelope: &Envelope| {
            matches!(
                &envelope.event,
                Event::Response { text, .. } if text == "done"
            )
        };
        assert!(events.iter().any(is_done), "the run goes on: {events:?}");
    }
}

#[tokio::test]
async fn a_program_can_read_the_conversation() {
    let mut house = house(&[]);
    let agent = AgentSpec::parse(
        "name = \"a\"\ntraits = [{ name = \"ear\", programs = { prompt = \"listen\" } }]",
    )
    .unwrap();
    let model = Scripted::new(&[DONE]);
    house.run(&agent, &model, NOON).await;
    let first = text(&model.requests()[0]);
    assert!(first.contains("Heard: user: hello"), "{first}");
}

#[test]
fn an_agent_that_cannot_be_used_is_refused() {
    let house = house(&[]);
    for (text, why) in [
        (
            "functions = [\"file_raed\"]",
            "`functions`: it is offered no program \"file_raed\"; did you mean `file_read`?",
        ),
        (
            "functions = [\"file_read\"]\ntools = [\"text_*\"]",
            "`functions`: it is offered no program \"file_read\"",
        ),
        ("traits = [\"time_awar\"]", "there is no trait `time_awar`; did you mean `time_aware`?"),
        (
            "traits = [{ name = \"t\", programs = { prompt = \"gret\" } }]",
            "`t.prompt`: there is no program `gret`; did you mean `greet`",
        ),
        (
            "traits = [{ name = \"t\", programs = { prompt = \"greet\" } }]",
            "`t.prompt`: the context has no value for the argument `tone` of `greet`",
        ),
        (
            "traits = [{ id = \"time_aware\", context = { time_interval = \"often\" } }]",
            "`time_aware.prompt`: the context of `current_time` sets `time_interval`",
        ),
        (
            "traits = [{ name = \"t\", prompt = \"${who}\" }]",
            "the trait `t` uses `${who}`, which its context does not have",
        ),
        ("traits = [\"time_aware\", \"time_aware\"]", "the agent has the trait twice"),
    ] {
        let agent = AgentSpec::parse(&format!("name = \"a\"\n{text}")).unwrap();
        let error = house.parts(&agent).err().unwrap_or_default();
        assert!(error.contains(why), "{text}: {error}");
    }
    for (text, why) in [
        (
            "traits = [{ name = \"t\", promt = \"\" }]",
            "unknown key `promt`; did you mean `prompt`?",
        ),
        ("traits = [{ name = \"T\" }]", "the trait `T`: a name starts with a lowercase letter"),
        ("traits = [{ id = \"t\", contex = {} }]", "did you mean `context`?"),
        ("traits = [{ id = \"t\", context = { a = [1] } }]", "expected a text, a number"),
    ] {
        let error = AgentSpec::parse(&format!("name = \"a\"\n{text}")).unwrap_err().to_string();
        assert!(error.contains(why), "{text}: {error}");
    }
}

#[test]
fn traits_of_files_are_problems_if_they_are_invalid() {
    let house = house(&[
        ("a", "name = \"a\"\ntraits = [\"missing\"]\n"),
        ("b", "name = \"b\"\ntraits = [\"good\"]\n"),
        ("traits/good", "name = \"good\"\nprompt = \"Be good.\"\n"),
        ("traits/again", "name = \"good\"\n"),
        ("traits/bad", "name = \"bad\"\ntool = []\n"),
    ]);
    let problems: Vec<String> = house.agents.problems().iter().map(ToString::to_string).collect();
    let all = problems.join("\n");
    assert!(all.contains("the trait `good` is also in"), "{all}");
    assert!(all.contains("bad.toml:2: unknown key `tool`; did you mean `tools`?"), "{all}");
    assert!(all.contains("a.toml: the agent `a`: there is no trait `missing`"), "{all}");
    assert!(all.contains("b.toml: the agent `b`: there is no trait `good`"), "{all}");
    assert_eq!(problems.len(), 4, "{all}");
    assert!(house.agents.get("a").is_none() && house.agents.get("b").is_none());
}

/// Returns the length of two strings' common prefix as a fraction of the second string's length.
fn shared(one: &str, other: &str) -> f64 {
    let same = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    same as f64 / other.len() as f64
}

#[tokio::test]
async fn time_aware_agents_share_their_prompt_over_a_day() {
    let agent = AgentSpec::parse(
        "name = \"clock\"\nprompt = \"Be brief.\"\n\
         traits = [{ id = \"time_aware\", context = { timezone = \"Europe/Berlin\" } }]",
    )
    .unwrap();
    let mut before: Option<String> = None;
    let mut times = std::collections::BTreeSet::new();
    for minute in (0..24 * 60).step_by(15) {
        let mut house = house(&[]);
        let model = Scripted::new(&[DONE]);
        let now = format!("2026-03-01T{:02}:{:02}:41Z", minute / 60, minute % 60);
        house.run(&agent, &model, &now).await;
        let request = text(&model.requests()[0]);
        let said = request.split("It is ").nth(1).unwrap().split(" (").next().unwrap().to_owned();
        if let Some(before) = &before {
            let part = shared(before, &request);
            assert!((0.95..1.0).contains(&part), "{now}: {part}");
        }
        before = Some(request);
        times.insert(said);
    }
    assert_eq!(times.len(), 96, "{times:?}");
    assert!(times.contains("Sunday, 1 March 2026, 13:15"), "{times:?}");
}

#[tokio::test]
async fn the_time_is_the_same_within_an_interval() {
    let agent = AgentSpec::parse(
        "name = \"clock\"\ntraits = [{ id = \"time_aware\", context = { time_interval = 60 } }]",
    )
    .unwrap();
    let mut said = std::collections::BTreeSet::new();
    for now in ["2026-03-01T12:00:00Z", "2026-03-01T12:29:00Z", "2026-03-01T12:59:59Z"] {
        let mut house = house(&[]);
        let model = Scripted::new(&["ToolCall::Catalog(\"date_now\")", DONE]);
        let events = house.run(&agent, &model, now).await;
        assert_eq!(contributed(&events), ["1 time_aware.prompt ok"]);
        let request = text(&model.requests()[1]);
        said.insert(request.split("It is ").nth(1).unwrap().lines().next().unwrap().to_owned());
    }
    let expected = "Sunday, 1 March 2026, 12:00 (UTC; rounded down to 60 minutes).";
    assert_eq!(said.into_iter().collect::<Vec<_>>(), [expected]);
}
