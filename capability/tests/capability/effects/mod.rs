//! Tests of programs that access state and files, send requests, start other programs, ask models,
//! or write to the trace.

mod ai;
mod append;
mod arithmetic;
mod artifact;
mod commands;
mod dbg;
mod done;
mod glob;
mod http;
mod issue;
mod kv;
mod memory;
mod par;
mod remember;
mod shell;
mod site;
mod vfs;
mod workbook;
mod workbook_org;

use serde_json::Value as Json;
use wattle_rt::{Code, Exit, Outcome};

/// Returns the code and the reason of a program's failure.
fn failure(outcome: &Outcome) -> (Code, String) {
    let Exit::Returned(code) = outcome.exit else { panic!("{:?}", outcome.exit) };
    (code, outcome.failure.as_ref().map(|f| f.failure.reason.clone()).unwrap_or_default())
}

/// Returns the first result of a successful program, parsed as JSON.
fn json(outcome: &Outcome) -> Json {
    assert!(outcome.success(), "{:?} {:?}", outcome.exit, outcome.failure);
    serde_json::from_str(&outcome.texts()[0]).unwrap()
}
