//! The part of an agent that decides.

mod call;
mod event;
mod message;
mod parts;
mod reader;
mod state;

pub use call::{Call, Cost, Execution, Failure, Ran, SourceLine};
pub use event::{Envelope, Event, Source, Stop, Usage};
pub use message::{Message, Role};
pub use parts::{ArgLine, CodeLine, FunctionLine, Limits, ProgramLine, PromptParts, Withheld};
pub use reader::{Action, Note, Reading, read};
pub use state::{Ask, Bound, Effect, Ending, Input, ModelAnswer, OnMaxSteps, Purpose, Settings, Setup, State};
