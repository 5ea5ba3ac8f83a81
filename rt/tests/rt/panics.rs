//! Tests that a panic in a host function ends the run of its program and nothing else.

use std::sync::Arc;
use std::time::Duration;

use wattle_rt::{
    Bug, Code, Exit, Failure, Grants, Limits, NestedContext, Program, Run, RunError, Runtime,
};

wattle_rt::capability! {
    /// Panics in various ways.
    const BREAK: "break" 1;
    /// Panics
    #[example = "(call $break.now) (i32.const 0)"]
    fn now() = now;
    /// Panics after a while
    #[example = "(call $break.later) (i32.const 0)"]
    #[touches(nothing)]
    async later() = later;
    /// Panics or returns a value
    #[example = "(drop (drop (call $break.value 1)))(i32.const 0)"]
    fn value(n: int) -> ptr: str ! EBOUND = value;
    /// Runs another program that panics
    #[example = "(call $break.nested) (i32.const 0)"]
    #[touches(nothing)]
    async nested() with Other = nested;
    /// Does nothing
    #[example = "(call $break.nothing) (i32.const 0)"]
    fn nothing() = nothing;
}

fn now(_run: &mut Run) -> Result<(), Failure> {
    panic!("the first of {}", 3)
}

async fn later(_run: &mut Run) -> Result<(), Failure> {
    tokio::time::sleep(Duration::from_millis(5)).await;
    panic!("after a while")
}

fn value(_run: &mut Run, n: i32) -> Result<String, Failure> {
    if n == 0 { Ok("fine".to_owned()) } else { std::panic::panic_any(n) }
}

fn nothing(_run: &mut Run) -> Result<(), Failure> {
    Ok(())
}

struct Other {
    runtime: Runtime,
    program: Program,
}

impl wattle_rt::Config for Other {
    const CAPABILITIES: &'static [&'static str] = &["break"];
}

async fn nested(other: Arc<Other>, run: &mut Run) -> Result<(), Failure> {
    let (grants, place): (_, NestedContext) = (Arc::clone(run.grants()), run.nested()?);
    let time = Duration::from_secs(10);
    match other.runtime.run_nested(&other.program, &grants, Vec::new(), time, place).await {
        Err(RunError::Bug(bug)) => std::panic::resume_unwind(Box::new(bug)),
        other => other.map(drop).map_err(|error| Failure::new(Code::EREMOTE, error.to_string())),
    }
}

fn runtime() -> Runtime {
    Runtime::new(&[BREAK], Limits { instances: 2, ..Limits::default() }).unwrap()
}

async fn bug(runtime: &Runtime, source: &str) -> Bug {
    let other = Other {
        runtime: runtime.clone(),
        program: runtime.prepare("(call $break.now) (i32.const 0)").await.unwrap(),
    };
    let grants = Arc::new(Grants::new().with(other));
    let program = runtime.prepare(source).await.unwrap();
    match runtime.run(&program, &grants, Vec::new()).await {
        Err(RunError::Bug(bug)) => bug,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_panic_is_a_typed_bug_that_names_the_function() {
    let runtime = runtime();
    let bug = bug(&runtime, "(call $break.nothing) (call $break.now) (i32.const 0)").await;
    assert_eq!((bug.function, bug.message.as_str()), (Some("break.now"), "the first of 3"));
    let words = "the host function `break.now` broke down, which is a bug in wattle: the first of \
                 3; the program was ended, and its files are kept";
    assert_eq!(bug.to_string(), words);
}

#[tokio::test]
async fn a_panic_in_a_function_that_waits_or_returns_a_value_is_a_bug() {
    let runtime = runtime();
    let later = bug(&runtime, "(call $break.later) (i32.const 0)").await;
    assert_eq!((later.function, later.message.as_str()), (Some("break.later"), "after a while"));
    let value = bug(&runtime, "(drop (call $break.value 1)) (drop) (i32.const 0)").await;
    assert_eq!(
        (value.function, value.message.as_str()),
        (Some("break.value"), "a panic without words")
    );
}

#[tokio::test]
async fn a_panic_in_a_nested_program_ends_its_parent_too() {
    let runtime = runtime();
    let bug = bug(&runtime, "(call $break.nested) (i32.const 0)").await;
    assert_eq!((bug.function, bug.message.as_str()), (Some("break.now"), "the first of 3"));
}

#[tokio::test]
async fn other_programs_run_after_panics() {
    let runtime = runtime();
    // Start more runs than the instance pool has slots.
    for _ in 0..12 {
        bug(&runtime, "(call $break.nested) (i32.const 0)").await;
        bug(&runtime, "(call $break.later) (i32.const 0)").await;
    }
    let grants = Arc::new(Grants::without_state(["break"]));
    let program = runtime
        .prepare("(drop (call $break.value 0)) (drop) (call $break.nothing) (i32.const 0)")
        .await
        .unwrap();
    let outcome = runtime.run(&program, &grants, Vec::new()).await.unwrap();
    assert_eq!(outcome.exit, Exit::Returned(Code::SUCCESS));
}
