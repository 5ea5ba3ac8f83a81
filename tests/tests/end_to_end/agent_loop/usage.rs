//! Tests the token usage and the cost of runs.

use std::sync::Arc;

use wattle_agent::host::{ModelInference, UsageMeter};
use wattle_agent::model::{Model, ModelReply, Price, Prices};
use wattle_agent::{Resources, Settings};
use wattle_capability::files::Files;
use wattle_machine::{Bound, Dollars, Ending, Event, Stop, Usage};
use wattle_tests::{Job, Scripted, World};

fn reply(text: &str, prompt: u64, completion: u64) -> ModelReply {
    let usage = Usage { prompt, completion, ..Usage::default() };
    ModelReply { text: text.to_owned(), usage, ..ModelReply::default() }
}

fn prices() -> Prices {
    let price = Price { prompt: 1.0, completion: 10.0, cached: None, window: None };
    Prices::new([("scripted".to_owned(), price)].into()).unwrap()
}

/// Returns a job whose programs may use the model. Their requests count toward the run's usage.
fn job(world: &World, model: &Arc<Scripted>, settings: &Settings) -> Job {
    let meter = UsageMeter::default();
    let inference =
        ModelInference::new(Arc::clone(model) as Arc<dyn Model>, settings).metered(meter.clone());
    let files = Arc::new(Files::overlay(None, 1 << 20));
    let access =
        Resources { inference: Some(Arc::new(inference)), ..Resources::new(&world.host, files) };
    Job { meter, ..Job::new("go", access.grants()) }
}

const ASK: &str = "ToolCall::Wat(```wat\n(ret (ai.assist? \"be brief\" \"hello\"))\n```)";

#[tokio::test]
async fn model_requests_of_programs_count_with_their_cost() {
    let world = World::new();
    let settings = Settings { prices: prices(), ..Settings::default() };
    let replies = [
        reply(ASK, 1_000, 100),
        reply("hi", 200, 20),
        reply("ToolCall::Response(\"hi\")", 1_100, 10),
    ];
    let model = Arc::new(Scripted::calling(replies));
    let job = job(&world, &model, &settings);
    let (report, events) = world.run(model.as_ref(), &settings, job).await;
    assert_eq!(report.ending.text(), "hi");
    let expected = Usage { prompt: 2_300, completion: 130, cached: 0, cost: Dollars::new(0.0036) };
    assert_eq!(report.usage, expected);
    assert!(
        matches!(&events.last().unwrap().event, Event::Response { usage, .. } if *usage == expected)
    );
    let json = serde_json::to_value(&events.last().unwrap().event).unwrap();
    assert_eq!(
        json["usage"],
        serde_json::json!({"prompt": 2300, "completion": 130, "cached": 0, "cost": 0.0036})
    );
}

#[tokio::test]
async fn an_unknown_cost_is_not_reported() {
    let world = World::new();
    let model = Scripted::calling([reply("four", 10, 1)]);
    let (_, events) = world.run(&model, &Settings::default(), world.job("go")).await;
    let json = serde_json::to_value(&events.last().unwrap().event).unwrap();
    assert_eq!(json["usage"], serde_json::json!({"prompt": 10, "completion": 1, "cached": 0}));
}

#[tokio::test]
async fn budgets_end_a_run_before_the_next_call() {
    let world = World::new();
    let with = |tokens, dollars: Option<f64>| {
        let mut settings = Settings { prices: prices(), ..Settings::default() };
        settings.machine.max_tokens_total = tokens;
        settings.machine.max_cost = dollars.and_then(Dollars::new);
        settings
    };
    for (settings, text, bound, stop) in [
        (
            with(Some(1_150), None),
            "stopped: reached max_tokens_total (1150)",
            Bound::Tokens,
            Stop::MaxTokens,
        ),
        (
            with(None, Some(0.0021)),
            "stopped: reached max_cost ($0.0021)",
            Bound::Cost,
            Stop::MaxCost,
        ),
    ] {
        // The program's own request exceeds the limit.
        let model = Arc::new(Scripted::calling([reply(ASK, 1_000, 100), reply("hi", 60, 20)]));
        let job = job(&world, &model, &settings);
        let (report, events) = world.run(model.as_ref(), &settings, job).await;
        assert_eq!(report.ending, Ending::Exhausted { text: text.to_owned(), bound, data: None });
        assert_eq!((report.steps, model.requests().len()), (1, 2));
        assert!(matches!(
            &events.last().unwrap().event,
            Event::Response { stop: found, .. } if *found == stop
        ));
    }
}

#[tokio::test]
async fn a_run_that_repeats_itself_ends() {
    let world = World::new();
    let call = "ToolCall::Catalog(\"text_count\", \"a b\")";
    let model = Scripted::new(&[call; 6]);
    let (report, _) = world.run(&model, &Settings::default(), world.job("go")).await;
    assert_eq!(report.ending.text(), "stopped: the same call was repeated 5 times");
    let requests = model.requests();
    let is_warned =
        |at: usize| requests[at].last().unwrap().content.contains("[Note] you made this call");
    assert_eq!(
        [is_warned(1), is_warned(2), is_warned(3), is_warned(4)],
        [false, false, true, true]
    );

    // Neither a changing result nor an interrupted sequence counts as a repetition.
    let poll =
        |n: &u32| format!("ToolCall::Catalog(\"text_count\", \"{}\")", "a ".repeat(*n as usize));
    let answers: Vec<String> =
        [1, 1, 2, 1, 1, 2, 1, 1].iter().map(poll).chain(["done".to_owned()]).collect();
    let model = Scripted::new(&answers.iter().map(String::as_str).collect::<Vec<_>>());
    let (report, _) = world.run(&model, &Settings::default(), world.job("go")).await;
    assert_eq!(report.ending.text(), "done");
}
