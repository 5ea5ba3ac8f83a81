//! The output of an evaluation.

use serde_json::json;
use wattle_eval::{Attempt, ErrorReport, Evaluation, Results, Scorecard, Verdict};

use super::Compared;
use crate::args::EvalArgs;
use crate::fault::Fault;
use crate::output::{self, BAD, DIM, GOOD, WARN, paint, visible};
use crate::progress::counted;

/// Prints a line for a finished attempt, and one for each of its problems.
pub(super) fn progress(attempt: &Attempt, several: bool) {
    let verdict = match attempt.verdict {
        Verdict::Passed => paint(GOOD, "passed"),
        Verdict::Failed => paint(BAD, "FAILED"),
        Verdict::Error => paint(WARN, "error "),
    };
    let mut whose =
        if several { format!(" {} by {}", attempt.model, attempt.approach) } else { String::new() };
    if attempt.trial > 1 {
        whose.push_str(&format!(" (attempt {})", attempt.trial));
    }
    output::note(&format!("{verdict} {}{}", attempt.task, paint(DIM, &visible(&whose))));
    attempt
        .problems
        .iter()
        .for_each(|problem| output::note(&format!("       {}", visible(problem))));
}

/// Prints the scorecard, the report of first-try errors, the comparisons, and notes on reused,
/// repeated and skipped attempts.
pub(super) fn evaluation(
    args: &EvalArgs,
    done: &Evaluation,
    pairings: &[Compared],
    results: Option<&Results>,
) -> Result<(), Fault> {
    let card = Scorecard::of(&done.attempts);
    let errors = ErrorReport::of(&done.attempts);
    if args.json {
        let paired: Vec<_> = pairings.iter().map(|compared| &compared.pairing).collect();
        output::json(&json!({
            "suite": args.dir, "rows": card.rows, "comparisons": card.comparisons,
            "errors": errors, "paired": paired, "attempts": done.attempts,
            "reused": done.reused, "unrecorded": done.unrecorded, "cancelled": done.cancelled,
        }))?;
    } else {
        let mut parts = vec![card.to_string()];
        parts.extend(errors.iter().map(ToString::to_string));
        for Compared { pairing, with_earlier } in pairings {
            let with = match (&args.against, with_earlier) {
                (Some(path), true) => format!("compared with `{}`: ", path.display()),
                _ => "compared: ".to_owned(),
            };
            parts.push(with + &pairing.to_string());
        }
        output::data(visible(&parts.join("\n")).as_bytes())?;
    }
    let of = |count: usize| counted(count, "attempt");
    if let Some(results) = results.filter(|_| done.reused > 0) {
        let from = results.path().display();
        output::aside(&format!("{} kept from `{from}`; `--fresh` deletes them", of(done.reused)));
    }
    if done.other_prompt > 0 {
        let repeated = of(done.other_prompt);
        output::note(&format!("{repeated} repeated: the earlier ones had another prompt"));
    }
    if done.unrecorded > 0 {
        output::aside(&format!("{} left out: not recorded", of(done.unrecorded)));
    }
    if done.cancelled > 0 {
        let kept = if results.is_some() { "; `--resume` continues from here" } else { "" };
        output::note(&format!("interrupted: {} not made{kept}", of(done.cancelled)));
    }
    Ok(())
}
