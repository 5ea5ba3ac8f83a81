//! Compares Wattle with bare wasmtime. The script `check` beside this file compares the figures
//! with their bounds.
//!
//! - `gate` prints the ratios of Wattle's times to those of bare wasmtime, one line each: the name
//!   of a comparison and its median ratio.
//! - `gate work NAME TIMES` performs one kind of work several times, so that the instructions of
//!   processes can be counted.
//!
//! Each round of a comparison times both sides one after the other, so that a busy machine slows
//! both. A round's ratio is the quotient of the two times.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a bench prints what it measures")]
#![allow(clippy::indexing_slicing, reason = "a bench that cannot run fails by a panic")]

#[path = "../typical/mod.rs"]
mod typical;

use std::hint::black_box;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use typical::{Bare, CALLING, Compiled, PROGRAM, UNIQUE, Wattle, unseen};

/// Number of rounds of a comparison.
const ROUNDS: usize = 301;

/// Number of cold runs per side in a round, chosen so that a round takes a few milliseconds.
const COLD_RUNS: u32 = 8;
const WARM_RUNS: u32 = 512;
const CALLING_RUNS: u32 = 16;

fn main() -> ExitCode {
    // Cargo adds `--bench`.
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["work", name, times] => {
            let work = WORK.iter().find(|work| work.name() == name);
            let (Some(work), Ok(times)) = (work, times.parse()) else {
                let names: Vec<&str> = WORK.iter().map(|work| work.name()).collect();
                eprintln!("usage: gate work {} TIMES", names.join("|"));
                return ExitCode::from(2);
            };
            perform(*work, times);
        }
        ["--test"] => {
            print_ratios(1);
            for work in WORK {
                perform(*work, 1);
            }
        }
        // Other arguments are for other benches that the same command runs.
        _ => print_ratios(ROUNDS),
    }
    ExitCode::SUCCESS
}

fn print_ratios(rounds: usize) {
    typical::tokio().block_on(async {
        let mut sides = Sides::new();
        for (name, pair) in [
            ("warm/bare-warm", [Side::Warm, Side::BareWarm]),
            ("cold/bare-cold", [Side::Cold, Side::BareCold]),
            ("cold/naive", [Side::Cold, Side::Naive]),
            ("call/bare-call", [Side::Calling, Side::BareCalling]),
        ] {
            println!("{name} {:.3}", sides.ratio(pair, rounds).await);
        }
    });
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

/// Wattle and bare wasmtime, ready to run the programs.
struct Sides {
    wattle: Wattle,
    same: Bare,
    naive: Bare,
    typical: Compiled,
    calling: Compiled,
    /// Number of unseen programs generated so far.
    texts: u32,
}

impl Sides {
    fn new() -> Sides {
        let instances = wattle_rt::Limits::default().instances;
        let (wattle, same) = (Wattle::new(instances), Bare::same_settings(instances));
        let typical = same.compile(&wattle.assemble(PROGRAM));
        let calling = same.compile(&wattle.assemble(CALLING));
        Sides { wattle, same, naive: Bare::default_settings(), typical, calling, texts: 0 }
    }

    /// Returns the median ratio of the two sides' times.
    async fn ratio(&mut self, [a, b]: [Side; 2], rounds: usize) -> f64 {
        let mut ratios = Vec::with_capacity(rounds);
        for round in 0..rounds {
            let (first, second) = if round % 2 == 0 { (a, b) } else { (b, a) };
            let times = (self.time(first).await, self.time(second).await);
            let (a, b) = if round % 2 == 0 { times } else { (times.1, times.0) };
            ratios.push(a.as_secs_f64() / b.as_secs_f64());
        }
        ratios.sort_by(f64::total_cmp);
        ratios[rounds / 2]
    }

    /// Measures the time of one side's runs in a round.
    async fn time(&mut self, side: Side) -> Duration {
        // Programs that neither side has seen before.
        let texts: Vec<String> = match side {
            Side::Cold | Side::BareCold | Side::Naive => {
                let first = self.texts;
                self.texts += COLD_RUNS;
                (first..self.texts).map(unseen).collect()
            }
            _ => Vec::new(),
        };
        let modules: Vec<_> = match side {
            Side::BareCold | Side::Naive => {
                texts.iter().map(|text| self.wattle.assemble(text)).collect()
            }
            _ => Vec::new(),
        };
        let started = Instant::now();
        match side {
            Side::Warm => repeat(WARM_RUNS, async || self.wattle.run(PROGRAM).await).await,
            Side::Calling => repeat(CALLING_RUNS, async || self.wattle.run(CALLING).await).await,
            Side::BareWarm => repeat(WARM_RUNS, async || self.same.run(&self.typical).await).await,
            Side::BareCalling => {
                repeat(CALLING_RUNS, async || self.same.run(&self.calling).await).await;
            }
            Side::Cold => {
                for text in &texts {
                    self.wattle.run(text).await;
                }
            }
            Side::BareCold => {
                for module in &modules {
                    self.same.run(&self.same.compile(module)).await;
                }
            }
            Side::Naive => {
                for module in &modules {
                    self.naive.run_directly(&self.naive.compile(module));
                }
            }
        }
        started.elapsed()
    }
}

async fn repeat(times: u32, run: impl AsyncFn()) {
    for _ in 0..times {
        run().await;
    }
}

/// A kind of work whose instructions are counted.
#[derive(Clone, Copy)]
enum Work {
    /// Generates the module of a program.
    Assemble,
    /// Parses that module: the floor of assembling and of reading an answer.
    Parse,
    /// Reads a model's answer that contains a program.
    Read,
    Cold,
    BareCold,
    Warm,
    BareWarm,
    Call,
    BareCall,
}

const WORK: &[Work] = &[
    Work::Assemble,
    Work::Parse,
    Work::Read,
    Work::Cold,
    Work::BareCold,
    Work::Warm,
    Work::BareWarm,
    Work::Call,
    Work::BareCall,
];

impl Work {
    fn name(self) -> &'static str {
        match self {
            Work::Assemble => "assemble",
            Work::Parse => "parse",
            Work::Read => "read",
            Work::Cold => "cold",
            Work::BareCold => "bare-cold",
            Work::Warm => "warm",
            Work::BareWarm => "bare-warm",
            Work::Call => "call",
            Work::BareCall => "bare-call",
        }
    }
}

fn perform(work: Work, times: u32) {
    // More instances would reserve more address space than valgrind provides.
    const INSTANCES: u32 = 1;
    let wattle = Wattle::new(INSTANCES);
    let bare = Bare::same_settings(INSTANCES);
    typical::tokio().block_on(async {
        match work {
            Work::Assemble => {
                for _ in 0..times {
                    black_box(wattle.assemble(black_box(PROGRAM)));
                }
            }
            Work::Parse => {
                let module = wattle.assemble(PROGRAM).module;
                for _ in 0..times {
                    black_box(wat::parse_str(black_box(&module)).is_ok());
                }
            }
            Work::Read => {
                let answer = format!(
                    "<reasoning>Greet the user by name.</reasoning>\nToolCall::Wat(```wat\n\
                     {PROGRAM}```, \"world\")"
                );
                for _ in 0..times {
                    black_box(wattle_machine::read(black_box(&answer)));
                }
            }
            Work::Cold => {
                for number in 0..times {
                    wattle.run(&unseen(number)).await;
                }
            }
            Work::BareCold => {
                let mut module = wattle.assemble(&unseen(0));
                for number in 0..times {
                    let (before, new) = (UNIQUE + number, UNIQUE + number + 1);
                    module.module = module.module.replace(&before.to_string(), &new.to_string());
                    bare.run(&bare.compile(&module)).await;
                }
            }
            Work::Warm => repeat(times, async || wattle.run(PROGRAM).await).await,
            Work::Call => repeat(times, async || wattle.run(CALLING).await).await,
            Work::BareWarm | Work::BareCall => {
                let text = if matches!(work, Work::BareWarm) { PROGRAM } else { CALLING };
                let compiled = bare.compile(&wattle.assemble(text));
                repeat(times, async || bare.run(&compiled).await).await;
            }
        }
    });
}
