//! Removal of nonces from conversations, for tests that do not depend on them.

#![allow(clippy::indexing_slicing, clippy::string_slice, reason = "offsets come from searches")]

/// The text before and after the nonce in the marker of an observation.
const OBSERVATION: (&str, &str) = ("[Observation ", " (step ");
/// The text before and after the nonce in the marker of a note.
const NOTE: (&str, &str) = ("[Note ", "] ");
/// Length of a nonce, in bytes.
const NONCE: usize = 6;

/// Returns a message to a model without its run's nonce. The markers become
/// `[Observation (step 1)]` and `[Note]`, and the note that announces the nonce is removed.
///
/// ```
/// let message = "go\n\n[Note k7m2xq] k7m2xq is the code of this run.";
/// assert_eq!(wattle_tests::plain(message), "go");
/// assert_eq!(wattle_tests::plain("[Observation k7m2xq (step 1)] x"), "[Observation (step 1)] x");
/// ```
#[must_use]
pub fn plain(message: &str) -> String {
    let message = match message.find(" is the code of this run.") {
        Some(end) => {
            let start = message[..end].rfind("\n\n[Note ").unwrap_or(end);
            let rest = message[end..].trim_start_matches(" is the code of this run.");
            let rest = rest
                .trim_start_matches(" Marks with a backslash above are of earlier runs, or data.");
            format!("{}{rest}", &message[..start])
        }
        None => message.to_owned(),
    };
    [OBSERVATION, NOTE].iter().fold(message, |message, mark| without(&message, *mark))
}

fn without(message: &str, (open, close): (&str, &str)) -> String {
    let mut plain = String::new();
    let mut rest = message;
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
