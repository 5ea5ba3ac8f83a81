//! The functions of JavaScript as tools.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use serde::Deserialize;
use serde_json::Value as Json;
use wattle_bindings::{Answer, Approver, Error, Tool, ToolContext, ToolError, answer, approver};

use crate::link::Link;

/// A tool as JavaScript declares it. Its function is that of the same name in the run that calls it.
#[derive(Deserialize)]
pub(crate) struct ToolSpec {
    name: String,
    description: String,
    input: Json,
    output: Option<Json>,
    /// Maximum duration of a call, in milliseconds.
    timeout: Option<f64>,
}

/// The run to which a call of a tool belongs.
#[derive(Clone, Default)]
pub(crate) struct Caller(Option<(Arc<Link>, f64)>);

impl Caller {
    pub(crate) fn new(link: &Arc<Link>, run: f64) -> Caller {
        Caller(Some((Arc::clone(link), run)))
    }

    /// Returns the approver that asks the function of the run.
    pub(crate) fn approver(&self) -> Arc<dyn Approver> {
        let caller = self.clone();
        approver(move |request| {
            let caller = caller.clone();
            async move {
                let Some((link, run)) = caller.0 else { return Answer::No(String::new()) };
                match link.approve(run, serde_json::json!(request)).await {
                    Ok(word) => answer(&word).unwrap_or_else(|why| Answer::No(why.to_string())),
                    Err(exception) => Answer::No(format!("the approval failed: {exception}")),
                }
            }
            .boxed()
        })
    }
}

/// Creates a tool that calls a function of JavaScript.
///
/// # Errors
/// If the timeout is not a duration.
pub(crate) fn tool(spec: ToolSpec) -> Result<Tool, Error> {
    let name = spec.name.clone();
    let call = move |arguments: Json, context: ToolContext| {
        let name = name.clone();
        async move {
            let caller = context.run().of::<Caller>();
            let Some((link, run)) = &caller.0 else {
                return Err(ToolError::new("the run has no functions of JavaScript"));
            };
            link.call(*run, &name, arguments).await.map_err(ToolError::new)
        }
    };
    let mut tool = Tool::with_schema(spec.name, spec.description, spec.input, call);
    if let Some(schema) = spec.output {
        tool = tool.result(schema);
    }
    match spec.timeout {
        Some(timeout) => Ok(tool.timeout(milliseconds(timeout)?)),
        None => Ok(tool),
    }
}

/// Converts a number of milliseconds to a duration.
///
/// # Errors
/// If it is negative, or too large.
pub(crate) fn milliseconds(number: f64) -> Result<Duration, Error> {
    Duration::try_from_secs_f64(number / 1_000.0)
        .map_err(|why| Error::settings(format!("timeout: {why}")))
}
