//! `par`: programs of the catalog, several at once.
//!
//! Each call runs in an instance of its own, with what the calling run was granted and no more, and ends with it: by its deadline, or
//! when it is cancelled. What the programs call and log stands in the calling run's trace. Programs that start programs may be nested
//! three deep. A program that is marked as exclusive runs beside no other one of the same call.

mod team;

use std::num::NonZeroUsize;
use std::sync::Arc;

use serde_json::json;
use wattle_rt::{Code, Config, Exit, Failure, Grants, Nested, Outcome, Run, Target, Unadmitted, capability, quote};

use crate::PortFuture;
use crate::arr::{Arrays, Handle};

pub(crate) use team::Team;

capability! {
    /// Catalog programs, several at once, each in its own instance with what this run was granted.
    pub const PAR: "par" 1;

    /// Runs a catalog program for each item, its one argument, at the same time, and gives what each puts out (several results one a line), in order; ends with the first failure
    #[example = r#"(fs.write? "a.txt" "hello") (ret (str.join? (par.map? "file_read" (str.split? "a.txt,a.txt" ",")) "+"))"# => "hello+hello"]
    #[effect(none)]
    async map(program: program, items: arr) -> arr: arr ! ENOENT EBOUND EACCESS EPARSE ENOMEM ETRFM EREMOTE ETIME EBUDGET EEXIST ECANCEL = map;

    /// Makes calls, each JSON ["program", "argument", …], at the same time, and gives, in order, JSON {result} for each, {code, error} where it fails
    #[example = r#"(fs.write? "a.txt" "hello") (each $result (par.run? (arr.from_json? """[["file_read", "a.txt"]]""")) (out $result))"# => "{\"result\":\"hello\"}"]
    #[effect(none)]
    async run(calls: programs) -> arr: arr ! EBOUND ENOMEM = run_calls;
}

/// What is to be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    /// The catalog program of that name.
    Named(String),
    /// The program of that text.
    Inline(String),
}

/// The port to the catalog, implemented by whoever wires a run. It holds no grants: those come with each call.
pub trait Programs: Send + Sync {
    /// Runs a program. What keeps it from being run is a failure: no such program (`ENOENT`), a text that does not compile or
    /// arguments that it does not take (`EPARSE`), something that it needs and the grants lack (`EACCESS`).
    fn run(&self, work: Work, args: Vec<String>, grants: Arc<Grants>, place: Nested) -> PortFuture<'_, Outcome>;

    /// Whether a program is there and compiles; runs nothing of it.
    fn check(&self, work: Work) -> PortFuture<'_, ()>;

    /// Whether no other program may run beside that one.
    fn is_exclusive(&self, work: &Work) -> bool;
}

/// Grants `par` on a catalog.
pub struct Par {
    /// The catalog.
    pub programs: Arc<dyn Programs>,
    /// How many programs of one call run at once.
    pub at_once: NonZeroUsize,
}

impl Par {
    /// Grants `par` on those programs, with 16 of a call at once.
    pub fn new(programs: Arc<dyn Programs>) -> Self {
        Par { programs, at_once: crate::AT_ONCE }
    }
}

impl Config for Par {
    const CAPABILITY: &'static str = "par";
}

/// One program to run; a failure where what the caller gave is no call.
pub(crate) type Call = Result<(Work, Vec<String>), Failure>;

async fn map(run: &mut Run, program: String, items: i32) -> Result<Handle, Failure> {
    let items = Arrays::of(run).get(Handle(items))?.clone();
    let calls = items.iter().map(|item| match std::str::from_utf8(item) {
        Ok(item) => Ok((Work::Named(program.clone()), vec![item.to_owned()])),
        Err(_) => Err(Failure::new(Code::EPARSE, "it is not UTF-8")),
    });
    let mut results = Vec::with_capacity(items.len());
    for (at, result) in perform(run, calls.collect(), Failing::Ends).await?.into_iter().enumerate() {
        results.push(result.map_err(|failure| {
            let item = items.get(at).map(Vec::as_slice).unwrap_or_default();
            Failure {
                reason: format!("item {at} ({}): {}", quote(&String::from_utf8_lossy(item), 60), failure.reason),
                ..failure
            }
        })?);
    }
    Arrays::make(run, results)
}

async fn run_calls(run: &mut Run, calls: Unadmitted<i32>) -> Result<Handle, Failure> {
    let (calls, gate) = calls.open(run);
    let calls: Vec<_> = Arrays::of(run).get(Handle(calls))?.iter().map(|call| read_call(call)).collect();
    let admitted = calls.into_iter().map(|call| {
        let (program, args) = call?;
        gate.admit(Target::Program, &program)?;
        Ok((Work::Named(program), args))
    });
    let calls = admitted.collect();
    let results = perform(run, calls, Failing::Stays).await?;
    let items = results.into_iter().map(|result| match result {
        Ok(bytes) => json!({"result": String::from_utf8_lossy(&bytes)}).to_string(),
        Err(failure) => json!({"code": failure.code.name(), "error": failure.reason}).to_string(),
    });
    Arrays::make(run, items)
}

fn read_call(text: &[u8]) -> Result<(String, Vec<String>), Failure> {
    let wrong = |why: &str| {
        Failure::new(
            Code::EPARSE,
            format!(
                "a call is JSON such as [\"program\", \"argument\"], not {}: {why}",
                quote(&String::from_utf8_lossy(text), 60)
            ),
        )
    };
    let parts: Vec<serde_json::Value> = serde_json::from_slice(text).map_err(|error| wrong(&error.to_string()))?;
    let mut parts = parts.iter().map(crate::json::plain);
    let program = parts.next().ok_or_else(|| wrong("it names no program"))?;
    Ok((program, parts.collect()))
}

/// What the failure of one call means for the others.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Failing {
    /// Those behind it end; those before it go on, so that which failure is told does not depend on who is faster.
    Ends,
    /// Nothing.
    Stays,
}

/// Performs the calls, some at once, and gives what each puts out; where a failure ends the others, up to the first one that failed.
async fn perform(run: &mut Run, calls: Vec<Call>, failing: Failing) -> Result<Vec<Result<Vec<u8>, Failure>>, Failure> {
    let mut team = Team::new(run)?;
    let mut done: Vec<Option<Result<Vec<u8>, Failure>>> = Vec::new();
    done.resize_with(calls.len(), || None);
    let mut waiting = calls.into_iter().enumerate();
    let mut end = done.len();
    loop {
        while team.has_place()
            && let Some((at, call)) = waiting.next()
            && at < end
        {
            team.start(at, call);
        }
        let Some((at, result)) = team.next(run).await? else { break };
        if result.is_err() && failing == Failing::Ends && at < end {
            end = at + 1;
            team.end_behind(at);
        }
        if let Some(slot) = done.get_mut(at) {
            *slot = Some(result.map(|results| results.join(&b'\n')));
        }
    }
    Ok(done.into_iter().take(end).map(|result| result.unwrap_or_else(|| Err(stopped()))).collect())
}

/// That a program came to no end of its own.
pub(crate) fn stopped() -> Failure {
    Failure::new(Code::ECANCEL, "the program was stopped from outside")
}

/// What a program put out, or why it did not come to its end.
pub(crate) fn result_of(outcome: Outcome) -> Result<Vec<Vec<u8>>, Failure> {
    match outcome.exit {
        Exit::Returned(Code::SUCCESS) => Ok(outcome.results),
        Exit::Returned(code) => {
            let why = match &outcome.failure {
                Some(call) => format!("`{}`: {}", call.function, call.failure.reason),
                None => code.meaning().to_owned(),
            };
            let told = if code.name().is_some() { code } else { Code::ETRFM };
            Err(Failure::new(told, format!("the program left with {code}: {why}")))
        }
        Exit::Trapped(trap) => Err(Failure::new(trap.kind.code(), format!("the program was stopped: {trap}"))),
    }
}
