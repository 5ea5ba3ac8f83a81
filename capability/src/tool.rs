//! `tool`: functions of the application that embeds the runtime.
//!
//! A tool runs outside the sandbox, with the access rights of the application. The clock of the
//! calling program is paused until the tool returns.

use std::sync::Arc;

use wattle_rt::{Code, Config, Failure, Run, capability};

use crate::PortFuture;

capability! {
    /// Functions of the application.
    pub const TOOL: "tool" 1;

    /// Returns an application tool's result; the arguments are a JSON object
    #[example = r#"(ret (tool.call "add_user" "{\"name\":\"Ada\"}"))"# => "the result of add_user: {\"name\":\"Ada\"}"]
    #[prompt(omitted)]
    #[effect(once)]
    async call(tool: tool, arguments: str) with Tools -> ptr: str ! ENOENT EPARSE EBOUND EREMOTE ETIME ECANCEL = call;
}

/// The port to the application's tools.
///
/// A failure has the code `ENOENT` if the tool is unknown, `EPARSE` if the arguments are not a JSON
/// object, `EBOUND` if they do not match the tool's schema, `EREMOTE` if the tool failed, and
/// `ETIME` if it took too long.
pub trait ToolBox: Send + Sync {
    /// Calls a tool with a JSON object and returns its result.
    fn call(&self, name: String, arguments: String) -> PortFuture<'_, String>;
}

/// The `tool` grant: the application's tools.
pub struct Tools(pub Arc<dyn ToolBox>);

impl Config for Tools {
    const CAPABILITIES: &'static [&'static str] = &["tool"];
}

/// Maximum size of a result, in bytes.
const MAX_RESULT: usize = 16 << 20;

async fn call(
    tools: Arc<Tools>,
    run: &mut Run,
    name: String,
    arguments: String,
) -> Result<String, Failure> {
    let pause = run.pause();
    let result = tools.0.call(name, arguments).await;
    drop(pause);
    let result = result?;
    if result.len() > MAX_RESULT {
        return Err(Failure::new(Code::EBOUND, "the result of the tool has more than 16 MiB"));
    }
    Ok(result)
}
