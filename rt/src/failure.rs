//! What a host function tells a program when it cannot do what was asked.

use std::fmt;
use std::pin::Pin;

use crate::Code;

/// A failure that is *told*: the program gets the code, the trace and the observation get the words.
///
/// It never ends the run by itself. A host that is broken is a different type ([`EngineError`](crate::EngineError)), so that `?`
/// cannot turn the one into the other.
///
/// ```
/// use wattle_rt::{Code, Failure};
/// let failure = Failure::new(Code::ENOENT, "no key `user`");
/// assert_eq!(failure.to_string(), "ENOENT (4): no key `user`");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What the program sees.
    pub code: Code,
    /// What the model and the user read: lower case, no full stop, and what to do about it.
    pub reason: String,
}

impl Failure {
    /// A failure of that code, for that reason.
    #[must_use]
    pub fn new(code: Code, reason: impl Into<String>) -> Self {
        Failure { code, reason: reason.into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.reason)
    }
}

impl std::error::Error for Failure {}

/// The future result of a host function's backend.
pub type PortFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, Failure>> + Send + 'a>>;
