//! QuickJS. Each run has its own runtime and context, which evaluate the program's source.

use std::time::{Duration, Instant};

use rquickjs::{Context, Function, Runtime};

use crate::Result;
use crate::jobs::Job;
use crate::sample::{Peer, kib_each};

/// A job that QuickJS runs.
pub struct QuickJs {
    text: String,
    inputs: Vec<(String, String)>,
}

impl QuickJs {
    /// Prepares a job.
    ///
    /// # Errors
    /// If the program cannot be read.
    pub fn new(job: &Job) -> Result<QuickJs> {
        let inputs = job.inputs().map(|(name, value)| (name.to_owned(), value.to_owned()));
        Ok(QuickJs { text: job.program("js", "js")?, inputs: inputs.collect() })
    }

    /// Evaluates the program in a new context. Returns the context and the result.
    fn evaluate(&self) -> Result<(Context, String)> {
        let context = Context::full(&Runtime::new()?)?;
        let result = context.with(|ctx| {
            let globals = ctx.globals();
            let concat = |a: String, b: String| a + &b;
            globals.set("concat", Function::new(ctx.clone(), concat)?)?;
            globals.set("upper", Function::new(ctx.clone(), |s: String| s.to_uppercase())?)?;
            globals.set("length", Function::new(ctx.clone(), |s: String| s.len() as i32)?)?;
            for (name, value) in &self.inputs {
                globals.set(name.as_str(), value.as_str())?;
            }
            ctx.eval::<String, _>(self.text.as_str())
        })?;
        Ok((context, result))
    }
}

impl Peer for QuickJs {
    async fn run(&mut self) -> Result<(Duration, String)> {
        let started = Instant::now();
        let (context, result) = self.evaluate()?;
        drop(context);
        Ok((started.elapsed(), result))
    }

    /// Keeps contexts alive after their programs have ended. Returns their average memory use.
    async fn live(&mut self, count: usize) -> Result<Option<f64>> {
        kib_each(count, || self.evaluate()).map(Some)
    }
}
