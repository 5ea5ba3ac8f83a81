//! Tests the event stream of a run tree: every recorded event appears once, always in the same
//! order.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};
use wattle_agent::host::TenantStore;
use wattle_agent::host::capability::policy::Policy;
use wattle_server::TenantParts;

use crate::api::wat;
use crate::client::Client;
use crate::delegates::{Office, agents, office};
use crate::world::{TOKEN, World, bare, store};

/// A frame of a stream: its `id` and its event.
type Frame = (Option<String>, Json);

async fn follow(world: &World, run: &str, last: Option<&str>) -> Client {
    let mut client = world.client().await;
    let authorization = format!("Authorization: Bearer {TOKEN}");
    let last = last.map(|last| format!("Last-Event-ID: {last}"));
    let headers: Vec<&str> =
        ["Host: localhost", &authorization].into_iter().chain(last.as_deref()).collect();
    client.send(bare(&format!("GET /api/run/{run}/stream?tree=true"), &headers)).await;
    assert_eq!(client.head().await.status, 200);
    client
}

async fn whole(world: &World, run: &str, last: Option<&str>) -> Vec<Frame> {
    let (mut client, mut frames) = (follow(world, run, last).await, Vec::new());
    while let Some(frame) = client.identified().await {
        frames.push(frame);
    }
    frames
}

/// Returns the recorded events of a stream with their ids.
fn kept(frames: &[Frame]) -> Vec<(String, Json)> {
    let kept = frames.iter().filter_map(|(id, event)| Some((id.clone()?, event.clone())));
    kept.collect()
}

/// Checks that the stream contains the recorded events of each run in order, each exactly once.
async fn check(office: &Office, run: &str, frames: &[Frame]) {
    let mut by_run: BTreeMap<String, Vec<Json>> = BTreeMap::new();
    for (id, event) in kept(frames) {
        let of = event["run_id"].as_str().unwrap().to_owned();
        assert_eq!(id, format!("{of}:{}", event["seq"]));
        assert_eq!(event["root_run_id"], run);
        by_run.entry(of).or_default().push(event);
    }
    let children = office.children(run).await;
    let ids: BTreeSet<&str> =
        children.iter().map(|child| child["id"].as_str().unwrap()).chain([run]).collect();
    assert_eq!(by_run.keys().map(String::as_str).collect::<BTreeSet<_>>(), ids);
    for (of, events) in by_run {
        let own = office.world.api(&format!("GET /api/run/{of}/events"), "").await.json();
        assert_eq!(own["events"].as_array().unwrap(), &events, "the events of {of}");
    }
}

/// Answers the model requests of a run tree with three levels, whose agents work concurrently.
async fn play(office: &mut Office, run: &str) {
    let parallel = "(ret (str.join (par.map \"ask_coder\" (str.split \"a,b\" \",\")) \"+\"))";
    office.asked("boss").await.say(&wat(parallel));
    let (one, other) = (office.asked("coder").await, office.asked("coder").await);
    one.say("ToolCall::Catalog(\"ask_clerk\", \"look\")");
    other.say("ToolCall::Catalog(\"ask_clerk\", \"look\")");
    let (one, other) = (office.asked("clerk").await, office.asked("clerk").await);
    one.say(&wat("(fs.write \"a.txt\" \"x\")"));
    other.say(&wat("(out 2)"));
    for _ in 0..2 {
        office.asked("clerk").await.respond("seen");
    }
    for _ in 0..2 {
        office.asked("coder").await.respond("coded");
    }
    office.asked("boss").await.respond("done");
    office.world.until(run, "done").await;
}

#[tokio::test]
async fn whoever_comes_back_at_any_event_gets_every_later_event_once() {
    let mut office = Office::open().await;
    let run = office.boss().await;
    let mut live = follow(&office.world, &run, None).await;
    play(&mut office, &run).await;
    let mut seen = Vec::new();
    while let Some(frame) = live.identified().await {
        seen.push(frame);
    }
    check(&office, &run, &seen).await;
    let all = kept(&seen);
    assert_eq!(office.children(&run).await.len(), 4);
    assert!(seen.iter().any(|(id, event)| id.is_none() && event["type"] == "delta"), "{seen:?}");
    assert_eq!(all.last().unwrap().1["text"], "done");
    // A child run's events lie between the start and the result of the call that started it.
    let at = |run: &str, kind: &str| {
        let is = |(_, event): &(String, Json)| event["run_id"] == run && event["type"] == kind;
        all.iter().position(is).unwrap()
    };
    for child in office.children(&run).await {
        let (id, parent) = (child["id"].as_str().unwrap(), child["parent"].as_str().unwrap());
        assert!(at(parent, "tool_start") < at(id, "thinking"));
        assert!(at(id, "response") < at(parent, "tool_result"));
    }
    // The order is the same for every client, from any event onwards.
    assert_eq!(whole(&office.world, &run, None).await, seen_kept(&all));
    for (at, (id, _)) in all.iter().enumerate() {
        let rest = whole(&office.world, &run, Some(id)).await;
        assert_eq!(rest, seen_kept(&all[at + 1..]), "after the event {at}, {id}");
    }
}

fn seen_kept(events: &[(String, Json)]) -> Vec<Frame> {
    events.iter().map(|(id, event)| (Some(id.clone()), event.clone())).collect()
}

#[tokio::test]
async fn clients_that_break_off_all_the_time_miss_nothing_of_a_running_tree() {
    let mut office = Office::open().await;
    let run = office.boss().await;
    let address = office.world.address;
    let of = run.clone();
    // This client reads one recorded event per connection.
    let restless = tokio::spawn(async move {
        let (mut events, mut last): (Vec<Frame>, Option<String>) = (Vec::new(), None);
        loop {
            let mut client = Client::connect(address).await;
            let authorization = format!("Authorization: Bearer {TOKEN}");
            let from = last.as_ref().map(|last| format!("Last-Event-ID: {last}"));
            let headers: Vec<&str> =
                ["Host: localhost", &authorization].into_iter().chain(from.as_deref()).collect();
            client.send(bare(&format!("GET /api/run/{of}/stream?tree=true"), &headers)).await;
            assert_eq!(client.head().await.status, 200);
            let next = loop {
                match client.identified().await {
                    Some((Some(id), event)) => break Some((id, event)),
                    Some((None, _)) => {}
                    None => break None,
                }
            };
            let Some((id, event)) = next else { return events };
            last = Some(id.clone());
            events.push((Some(id), event));
        }
    });
    play(&mut office, &run).await;
    let events = restless.await.unwrap();
    check(&office, &run, &events).await;
    assert_eq!(events, whole(&office.world, &run, None).await);
}

#[tokio::test]
async fn the_stream_of_a_tree_goes_on_after_the_server_was_stopped() {
    let (agents, _folder) = agents("");
    let store = store();
    let open = async |store: TenantStore| {
        let agents = agents.clone();
        World::of(TenantParts::new(store), move |app| app.with_agents(agents), |_| {}).await
    };
    let world = open(store.clone()).await;
    let mut office = Office::of(world, store.clone());
    let run = office.boss().await;
    let mut client = follow(&office.world, &run, None).await;
    office.asked("boss").await.say("ToolCall::Catalog(\"ask_coder\", \"one\")");
    office.asked("coder").await.say("ToolCall::Catalog(\"ask_clerk\", \"two\")");
    office.asked("clerk").await.say(&wat("(out 1)"));
    let question = office.asked("clerk").await;
    let mut seen = Vec::new();
    while seen.last().is_none_or(|(_, event): &Frame| event["type"] != "tool_result") {
        seen.push(client.identified().await.unwrap());
    }
    // The server stops during a model request of the clerk's run.
    office.world.shutdown.cancel();
    let (id, end) = client.identified().await.unwrap();
    assert_eq!((id, &end["type"]), (None, &json!("suspended")));
    question.abandoned().await;
    let Office { world, .. } = office;
    world.ended().await;

    let mut office = Office::of(open(store.clone()).await, store);
    let last = kept(&seen).last().unwrap().0.clone();
    let mut client = follow(&office.world, &run, Some(&last)).await;
    office.asked("clerk").await.respond("seen");
    office.asked("coder").await.respond("coded");
    office.asked("boss").await.respond("done");
    while let Some(frame) = client.identified().await {
        seen.push(frame);
    }
    check(&office, &run, &seen).await;
    assert_eq!(kept(&seen).last().unwrap().1["text"], "done");
    assert_eq!(seen_kept(&kept(&seen)), whole(&office.world, &run, None).await);
}

#[tokio::test]
async fn a_parked_tree_keeps_its_stream_open_until_it_is_answered() {
    let policy = Policy::new(Vec::new(), vec!["write:*".parse().unwrap()], Vec::new());
    let mut office = office("", policy).await;
    let run = office.boss().await;
    let mut client = follow(&office.world, &run, None).await;
    office.asked("boss").await.say("ToolCall::Catalog(\"ask_coder\", \"one\")");
    office.asked("coder").await.say(&wat("(fs.write \"a.txt\" \"x\")"));
    let mut seen = Vec::new();
    let parked = |event: &Json| event["type"] == "parked" && event["run_id"] == run;
    while !seen.last().is_some_and(|(_, event): &Frame| parked(event)) {
        seen.push(client.identified().await.unwrap());
    }
    let call = seen.last().unwrap().1["call"].as_str().unwrap().to_owned();
    let (child, call) = call.split_once('/').unwrap();
    office.world.until(&run, "parked").await;
    let answer = format!("POST /api/run/{child}/approvals/{call}");
    assert_eq!(office.world.api(&answer, r#"{"approve":true}"#).await.head.status, 200);
    office.asked("coder").await.respond("written");
    office.asked("boss").await.respond("done");
    while let Some(frame) = client.identified().await {
        seen.push(frame);
    }
    check(&office, &run, &seen).await;
}

#[tokio::test]
async fn a_cancelled_tree_has_the_ends_of_its_child_runs() {
    let mut office = Office::open().await;
    let run = office.boss().await;
    let mut client = follow(&office.world, &run, None).await;
    office.asked("boss").await.say("ToolCall::Catalog(\"ask_coder\", \"one\")");
    let question = office.asked("coder").await;
    office.world.api(&format!("DELETE /api/run/{run}"), "").await;
    question.abandoned().await;
    let mut seen = Vec::new();
    while let Some(frame) = client.identified().await {
        seen.push(frame);
    }
    let ends = seen.iter().filter(|(_, event)| event["stop"] == "cancelled").count();
    assert_eq!(ends, 2, "{seen:?}");
    check(&office, &run, &seen).await;
}

#[tokio::test]
async fn a_parked_tree_that_is_cancelled_has_the_ends_of_its_child_runs() {
    let policy = Policy::new(Vec::new(), vec!["write:*".parse().unwrap()], Vec::new());
    let mut office = office("", policy).await;
    let run = office.boss().await;
    office.asked("boss").await.say("ToolCall::Catalog(\"ask_coder\", \"one\")");
    office.asked("coder").await.say(&wat("(fs.write \"a.txt\" \"x\")"));
    office.world.until(&run, "parked").await;
    let mut client = follow(&office.world, &run, None).await;
    office.world.api(&format!("DELETE /api/run/{run}"), "").await;
    let mut seen = Vec::new();
    while let Some(frame) = client.identified().await {
        seen.push(frame);
    }
    let ends = seen.iter().filter(|(_, event)| event["stop"] == "cancelled").count();
    assert_eq!(ends, 2, "{seen:?}");
    check(&office, &run, &seen).await;
}

#[tokio::test]
async fn a_tree_is_followed_from_its_top_and_from_its_own_events() {
    let mut office = Office::open().await;
    let run = office.boss().await;
    office.asked("boss").await.say("ToolCall::Catalog(\"ask_clerk\", \"one\")");
    office.asked("clerk").await.respond("seen");
    office.asked("boss").await.respond("done");
    office.world.until(&run, "done").await;
    let stranger = office.world.start(&json!({"prompt": "go"})).await;
    office.world.question().await.respond("hello");
    office.world.until(&stranger, "done").await;
    let child = office.children(&run).await[0]["id"].as_str().unwrap().to_owned();
    let ask = async |run: &str, after: &str| {
        let line = format!("GET /api/run/{run}/stream?tree=true&after={after}");
        office.world.api(&line, "").await.refused(422, "invalid_field")
    };
    assert!(ask(&child, "0").await.contains(&format!("follow the tree of the run `{run}`")));
    for after in ["7", "x:", ":1", "x:-1", &format!("{run}:99"), &format!("{stranger}:1")] {
        let message = ask(&run, after).await;
        let known = ["expected `RUN:SEQ`", "the tree has no event"];
        assert!(known.iter().any(|known| message.contains(known)), "{after}: {message}");
    }
    office.world.api("GET /api/run/nobody/stream?tree=true", "").await.refused(404, "not_found");
    // The stream of a single run contains only its own events.
    let own = office.world.follow(&run, 0).await.events().await;
    assert!(own.iter().all(|event| event["run_id"] == run));
}
