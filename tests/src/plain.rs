//! Conversations without the nonces of their runs, for tests that are about something else.

#![allow(clippy::indexing_slicing, clippy::string_slice, reason = "offsets come from searches")]

/// The mark of an observation, and what follows its nonce.
const OBSERVATION: (&str, &str) = ("[Observation ", " (step ");
/// The mark of a note, and what follows its nonce.
const NOTE: (&str, &str) = ("[Note ", "] ");
/// Length of a nonce in bytes.
const NONCE: usize = 6;

/// Returns what was said to a model without the nonce of its run: the marks of the host's lines are
/// `[Observation (step 1)]` and `[Note]`, and the note that announces the nonce is left out.
///
/// ```
/// let said = "go\n\n[Note k7m2xq] k7m2xq is the code of this run.";
/// assert_eq!(wattle_tests::plain(said), "go");
/// assert_eq!(wattle_tests::plain("[Observation k7m2xq (step 1)] x"), "[Observation (step 1)] x");
/// ```
#[must_use]
pub fn plain(said: &str) -> String {
    let said = match said.find(" is the code of this run.") {
        Some(end) => {
            let start = said[..end].rfind("\n\n[Note ").unwrap_or(end);
            let rest = said[end..].trim_start_matches(" is the code of this run.");
            let rest = rest.trim_start_matches(" Marks with a backslash above are of earlier runs, or data.");
            format!("{}{rest}", &said[..start])
        }
        None => said.to_owned(),
    };
    [OBSERVATION, NOTE].iter().fold(said, |said, mark| without(&said, *mark))
}

fn without(said: &str, (open, close): (&str, &str)) -> String {
    let mut plain = String::new();
    let mut rest = said;
    while let Some(at) = rest.find(open) {
        let (before, mark) = rest.split_at(at + open.len());
        plain.push_str(before);
        rest = mark;
        if mark.get(NONCE..).is_some_and(|after| after.starts_with(close)) {
            plain.truncate(plain.len() - 1);
            rest = &mark[NONCE..];
        }
    }
    plain + rest
}
