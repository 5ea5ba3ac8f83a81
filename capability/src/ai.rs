//! `ai`: a model's help inside a program, within a budget.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde::Deserialize;
use wattle_rt::{Code, Config, Failure, Run, capability};

capability! {
    /// A model's help, within a budget of calls.
    pub const AI: "ai" 1;

    /// Gives the model's answer to an instruction about a text; options is 0 or JSON {temperature, max_tokens}
    #[example = "(call $ai.assist \"a long text\" \"Summarize in one sentence.\" (i32.const 0)) (drop) (call $sys.resv) (i32.const 0)"]
    async assist(text: str, instruction: str, options: opt_str) -> ptr: str ! EREMOTE EBUDGET EPARSE = assist;
}

/// What a program may set for one request.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// 0 to 2; the run's own where absent.
    pub temperature: Option<f32>,
    /// The most tokens of the answer; the run's own where absent.
    pub max_tokens: Option<u32>,
}

/// The port to a model, implemented by whoever wires a run.
pub trait Inference: Send + Sync {
    /// Answers an instruction about a text. A provider that fails is told as `EREMOTE`.
    fn assist<'a>(
        &'a self,
        text: &'a str,
        instruction: &'a str,
        options: &'a Options,
    ) -> Pin<Box<dyn Future<Output = Result<String, Failure>> + Send + 'a>>;
}

/// Grants `ai` on a model, for so many calls in all the runs that share this grant.
pub struct Ai {
    model: Arc<dyn Inference>,
    budget: u32,
    used: AtomicU32,
}

impl Ai {
    /// A grant of `budget` calls.
    pub fn new(model: Arc<dyn Inference>, budget: u32) -> Self {
        Ai { model, budget, used: AtomicU32::new(0) }
    }
}

impl Config for Ai {
    const CAPABILITY: &'static str = "ai";
}

async fn assist(run: &mut Run, text: String, instruction: String, options: Option<String>) -> Result<String, Failure> {
    let options = match options.as_deref().map(str::trim) {
        None | Some("") => Options::default(),
        Some(json) => serde_json::from_str(json).map_err(|e| {
            Failure::new(Code::EPARSE, format!("the options are no JSON object of known settings: {e}"))
        })?,
    };
    let ai = run.config::<Ai>()?;
    // Counted at the attempt, so that failing calls cannot go on without end.
    if ai
        .used
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| (used < ai.budget).then_some(used + 1))
        .is_err()
    {
        let budget = ai.budget;
        return Err(Failure::new(Code::EBUDGET, format!("the run's {budget} model calls are used up")));
    }
    ai.model.assist(&text, &instruction, &options).await
}
