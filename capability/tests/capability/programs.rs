//! Tests of programs with the real host functions: their outputs, codes and failure messages.

use wattle_rt::{Code, Exit, Outcome};

use crate::world::World;

fn returned(outcome: &Outcome) -> i32 {
    match &outcome.exit {
        Exit::Returned(code) => code.number(),
        Exit::Trapped(trap) => panic!("trapped: {trap}"),
    }
}

async fn results(world: &World, text: &str, args: &[&str]) -> Vec<String> {
    let outcome = world.run(text, args).await.unwrap_or_else(|why| panic!("{why}\n{text}"));
    assert_eq!(returned(&outcome), 0, "{:?}\n{text}", outcome.failure);
    outcome.texts()
}

const FETCH: &str = r#"
(argv 0 $url_ptr)
(call $http.get (local.get $url_ptr))
(local $body_err i32) (local $body_ptr i32)
(local.set $body_err)
(local.set $body_ptr)
(check $body_err)
(resv $body_ptr)
(i32.const 0)
"#;

#[tokio::test]
async fn a_page_is_fetched() {
    assert_eq!(results(&World::new(), FETCH, &["http://host/page"]).await, ["GET page "]);
}

#[tokio::test]
async fn a_text_is_summarized() {
    let text = r#"
(argv 0 $body_ptr)
(call $ai.assist (local.get $body_ptr) "Summarize in one sentence." (i32.const 0))
(local $sum_err i32) (local $sum_ptr i32)
(local.set $sum_err) (local.set $sum_ptr)
(check $sum_err)
(resv $sum_ptr)
(i32.const 0)
"#;
    assert_eq!(
        results(&World::new(), text, &["a text"]).await,
        ["Summarize in one sentence. a text"]
    );
}

#[tokio::test]
async fn failures_have_code_reason_and_position() {
    let world = World::new();
    for (text, args, code, function, line, words) in [
        (FETCH, &["http://host/status/500"][..], Code::EREMOTE, "http.get", 3, "status 500"),
        (FETCH, &["http://host/status/404"], Code::EREMOTE, "http.get", 3, "status 404"),
        (FETCH, &["http://host/refused"], Code::EACCESS, "http.get", 3, "not allowed"),
        (FETCH, &[], Code::EBOUND, "sys.argv", 2, "no argument 0"),
        (
            "(local $e i32)\n(call $fs.read \"../secret\")\n(local.set $e)\n(drop)\n(local.get $e)",
            &[],
            Code::EACCESS,
            "fs.read",
            2,
            "../secret is outside the run's folder; only files in it can be read",
        ),
        (
            "(call $fs.write \"a/../../b\" \"x\")",
            &[],
            Code::EACCESS,
            "fs.write",
            1,
            "a/../../b is outside the run's folder; only files in it can be written",
        ),
        (
            "(local $e i32)\n(call $kv.get \"nothing\")\n(local.set $e)\n(drop)\n(check \
             $e)\n(i32.const 0)",
            &[],
            Code::ENOENT,
            "kv.get",
            2,
            "nothing",
        ),
        (
            "(local $e i32)\n(call $str.to_int \"12x\")\n(local.set $e)\n(drop)\n(local.get $e)",
            &[],
            Code::EPARSE,
            "str.to_int",
            2,
            "12x",
        ),
        (
            "(local $e i32)\n(call $json.get \"{}\" \"a\")\n(local.set $e)\n(drop)\n(local.get $e)",
            &[],
            Code::ENOENT,
            "json.get",
            2,
            "is an empty object",
        ),
    ] {
        let outcome = world.run(text, args).await.unwrap_or_else(|why| panic!("{why}\n{text}"));
        assert_eq!(outcome.exit, Exit::Returned(code), "{text}");
        let failure = outcome.failure.unwrap();
        assert_eq!(failure.function, Some(function));
        assert_eq!(failure.position.unwrap().line, line, "{text}");
        assert!(failure.failure.reason.contains(words), "{}", failure.failure.reason);
    }
}

#[tokio::test]
async fn a_programs_own_code_has_no_failed_call() {
    let world = World::new();
    let outcome = world.run("(resv \"so far\") (i32.const 42)", &[]).await.unwrap();
    assert_eq!(outcome.exit, Exit::Returned(Code(42)));
    assert_eq!(outcome.failure, None);
    assert_eq!(outcome.texts(), ["so far"]);
    // A handled failure is not reported as the reason for another exit code.
    let outcome =
        world.run("(call $kv.get \"k\") (drop) (drop) (i32.const 42)", &[]).await.unwrap();
    assert_eq!(outcome.failure, None);
}

/// Returns a program that calls a function and prints its results, which have the given shape.
fn call(function: &str, operands: &str, shape: &str) -> String {
    let call = format!("(call ${function} {operands})");
    match shape {
        "text" => format!(
            "(local $e i32) (local $p i32) {call} (local.set $e) (local.set $p) (check $e) (resv \
             $p) (i32.const 0)"
        ),
        "array" => format!(
            "(local $e i32) (local $p i32) {call} (local.set $e) (local.set $p) (check $e) (call \
             $arr.to_json (local.get $p)) (local.set $e) (local.set $p) (check $e) (resv $p) \
             (i32.const 0)"
        ),
        "int" => format!("(resv (call $str.from_int {call})) (i32.const 0)"),
        "int, err" => format!(
            "(local $e i32) (local $n i32) {call} (local.set $e) (local.set $n) (check $e) (resv \
             (call $str.from_int (local.get $n))) (i32.const 0)"
        ),
        "float, err" => format!(
            "(local $e i32) (local $x f64) {call} (local.set $e) (local.set $x) (check $e) (resv \
             (call $str.from_float (local.get $x) (i32.const 3))) (i32.const 0)"
        ),
        "pointer" => format!("(resv {call}) (i32.const 0)"),
        other => panic!("{other}"),
    }
}

/// The tested calls. Each row contains a function, its operands, the shape of its results, and the
/// expected output or code.
const CALLS: &[(&str, &str, &str, Result<&str, Code>)] = &[
    ("kv.get", "\"missing\"", "text", Err(Code::ENOENT)),
    ("kv.get", "\"\"", "text", Err(Code::EBOUND)),
    ("kv.incr", "\"n\" (i32.const 3)", "int, err", Ok("3")),
    ("http.post", "\"http://host/p\" \"data\" \"text/plain\"", "text", Ok("POST p data")),
    (
        "http.request",
        "\"put\" \"http://host/status/404\" (i32.const 0) \"x\"",
        "text",
        Ok("{\"status\":404,\"headers\":{},\"body\":\"PUT status/404 x\"}"),
    ),
    ("http.request", "\"GET\" \"http://host/\" \"[]\" \"\"", "text", Err(Code::EPARSE)),
    ("fs.read", "\"none.txt\"", "text", Err(Code::ENOENT)),
    ("ai.assist", "\"text\" \"Do it.\" \"{\\\"temperature\\\":0.1}\"", "text", Ok("Do it. text")),
    ("ai.assist", "\"text\" \"Do it.\" \"\"", "text", Ok("Do it. text")),
    ("ai.assist", "\"text\" \"Do it.\" \"{\\\"temprature\\\":1}\"", "text", Err(Code::EPARSE)),
];

#[tokio::test]
async fn functions_return_the_declared_results() {
    let mut wrong = Vec::new();
    for (function, operands, shape, expected) in CALLS {
        let world = World::new();
        let text = call(function, operands, shape);
        match (world.run(&text, &[]).await, expected) {
            (Ok(outcome), Ok(expected)) if outcome.success() && outcome.texts() == [*expected] => {}
            (Ok(outcome), Err(code))
                if outcome.exit == Exit::Returned(*code) && outcome.failure.is_some() => {}
            (found, expected) => wrong
                .push(format!("{function} {operands}\n  found {found:?}\n  expected {expected:?}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn loops_helpers_and_state_work_together() {
    let world = World::new();
    let text = r#"
;; Counts the words of the argument and keeps the count.
(func $is_blank (param $s i32) (result i32)
  (i32.eqz (call $str.len (local.get $s))))
(argv 0 $text)
(local $words i32) (local $err i32) (local $i i32) (local $word i32) (local $counts i32)
(call $str.split (local.get $text) " ")
(local.set $err) (local.set $words) (check $err)
(local.set $counts (call $map.new))
(block $done
  (loop $next
    (br_if $done (i32.ge_s (local.get $i) (call $arr.len (local.get $words))))
    (call $arr.get (local.get $words) (local.get $i))
    (local.set $err) (local.set $word) (check $err)
    (if (i32.eqz (call $is_blank (local.get $word)))
      (then (drop (call $map.incr (local.get $counts) (local.get $word) (i32.const 1)))))
    (local.set $i (i32.add (local.get $i) (i32.const 1)))
    (br $next)))
(local $json i32)
(call $map.to_json (local.get $counts))
(local.set $err) (local.set $json) (check $err)
(call $fs.write "out/counts.json" (local.get $json))
(local.set $err) (check $err)
(resv (local.get $json))
(call $fs.read "out/counts.json")
(local.set $err) (local.set $json) (check $err)
(resv $json)
(i32.const 0)
"#;
    let out = results(&world, text, &["to be or  not to be"]).await;
    assert_eq!(out, [r#"{"to":"2","be":"2","or":"1","not":"1"}"#; 2]);
    assert_eq!(&*world.files.read("out/counts.json").unwrap(), out[0].as_bytes());
}

#[tokio::test]
async fn programs_that_differ_in_a_literal_share_nothing() {
    let world = World::new();
    assert_eq!(results(&world, "(resv \"one\") (i32.const 0)", &[]).await, ["one"]);
    assert_eq!(results(&world, "(resv \"two\") (i32.const 0)", &[]).await, ["two"]);
    assert_eq!(world.runtime.cached(), 2);
    assert_eq!(results(&world, "(resv \"one\")   (i32.const 0)", &[]).await, ["one"]);
    assert_eq!(world.runtime.cached(), 2, "whitespace does not change the module");
}

#[tokio::test]
async fn concurrent_first_uses_compile_once_and_share_no_state() {
    let world = std::sync::Arc::new(World::new());
    let text = "(argv 0 $a) (local $m i32) (local.set $m (call $map.new)) (resv $a) (resv (call \
                $str.from_int (local.get $m))) (i32.const 0)";
    let runs = (0..64).map(|n| {
        let world = std::sync::Arc::clone(&world);
        tokio::spawn(async move { (n, results(&world, text, &[&n.to_string()]).await) })
    });
    for run in runs.collect::<Vec<_>>() {
        let (n, out) = run.await.unwrap();
        assert_eq!(out, [n.to_string(), "1".to_owned()]);
    }
    assert_eq!(world.runtime.cached(), 1);
}

#[tokio::test]
async fn a_capability_that_is_not_granted_is_refused_before_anything_runs() {
    let world = World::new();
    let program = world
        .runtime
        .prepare("(resv \"ran\") (call $http.get \"http://x/\") (drop) (drop) (i32.const 0)")
        .await
        .unwrap();
    let grants = wattle_capability::pure_grants();
    let refused =
        world.runtime.run(&program, &std::sync::Arc::new(grants), Vec::new()).await.unwrap_err();
    assert_eq!(refused.to_string(), "the program needs `http`, not granted to this run");
}
