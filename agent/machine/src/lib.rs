//! The agent's loop as a state machine. It reads the model's answers, decides what to run, writes
//! the observations and ends the run.
//!
//! The crate has no side effects: it uses no clock, no randomness and no I/O. A driver performs the
//! [`Effect`]s and reports back with [`Input`]s. A run can therefore be replayed from its inputs,
//! and the crate compiles to WebAssembly.
//!
//! ```
//! use wattle_machine::{
//!     Call, Completion, Effect, Execution, Input, ModelAnswer, Nonce, Setup, State, step,
//! };
//!
//! let nonce = Nonce::default();
//! let state = State::new(Setup { system: "You run programs.".into(), nonce, ..Setup::default() });
//! let (state, _ask) = step(state, Input::Begin { message: "what time is it?".into() });
//!
//! let answer = ModelAnswer {
//!     text: "ToolCall::Catalog(\"now\", \"UTC\")".into(),
//!     ..ModelAnswer::default()
//! };
//! let (state, effects) = step(state, Input::Answer(answer));
//! let call = Call::catalog("now", vec!["UTC".into()]);
//! assert_eq!(effects.last(), Some(&Effect::Execute { step: 1, calls: vec![call] }));
//!
//! let ran = Completion { results: vec!["12:00".into()], ..Completion::default() };
//! let (state, _effects) = step(state, Input::Executed(vec![Execution::Ran(ran)]));
//! let observed = state.conversation().last().map(|message| message.content.as_str());
//! assert_eq!(observed, Some("[Observation bbbbbb (step 1)] Execution result:\n12:00"));
//! ```
//!
//! Start with [`step`], which is the loop, and [`State`], which it advances. [`read`] extracts an
//! [`Action`] from a model's answer, and [`Dialect`] is the form in which the model calls programs.
//! [`Call`] is a program to run, and [`Execution`] is its outcome. [`Event`]s report the progress
//! of the run, and [`system_prompt`] writes the model's instructions.

mod artifact;
mod call;
mod confusable;
mod contribution;
mod dialect;
mod ending;
mod event;
mod families;
mod fix;
mod function;
mod json;
mod kept;
mod machine;
mod mark;
mod message;
mod moderation;
mod observation;
mod orientation;
mod output;
mod parts;
mod phase;
mod prompt;
mod reader;
mod recall;
mod request;
mod state;
mod tally;
mod text;

pub use artifact::Artifact;
pub use call::{Call, Completion, Cost, Execution, Failure, SourceLine};
pub use contribution::{Addition, Contribution, TraitProgram, TraitPurpose};
pub use ending::{Bound, Ending};
pub use event::{Dollars, Envelope, Event, Source, Stop, Usage};
pub use families::{Piece, Scanner};
pub use fix::FixText;
pub use function::{FunctionTool, Offer, Param, ParamKind, ProgramFunction, function_tools};
pub use kept::{KeptValue, MAX_KEPT, MAX_KEPT_BYTES, result_name};
pub use machine::step;
pub use mark::{Nonce, announced_nonce, one_line};
pub use message::{FunctionCall, Message, ProviderFields, Role};
pub use moderation::Verdict;
pub use observation::{WHOLE_LIMIT, is_cut};
pub use orientation::{FileHead, Orientation, WorkdirEntry};
pub use output::OutputContract;
pub use parts::{
    ArgLine, CapabilityPart, FunctionLine, GuidanceFile, Limits, ProgramFamily, ProgramLine,
    ProgramList, PromptParts, SkillLine, SkillList, SystemPrompt, WithheldCapability,
};
pub use prompt::{EXAMPLE_PROGRAM, system_prompt};
pub use reader::{Action, AnswerPart, Draft, DraftPiece, Note, Reading, ShownAnswer, read};
pub use recall::RecallContract;
pub use request::{Dialect, FunctionChoice, ModelAnswer, Purpose, ThinkingEffort};
pub use state::{Ask, Effect, Input, OnMaxSteps, Settings, Setup, State};
pub use tally::Tally;
pub use text::SharedText;
