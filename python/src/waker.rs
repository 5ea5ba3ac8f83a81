//! The signal that wakes an event loop of Python.

use std::io::{PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;

/// A pipe that an event loop watches. It is readable while a run of the loop has messages.
#[pyclass(frozen, module = "wattle._native")]
pub(crate) struct Waker {
    reader: PipeReader,
    signal: Arc<Signal>,
}

/// The writing end of a [`Waker`].
pub(crate) struct Signal {
    writer: PipeWriter,
    /// The numbers of the runs that have messages. While there are any, the pipe has one byte.
    ready: Mutex<Vec<u64>>,
}

impl Signal {
    /// Wakes the loop because of the run with this number.
    pub(crate) fn wake(&self, run: u64) {
        let mut ready = self.lock();
        if ready.is_empty() {
            // Fails only if the loop no longer watches.
            _ = (&self.writer).write(&[0]);
        }
        if !ready.contains(&run) {
            ready.push(run);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<u64>> {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waker {
    pub(crate) fn signal(&self) -> Arc<Signal> {
        Arc::clone(&self.signal)
    }
}

#[pymethods]
impl Waker {
    #[new]
    fn new() -> PyResult<Waker> {
        let (reader, writer) = std::io::pipe()?;
        Ok(Waker { reader, signal: Arc::new(Signal { writer, ready: Mutex::default() }) })
    }

    /// Returns the file descriptor that the loop watches for reading.
    fn fileno(&self) -> i32 {
        self.reader.as_raw_fd()
    }

    /// Returns the numbers of the runs that have new messages.
    fn take(&self) -> PyResult<Vec<u64>> {
        let mut ready = self.signal.lock();
        if !ready.is_empty() {
            (&self.reader).read_exact(&mut [0])?;
        }
        Ok(std::mem::take(&mut *ready))
    }
}
