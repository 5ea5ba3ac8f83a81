//! The guard of a run. It decides whether a program may run, and whether a running program may
//! access a resource.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use crate::tape::{Halt, RecordedValue, Replay, TapeCursor};
use crate::{Code, Failure, Grants, Position, Program, Run, Runtime, Target};

/// The guard's view of a program that is about to run.
#[derive(Clone, Copy)]
pub struct Preview<'a> {
    /// The program, with its authority.
    pub program: &'a Program,
    /// The arguments of the program.
    pub args: &'a [String],
    /// The grants with which the program will run.
    pub grants: &'a Grants,
    runtime: &'a Runtime,
    tape: Option<&'a TapeCursor>,
}

/// The reply to a question about a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuestionReply {
    /// The answer, given now or when the question was first asked.
    Answer(String),
    /// Nobody can answer now.
    Unanswered,
    /// The run is waiting for the answer. The string is a message that says so.
    Pending(String),
}

impl<'a> Preview<'a> {
    pub(crate) fn new(
        runtime: &'a Runtime,
        program: &'a Program,
        args: &'a [String],
        grants: &'a Grants,
        tape: Option<&'a TapeCursor>,
    ) -> Self {
        Preview { program, args, grants, runtime, tape }
    }

    /// Asks a question about the program. The answer is recorded and is reused if the run is
    /// resumed or replayed. The future `ask` returns `None` if nobody can answer now. A run with a
    /// tape then waits for the answer.
    pub async fn ask(
        &self,
        question: &str,
        ask: impl Future<Output = Option<String>>,
    ) -> QuestionReply {
        let Some(cursor) = self.tape else {
            return ask.await.map_or(QuestionReply::Unanswered, QuestionReply::Answer);
        };
        let pending = |Halt(message)| QuestionReply::Pending(message);
        let id = cursor.question(question);
        match cursor.tape.begin(&id) {
            Err(halt) => return pending(halt),
            Ok(
                Replay::Recorded(Ok(RecordedValue::Bytes(answer)))
                | Replay::Again(Ok(RecordedValue::Bytes(answer))),
            ) => {
                return QuestionReply::Answer(String::from_utf8_lossy(&answer).into_owned());
            }
            Ok(_) => {}
        }
        match ask.await {
            None => pending(cursor.tape.suspend(&id)),
            Some(answer) => {
                cursor.tape.end(&id, Ok(RecordedValue::Bytes(answer.clone().into_bytes())));
                match cursor.tape.flush().await {
                    Ok(()) => QuestionReply::Answer(answer),
                    Err(halt) => pending(halt),
                }
            }
        }
    }

    /// Returns true if a source compiles to the code of the program. Comments and the layout of the
    /// two texts may differ.
    pub async fn is_code_of(&self, source: &str) -> bool {
        source == self.program.source()
            || self
                .runtime
                .prepare(source)
                .await
                .is_ok_and(|other| other.is_same_code(self.program))
    }

    /// Returns the source position of each host call that the program may make, like
    /// [`Runtime::use_positions`].
    pub async fn use_positions(&self) -> Vec<Option<Position>> {
        self.runtime.use_positions(self.program).await
    }
}

/// The boxed future of a guard's decision: the guard for one run of a program, or the reason for
/// the denial.
pub type GuardFuture<'a> =
    Pin<Box<dyn Future<Output = Result<Arc<dyn Guard>, String>> + Send + 'a>>;

/// The guard of a run, which restricts the run's programs. It is part of the run's
/// [`Grants`](crate::Grants), so it applies to every program that is started with them, including
/// nested ones.
pub trait Guard: Send + Sync {
    /// Decides whether a program may run, before its first instruction is executed. Returns the
    /// guard for this run of the program.
    ///
    /// The error is a message for the program's author. It says why the program may not run and
    /// what would permit it.
    fn before<'a>(&'a self, preview: Preview<'a>) -> GuardFuture<'a>;

    /// Decides whether `function` (such as `http.get` of the capability `http`) may access the
    /// resource that `text` names. This method is called for every argument that names a resource
    /// and for everything that the function's row declares in `#[touches(…)]`. Functions also call
    /// it for resources that they discover only while they run.
    ///
    /// # Errors
    /// If the call is denied. The program receives the reason with the code `EACCESS`.
    fn call(
        &self,
        capability: &str,
        function: &str,
        target: Target,
        text: &str,
    ) -> Result<(), String>;

    /// Decides whether the program may send the secret with this name.
    ///
    /// # Errors
    /// If the secret is for other programs only. The program receives the reason with the code
    /// `EACCESS`.
    fn secret(&self, name: &str) -> Result<(), String>;

    /// Decides like [`call`](Guard::call) about what one host call accesses. `_number` is the
    /// number of the program's calls to this function so far, including this one, so that a guard can
    /// permit a limited number of calls.
    ///
    /// # Errors
    /// If the call is denied. The program receives the reason with the code `EACCESS`.
    fn numbered_call(
        &self,
        _number: u64,
        capability: &str,
        function: &str,
        (target, text): (Target, &str),
    ) -> Result<(), String> {
        self.call(capability, function, target, text)
    }
}

/// A run's guard, bound to one function. The function asks the guard about resources that it
/// discovers while it runs. Clones may be sent to other threads.
#[derive(Clone)]
pub struct Gate {
    guard: Option<Arc<dyn Guard>>,
    function: &'static str,
}

impl Gate {
    /// Creates the gate for a function, given its full name.
    #[must_use]
    pub fn of(run: &Run, function: &'static str) -> Gate {
        Gate { guard: run.grants().guard().cloned(), function }
    }

    /// Returns the full name of the function.
    #[must_use]
    pub fn function(&self) -> &'static str {
        self.function
    }

    /// Returns true if there is no guard, in which case every access is allowed.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.guard.is_none()
    }

    /// Asks the guard about a resource that the function is about to access.
    ///
    /// # Errors
    /// `EACCESS` if the guard denies access.
    pub fn admit(&self, target: Target, text: &str) -> Result<(), Failure> {
        let Some(guard) = &self.guard else { return Ok(()) };
        let capability = self.function.split('.').next().unwrap_or_default();
        guard
            .call(capability, self.function, target, text)
            .map_err(|why| Failure::new(Code::EACCESS, why))
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Gate({})", self.function)
    }
}
