//! The catalog of the Wattle agent runtime: programs with typed arguments, which a model calls by
//! name.
//!
//! A catalog program is a `.wat` file. It contains front matter, which is TOML in lines that start
//! with `;;;`, followed by the program's body. [`Catalog::load`] reads the built-in programs and
//! the user's folders. An invalid file is reported as a [`Problem`] and does not affect other
//! files.
//!
//! ```
//! let catalog = wattle_catalog::Catalog::built_in();
//! let entry = catalog.get("http_get").expect("a built-in program");
//! assert_eq!(entry.usage(), "http_get(url: url)");
//!
//! let error = entry.arguments(&[]).unwrap_err();
//! assert_eq!(error.to_string(), "http_get error: required arg `url` missing or not a string");
//! ```

mod argument;
mod builtin;
mod catalog;
mod entry;
mod example;
mod folder;
mod folders;
mod front;
mod layout;
mod limits;
mod manual;
mod meta;
mod name;
mod nearest;
mod problem;
mod rank;
mod schema;
mod select;
mod skeleton;
mod skill;

pub use argument::ArgumentError;
pub use catalog::Catalog;
pub use entry::{Entry, Origin};
pub use example::{AiAnswer, Example, Expected, Fixtures, HttpAnswer, Results, ShellAnswer};
pub use folder::files_in;
pub use folders::{Check, Folders};
pub use layout::{FormatError, format};
pub use meta::{Arg, Meta, TypeHint};
pub use name::Name;
pub use nearest::{nearest_key, nearest_name};
pub use problem::Problem;
pub use rank::{Field, Index};
pub use schema::ArgumentSchema;
pub use select::{SelectError, ToolRef, scalar_map};
pub use skeleton::skeleton;
pub use skill::{
    MAX_SKILL_DESCRIPTION, SCRIPTS_FOLDER, SKILL_FILE, Script, ScriptKind, Skill, Skills,
    is_skill_name, read_skills, skill_text,
};
