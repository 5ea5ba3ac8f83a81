//! Small commands: those that start others, those with fixed answers, and those that look at files.

mod answers;
mod start;
mod xargs;

pub(crate) use answers::{groups, hostname, id, stty, sync, tty, uname, which, whoami};
pub(crate) use start::{env, nice, nohup, timeout};
pub(crate) use xargs::xargs;
