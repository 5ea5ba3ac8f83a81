//! The control flow of a running script.

/// A jump out of the running commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Jump {
    /// `break` out of this many loops.
    Break(u32),
    /// `continue` in the enclosing loop with this number. The innermost loop is number 1.
    Continue(u32),
    /// `return` from a function or a sourced script.
    Return,
    /// The exit of the shell. Its status is already set.
    Exit,
}

/// Result of running a part of a script: a value, or a jump.
pub(crate) type Flow<T = ()> = Result<T, Jump>;
