//! Extraction of the JSON value from an answer.

use serde_json::Value as Json;

/// Maximum length of an answer that is searched for a value, in bytes.
const MAX_ANSWER: usize = 512 << 10;

/// Maximum number of positions in an answer at which JSON parsing is attempted.
const MAX_TRIES: usize = 64;

/// Returns the value of an answer: the whole text, or the only code fence with JSON, or the only
/// object or array in the text.
///
/// # Errors
/// If the value cannot be determined unambiguously. The error is the reason.
pub(super) fn of_answer(answer: &str) -> Result<Json, String> {
    if answer.len() > MAX_ANSWER {
        let length = answer.len();
        return Err(format!("it has {length} bytes; at most {MAX_ANSWER} are allowed"));
    }
    let whole = match serde_json::from_str(answer.trim()) {
        Ok(value) => return Ok(value),
        Err(why) => why,
    };
    let fenced = only(fences(answer).filter_map(|inside| serde_json::from_str(inside).ok()))?;
    if let Some(value) = fenced {
        return Ok(value);
    }
    only(objects(answer))?.ok_or_else(|| format!("it is not valid JSON: {whole}"))
}

/// Returns the only value, or `None` if there is none. Equal values count as one.
fn only(mut values: impl Iterator<Item = Json>) -> Result<Option<Json>, String> {
    let Some(first) = values.next() else { return Ok(None) };
    if values.any(|value| value != first) {
        Err("it contains several JSON values, and it is not certain which one is meant: \
                     write a single one"
            .to_owned())
    } else {
        Ok(Some(first))
    }
}

/// Returns the contents of the code fences in a string.
fn fences(text: &str) -> impl Iterator<Item = &str> {
    // The contents of the fences are the parts at odd positions. The first line of a fence may name
    // its language.
    let parts = text.split("```").skip(1).step_by(2).take(MAX_TRIES);
    parts.map(|part| match part.split_once('\n') {
        Some((language, inside)) if !language.trim_start().starts_with(['{', '[']) => inside,
        _ => part,
    })
}

/// Returns the outermost objects and arrays in a string.
fn objects(text: &str) -> impl Iterator<Item = Json> {
    let (mut from, mut tries) = (0, 0);
    std::iter::from_fn(move || {
        while tries < MAX_TRIES {
            tries += 1;
            let rest = text.get(from..)?;
            let at = rest.find(['{', '['])?;
            let rest = rest.get(at..)?;
            let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Json>();
            match values.next() {
                Some(Ok(value)) => {
                    from += at + values.byte_offset();
                    return Some(value);
                }
                _ => from += at + 1,
            }
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_only_value_is_found() {
        for (answer, value) in [
            ("{\"a\": 1}", json!({"a": 1})),
            (" 7\n", json!(7)),
            ("\"x\"", json!("x")),
            ("```json\n{\"a\": 1}\n```", json!({"a": 1})),
            ("```\n7\n```", json!(7)),
            ("Here:\n```json\n[1]\n```\nIt has {braces}.", json!([1])),
            ("```wat\n(resv)\n```\n```json\n[1]\n```", json!([1])),
            ("```{\"a\": 1}```", json!({"a": 1})),
            ("The value {of a} is {\"a\": [1]}, I think.", json!({"a": [1]})),
            ("{\"a\": 1} or, again, {\"a\": 1}", json!({"a": 1})),
        ] {
            assert_eq!(of_answer(answer), Ok(value), "{answer}");
        }
    }

    #[test]
    fn an_uncertain_value_is_an_error() {
        for (answer, words) in [
            ("", "not valid JSON"),
            ("nothing", "not valid JSON"),
            ("{\"a\": 1", "not valid JSON"),
            ("{\"a\": 1} or {\"a\": 2}", "several"),
            ("```\n1\n```\n```\n2\n```", "several"),
            (&"[".repeat(100_000), "not valid JSON"),
            (&" ".repeat(MAX_ANSWER + 1), "bytes"),
        ] {
            let why = of_answer(answer).unwrap_err();
            assert!(why.contains(words), "{why}");
        }
    }
}
