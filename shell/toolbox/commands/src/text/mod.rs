//! Commands for text, bytes, files and folders that no crate fully supports on WASI.

mod bytes;
mod cmp;
mod column;
mod dd;
mod diff;
mod files;
mod folders;
mod lines;
mod sort;
mod tree;

pub(crate) use bytes::{hexdump, strings, xxd};
pub(crate) use cmp::cmp;
pub(crate) use column::column;
pub(crate) use dd::dd;
pub(crate) use diff::diff;
pub(crate) use files::{chmod, stat};
pub(crate) use folders::du;
pub(crate) use lines::{dos2unix, less, rev, sponge, tac, unix2dos};
pub(crate) use sort::sort;
pub(crate) use tree::tree;
