//! The host functions of the Wattle agent runtime. Each namespace has its own file, which starts
//! with the table of its functions.
//!
//! A capability reaches the outside world only through the port of its grant: `kv` through a
//! [`kv::Backend`], `memory` through [`memory::Memory`], `ai` through an [`ai::Inference`], `agent`
//! through [`agent::Delegates`], `tool` through [`tool::ToolBox`], `par` through [`par::Programs`],
//! `help` through a [`help::Manual`], `skill` through a [`skill::SkillReader`], `shell` through a [`shell::Shell`], `wattle` through a
//! [`wattle::CatalogIndex`], `issue` through an [`issue::IssueTracker`], `http` and `web` through
//! the [`egress`] guard, and `fs` and `search` through the run's [`files`]. In trusted runs, `git`
//! uses a [`git::Repository`], `publish` writes to the public folder, and `image` uses an
//! [`image::ImageGenerator`].

pub mod agent;
pub mod ai;
pub mod arr;
pub mod date;
pub mod dbg;
mod decimal;
pub mod fs;
pub mod git;
pub mod guests;
pub mod help;
pub mod history;
pub mod html;
pub mod http;
pub mod image;
pub mod issue;
pub mod json;
pub mod kv;
pub mod manual;
pub mod map;
pub mod math;
pub mod memory;
mod model_answer;
pub mod par;
pub mod policy;
pub mod publish;
pub mod search;
pub mod shell;
pub mod skill;
pub mod str;
pub mod sys;
pub mod tool;
pub mod url;
pub mod val;
pub mod vfs;
pub mod wattle;
pub mod web;
pub mod workbook;

pub use wattle_egress as egress;
pub use wattle_egress::secrets;
pub use wattle_files as files;
pub use wattle_rt::PortFuture;
use wattle_rt::{Capability, Code, Config, Failure, Grants};
pub use wattle_schema as schema;

/// All capabilities of this crate, in the order used by the prompt and the manual.
pub const ALL: &[Capability] = &[
    sys::SYS,
    str::STR,
    arr::ARR,
    map::MAP,
    val::VAL,
    json::JSON,
    date::DATE,
    math::MATH,
    url::URL,
    html::HTML,
    kv::KV,
    memory::MEMORY,
    http::HTTP,
    fs::FS,
    search::SEARCH,
    web::WEB,
    ai::AI,
    par::PAR,
    agent::AGENT,
    tool::TOOL,
    workbook::WORKBOOK,
    shell::SHELL,
    vfs::VFS,
    wattle::WATTLE,
    issue::ISSUE,
    dbg::DBG,
    help::HELP,
    skill::SKILL,
    git::GIT,
    publish::PUBLISH,
    image::IMAGE,
];

/// Returns true if the names of some host functions begin with this one and a dot, such as `fs`.
#[must_use]
pub fn is_namespace(name: &str) -> bool {
    ALL.iter().any(|capability| capability.name == name)
}

/// Default maximum number of concurrent requests or programs per call.
const MAX_CONCURRENT: std::num::NonZeroUsize = std::num::NonZeroUsize::new(16).unwrap();

/// The capabilities without effects outside the run.
pub const PURE: &[&str] =
    &["sys", "str", "arr", "map", "val", "json", "date", "math", "url", "html", "dbg"];

/// The capabilities that only trusted runs have. Their effects outside the run may be public and
/// cannot be undone.
pub const TRUSTED: &[&str] = &["git", "publish", "image"];

/// The state of the capabilities without effects outside the run: none.
struct Pure;

impl Config for Pure {
    const CAPABILITIES: &'static [&'static str] = PURE;
}

/// Creates the grants that every run starts with. They allow the capabilities without effects
/// outside the run.
#[must_use]
pub fn pure_grants() -> Grants {
    Grants::new().with(Pure)
}

/// Maximum length of a string that one call creates, in bytes. The memory limit of the program may
/// be lower.
const MAX_TEXT: usize = 64 << 20;

/// Maximum length of a value that is quoted in a message, in characters.
const QUOTED: usize = 40;

fn too_large() -> Failure {
    Failure::new(Code::ENOMEM, "the result would have more than 64 MiB; work on smaller pieces")
}

/// Joins parts with commas and puts the result between the brackets `open` and `close`. Fails if
/// the result exceeds [`MAX_TEXT`].
fn join_in_brackets(
    open: char,
    close: char,
    parts: impl Iterator<Item = Result<String, Failure>>,
) -> Result<String, Failure> {
    let mut text = String::from(open);
    for part in parts {
        if text.len() > 1 {
            text.push(',');
        }
        text.push_str(&part?);
        if text.len() > MAX_TEXT {
            return Err(too_large());
        }
    }
    text.push(close);
    Ok(text)
}
