//! What the front matter says of a program.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use serde::Deserialize;

use crate::Example;

/// What a program's front matter says, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Meta {
    /// What the program does: one sentence for the model.
    pub description: String,
    /// The arguments in the order they are given; those with a default come last.
    pub args: Vec<Arg>,
    /// What the program puts out, in words.
    pub returns: Option<String>,
    /// The capabilities that the body may name beside `sys`; `None` where the author did not say.
    /// [`Entry::check_uses`](crate::Entry::check_uses) holds them against the body.
    pub uses: Option<Vec<String>>,
    /// The author's own version of the program.
    pub version: Option<String>,
    /// The built-in program whose place this one takes: its own name. Without it, a program of a folder that has the name of a
    /// built-in one is left out.
    pub replaces: Option<String>,
    /// Words to find the program by.
    pub tags: Vec<String>,
    /// Whether no other call may run beside one of this program.
    pub exclusive: bool,
    /// Whether a call's results stay out of the conversation.
    pub silent: bool,
    /// The longest that one call may take; never longer than the runtime allows. From `timeout_ms`.
    pub timeout: Option<Duration>,
    /// Calls with what they give, which run as tests and show in the manual.
    pub examples: Vec<Example>,
}

/// One argument of a program.
#[derive(Clone, Debug, PartialEq)]
pub struct Arg {
    /// The name that usage lines and errors show.
    pub name: String,
    /// What texts it takes.
    pub type_hint: TypeHint,
    /// What it means.
    pub description: String,
    /// The text that stands for it where it is left out; it makes the argument optional.
    pub default: Option<String>,
}

/// What texts an argument takes. Programs get every argument as text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TypeHint {
    /// Any text, the empty one too.
    #[default]
    String,
    /// An integer of 64 bits.
    Int,
    /// A finite number.
    Float,
    /// `true` or `false`, in any case.
    Bool,
    /// A JSON text.
    Json,
    /// A path in the run's files: not empty, without NUL.
    Path,
    /// An absolute URL of `http` or `https`.
    Url,
}

impl TypeHint {
    /// The word for it in front matter.
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

    /// The text that the program gets for a given one, `None` where it does not fit. Blanks around a value that has none
    /// of its own are dropped, and `True` becomes `true`.
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
            TypeHint::Float => bare.parse::<f64>().ok().filter(|x| x.is_finite()).map(|_| bare.into()),
            TypeHint::Bool => ["true", "false"].into_iter().find(|b| bare.eq_ignore_ascii_case(b)).map(Into::into),
            TypeHint::Json => serde_json::from_str::<serde::de::IgnoredAny>(text).ok().map(|_| text.into()),
            TypeHint::Path => (!text.is_empty() && !text.contains('\0')).then(|| text.into()),
            TypeHint::Url => is_web(bare).then(|| bare.into()),
        }
    }
}

/// Whether the text is an absolute URL of `http` or `https`. Such a URL always has a host.
pub(crate) fn is_web(text: &str) -> bool {
    url::Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "http" | "https"))
}

impl fmt::Display for TypeHint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Shows the argument as a usage line does: `url: url`, `limit: int = 100`, `mode: string = "all"`.
impl fmt::Display for Arg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.type_hint)?;
        match (&self.default, self.type_hint) {
            (None, _) => Ok(()),
            (Some(default), TypeHint::Int | TypeHint::Float | TypeHint::Bool | TypeHint::Json) => {
                write!(f, " = {default}")
            }
            (Some(default), _) => write!(f, " = {default:?}"),
        }
    }
}
