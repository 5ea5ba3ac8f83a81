//! The guard of a run: what decides about its programs before their first instruction, and about what they touch.

use std::pin::Pin;
use std::sync::Arc;

use crate::{Position, Program, Runtime, Target};

/// A program that is about to run.
#[derive(Clone, Copy)]
pub struct Preview<'a> {
    /// The program, with its authority.
    pub program: &'a Program,
    /// What it is started with.
    pub args: &'a [String],
    runtime: &'a Runtime,
}

impl<'a> Preview<'a> {
    pub(crate) fn new(runtime: &'a Runtime, program: &'a Program, args: &'a [String]) -> Self {
        Preview { program, args, runtime }
    }

    /// Where in its text each of its uses stands; see [`Runtime::places`].
    #[must_use]
    pub fn places(&self) -> Vec<Option<Position>> {
        self.runtime.places(self.program)
    }
}

/// What a guard will have decided: the guard of one run, or why there is none.
pub type Decided<'a> = Pin<Box<dyn Future<Output = Result<Arc<dyn Guard>, String>> + Send + 'a>>;

/// Narrows what the programs of a run may do. It is part of the run's [`Grants`](crate::Grants), and so holds for every program
/// that is started with them, by whomever.
pub trait Guard: Send + Sync {
    /// Decides about a program before anything of it runs, and gives the guard of this one run of it.
    ///
    /// The error is what the author of the program reads: why it may not run, and what would permit it.
    fn before<'a>(&'a self, preview: Preview<'a>) -> Decided<'a>;

    /// Decides about a call of `function` (such as `http.get`, of the capability `http`) that is about to touch what `text` names.
    /// Called with every argument that a row declares as a target, and by functions for what they come to touch besides.
    ///
    /// # Errors
    /// Why it may not: what the program is told, as `EACCESS`.
    fn call(&self, capability: &str, function: &str, target: Target, text: &str) -> Result<(), String>;
}
