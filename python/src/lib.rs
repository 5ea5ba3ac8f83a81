//! The native part of the Python package. It knows no Python function and calls none: Python waits
//! for the [messages](run) of a run, calls its tools and its approver itself, and sends the answers.
//! No thread of the engine therefore ever needs the interpreter's lock.

mod agent;
mod error;
mod outcome;
mod program;
mod run;
mod wait;
mod waker;

use std::ffi::OsString;

use pyo3::prelude::*;
use wattle_cli::Invocation;

/// The module `wattle._native`.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<program::Scope>()?;
    module.add_class::<program::Grants>()?;
    module.add_class::<program::Program>()?;
    module.add_class::<outcome::Outcome>()?;
    module.add_class::<agent::Agent>()?;
    module.add_class::<run::Run>()?;
    module.add_class::<waker::Waker>()?;
    module.add_function(wrap_pyfunction!(main, module)?)?;
    module.add_function(wrap_pyfunction!(language, module)?)?;
    module.add_function(wrap_pyfunction!(wait::close, module)?)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}

/// Returns a description of a tool that runs programs, which teaches the language.
#[pyfunction]
fn language() -> String {
    wattle_bindings::language()
}

/// Runs the command with these arguments and ends the process. `program` starts the command again.
#[pyfunction]
fn main(py: Python<'_>, args: Vec<OsString>, program: Vec<OsString>) {
    py.detach(|| {
        let code = wattle_cli::run(Invocation { args, program });
        std::process::exit(code.into());
    });
}
