//! The host functions of the Wattle agent runtime: one namespace, one file, opened by its table of functions.
//!
//! A capability reaches the world only through what it was granted with: `kv` through a [`kv::Backend`], `ai` through an
//! [`ai::Inference`], `par` through [`par::Programs`], `help` through a [`help::Guide`], `shell` through a [`shell::Shell`],
//! `wattle` through a [`wattle::Directory`], `issue` through an [`issue::Desk`], `http` and `web` through the [`egress`] guard, `fs` and
//! `search` through the run's [`files`]; and in trusted runs `git` through a [`git::Repository`], `publish` into other files, `image` through
//! an [`image::Painter`].

pub mod ai;
pub mod arr;
pub mod date;
pub mod dbg;
pub mod fs;
pub mod git;
pub mod guests;
pub mod help;
pub mod history;
pub mod http;
pub mod image;
pub mod issue;
pub mod json;
pub mod kv;
pub mod manual;
pub mod map;
pub mod par;
pub mod policy;
pub mod publish;
mod reply;
pub mod schema;
pub mod search;
pub mod shell;
pub mod str;
pub mod sys;
pub mod vfs;
pub mod wattle;
pub mod web;
pub mod workbook;

pub use wattle_egress as egress;
pub use wattle_egress::secrets;
pub use wattle_files as files;
pub use wattle_rt::PortFuture;
use wattle_rt::{Capability, Code, Failure, Grants};

/// Every capability of this crate, in the order of prompt and manual.
pub const ALL: &[Capability] = &[
    sys::SYS,
    str::STR,
    arr::ARR,
    map::MAP,
    json::JSON,
    date::DATE,
    kv::KV,
    http::HTTP,
    fs::FS,
    search::SEARCH,
    web::WEB,
    ai::AI,
    par::PAR,
    workbook::WORKBOOK,
    shell::SHELL,
    vfs::VFS,
    wattle::WATTLE,
    issue::ISSUE,
    dbg::DBG,
    help::HELP,
    git::GIT,
    publish::PUBLISH,
    image::IMAGE,
];

/// How many requests or programs of one call are under way at once, where a grant says nothing else.
const AT_ONCE: std::num::NonZeroUsize = std::num::NonZeroUsize::new(16).unwrap();

/// The capabilities that reach nothing outside the run.
pub const PURE: &[&str] = &["sys", "str", "arr", "map", "json", "date", "dbg"];

/// The capabilities that only trusted runs are granted: what they do reaches people outside, and is not taken back.
pub const TRUSTED: &[&str] = &["git", "publish", "image"];

/// Grants the capabilities that reach nothing outside the run and need no configuration: what every run starts from.
#[must_use]
pub fn pure_grants() -> Grants {
    PURE.iter().copied().fold(Grants::new(), Grants::allow)
}

/// The most bytes of a text that one call makes; the program's memory bounds it further.
const MOST: usize = 64 << 20;

/// Maximum length of a value that a message quotes, in characters.
const QUOTED: usize = 40;

fn too_large() -> Failure {
    Failure::new(Code::ENOMEM, "the text would have more than 64 MiB; work on smaller pieces")
}

/// Writes the parts with commas between them, inside a pair of brackets.
fn bounded((open, close): (char, char), parts: impl Iterator<Item = String>) -> Result<String, Failure> {
    let mut text = String::from(open);
    for part in parts {
        if text.len() > 1 {
            text.push(',');
        }
        text.push_str(&part);
        if text.len() > MOST {
            return Err(too_large());
        }
    }
    text.push(close);
    Ok(text)
}
