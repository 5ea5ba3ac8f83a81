//! What operations return to JavaScript.

use std::sync::Arc;

use napi_derive::napi;
use wattle_bindings::{Outcome, Program};

/// A prepared program.
#[napi]
pub struct ProgramHandle(pub(crate) Program);

#[napi]
impl ProgramHandle {
    /// Returns the source.
    #[napi(getter)]
    pub fn source(&self) -> String {
        self.0.source().to_owned()
    }
}

/// The outcome of a program.
#[napi]
pub struct OutcomeHandle(pub(crate) Arc<Outcome>);

#[napi]
impl OutcomeHandle {
    /// Returns everything that the program printed.
    #[napi]
    pub fn text(&self) -> String {
        self.0.text()
    }

    /// Returns the outcome as JSON.
    #[napi]
    pub fn json(&self) -> String {
        self.0.to_json().to_string()
    }
}
