//! A simulation of many servers with one database, based on measured processor times.
//!
//! Runs arrive at random (a Poisson process). Each run alternates between the database, its server
//! and the model. Before and after each model request, it performs several transactions in the
//! database and then occupies one of its server's processors. All runs share the processors of the
//! database, and the runs of a server share the processors of that server. A run waits in a queue
//! if no processor is free. Service times are exponentially distributed around the measured means,
//! which makes them more variable than in reality. The model takes the same time for each request
//! and is never busy. The network, locks and the database's disk are not simulated.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// The measured resource usage of a run with two model requests.
#[derive(Clone, Copy)]
pub(crate) struct Measured {
    /// Processor time of the database, in seconds.
    pub(crate) database: f64,
    /// Processor time of the server, in seconds.
    pub(crate) server: f64,
    /// Number of transactions.
    pub(crate) transactions: f64,
}

/// Number of model requests per run.
const REQUESTS: usize = 2;
/// Duration of a model request, in seconds.
const MODEL: f64 = 2.0;
/// Number of processors per server.
const PER_SERVER: usize = 2;
/// Maximum average utilization of the processors, as a fraction.
const BUSY: f64 = 0.7;

/// A group of processors with one queue.
struct Station {
    free: usize,
    line: VecDeque<usize>,
    /// Mean service time, in seconds.
    service: f64,
}

/// The state of a simulated run.
struct Run {
    began: f64,
    /// Number of remaining visits to stations.
    left: usize,
    server: usize,
}

/// Simulates `runs` runs that arrive at `rate` runs per second. Prints the number of required
/// processors and the duration of the runs. The duration excludes the time spent waiting for the
/// model.
pub(crate) fn print(measured: Measured, rate: f64, runs: usize) {
    let of_database = (rate * measured.database / BUSY).ceil().max(1.0) as usize;
    let servers = (rate * measured.server / BUSY / PER_SERVER as f64).ceil().max(1.0) as usize;
    let mut times = simulate(measured, rate, runs, (of_database, servers));
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize] * 1e3;
    println!(
        "{rate:.0} runs/s: {:.0} transactions/s, {of_database} processors of the database, \
         {servers} servers of {PER_SERVER}; {:.0} runs at a time; beside the model p50 {:.0} ms, \
         p99 {:.0} ms",
        rate * measured.transactions,
        rate * (MODEL * REQUESTS as f64 + times.iter().sum::<f64>() / times.len() as f64),
        at(0.5),
        at(0.99)
    );
}

/// Returns the duration of each run in seconds, excluding the time spent waiting for the model.
fn simulate(
    measured: Measured,
    rate: f64,
    count: usize,
    (of_database, servers): (usize, usize),
) -> Vec<f64> {
    let mut random = fastrand::Rng::with_seed(7);
    let mut exponential = |mean: f64| -mean * (1.0 - random.f64()).ln();
    let rounds = REQUESTS + 1;
    // In each round, a run performs its transactions one after another and then visits its server.
    let transactions = (measured.transactions / rounds as f64).round().max(1.0) as usize;
    let visits = rounds * (transactions + 1);
    let database = measured.database / (rounds * transactions) as f64;
    let station = |free, service| Station { free, line: VecDeque::new(), service };
    let mut stations: Vec<Station> =
        (0..servers).map(|_| station(PER_SERVER, measured.server / rounds as f64)).collect();
    stations.push(station(of_database, database));
    let (mut runs, mut times) = (Vec::with_capacity(count), Vec::with_capacity(count));
    // Each event is a tuple of a time in nanoseconds, a run and a flag. If the flag is true, the
    // run leaves the processor of a station; otherwise it arrives at a station.
    let mut events = BinaryHeap::new();
    let nanos = |seconds: f64| (seconds * 1e9) as u64;
    let mut arrival = 0.0;
    for run in 0..count {
        arrival += exponential(1.0 / rate);
        runs.push(Run { began: arrival, left: visits, server: run % servers });
        events.push(Reverse((nanos(arrival), run, false)));
    }
    while let Some(Reverse((now, run, leaves))) = events.pop() {
        let time = now as f64 / 1e9;
        let of = &runs[run];
        let at = if of.left % (transactions + 1) == 1 { of.server } else { servers };
        let station = &mut stations[at];
        if leaves {
            station.free += 1;
            let of = &mut runs[run];
            of.left -= 1;
            if of.left == 0 {
                times.push(time - of.began - MODEL * REQUESTS as f64);
            } else {
                let asks = of.left % (transactions + 1) == 0;
                let pause = if asks { MODEL } else { 0.0 };
                events.push(Reverse((nanos(time + pause), run, false)));
            }
        } else {
            station.line.push_back(run);
        }
        let station = &mut stations[at];
        while station.free > 0
            && let Some(next) = station.line.pop_front()
        {
            station.free -= 1;
            events.push(Reverse((nanos(time + exponential(station.service)), next, true)));
        }
    }
    times
}
