//! The front matter of a program.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use serde::Deserialize;

use crate::Example;

/// The validated front matter of a program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Meta {
    /// A description for the model, in one sentence.
    pub description: String,
    /// The arguments, in order. Arguments with a default come last.
    pub args: Vec<Arg>,
    /// A description of the results.
    pub returns: Option<String>,
    /// The shape of the results, such as `[{id, title}]`, if they are one JSON value. A program that
    /// calls this one by its name gets that value, and otherwise a string.
    pub result: Option<String>,
    /// The capabilities through which the body reaches outside the program, or `None` if the front
    /// matter does not list them. [`Entry::check_uses`](crate::Entry::check_uses) checks them against
    /// the body.
    pub uses: Option<Vec<String>>,
    /// The effects and secrets that the program asks the operator for, such as
    /// `host:api.example.com` and `secret:NAME`. Asking gives nothing.
    pub grants: Vec<String>,
    /// The version of the program, chosen by its author.
    pub version: Option<String>,
    /// The name of the built-in program that this program replaces. It must equal this program's
    /// own name. Without `replaces`, a program with the name of a built-in program is omitted from
    /// the catalog.
    pub replaces: Option<String>,
    /// Additional keywords for the search.
    pub tags: Vec<String>,
    /// If true, no other call may run concurrently with a call to the program.
    pub exclusive: bool,
    /// If true, the results of a call are not added to the conversation.
    pub silent: bool,
    /// If true, the results of a call are added to the conversation whole, and not truncated as those
    /// of other programs.
    pub whole: bool,
    /// Maximum duration of a call, set by `timeout_ms`. The runtime's limit also applies.
    pub timeout: Option<Duration>,
    /// The examples. They are run as tests and shown in the manual.
    pub examples: Vec<Example>,
}

/// An argument of a program.
#[derive(Clone, Debug, PartialEq)]
pub struct Arg {
    /// The name, as shown in usage lines and errors.
    pub name: String,
    /// The type of the argument.
    pub type_hint: TypeHint,
    /// A short description of the argument's format, such as `int from 1` or `lines`. Usage lines
    /// show it in place of the type.
    pub format: Option<String>,
    /// The description of the argument.
    pub description: String,
    /// The default value. An argument with a default is optional.
    pub default: Option<String>,
}

/// The type of an argument. Programs receive every argument as a string.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TypeHint {
    /// Any string, including the empty string.
    #[default]
    String,
    /// A 64-bit integer.
    Int,
    /// A finite number.
    Float,
    /// `true` or `false`, in any case.
    Bool,
    /// A JSON value.
    Json,
    /// A non-empty path in the run's files, without NUL characters.
    Path,
    /// An absolute `http` or `https` URL.
    Url,
}

impl TypeHint {
    /// Returns the name of the type as written in front matter.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            TypeHint::String => "string",
            TypeHint::Int => "int",
            TypeHint::Float => "float",
            TypeHint::Bool => "bool",
            TypeHint::Json => "json",
            TypeHint::Path => "path",
            TypeHint::Url => "url",
        }
    }

    /// Returns the string that the program receives for a given argument, or `None` if the argument
    /// is invalid. Whitespace around numbers, booleans and URLs is removed, and `True` becomes
    /// `true`.
    ///
    /// ```
    /// use wattle_catalog::TypeHint;
    /// assert_eq!(TypeHint::Int.accept(" +7 ").as_deref(), Some("7"));
    /// assert_eq!(TypeHint::Bool.accept("True").as_deref(), Some("true"));
    /// assert_eq!(TypeHint::Url.accept("file:///etc/passwd"), None);
    /// ```
    #[must_use]
    pub fn accept(self, text: &str) -> Option<Cow<'_, str>> {
        let bare = text.trim();
        match self {
            TypeHint::String => Some(text.into()),
            TypeHint::Int => bare.parse::<i64>().ok().map(|n| n.to_string().into()),
            TypeHint::Float => {
                bare.parse::<f64>().ok().filter(|x| x.is_finite()).map(|_| bare.into())
            }
            TypeHint::Bool => {
                ["true", "false"].into_iter().find(|b| bare.eq_ignore_ascii_case(b)).map(Into::into)
            }
            TypeHint::Json => {
                serde_json::from_str::<serde::de::IgnoredAny>(text).ok().map(|_| text.into())
            }
            TypeHint::Path => (!text.is_empty() && !text.contains('\0')).then(|| text.into()),
            TypeHint::Url => is_web(bare).then(|| bare.into()),
        }
    }
}

/// Returns true if `text` is an absolute `http` or `https` URL. Such a URL always has a host.
pub(crate) fn is_web(text: &str) -> bool {
    url::Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "http" | "https"))
}

impl fmt::Display for TypeHint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Arg {
    /// Returns the argument's format, or the name of its type if it has no format.
    #[must_use]
    pub fn shown_format(&self) -> &str {
        self.format.as_deref().unwrap_or(self.type_hint.name())
    }
}

/// Displays the argument as in a usage line: `url: url`, `max: int from 1 = 5`, `mode: string =
/// "all"`.
impl fmt::Display for Arg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.shown_format())?;
        match (&self.default, self.type_hint) {
            (None, _) => Ok(()),
            (Some(default), TypeHint::Int | TypeHint::Float | TypeHint::Bool | TypeHint::Json) => {
                write!(f, " = {default}")
            }
            (Some(default), _) => write!(f, " = {default:?}"),
        }
    }
}
