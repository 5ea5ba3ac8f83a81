//! Agents that a deployment or an application declares as data.
//!
//! An [`AgentSpec`] is the declaration of one agent, usually read from a file. [`Agents`] holds the
//! agents declared in a list of folders and the built-in agent `default`. [`AgentSpec::parts`]
//! turns an agent into the parts of a run: the programs that are offered, the settings, and the
//! policy that narrows the grants. [`AgentSpec::open_model`] opens its model.
//!
//! ```
//! use wattle_runs::agents::AgentSpec;
//!
//! let agent = AgentSpec::parse(r#"
//!     name = "assistant"
//!     prompt = "You are a helpful assistant. Be concise."
//!     temperature = 0.7
//!     tools = ["text.*", "file_read"]
//! "#).unwrap();
//! assert_eq!(agent.name, "assistant");
//!
//! let error = AgentSpec::parse("name = \"x\"\npromt = \"Be brief.\"").unwrap_err();
//! assert_eq!(error.to_string(), "line 2: unknown key `promt`; did you mean `prompt`?");
//! ```

mod context;
mod current;
mod delegate;
mod folder;
mod parts;
mod read;
mod registry;
mod resolver;
mod spec;
mod traits;

pub use delegate::program as delegate_program;
pub use folder::AgentProblem;
pub use parts::{AgentBase, AgentError, AgentParts};
pub use read::SpecError;
pub use read::is_name;
pub use registry::{Agents, TRAITS_FOLDER, UnknownAgent};
pub use resolver::{AgentResolver, ProgramResolver};
pub use spec::{
    AgentBudget, AgentExample, AgentPolicy, AgentRepair, AgentSpec, DelegateRef, Parsed,
};
pub use traits::{NamedTrait, TraitPrograms, TraitRef, TraitSpec};
pub use wattle_store::journal::DEFAULT_AGENT;
