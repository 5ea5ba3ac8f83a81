//! Small commands: those that start others, those with fixed answers, and those that look at files.

mod answers;
mod start;
mod xargs;

pub use answers::{groups, hostname, id, stty, sync, tty, uname, which, whoami};
pub use start::{env, nice, nohup, timeout};
pub use xargs::xargs;
