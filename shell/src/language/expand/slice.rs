//! Expansion of `${name:offset:length}`.

use super::values::Values;
use crate::language::ast::Word;
use crate::language::interpreter::{Flow, Interpreter};
use crate::language::variables::{Value, past};

impl Interpreter {
    /// Returns a substring of a value, or a range of a list.
    pub(super) async fn slice(
        &mut self,
        name: &str,
        values: Values,
        offset: &Word,
        length: Option<&Word>,
    ) -> Flow<Values> {
        let text = self.text(offset).await?;
        let offset = self.arithmetic(&text).await?;
        let length = match length {
            Some(word) => {
                let text = self.text(word).await?;
                Some(self.arithmetic(&text).await?)
            }
            None => None,
        };
        match values {
            Values::One(None) => Ok(Values::One(None)),
            Values::One(Some(text)) => {
                let chars: Vec<char> = text.chars().collect();
                let Some((from, to)) = bounds(chars.len(), offset, length) else {
                    return Err(self
                        .fail(&format!("{}: substring expression < 0", length.unwrap_or_default()))
                        .await);
                };
                Ok(Values::One(Some(chars.get(from..to).unwrap_or_default().iter().collect())))
            }
            Values::Many { list, joined } => {
                if length.is_some_and(|length| length < 0) {
                    return Err(self
                        .fail(&format!("{}: substring expression < 0", length.unwrap_or_default()))
                        .await);
                }
                let length =
                    length.and_then(|length| usize::try_from(length).ok()).unwrap_or(usize::MAX);
                let list: Vec<String> =
                    match (name, self.variables.get(name).map(|variable| &variable.value)) {
                        ("@" | "*", _) => {
                            let all: Vec<String> =
                                std::iter::once(self.parameters.name.to_string())
                                    .chain(list)
                                    .collect();
                            let from = from_end(all.len(), offset);
                            from.map(|from| all.into_iter().skip(from).take(length).collect())
                                .unwrap_or_default()
                        }
                        (_, Some(Value::List(elements))) => {
                            let from = if offset < 0 {
                                past(elements).saturating_add(offset)
                            } else {
                                offset
                            };
                            if from < 0 {
                                Vec::new()
                            } else {
                                elements
                                    .range(from..)
                                    .take(length)
                                    .map(|(_, text)| text.to_string())
                                    .collect()
                            }
                        }
                        _ => from_end(list.len(), offset)
                            .map(|from| list.into_iter().skip(from).take(length).collect())
                            .unwrap_or_default(),
                    };
                Ok(Values::Many { list, joined })
            }
        }
    }
}

/// Converts an offset to an index. A negative offset counts from the end. Returns `None` if the
/// offset lies before the start.
fn from_end(size: usize, offset: i64) -> Option<usize> {
    let size = i64::try_from(size).unwrap_or(i64::MAX);
    let from = if offset < 0 { size.checked_add(offset)? } else { offset };
    usize::try_from(from).ok()
}

/// Returns the start and end of a substring, or `None` if its end is before its start.
fn bounds(size: usize, offset: i64, length: Option<i64>) -> Option<(usize, usize)> {
    let Some(from) = from_end(size, offset).filter(|from| *from <= size) else {
        return Some((0, 0));
    };
    let to = match length {
        None => size,
        Some(length) if length < 0 => from_end(size, length).filter(|to| *to >= from)?,
        Some(length) => {
            from.saturating_add(usize::try_from(length).unwrap_or(usize::MAX)).min(size)
        }
    };
    Some((from, to))
}
