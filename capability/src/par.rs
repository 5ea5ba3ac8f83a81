//! `par`: concurrent runs of catalog programs.
//!
//! Each program runs in its own instance, with exactly the grants of the calling run. A program is
//! stopped when the calling run reaches its deadline or is cancelled. The programs' calls and log
//! lines appear in the calling run's trace. Nesting is limited to three levels. While an exclusive
//! program is running, no other program of the same call runs.

mod team;

use std::num::NonZeroUsize;
use std::sync::Arc;

use serde_json::json;
use wattle_rt::{
    CallFailure, Code, Config, Exit, Failure, Grants, NestedContext, Outcome, Run, Target,
    Unadmitted, capability, quote,
};

use crate::PortFuture;
use crate::arr::{Arrays, Handle};
use crate::json::document::Document;

pub(crate) use team::Team;

capability! {
    /// Concurrent runs of catalog programs with this run's grants.
    pub const PAR: "par" 1;

    /// Runs a catalog program concurrently for each item, passed as its only argument; returns the
    /// outputs in order; fails with the first failure
    #[example = r#"(fs.write "a.txt" "hello") (ret (str.join (par.map "file_read" (str.split "a.txt,a.txt" ",")) "+"))"# => "hello+hello"]
    #[prompt(signature)]
    #[effect(none)]
    async map(program: program, items: arr) with Par -> arr: arr ! ENOENT EBOUND EACCESS EPARSE ENOMEM ETRFM EREMOTE ETIME EBUDGET EEXIST ECANCEL EKIND = map;

    /// Runs a catalog program with the arguments in args and returns its output (several results,
    /// one per line); fails with the program's failure
    #[example = r#"(fs.write "a.txt" "hello") (ret (call "file_read" "a.txt"))"# => "hello"]
    #[prompt(omitted)]
    #[effect(none)]
    async call(program: program, args: arr) with Par -> ptr: bytes ! ENOENT EBOUND EACCESS EPARSE ENOMEM ETRFM EREMOTE ETIME EBUDGET EEXIST ECANCEL EKIND = call;

    /// Runs a catalog program with the arguments in an object, by their names, and returns its output
    #[example = r#"(fs.write "a.txt" "hello") (let $args (val.object)) (val.put_key $args "path" (val.of_str "a.txt")) (ret (par.apply "file_read" $args))"# => "hello"]
    #[prompt(omitted)]
    #[effect(none)]
    async apply(program: program, args: val) with Par -> ptr: bytes ! ENOENT EBOUND EACCESS EPARSE ENOMEM ETRFM EREMOTE ETIME EBUDGET EEXIST ECANCEL EKIND = apply;

    /// Runs calls concurrently, each JSON ["program", "argument", …], and returns, in order, JSON
    /// {result} or {code, error} for each
    #[example = r#"(fs.write "a.txt" "hello") (each $result (par.run (arr.from_json """[["file_read", "a.txt"]]""")) (out $result))"# => "{\"result\":\"hello\"}"]
    #[prompt(name)]
    #[effect(none)]
    async run(calls: programs) with Par -> arr: arr ! EBOUND ENOMEM = run_calls;
}

/// The program that a call runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    /// A catalog program, identified by its name.
    Named(String),
    /// The source of a program.
    Inline(String),
}

/// The port to the catalog. It holds no grants: each call passes the grants for its program.
pub trait Programs: Send + Sync {
    /// Runs a program.
    ///
    /// The call fails if the program cannot be run: with `ENOENT` if the program is unknown, with
    /// `EPARSE` if it does not compile or rejects the arguments, and with `EACCESS` if the grants
    /// lack a capability that it needs.
    fn run(
        &self,
        work: Work,
        args: Vec<String>,
        grants: Arc<Grants>,
        context: NestedContext,
    ) -> PortFuture<'_, Outcome>;

    /// Checks that a program exists and compiles, without running it.
    fn check(&self, work: Work) -> PortFuture<'_, ()>;

    /// Returns true if the program is exclusive: no other program may run at the same time.
    fn is_exclusive(&self, work: &Work) -> bool;

    /// Returns the name in the catalog of the program that is called by `name`, which may be an
    /// alias. Returns `None` if there is no such program.
    fn real_name(&self, name: &str) -> Option<String> {
        Some(name.to_owned())
    }

    /// Returns the arguments of a call in the order of the program's parameters, with the default of
    /// each one that is left out.
    ///
    /// # Errors
    /// `ENOENT` if the program is unknown; `EPARSE` if it has no parameter of that name, or a
    /// required argument is left out.
    fn in_order(&self, name: &str, args: Vec<(String, String)>) -> Result<Vec<String>, Failure>;

    /// Returns the source of the program that has this name in the catalog; an alias is no such
    /// name. Returns `None` if there is no such program, or if its source is not known.
    fn source(&self, _name: &str) -> Option<Arc<str>> {
        None
    }

    /// Returns the name in the catalog of the program with exactly this source, or `None` if there
    /// is none.
    fn name_of(&self, _source: &str) -> Option<String> {
        None
    }
}

/// The `par` grant: a catalog of programs.
pub struct Par {
    /// The catalog.
    pub programs: Arc<dyn Programs>,
    /// Maximum number of concurrent programs per call.
    pub max_concurrent: NonZeroUsize,
}

impl Par {
    /// Creates a grant that allows 16 concurrent programs per call.
    pub fn new(programs: Arc<dyn Programs>) -> Self {
        Par { programs, max_concurrent: crate::MAX_CONCURRENT }
    }
}

impl Config for Par {
    const CAPABILITIES: &'static [&'static str] = &["par", "workbook"];
}

/// A program to run, with its arguments.
pub(crate) struct Call {
    pub(crate) work: Work,
    pub(crate) args: Vec<String>,
}

async fn map(par: Arc<Par>, run: &mut Run, program: String, items: i32) -> Result<Handle, Failure> {
    let call = |item: &Vec<u8>| match str::from_utf8(item) {
        Ok(item) => Ok(Call { work: Work::Named(program.clone()), args: vec![item.to_owned()] }),
        Err(_) => Err(Failure::new(Code::EPARSE, "it is not UTF-8")),
    };
    let calls = Arrays::of(run).get(Handle(items))?.iter().map(call).collect();
    let mut results = Vec::new();
    for (at, result) in
        run_all(par, run, calls, OnFailure::StopLater).await?.into_iter().enumerate()
    {
        match result {
            Ok(result) => results.push(result),
            Err(failure) => {
                let all = Arrays::of(run).get(Handle(items))?;
                let item = String::from_utf8_lossy(all.get(at).map_or(&[][..], Vec::as_slice));
                let reason = format!("item {at} ({}): {}", quote(&item, 60), failure.reason);
                return Err(Failure { reason, ..failure });
            }
        }
    }
    Arrays::make(run, results)
}

async fn call(
    par: Arc<Par>,
    run: &mut Run,
    program: String,
    args: i32,
) -> Result<Vec<u8>, Failure> {
    let args = Arrays::of(run).get(Handle(args))?.iter().map(|arg| {
        String::from_utf8(arg.clone())
            .map_err(|_| Failure::new(Code::EPARSE, "an argument is not UTF-8"))
    });
    let call = args.collect::<Result<_, _>>().map(|args| Call { work: Work::Named(program), args });
    let mut results = run_all(par, run, vec![call], OnFailure::StopLater).await?;
    results.pop().unwrap_or_else(|| Ok(Vec::new()))
}

async fn apply(
    par: Arc<Par>,
    run: &mut Run,
    program: String,
    args: i32,
) -> Result<Vec<u8>, Failure> {
    let args = crate::val::texts_of(run, args)?;
    let args = par.programs.in_order(&program, args);
    let call = args.map(|args| Call { work: Work::Named(program), args });
    let mut results = run_all(par, run, vec![call], OnFailure::StopLater).await?;
    results.pop().unwrap_or_else(|| Ok(Vec::new()))
}

async fn run_calls(
    par: Arc<Par>,
    run: &mut Run,
    calls: Unadmitted<i32>,
) -> Result<Handle, Failure> {
    let (calls, gate) = calls.open(run);
    let calls: Vec<_> =
        Arrays::of(run).get(Handle(calls))?.iter().map(|call| parse_call(call)).collect();
    let admitted = calls.into_iter().map(|call| {
        let (program, args) = call?;
        gate.admit(Target::Program, &program)?;
        Ok(Call { work: Work::Named(program), args })
    });
    let calls = admitted.collect();
    let results = run_all(par, run, calls, OnFailure::Continue).await?;
    let items = results.into_iter().map(|result| match result {
        Ok(bytes) => json!({"result": String::from_utf8_lossy(&bytes)}).to_string(),
        Err(failure) => json!({"code": failure.code.name(), "error": failure.reason}).to_string(),
    });
    Arrays::make(run, items)
}

fn parse_call(text: &[u8]) -> Result<(String, Vec<String>), Failure> {
    let wrong = |why: &str| {
        Failure::new(
            Code::EPARSE,
            format!(
                "a call is JSON such as [\"program\", \"argument\"], not {}: {why}",
                quote(&String::from_utf8_lossy(text), 60)
            ),
        )
    };
    let document = Document::read(&String::from_utf8_lossy(text));
    let parts = match document.map_err(|failure| wrong(&failure.reason))? {
        Document::Array(parts) => parts,
        other => return Err(wrong(&format!("it is {}", other.a_kind()))),
    };
    let mut parts = parts.iter().map(Document::plain);
    let program = parts.next().ok_or_else(|| wrong("it has no program"))?;
    Ok((program, parts.collect()))
}

/// The effect of a call's failure on the other calls.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OnFailure {
    /// Later calls are stopped. Earlier calls continue, so that the reported failure does not
    /// depend on timing.
    StopLater,
    /// All other calls continue.
    Continue,
}

/// Runs the calls concurrently and returns the result of each call, in order. If a failure stops
/// later calls, the results end with that failure.
async fn run_all(
    par: Arc<Par>,
    run: &mut Run,
    calls: Vec<Result<Call, Failure>>,
    on_failure: OnFailure,
) -> Result<Vec<Result<Vec<u8>, Failure>>, Failure> {
    let arguments = calls.iter().flatten().flat_map(|call| &call.args);
    let size = arguments.map(|arg| arg.len() + size_of::<String>()).sum();
    let _held = run.account().hold(size)?;
    let mut team = Team::new(par, run)?;
    let mut done: Vec<Option<Result<Vec<u8>, Failure>>> = Vec::new();
    done.resize_with(calls.len(), || None);
    let mut waiting = calls.into_iter().enumerate();
    let mut end = done.len();
    loop {
        while team.has_capacity()
            && let Some((at, call)) = waiting.next()
            && at < end
        {
            team.start(at, call);
        }
        let Some((at, result)) = team.next(run).await? else { break };
        if result.is_err() && on_failure == OnFailure::StopLater && at < end {
            end = at + 1;
            team.stop_after(at);
        }
        if let Some(slot) = done.get_mut(at) {
            *slot = Some(result.map(|results| results.join(&b'\n')));
        }
    }
    Ok(done.into_iter().take(end).map(|result| result.unwrap_or_else(|| Err(stopped()))).collect())
}

/// Creates the failure for a program that the host stopped before it returned a result.
pub(crate) fn stopped() -> Failure {
    Failure::new(Code::ECANCEL, "the program was stopped from outside")
}

/// Returns a program's results, or the failure that ended the program.
pub(crate) fn result_of(outcome: Outcome) -> Result<Vec<Vec<u8>>, Failure> {
    match outcome.exit {
        Exit::Returned(Code::SUCCESS) => Ok(outcome.results),
        Exit::Returned(code) => {
            let why = match &outcome.failure {
                Some(CallFailure { function: Some(function), failure, .. }) => {
                    format!("`{function}`: {}", failure.reason)
                }
                Some(own) => own.failure.reason.clone(),
                None => code.meaning().to_owned(),
            };
            let reported = if code.name().is_some() { code } else { Code::ETRFM };
            Err(Failure::new(reported, format!("the program returned {code}: {why}")))
        }
        Exit::Trapped(trap) => {
            Err(Failure::new(trap.kind.code(), format!("the program was stopped: {trap}")))
        }
    }
}
