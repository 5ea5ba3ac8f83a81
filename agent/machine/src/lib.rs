//! The part of an agent that decides: what the model said, what is to be done, what the model is told, and when it ends.
//!
//! Nothing in here touches the world. There is no clock, no randomness and no I/O; a driver performs the [`Effect`]s and
//! reports back with [`Input`]s. So a run can be replayed from its inputs, and the crate compiles to WebAssembly.
//!
//! ```
//! use wattle_machine::{Call, Effect, Execution, Input, ModelAnswer, Nonce, Ran, Setup, State, step};
//!
//! let nonce = Nonce::default();
//! let state = State::new(Setup { system: "You run programs.".into(), nonce, ..Setup::default() });
//! let (state, _ask) = step(state, Input::Begin { message: "what time is it?".into() });
//!
//! let answer = ModelAnswer { text: "ToolCall::Catalog(\"now\", \"UTC\")".into(), ..ModelAnswer::default() };
//! let (state, effects) = step(state, Input::Answer(answer));
//! let call = Call::Catalog { name: "now".into(), args: vec!["UTC".into()] };
//! assert_eq!(effects.last(), Some(&Effect::Execute { step: 1, calls: vec![call] }));
//!
//! let ran = Ran { results: vec!["12:00".into()], ..Ran::default() };
//! let (state, _effects) = step(state, Input::Executed(vec![Execution::Ran(ran)]));
//! let observed = state.conversation().last().map(|message| message.content.as_str());
//! assert_eq!(observed, Some("[Observation bbbbbb (step 1)] Execution result:\n12:00"));
//! ```
//!
//! In reading order: [`step`] is the loop; [`State`] and its neighbours are its vocabulary; [`read`] takes a model's answer
//! for an [`Action`], in whichever [`Dialect`] it is given; [`Call`] and [`Execution`] are what is run and what became of it; [`Event`] is what the world hears;
//! [`system_prompt`] is what the model knows.

mod call;
mod confusable;
mod dialect;
mod event;
mod function;
mod machine;
mod mark;
mod message;
mod moderation;
mod observation;
mod parts;
mod prompt;
mod reader;
mod state;

pub use call::{Call, Cost, Execution, Failure, Ran, SourceLine};
pub use dialect::Dialect;
pub use event::{Dollars, Envelope, Event, Source, Stop, Usage};
pub use function::{FunctionTool, Offer, Param, ParamKind, ProgramFunction, function_tools};
pub use machine::step;
pub use mark::{Nonce, announced_nonce};
pub use message::{FunctionCall, Message, Role};
pub use moderation::Verdict;
pub use parts::{ArgLine, CapabilityPart, CodeLine, FunctionLine, Limits, ProgramLine, PromptParts, Withheld};
pub use prompt::{EXAMPLE_PROGRAM, system_prompt};
pub use reader::{Action, Note, Reading, read};
pub use state::{Ask, Bound, Effect, Ending, Input, ModelAnswer, OnMaxSteps, Purpose, Settings, Setup, State};
