//! Conversion of CSV tables (RFC 4180) to and from JSON arrays of objects.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use csv::{ByteRecord, ReaderBuilder, WriterBuilder};
use indexmap::IndexSet;
use wattle_rt::{Code, Failure, quote};

use super::MAX_DOCUMENT;
use super::document::{Document, MAX_VALUES, quoted};
use super::scan::is_number;
use crate::{MAX_TEXT, QUOTED, too_large};

/// Maximum number of fields in a formatted table. Every row has a field for each column of the
/// table.
const MAX_FIELDS: usize = 4_000_000;
/// A sentinel row appended to the input. An unclosed quote would absorb it, so the parser returns
/// it as a separate row only if all quotes are closed.
const END: &[u8] = b"\n\0";

/// Returns the separator byte. The default is a comma.
fn separator(sep: Option<&str>) -> Result<u8, Failure> {
    match sep.map(str::as_bytes) {
        None | Some([]) => Ok(b','),
        Some([byte]) if byte.is_ascii() && !b"\"\r\n\0".contains(byte) => Ok(*byte),
        Some(_) => Err(Failure::new(
            Code::EPARSE,
            "the separator must be one ASCII character, such as , or ; or a tab",
        )),
    }
}

/// Parses the argument `types`. Returns true if numeric fields become JSON numbers. The default is
/// false.
fn types_numbers(types: Option<&str>) -> Result<bool, Failure> {
    match types {
        None | Some("") => Ok(false),
        Some("num") => Ok(true),
        Some(other) => Err(Failure::new(
            Code::EPARSE,
            format!(
                "the types {} are unknown; \"num\" makes numbers of fields that are JSON numbers, \
                 and 0 leaves all fields strings",
                quote(other, QUOTED)
            ),
        )),
    }
}

/// Parses a table whose header line names the columns. Returns a JSON array of objects. The values
/// are strings. If `types` is "num", numeric fields become numbers.
///
/// # Errors
/// `EPARSE` if a quote is unclosed, a row has more fields than the header, or `types` is unknown;
/// `ENOMEM` if the document would be too large.
pub(super) fn read(text: &str, sep: Option<&str>, types: Option<&str>) -> Result<String, Failure> {
    let numbers = types_numbers(types)?;
    let mut json = String::from("[");
    let mut values = 1;
    let mut head: Vec<String> = Vec::new();
    read_rows(text, sep, |columns, line, row| {
        if head.is_empty() {
            head = columns.iter().map(|column| quoted(column)).collect();
        }
        push(&mut json, &head, line, row, numbers)?;
        values += columns.len() + 1;
        if json.len() > MAX_DOCUMENT || values >= MAX_VALUES {
            let message = format!(
                "the rows up to line {line} make more than 16 MiB or 1,000,000 values of JSON; \
                 parse the text in parts"
            );
            return Err(Failure::new(Code::ENOMEM, message));
        }
        Ok(())
    })?;
    json.push(']');
    Ok(json)
}

/// Calls `take` with each row of a table after the header line: the names of the columns, the line
/// where the row starts, and its fields.
///
/// # Errors
/// `EPARSE` if a quote is unclosed; the errors of `take`.
pub(crate) fn read_rows(
    text: &str,
    sep: Option<&str>,
    mut take: impl FnMut(&[String], u64, &ByteRecord) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let text = wattle_rt::without_bom(text);
    let whole = [text.as_bytes(), END].concat();
    let mut rows = ReaderBuilder::new()
        .delimiter(separator(sep)?)
        .has_headers(false)
        .flexible(true)
        .from_reader(whole.as_slice());
    let failed =
        |error: csv::Error| Failure::new(Code::EPARSE, format!("the text is not CSV: {error}"));
    let (mut row, mut next) = (ByteRecord::new(), ByteRecord::new());
    rows.read_byte_record(&mut row).map_err(failed)?;
    let mut head: Option<Vec<String>> = None;
    while rows.read_byte_record(&mut next).map_err(failed)? {
        match &head {
            None => head = Some(columns(&row)),
            Some(columns) => take(columns, line(&row), &row)?,
        }
        std::mem::swap(&mut row, &mut next);
    }
    if row.len() != 1 || row.get(0) != END.get(1..) {
        let message =
            format!("a quote in the row that starts at line {} is not closed", line(&row));
        return Err(Failure::new(Code::EPARSE, message));
    }
    Ok(())
}

/// Returns the number of the line where a row starts.
fn line(row: &ByteRecord) -> u64 {
    row.position().map_or(0, csv::Position::line)
}

/// Appends a row as a JSON object. Missing fields become empty strings.
fn push(
    json: &mut String,
    columns: &[String],
    line: u64,
    row: &ByteRecord,
    numbers: bool,
) -> Result<(), Failure> {
    if row.len() > columns.len() {
        let message = format!(
            "line {line} has {} fields, more than the {} of the header line; quote a field that \
             contains the separator",
            row.len(),
            columns.len()
        );
        return Err(Failure::new(Code::EPARSE, message));
    }
    json.push_str(if json.len() > 1 { ",{" } else { "{" });
    for (at, column) in columns.iter().enumerate() {
        let field = String::from_utf8_lossy(row.get(at).unwrap_or_default());
        let value =
            number(&field).filter(|_| numbers).map_or_else(|| quoted(&field), str::to_owned);
        json.extend([if at > 0 { "," } else { "" }, column, ":", &value]);
    }
    json.push('}');
    Ok(())
}

/// Returns the trimmed text of a field that is a JSON number, and `None` for any other field. A
/// field such as `007` does not count as a number, so that no digits are lost.
fn number(field: &str) -> Option<&str> {
    let text = field.trim();
    is_number(text).then_some(text)
}

/// Returns the column names. A repeated name gets a numeric suffix.
fn columns(head: &ByteRecord) -> Vec<String> {
    let mut taken: HashSet<String> = HashSet::new();
    let mut counts: HashMap<String, usize> = HashMap::new();
    let name = |field: &[u8]| {
        let field = String::from_utf8_lossy(field).into_owned();
        let count = counts.entry(field.clone()).or_insert(0);
        let mut name = field.clone();
        loop {
            *count += 1;
            if *count > 1 {
                name = format!("{field}_{count}");
            }
            if taken.insert(name.clone()) {
                return name;
            }
        }
    };
    head.iter().map(name).collect()
}

/// Returns the name of a value's kind with an indefinite article, such as `an array`.
fn a_kind(document: &Document) -> String {
    match document.kind() {
        kind @ ("object" | "array") => format!("an {kind}"),
        "null" => "null".to_owned(),
        kind => format!("a {kind}"),
    }
}

/// Formats an array of objects as a table with a header line. Each key is a column, in the order of
/// first occurrence.
///
/// # Errors
/// `EPARSE` if the document is not an array of objects; `ENOMEM` if the table would be too large.
pub(super) fn write(document: &Document, sep: Option<&str>) -> Result<String, Failure> {
    let Document::Array(items) = document else {
        let message = format!("the document is {}, not an array of objects", a_kind(document));
        return Err(Failure::new(Code::EPARSE, message));
    };
    let mut columns = IndexSet::new();
    let mut rows = Vec::with_capacity(items.len());
    for (at, item) in items.iter().enumerate() {
        let Document::Object(fields) = item else {
            let message = format!(
                "item [{at}] is {}, not an object; a row is {{\"column\": value, …}}",
                a_kind(item)
            );
            return Err(Failure::new(Code::EPARSE, message));
        };
        columns.extend(fields.keys());
        rows.push(fields);
    }
    let fields = rows.iter().map(|fields| {
        let field = |name: &&String| {
            Ok(match fields.get(name.as_str()) {
                None | Some(Document::Null) => Cow::Borrowed(""),
                Some(Document::Text(text)) => Cow::Borrowed(text.as_str()),
                Some(other) => Cow::Owned(other.to_json()),
            })
        };
        columns.iter().map(field).collect()
    });
    write_rows(&columns, rows.len(), fields, sep)
}

/// Formats a table with a header line. `count` is the number of rows, each of which has a field for
/// each column.
///
/// # Errors
/// `ENOMEM` if the table would be too large; the errors of `rows`.
pub(crate) fn write_rows<'r, C: AsRef<str>>(
    columns: &IndexSet<C>,
    count: usize,
    rows: impl Iterator<Item = Result<Vec<Cow<'r, str>>, Failure>>,
    sep: Option<&str>,
) -> Result<String, Failure> {
    let sep = separator(sep)?;
    if columns.is_empty() {
        return Ok(String::new());
    }
    if columns.len().saturating_mul(count) > MAX_FIELDS {
        let message = format!(
            "the table would have {} columns and {count} rows, more than 4,000,000 fields",
            columns.len()
        );
        return Err(Failure::new(Code::ENOMEM, message));
    }
    let failed = |error: csv::Error| {
        Failure::new(Code::EPARSE, format!("the rows cannot be written: {error}"))
    };
    let mut table = WriterBuilder::new().delimiter(sep).from_writer(Vec::new());
    table.write_record(columns.iter().map(|name| name.as_ref().as_bytes())).map_err(failed)?;
    let mut size = 0;
    for row in rows {
        let row = row?;
        size += row.iter().map(|field| field.len() + 1).sum::<usize>();
        if size > MAX_TEXT {
            return Err(too_large());
        }
        table.write_record(row.iter().map(|field| field.as_bytes())).map_err(failed)?;
    }
    let bytes = table.into_inner().map_err(|error| failed(error.into_error().into()))?;
    String::from_utf8(bytes)
        .map_err(|e| Failure::new(Code::EPARSE, format!("the table is not UTF-8: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_comma(text: &str) -> Result<String, Failure> {
        read(text, None, None)
    }

    #[test]
    fn tables_are_parsed_by_the_standard() {
        for (text, json) in [
            ("", "[]"),
            ("\u{feff}", "[]"),
            ("a,b", "[]"),
            ("a,b\n", "[]"),
            ("\u{feff}a,b\n1,2", r#"[{"a":"1","b":"2"}]"#),
            ("a,b\r\n1,2\r\n\r\n3,\r\n", r#"[{"a":"1","b":"2"},{"a":"3","b":""}]"#),
            ("a\n\"\"\n\n\"x\"\n", r#"[{"a":""},{"a":"x"}]"#),
            ("a,b\n1\n,\n", r#"[{"a":"1","b":""},{"a":"","b":""}]"#),
            ("a\n\"x, \"\"y\"\"\r\n\u{e9}\"\n", "[{\"a\":\"x, \\\"y\\\"\\r\\n\u{e9}\"}]"),
            ("a\nx\"y\n", r#"[{"a":"x\"y"}]"#),
            ("a,a,,\n1,2,3,4", r#"[{"a":"1","a_2":"2","":"3","_2":"4"}]"#),
            ("a,a_2,a\n1,2,3", r#"[{"a":"1","a_2":"2","a_3":"3"}]"#),
            ("a\n\0\n", r#"[{"a":"\u0000"}]"#),
            ("\0", "[]"),
        ] {
            assert_eq!(read_comma(text).as_deref(), Ok(json), "{text:?}");
        }
        assert_eq!(
            read("a;b\n1,2;\"3;4\"", Some(";"), None).unwrap(),
            r#"[{"a":"1,2","b":"3;4"}]"#
        );
        assert_eq!(read("a\tb\n1\t2", Some("\t"), None).unwrap(), r#"[{"a":"1","b":"2"}]"#);
    }

    #[test]
    fn fields_that_are_numbers_become_numbers() {
        let typed = |text: &str| read(text, None, Some("num"));
        for (field, json) in [
            ("1", "1"),
            ("-2.50", "-2.50"),
            (" 3 ", "3"),
            ("\"4\"", "4"),
            ("1e400", "1e400"),
            ("123456789012345678901234567890", "123456789012345678901234567890"),
            ("007", "\"007\""),
            ("+1", "\"+1\""),
            (".5", "\".5\""),
            ("\"1,000\"", "\"1,000\""),
            ("true", "\"true\""),
            ("nan", "\"nan\""),
            ("\"\"", "\"\""),
            ("-", "\"-\""),
            ("1 2", "\"1 2\""),
        ] {
            let rows = typed(&format!("a,b\n{field}")).unwrap();
            assert!(rows.starts_with(&format!("[{{\"a\":{json},")), "{field}: {rows}");
        }
        let failure = read("a\n1", None, Some("auto")).unwrap_err();
        assert!(failure.code == Code::EPARSE && failure.reason.contains("\"auto\""), "{failure}");
    }

    #[test]
    fn an_invalid_table_is_reported_with_its_line() {
        for (text, words) in [
            ("\"a", "the row that starts at line 1 is not closed"),
            ("a\n\"x\n\ny", "the row that starts at line 2 is not closed"),
            ("a\n\"x\"\"", "line 2 is not closed"),
            ("a,b\n1,2\n1,2,3\n", "line 3 has 3 fields, more than the 2 of the header line"),
        ] {
            let failure = read_comma(text).unwrap_err();
            assert_eq!(failure.code, Code::EPARSE);
            assert!(failure.reason.contains(words), "{text:?}: {}", failure.reason);
        }
        for sep in ["\u{e9}", "\"", "\n", ",,", "\0"] {
            assert_eq!(read("a", Some(sep), None).unwrap_err().code, Code::EPARSE, "{sep:?}");
        }
    }

    #[test]
    fn a_written_table_parses_to_the_same_document() {
        for (json, text) in [
            ("[]", ""),
            ("[{}]", ""),
            (r#"[{"a":"x"}]"#, "a\nx\n"),
            (r#"[{"a":""},{"a":"y"}]"#, "a\n\"\"\ny\n"),
            (r#"[{"a":"x, \"y\"\r\nz","b":";"}]"#, "a,b\n\"x, \"\"y\"\"\r\nz\",;\n"),
        ] {
            let written = write(&Document::read(json).unwrap(), None).unwrap();
            assert_eq!(written, text);
            if json.len() > 4 {
                assert_eq!(read_comma(&written).unwrap(), json);
            }
        }
        let mixed = r#"[{"a":1.50},{"b":null,"c":{"d":[true]}}]"#;
        let written = write(&Document::read(mixed).unwrap(), Some(";")).unwrap();
        assert_eq!(written, "a;b;c\n1.50;;\n;;\"{\"\"d\"\":[true]}\"\n");
        for (json, words) in [
            ("{}", "the document is an object, not an array"),
            ("[{},1]", "item [1] is a number"),
            ("1", "the document is a number"),
        ] {
            let failure = write(&Document::read(json).unwrap(), None).unwrap_err();
            assert!(
                failure.code == Code::EPARSE && failure.reason.contains(words),
                "{json}: {}",
                failure.reason
            );
        }
    }

    #[test]
    fn size_is_limited() {
        let rows = |n: usize| String::from("a\n") + &"x\n".repeat(n);
        assert!(read_comma(&rows(400_000)).is_ok());
        assert_eq!(read_comma(&rows(600_000)).unwrap_err().code, Code::ENOMEM);
        let unlike: Vec<String> = (0..3_000).map(|n| format!("{{\"{n}\":1}}")).collect();
        let unlike = Document::read(&format!("[{}]", unlike.join(","))).unwrap();
        assert_eq!(write(&unlike, None).unwrap_err().code, Code::ENOMEM);
    }
}
