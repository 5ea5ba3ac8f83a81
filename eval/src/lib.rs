//! Evaluates models: runs sets of tasks with each model and summarizes the results.
//!
//! A [`Suite`] is a folder of [`Task`]s. A task has a prompt, fixtures, a budget, and expectations
//! for the answer and for the files and state after the run. [`evaluate`] runs every task with
//! every [`Contender`] and records each result as an [`Attempt`]. [`Results`] stores the attempts,
//! so that an interrupted evaluation can be resumed. A [`Scorecard`] summarizes them, an
//! [`ErrorReport`] classifies the first-try errors, and [`compare`] shows whether two sets of
//! attempts differ by more than chance.
//!
//! A task may name an agent, which the suite declares in its folder `agents`. [`Suite::of_agents`]
//! converts the examples in agents' files into tasks.
//!
//! ```
//! use wattle_agent::host::{capability::egress::Egress, catalog::Catalog, rt::Limits};
//! use wattle_agent::Host;
//! use wattle_eval::{Answers, Approach, Contender, Plan, Suite, evaluate};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! std::fs::create_dir_all(folder.path().join("recordings/some-model/sums"))?;
//! std::fs::create_dir(folder.path().join("sums"))?;
//! std::fs::write(
//!     folder.path().join("sums/two.toml"),
//!     "prompt = 'two and two?'\nexpect.answer.number = 4",
//! )?;
//! std::fs::write(
//!     folder.path().join("recordings/some-model/sums/two.jsonl"),
//!     "{\"wattle_cassette\":1,\"model\":\"some-model\"}\n\
//!      {\"reply\":\"ToolCall::Response(\\\"four: 4\\\")\"}\n",
//! )?;
//!
//! let suite = Suite::load(folder.path()).map_err(|errors| errors[0].clone())?;
//! let host = Host::new(Limits::default(), Catalog::built_in(), Egress::new(Default::default()))?;
//! let model = Contender {
//!     model: "some-model".to_owned(),
//!     approach: Approach::Programs,
//!     answers: Answers::Recorded,
//! };
//! let done = evaluate(&host, &suite, &[model], &Plan::default(), None, &|_| {}).await?;
//! assert!(done.attempts[0].passed());
//! # Ok(()) }
//! ```

mod agent;
mod attempt;
mod baseline;
mod compare;
mod error;
mod errors;
mod example;
mod expect;
mod keys;
mod meter;
mod number;
mod place;
mod prompt;
mod recording;
mod results;
mod rule;
mod runner;
mod samples;
mod scorecard;
mod statistics;
mod suite;
mod table;
mod tally;
mod task;
mod transcript;
mod trial;

pub use attempt::{Approach, Attempt, FirstTryError, Tokens, Verdict};
pub use compare::{Measure, Pairing, Side, compare};
pub use error::EvalError;
pub use errors::{ErrorClass, ErrorReport};
pub use expect::Expectation;
pub use recording::Recordings;
pub use results::{Earlier, Results, read_attempts};
pub use rule::Rule;
pub use runner::{Evaluation, Plan, evaluate};
pub use samples::{Sample, Samples};
pub use scorecard::{Comparison, Row, Score, Scorecard};
pub use statistics::Interval;
pub use suite::Suite;
pub use task::{Budget, Task};
pub use trial::{Answers, Contender};
