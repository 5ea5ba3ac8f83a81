//! Measurements: the durations of many runs, and the memory of the process.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::Result;

/// Maximum number of timed runs. The limit keeps the memory for the recorded times small compared
/// to the memory of the process.
const MAX_SAMPLES: usize = 20_000;

/// Minimum number of timed runs, even if they exceed the given time.
const MIN_SAMPLES: usize = 5;

/// A peer that is ready to run a job.
pub trait Peer {
    /// Runs the job once. Returns the result and the time that the peer took, excluding the
    /// benchmark's own preparations.
    ///
    /// # Errors
    /// If the peer cannot run the job.
    fn run(&mut self) -> impl Future<Output = Result<(Duration, String)>>;

    /// Creates `count` contexts, keeps them alive, and returns their average memory use in KiB.
    /// Returns `None` if the peer does not support this measurement.
    ///
    /// # Errors
    /// If a context cannot be created.
    fn live(&mut self, _count: usize) -> impl Future<Output = Result<Option<f64>>> {
        async { Ok(None) }
    }
}

/// Runs a job repeatedly for the given time and returns the measurements.
///
/// The first run is not timed, and its result is compared with the expected result. Before
/// measuring, warms up for an additional tenth of the time.
///
/// # Errors
/// If the peer fails or returns a different result.
pub async fn measure(peer: &mut impl Peer, expected: &str, time: Duration) -> Result<Value> {
    let (_, result) = peer.run().await?;
    if result != expected {
        return Err(format!("expected {expected:?}, found {result:?}").into());
    }
    let warm_up = Instant::now();
    while warm_up.elapsed() < time / 10 {
        peer.run().await?;
    }
    let mut times = Vec::with_capacity(MAX_SAMPLES);
    let started = Instant::now();
    while times.len() < MIN_SAMPLES || (times.len() < MAX_SAMPLES && started.elapsed() < time) {
        times.push(peer.run().await?.0);
    }
    times.sort_unstable();
    let percentile = |n: usize| nanoseconds(times[(times.len() * n).div_ceil(100) - 1]);
    Ok(json!({
        "samples": times.len(),
        "p50": percentile(50),
        "p95": percentile(95),
        "p99": percentile(99),
    }))
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns the peak resident memory of the process, in KiB.
///
/// # Errors
/// If the system does not report it.
pub fn peak_kib() -> Result<u64> {
    proc_kib("/proc/self/status", "VmHWM:")
}

/// Returns the proportional set size (PSS) of the process, in KiB.
///
/// # Errors
/// If the system does not report it.
pub fn current_kib() -> Result<u64> {
    proc_kib("/proc/self/smaps_rollup", "Pss:")
}

fn proc_kib(path: &str, key: &str) -> Result<u64> {
    let text = std::fs::read_to_string(path)?;
    let value = text.lines().find_map(|line| line.strip_prefix(key)?.split_whitespace().next());
    let value = value.and_then(|value| value.parse().ok());
    value.ok_or_else(|| format!("{path} has no {key}").into())
}

/// Returns the average memory use of a value, in KiB, measured as the growth of the process while
/// `count` values are created. An additional value is created before the measurement and is not
/// counted.
///
/// # Errors
/// If a value cannot be created.
pub fn kib_each<T>(count: usize, mut create: impl FnMut() -> Result<T>) -> Result<f64> {
    let first = create()?;
    let before = current_kib()?;
    let alive = (0..count).map(|_| create()).collect::<Result<Vec<T>>>()?;
    let after = current_kib()?;
    drop((first, alive));
    Ok(after.saturating_sub(before) as f64 / count as f64)
}
