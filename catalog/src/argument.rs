//! Checks the arguments of a call against the types of the parameters, and fills in defaults for
//! missing arguments.

use std::fmt;

use wattle_rt::{Callable, CallableParam};

use crate::{Arg, Entry, Name, TypeHint};

/// An error in the arguments of a call. Its text is returned to the model as the result of the
/// call.
///
/// [`hint`](ArgumentError::hint) explains how to fix the call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgumentError {
    program: Name,
    usage: String,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Missing { arg: String, type_hint: TypeHint },
    Invalid { arg: String, type_hint: TypeHint, required: bool, given: String },
    TooMany { takes: usize, given: usize },
    Schema { faults: String },
    Unknown { arg: String },
}

impl Entry {
    /// Checks each given argument against its type. Returns the arguments that the program
    /// receives, including defaults and values that the agent fixed. An optional argument takes its
    /// default if it is missing, if it equals the default, or if it is empty and its type is not
    /// `string`.
    ///
    /// # Errors
    /// If a required argument is missing, an argument does not match its type, there are too many
    /// arguments, or the arguments do not match the agent's [`schema`](Entry::schema).
    pub fn arguments(&self, given: &[String]) -> Result<Vec<String>, ArgumentError> {
        let args = &self.meta().args;
        let mut arguments = check(self.name(), args, given)?;
        if let Some(schema) = &self.schema {
            let own = args.iter().zip(&arguments).zip(given);
            let own = own.filter(|((arg, _), given)| !selects_default(arg, given));
            let faults = schema.faults(own.map(|(argument, _)| argument));
            if !faults.is_empty() {
                return Err(ArgumentError {
                    program: self.name().clone(),
                    usage: self.usage(),
                    kind: Kind::Schema { faults: faults.join("; ") },
                });
            }
        }
        for (at, value) in &self.fixed {
            arguments.insert((*at).min(arguments.len()), value.clone());
        }
        Ok(arguments)
    }

    /// Returns arguments that are given by their names in the order of the parameters. An optional
    /// one that is left out before another one is its default. [`arguments`](Entry::arguments) then
    /// checks their types.
    ///
    /// # Errors
    /// If the program has no parameter of that name, or a required argument is missing.
    pub fn in_order(&self, given: Vec<(String, String)>) -> Result<Vec<String>, ArgumentError> {
        let args = &self.meta().args;
        let error =
            |kind| ArgumentError { program: self.name().clone(), usage: self.usage(), kind };
        if let Some((name, _)) = given.iter().find(|(name, _)| args.iter().all(|a| a.name != *name))
        {
            return Err(error(Kind::Unknown { arg: name.clone() }));
        }
        let value = |arg: &Arg| {
            let found = given.iter().rfind(|(name, _)| *name == arg.name);
            found.map(|(_, value)| value).or(arg.default.as_ref()).cloned()
        };
        let is_given = |arg: &Arg| given.iter().any(|(name, _)| *name == arg.name);
        let count = args.iter().rposition(is_given).map_or(0, |last| last + 1);
        let missing = args.iter().find(|arg| value(arg).is_none());
        if let Some(Arg { name, type_hint, .. }) = missing {
            return Err(error(Kind::Missing { arg: name.clone(), type_hint: *type_hint }));
        }
        Ok(args.iter().take(count).filter_map(value).collect())
    }

    /// Returns the program as others call it by its name.
    #[must_use]
    pub fn callable(&self) -> Callable {
        let params = self.meta().args.iter().map(|arg| CallableParam {
            name: arg.name.clone(),
            is_optional: arg.default.is_some(),
        });
        Callable {
            name: self.name().to_string(),
            params: params.collect(),
            is_typed: self.meta().result.is_some(),
        }
    }

    /// Returns the program's usage line, such as `file_grep(path: path, text: string, max: int =
    /// 100)`.
    #[must_use]
    pub fn usage(&self) -> String {
        usage(self.name(), &self.meta().args)
    }
}

fn usage(program: &Name, args: &[Arg]) -> String {
    let args: Vec<String> = args.iter().map(ToString::to_string).collect();
    format!("{program}({})", args.join(", "))
}

pub(crate) fn check(
    program: &Name,
    args: &[Arg],
    given: &[String],
) -> Result<Vec<String>, ArgumentError> {
    let error =
        |kind| ArgumentError { program: program.clone(), usage: usage(program, args), kind };
    if given.len() > args.len() {
        return Err(error(Kind::TooMany { takes: args.len(), given: given.len() }));
    }
    let texts = given.iter().map(Some).chain(std::iter::repeat(None));
    args.iter().zip(texts).map(|(arg, text)| argument(arg, text).map_err(error)).collect()
}

fn argument(arg: &Arg, given: Option<&String>) -> Result<String, Kind> {
    let (name, type_hint) = (|| arg.name.clone(), arg.type_hint);
    let given = given.filter(|text| !selects_default(arg, text));
    match (given, &arg.default) {
        (None, Some(default)) => Ok(default.clone()),
        (None, None) => Err(Kind::Missing { arg: name(), type_hint }),
        (Some(text), default) => {
            type_hint.accept(text).map(Into::into).ok_or_else(|| Kind::Invalid {
                arg: name(),
                type_hint,
                required: default.is_none(),
                given: excerpt(text),
            })
        }
    }
}

/// Returns true if a string selects the default of an optional argument.
fn selects_default(arg: &Arg, text: &str) -> bool {
    arg.default.as_ref().is_some_and(|default| {
        text == default || (text.is_empty() && arg.type_hint != TypeHint::String)
    })
}

/// Quotes a string for a message. Long strings are truncated.
pub(crate) fn excerpt(text: &str) -> String {
    wattle_rt::quote(text, 60)
}

/// Describes the values that a type accepts, for a message.
fn expected(type_hint: TypeHint) -> &'static str {
    match type_hint {
        TypeHint::String => "a text",
        TypeHint::Int => "an integer such as 42",
        TypeHint::Float => "a number such as 2.5",
        TypeHint::Bool => "true or false",
        TypeHint::Json => "a JSON text",
        TypeHint::Path => "a non-empty path",
        TypeHint::Url => "an absolute URL that starts with http:// or https://",
    }
}

/// Returns the name of the type with its article: `an int`, `a url`.
pub(crate) fn with_article(type_hint: TypeHint) -> String {
    let article = if type_hint == TypeHint::Int { "an" } else { "a" };
    format!("{article} {type_hint}")
}

impl ArgumentError {
    /// Returns the hint, without a leading `hint:`. For an argument with a missing or invalid
    /// value, the hint states the expected value, the value that was found, if any, and how to call
    /// the program.
    #[must_use]
    pub fn hint(&self) -> String {
        let usage = &self.usage;
        match &self.kind {
            Kind::Missing { type_hint, .. } => {
                format!("expected {}; usage: {usage}", expected(*type_hint))
            }
            Kind::Invalid { type_hint, given, .. } => {
                format!("expected {}, found {given}; usage: {usage}", expected(*type_hint))
            }
            Kind::Schema { .. } | Kind::Unknown { .. } => format!("usage: {usage}"),
            Kind::TooMany { .. } => "quote an argument that contains spaces or commas".to_owned(),
        }
    }
}

impl fmt::Display for ArgumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} error: ", self.program)?;
        match &self.kind {
            Kind::Missing { arg, .. } => write!(f, "required arg `{arg}` missing or not a string"),
            Kind::Invalid { arg, type_hint, required: true, .. } => {
                write!(f, "required arg `{arg}` missing or not {}", with_article(*type_hint))
            }
            Kind::Invalid { arg, type_hint, .. } => {
                write!(f, "optional arg `{arg}` not {}", with_article(*type_hint))
            }
            Kind::Unknown { arg } => write!(f, "it has no arg `{arg}`"),
            Kind::Schema { faults } => {
                write!(f, "the arguments do not match the schema: {faults}")
            }
            Kind::TooMany { takes, given } => {
                let takes = match takes {
                    0 => "no arguments".to_owned(),
                    1 => "1 argument".to_owned(),
                    n => format!("{n} arguments"),
                };
                write!(f, "takes {takes}, {given} given; usage: {}", self.usage)
            }
        }
    }
}

impl std::error::Error for ArgumentError {}
