//! Tests structured output: an answer that does not match its schema is corrected or ends the run.

use serde::Deserialize;
use serde_json::{Value as Json, json};
use wattle_agent::Settings;
use wattle_agent::host::DialectSetting;
use wattle_agent::model::{FunctionChoice, ModelReply};
use wattle_agent::output::{OutputSchema, OutputSettings};
use wattle_machine::{Bound, Ending, Event, Role, Stop};
use wattle_tests::{Job, Scripted, World, calls};

/// A schema with a valid value, an invalid value, and a substring of the expected error.
#[derive(Deserialize)]
struct Case {
    name: String,
    schema: Json,
    valid: Json,
    invalid: Json,
    error: String,
}

fn cases() -> Vec<Case> {
    serde_json::from_str(include_str!("schemas.json")).unwrap()
}

fn output(name: &str, schema: &Json, max_attempts: u32) -> OutputSettings {
    let schema = OutputSchema::new(name, schema.clone()).unwrap();
    OutputSettings { max_attempts, ..OutputSettings::new(schema) }
}

/// Returns ten invalid answers, each with a substring of the expected error.
fn wrong_answers(case: &Case) -> [(String, &str); 10] {
    let Case { valid, invalid, error, .. } = case;
    let is_structure = invalid.is_object() || invalid.is_array();
    let in_text = if is_structure { error.as_str() } else { "not valid JSON" };
    [
        ("I do not know.".to_owned(), "not valid JSON"),
        ("{'name': 'Ada'}".to_owned(), "not valid JSON"),
        ("undefined".to_owned(), "not valid JSON"),
        ("NaN".to_owned(), "not valid JSON"),
        ("```json\n{\"a\": [1, \n```".to_owned(), "not valid JSON"),
        (invalid.to_string(), error),
        (format!("```json\n{invalid:#}\n```"), error),
        (format!("This is it: {invalid}"), in_text),
        (format!("```\n{valid}\n```\nor\n```\n{invalid}\n```"), "several JSON values"),
        (format!("ToolCall::Response(\"\"\"\n{invalid}\n\"\"\")"), error),
    ]
}

fn quick() -> Settings {
    Settings { orient: false, dialect: DialectSetting::Text, ..Settings::default() }
}

fn with_output(world: &World, output: OutputSettings) -> Job {
    Job { output: Some(output), ..world.job("go") }
}

#[tokio::test]
async fn an_invalid_answer_is_corrected() {
    let (world, settings, cases) = (World::new(), quick(), cases());
    assert_eq!(cases.len(), 40);
    for case in &cases {
        let output = output(&case.name, &case.schema, 2);
        for (answer, error) in wrong_answers(case) {
            for constrains in [false, true] {
                let what = format!("{}, {constrains}: {answer}", case.name);
                let model = Scripted::new(&[&answer, &case.valid.to_string()]);
                let model = if constrains { model.constraining() } else { model };
                let job = with_output(&world, output.clone());
                let (report, _) = world.run(&model, &settings, job).await;
                assert_eq!(report.data(), Some(&case.valid), "{what}: {:?}", report.ending);
                assert!(matches!(report.ending, Ending::Answered { .. }), "{what}");
                let request = model.requests().remove(1);
                let asked = &request.last().unwrap().content;
                assert!(asked.contains(error), "{what}: {asked}");
                // A request that may be answered with a call must not be constrained.
                let constraint = constrains.then(|| case.name.clone());
                assert_eq!(model.constraints(), [None, constraint], "{what}");
                let roles: Vec<Role> = report.turns.iter().map(|message| message.role).collect();
                assert_eq!(roles, [Role::User, Role::Assistant], "{what}");
            }
        }
    }
}

#[tokio::test]
async fn an_answer_that_stays_invalid_ends_the_run_with_its_errors() {
    let (world, settings) = (World::new(), quick());
    for case in &cases() {
        let output = output(&case.name, &case.schema, 1);
        for (answer, error) in wrong_answers(case) {
            let model = Scripted::new(&["no", &answer]);
            let (report, events) =
                world.run(&model, &settings, with_output(&world, output.clone())).await;
            let Ending::Invalid { text, errors } = &report.ending else {
                panic!("{}: {answer}: {:?}", case.name, report.ending)
            };
            assert!(errors.iter().any(|found| found.contains(error)), "{errors:?}");
            assert!(answer.contains(text.trim()), "{text}");
            assert_eq!(report.data(), None);
            assert!(report.parse::<Json>().unwrap_err().to_string().contains(errors[0].as_str()));
            let last = &events.last().unwrap().event;
            assert!(
                matches!(last, Event::Response { stop: Stop::InvalidOutput, data: None, .. }),
                "{last:?}"
            );
        }
    }
}

#[tokio::test]
async fn an_answer_in_any_form_is_accepted_at_once() {
    let (world, settings) = (World::new(), quick());
    for case in &cases() {
        let valid = &case.valid;
        let output = output(&case.name, &case.schema, 0);
        for answer in [
            valid.to_string(),
            format!("```json\n{valid:#}\n```"),
            format!("ToolCall::Response(\"\"\"{valid}\"\"\")"),
            format!("<think>{{}} or {valid}?</think>{valid}"),
        ] {
            let model = Scripted::new(&[&answer]);
            let (report, _) =
                world.run(&model, &settings, with_output(&world, output.clone())).await;
            assert_eq!(report.data(), Some(valid), "{answer}: {:?}", report.ending);
        }
    }
}

#[derive(Debug, PartialEq, Deserialize)]
struct Point {
    x: f64,
}

fn point() -> OutputSettings {
    let schema =
        json!({"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]});
    output("point", &schema, 2)
}

#[tokio::test]
async fn in_the_native_dialect_corrections_allow_no_function() {
    let world = World::new();
    for (tool_call, first) in
        [(FunctionChoice::Auto, None), (FunctionChoice::None, Some("point".to_owned()))]
    {
        let settings = Settings { tool_call, dialect: DialectSetting::Native, ..quick() };
        let replies = [
            calls(&[("done", "{\"result\": \"{}\"}")]),
            ModelReply { text: "{\"x\": 1}".to_owned(), ..ModelReply::default() },
        ];
        let model = Scripted::calling(replies).constraining();
        let (report, _) = world.run(&model, &settings, with_output(&world, point())).await;
        assert_eq!(report.parse::<Point>(), Ok(Point { x: 1.0 }));
        assert_eq!(model.choices(), [tool_call, FunctionChoice::None]);
        assert_eq!(model.constraints(), [first, Some("point".to_owned())]);
        assert!(model.offered().iter().all(|offered| offered.len() == 4));
    }
}

#[tokio::test]
async fn the_forced_last_turn_must_answer_with_a_value() {
    let world = World::new();
    let mut settings = quick();
    settings.machine.max_steps = 1;
    let call = "ToolCall::Catalog(\"text_count\", \"a\")";
    let model = Scripted::new(&[call, "x is 1", "{\"x\": 1}"]).constraining();
    let (report, _) = world.run(&model, &settings, with_output(&world, point())).await;
    let data = Some(Box::new(json!({"x": 1})));
    let text = "{\"x\": 1}".to_owned();
    assert_eq!(report.ending, Ending::Exhausted { text, bound: Bound::Steps, data });
    let point = || Some("point".to_owned());
    assert_eq!(model.constraints(), [None, point(), point()]);
    let last = FunctionChoice::None;
    assert_eq!(model.choices(), [FunctionChoice::Auto, last, last]);
}

#[tokio::test]
async fn the_answer_of_a_program_is_validated() {
    let world = World::new();
    let program = "ToolCall::Wat(```wat\n(done \"{}\")\n```)";
    let model = Scripted::new(&[program, "{\"x\": 2}"]);
    let (report, _) = world.run(&model, &quick(), with_output(&world, point())).await;
    assert_eq!(report.data(), Some(&json!({"x": 2})), "{:?}", report.ending);
    assert_eq!(report.steps, 1);
}

#[tokio::test]
async fn the_prompt_has_the_schema_where_it_can_be_cached() {
    let world = World::new();
    let stable = |model: &Scripted| {
        let system = model.requests_verbatim().remove(0).remove(0);
        let (stable, rest) = system.content.split_at(system.stable);
        (stable.contains("named `point`"), rest.contains("named `point`"))
    };
    let model = Scripted::new(&["{\"x\": 1}"]);
    world.run(&model, &quick(), with_output(&world, point())).await;
    assert_eq!(stable(&model), (false, true), "the output of a job");
    let model = Scripted::new(&["{\"x\": 1}"]);
    let settings = Settings { output: Some(point()), ..quick() };
    let (report, _) = world.run(&model, &settings, world.job("go")).await;
    assert_eq!(stable(&model), (true, false), "the output of an agent");
    assert_eq!(report.data(), Some(&json!({"x": 1})));
}

#[tokio::test]
async fn usage_and_budgets_count_through_corrections() {
    let world = World::new();
    let mut settings = Settings { output: Some(point()), ..quick() };
    settings.machine.max_tokens_total = Some(10);
    let usage = wattle_machine::Usage { prompt: 9, completion: 1, ..Default::default() };
    let reply = |text: &str| ModelReply { text: text.to_owned(), usage, ..ModelReply::default() };
    let model = Scripted::calling([reply("no")]);
    let (report, _) = world.run(&model, &settings, world.job("go")).await;
    assert_eq!(report.ending.stop(), Some(Stop::MaxTokens), "{:?}", report.ending);
    settings.machine.max_tokens_total = None;
    let model = Scripted::calling([reply("no"), reply("{\"x\": 1}")]);
    let (report, _) = world.run(&model, &settings, world.job("go")).await;
    assert_eq!((report.usage.total(), report.steps), (20, 0));
}
