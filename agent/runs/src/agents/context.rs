//! Substitution of context values in strings: `${key}` stands for the value of `key`, and `$${`
//! stands for a literal `${`.

use std::collections::BTreeMap;

/// Replaces each `${key}` in `text` with the value of `key` in `values`.
///
/// # Errors
/// If a key has no value. The error is the first such key.
pub(super) fn fill(text: &str, values: &BTreeMap<String, String>) -> Result<String, String> {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        if let Some(before) = before.strip_suffix('$') {
            filled.push_str(before);
            filled.push_str("${");
            rest = after;
            continue;
        }
        filled.push_str(before);
        match after.split_once('}') {
            Some((key, after)) => {
                filled.push_str(values.get(key.trim()).ok_or_else(|| key.trim().to_owned())?);
                rest = after;
            }
            None => {
                filled.push_str("${");
                rest = after;
            }
        }
    }
    filled.push_str(rest);
    Ok(filled)
}

/// Replaces each `${key}` in the values of `map` with the value of `key` in `values`.
///
/// # Errors
/// If a key has no value. The error is the first such key.
pub(super) fn filled(
    map: &BTreeMap<String, String>,
    values: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, String> {
    map.iter().map(|(key, text)| Ok((key.clone(), fill(text, values)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_replaced_by_values() {
        let values = BTreeMap::from([("a".to_owned(), "1 ${b}".to_owned())]);
        for (text, expected) in [
            ("${a}", Ok("1 ${b}")),
            ("x ${ a }${a}", Ok("x 1 ${b}1 ${b}")),
            ("$${a} $a {a} $", Ok("${a} $a {a} $")),
            ("open ${a", Ok("open ${a")),
            ("${c}", Err("c")),
            ("${}", Err("")),
        ] {
            let expected = expected.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(fill(text, &values), expected, "{text}");
        }
    }
}
