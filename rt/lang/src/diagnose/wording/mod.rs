//! The messages of all diagnostics, each with its stable code.
//!
//! All messages are defined here, in one file per subject.

/// Defines functions that build messages. Each row has the function's parameters, the message's
/// code and text, its hint, its fix, and the values of placeholders that differ from the parameters.
/// Instead of one hint, a row may have a `match`, each arm of which has a hint (or `none`) and
/// possibly a fix. A fix is the method of [`Message`] that proposes it.
macro_rules! messages {
    ($($(#[$doc:meta])* $name:ident($($param:ident: $ty:ty),*) $code:tt
        $text:literal $(=> $hint:literal)?
        $(=> match ($($on:expr),+) {
            $($pattern:pat $(if $condition:expr)? => $arm:tt
                $(fix $arm_fix:ident($arm_change:expr))?),+ $(,)?
        })?
        $(fix $fix:ident($change:expr))?
        $(where $($var:ident = $value:expr),+)?;)*) => {$(
        $(#[$doc])*
        pub(crate) fn $name($($param: $ty),*) -> Message {
            $($(let $var = $value;)+)?
            let message = message($code, format!($text))$(.hint(format!($hint)))?;
            $(let message = match ($($on),+) {
                $($pattern $(if $condition)? => {
                    hinted!(message, $arm)$(.$arm_fix($arm_change))?
                })+
            };)?
            message$(.$fix($change))?
        }
    )*};
}

/// Adds a hint to a message, unless the hint is `none`.
macro_rules! hinted {
    ($message:ident, none) => {
        $message
    };
    ($message:ident, $hint:literal) => {
        $message.hint(format!($hint))
    };
}

pub(crate) mod form;
mod instruction;
mod limit;
mod module;
mod syntax;
pub(crate) mod types;

use std::ops::Range;

use crate::diagnose::diagnostic::{Diagnostic, Severity, narrow};
use crate::diagnose::fix::{Certainty, Change, Edits, ProposedFix};
use crate::diagnose::truncate::excerpt;
use crate::types::Val;

pub(crate) use self::instruction::*;
pub(crate) use self::limit::*;
pub(crate) use self::syntax::*;
pub(crate) use crate::diagnose::wording::module::*;

/// A message about a range of the program's source.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) span: Range<usize>,
    pub(crate) message: Message,
}

impl Fault {
    pub(crate) fn new(span: Range<usize>, message: Message) -> Box<Fault> {
        Box::new(Fault { span, message })
    }

    /// Builds the public diagnostic. A proposed fix that cannot be applied to `source` is dropped.
    pub(crate) fn into_diagnostic(self, source: &str, severity: Severity) -> Diagnostic {
        let fix = self.message.fix.and_then(|fix| fix.resolve(source, &self.span));
        let span = narrow(&self.span);
        Diagnostic::new(
            source,
            severity,
            self.message.code,
            span,
            self.message.text,
            self.message.hint,
        )
        .with_fix(fix)
    }
}

/// The code, text, hint and fix of a diagnostic.
#[derive(Debug)]
pub(crate) struct Message {
    code: &'static str,
    text: String,
    hint: Option<String>,
    fix: Option<ProposedFix>,
}

/// Builds a message without a hint or a fix.
fn message(code: &'static str, text: impl Into<String>) -> Message {
    Message { code, text: text.into(), hint: None, fix: None }
}

impl Message {
    /// Sets the hint.
    pub(crate) fn hint(self, hint: impl Into<String>) -> Message {
        Message { hint: Some(hint.into()), ..self }
    }

    fn maybe_hint(self, hint: Option<String>) -> Message {
        Message { hint, ..self }
    }

    /// Returns true if the message says that a form is not closed.
    pub(crate) fn is_unclosed(&self) -> bool {
        self.code == "unclosed-form"
    }

    pub(crate) fn lacks_fix(&self) -> bool {
        self.fix.is_none()
    }

    /// Proposes a [safe](Certainty::Safe) fix.
    pub(crate) fn safe(self, change: impl Into<Change>) -> Message {
        let change = change.into();
        Message { fix: Some(ProposedFix { change, certainty: Certainty::Safe }), ..self }
    }

    /// Proposes a [likely](Certainty::Likely) fix.
    pub(crate) fn likely(self, change: impl Into<Change>) -> Message {
        let change = change.into();
        Message { fix: Some(ProposedFix { change, certainty: Certainty::Likely }), ..self }
    }

    /// Proposes `change`, if there is one, as a safe fix.
    pub(crate) fn maybe_safe(self, change: Option<impl Into<Change>>) -> Message {
        change.into_iter().fold(self, Message::safe)
    }

    /// Proposes replacing the faulty range with `text`, as a safe fix.
    pub(crate) fn replace_with(self, text: impl Into<String>) -> Message {
        self.safe(Change::Replace(text.into()))
    }

    /// Proposes a safe fix. If all its edits are within the range `piece` of the source, the hint
    /// shows the fixed code in that range.
    pub(crate) fn suggest_rewrite(
        self,
        source: &str,
        piece: Range<usize>,
        edits: Edits,
    ) -> Message {
        let fix = ProposedFix { change: edits.clone().into(), certainty: Certainty::Safe };
        let inside = |at: usize| (piece.start..=piece.end).contains(&at);
        let shown = fix.resolve(source, &piece).and_then(|fix| {
            let within = fix
                .edits
                .iter()
                .all(|edit| inside(edit.span.start as usize) && inside(edit.span.end as usize));
            let fixed = fix.apply(source);
            let rest = source.len() - piece.end;
            within.then(|| excerpt(fixed.get(piece.start..fixed.len() - rest).unwrap_or("")))
        });
        let hinted =
            shown.into_iter().fold(self, |message, shown| message.hint(format!("write `{shown}`")));
        hinted.safe(edits)
    }

    /// Proposes converting the faulty expression with the instruction `by`, if the conversion is
    /// lossless.
    pub(crate) fn convert(self, want: Val, found: Val, by: &str) -> Message {
        match (found, want) {
            (Val::I32, Val::I64 | Val::F64) | (Val::F32, Val::F64) => {
                self.safe(Change::wrap(format!("({by} "), ")"))
            }
            _ => self,
        }
    }
}

/// Returns `count` and the noun, as in `1 operand` and `2 operands`.
fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// Returns a type with its article, as in `an i32`.
fn with_article(ty: Val) -> String {
    let article = if matches!(ty, Val::V128 | Val::Func) { "a" } else { "an" };
    format!("{article} {}", ty.name())
}

/// Formats the first 8 names, each in backticks, as a list.
fn quoted<T: AsRef<str>>(names: &[T]) -> String {
    names
        .iter()
        .take(8)
        .map(|name| format!("`{}`", excerpt(name.as_ref())))
        .collect::<Vec<_>>()
        .join(", ")
}
