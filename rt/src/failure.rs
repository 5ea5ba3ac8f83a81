//! Failures of host functions, which are reported to programs and models.

use std::fmt;
use std::pin::Pin;

use crate::Code;

/// A failure of a host function. The program gets the code. The reason is written to the trace and
/// shown to the model.
///
/// A failure alone never ends the run. A failure of the host has a different type,
/// [`EngineError`](crate::EngineError), so that `?` cannot convert between the two.
///
/// ```
/// use wattle_rt::{Code, Failure};
/// let failure = Failure::new(Code::ENOENT, "no key `user`");
/// assert_eq!(failure.to_string(), "ENOENT (4): no key `user`");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The code that the program gets.
    pub code: Code,
    /// The reason, written for the model and the user, in lower case and without a full stop. It
    /// says what to do about the failure.
    pub reason: String,
}

/// Maximum length of the reason of a failed call, in bytes. A longer reason is truncated, because a
/// run keeps the reasons of its last failures.
pub const MAX_REASON: usize = 16 << 10;

impl Failure {
    /// Creates a failure with a code and a reason.
    #[must_use]
    pub fn new(code: Code, reason: impl Into<String>) -> Self {
        Failure { code, reason: reason.into() }
    }

    /// Returns the failure with its reason truncated to at most [`MAX_REASON`] bytes.
    #[must_use]
    pub fn truncated(self) -> Failure {
        if self.reason.len() <= MAX_REASON {
            return self;
        }
        let start = self.reason.get(..self.reason.floor_char_boundary(MAX_REASON));
        Failure { reason: format!("{}…", start.unwrap_or_default()), ..self }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.reason)
    }
}

impl std::error::Error for Failure {}

/// The boxed future that a function of a port returns. A port is a trait through which host
/// functions use a service, such as a model.
pub type PortFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, Failure>> + Send + 'a>>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_reason_is_truncated_between_characters() {
        let short = Failure::new(Code::ENOENT, "ü".repeat(MAX_REASON / 2));
        assert_eq!(short.clone().truncated(), short);
        let long = Failure::new(Code::ENOENT, format!("a{}", short.reason)).truncated();
        assert_eq!(long.reason.len(), MAX_REASON - 1 + '…'.len_utf8());
        assert!(long.reason.ends_with("ü…") && long.code == Code::ENOENT);
    }
}
