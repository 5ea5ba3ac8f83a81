//! Commands over texts and bytes that no crate has for WASI.

mod bytes;
mod cmp;
mod column;
mod dd;
mod diff;
mod files;
mod folders;
mod hunks;
mod lines;
mod sort;
mod tree;

pub use bytes::{hexdump, strings, xxd};
pub use cmp::cmp;
pub use column::column;
pub use dd::dd;
pub use diff::diff;
pub use files::{chmod, stat};
pub use folders::du;
pub use lines::{dos2unix, less, rev, sponge, tac, unix2dos};
pub use sort::sort;
pub use tree::tree;
