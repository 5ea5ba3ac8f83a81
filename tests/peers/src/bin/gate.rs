//! Prints the ratios of Wattle's times to those of bare wasmtime. Each line contains the name of a
//! comparison and its median ratio.
//!
//! Each round times both sides one after the other, so that a busy machine slows both. A round's
//! ratio is the quotient of the two times.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use wasmtime::InstancePre;
use wattle_peers::bare::{Bare, Module, State};
use wattle_peers::typical::{CALLING, PROGRAM, args};
use wattle_peers::{Result, wattle};
use wattle_rt::{Grants, Limits, Runtime};

/// Number of rounds.
const ROUNDS: usize = 301;

/// Number of cold runs per side in a round, chosen so that a round takes a few milliseconds.
const COLD_RUNS: u32 = 8;
const WARM_RUNS: u32 = 512;
const CALLING_RUNS: u32 = 16;

fn main() -> ExitCode {
    match print_ratios() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn print_ratios() -> Result<()> {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    tokio.block_on(async {
        let mut sides = Sides::new()?;
        for (name, pair) in [
            ("warm/bare-warm", [Side::Warm, Side::BareWarm]),
            ("cold/bare-cold", [Side::Cold, Side::BareCold]),
            ("cold/naive", [Side::Cold, Side::Naive]),
            ("host-call/bare", [Side::Calling, Side::BareCalling]),
        ] {
            println!("{name} {:.3}", sides.ratio(pair).await?);
        }
        Ok(())
    })
}

/// A kind of run that is timed.
#[derive(Clone, Copy)]
enum Side {
    Warm,
    BareWarm,
    Cold,
    BareCold,
    Naive,
    Calling,
    BareCalling,
}

/// A compiled module, and the first address after its static data.
type Compiled = (InstancePre<State>, u32);

/// Wattle and bare wasmtime, ready to run the programs.
struct Sides {
    runtime: Runtime,
    grants: Arc<Grants>,
    same: Bare,
    naive: Bare,
    typical: Compiled,
    calling: Compiled,
    /// Number of unseen programs generated so far.
    texts: u32,
}

impl Sides {
    fn new() -> Result<Sides> {
        let (runtime, grants) = wattle::runtime(Limits::default())?;
        let (same, naive) = (Bare::same_settings()?, Bare::default_settings()?);
        let compiled = |text: &str| -> Result<Compiled> {
            let module = wattle::module(runtime.signatures(), text)?;
            Ok((same.compile(&module)?, module.heap))
        };
        let (typical, calling) = (compiled(PROGRAM)?, compiled(CALLING)?);
        Ok(Sides { runtime, grants, same, naive, typical, calling, texts: 0 })
    }

    /// Returns the median ratio of the two sides' times.
    async fn ratio(&mut self, [a, b]: [Side; 2]) -> Result<f64> {
        let mut ratios = Vec::with_capacity(ROUNDS);
        for round in 0..ROUNDS {
            let (first, second) = if round % 2 == 0 { (a, b) } else { (b, a) };
            let times = (self.time(first).await?, self.time(second).await?);
            let (a, b) = if round % 2 == 0 { times } else { (times.1, times.0) };
            ratios.push(a.as_secs_f64() / b.as_secs_f64());
        }
        ratios.sort_by(f64::total_cmp);
        Ok(ratios[ROUNDS / 2])
    }

    /// Generates programs that neither side has seen before.
    fn unseen(&mut self) -> Vec<String> {
        let first = self.texts;
        self.texts += COLD_RUNS;
        (first..self.texts).map(|number| wattle::unseen(PROGRAM, number)).collect()
    }

    fn unseen_modules(&mut self) -> Result<Vec<Module>> {
        self.unseen().iter().map(|text| wattle::module(self.runtime.signatures(), text)).collect()
    }

    /// Measures the time of one side's runs in a round.
    async fn time(&mut self, side: Side) -> Result<Duration> {
        match side {
            Side::Warm => self.wattle(&[PROGRAM; WARM_RUNS as usize], args).await,
            Side::Calling => self.wattle(&[CALLING; CALLING_RUNS as usize], Vec::new).await,
            Side::Cold => {
                let texts = self.unseen();
                let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
                self.wattle(&texts, args).await
            }
            Side::BareWarm => self.bare(&self.typical, WARM_RUNS, args).await,
            Side::BareCalling => self.bare(&self.calling, CALLING_RUNS, Vec::new).await,
            Side::BareCold => {
                let modules = self.unseen_modules()?;
                let started = Instant::now();
                for module in &modules {
                    self.same.run(&self.same.compile(module)?, module.heap, args()).await?;
                }
                Ok(started.elapsed())
            }
            Side::Naive => {
                let modules = self.unseen_modules()?;
                let started = Instant::now();
                for module in &modules {
                    self.naive.run_directly(&self.naive.compile(module)?, module.heap, args())?;
                }
                Ok(started.elapsed())
            }
        }
    }

    async fn wattle(&self, texts: &[&str], args: fn() -> Vec<String>) -> Result<Duration> {
        let started = Instant::now();
        for text in texts {
            wattle::run(&self.runtime, &self.grants, text, args()).await?;
        }
        Ok(started.elapsed())
    }

    async fn bare(
        &self,
        (instance, heap): &Compiled,
        runs: u32,
        args: fn() -> Vec<String>,
    ) -> Result<Duration> {
        let started = Instant::now();
        for _ in 0..runs {
            self.same.run(instance, *heap, args()).await?;
        }
        Ok(started.elapsed())
    }
}
