//! Compares the rows of a data file with actual results. Each row is a JSON array and, after `=>`,
//! the exact result. `UPDATE=1` updates the results.

use std::path::Path;

use serde_json::Value as Json;

/// Compares the `outcome` of each row with the result in the file. Returns the number of rows.
pub(crate) fn check(name: &str, mut outcome: impl FnMut(&[String]) -> String) -> usize {
    let path = Path::new("tests/data/hostile").join(name);
    let text = wattle_cases::read(&path);
    let (mut made, mut rows) = (String::new(), 0);
    for line in text.lines() {
        let Some((input, _)) = line.split_once(" =>").filter(|_| line.starts_with('[')) else {
            made += &format!("{line}\n");
            continue;
        };
        let parts: Vec<Json> =
            serde_json::from_str(input).unwrap_or_else(|why| panic!("{line}: {why}"));
        let parts: Vec<String> = parts.iter().map(|part| spelled(part.as_str().unwrap())).collect();
        made += &format!("{input} => {}\n", outcome(&parts));
        rows += 1;
    }
    wattle_cases::compare(&path, &made);
    rows
}

/// Expands `{x*300}` to 300 repetitions of `x`.
fn spelled(part: &str) -> String {
    let Some((before, rest)) = part.split_once('{') else { return part.to_owned() };
    let Some((repeat, after)) = rest.split_once('}') else { return part.to_owned() };
    match repeat.rsplit_once('*').and_then(|(text, times)| Some((text, times.parse().ok()?))) {
        Some((text, times)) => format!("{before}{}{after}", text.repeat(times)),
        None => part.to_owned(),
    }
}
