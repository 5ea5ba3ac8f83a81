//! Paths in a JSON document: `a.b[0].c`, `$.a`, `["odd key"]`, or a JSON pointer `/a/b/0`.

use std::borrow::Cow;

use wattle_rt::{Code, Failure, truncate};

use super::document::Document;
use super::scan::MAX_DEPTH;

/// A step of a path, from a value to one of its fields or items.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step<'t> {
    /// A key, or an index if the value is an array.
    Name(Cow<'t, str>),
    /// An index in brackets. A negative index counts from the end.
    Index(i64),
    /// The position after an array's last item: `[-]`, or `-` in a pointer.
    AfterLast,
}

/// A parsed path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Path<'t> {
    /// The steps, each with the byte offset of its end in `text`.
    steps: Vec<(Step<'t>, usize)>,
    text: &'t str,
}

impl<'t> Path<'t> {
    /// Parses a path.
    ///
    /// # Errors
    /// `EPARSE` if the path is invalid. The message states the reason.
    pub(crate) fn read(text: &'t str) -> Result<Path<'t>, Failure> {
        let steps = if text.starts_with('/') { pointer(text) } else { dotted(text)? };
        if steps.len() > MAX_DEPTH {
            return Err(Failure::new(
                Code::EPARSE,
                format!("the path has {} steps, more than {MAX_DEPTH}", steps.len()),
            ));
        }
        Ok(Path { steps, text })
    }

    /// Extends the path of an array to the position after the array's last item.
    pub(crate) fn after_last(mut self) -> Path<'t> {
        self.steps.push((Step::AfterLast, self.text.len()));
        self
    }

    /// Returns the value at the path.
    ///
    /// # Errors
    /// `ENOENT` if the path does not exist. The message names the longest prefix of the path that
    /// exists and describes the value at that prefix.
    pub(crate) fn find<'d>(&self, document: &'d Document) -> Result<&'d Document, Failure> {
        let mut value = document;
        let mut from = 0;
        for (step, to) in &self.steps {
            value = child(value, step).ok_or_else(|| self.missing_part(from, *to, value))?;
            from = *to;
        }
        Ok(value)
    }

    /// Sets the value at the path. Creates missing objects and arrays along the way; `null` counts
    /// as missing. An index equal to the length of an array appends an item.
    ///
    /// # Errors
    /// `ENOENT` if a step does not fit the value that it applies to; `EPARSE` if the document would
    /// be nested too deeply.
    pub(crate) fn put(&self, document: &mut Document, value: Document) -> Result<(), Failure> {
        if self.steps.len() + value.depth() > MAX_DEPTH {
            return Err(Failure::new(
                Code::EPARSE,
                format!("the document would be nested deeper than {MAX_DEPTH}"),
            ));
        }
        let mut slot = document;
        let mut from = 0;
        for (step, to) in &self.steps {
            if *slot == Document::Null {
                *slot = match step {
                    Step::Name(_) => Document::Object(Box::default()),
                    Step::Index(_) | Step::AfterLast => Document::Array(Vec::new()),
                };
            }
            // The step is checked before it is taken, because the slot could not be borrowed for an
            // error message afterwards.
            if !can_set(slot, step) {
                return Err(self.missing_part(from, *to, slot));
            }
            slot = match (slot, step) {
                (Document::Object(fields), step) => {
                    fields.entry(key(step).into_owned()).or_insert(Document::Null)
                }
                (Document::Array(items), step) => {
                    let at = index(step, items.len()).unwrap_or(items.len());
                    if at == items.len() {
                        items.push(Document::Null);
                    }
                    items.get_mut(at).ok_or_else(|| Failure::new(Code::ENOENT, self.text))?
                }
                (other, _) => other,
            };
            from = *to;
        }
        *slot = value;
        Ok(())
    }

    /// Removes the value at the path. In an array, later items move to fill the gap.
    ///
    /// # Errors
    /// `ENOENT` as for [`find`](Path::find); `EPARSE` if the path refers to the whole document.
    pub(crate) fn take(&self, document: &mut Document) -> Result<(), Failure> {
        self.find(document)?;
        let Some(((last, _), way)) = self.steps.split_last() else {
            return Err(Failure::new(
                Code::EPARSE,
                "the path is that of the whole document, which cannot be removed from itself",
            ));
        };
        let mut slot = document;
        for (step, _) in way {
            slot = match slot {
                Document::Object(fields) => fields.get_mut(&*key(step)),
                Document::Array(items) => index(step, items.len()).and_then(|at| items.get_mut(at)),
                _ => None,
            }
            .ok_or_else(|| Failure::new(Code::ENOENT, format!("nothing at {:?}", self.text)))?;
        }
        match slot {
            Document::Object(fields) => drop(fields.shift_remove(&*key(last))),
            Document::Array(items) => {
                if let Some(at) = index(last, items.len()).filter(|at| *at < items.len()) {
                    items.remove(at);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Creates the failure for a part of the path that does not exist. The message describes the
    /// value that lacks this part.
    fn missing_part(&self, from: usize, to: usize, at: &Document) -> Failure {
        let part = |range| self.text.get(range).unwrap_or_default();
        let missing = part(from..to).trim_start_matches('.');
        let whose = match part(0..from) {
            "" | "$" | "." => "the document".to_owned(),
            way => format!("{way:?}"),
        };
        let found = match at {
            Document::Object(fields) if fields.is_empty() => "is an empty object".to_owned(),
            Document::Object(fields) => {
                let names: Vec<_> = fields.keys().take(12).map(|key| truncate(key, 40)).collect();
                let more = if fields.len() > 12 {
                    format!(" and {} more", fields.len() - 12)
                } else {
                    String::new()
                };
                format!("is an object with the keys {}{more}", names.join(", "))
            }
            Document::Array(items) => format!("is an array of {} items", items.len()),
            other => format!("is {}", other.a_kind()),
        };
        Failure::new(
            Code::ENOENT,
            format!("nothing at {:?}: {whose} {found}, without {missing:?}", self.text),
        )
    }
}

/// Returns the step as an object key.
fn key<'s>(step: &'s Step<'_>) -> Cow<'s, str> {
    match step {
        Step::Name(name) => Cow::Borrowed(name),
        Step::Index(index) => Cow::Owned(index.to_string()),
        Step::AfterLast => Cow::Borrowed("-"),
    }
}

/// Returns the step as an index into an array of the given length, or `None` if the step is not an
/// index or is out of range. The index may equal the length.
fn index(step: &Step<'_>, length: usize) -> Option<usize> {
    let index = match step {
        Step::AfterLast => return Some(length),
        Step::Name(name) => name.parse().ok()?,
        Step::Index(index) => *index,
    };
    let from_end = || length.checked_sub(usize::try_from(index.unsigned_abs()).ok()?);
    usize::try_from(index).ok().or_else(from_end).filter(|at| *at <= length)
}

fn child<'d>(value: &'d Document, step: &Step<'_>) -> Option<&'d Document> {
    match value {
        Document::Object(fields) => fields.get(&*key(step)),
        Document::Array(items) => items.get(index(step, items.len())?),
        _ => None,
    }
}

/// Returns true if the step can set a child of the value. An object accepts any step, and an array
/// accepts an index up to its length.
fn can_set(value: &Document, step: &Step<'_>) -> bool {
    match value {
        Document::Object(_) => true,
        Document::Array(items) => index(step, items.len()).is_some(),
        _ => false,
    }
}

/// Parses a JSON pointer (RFC 6901).
fn pointer(text: &str) -> Vec<(Step<'_>, usize)> {
    let mut end = 0;
    let parts = text.split('/').skip(1);
    parts
        .map(|part| {
            end += part.len() + 1;
            let step = if part == "-" {
                Step::AfterLast
            } else {
                Step::Name(if part.contains('~') {
                    Cow::Owned(part.replace("~1", "/").replace("~0", "~"))
                } else {
                    Cow::Borrowed(part)
                })
            };
            (step, end)
        })
        .collect()
}

/// Parses a path that consists of names separated by dots and of indexes or quoted names in
/// brackets.
fn dotted(text: &str) -> Result<Vec<(Step<'_>, usize)>, Failure> {
    let bad = |why: &str| Failure::new(Code::EPARSE, format!("invalid path {text:?}: {why}"));
    let mut rest = text.strip_prefix('$').unwrap_or(text);
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if let Some(inside) = rest.strip_prefix('[') {
            let (step, tail) = bracket(inside).map_err(bad)?;
            steps.push((step, text.len() - tail.len()));
            rest = tail;
            continue;
        }
        let dot = rest.strip_prefix('.');
        if dot.is_none() && !steps.is_empty() {
            return Err(bad("`.` or `[` is missing after `]`"));
        }
        let name = dot.unwrap_or(rest);
        let (name, tail) = name
            .split_at_checked(name.find(['.', '[']).unwrap_or(name.len()))
            .unwrap_or((name, ""));
        match name {
            // `$` or `.` alone is the document itself; `.[0]` is `[0]`.
            "" if steps.is_empty() && tail.is_empty() => {}
            "" if tail.starts_with('[') => {}
            "" => return Err(bad("a name is missing after a dot")),
            name => steps.push((Step::Name(name.into()), text.len() - tail.len())),
        }
        rest = tail;
    }
    Ok(steps)
}

/// Parses a step in brackets, starting after the `[`. Also returns the text after the `]`.
fn bracket(inside: &str) -> Result<(Step<'_>, &str), &'static str> {
    for quote in ['"', '\''] {
        if let Some(quoted) = inside.strip_prefix(quote) {
            let (name, tail) = quoted.split_once(quote).ok_or("a quote is not closed")?;
            let tail = tail.strip_prefix(']').ok_or("`]` is missing")?;
            return Ok((Step::Name(name.into()), tail));
        }
    }
    let (index, tail) = inside.split_once(']').ok_or("`]` is missing")?;
    match index.trim() {
        "-" => Ok((Step::AfterLast, tail)),
        index => {
            let why = "an index is a number, counted from 0, or from the end if negative; a name \
                       in brackets needs quotes";
            index.parse().map(|index| (Step::Index(index), tail)).map_err(|_| why)
        }
    }
}
