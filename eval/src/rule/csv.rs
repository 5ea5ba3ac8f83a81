//! The rule `csv`, which compares the cells of a table and ignores how they are quoted.

use super::clean::{normalised, unfenced};
use super::item::{Item, is_near, joined};
use super::quoted;

/// Returns the reason why the text is not the expected table, or `None` if it is.
pub(super) fn wrong(
    subject: &str,
    text: &str,
    expected: &[Vec<Item>],
    within: f64,
) -> Option<String> {
    let Some(rows) = parse(&normalised(unfenced(text))) else {
        return Some(format!("{subject} is not CSV, a quote is open: {}", quoted(text)));
    };
    for (at, (row, wanted)) in rows.iter().zip(expected).enumerate() {
        let same = row.len() == wanted.len()
            && row.iter().zip(wanted).all(|(cell, item)| is_cell(cell, item, within));
        if !same {
            let found = row.join(", ");
            return Some(format!(
                "{subject} has [{found}] in row {}, expected [{}]",
                at + 1,
                joined(wanted)
            ));
        }
    }
    (rows.len() != expected.len()).then(|| {
        format!("{subject} has {} rows, expected {}: {}", rows.len(), expected.len(), quoted(text))
    })
}

/// Returns true if a cell has the expected value. A number may be written differently if programs
/// can still parse it: `12.50` matches `12.5`, but `12.5 EUR` does not. A string must match
/// exactly.
fn is_cell(cell: &str, item: &Item, within: f64) -> bool {
    match item {
        Item::Text(text) => cell.trim() == text.trim(),
        Item::Number(number) => {
            cell.trim().parse::<f64>().is_ok_and(|found| is_near(found, *number, within))
        }
    }
}

/// Parses a table in the format of RFC 4180. Returns its rows, or `None` if a quote is not closed.
/// Empty lines are skipped.
fn parse(text: &str) -> Option<Vec<Vec<String>>> {
    let mut rows = Vec::new();
    let (mut row, mut cell) = (Vec::new(), String::new());
    let mut is_quoted = false;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if is_quoted && chars.peek() == Some(&'"') => {
                chars.next();
                cell.push('"');
            }
            '"' if is_quoted => is_quoted = false,
            c if is_quoted => cell.push(c),
            '"' if cell.trim().is_empty() => {
                cell.clear();
                is_quoted = true;
            }
            ',' => row.push(std::mem::take(&mut cell)),
            '\n' => {
                row.push(std::mem::take(&mut cell));
                rows.push(std::mem::take(&mut row));
            }
            c => cell.push(c),
        }
    }
    if is_quoted {
        return None;
    }
    row.push(cell);
    rows.push(row);
    rows.retain(|row| row.iter().any(|cell| !cell.trim().is_empty()));
    Some(rows)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn quoted_cells_are_read_as_rfc_4180_says() {
        let rows = |rows: &[&[&str]]| {
            Some(rows.iter().map(|row| row.iter().map(|c| (*c).to_owned()).collect()).collect())
        };
        assert_eq!(parse("a,b\n1,\"x, y\"\n"), rows(&[&["a", "b"], &["1", "x, y"]]));
        assert_eq!(parse("\"say \"\"hi\"\"\",2"), rows(&[&["say \"hi\"", "2"]]));
        assert_eq!(parse("\"two\nlines\",\n\n"), rows(&[&["two\nlines", ""]]));
        assert_eq!(parse("\"open"), None);
        assert_eq!(parse(""), rows(&[]));
    }
}
