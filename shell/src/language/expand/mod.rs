//! Word expansion: braces, tildes, parameters, substitutions, arithmetic, splitting and globbing,
//! in the same order as in bash.

mod brace;
mod glob;

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::ast::{
    Action, Argument, AssignedValue, Assignment, Index, Parameter, Part, ReplaceScope, Word,
};
use super::escape;
use super::interpreter::{Flow, Interpreter, Jump};
use super::pattern::{self, Fragment, MatchResult, Matching, Pattern, TooCostly};
use super::variables::{
    ArrayElement, AssignError, ExpandedWord, Setting, SettingValue, Value, Variable, is_name, past,
    split_index,
};
use crate::bounds::amount;
use crate::ledger::Charge;

/// Number of bytes counted for each expanded word in addition to its text.
const WORD_OVERHEAD: u64 = 16;

/// Returns the number of bytes that are charged for expanded words.
pub(crate) fn words_size(words: &[String]) -> u64 {
    words.iter().map(|text| text.len() as u64 + WORD_OVERHEAD).sum()
}

/// The fields built so far from a word. The last field is still open.
struct Fields {
    done: Vec<Vec<Fragment>>,
    open: Vec<Fragment>,
    /// If true, the open field exists even if it is empty.
    started: bool,
    /// Field separators, or `None` if values are not split.
    separators: Option<String>,
    /// If true, whitespace ended the previous field. A following non-whitespace separator belongs
    /// to the same delimiter.
    after_space: bool,
    /// If true, the current quotes contain an empty `$@`.
    empty_list: bool,
    /// The total size of the fields, in bytes.
    size: u64,
}

/// The state of the fields before an opening `"`.
struct QuoteStart {
    fields: usize,
    size: u64,
    empty_list: bool,
    started: bool,
}

impl Fields {
    fn new(separators: Option<String>) -> Fields {
        Fields {
            done: Vec::new(),
            open: Vec::new(),
            started: false,
            separators,
            after_space: false,
            empty_list: false,
            size: 0,
        }
    }

    fn add(&mut self, text: &str, quoted: bool) {
        self.size += text.len() as u64;
        self.after_space = false;
        match self.open.last_mut() {
            Some(last) if last.quoted == quoted => last.text.push_str(text),
            _ => self.open.push(Fragment { text: text.into(), quoted }),
        }
    }

    /// Adds unquoted text from the script.
    fn literal(&mut self, text: &str) {
        if !text.is_empty() {
            self.started = true;
            self.add(text, false);
        }
    }

    /// Adds quoted text. It starts a field even if it is empty.
    fn quoted(&mut self, text: &str) {
        self.started = true;
        self.add(text, true);
    }

    /// Adds an expanded value.
    fn expanded(&mut self, text: &str, quoted: bool) {
        if quoted { self.quoted(text) } else { self.value(text) }
    }

    /// Adds an unquoted expanded value and splits it at separators.
    fn value(&mut self, text: &str) {
        let Some(separators) = self.separators.take() else {
            self.literal(text);
            return;
        };
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let plain = rest.find(|c| separators.contains(c)).unwrap_or(rest.len());
            let (now, later) = rest.split_at(plain);
            if now.is_empty() {
                if matches!(c, ' ' | '\t' | '\n') {
                    if self.started {
                        self.end_field();
                        self.after_space = true;
                    }
                } else if self.started || !self.after_space {
                    self.started = true;
                    self.end_field();
                } else {
                    self.after_space = false;
                }
                rest = rest.split_at(c.len_utf8()).1;
            } else {
                self.literal(now);
                rest = later;
            }
        }
        self.separators = Some(separators);
    }

    /// Ends the open field, if there is one.
    fn end_field(&mut self) {
        self.after_space = false;
        if std::mem::take(&mut self.started) {
            self.size += 16;
            self.done.push(std::mem::take(&mut self.open));
        } else {
            self.open.clear();
        }
    }

    /// Marks the start of double quotes. Returns the state that [`Fields::end_quotes`] needs.
    fn begin_quotes(&mut self) -> QuoteStart {
        QuoteStart {
            fields: self.done.len(),
            size: self.size,
            empty_list: std::mem::take(&mut self.empty_list),
            started: self.started,
        }
    }

    /// Marks the end of double quotes. Even empty quotes form a field, unless they contain only an
    /// empty `$@`.
    fn end_quotes(&mut self, before: QuoteStart) {
        let added = self.done.len() > before.fields
            || self.size > before.size
            || (self.started && !before.started);
        if added || !self.empty_list {
            self.started = true;
            if self.open.is_empty() {
                self.open.push(Fragment { text: String::new(), quoted: true });
            }
        }
        self.empty_list = before.empty_list;
    }

    /// Ends the open field and returns all fields.
    fn finish(mut self) -> Vec<Vec<Fragment>> {
        self.end_field();
        self.done
    }
}

/// Returns a field as a string, without its quoting.
fn field_text(field: Vec<Fragment>) -> String {
    let mut fragments = field.into_iter();
    let mut text = fragments.next().map(|fragment| fragment.text).unwrap_or_default();
    text.extend(fragments.map(|fragment| fragment.text));
    text
}

/// The quoting context in which parts of a word are expanded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quoting {
    /// Parts outside quotes.
    Unquoted,
    /// Parts inside double quotes.
    Quoted,
    /// Parts of `word` in an unquoted `${x:-word}`. Plain text is split like an expanded value.
    Operand,
}

/// The values of a parameter.
enum Values {
    One(Option<String>),
    /// The values of a list. `joined` is true for `$*` and `[*]`.
    Many {
        list: Vec<String>,
        joined: bool,
    },
}

/// The elements that an expanded index selects.
enum Selection {
    /// `[@]`
    All,
    /// `[*]`
    Joined,
    At(String),
}

/// A change to one value of a parameter.
type Change<'a> = dyn FnMut(String, &mut Matching) -> MatchResult<String> + Send + 'a;

/// Words.
impl Interpreter {
    /// Returns a charge for expanded words. The caller keeps the charge as long as it uses the
    /// words.
    pub(crate) fn word_charge(&self) -> Charge {
        Charge::new(Arc::clone(&self.run.words))
    }

    /// Charges expanded words with a total size of `bytes`. Ends the script if the words of all
    /// running commands exceed their limit.
    pub(crate) fn charge_words(&mut self, bytes: u64, charge: &mut Charge) -> Flow {
        if charge.grow(bytes) {
            return Ok(());
        }
        Err(self.exceed_words())
    }

    /// Ends the script because no memory is left for expanded words. Returns the jump that exits
    /// the shell.
    pub(crate) fn exceed_words(&mut self) -> Jump {
        let full = self.run.words.full(0);
        self.exceed(format!("the words of the running commands take {full}: use a file or a pipe"))
    }

    /// Expands the words of a command and adds their size to `charge`.
    pub(crate) async fn arguments(
        &mut self,
        words: &[Argument],
        charge: &mut Charge,
    ) -> Flow<Vec<ExpandedWord>> {
        let mut given = Vec::new();
        for word in words {
            match word {
                Argument::Word(word) => {
                    let texts = self.fields(word, charge).await?;
                    given.extend(texts.into_iter().map(ExpandedWord::Text));
                }
                Argument::Assignment(assignment) => {
                    let word = ExpandedWord::Setting(self.setting(assignment).await?);
                    self.charge_words(word.size(), charge)?;
                    given.push(word);
                }
            }
            if given.len() > self.run.bounds.words {
                return Err(self.exceed(format!(
                    "one command has more than {} words: use a loop, a file or a pipe",
                    self.run.bounds.words
                )));
            }
        }
        Ok(given)
    }

    /// Expands a word to its fields and adds their size to `charge`.
    pub(crate) async fn fields(&mut self, word: &Word, charge: &mut Charge) -> Flow<Vec<String>> {
        match word.parts.as_slice() {
            [Part::Quoted(text)] => return Ok(vec![text.clone()]),
            [Part::Literal(text)] if !word.braces && !text.contains(['*', '?', '[']) => {
                return Ok(vec![text.clone()]);
            }
            _ => {}
        }
        if !word.braces {
            return self.fields_of(&word.parts, word.extended, charge).await;
        }
        let bounds = &self.run.bounds;
        let limit = brace::Limit { words: bounds.words, bytes: bounds.variables };
        let Some(words) = brace::expand(&word.parts, limit) else {
            return Err(self.exceed(format!(
                "braces give more than {} words, or words of more than {}: use a loop",
                limit.words,
                amount(limit.bytes)
            )));
        };
        let mut all = Vec::new();
        for parts in words {
            all.extend(self.fields_of(&parts, word.extended, charge).await?);
        }
        Ok(all)
    }

    async fn fields_of(
        &mut self,
        parts: &[Part],
        extended: bool,
        charge: &mut Charge,
    ) -> Flow<Vec<String>> {
        let mut out = Fields::new(Some(self.separators()));
        self.parts(parts, Quoting::Unquoted, &mut out).await?;
        let extended = extended || self.options.extglob;
        let mut all = Vec::new();
        for field in out.finish() {
            if !self.options.noglob && pattern::is_special(&field, extended) {
                let found = self.glob(&field, extended).await?;
                if !found.is_empty() || self.options.nullglob {
                    all.extend(found);
                    continue;
                }
            }
            all.push(field_text(field));
        }
        self.charge_words(words_size(&all), charge)?;
        Ok(all)
    }

    /// Expands a word to one string, without splitting or globbing.
    pub(crate) async fn text(&mut self, word: &Word) -> Flow<String> {
        if let [Part::Quoted(text) | Part::Literal(text)] = word.parts.as_slice() {
            return Ok(text.clone());
        }
        Ok(self.fragments(word).await?.into_iter().map(|fragment| fragment.text).collect())
    }

    /// Expands a word like [`Interpreter::text`], but keeps the quoting.
    pub(crate) async fn fragments(&mut self, word: &Word) -> Flow<Vec<Fragment>> {
        let mut out = Fields::new(None);
        self.parts(&word.parts, Quoting::Unquoted, &mut out).await?;
        let mut fields = out.finish().into_iter();
        let mut all = fields.next().unwrap_or_default();
        for field in fields {
            all.push(Fragment { text: " ".into(), quoted: true });
            all.extend(field);
        }
        Ok(all)
    }

    /// Expands a word to a pattern.
    pub(crate) async fn pattern(
        &mut self,
        word: &Word,
        extended: bool,
        fold: bool,
    ) -> Flow<Pattern> {
        let fragments = self.fragments(word).await?;
        Ok(Pattern::new(&fragments, extended || word.extended || self.options.extglob, fold))
    }

    /// Expands an assignment.
    pub(crate) async fn setting(&mut self, assignment: &Assignment) -> Flow<Setting> {
        let index = match &assignment.index {
            Some(word) => Some(self.text(word).await?),
            None => None,
        };
        let value = match &assignment.value {
            AssignedValue::Text(word) => SettingValue::Text(self.text(word).await?),
            AssignedValue::Array(elements) => {
                let mut charge = self.word_charge();
                let mut all = Vec::new();
                for element in elements {
                    match &element.index {
                        Some(index) => {
                            let index = self.text(index).await?;
                            let text = self.text(&element.value).await?;
                            all.push(ArrayElement {
                                index: Some(index),
                                append: element.append,
                                text,
                            });
                        }
                        None => {
                            let texts = self.fields(&element.value, &mut charge).await?.into_iter();
                            all.extend(texts.map(|text| ArrayElement {
                                index: None,
                                append: false,
                                text,
                            }));
                        }
                    }
                }
                SettingValue::Array(all)
            }
        };
        Ok(Setting { name: assignment.name.clone(), index, append: assignment.append, value })
    }

    /// Expands parts into `out`, in order.
    fn parts<'a>(
        &'a mut self,
        parts: &'a [Part],
        quoting: Quoting,
        out: &'a mut Fields,
    ) -> BoxFuture<'a, Flow> {
        async move {
            for part in parts {
                self.checkpoint().await?;
                self.part(part, quoting, out).await?;
                if out.size > self.run.bounds.variables {
                    return Err(self.exceed(format!(
                        "a word grew to more than {}: use a file or a pipe",
                        amount(self.run.bounds.variables)
                    )));
                }
            }
            Ok(())
        }
        .boxed()
    }

    async fn part(&mut self, part: &Part, quoting: Quoting, out: &mut Fields) -> Flow {
        let quoted = quoting == Quoting::Quoted;
        match part {
            Part::Literal(text) => match quoting {
                Quoting::Unquoted => out.literal(text),
                Quoting::Quoted => out.quoted(text),
                Quoting::Operand => out.value(text),
            },
            Part::Quoted(text) => out.quoted(text),
            Part::Double(parts) => {
                let before = out.begin_quotes();
                self.parts(parts, Quoting::Quoted, out).await?;
                out.end_quotes(before);
            }
            Part::Parameter(parameter) => self.parameter(parameter, quoting, out).await?,
            Part::Command(list) => out.expanded(&self.substitute(list).await?, quoted),
            Part::Arithmetic(word) => {
                let text = self.text(word).await?;
                out.expanded(&self.arithmetic(&text).await?.to_string(), quoted);
            }
            Part::Process { input, list } => {
                let path = self.process(*input, Arc::clone(list)).await?;
                out.quoted(&path);
            }
            Part::Tilde(name) => match self.home(name) {
                Some(path) => out.quoted(&path),
                None => out.literal(&format!("~{name}")),
            },
        }
        Ok(())
    }

    /// Returns the folder that a tilde prefix refers to, or `None` if the name is unknown.
    fn home(&self, name: &str) -> Option<String> {
        match name {
            "" => Some(self.variable("HOME").map_or_else(|| "/".into(), |text| text.to_string())),
            "+" => Some(self.folders.current.clone()),
            "-" => self.variable("OLDPWD").map(|text| text.to_string()),
            "root" | "user" => Some("/".into()),
            _ => None,
        }
    }

    /// Evaluates an arithmetic expression. If it is invalid, the line is abandoned, as in bash.
    pub(crate) async fn arithmetic(&mut self, text: &str) -> Flow<i64> {
        let value = super::arithmetic::evaluate(text, self);
        self.or_abandon(value).await
    }

    /// Returns the field separators: the value of `IFS`, or space, tab and newline if it is unset.
    pub(crate) fn separators(&self) -> String {
        self.variable("IFS").map_or_else(|| " \t\n".into(), |text| text.to_string())
    }

    /// Returns the separator that joins the elements of `"$*"`.
    fn list_separator(&self) -> String {
        self.separators().chars().next().map(String::from).unwrap_or_default()
    }

    /// Returns true if a pattern matches a whole string. Fails with a message if the match is too
    /// costly.
    pub(crate) fn matches(&self, pattern: &Pattern, text: &str) -> Result<bool, String> {
        let mut matching = Matching::new(&self.run.patterns);
        let matches = pattern.matches(text, &mut matching);
        self.run.charge(matching.steps());
        matches.map_err(|TooCostly| "a pattern takes too long on this text".into())
    }
}

/// Parameters: `$name` and `${name…}`.
impl Interpreter {
    /// Expands a parameter into `out`.
    async fn parameter(
        &mut self,
        parameter: &Parameter,
        quoting: Quoting,
        out: &mut Fields,
    ) -> Flow {
        let quoted = quoting == Quoting::Quoted;
        let mut name = parameter.name.clone();
        let mut index = self.index(parameter.index.as_ref()).await?;
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
            Action::Default { colon, .. }
            | Action::Assign { colon, .. }
            | Action::Fail { colon, .. }
                if counts(*colon) =>
            {
                self.emit(values, quoted, out)
            }
            Action::Alternative { colon, .. } if !counts(*colon) => {
                if quoted {
                    out.quoted("");
                }
            }
            Action::Default { word, .. } | Action::Alternative { word, .. } => {
                self.operand(word, quoting, out).await?
            }
            Action::Assign { word, .. } => {
                out.expanded(&self.assign_default(name, index, word).await?, quoted);
            }
            Action::Fail { colon, word } => {
                let message = self.unset_message(word, *colon).await?;
                return Err(self.missing(&format!("{name}: {message}")).await);
            }
            action => {
                if !there
                    && self.options.nounset
                    && matches!(values, Values::One(_))
                    && !matches!(action, Action::Transform('a'))
                {
                    return Err(self.missing(&format!("{name}: unbound variable")).await);
                }
                let values = self.apply(&name, index.as_ref(), values, action).await?;
                self.emit(values, quoted, out);
            }
        }
        Ok(())
    }

    /// Assigns the word of `${name=word}` to the parameter and returns the assigned value.
    async fn assign_default(
        &mut self,
        name: String,
        index: Option<Selection>,
        word: &Word,
    ) -> Flow<String> {
        let text = self.text(word).await?;
        if !is_name(&name) {
            return Err(self.abandon(&format!("${name}: cannot assign in this way")).await);
        }
        let index = if let Some(Selection::At(index)) = index { Some(index) } else { None };
        let value = SettingValue::Text(text.clone());
        self.assign(Setting { name, index, append: false, value }).await?;
        Ok(text)
    }

    /// Returns the message of `${name?word}`: the word, or a default message.
    async fn unset_message(&mut self, word: &Word, colon: bool) -> Flow<String> {
        let text = self.text(word).await?;
        Ok(match (text.is_empty(), colon) {
            (false, _) => text,
            (true, true) => "parameter null or not set".into(),
            (true, false) => "parameter not set".into(),
        })
    }

    /// Reports that a required variable is not set. Returns the jump that exits the shell.
    async fn missing(&mut self, message: &str) -> Jump {
        self.execution.is_missing = true;
        self.abandon(message).await
    }

    /// Expands the word that replaces the value in an operation such as `${x:-word}`.
    async fn operand(&mut self, word: &Word, quoting: Quoting, out: &mut Fields) -> Flow {
        if word.parts.is_empty() && quoting == Quoting::Quoted {
            out.quoted("");
        }
        let quoting = if quoting == Quoting::Quoted { Quoting::Quoted } else { Quoting::Operand };
        self.parts(&word.parts, quoting, out).await
    }

    /// Adds values to `out`: split, joined, or each as one field, depending on the quoting.
    fn emit(&mut self, values: Values, quoted: bool, out: &mut Fields) {
        match values {
            Values::One(Some(text)) => out.expanded(&text, quoted),
            Values::One(None) if quoted => out.quoted(""),
            Values::One(None) => {}
            Values::Many { list, joined } if (joined && quoted) || out.separators.is_none() => {
                let separator = if joined { self.list_separator() } else { " ".into() };
                let text = list.join(&separator);
                if list.is_empty() && !joined {
                    out.empty_list = true;
                } else {
                    out.expanded(&text, quoted);
                }
            }
            Values::Many { list, .. } => {
                if list.is_empty() {
                    out.empty_list = true;
                }
                for (index, text) in list.iter().enumerate() {
                    if index > 0 {
                        out.end_field();
                    }
                    out.expanded(text, quoted);
                }
            }
        }
    }

    /// Expands an index.
    async fn index(&mut self, index: Option<&Index>) -> Flow<Option<Selection>> {
        Ok(match index {
            None => None,
            Some(Index::All) => Some(Selection::All),
            Some(Index::Joined) => Some(Selection::Joined),
            Some(Index::At(word)) => Some(Selection::At(self.text(word).await?)),
        })
    }

    /// Returns the name and index that `${!name}` refers to, or `None` if `name` is unset.
    async fn indirect(
        &mut self,
        name: &str,
        index: Option<&Selection>,
    ) -> Flow<Option<(String, Option<Selection>)>> {
        let Values::One(Some(target)) = self.values(name, index).await? else { return Ok(None) };
        let (name, index) = split_index(&target);
        let index = index.map(|index| match index {
            "@" => Selection::All,
            "*" => Selection::Joined,
            index => Selection::At(index.to_owned()),
        });
        let target = name.to_owned();
        let special = matches!(target.as_str(), "@" | "*" | "#" | "?" | "-" | "$" | "!")
            || (!target.is_empty() && target.chars().all(|c| c.is_ascii_digit()));
        if is_name(&target) || special {
            return Ok(Some((target, index)));
        }
        Err(self.abandon(&format!("{target}: invalid variable name")).await)
    }

    /// Returns the values of `${!prefix*}` or `${!name[@]}`.
    fn names_or_keys(&self, name: &str, action: &Action, index: Option<&Selection>) -> Values {
        match action {
            Action::Names { joined } => {
                let mut list = self.variables.names();
                list.retain(|known| known.starts_with(name));
                Values::Many { list, joined: *joined }
            }
            _ => {
                let list = self.variables.get(name).map_or_else(Vec::new, Variable::keys);
                Values::Many { list, joined: matches!(index, Some(Selection::Joined)) }
            }
        }
    }

    /// Returns the values of a parameter.
    async fn values(&mut self, name: &str, index: Option<&Selection>) -> Flow<Values> {
        match (name, index) {
            ("@", _) => Ok(Values::Many { list: self.parameters.words(), joined: false }),
            ("*", _) => Ok(Values::Many { list: self.parameters.words(), joined: true }),
            (_, Some(chosen @ (Selection::All | Selection::Joined))) => {
                let list = self.list_of(name);
                Ok(Values::Many { list, joined: matches!(chosen, Selection::Joined) })
            }
            (_, Some(Selection::At(index))) => {
                match self.element(name, index) {
                    Ok(value) => Ok(Values::One(value)),
                    // As in bash, the line goes on without the value.
                    Err(error @ AssignError::Subscript(_)) => {
                        self.report(&error.to_string()).await;
                        Ok(Values::One(None))
                    }
                    Err(error) => Err(self.abandon(&error.to_string()).await),
                }
            }
            (_, None) => Ok(Values::One(self.value(name))),
        }
    }
}

/// The operations of `${name…}` that change values.
impl Interpreter {
    /// Applies an operation to the values of a parameter.
    async fn apply(
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
                            Some(start) => text.split_at(start).0.to_owned(),
                            None => text,
                        }
                    } else {
                        match pattern.prefix(&text, *longest, matching)? {
                            Some(end) => text.split_at(end).1.to_owned(),
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
            'a' => {
                let letters = self.variables.get(name).map_or_else(String::new, Variable::letters);
                Ok(Values::One(Some(letters)))
            }
            'A' => Ok(Values::One(self.declaration(name))),
            'K' | 'k' if matches!(index, Some(Selection::All | Selection::Joined)) => {
                let keys = self.variables.get(name).map_or_else(Vec::new, Variable::keys);
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

    /// Returns a substring of a value, or a range of a list.
    async fn slice(
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
                let size = text.chars().count();
                let Some((from, to)) = bounds(size, offset, length) else {
                    return Err(self.negative_length(length).await);
                };
                let chars = text.chars().take(to).skip(from);
                Ok(Values::One(Some(chars.collect())))
            }
            Values::Many { .. } if length.is_some_and(|length| length < 0) => {
                Err(self.negative_length(length).await)
            }
            Values::Many { mut list, joined } => {
                let length =
                    length.and_then(|length| usize::try_from(length).ok()).unwrap_or(usize::MAX);
                let value = self.variables.get(name).map(|variable| &variable.value);
                if let Some(Value::List(elements)) = value
                    && !matches!(name, "@" | "*")
                {
                    let from =
                        if offset < 0 { past(elements).saturating_add(offset) } else { offset };
                    let from = if from < 0 { i64::MAX } else { from };
                    let chosen = elements.range(from..).take(length);
                    let list = chosen.map(|(_, text)| text.to_string()).collect();
                    return Ok(Values::Many { list, joined });
                }
                if matches!(name, "@" | "*") {
                    list.insert(0, self.parameters.name.to_string());
                }
                let from = from_end(list.len(), offset).unwrap_or(usize::MAX);
                let list = list.into_iter().skip(from).take(length).collect();
                Ok(Values::Many { list, joined })
            }
        }
    }

    /// Reports that the length of a slice is negative. Returns the jump that exits the shell.
    async fn negative_length(&mut self, length: Option<i64>) -> Jump {
        self.abandon(&format!("{}: substring expression < 0", length.unwrap_or_default())).await
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

/// Replaces matches of a pattern. Fails if the result exceeds `limit` bytes.
fn replace(
    text: &str,
    pattern: &Pattern,
    with: &str,
    scope: ReplaceScope,
    matching: &mut Matching,
    limit: usize,
) -> MatchResult<String> {
    if pattern.literal().is_some_and(|literal| literal.is_empty()) {
        return Ok(match scope {
            ReplaceScope::Start => format!("{with}{text}"),
            ReplaceScope::End => format!("{text}{with}"),
            _ => text.to_owned(),
        });
    }
    match scope {
        ReplaceScope::Start => Ok(match pattern.prefix(text, true, matching)? {
            Some(end) => format!("{with}{}", text.split_at(end).1),
            None => text.to_owned(),
        }),
        ReplaceScope::End => Ok(match pattern.suffix(text, true, matching)? {
            Some(start) => format!("{}{with}", text.split_at(start).0),
            None => text.to_owned(),
        }),
        _ => {
            let mut out = String::new();
            let mut at = 0;
            while let Some((start, end)) = pattern.find(text, at, matching)? {
                out.push_str(text.split_at(start).0.split_at(at).1);
                at = start;
                if end == start {
                    // An empty match consumes nothing, so the next character is copied.
                    let Some(c) = text.split_at(start).1.chars().next() else { break };
                    out.push_str(with);
                    out.push(c);
                    at += c.len_utf8();
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
            out.push_str(text.split_at(at).1);
            Ok(out)
        }
    }
}
