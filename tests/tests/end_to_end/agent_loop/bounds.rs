//! Tests the limits on a run. The time limits are reached by operations that really hang.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use wattle_agent::agents::{AgentBase, AgentSpec, Agents};
use wattle_agent::model::{Model, ModelError, ModelReply, ModelRequest, Timeouts};
use wattle_agent::{Resources, Settings};
use wattle_capability::egress::{Egress, Policy};
use wattle_capability::files::Files;
use wattle_machine::{Ending, Event, OnMaxSteps};
use wattle_rt::Limits;
use wattle_tests::provider::{Answer, Provider};
use wattle_tests::{Job, Scripted, World};

use super::endpoint::{quick, remote};

/// A limit so high that no test reaches it.
const HOURS: Duration = Duration::from_secs(3_600);

fn ms(time: u64) -> Duration {
    Duration::from_millis(time)
}

/// Returns responses that keep the client waiting, each with a description.
fn silences() -> Vec<(&'static str, Answer)> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
    vec![
        ("accepts and never answers", Answer::hang()),
        ("sends headers and stops", Answer::raw(head).then_hang()),
        ("sends half a head and stops", Answer::raw("HTTP/1.1 200 OK\r\ncontent-ty").then_hang()),
        (
            "sends single bytes slowly",
            Answer::streamed("word ".repeat(500)).pieces(1).pause(ms(20)),
        ),
        (
            "stops within the answer",
            Answer::events(["{\"choices\":[{\"delta\":{\"content\":\"half\"}}]}"]).then_hang(),
        ),
        (
            "sends keep-alives forever",
            Answer::body(": ping\n\n".repeat(4_000)).pieces(8).pause(ms(20)),
        ),
    ]
}

#[tokio::test]
async fn a_request_ends_whatever_the_server_does() {
    let world = World::new();
    let short = Timeouts { request: ms(150), retry_for: ms(30), ..quick() };
    let long = Timeouts { request: HOURS, retry_for: HOURS, ..quick() };
    for (what, answer) in silences() {
        // The lower limits apply, whether they belong to the model's client or to the run.
        for (client, settings) in [(short, long), (long, short)] {
            let provider = Provider::start(vec![answer.clone(); 3]);
            let model = Arc::new(remote(&provider, "vllm", "m", client));
            let settings = Settings { timeouts: settings, ..Settings::default() };
            let (report, _) = world.run(&model, &settings, world.job("go")).await;
            let expected =
                "error: the model did not complete its answer within 150 ms (asked 2 times)";
            assert_eq!(report.ending, Ending::Failed { message: expected.to_owned() }, "{what}");
        }
    }
}

#[tokio::test]
async fn an_agent_limits_the_time_and_the_retries_of_its_requests() {
    let world = World::new();
    let deployment = Timeouts { backoff: ms(100), max_delay: ms(100), ..quick() };
    for (line, answer, expected, requests) in [
        ("retry_for = \"1ms\"", Answer::status(503), "503", 1..=1),
        // The deployment's limit caps the agent's setting.
        ("retry_for = \"9h\"", Answer::status(503), "times)", 2..=4),
        ("http_timeout = \"120ms\"", Answer::hang(), "within 120 ms", 2..=2),
    ] {
        let agent = AgentSpec::parse(&format!("name = \"hasty\"\n{line}")).unwrap();
        let parts = agent
            .parts(AgentBase {
                host: &world.host,
                settings: &Settings { timeouts: deployment, ..Settings::default() },
                agents: &Agents::default(),
                max_steps: None,
            })
            .unwrap();
        let provider = Provider::start(vec![answer; 12]);
        let model = Arc::new(remote(&provider, "vllm", "m", deployment));
        let (report, _) = world.run(&model, &parts.settings, world.job("go")).await;
        assert!(report.ending.text().contains(expected), "{line}: {}", report.ending.text());
        let sent = provider.requests().len();
        assert!(requests.contains(&sent), "{line}: {sent} requests");
    }
}

/// A model that never answers and enforces no time limits.
#[derive(Clone)]
struct Deaf;

impl Model for Deaf {
    fn name(&self) -> &str {
        "deaf"
    }

    fn complete<'a>(
        &'a self,
        _: ModelRequest<'a>,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        std::future::pending().boxed()
    }
}

#[tokio::test]
async fn a_turn_ends_whatever_the_model_does() {
    let world = World::new();
    let timeouts = Timeouts { request: ms(100), retry_for: ms(0), slack: ms(50), ..quick() };
    let settings = Settings { timeouts, ..Settings::default() };
    let (report, _) = world.run(&Deaf, &settings, world.job("go")).await;
    let expected = "error: llm hard timeout".to_owned();
    assert_eq!(report.ending, Ending::Failed { message: expected });
}

#[tokio::test]
async fn the_time_limit_of_a_run_covers_all_of_it() {
    let world = World::new();
    let provider = Provider::start([Answer::hang()]);
    let model = Arc::new(remote(&provider, "vllm", "m", quick()));
    let settings = Settings { timeout: Some(ms(200)), ..Settings::default() };
    let (report, _) = world.run(&model, &settings, world.job("go")).await;
    assert_eq!(report.ending.text(), "stopped: reached timeout (200 ms)");
}

/// Returns an environment with a time limit for programs, and a job whose programs may reach the
/// endpoint.
fn short(provider: &Provider, time: Duration) -> (World, Job) {
    let world = World::with(Limits { time, ..Limits::default() });
    let rule = provider.host().parse().unwrap();
    let network = Arc::new(Egress::new(Policy { allow: vec![rule], ..Policy::default() }));
    let files = Arc::new(Files::overlay(None, 1 << 20));
    let access = Resources { network, ..Resources::new(&world.host, files) };
    let job =
        Job { trace_dir: Some(world.workdir().to_owned()), ..Job::new("go", access.grants()) };
    (world, job)
}

#[tokio::test]
async fn a_program_and_a_host_call_are_killed_at_their_time_limit() {
    let provider = Provider::start(vec![Answer::hang(); 4]);
    let url = provider.base_url();
    for (call, expected) in [
        (
            "ToolCall::Wat(```wat\n(while 1)\n```)".to_owned(),
            "tool error: wat timed out after 300ms (killed) at line 1",
        ),
        (format!("ToolCall::Catalog(\"http_get\", \"{url}\")"), "timed out after 300ms (killed)"),
    ] {
        let (world, job) = short(&provider, ms(300));
        let model = Scripted::new(&[&call, "ToolCall::Response(\"on\")"]);
        let (report, _) = world.run(&model, &Settings::default(), job).await;
        assert_eq!(report.ending.text(), "on");
        let observed = model.requests()[1].last().unwrap().content.to_string();
        assert!(
            observed.starts_with("[Observation (step 1)] Execution FAILED:\n")
                && observed.contains(expected),
            "{observed}"
        );
    }
}

#[tokio::test]
async fn a_cancelled_run_ends_at_once() {
    let silent = Provider::start(vec![Answer::hang(); 4]);
    let url = silent.base_url();
    let calls = [
        ("a program", "ToolCall::Wat(```wat\n(while 1)\n```)".to_owned()),
        ("a host call", format!("ToolCall::Catalog(\"http_get\", \"{url}\")")),
    ];
    let model = Arc::new(remote(&silent, "vllm", "m", Timeouts { request: HOURS, ..quick() }));
    let (world, job) = short(&silent, ms(60_000));
    let cancelled = async |world: &World, model: Arc<dyn wattle_agent::model::Model>, job: Job| {
        let cancel = job.cancel.clone();
        let at = tokio::spawn(async move {
            tokio::time::sleep(ms(100)).await;
            cancel.cancel("");
            Instant::now()
        });
        let (report, events) = world.run(&model, &Settings::default(), job).await;
        let took = at.await.unwrap().elapsed();
        assert_eq!(report.ending, Ending::Cancelled { text: "stopped: cancelled".to_owned() });
        let closed = events
            .iter()
            .filter(|envelope| matches!(envelope.event, Event::ToolResult { .. }))
            .count();
        let started = events
            .iter()
            .filter(|envelope| matches!(envelope.event, Event::ToolStart { .. }))
            .count();
        assert_eq!(started, closed);
        // The threshold allows for a loaded machine. The operation itself would take a minute.
        assert!(took < Duration::from_secs(3), "{took:?}");
    };
    cancelled(&world, model, job).await;
    for (_, call) in calls {
        let (world, job) = short(&silent, ms(60_000));
        cancelled(&world, Arc::new(Scripted::new(&[&call])), job).await;
    }
}

#[tokio::test]
async fn the_limit_on_steps_ends_a_run_as_configured() {
    let world = World::new();
    let call = "ToolCall::Catalog(\"text_count\", \"a b\")";
    let thought = "<reasoning>Two words, I think.</reasoning>\n\
                   ToolCall::Catalog(\"text_count\", \"a b c\")";
    for (on_max_steps, answers, text) in [
        (OnMaxSteps::Stop, vec![call, call], "stopped: reached max_steps (2)"),
        (OnMaxSteps::Answer, vec![call, call, "so far: two words"], "so far: two words"),
        (OnMaxSteps::Answer, vec![call, call, call, "two words"], "two words"),
        (OnMaxSteps::Answer, vec![call, call, call, call], "stopped: reached max_steps (2)"),
        (OnMaxSteps::Latest, vec![call, thought], "Two words, I think."),
        (OnMaxSteps::Latest, vec![call, call], "stopped: reached max_steps (2)"),
    ] {
        let mut settings = Settings::default();
        settings.machine.max_steps = 2;
        settings.machine.on_max_steps = on_max_steps;
        let (report, _) = world.run(&Scripted::new(&answers), &settings, world.job("go")).await;
        assert_eq!(report.ending.text(), text);
    }
}

#[tokio::test]
async fn missing_memory_is_an_error_code() {
    let world = World::new();
    let program = "ToolCall::Wat(```wat\n(let $s \"x\")\n(while 1 (set $s (str.cat? $s \
                   (str.repeat? \"y\" 1000000))))\n```)";
    let model = Scripted::new(&[program, "ToolCall::Response(\"on\")"]);
    let (report, _) = world.run(&model, &Settings::default(), world.job("go")).await;
    assert_eq!(report.ending.text(), "on");
    let observed = model.requests()[1].last().unwrap().content.to_string();
    assert!(observed.contains("ENOMEM") || observed.contains("EBOUND"), "{observed}");
}
