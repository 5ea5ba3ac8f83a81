//! The guard of a run: what decides about its programs before their first instruction, and about what they touch.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use crate::tape::{Halt, RecordedValue, Replay, TapeCursor};
use crate::{Code, Failure, Position, Program, Run, Runtime, Target};

/// A program that is about to run.
#[derive(Clone, Copy)]
pub struct Preview<'a> {
    /// The program, with its authority.
    pub program: &'a Program,
    /// What it is started with.
    pub args: &'a [String],
    runtime: &'a Runtime,
    reel: Option<&'a TapeCursor>,
}

/// What somebody said to a question about a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuestionReply {
    /// This, now or when the program was first about to run.
    Answer(String),
    /// Nobody can say anything now.
    Unanswered,
    /// Nothing yet: the run waits for it, and the words say so.
    Pending(String),
}

impl<'a> Preview<'a> {
    pub(crate) fn new(
        runtime: &'a Runtime,
        program: &'a Program,
        args: &'a [String],
        reel: Option<&'a TapeCursor>,
    ) -> Self {
        Preview { program, args, runtime, reel }
    }

    /// Puts a question about the program to somebody, once: the answer stays with the run, and is there when the run is taken up or
    /// played back. `ask` gives nothing where nobody can answer now; a run that is recorded then waits for the answer.
    pub async fn ask(&self, question: &str, ask: impl Future<Output = Option<String>>) -> QuestionReply {
        let Some(reel) = self.reel else { return ask.await.map_or(QuestionReply::Unanswered, QuestionReply::Answer) };
        let waiting = |Halt(words)| QuestionReply::Pending(words);
        let mark = reel.question(question);
        match reel.tape.begin(&mark) {
            Err(halt) => return waiting(halt),
            Ok(Replay::Recorded(Ok(RecordedValue::Bytes(said))) | Replay::Again(Ok(RecordedValue::Bytes(said)))) => {
                return QuestionReply::Answer(String::from_utf8_lossy(&said).into_owned());
            }
            Ok(_) => {}
        }
        match ask.await {
            None => waiting(reel.tape.suspend(&mark)),
            Some(said) => {
                reel.tape.end(&mark, Ok(RecordedValue::Bytes(said.clone().into_bytes())));
                match reel.tape.flush().await {
                    Ok(()) => QuestionReply::Answer(said),
                    Err(halt) => waiting(halt),
                }
            }
        }
    }

    /// Where in its text each of its uses stands; see [`Runtime::places`].
    pub async fn use_positions(&self) -> Vec<Option<Position>> {
        self.runtime.use_positions(self.program).await
    }
}

/// What a guard will have decided: the guard of one run, or why there is none.
pub type GuardFuture<'a> = Pin<Box<dyn Future<Output = Result<Arc<dyn Guard>, String>> + Send + 'a>>;

/// Narrows what the programs of a run may do. It is part of the run's [`Grants`](crate::Grants), and so holds for every program
/// that is started with them, by whomever.
pub trait Guard: Send + Sync {
    /// Decides about a program before anything of it runs, and gives the guard of this one run of it.
    ///
    /// The error is what the author of the program reads: why it may not run, and what would permit it.
    fn before<'a>(&'a self, preview: Preview<'a>) -> GuardFuture<'a>;

    /// Decides about a call of `function` (such as `http.get`, of the capability `http`) that is about to touch what `text` names.
    /// Called with every argument that names something, with all that a row says it touches, and by functions for what they come
    /// to touch besides.
    ///
    /// # Errors
    /// Why it may not: what the program is told, as `EACCESS`.
    fn call(&self, capability: &str, function: &str, target: Target, text: &str) -> Result<(), String>;
}

/// A run's guard, asked on behalf of one function about what that comes to touch. Clones may be taken along into other threads.
#[derive(Clone)]
pub struct Gate {
    guard: Option<Arc<dyn Guard>>,
    function: &'static str,
}

impl Gate {
    /// The gate of a function of a run, by its full name.
    #[must_use]
    pub fn of(run: &Run, function: &'static str) -> Gate {
        Gate { guard: run.grants().guard().cloned(), function }
    }

    /// The function's full name.
    #[must_use]
    pub fn function(&self) -> &'static str {
        self.function
    }

    /// Whether there is no guard, so that everything is admitted.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.guard.is_none()
    }

    /// Asks about something that the function is about to touch.
    ///
    /// # Errors
    /// `EACCESS` where the guard refuses.
    pub fn admit(&self, target: Target, text: &str) -> Result<(), Failure> {
        let Some(guard) = &self.guard else { return Ok(()) };
        let capability = self.function.split('.').next().unwrap_or_default();
        guard.call(capability, self.function, target, text).map_err(|why| Failure::new(Code::EACCESS, why))
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Gate({})", self.function)
    }
}
