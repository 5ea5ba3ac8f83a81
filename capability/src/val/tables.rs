//! Tables: CSV and those of HTML pages.

use std::borrow::Cow;
use std::collections::HashMap;
use std::rc::Rc;

use indexmap::IndexSet;
use wattle_rt::{Code, Failure, Run};

use super::arena::{Builder, Values, View, with};
use super::number::as_number;
use super::{ValueHandle, html, values};
use crate::json::scan::is_number;
use crate::json::table;

impl Values {
    /// Adds a list of objects. The keys of each are the columns, and rows have a field for each.
    fn table(
        &mut self,
        columns: &[String],
        rows: &[Vec<Cow<'_, str>>],
        typed: bool,
    ) -> Result<i32, Failure> {
        let is_typed = |column: usize| {
            let mut fields = rows.iter().filter_map(|row| row.get(column)).peekable();
            typed && fields.peek().is_some() && fields.all(|field| is_number(field.trim()))
        };
        let types: Vec<bool> = (0..columns.len()).map(is_typed).collect();
        let mark = self.mark();
        let mut builder = Builder::new(self);
        let added = (|| {
            builder.open(false)?;
            for row in rows {
                builder.open(true)?;
                for ((column, field), is_number) in columns.iter().zip(row).zip(&types) {
                    builder.add_key(column, None)?;
                    if *is_number {
                        builder.add_number(field.trim())?;
                    } else {
                        builder.add_text(field, None)?;
                    }
                }
                builder.close()?;
            }
            builder.close()
        })();
        let table = builder.finish();
        match added {
            Ok(()) => Ok(table),
            Err(failure) => {
                self.restore(&mark);
                Err(failure)
            }
        }
    }
}

pub(super) fn csv(
    run: &mut Run,
    s: &str,
    sep: Option<&str>,
    typed: bool,
) -> Result<ValueHandle, Failure> {
    // The fields are held until they are in the arena.
    let _held = run.account().hold(s.len().saturating_mul(8))?;
    let mut columns = Vec::new();
    let mut rows: Vec<Vec<Cow<'_, str>>> = Vec::new();
    table::read_rows(s, sep, |head, line, row| {
        if row.len() != head.len() {
            let why = format!(
                "line {line} has {} fields, but the header line has {}; quote a field that \
                 contains the separator",
                row.len(),
                head.len()
            );
            return Err(Failure::new(Code::EPARSE, why));
        }
        if columns.is_empty() {
            columns = head.to_vec();
        }
        let text = |field: &[u8]| Cow::Owned(String::from_utf8_lossy(field).into_owned());
        rows.push(row.iter().map(text).collect());
        Ok(())
    })?;
    with(run, |values| values.table(&columns, &rows, typed)).map(ValueHandle)
}

pub(super) fn csv_text(run: &mut Run, list: i32, sep: Option<&str>) -> Result<String, Failure> {
    let values = values(run);
    let items = values.items(list, "csv.text takes a list of objects")?;
    let mut columns: IndexSet<&str> = IndexSet::new();
    let mut rows = Vec::with_capacity(items.len());
    for (at, item) in items.iter().enumerate() {
        let View::Object(entries) = values.view(*item)? else {
            let why = format!(
                "item {at} is {}, but csv.text takes a list of objects",
                values.describe(*item)
            );
            return Err(Failure::new(Code::EKIND, why));
        };
        columns.extend(entries.iter().map(|entry| values.key(entry)));
        rows.push((*item, entries));
    }
    let rows = rows.into_iter().map(|(item, entries)| {
        let field = |column: &&str| -> Result<Cow<'_, str>, Failure> {
            let at = values.position_in(item, entries, column);
            let Some(entry) = at.and_then(|at| entries.get(at)) else { return Ok("".into()) };
            Ok(match values.view(entry.value)? {
                View::Null => "".into(),
                View::Text(text) => text.into(),
                view => match as_number(view) {
                    Some(number) => number.text().into(),
                    None => values.plain(entry.value)?.into(),
                },
            })
        };
        columns.iter().map(field).collect::<Result<Vec<_>, Failure>>()
    });
    table::write_rows(&columns, items.len(), rows, sep)
}

pub(super) fn html_table(run: &mut Run, s: &str, n: i32) -> Result<ValueHandle, Failure> {
    let _held = run.account().hold(s.len().saturating_mul(8))?;
    let tables = html::tables(s)?;
    let found = usize::try_from(n).ok().and_then(|n| tables.get(n));
    let Some(rows) = found else {
        let (code, why) = match tables.len() {
            0 => (Code::ENOENT, "the text has no table".to_owned()),
            1 => (Code::ENOENT, format!("no table {n}; the text has 1, and the first is 0")),
            count => (Code::ENOENT, format!("no table {n}; the text has {count}, from 0 on")),
        };
        return Err(Failure::new(code, why));
    };
    let Some((head, rows)) = rows.split_first() else {
        return with(run, |values| values.list(&[])).map(ValueHandle);
    };
    let count = rows.iter().map(Vec::len).max().unwrap_or(0).max(head.len());
    // The names are copied, also those that a span repeats.
    let names: usize = head.iter().map(|name| name.len()).sum();
    let _names = run.account().hold(4 * names)?;
    let columns = columns(head, count);
    let rows: Vec<Vec<Cow<'_, str>>> = rows
        .iter()
        .map(|row| {
            let field = |at: usize| row.get(at).map_or("", |cell| &**cell).into();
            (0..count).map(field).collect()
        })
        .collect();
    with(run, |values| values.table(&columns, &rows, false)).map(ValueHandle)
}

/// Returns the names of the columns of a table. A column without a name has its number, counted
/// from 1, and a repeated name gets a suffix.
fn columns(head: &[Rc<str>], count: usize) -> Vec<String> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let name = |at: usize| match head.get(at) {
        Some(name) if !name.is_empty() => name.to_string(),
        _ => (at + 1).to_string(),
    };
    let names = (0..count).map(|at| {
        let name = name(at);
        let times = seen.entry(name.clone()).or_insert(0);
        *times += 1;
        if *times > 1 { format!("{name}_{times}") } else { name }
    });
    let mut unique = IndexSet::new();
    for mut name in names {
        while unique.contains(&name) {
            name.push('_');
        }
        unique.insert(name);
    }
    unique.into_iter().collect()
}
