//! Messages about programs that exceed a limit, and about compilations that did not finish.

use std::time::Duration;

use super::{Message, message};
use crate::Interruption;
use crate::cost::Measure;

/// The diagnostic code for a program that costs too much to compile.
pub(crate) const TOO_LARGE: &str = "too-large";

messages! {
    too_long(bytes: usize, limit: usize) "too-long"
        "the program has {bytes} bytes, more than the maximum of {limit}"
        => "read large data with a host function instead of writing it into the program";
    module_too_long(limit: usize) "too-long"
        "the program expands to more than {limit} bytes"
        => "move repeated code into a function or a loop";
    too_deep(limit: usize) "too-deep"
        "parentheses are nested more than {limit} deep"
        => "keep intermediate values in locals, and write long sequences side by side";
    too_deep_blocks(limit: usize) "too-deep"
        "blocks are nested more than {limit} deep"
        => "close each `block`, `loop` and `if` with `end`";
    too_many_locals(limit: usize) "too-many-locals"
        "a function cannot have more than {limit} locals"
        => "keep lists in an array (`$arr.new`) or in memory";
    too_large(measure: Measure, found: u64) TOO_LARGE
        "{what}, more than the maximum of {limit}"
        => match (measure) {
            Measure::Instructions =>
                "move repeated code into a function or a loop, and data into files",
            Measure::Functions => "split it into several programs",
            Measure::Types => "use the same types for functions and blocks",
            Measure::Locals | Measure::Globals =>
                "keep lists in an array (`$arr.new`) or in memory",
            Measure::Elements | Measure::TableUses => "call functions by name",
            Measure::Labels => "look values up in a string or an array",
            Measure::Carried => "pass one array or one address instead of many values",
            Measure::Joined =>
                "set fewer locals in one block or loop, and move parts of it into separate functions",
            Measure::Crossed =>
                "use fewer locals in one function, and move parts of it into separate functions",
            Measure::Held =>
                "use each value soon after it is computed, and keep lists in an array (`$arr.new`)",
        } where limit = measure.limit(), what = excess(measure, found);
}

/// Describes what a program has too much of.
fn excess(measure: Measure, found: u64) -> String {
    let what = match measure {
        Measure::Instructions => "the program has {} instructions",
        Measure::Functions => "the program has {} functions",
        Measure::Types => "the program has {} function types",
        Measure::Locals => "the program's functions declare {} locals",
        Measure::Globals => "the program has {} globals",
        Measure::Elements => "the program's element segments have {} entries",
        Measure::TableUses => "the program has {} instructions that use a table",
        Measure::Labels => "the program's `br_table` instructions have {} labels",
        Measure::Carried => "functions, calls, blocks and branches pass {} values",
        Measure::Joined => "{} values may differ where branches and loops meet",
        Measure::Crossed => "values are kept across {} branches, loops and calls",
        Measure::Held => {
            "functions hold {} values at the same time (not counting 64 in each function)"
        }
    };
    what.replace("{}", &found.to_string())
}

pub(crate) fn unfinished(reason: &Interruption, time: Duration) -> Message {
    match reason {
        Interruption::Busy => {
            message("host-busy", "the host is already compiling as many programs as it can")
                .hint("the program is not at fault: try again in a few seconds")
        }
        Interruption::Overdue => message(
            "compile-time",
            format!("compiling took longer than {} s and was stopped", time.as_secs_f64()),
        )
        .hint("split the program into several, or a long function into shorter ones"),
        Interruption::Bug(panic) => {
            message("compiler-bug", format!("the compiler failed: {panic}")).hint(
                "this is a bug in wattle, not in the program; writing the program differently may \
                 work",
            )
        }
    }
}
