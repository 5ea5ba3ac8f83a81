//! What a run of a program came to.

use std::fmt;
use std::time::Duration;

use crate::Position;
use crate::tape::{Halt, Stopped};
use crate::{Code, Failure};

/// What a run of a program came to: how it ended, what it put out, what it used.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// How it ended.
    pub exit: Exit,
    /// What it put out, in order, also where it failed in the end. Text by convention, bytes in fact.
    pub results: Vec<Vec<u8>>,
    /// The result that answers whoever had the program run, so that nothing more is to be done; only where it left with 0.
    pub answer: Option<String>,
    /// The host call that explains a non-zero exit: the last one that failed with the code the program left with.
    pub failure: Option<CallFailure>,
    /// Lines that the program logged.
    pub log: Vec<String>,
    /// The host functions that it called, in order of their first call, and those that programs which it started called.
    pub calls: Vec<Calls>,
    /// Fuel used, that of programs which this one started too, where the runtime meters it.
    pub fuel: Option<u64>,
    /// Size of the program's memory at its end, in bytes.
    pub memory_bytes: u64,
    /// Time from the start of the instance to its end.
    pub duration: Duration,
}

impl Outcome {
    /// Whether the program left with 0.
    #[must_use]
    pub fn success(&self) -> bool {
        matches!(self.exit, Exit::Returned(Code::SUCCESS))
    }

    /// Of a program that must not begin.
    pub(crate) fn halted(halt: Halt) -> Outcome {
        Outcome::stopped(Stopped { trap: Trap::halted(halt), results: Vec::new() })
    }

    /// Of a program that was stopped in an earlier run of it.
    pub(crate) fn stopped(Stopped { trap, results }: Stopped) -> Outcome {
        Outcome {
            exit: Exit::Trapped(trap),
            results,
            answer: None,
            failure: None,
            log: Vec::new(),
            calls: Vec::new(),
            fuel: None,
            memory_bytes: 0,
            duration: Duration::ZERO,
        }
    }

    /// The results as text; bytes that are not UTF-8 are shown by the replacement character.
    #[must_use]
    pub fn texts(&self) -> Vec<String> {
        self.results.iter().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect()
    }
}

/// How a program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It ran to its end, or returned, with this code.
    Returned(Code),
    /// The engine or a host function ended it.
    Trapped(Trap),
}

/// Why a program was ended from outside its own code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trap {
    /// The kind.
    pub kind: TrapKind,
    /// What happened, in words.
    pub message: String,
    /// Where in the author's text.
    pub position: Option<Position>,
}

impl Trap {
    pub(crate) fn halted(Halt(message): Halt) -> Trap {
        Trap { kind: TrapKind::Halted, message, position: None }
    }
}

/// The kinds of traps; each has a stable name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrapKind {
    /// An access outside the memory or a table.
    Memory,
    /// A division by zero or an overflow in a conversion.
    Arithmetic,
    /// `unreachable` was reached.
    Unreachable,
    /// Calls nested too deep.
    Stack,
    /// The time was up, or the fuel.
    Time,
    /// An indirect call to nothing or to another type.
    Call,
    /// A host function without an error result failed.
    Host(Code),
    /// The tape of the run does not let it go on.
    Halted,
}

impl TrapKind {
    /// The stable name.
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

    /// The error code that comes nearest.
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

/// A host function panicked, which none may: a bug in Wattle. It ends the run, whose files are kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} broke down, which is a bug in wattle: {message}; the program was ended, and its files are kept", self.place())]
pub struct Bug {
    /// The host function that was under way, by its full name; `None` where none was called.
    pub function: Option<&'static str>,
    /// What the panic said.
    pub message: String,
}

impl Bug {
    pub(crate) fn new(function: Option<&'static str>, message: &str) -> Bug {
        Bug { function, message: message.to_owned() }
    }

    fn place(&self) -> String {
        self.function.map_or_else(|| "the host".to_owned(), |name| format!("the host function `{name}`"))
    }
}

/// A host call that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallFailure {
    /// Full name, such as `http.get`.
    pub function: &'static str,
    /// What was told.
    pub failure: Failure,
    /// Where in the author's text the call stands.
    pub position: Option<Position>,
}

/// How often a host function was called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Calls {
    /// Full name.
    pub function: &'static str,
    /// Number of calls.
    pub calls: u64,
    /// How many of them failed.
    pub failed: u64,
}
