//! The limit on the size of a call's results.

use wattle_machine::{Completion, Execution};

/// Maximum size of the results of a call, in bytes. The model reads only a few thousand characters
/// of them, but the journal records them as part of the turn, and a record takes several times
/// their size.
const MAX_RESULTS: usize = 1 << 20;
/// Maximum number of bytes kept from the beginning of results that exceed the limit.
const HEAD: usize = MAX_RESULTS / 2;
/// Maximum number of bytes kept from the end of results that exceed the limit.
const TAIL: usize = MAX_RESULTS / 4;
/// Number of bytes counted for each result in addition to its text.
const RESULT: usize = 4;

/// Returns the execution. If its results exceed the limit, their middle is left out. If the call
/// completed, a warning then tells the model how many bytes are missing.
pub(crate) fn limited(execution: Execution) -> Execution {
    match execution {
        Execution::Ran(ran) => {
            let Completion { results, mut warnings, .. } = ran;
            let (results, omission) = limit(results);
            warnings.extend(omission.map(|omission| format!("{omission}; print less")));
            Execution::Ran(Completion { results, warnings, ..ran })
        }
        Execution::Stopped { reason, results, cost, fixes, kept } => {
            let (results, _) = limit(results);
            Execution::Stopped { reason, results, cost, fixes, kept }
        }
        other => other,
    }
}

/// Leaves out the middle of results that exceed the limit. Returns the results, and a phrase that
/// states how many bytes were left out, or `None` if none were.
fn limit(results: Vec<String>) -> (Vec<String>, Option<String>) {
    let size = |results: &[String]| results.iter().map(|text| text.len() + RESULT).sum::<usize>();
    let all = size(&results);
    if all <= MAX_RESULTS {
        return (results, None);
    }
    let (mut kept, mut room) = (Vec::new(), HEAD);
    for text in &results {
        let Some(rest) = room.checked_sub(RESULT) else { break };
        let part = text.get(..text.floor_char_boundary(rest)).unwrap_or_default();
        kept.push(part.to_owned());
        room = if part.len() == text.len() { rest - part.len() } else { 0 };
    }
    let (mut end, mut room) = (Vec::new(), TAIL);
    for text in results.iter().rev() {
        let Some(rest) = room.checked_sub(RESULT) else { break };
        let from = text.ceil_char_boundary(text.len().saturating_sub(rest));
        let part = text.get(from..).unwrap_or_default();
        end.push(part.to_owned());
        room = if from == 0 { rest - part.len() } else { 0 };
    }
    let omitted = all - size(&kept) - size(&end);
    let omission = format!("{omitted} of {all} bytes of the results were left out");
    kept.push(format!("[… {omission} …]"));
    kept.extend(end.into_iter().rev());
    (kept, Some(omission))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]
mod tests {
    use super::*;

    fn ran(results: &[String]) -> Execution {
        Execution::Ran(Completion { results: results.to_vec(), ..Completion::default() })
    }

    #[test]
    fn short_results_are_kept_as_they_are() {
        let execution = ran(&["a".to_owned(), String::new(), "x".repeat(MAX_RESULTS - 100)]);
        assert_eq!(limited(execution.clone()), execution);
    }

    #[test]
    fn long_results_lose_their_middle() {
        let many: Vec<String> = (0..MAX_RESULTS).map(|at| at.to_string()).collect();
        for results in [vec!["ü".repeat(MAX_RESULTS)], vec![String::new(); MAX_RESULTS], many] {
            let execution = limited(ran(&results));
            let Execution::Ran(kept) = &execution else { panic!("{execution:?}") };
            let size: usize = kept.results.iter().map(String::len).sum();
            assert!(size < MAX_RESULTS && kept.results.len() <= MAX_RESULTS / RESULT);
            assert!(results[0].starts_with(&kept.results[0]));
            assert!(results.last().unwrap().ends_with(kept.results.last().unwrap()));
            assert_eq!(kept.warnings.len(), 1, "{:?}", kept.warnings);
            assert_eq!(limited(execution.clone()), execution, "limiting it again changes nothing");
        }
    }

    #[test]
    fn the_results_of_a_stopped_program_are_limited_too() {
        let results = vec!["x".repeat(MAX_RESULTS), "end".to_owned()];
        let (reason, cost, fixes) = ("stopped".to_owned(), Default::default(), Vec::new());
        let stopped =
            limited(Execution::Stopped { reason, results, cost, fixes, kept: Vec::new() });
        let [head, note, tail, end] = stopped.results() else { panic!("{stopped:?}") };
        assert_eq!((head.len() + RESULT, end.as_str()), (HEAD, "end"));
        assert!(note.starts_with("[… ") && tail.len() < TAIL, "{note}");
    }
}
