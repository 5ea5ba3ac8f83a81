//! The operations of `${name…}` that change values: trimming, replacement and case conversion.

use super::values::{Selection, Values};
use crate::language::ast::{Action, ReplaceScope};
use crate::language::escape;
use crate::language::interpreter::{Flow, Interpreter, Jump};
use crate::language::pattern::{MatchResult, Matching, Pattern, TooCostly};

/// A change to one value of a parameter.
type Change<'a> = dyn FnMut(String, &mut Matching) -> MatchResult<String> + Send + 'a;

impl Interpreter {
    /// Applies an operation to the values of a parameter.
    pub(super) async fn apply(
        &mut self,
        name: &str,
        index: Option<&Selection>,
        values: Values,
        action: &Action,
    ) -> Flow<Values> {
        match action {
            Action::Length => {
                let length = match values {
                    Values::One(text) => text.map_or(0, |text| text.chars().count()),
                    Values::Many { list, .. } => list.len(),
                };
                Ok(Values::One(Some(length.to_string())))
            }
            Action::Slice { offset, length } => {
                self.slice(name, values, offset, length.as_ref()).await
            }
            Action::Trim { suffix, longest, pattern } => {
                let pattern = self.pattern(pattern, false, false).await?;
                self.each(values, &mut |text, matching| {
                    Ok(if *suffix {
                        match pattern.suffix(&text, *longest, matching)? {
                            Some(start) => text.get(..start).unwrap_or_default().to_owned(),
                            None => text,
                        }
                    } else {
                        match pattern.prefix(&text, *longest, matching)? {
                            Some(end) => text.get(end..).unwrap_or_default().to_owned(),
                            None => text,
                        }
                    })
                })
                .await
            }
            Action::Replace { scope, pattern, with } => {
                let pattern = self.pattern(pattern, false, self.options.nocasematch).await?;
                let with = self.text(with).await?;
                let limit = usize::try_from(self.run.bounds.variables).unwrap_or(usize::MAX);
                self.each(values, &mut |text, matching| {
                    replace(&text, &pattern, &with, *scope, matching, limit)
                })
                .await
            }
            Action::Case { upper, all, pattern } => {
                let any = pattern.parts.is_empty();
                let pattern = self.pattern(pattern, false, false).await?;
                self.each(values, &mut |text, matching| {
                    let mut out = String::with_capacity(text.len());
                    for (position, c) in text.chars().enumerate() {
                        let chosen = (*all || position == 0)
                            && (any || pattern.matches(c.encode_utf8(&mut [0; 4]), matching)?);
                        match (chosen, *upper) {
                            (true, true) => out.extend(c.to_uppercase()),
                            (true, false) => out.extend(c.to_lowercase()),
                            (false, _) => out.push(c),
                        }
                    }
                    Ok(out)
                })
                .await
            }
            Action::Transform(operator) => self.transform(name, index, values, *operator).await,
            _ => Ok(values),
        }
    }

    /// Applies a change to each value. The total size of the results is limited to the maximum size
    /// of the session's variables.
    async fn each(&mut self, values: Values, change: &mut Change<'_>) -> Flow<Values> {
        Ok(match values {
            Values::One(None) => Values::One(None),
            Values::One(Some(text)) => Values::One(Some(self.changed(text, change).await?)),
            Values::Many { list, joined } => {
                let mut all = Vec::with_capacity(list.len());
                let mut size = 0_u64;
                for text in list {
                    let text = self.changed(text, change).await?;
                    size += text.len() as u64;
                    if size > self.run.bounds.variables {
                        return Err(self.too_costly().await);
                    }
                    all.push(text);
                }
                Values::Many { list: all, joined }
            }
        })
    }

    /// Applies a change to one value. If the change is too costly, reports an error and exits the
    /// shell.
    async fn changed(&mut self, text: String, change: &mut Change<'_>) -> Flow<String> {
        self.checkpoint().await?;
        let run = self.run.clone();
        let mut matching = Matching::new(&run.patterns);
        let changed = change(text, &mut matching);
        run.charge(matching.steps());
        match changed {
            Ok(text) => Ok(text),
            Err(TooCostly) => Err(self.too_costly().await),
        }
    }

    /// Reports that a change takes too many steps or that its result is too large. Returns the jump
    /// that exits the shell.
    async fn too_costly(&mut self) -> Jump {
        self.fail(
            "a pattern takes too long on this text, or the result grew too large: use sed or awk",
        )
        .await
    }

    /// Applies the operator of `${name@operator}`.
    async fn transform(
        &mut self,
        name: &str,
        index: Option<&Selection>,
        values: Values,
        operator: char,
    ) -> Flow<Values> {
        match operator {
            'a' => Ok(Values::One(Some(
                self.variables.get(name).map(|variable| variable.letters()).unwrap_or_default(),
            ))),
            'A' => Ok(Values::One(self.declaration(name))),
            'K' | 'k' if matches!(index, Some(Selection::All | Selection::Joined)) => {
                let keys =
                    self.variables.get(name).map(|variable| variable.keys()).unwrap_or_default();
                let texts = self.list_of(name);
                let pairs = keys.into_iter().zip(texts).flat_map(|(key, text)| {
                    [key, if operator == 'K' { escape::double_quoted(&text) } else { text }]
                });
                Ok(Values::Many { list: pairs.collect(), joined: operator == 'K' })
            }
            _ => {
                self.each(values, &mut |text, _| {
                    Ok(match operator {
                        'Q' => escape::quoted(&text),
                        'U' => text.to_uppercase(),
                        'L' => text.to_lowercase(),
                        'u' => {
                            let mut chars = text.chars();
                            chars
                                .next()
                                .map(|first| first.to_uppercase().chain(chars).collect())
                                .unwrap_or_default()
                        }
                        'E' => escape::ansi(&text),
                        _ => text,
                    })
                })
                .await
            }
        }
    }
}

/// Replaces matches of a pattern. Fails if the result exceeds `limit` bytes.
fn replace(
    text: &str,
    pattern: &Pattern,
    with: &str,
    scope: ReplaceScope,
    matching: &mut Matching,
    limit: usize,
) -> MatchResult<String> {
    let slice = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
    if pattern.literal().is_some_and(|literal| literal.is_empty()) {
        return Ok(match scope {
            ReplaceScope::Start => format!("{with}{text}"),
            ReplaceScope::End => format!("{text}{with}"),
            _ => text.to_owned(),
        });
    }
    match scope {
        ReplaceScope::Start => Ok(match pattern.prefix(text, true, matching)? {
            Some(end) => format!("{with}{}", slice(end, text.len())),
            None => text.to_owned(),
        }),
        ReplaceScope::End => Ok(match pattern.suffix(text, true, matching)? {
            Some(start) => format!("{}{with}", slice(0, start)),
            None => text.to_owned(),
        }),
        _ => {
            let mut out = String::new();
            let mut at = 0;
            while let Some((start, end)) = pattern.find(text, at, matching)? {
                out.push_str(slice(at, start));
                if end == start {
                    // An empty match consumes nothing, so the next character is copied.
                    let Some(c) = slice(start, text.len()).chars().next() else { break };
                    out.push_str(with);
                    out.push(c);
                    at = start + c.len_utf8();
                } else {
                    out.push_str(with);
                    at = end;
                }
                if out.len() > limit {
                    return Err(TooCostly);
                }
                if scope == ReplaceScope::First || at >= text.len() {
                    break;
                }
            }
            out.push_str(slice(at, text.len()));
            Ok(out)
        }
    }
}
