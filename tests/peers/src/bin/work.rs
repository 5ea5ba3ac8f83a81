//! Performs one kind of work several times: `work assemble|warm|read TIMES`. The gate counts the
//! instructions of two processes with different values of `TIMES`; the difference is the cost of
//! the additional work.

use std::hint::black_box;
use std::process::ExitCode;

use wattle_peers::typical::{PROGRAM, answer, args};
use wattle_peers::{Result, wattle};
use wattle_rt::Limits;

fn main() -> ExitCode {
    let all: Vec<String> = std::env::args().skip(1).collect();
    let [work, times] = all.as_slice() else {
        eprintln!("usage: work assemble|warm|read TIMES");
        return ExitCode::from(2);
    };
    match perform(work, times) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{work}: {why}");
            ExitCode::FAILURE
        }
    }
}

fn perform(work: &str, times: &str) -> Result<()> {
    let times: u32 = times.parse()?;
    match work {
        "assemble" => {
            let signatures = wattle::signatures();
            for _ in 0..times {
                black_box(wattle::module(&signatures, black_box(PROGRAM))?);
            }
        }
        "warm" => {
            let tokio = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
            // More instances would reserve more address space than valgrind provides.
            let limits = Limits { instances: 1, ..Limits::default() };
            let (runtime, grants) = wattle::runtime(limits)?;
            tokio.block_on(async {
                for _ in 0..times {
                    black_box(wattle::run(&runtime, &grants, black_box(PROGRAM), args()).await?);
                }
                Ok::<(), Box<dyn std::error::Error>>(())
            })?;
        }
        "read" => {
            let answer = answer();
            for _ in 0..times {
                black_box(wattle_machine::read(black_box(&answer)));
            }
        }
        _ => return Err("unknown work".into()),
    }
    Ok(())
}
