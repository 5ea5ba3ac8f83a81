//! Tests of budgets, which apply to a run and to the runs of its delegates together.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use wattle_agent::host::capability::policy::{NoApprover, Policy};
use wattle_agent::host::journal::Approval;
use wattle_agent::host::machine::{Dollars, Usage};
use wattle_agent::model::ModelReply;
use wattle_agent::prelude::*;
use wattle_agent::{Store, Tenant};

use super::{HOST, Script, call, say};

/// Returns a model whose requests use 15 tokens and cost `dollars` each.
fn costly(answers: &[&str], dollars: f64) -> Script {
    let reply = |text: &&str| ModelReply {
        text: (*text).to_owned(),
        usage: Usage { prompt: 10, completion: 5, cost: Dollars::new(dollars), ..Usage::default() },
        finish: Some("stop".to_owned()),
        ..ModelReply::default()
    };
    Script::of(answers.iter().map(reply).collect(), false)
}

/// Returns a model's answer that runs a program.
fn wat(program: &str) -> String {
    format!("ToolCall::Wat(```wat\n{program}\n```)")
}

fn with(change: impl FnOnce(&mut Settings)) -> Settings {
    let mut settings = Settings::default();
    change(&mut settings);
    settings
}

fn of(model: &Script, name: &str) -> AgentBuilder {
    Agent::builder(model.clone()).host(HOST.clone()).name(name)
}

#[tokio::test]
async fn concurrent_delegates_share_the_maximum_cost_of_their_caller() {
    let worker = costly(&[&say("done")], 0.9);
    let program = "(let $all (str.split \"a b c d e f\" \" \"))\n\
                   (ret (str.join (par.map \"ask_worker\" $all) \",\"))";
    let boss = of(&costly(&[&wat(program), &say("ok")], 0.0005), "boss")
        .settings(with(|settings| settings.machine.max_cost = Dollars::new(1.0)))
        .delegate("worker", of(&worker, "worker").build().unwrap())
        .build()
        .unwrap();
    let failure = boss.execute("go").await.unwrap_err();
    assert_eq!(failure.reason(), "reached max_cost ($1.00)");
    assert_eq!(worker.requests().len(), 2, "only the last request exceeds the limit");
    let refused = "stopped: reached max_cost ($1.00) of the agent `boss` above it";
    for child in &failure.report().children {
        let is_known = child.text == "done" || child.text == refused;
        assert!(is_known || child.status == ReportStatus::Cancelled, "{child:?}");
    }
}

#[tokio::test]
async fn requests_that_fit_the_budget_are_concurrent() {
    let worker = costly(&[&say("done")], 0.001);
    let program = "(let $all (str.split \"a b c d e f\" \" \"))\n\
                   (ret (str.join (par.map \"ask_worker\" $all) \",\"))";
    let boss = of(&costly(&[&wat(program), &say("ok")], 0.0005), "boss")
        .settings(with(|settings| settings.machine.max_cost = Dollars::new(1.0)))
        .delegate("worker", of(&worker, "worker").build().unwrap())
        .build()
        .unwrap();
    let report = boss.execute("go").await.unwrap();
    assert_eq!((report.data.as_str(), worker.requests().len()), ("ok", 6));
    assert_eq!(report.cost, Dollars::new(0.007));
}

#[tokio::test]
async fn the_tokens_of_an_agent_between_bind_its_delegates() {
    let leaf = costly(&[&say("done")], 0.0);
    let asks: Vec<String> = ["a", "b", "c", "d"]
        .map(|task| format!("(out (agent.delegate \"leaf\" \"{task}\"))"))
        .into();
    let middle = of(&costly(&[&wat(&asks.join("\n")), &say("done")], 0.0), "middle")
        .settings(with(|settings| settings.machine.max_tokens_total = Some(40)))
        .delegate("leaf", of(&leaf, "leaf").build().unwrap())
        .build()
        .unwrap();
    let asking = costly(&[&call("ask_middle", &["go"]), &say("ok")], 0.0);
    let boss = of(&asking, "boss").delegate("middle", middle).build().unwrap();
    let report = boss.execute("go").await.unwrap();
    assert_eq!(leaf.requests().len(), 2, "15 tokens of the agent and twice 15 of its delegates");
    assert_eq!(report.children[0].text, "stopped: reached max_tokens_total (40)");
    assert!(asking.requests()[1].contains("the agent `middle` did not finish"));
    assert_eq!(report.usage.prompt, 50);
}

#[tokio::test]
async fn the_model_requests_of_programs_count_for_the_runs_above() {
    let program = wat("(out (ai.assist \"a\" \"b\" 0))\n(out (ai.assist \"c\" \"d\" 0))");
    let worker = costly(&[&program, "one", "two", &say("first"), &program, &say("second")], 0.0);
    let asks = "(out (agent.delegate \"worker\" \"a\"))\n(out (agent.delegate \"worker\" \"b\"))";
    let boss = of(&costly(&[&wat(asks), &say("ok")], 0.0), "boss")
        .settings(with(|settings| settings.ai.calls = 2))
        .delegate("worker", of(&worker, "worker").build().unwrap())
        .build()
        .unwrap();
    let report = boss.execute("go").await.unwrap();
    let texts: Vec<&str> = report.children.iter().map(|child| child.text.as_str()).collect();
    assert_eq!(texts, ["first", "second"]);
    let requests = worker.requests();
    assert!(
        requests[5].contains("the 2 calls of `ai` of the run above are used up"),
        "{}",
        requests[5]
    );
}

#[derive(Deserialize, JsonSchema)]
struct Named {
    name: String,
}

#[tokio::test]
async fn a_resumed_run_remembers_what_its_ended_delegates_used() {
    let store = Store::in_memory(Duration::from_secs(3_600)).unwrap().tenant(&Tenant::default());
    let add = Tool::new("add", "Adds a name", |named: Named, _: ToolContext| async move {
        Ok(format!("added {}", named.name))
    });
    let clerk = costly(&[&say("done")], 0.1);
    let adder = costly(&[&call("add", &["Ada"]), &say("done")], 0.1);
    let asks = "(out (agent.delegate \"clerk\" \"a\"))\n(out (agent.delegate \"adder\" \"b\"))";
    let policy = Policy::new(Vec::new(), vec!["tool:add".parse().unwrap()], Vec::new());
    let boss = of(&costly(&[&wat(asks), &say("ok")], 0.1), "boss")
        .settings(with(|settings| settings.machine.max_tokens_total = Some(45)))
        .delegate("clerk", of(&clerk, "clerk").build().unwrap())
        .delegate("adder", of(&adder, "adder").tool(add).build().unwrap())
        .policy(policy)
        .approver(Arc::new(NoApprover))
        .store(store.clone())
        .build()
        .unwrap();
    let failure = boss.execute("go").await.unwrap_err();
    let [pending] = failure.pending() else { panic!("{failure:?}") };
    let run = failure.report().run_id.clone();
    let resumed = boss.resume(run).answer(&pending.call, Approval::once(true)).await;
    let failure = resumed.unwrap_err();
    assert_eq!(failure.reason(), "reached max_tokens_total (45)");
    let of = |name: &str| failure.report().children.iter().find(|child| child.agent == name);
    let refused = "stopped: reached max_tokens_total (45) of the agent `boss` above it";
    assert_eq!(of("adder").map(|child| child.text.as_str()), Some(refused));
    // All three runs have used their tokens once, and nobody was asked again.
    assert_eq!((clerk.requests().len(), adder.requests().len()), (1, 1));
    assert_eq!(failure.report().usage.prompt, 30);
    assert_eq!(failure.report().cost, Dollars::new(0.3));
}
