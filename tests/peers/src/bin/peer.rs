//! Measures one peer in this process and prints the figures as a line of JSON. `peer PEER JOB
//! FOLDER SECONDS` measures runs of a job, and `peer PEER live FOLDER COUNT` measures the memory of
//! live contexts.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use serde_json::{Value, json};
use wattle_peers::Result;
use wattle_peers::bare::{self, Wasmtime};
use wattle_peers::interpreter::{self, Wasmi};
use wattle_peers::jobs::Job;
use wattle_peers::monty::Monty;
use wattle_peers::quickjs::QuickJs;
use wattle_peers::sample::{Peer, measure, peak_kib};
use wattle_peers::wattle::{self, Wattle};

/// The job whose contexts are kept alive.
const LIVE_JOB: &str = "host";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [peer, job, folder, bound] = args.as_slice() else {
        eprintln!("usage: peer PEER JOB|live FOLDER SECONDS|COUNT");
        return ExitCode::from(2);
    };
    match figures(peer, job, Path::new(folder), bound) {
        Ok(figures) => {
            println!("{figures}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("{peer}, {job}: {why}");
            ExitCode::FAILURE
        }
    }
}

fn figures(peer: &str, job: &str, folder: &Path, bound: &str) -> Result<Value> {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let task = if job == "live" { Task::Live(bound.parse()?) } else { Task::Time(bound.parse()?) };
    let job = match task {
        Task::Live(_) => Job::load(folder, LIVE_JOB)?,
        Task::Time(_) => Job::load(folder, job)?,
    };
    // The memory of the process before the peer is created. Any additional memory belongs to the
    // peer.
    let empty = peak_kib()?;
    tokio.block_on(async {
        let job = &job;
        match peer {
            "wattle-cold" => task.perform(Wattle::new(wattle::Path::Cold, job)?, job, empty).await,
            "wattle-warm" => task.perform(Wattle::new(wattle::Path::Warm, job)?, job, empty).await,
            "wattle-catalog" => {
                task.perform(Wattle::new(wattle::Path::Catalog, job)?, job, empty).await
            }
            "wasmtime-cold" => {
                task.perform(Wasmtime::new(bare::Path::Cold, job)?, job, empty).await
            }
            "wasmtime-warm" => {
                task.perform(Wasmtime::new(bare::Path::Warm, job)?, job, empty).await
            }
            "wasmtime-naive" => {
                task.perform(Wasmtime::new(bare::Path::Naive, job)?, job, empty).await
            }
            "wasmi-cold" => {
                task.perform(Wasmi::new(interpreter::Path::Cold, job)?, job, empty).await
            }
            "wasmi-warm" => {
                task.perform(Wasmi::new(interpreter::Path::Warm, job)?, job, empty).await
            }
            "quickjs" => task.perform(QuickJs::new(job)?, job, empty).await,
            "monty" => task.perform(Monty::new(job)?, job, empty).await,
            _ => Err("unknown peer".into()),
        }
    })
}

/// The measurement to perform.
#[derive(Clone, Copy)]
enum Task {
    /// A time measurement that lasts this many seconds.
    Time(f64),
    /// A memory measurement with this many live contexts.
    Live(usize),
}

impl Task {
    async fn perform(self, mut peer: impl Peer, job: &Job, empty: u64) -> Result<Value> {
        match self {
            Task::Live(count) => Ok(json!({ "kib_each": peer.live(count).await? })),
            Task::Time(seconds) => {
                let time = Duration::from_secs_f64(seconds);
                let mut figures = measure(&mut peer, &job.expected, time).await?;
                figures["peak_kib"] = json!(peak_kib()?);
                figures["empty_kib"] = json!(empty);
                Ok(figures)
            }
        }
    }
}
