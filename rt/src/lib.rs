//! Programs of the Wattle agent runtime: from source to module to instance.
//!
//! A program is the body of one WebAssembly function that calls host functions.
//! [`Runtime::prepare`] compiles its source to a [`Program`]: it translates the language's forms to
//! WebAssembly, gives the module exactly the imports that the program uses, and caches compiled
//! code by content hash.
//! [`Runtime::run`] instantiates the program with the [`Grants`] of a run and returns an
//! [`Outcome`].
//!
//! This crate also defines capabilities ([`capability!`](crate::capability!)). It knows nothing
//! about networks, models or agents.

pub mod abi;
mod account;
mod authority;
mod cache;
mod callables;
mod capability;
mod compiled;
mod data;
mod deadline;
mod engine;
mod failure;
mod grants;
mod growing;
mod guard;
mod guest;
#[doc(hidden)]
pub mod host;
mod kept;
#[doc(hidden)]
pub mod kind;
mod outcome;
mod pool;
mod program;
mod run;
mod runtime;
mod shares;
pub mod tape;
mod turns;

pub use account::{Account, AccountLimits, MemoryCharge, OwnerAccounts, timed};
pub use authority::{Argument, Authority, Part, Reach, Text, Use};
pub use callables::Callables;
pub use capability::{Capability, Function, PromptDetail};
pub use compiled::HostModule;
pub use deadline::Pause;
pub use engine::{Limits, engine_config, start_clock};
pub use failure::{Failure, MAX_REASON, PortFuture};
pub use grants::{Config, Grants};
pub use growing::Appended;
pub use guard::{Gate, Guard, GuardFuture, Preview, QuestionReply};
pub use guest::{Guest, GuestAnswer, GuestBounds, GuestFault};
pub use host::{Allocation, Record, Value};
pub use kept::{KEEP, Kept, KeptLimits, KeptText};
pub use kind::Unadmitted;
pub use outcome::{Artifact, Bug, CallFailure, Calls, Exit, Outcome, ProgramError, Trap, TrapKind};
pub use program::{NamedProgram, Program};
pub use run::{NestedContext, Run};
pub use runtime::{EngineError, RunError, Runtime};
pub use shares::{Full, Owner, Shares, Usage};
pub use turns::{Turn, Turns};
pub use wattle_lang::{
    Alignment, AssembledModule, CallEffect, Callable, CallableParam, Certainty, Code, Diagnostic,
    Edit, EncodeError, FAIL, Fix, FixResult, FormDoc, FormatError, FormatSpec, Interruption, KEPT,
    Names, Param, Position, Role, Service, Severity, Signature, Signatures, TRAP, Target, Touch,
    Ty, ValType, assemble, check, decode_text, explain, fix, format, forms, is_word, locate, quote,
    truncate, without_bom,
};
