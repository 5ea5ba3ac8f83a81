//! `workbook`: runs workbooks. A workbook consists of components, which are programs that use each
//! other's results. Independent components run concurrently.
//!
//! The format is described in `docs/workbooks.md`. Each component runs like a program of
//! [`par`](crate::par): in its own instance, with exactly the grants of the calling run, and for no
//! longer than the calling run.

mod graph;
mod org;
mod outline;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value as Json};
use wattle_rt::{Failure, Gate, Run, Target, Unadmitted, capability};

use crate::par::{Par, Team, Work};
use graph::Graph;

pub use outline::{ComponentOutline, lint, outline};

capability! {
    /// Workbooks: programs that use each other's results.
    pub const WORKBOOK: "workbook" 1 for "par";

    /// Runs a workbook, TOML with [components.NAME] (program or source, args, needs) and [exports],
    /// or an Org document whose headlines are components, and returns its exports as a JSON object
    #[example = r#"(ret (workbook.run """
[components.part]
source = '(ret (str.upper (arg 0)))'
args = ["ada"]
[components.whole]
source = '(ret (str.cat "hello " (arg 0)))'
args = [{ from = "part" }]
[exports]
greeting = "whole"
"""))"# => r#"{"greeting":"hello ADA"}"#]
    #[prompt(name)]
    #[effect(none)]
    async run(book: plan) with Par -> ptr: str
        ! EPARSE ENOENT EACCESS EBOUND ENOMEM ETRFM EREMOTE ETIME EBUDGET EEXIST ECANCEL EKIND = perform;
}

/// The results of each component, in the order of the graph's components. The entry of a component
/// that has not succeeded is `None`.
type Outputs = Vec<Option<Vec<Vec<u8>>>>;

async fn perform(
    par: Arc<Par>,
    run: &mut Run,
    book: Unadmitted<String>,
) -> Result<String, Failure> {
    let (book, gate) = book.open(run);
    let graph = Graph::read(&book)?;
    check(&par, &gate, &graph).await?;
    let (outputs, failures) = run_all(par, run, &graph).await?;
    if let Some(code) = failures.values().next().map(|failure| failure.code) {
        return Err(Failure::new(code, describe(&graph, &outputs, &failures)));
    }
    let mut exports = Map::new();
    for (name, source) in &graph.exports {
        let value = graph.value(source, &outputs).map_err(|why| {
            Failure::new(why.code, format!("the export `{name}` has no value: {}", why.reason))
        })?;
        exports.insert(name.clone(), Json::String(value));
    }
    Ok(Json::Object(exports).to_string())
}

/// Checks that each component's program may run, exists and compiles. Reports all components that
/// fail the check.
async fn check(par: &Par, gate: &Gate, graph: &Graph) -> Result<(), Failure> {
    let mut wrong: Vec<String> = Vec::new();
    let mut code = None;
    for component in &graph.components {
        let checked = match &component.work {
            Work::Named(name) => gate.admit(Target::Program, name),
            Work::Inline(_) => gate.admit(Target::Program, ""),
        };
        let checked = match checked {
            Ok(()) => par.programs.check(component.work.clone()).await,
            refused => refused,
        };
        if let Err(failure) = checked {
            wrong.push(format!("component `{}`: {}", component.name, failure.reason));
            code = code.or(Some(failure.code));
        }
    }
    code.map_or(Ok(()), |code| Err(Failure::new(code, wrong.join("\n"))))
}

/// Runs each component as soon as its inputs are available. After the first failure, no more
/// components are started, but running components finish.
async fn run_all(
    par: Arc<Par>,
    run: &mut Run,
    graph: &Graph,
) -> Result<(Outputs, BTreeMap<usize, Failure>), Failure> {
    let mut team = Team::new(par, run)?;
    let mut outputs: Outputs = vec![None; graph.components.len()];
    let mut failures = BTreeMap::new();
    let mut started = BTreeSet::new();
    loop {
        for at in 0..graph.components.len() {
            if !failures.is_empty() || !team.has_capacity() {
                break;
            }
            if graph.is_ready(at, &outputs) && started.insert(at) {
                match graph.call(at, &outputs) {
                    Ok(call) => team.start(at, Ok(call)),
                    Err(failure) => drop(failures.insert(at, failure)),
                }
            }
        }
        match team.next(run).await? {
            None => return Ok((outputs, failures)),
            Some((at, Err(failure))) => drop(failures.insert(at, failure)),
            Some((at, Ok(results))) => {
                if let Some(output) = outputs.get_mut(at) {
                    *output = Some(results);
                }
            }
        }
    }
}

/// Describes the failed components, each with the reason, and lists the components that were not
/// run.
fn describe(graph: &Graph, outputs: &Outputs, failures: &BTreeMap<usize, Failure>) -> String {
    let name = |at: usize| graph.components.get(at).map_or("", |component| component.name.as_str());
    let each = failures
        .iter()
        .map(|(at, failure)| format!("component `{}` failed: {}", name(*at), failure.reason));
    let mut lines: Vec<String> = each.collect();
    let left = outputs
        .iter()
        .enumerate()
        .filter(|(at, output)| output.is_none() && !failures.contains_key(at));
    let left: Vec<String> = left.map(|(at, _)| format!("`{}`", name(at))).collect();
    if !left.is_empty() {
        lines.push(format!("not run: {}", left.join(", ")));
    }
    lines.join("\n")
}
