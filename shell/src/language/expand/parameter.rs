//! Parameters: what `$name` and `${name…}` stand for.

use super::fields::Fields;
use super::{Quoting, Setting, SettingValue};
use crate::language::ast::{Action, Index, Parameter, Place, Word};
use crate::language::escape;
use crate::language::interpreter::{Flow, Interpreter, Jump};
use crate::language::pattern::{Matched, Pattern, TooCostly};
use crate::language::variables::{Value, is_name, past};

/// A parameter's values.
pub(super) enum Values {
    One(Option<String>),
    /// A list; `joined` for `$*` and `[*]`.
    Many {
        list: Vec<String>,
        joined: bool,
    },
}

impl Interpreter {
    pub(super) async fn parameter(&mut self, parameter: &Parameter, quoting: Quoting, out: &mut Fields) -> Flow {
        let quoted = quoting == Quoting::Quoted;
        let (mut name, mut index) = (parameter.name.clone(), self.index(parameter.index.as_ref()).await?);
        if parameter.indirect {
            if self.variables.get_itself(&name).is_some_and(|variable| variable.reference) {
                let target = self.variables.resolve(&name).to_owned();
                self.emit(Values::One(Some(target)), quoted, out);
                return Ok(());
            }
            match self.indirect(&name, index.as_ref()).await? {
                Some(found) => (name, index) = found,
                None => {
                    if quoted {
                        out.quoted("");
                    }
                    return Ok(());
                }
            }
        }
        if let Action::Keys | Action::Names { .. } = parameter.action {
            let values = self.names_or_keys(&name, &parameter.action, index.as_ref());
            self.emit(values, quoted, out);
            return Ok(());
        }
        let values = self.values(&name, index.as_ref()).await?;
        let there = match &values {
            Values::One(value) => value.is_some(),
            Values::Many { list, .. } => !list.is_empty(),
        };
        let empty = match &values {
            Values::One(value) => value.as_deref().is_none_or(str::is_empty),
            Values::Many { list, .. } => list.iter().all(String::is_empty) && list.len() < 2,
        };
        let counts = |colon: bool| if colon { !empty } else { there };
        match &parameter.action {
            Action::Default { colon, .. } | Action::Assign { colon, .. } | Action::Fail { colon, .. }
                if counts(*colon) =>
            {
                self.emit(values, quoted, out)
            }
            Action::Alternative { colon, .. } if !counts(*colon) => {
                if quoted {
                    out.quoted("");
                }
            }
            Action::Default { word, .. } | Action::Alternative { word, .. } => self.operand(word, quoting, out).await?,
            Action::Assign { word, .. } => {
                let text = self.text(word).await?;
                if !is_name(&name) {
                    return Err(self.fail(&format!("${name}: cannot assign in this way")).await);
                }
                let index = if let Some(Chosen::At(index)) = index { Some(index) } else { None };
                self.assign(Setting { name, index, append: false, value: SettingValue::Text(text.clone()) }).await?;
                if quoted { out.quoted(&text) } else { out.value(&text) }
            }
            Action::Fail { colon, word } => {
                let words = self.text(word).await?;
                let words = match (words.is_empty(), *colon) {
                    (false, _) => words,
                    (true, true) => "parameter null or not set".into(),
                    (true, false) => "parameter not set".into(),
                };
                return Err(self.missing(&format!("{name}: {words}")).await);
            }
            action => {
                if !there
                    && self.options.nounset
                    && matches!(values, Values::One(_))
                    && !matches!(action, Action::Transform('a'))
                {
                    return Err(self.missing(&format!("{name}: unbound variable")).await);
                }
                let values = self.act(&name, index.as_ref(), values, action).await?;
                self.emit(values, quoted, out);
            }
        }
        Ok(())
    }

    /// A variable that has to be set is not: the shell ends, with the status that bash gives.
    async fn missing(&mut self, words: &str) -> Jump {
        self.report(words).await;
        self.last.status = if self.options.errexit { 1 } else { 127 };
        Jump::Exit
    }

    /// Expands the word after `:-` and its like in place of the value.
    async fn operand(&mut self, word: &Word, quoting: Quoting, out: &mut Fields) -> Flow {
        if word.parts.is_empty() && quoting == Quoting::Quoted {
            out.quoted("");
        }
        let quoting = if quoting == Quoting::Quoted { Quoting::Quoted } else { Quoting::Operand };
        self.parts(&word.parts, quoting, out).await
    }

    /// Adds values as they are split, or kept apart, where they stand.
    fn emit(&mut self, values: Values, quoted: bool, out: &mut Fields) {
        match values {
            Values::One(Some(text)) if quoted => out.quoted(&text),
            Values::One(Some(text)) => out.value(&text),
            Values::One(None) if quoted => out.quoted(""),
            Values::One(None) => {}
            Values::Many { list, joined } if (joined && quoted) || !out.splits() => {
                let joint = if joined { self.joint() } else { " ".into() };
                let text = list.join(&joint);
                if list.is_empty() && !joined {
                    out.nothing();
                } else if quoted {
                    out.quoted(&text);
                } else {
                    out.value(&text);
                }
            }
            Values::Many { list, .. } => {
                if list.is_empty() {
                    out.nothing();
                }
                for (place, text) in list.iter().enumerate() {
                    if place > 0 {
                        out.end_field();
                    }
                    if quoted { out.quoted(text) } else { out.value(text) }
                }
            }
        }
    }

    async fn index(&mut self, index: Option<&Index>) -> Flow<Option<Chosen>> {
        Ok(match index {
            None => None,
            Some(Index::Each) => Some(Chosen::Each),
            Some(Index::Joined) => Some(Chosen::Joined),
            Some(Index::At(word)) => Some(Chosen::At(self.text(word).await?)),
        })
    }

    /// Where `${!name}` leads.
    async fn indirect(&mut self, name: &str, index: Option<&Chosen>) -> Flow<Option<(String, Option<Chosen>)>> {
        let Values::One(Some(target)) = self.values(name, index).await? else { return Ok(None) };
        let (target, index) = match target.strip_suffix(']').and_then(|text| text.split_once('[')) {
            Some((name, "@")) => (name.to_owned(), Some(Chosen::Each)),
            Some((name, "*")) => (name.to_owned(), Some(Chosen::Joined)),
            Some((name, index)) => (name.to_owned(), Some(Chosen::At(index.to_owned()))),
            None => (target, None),
        };
        let special = matches!(target.as_str(), "@" | "*" | "#" | "?" | "-" | "$" | "!")
            || (!target.is_empty() && target.chars().all(|c| c.is_ascii_digit()));
        if is_name(&target) || special {
            return Ok(Some((target, index)));
        }
        Err(self.fail(&format!("{target}: invalid variable name")).await)
    }

    fn names_or_keys(&self, name: &str, action: &Action, index: Option<&Chosen>) -> Values {
        match action {
            Action::Names { joined } => {
                let list = self.variables.names().into_iter().filter(|known| known.starts_with(name)).collect();
                Values::Many { list, joined: *joined }
            }
            _ => {
                let list = self.variables.get(name).map(|variable| variable.keys()).unwrap_or_default();
                Values::Many { list, joined: matches!(index, Some(Chosen::Joined)) }
            }
        }
    }

    async fn values(&mut self, name: &str, index: Option<&Chosen>) -> Flow<Values> {
        match (name, index) {
            ("@", _) => Ok(Values::Many { list: self.parameters.arguments.clone(), joined: false }),
            ("*", _) => Ok(Values::Many { list: self.parameters.arguments.clone(), joined: true }),
            (_, Some(chosen @ (Chosen::Each | Chosen::Joined))) => {
                let list = self.list_of(name);
                Ok(Values::Many { list, joined: matches!(chosen, Chosen::Joined) })
            }
            (_, Some(Chosen::At(index))) => match self.element(name, index) {
                Ok(value) => Ok(Values::One(value)),
                Err(words) => Err(self.fail(&words).await),
            },
            (_, None) => Ok(Values::One(self.value(name))),
        }
    }

    /// All the texts of a variable.
    pub(crate) fn list_of(&self, name: &str) -> Vec<String> {
        if name == "FUNCNAME" {
            return self.execution.calls.iter().rev().cloned().collect();
        }
        self.variables
            .get(name)
            .map(|variable| variable.texts().iter().map(|text| text.to_string()).collect())
            .unwrap_or_default()
    }

    async fn act(&mut self, name: &str, index: Option<&Chosen>, values: Values, action: &Action) -> Flow<Values> {
        match action {
            Action::Length => {
                let length = match values {
                    Values::One(text) => text.map_or(0, |text| text.chars().count()),
                    Values::Many { list, .. } => list.len(),
                };
                Ok(Values::One(Some(length.to_string())))
            }
            Action::Slice { offset, length } => self.slice(name, values, offset, length.as_ref()).await,
            Action::Cut { suffix, longest, pattern } => {
                let pattern = self.pattern(pattern, false, false).await?;
                let run = self.run.clone();
                self.each(values, |text| {
                    Ok(if *suffix {
                        match pattern.suffix(&text, *longest, &run.patterns)? {
                            Some(start) => text.get(..start).unwrap_or_default().to_owned(),
                            None => text,
                        }
                    } else {
                        match pattern.prefix(&text, *longest, &run.patterns)? {
                            Some(end) => text.get(end..).unwrap_or_default().to_owned(),
                            None => text,
                        }
                    })
                })
                .await
            }
            Action::Replace { place, pattern, with } => {
                let pattern = self.pattern(pattern, false, self.options.nocasematch).await?;
                let with = self.replacement(with).await?;
                let run = self.run.clone();
                let limit = usize::try_from(run.bounds.variables).unwrap_or(usize::MAX);
                self.each(values, |text| replaced(&text, &pattern, &with, *place, &run.patterns, limit)).await
            }
            Action::Case { upper, all, pattern } => {
                let any = pattern.parts.is_empty();
                let pattern = self.pattern(pattern, false, false).await?;
                let run = self.run.clone();
                self.each(values, |text| {
                    let mut out = String::with_capacity(text.len());
                    for (place, c) in text.chars().enumerate() {
                        let chosen = (*all || place == 0)
                            && (any || pattern.matches(c.encode_utf8(&mut [0; 4]), &run.patterns)?);
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

    /// What a match is replaced by: text, with a quoted or unquoted `&` that stands for itself.
    async fn replacement(&mut self, with: &Word) -> Flow<String> {
        self.text(with).await
    }

    async fn each(&mut self, values: Values, mut change: impl FnMut(String) -> Matched<String>) -> Flow<Values> {
        let changed = match values {
            Values::One(text) => text.map(&mut change).transpose().map(Values::One),
            Values::Many { list, joined } => {
                list.into_iter().map(change).collect::<Matched<Vec<_>>>().map(|list| Values::Many { list, joined })
            }
        };
        match changed {
            Ok(values) => Ok(values),
            Err(_) => Err(self
                .fail("a pattern takes too long on this text, or the result grew too large: use sed or awk")
                .await),
        }
    }

    async fn transform(&mut self, name: &str, index: Option<&Chosen>, values: Values, operator: char) -> Flow<Values> {
        match operator {
            'a' => {
                Ok(Values::One(Some(self.variables.get(name).map(|variable| variable.letters()).unwrap_or_default())))
            }
            'A' => Ok(Values::One(self.declaration(name))),
            'K' | 'k' if matches!(index, Some(Chosen::Each | Chosen::Joined)) => {
                let keys = self.variables.get(name).map(|variable| variable.keys()).unwrap_or_default();
                let texts = self.list_of(name);
                let pairs = keys
                    .into_iter()
                    .zip(texts)
                    .flat_map(|(key, text)| [key, if operator == 'K' { escape::double_quoted(&text) } else { text }]);
                Ok(Values::Many { list: pairs.collect(), joined: operator == 'K' })
            }
            _ => {
                self.each(values, |text| {
                    Ok(match operator {
                        'Q' => escape::quoted(&text),
                        'U' => text.to_uppercase(),
                        'L' => text.to_lowercase(),
                        'u' => {
                            let mut chars = text.chars();
                            chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
                        }
                        'E' => escape::ansi(&text),
                        _ => text,
                    })
                })
                .await
            }
        }
    }

    /// The value of one element.
    pub(crate) fn element(&mut self, name: &str, index: &str) -> Result<Option<String>, String> {
        if name == "FUNCNAME" {
            let place = crate::language::arithmetic::evaluate(index, self, 0)?;
            return Ok(usize::try_from(place)
                .ok()
                .and_then(|place| self.execution.calls.iter().rev().nth(place).cloned()));
        }
        match self.variables.get(name).map(|variable| variable.value.clone()) {
            None | Some(Value::Unset) => Ok(None),
            Some(Value::Map(map)) => Ok(map.get(index).map(|text| text.to_string())),
            Some(Value::Text(text)) => {
                Ok((crate::language::arithmetic::evaluate(index, self, 0)? == 0).then(|| text.to_string()))
            }
            Some(Value::List(list)) => {
                let mut place = crate::language::arithmetic::evaluate(index, self, 0)?;
                if place < 0 {
                    place = place.saturating_add(past(&list));
                    if place < 0 {
                        return Err(format!("{name}: bad array subscript"));
                    }
                }
                Ok(list.get(&place).map(|text| text.to_string()))
            }
        }
    }
}

/// The elements that an index names, after its expansion.
pub(super) enum Chosen {
    Each,
    Joined,
    At(String),
}

fn replaced(
    text: &str,
    pattern: &Pattern,
    with: &str,
    place: Place,
    cache: &crate::language::pattern::Cache,
    limit: usize,
) -> Matched<String> {
    let cut = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
    if pattern.literal().is_some_and(|literal| literal.is_empty()) {
        return Ok(match place {
            Place::Start => format!("{with}{text}"),
            Place::End => format!("{text}{with}"),
            _ => text.to_owned(),
        });
    }
    match place {
        Place::Start => Ok(match pattern.prefix(text, true, cache)? {
            Some(end) => format!("{with}{}", cut(end, text.len())),
            None => text.to_owned(),
        }),
        Place::End => Ok(match pattern.suffix(text, true, cache)? {
            Some(start) => format!("{}{with}", cut(0, start)),
            None => text.to_owned(),
        }),
        _ => {
            let mut out = String::new();
            let mut at = 0;
            while let Some((start, end)) = pattern.find(text, at, cache)? {
                out.push_str(cut(at, start));
                if end == start {
                    // An empty match stands before the next character.
                    let Some(c) = cut(start, text.len()).chars().next() else { break };
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
                if place == Place::First || at >= text.len() {
                    break;
                }
            }
            out.push_str(cut(at, text.len()));
            Ok(out)
        }
    }
}
