//! Tests of programs that start other programs.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde_json::json;
use wattle_capability::http::Http;
use wattle_rt::{Code, Exit, Limits, TrapKind};

use super::site::Slow;
use super::{failure, json};
use crate::world::World;

const MAP: &str = r#"
    (local $a i32) (local $e i32)
    (argv 0 $program) (argv 1 $items)
    (call $arr.from_json (local.get $items)) (local.set $e) (local.set $a) (check $e)
    (call $par.map (local.get $program) (local.get $a)) (local.set $e) (local.set $a) (check $e)
    (call $arr.to_json (local.get $a)) (local.set $e) (local.set $a)
    (resv $a) (i32.const 0)"#;

const RUN: &str = r#"
    (local $a i32) (local $e i32)
    (argv 0 $calls)
    (call $arr.from_json (local.get $calls)) (local.set $e) (local.set $a) (check $e)
    (call $par.run (local.get $a)) (local.set $e) (local.set $a) (check $e)
    (call $arr.to_json (local.get $a)) (local.set $e) (local.set $a)
    (resv $a) (i32.const 0)"#;

fn numbers(count: usize) -> String {
    json!((0..count).map(|n| n.to_string()).collect::<Vec<_>>()).to_string()
}

#[tokio::test]
async fn results_come_in_the_order_of_the_items() {
    let world = World::new();
    for (program, items, expected) in [
        ("upper", r#"["a", "b", "", "ä"]"#, json!(["A", "B", "", "Ä"])),
        ("two", r#"["a", "b"]"#, json!(["a\na", "b\nb"])),
        ("upper!", r#"["a", "b"]"#, json!(["A", "B"])),
        ("no such program", "[]", json!([])),
    ] {
        let outcome = world.run(MAP, &[program, items]).await.unwrap();
        assert_eq!(json(&outcome), expected, "{program}");
    }
}

#[tokio::test]
async fn a_hundred_items_take_the_time_of_seven_and_are_in_the_trace() {
    let world = World::new();
    let site = Slow::new(Duration::from_millis(50));
    let grants = Arc::new((*world.grants()).clone().with(Http::new(Arc::clone(&site) as _)));
    // The first run compiles the program.
    world.run_granted(MAP, &["fetch", &numbers(1)], &grants).await.unwrap();
    let started = Instant::now();
    let outcome = world.run_granted(MAP, &["fetch", &numbers(100)], &grants).await.unwrap();
    assert!(started.elapsed() < Duration::from_secs(1), "{:?}", started.elapsed());
    assert_eq!(json(&outcome), json!((0..100).map(|n| n.to_string()).collect::<Vec<_>>()));
    assert_eq!(site.peak.load(Ordering::SeqCst), 16);
    let calls =
        |name: &str| outcome.calls.iter().find(|call| call.function == name).map(|call| call.calls);
    assert_eq!((calls("par.map"), calls("http.get")), (Some(1), Some(100)));
}

#[tokio::test]
async fn the_first_failing_item_is_reported_regardless_of_timing() {
    let world = World::new();
    for _ in 0..20 {
        let items = json!(["http://h/a", "http://h/refused", "http://h/status/500", "http://h/b"])
            .to_string();
        let (code, why) = failure(&world.run(MAP, &["fetch", &items]).await.unwrap());
        assert_eq!(code, Code::EACCESS);
        let expected = "item 1 (\"http://h/refused\"): the program returned EACCESS (3): \
                        `http.get`: refused: that host is not allowed";
        assert_eq!(why, expected);
    }
    let (code, why) = failure(&world.run(MAP, &["nothing", "[\"a\"]"]).await.unwrap());
    assert_eq!(
        (code, why.as_str()),
        (Code::ENOENT, "item 0 (\"a\"): there is no program `nothing`")
    );
}

#[tokio::test]
async fn a_failing_item_stops_later_items() {
    let world = World::new();
    let items = json!(["http://h/refused", "http://h/hang", "http://h/hang"]).to_string();
    let started = Instant::now();
    assert_eq!(failure(&world.run(MAP, &["fetch", &items]).await.unwrap()).0, Code::EACCESS);
    assert!(started.elapsed() < Duration::from_secs(1));
}

#[tokio::test]
async fn calls_fail_independently() {
    let world = World::new();
    let calls = json!([
        ["upper", "a"],
        ["fetch", "http://h/status/404"],
        ["nothing"],
        "upper",
        "[]",
        [1],
        ["upper"],
        ["two!", "x", "y"]
    ]);
    let outcome = world.run(RUN, &[&calls.to_string()]).await.unwrap();
    let items: Vec<serde_json::Value> = json(&outcome)
        .as_array()
        .unwrap()
        .iter()
        .map(|i| serde_json::from_str(i.as_str().unwrap()).unwrap())
        .collect();
    assert_eq!(items[0], json!({"result": "A"}));
    assert_eq!(items[7], json!({"result": "x\nx"}));
    for (at, code, words) in [
        (1, "EREMOTE", "status 404"),
        (2, "ENOENT", "there is no program `nothing`"),
        (3, "EPARSE", "a call is JSON such as [\"program\", \"argument\"]"),
        (4, "EPARSE", "it has no program"),
        (5, "ENOENT", "there is no program `1`"),
        (6, "EBOUND", "the program has no argument 0"),
    ] {
        assert_eq!(items[at]["code"], json!(code), "{}", items[at]);
        assert!(items[at]["error"].as_str().unwrap().contains(words), "{}", items[at]);
        assert!(items[at].get("result").is_none());
    }
}

#[tokio::test]
async fn calls_are_read_like_all_json() {
    let digits = r#"["two!",123456789012345678901234567890]"#;
    let repeated = r#"["upper",{"a":1,"a":2}]"#;
    let calls = json!([digits, repeated]).to_string();
    let outcome = World::new().run(RUN, &[&calls]).await.unwrap();
    let items = json(&outcome).to_string();
    assert!(items.contains("123456789012345678901234567890"), "{items}");
    assert!(items.contains(r#"the key \\\"a\\\" is repeated"#), "{items}");
}

#[tokio::test]
async fn nesting_is_limited_to_three_levels_and_never_deadlocks() {
    let world = Arc::new(World::with(Limits { instances: 2, ..Limits::default() }));
    let (code, why) = failure(&world.run(MAP, &["deeper", "[\"x\"]"]).await.unwrap());
    assert_eq!(code, Code::EBOUND);
    assert!(why.contains("nested 3 deep"), "{why}");
    // All programs finish, although there are more programs than instances and each waits for
    // other programs.
    let runs: Vec<_> = (0..8)
        .map(|_| {
            let world = Arc::clone(&world);
            tokio::spawn(async move { world.run(MAP, &["upper", &numbers(20)]).await })
        })
        .collect();
    for run in runs {
        assert!(run.await.unwrap().unwrap().success());
    }
}

#[tokio::test]
async fn the_deadline_stops_nested_programs() {
    let world = World::with(Limits { time: Duration::from_millis(200), ..Limits::default() });
    for program in ["hang", "spin"] {
        let started = Instant::now();
        let outcome = world.run(MAP, &[program, &numbers(20)]).await.unwrap();
        assert!(started.elapsed() < Duration::from_secs(2), "{program}");
        match &outcome.exit {
            Exit::Trapped(trap) => assert_eq!(trap.kind, TrapKind::Time),
            Exit::Returned(code) => assert_eq!(*code, Code::ETIME),
        }
    }
}

#[tokio::test]
async fn cancellation_stops_nested_programs() {
    let world = Arc::new(World::new());
    let site = Slow::new(Duration::from_secs(60));
    let grants = Arc::new((*world.grants()).clone().with(Http::new(Arc::clone(&site) as _)));
    let run = {
        let (world, grants) = (Arc::clone(&world), Arc::clone(&grants));
        tokio::spawn(async move { world.run_granted(MAP, &["fetch", &numbers(40)], &grants).await })
    };
    while site.active.load(Ordering::SeqCst) < 16 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    run.abort();
    assert!(run.await.unwrap_err().is_cancelled());
    let started = Instant::now();
    while site.active.load(Ordering::SeqCst) > 0 {
        assert!(started.elapsed() < Duration::from_secs(5), "requests go on");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(site.started.load(Ordering::SeqCst), 16);
}

#[tokio::test]
async fn nested_programs_have_the_same_grants_and_state() {
    let world = World::new();
    let counted = r#"
        (local $a i32) (local $e i32) (local $n i32)
        (call $str.split "a b c d e f g h" " ") (drop) (local.set $a)
        (call $par.map "count" (local.get $a)) (local.set $e) (drop) (check $e)
        (call $kv.get "count") (local.set $e) (local.set $n)
        (resv $n) (i32.const 0)"#;
    assert_eq!(world.run(counted, &[]).await.unwrap().texts(), ["8"]);
    // The nested program needs the `kv` grant, although the calling program does not.
    let less = wattle_capability::pure_grants();
    let par = world.grants().config::<wattle_capability::par::Par>().unwrap();
    let less = Arc::new(less.with(wattle_capability::par::Par {
        programs: Arc::clone(&par.programs),
        max_concurrent: par.max_concurrent,
    }));
    let (code, why) = failure(&world.run_granted(MAP, &["count", "[\"a\"]"], &less).await.unwrap());
    assert_eq!(code, Code::EACCESS, "{why}");
}

#[tokio::test]
async fn the_output_of_all_programs_is_limited() {
    let world = World::with(Limits { memory: 1 << 20, ..Limits::default() });
    let item = "x".repeat(100_000);
    let items = json!(vec![item; 4]).to_string();
    let (code, _) = failure(&world.run(MAP, &["two", &items]).await.unwrap());
    assert_eq!(code, Code::ENOMEM);
}
