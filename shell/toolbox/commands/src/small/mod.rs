//! Small commands: commands that start other commands, and commands with fixed output.

mod answers;
mod start;
mod xargs;

pub(crate) use answers::{groups, hostname, id, stty, sync, tty, uname, which, whoami};
pub(crate) use start::{env, nice, nohup, timeout};
pub(crate) use xargs::xargs;
