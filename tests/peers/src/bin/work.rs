//! Performs one kind of work several times: `work assemble|cold|warm|call|read TIMES`. The gate counts the
//! instructions of two processes with different values of `TIMES`; the difference is the cost of
//! the additional work.

use std::hint::black_box;
use std::process::ExitCode;

use wattle_peers::typical::{CALLING, PROGRAM, answer, args};
use wattle_peers::{Result, wattle};
use wattle_rt::Limits;

fn main() -> ExitCode {
    let all: Vec<String> = std::env::args().skip(1).collect();
    let [work, times] = all.as_slice() else {
        eprintln!("usage: work assemble|cold|warm|call|read TIMES");
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
        "cold" => {
            let texts: Vec<String> =
                (0..times).map(|number| wattle::unseen(PROGRAM, number)).collect();
            run_each(texts.iter().map(String::as_str), args)?;
        }
        "warm" => run_each((0..times).map(|_| PROGRAM), args)?,
        "call" => run_each((0..times).map(|_| CALLING), Vec::new)?,
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

/// Runs programs one after the other on this thread.
fn run_each<'a>(texts: impl Iterator<Item = &'a str>, args: fn() -> Vec<String>) -> Result<()> {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    // More instances would reserve more address space than valgrind provides.
    let limits = Limits { instances: 1, ..Limits::default() };
    let (runtime, grants) = wattle::runtime(limits)?;
    tokio.block_on(async {
        for text in texts {
            black_box(wattle::run(&runtime, &grants, black_box(text), args()).await?);
        }
        Ok(())
    })
}
