//! Exceptions. Their classes are in Python.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use wattle_bindings::Error;

use crate::outcome::Outcome;

/// Converts an error to the exception that `wattle._errors` makes of it.
pub(crate) fn raise(py: Python<'_>, error: Error) -> PyErr {
    exception(py, &error).unwrap_or_else(|why| why)
}

fn exception(py: Python<'_>, error: &Error) -> PyResult<PyErr> {
    let details = PyDict::new(py);
    details.set_item("kind", error.kind.name())?;
    details.set_item("code", &error.code)?;
    details.set_item("reason", &error.reason)?;
    details.set_item("hint", &error.hint)?;
    details.set_item("line", error.line)?;
    details.set_item("column", error.column)?;
    details.set_item("function", &error.function)?;
    let outcome = error.outcome.as_deref().map(|outcome| Outcome::new(outcome.clone()));
    details.set_item("outcome", outcome)?;
    details.set_item("report", error.report.as_ref().map(|report| report.to_string()))?;
    details.set_item("message", error.to_string())?;
    let make = py.import("wattle._errors")?.getattr("make")?;
    Ok(PyErr::from_value(make.call((), Some(&details))?))
}
