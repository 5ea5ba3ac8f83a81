//! The host functions of the Wattle agent runtime: one namespace, one file, opened by its table of functions.
//!
//! A capability reaches the world only through what it was granted with: `kv` through a [`kv::Backend`], `ai` through an
//! [`ai::Inference`], `par` through [`par::Programs`], `http` through the [`egress`] guard, `fs` through the run's [`files`].

pub mod ai;
pub mod arr;
pub mod dbg;
pub mod egress;
pub mod files;
pub mod fs;
pub mod http;
pub mod json;
pub mod kv;
pub mod map;
pub mod par;
mod reply;
pub mod schema;
pub mod str;
pub mod sys;

use std::pin::Pin;

use wattle_rt::{Capability, Failure, Grants};

/// Every capability of this crate, in the order of prompt and manual.
pub const ALL: &[Capability] =
    &[sys::SYS, str::STR, arr::ARR, map::MAP, json::JSON, kv::KV, http::HTTP, fs::FS, ai::AI, par::PAR, dbg::DBG];

/// How many requests or programs of one call are under way at once, where a grant says nothing else.
const AT_ONCE: std::num::NonZeroUsize = std::num::NonZeroUsize::new(16).unwrap();

/// What a backend of a capability will give.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, Failure>> + Send + 'a>>;

/// Grants the capabilities that reach nothing outside the run and need no configuration: what every run starts from.
#[must_use]
pub fn pure_grants() -> Grants {
    ["sys", "str", "arr", "map", "json", "dbg"].into_iter().fold(Grants::new(), Grants::allow)
}
