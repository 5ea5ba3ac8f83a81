//! The host functions of the Wattle agent runtime: one namespace, one file, opened by its table of functions.
//!
//! A capability reaches the world only through what it was granted with: `kv` through a [`kv::Backend`], `ai` through an
//! [`ai::Inference`], `http` through the [`egress`] guard, `fs` through the run's [`files`].

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
pub mod policy;
pub mod str;
pub mod sys;

use wattle_rt::{Capability, Grants};

/// Every capability of this crate, in the order of prompt and manual.
pub const ALL: &[Capability] =
    &[sys::SYS, str::STR, arr::ARR, map::MAP, json::JSON, kv::KV, http::HTTP, fs::FS, ai::AI, dbg::DBG];

/// The capabilities that reach nothing outside the run.
pub const PURE: &[&str] = &["sys", "str", "arr", "map", "json", "dbg"];

/// Grants the capabilities that reach nothing outside the run and need no configuration: what every run starts from.
#[must_use]
pub fn pure_grants() -> Grants {
    PURE.iter().copied().fold(Grants::new(), Grants::allow)
}
