//! Word expansion: braces, tildes, parameters, substitutions, arithmetic, splitting and globbing,
//! in the same order as in bash.

mod brace;
mod fields;
mod glob;
mod parameter;
mod slice;
mod transform;
mod values;

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::ast::{Argument, AssignedValue, Assignment, Part, Word};
use super::interpreter::{Flow, Interpreter, Jump};
use super::pattern::{self, Fragment, Pattern};
use super::setting::{ArrayElement, ExpandedWord, Setting, SettingValue};
use crate::bounds::amount;
use crate::ledger::Charge;
use fields::{Fields, Quoting};

/// Number of bytes counted for each expanded word in addition to its text.
const WORD_OVERHEAD: u64 = 16;

/// Returns the number of bytes that are charged for expanded words.
pub(crate) fn words_size(words: &[String]) -> u64 {
    words.iter().map(|text| text.len() as u64 + WORD_OVERHEAD).sum()
}

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
        for expanded in words {
            let parts = brace::parts_of(expanded);
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
            all.push(fields::text(field));
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
                if out.size() > self.run.bounds.variables {
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
            Part::Command(list) => {
                let text = self.substitute(list).await?;
                if quoted { out.quoted(&text) } else { out.value(&text) }
            }
            Part::Arithmetic(word) => {
                let text = self.text(word).await?;
                let value = self.arithmetic(&text).await?.to_string();
                if quoted { out.quoted(&value) } else { out.value(&value) }
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
            "" => Some(
                self.variables.text("HOME").map_or_else(|| "/".into(), |text| text.to_string()),
            ),
            "+" => Some(self.folders.current.clone()),
            "-" => self.variables.text("OLDPWD").map(|text| text.to_string()),
            "root" | "user" => Some("/".into()),
            _ => None,
        }
    }

    /// Evaluates an arithmetic expression. If it is invalid, the shell exits, as in bash.
    pub(crate) async fn arithmetic(&mut self, text: &str) -> Flow<i64> {
        match super::arithmetic::evaluate(text, self) {
            Ok(value) => Ok(value),
            Err(message) => Err(self.fail(&message).await),
        }
    }

    /// Reports an error. Returns the jump that exits the shell, with status 1.
    pub(crate) async fn fail(&mut self, message: &str) -> Jump {
        self.report(message).await;
        self.last.status = 1;
        Jump::Exit
    }

    /// Returns the field separators: the value of `IFS`, or space, tab and newline if it is unset.
    pub(crate) fn separators(&self) -> String {
        match self.variables.get("IFS") {
            Some(variable) => {
                variable.text().map_or_else(|| " \t\n".into(), |text| text.to_string())
            }
            None => " \t\n".into(),
        }
    }

    /// Returns the separator that joins the elements of `"$*"`.
    fn list_separator(&self) -> String {
        self.separators().chars().next().map(String::from).unwrap_or_default()
    }
}
