//! The outcome of a program, whose parts are converted when Python reads them.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use wattle_bindings as bindings;

use crate::error::raise;

/// The outcome of a program: what it printed, logged and left, and its changes to files.
#[pyclass(frozen, module = "wattle")]
pub(crate) struct Outcome(bindings::Outcome);

impl Outcome {
    pub(crate) fn new(outcome: bindings::Outcome) -> Outcome {
        Outcome(outcome)
    }
}

#[pymethods]
impl Outcome {
    /// Everything that the program printed, one result per line.
    #[getter]
    fn text(&self) -> String {
        self.0.text()
    }

    /// The results that the program printed.
    #[getter]
    fn results(&self) -> Vec<String> {
        self.0.inner().texts()
    }

    /// The lines that the program logged.
    #[getter]
    fn log(&self) -> Vec<String> {
        self.0.inner().log.clone()
    }

    /// The data that the program left for the application, by name.
    #[getter]
    fn artifacts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let artifacts = PyDict::new(py);
        for artifact in &self.0.inner().artifacts {
            artifacts.set_item(&artifact.name, PyBytes::new(py, &artifact.data))?;
        }
        Ok(artifacts)
    }

    /// The number of calls to each host function, by its name.
    #[getter]
    fn calls<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let calls = PyDict::new(py);
        for one in &self.0.inner().calls {
            calls.set_item(one.function, one.calls)?;
        }
        Ok(calls)
    }

    /// The running time, in seconds.
    #[getter]
    fn duration(&self) -> f64 {
        self.0.inner().duration.as_secs_f64()
    }

    /// The size of the program's memory when it ended, in bytes.
    #[getter]
    fn memory_bytes(&self) -> u64 {
        self.0.inner().memory_bytes
    }

    /// Returns the changes to the run's files.
    fn changes<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let changes = py.detach(|| self.0.changes()).map_err(|error| raise(py, error))?;
        let one = |change: &serde_json::Value| {
            let fields = PyDict::new(py);
            fields.set_item("path", change.get("path").and_then(|it| it.as_str()))?;
            fields.set_item("kind", change.get("kind").and_then(|it| it.as_str()))?;
            fields.set_item("size", change.get("size").and_then(|it| it.as_u64()))?;
            Ok(fields)
        };
        changes.as_array().into_iter().flatten().map(one).collect()
    }

    /// Reads a file as the program left it.
    fn file<'py>(&self, py: Python<'py>, path: &str) -> PyResult<Bound<'py, PyBytes>> {
        let content = py.detach(|| self.0.file(path)).map_err(|error| raise(py, error))?;
        Ok(PyBytes::new(py, &content))
    }

    /// Writes the changes to the granted folder.
    fn apply(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.0.apply()).map_err(|error| raise(py, error))
    }

    fn __repr__(&self) -> String {
        format!("Outcome({:?})", self.0.text())
    }
}
