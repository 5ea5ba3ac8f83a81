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
    Repeated { arg: String },
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

    /// Returns arguments in the order of the parameters. `names` are the names of the last ones; the
    /// others are in order already. An optional argument that is left out before another one is its
    /// default. [`arguments`](Entry::arguments) then checks their types.
    ///
    /// # Errors
    /// If the program has no [`param`](Entry::param) of a name, an argument is given twice, there
    /// are too many arguments, or a required one is missing.
    pub fn in_order(
        &self,
        args: &[String],
        names: &[String],
    ) -> Result<Vec<String>, ArgumentError> {
        if names.is_empty() {
            return Ok(args.to_vec());
        }
        let params = &self.meta().args;
        let error =
            |kind| ArgumentError { program: self.name().clone(), usage: self.usage(), kind };
        let by_position = args.len().saturating_sub(names.len());
        if by_position > params.len() {
            return Err(error(Kind::TooMany { takes: params.len(), given: args.len() }));
        }
        let mut given: Vec<Option<&String>> = vec![None; params.len()];
        let own = params.iter().map(|param| Ok::<_, ArgumentError>(&param.name));
        let named = names.iter().map(|name| match self.param(name) {
            Some(param) => Ok(&param.name),
            None => Err(error(Kind::Unknown { arg: name.clone() })),
        });
        for (name, value) in own.take(by_position).chain(named).zip(args) {
            let name = name?;
            let mut slots = params.iter().zip(&mut given);
            let slot = slots.find(|(param, _)| param.name == *name).map(|(_, slot)| slot);
            if slot.is_some_and(|slot| slot.replace(value).is_some()) {
                return Err(error(Kind::Repeated { arg: name.clone() }));
            }
        }
        let values = params.iter().zip(given.iter().copied());
        let values = values.map(|(param, given)| (param, given.or(param.default.as_ref())));
        let missing = values.clone().find(|(_, value)| value.is_none());
        if let Some((Arg { name, type_hint, .. }, _)) = missing {
            return Err(error(Kind::Missing { arg: name.clone(), type_hint: *type_hint }));
        }
        let count = given.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
        Ok(values.take(count).filter_map(|(_, value)| value.cloned()).collect())
    }

    /// Returns the parameter with this name. A name whose letters and digits are those of exactly
    /// one parameter, in any case, is accepted as well: `Max-Items` for `max_items`.
    #[must_use]
    pub fn param(&self, name: &str) -> Option<&Arg> {
        let params = &self.meta().args;
        let letters = |name: &str| -> String {
            name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
        };
        let exact = params.iter().find(|param| param.name == name);
        exact.or_else(|| {
            let mut alike = params.iter().filter(|param| letters(&param.name) == letters(name));
            alike.next().filter(|_| alike.next().is_none())
        })
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
            Kind::Schema { .. } | Kind::Unknown { .. } | Kind::Repeated { .. } => {
                format!("usage: {usage}")
            }
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
            Kind::Unknown { arg } => write!(f, "it has no arg {}", excerpt(arg)),
            Kind::Repeated { arg } => write!(f, "the arg `{arg}` is given twice"),
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
