//! `dbg`: lines for the trace, which neither user nor model sees as a result.

use wattle_rt::{Failure, Run, capability};

capability! {
    /// Lines for the trace.
    pub const DBG: "dbg" 1;

    /// Writes a line into the run's trace
    #[example = "(call $dbg.log \"here\") (i32.const 0)"]
    fn log(ptr: str) = log;
}

fn log(run: &mut Run, line: &str) -> Result<(), Failure> {
    run.log(line);
    Ok(())
}
