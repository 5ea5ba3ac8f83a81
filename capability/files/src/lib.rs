//! The file system of a run. All programs, commands and tools of the run use the same files.
//!
//! There are three kinds of file system:
//! - an *overlay* over a *base*: reads fall through to the base (the workdir, to which the
//!   operating system confines the run), and writes stay in memory. At the end of the run,
//!   [`Files::changes`] lists the changes and [`Files::apply`] writes them to the base.
//! - an overlay without a base: everything is in memory.
//! - write-through, for a trusted run: each write goes directly to the base.
//!
//! To callers, the three kinds differ only in where the data is stored.
//!
//! ```
//! use wattle_files::{Files, OVERLAY_LIMIT};
//! let files = Files::overlay(None, OVERLAY_LIMIT);
//! files.write("/notes/today.txt", b"rain")?;
//! files.append("notes/today.txt", b", then sun")?;
//! assert_eq!(files.read("notes/../notes/today.txt")?, "rain, then sun");
//! let refused = files.read("../etc/passwd").unwrap_err();
//! assert_eq!(
//!     refused.to_string(),
//!     "../etc/passwd is outside the run's folder; only files in it can be read"
//! );
//! # Ok::<(), wattle_files::FilesError>(())
//! ```
//!
//! # Paths
//! A path is relative to the workdir. `/` is the root of the workdir, and nothing outside the
//! workdir can be named. An absolute path into a folder of the operating system, such as
//! `/etc/shadow`, is rejected unless the workdir has such a folder. `.` and `..` are resolved in
//! the path's string, before any link is followed. A link in the base is followed as long as it
//! stays in the workdir. The target of a relative link is resolved from the link's folder. The
//! target of an absolute link must be under the workdir's path on the host. Any other link is
//! rejected, and so is a path that leads above the root. Devices, FIFOs and sockets are listed but
//! never opened. An entry in the base whose name is not UTF-8 is listed as [`EntryKind::Other`],
//! with replacement characters in the name, and cannot be opened.
//!
//! # Listings
//! The files that the host writes in the root of the workdir, such as the trace, are not listed.
//! They can still be read and queried by path, like other files.
//!
//! # Changes
//! A change is a difference between the base and the final state of the run's files. Writing the
//! content that a file already has is not a change, and neither is creating an entry and removing
//! it again. A removed folder is one change, regardless of its content. A moved entry is deleted at
//! its old path and created at its new one. Permissions are preserved and do not count as changes.
//!
//! All functions may block on the base's disk. Asynchronous callers run them on a thread where
//! blocking is allowed.
//!
//! # Modules
//! Each module imports only modules listed above it.
//! - `path`, `printable`, `hex`, `jail`, `stamp`, `entry`, `git_names`, `host_files`, `error`,
//!   `host_lines`, `host_reads`, `reader`: shared types, errors and helpers.
//! - `base`: the workdir on disk.
//! - `tree`: the trait `Tree`, and the rules that apply to both of its implementations: resolving
//!   paths, looking up entries, changing them, and protecting repositories.
//! - `overlay` and `write_through`: the two implementations of `Tree`.
//! - `store`, `files`, `writer`: the public operations, which resolve a path, ask the guard and
//!   call the tree.

mod base;
mod entry;
mod error;
mod files;
mod git_names;
mod hex;
mod host_files;
mod host_lines;
mod host_reads;
mod ignored;
mod jail;
mod overlay;
mod path;
mod printable;
mod reader;
mod sensitive;
mod stamp;
mod store;
mod tree;
mod write_through;
mod writer;

pub use base::Base;
pub use entry::{Change, ChangeKind, Entry, EntryKind, Stat};
pub use error::{ApplyError, ErrorKind, FilesError};
pub use files::{Files, TraceView};
pub use git_names::{has_repository_layout, is_repository};
pub use host_files::{HostFiles, HostPaths};
pub use host_lines::{
    append_line, has_partial_line, lock_soon, open_lines, open_lines_to_read, truncate_partial_line,
};
pub use host_reads::{read_open_file, read_regular_file};
pub use ignored::{IGNORE_FILES, IgnoreRules};
pub use overlay::{MemoryCharge, OVERLAY_LIMIT};
pub use reader::Reader;
pub use sensitive::{Sensitive, Sensitivity, sensitive};
pub use stamp::FileStamp as Version;
pub use tree::PathGuard;
pub use writer::Writer;

/// Maximum number of bytes that one read returns: 64 MiB. A larger file is read in parts, with
/// [`Files::read_at`].
pub const READ_LIMIT: u64 = 64 << 20;
/// Maximum size of a file in a write-through run, in bytes: 16 GiB.
pub const FILE_LIMIT: u64 = 16 << 30;
/// Name of a trace. In the root of a run's workdir, it names the run's own trace, which the run can
/// read and only the host writes, wherever the host keeps it. See [`Files::with_trace`].
pub const TRACE_FILE: &str = "_steps.jsonl";
/// Name of the file that lists the filed tickets. Only the host writes it.
pub const ISSUES_FILE: &str = "_issues.jsonl";
/// Name of the ledger that seals a trace. Only the host writes it.
pub const LEDGER_FILE: &str = "_ledger.jsonl";
/// Name of the Org outline of the runs. Only the host writes it.
pub const EVENTS_FILE: &str = "events.org";
/// Name of the folder beside a trace that has its rotated parts. Only the host writes it.
pub const ROTATED_FOLDER: &str = "_rotated";
/// Name of a Git repository's folder. A run cannot write in any folder with this name, in any
/// spelling, because the folder's content can make `git` start programs. Nor can it move or remove
/// a folder that contains one.
pub const REPOSITORY: &str = ".git";
/// Name of the project file. A run cannot write a file with this name in any folder, nor move or
/// remove a folder that contains one, because project files configure later runs.
pub const PROJECT_FILE: &str = "wattle.toml";
/// Maximum number of entries in a listing, and in a folder that is moved or removed as a whole.
pub const ENTRY_LIMIT: usize = 100_000;
