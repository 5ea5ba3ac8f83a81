//! The outcome of running a program.

use std::fmt;
use std::time::Duration;

use crate::Position;
use crate::tape::{Halt, TimedOut};
use crate::{Code, Failure};

/// The outcome of running a program: its exit, its output and the resources that it used.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The way in which the program ended.
    pub exit: Exit,
    /// The results that the program printed, in order, even if it failed afterwards. By convention
    /// they are UTF-8, but they may be any bytes.
    pub results: Vec<Vec<u8>>,
    /// The result that answers the user and ends the agent's run. `None` if the program gave no
    /// answer or did not return 0.
    pub answer: Option<String>,
    /// The data that the program left for the application. Empty unless the program returned 0.
    pub artifacts: Vec<Artifact>,
    /// The host call that explains the exit: the last call that failed, if the program returned the
    /// code of that failure or trapped because of it.
    pub failure: Option<CallFailure>,
    /// The lines that the program logged.
    pub log: Vec<String>,
    /// The host functions that the program called, in order of their first call, followed by those
    /// that only its nested programs called.
    pub calls: Vec<Calls>,
    /// The fuel used, including that of nested programs, if the runtime meters fuel.
    pub fuel: Option<u64>,
    /// The size of the program's memory when the program ended, in bytes.
    pub memory_bytes: u64,
    /// The time from the start of the program to its end.
    pub duration: Duration,
}

impl Outcome {
    /// Returns true if the program returned 0.
    #[must_use]
    pub fn success(&self) -> bool {
        matches!(self.exit, Exit::Returned(Code::SUCCESS))
    }

    /// Returns the outcome of a program that did not start because the tape halted it.
    pub(crate) fn halted(halt: Halt) -> Outcome {
        Outcome::timed_out(TimedOut { trap: Trap::halted(halt), results: Vec::new() })
    }

    /// Returns the outcome of a program that timed out in an earlier run.
    pub(crate) fn timed_out(TimedOut { trap, results }: TimedOut) -> Outcome {
        Outcome {
            exit: Exit::Trapped(trap),
            results,
            answer: None,
            artifacts: Vec::new(),
            failure: None,
            log: Vec::new(),
            calls: Vec::new(),
            fuel: None,
            memory_bytes: 0,
            duration: Duration::ZERO,
        }
    }

    /// Returns the reason why the program did not succeed, or `None` if it returned 0.
    #[must_use]
    pub fn error(&self) -> Option<ProgramError<'_>> {
        let call = self.failure.as_ref();
        let (code, reason, position) = match &self.exit {
            Exit::Returned(code) if code.is_success() => return None,
            Exit::Returned(code) => (
                code.name().map_or_else(|| code.number().to_string(), str::to_owned),
                call.map_or_else(|| code.meaning(), |call| &call.failure.reason),
                call.and_then(|call| call.position),
            ),
            Exit::Trapped(trap) => {
                (trap.kind.name().to_owned(), trap.message.as_str(), trap.position)
            }
        };
        Some(ProgramError { code, reason, position, function: call.and_then(|call| call.function) })
    }

    /// Returns the results as strings. Invalid UTF-8 becomes the replacement character.
    #[must_use]
    pub fn texts(&self) -> Vec<String> {
        self.results.iter().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect()
    }
}

/// The reason why a program did not succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramError<'a> {
    /// The name of the error code that the program returned, its number if it has no name, or the
    /// name of the kind of trap.
    pub code: String,
    /// The message for the program's author.
    pub reason: &'a str,
    /// The position in the author's source, if it is known.
    pub position: Option<Position>,
    /// The full name of the host function that failed, such as `http.get`, if one did.
    pub function: Option<&'static str>,
}

/// Data that a program leaves for the application that started its run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact {
    /// The artifact's name.
    pub name: String,
    /// The artifact's content.
    pub data: Vec<u8>,
}

/// The way in which a program ended: with a return code or a trap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The program returned this code.
    Returned(Code),
    /// The engine or a host function ended the program.
    Trapped(Trap),
}

/// The reason why the engine or a host function ended a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trap {
    /// The kind of trap.
    pub kind: TrapKind,
    /// The message for the program's author.
    pub message: String,
    /// The position in the author's source, if it is known.
    pub position: Option<Position>,
}

impl Trap {
    pub(crate) fn halted(Halt(message): Halt) -> Trap {
        Trap { kind: TrapKind::Halted, message, position: None }
    }
}

/// The kind of a trap. Each kind has a stable name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrapKind {
    /// An access outside the memory or a table, or too little memory left in the run's account to
    /// start the program.
    Memory,
    /// A division by zero, or an integer overflow in a division or a conversion.
    Arithmetic,
    /// An `unreachable` instruction was executed.
    Unreachable,
    /// Calls were nested too deeply.
    Stack,
    /// The time or the fuel ran out.
    Time,
    /// An indirect call to an empty table entry, or to a function of a different type.
    Call,
    /// A host function without an error result failed.
    Host(Code),
    /// The tape of the run halted the program.
    Halted,
}

impl TrapKind {
    /// Returns the stable name of the kind.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            TrapKind::Memory => "trap-memory",
            TrapKind::Arithmetic => "trap-arithmetic",
            TrapKind::Unreachable => "trap-unreachable",
            TrapKind::Stack => "trap-stack",
            TrapKind::Time => "trap-time",
            TrapKind::Call => "trap-call",
            TrapKind::Host(_) => "trap-host",
            TrapKind::Halted => "trap-halted",
        }
    }

    /// Returns the error code that is closest to this kind of trap.
    #[must_use]
    pub fn code(self) -> Code {
        match self {
            TrapKind::Memory => Code::EBOUND,
            TrapKind::Arithmetic | TrapKind::Unreachable | TrapKind::Call => Code::ETRFM,
            TrapKind::Stack => Code::ENOMEM,
            TrapKind::Time => Code::ETIME,
            TrapKind::Host(code) => code,
            TrapKind::Halted => Code::ECANCEL,
        }
    }
}

impl fmt::Display for Trap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if let Some(position) = self.position {
            write!(f, " (line {}, column {})", position.line, position.column)?;
        }
        Ok(())
    }
}

/// A panic in a host function, which is a bug in Wattle. It ends the run, but the run's files are
/// kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{} broke down, which is a bug in wattle: {message}; the program was ended, and its files are \
     kept",
    self.subject()
)]
pub struct Bug {
    /// The full name of the host function that was called last, or `None` if none was called.
    pub function: Option<&'static str>,
    /// The panic message.
    pub message: String,
}

impl Bug {
    pub(crate) fn new(function: Option<&'static str>, message: &str) -> Bug {
        Bug { function, message: message.to_owned() }
    }

    fn subject(&self) -> String {
        self.function
            .map_or_else(|| "the host".to_owned(), |name| format!("the host function `{name}`"))
    }
}

/// A host call that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallFailure {
    /// The full name of the function, such as `http.get`, or `None` if the program itself failed
    /// with `fail`.
    pub function: Option<&'static str>,
    /// The failure that was returned to the program. If the program itself failed with `fail`, the
    /// failure's reason is followed by the reason of the previous failed call, if there is one.
    pub failure: Failure,
    /// The position of the call in the author's source, if it is known.
    pub position: Option<Position>,
}

/// The number of calls to a host function, and how many of them failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Calls {
    /// The full name of the function.
    pub function: &'static str,
    /// Number of calls.
    pub calls: u64,
    /// Number of failed calls.
    pub failed: u64,
}
