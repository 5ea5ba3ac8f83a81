//! Parses a model's answer, which may contain text around the requested value.

use serde_json::Value as Json;

/// Maximum number of positions in an answer at which the parser tries to find JSON.
const MAX_TRIES: usize = 32;

/// Returns the answer without any leading block of tagged reasoning, such as `<think>…</think>`.
pub(crate) fn without_reasoning(reply: &str) -> &str {
    let reply = reply.trim();
    let rest = ["think", "thinking", "reasoning"].into_iter().find_map(|tag| {
        let rest = reply.strip_prefix('<')?.strip_prefix(tag)?.strip_prefix('>')?;
        rest.split_once(&format!("</{tag}>")).map(|(_, rest)| rest.trim())
    });
    rest.unwrap_or(reply)
}

/// Returns the JSON value in an answer, both as source text and parsed, or `None` if there is none.
/// The value is the whole answer, the content of a leading code fence, or the first object or array
/// in the answer.
pub(crate) fn json(reply: &str) -> Option<(&str, Json)> {
    let reply = without_reasoning(reply);
    if let Ok(value) = serde_json::from_str(reply) {
        return Some((reply, value));
    }
    // Within a code fence, a value of any type is accepted.
    let fenced =
        reply.strip_prefix("```").and_then(|rest| rest.split_once('\n')?.1.split_once("```"));
    let fenced = fenced.map(|(inside, _)| inside.trim());
    if let Some((inside, value)) =
        fenced.and_then(|inside| Some((inside, serde_json::from_str(inside).ok()?)))
    {
        return Some((inside, value));
    }
    reply.match_indices(['{', '[']).take(MAX_TRIES).find_map(|(at, _)| {
        let rest = reply.get(at..)?;
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Json>();
        let value = values.next()?.ok()?;
        Some((rest.get(..values.byte_offset())?, value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_is_found_anywhere_in_the_answer() {
        for (reply, found) in [
            ("{\"a\": 1.10}", Some("{\"a\": 1.10}")),
            ("  [1]\n", Some("[1]")),
            ("\"x\"", Some("\"x\"")),
            ("```json\n{\"a\": 1}\n```", Some("{\"a\": 1}")),
            ("```\n7\n```\nThat is it.", Some("7")),
            ("Here it is:\n```json\n{\"a\": 1}\n```", Some("{\"a\": 1}")),
            ("The value {of a} is {\"a\": [1]}, I think", Some("{\"a\": [1]}")),
            ("<think>{\"a\": 0}?</think> {\"a\": 1}", Some("{\"a\": 1}")),
            ("<think>no end {\"a\": 1}", Some("{\"a\": 1}")),
            ("", None),
            ("nothing", None),
            ("{\"a\": 1", None),
        ] {
            assert_eq!(json(reply).map(|(text, _)| text), found, "{reply}");
        }
        assert!(json(&"[".repeat(100_000)).is_none());
    }
}
