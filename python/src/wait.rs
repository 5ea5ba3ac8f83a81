//! Waiting without the interpreter's lock.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use wattle_bindings::{Error, engine};

use crate::error::raise;

/// Time after which a waiting thread looks for signals, such as an interrupt by the user.
const SLICE: Duration = Duration::from_millis(50);

/// Time that the end of the interpreter waits for the threads that wait here.
const CLOSE: Duration = Duration::from_secs(2);

/// If true, the interpreter is shutting down.
static CLOSING: AtomicBool = AtomicBool::new(false);

/// Number of threads that wait here. They must be back in Python before the interpreter ends.
static WAITING: AtomicUsize = AtomicUsize::new(0);

/// A thread that waits.
struct Waiting;

impl Waiting {
    fn begin() -> Waiting {
        WAITING.fetch_add(1, Ordering::SeqCst);
        Waiting
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        WAITING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Waits for a future on the calling thread, with the interpreter's lock released.
///
/// # Errors
/// If a signal handler raises, such as that of an interrupt, or the interpreter is shutting down.
pub(crate) fn wait<T: Send>(py: Python<'_>, work: impl Future<Output = T> + Send) -> PyResult<T> {
    // The first call creates the engine, with the lock held, so that no thread forks meanwhile.
    let runtime = engine().map_err(|error| raise(py, error))?.runtime();
    let _waiting = Waiting::begin();
    let mut work = pin!(work);
    loop {
        check(py)?;
        let slice = || {
            let slice = async { tokio::time::timeout(SLICE, work.as_mut()).await };
            runtime.block_on(slice)
        };
        if let Ok(done) = py.detach(slice) {
            return Ok(done);
        }
        py.check_signals()?;
    }
}

/// # Errors
/// If the interpreter is shutting down.
pub(crate) fn check(py: Python<'_>) -> PyResult<()> {
    match CLOSING.load(Ordering::SeqCst) {
        true => Err(raise(py, Error::host("the interpreter is shutting down"))),
        false => Ok(()),
    }
}

/// Ends all waits, and waits until their threads are back in Python. The interpreter calls this before
/// it shuts down, because a thread that asks for its lock afterwards is ended in the middle of a call.
#[pyfunction]
pub(crate) fn close(py: Python<'_>) {
    CLOSING.store(true, Ordering::SeqCst);
    let end = Instant::now() + CLOSE;
    while WAITING.load(Ordering::SeqCst) > 0 && Instant::now() < end {
        py.detach(|| std::thread::sleep(Duration::from_millis(1)));
    }
}
