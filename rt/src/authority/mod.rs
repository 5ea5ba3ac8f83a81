//! Authority: what a compiled program can touch, found without running it.
//!
//! The module's binary is walked with values in place of numbers: an address of static data, an argument of the program, a
//! text joined of such parts, or anything at all. What is said to be known is known for certain: where branches meet both values
//! stand, where memory may have been overwritten or the walk grows too long nothing is known, and a function that a table holds may be
//! called with anything. What can never run is left out.

mod module;
mod value;
mod walk;

use std::fmt;

use crate::{Names, Signature, Target, Touch};

/// What a program can touch: every call of a host function that it may make, with what is known of the arguments.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use wattle_rt::{Failure, Limits, Run, Runtime};
/// wattle_rt::capability! {
///     /// Reaches out.
///     pub const NET: "net" 1;
///     /// Fetches
///     #[example = "(drop (call $net.get \"https://example.com/\")) (i32.const 0)"]
///     fn get(url: url) -> n: int = get;
/// }
/// fn get(_run: &mut Run, url: &str) -> Result<i32, Failure> { Ok(url.len() as i32) }
///
/// let runtime = Runtime::new(&[NET], Limits::default()).unwrap();
/// let program = runtime.prepare("(drop (call $net.get \"https://example.com/\")) (i32.const 0)").await.unwrap();
/// let uses = program.authority().uses();
/// assert_eq!(uses[0].function.name, "get");
/// assert_eq!(uses[0].arguments[0].to_string(), "https://example.com/");
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Authority {
    uses: Vec<Use>,
}

/// A call of a host function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Use {
    /// The function.
    pub function: Signature,
    /// What is known of its arguments, one for each parameter.
    pub arguments: Vec<Argument>,
    /// Where in the module's binary the call stands; `None` where it can be made through a table, from anywhere.
    pub offset: Option<usize>,
}

/// What is known of one argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Argument {
    /// It is one of these texts, or no text at all, with which the call fails.
    OneOf(Vec<Text>),
    /// It may be anything.
    Unknown,
}

/// A text as far as it is known, from its beginning to its end.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Text(Vec<Part>);

/// One part of a text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// These characters.
    Literal(String),
    /// What the program was started with as that argument, counted from 0.
    Argument(u32),
    /// Anything, also nothing.
    Unknown,
}

impl Authority {
    /// The authority of a module whose static data ends before `heap`; `imports` are the host functions that it may import.
    ///
    /// A module that cannot be followed may use everything that it imports, with any arguments.
    pub(crate) fn of(binary: &[u8], imports: &[Signature], heap: u32) -> Authority {
        let uses = module::Module::read(binary, heap).and_then(|module| walk::uses(&module, imports));
        let anything = |function: &Signature| Use::unknown(*function);
        Authority { uses: uses.unwrap_or_else(|| imports.iter().map(anything).collect()) }
    }

    /// The calls that the program may make, in the order of its binary.
    #[must_use]
    pub fn uses(&self) -> &[Use] {
        &self.uses
    }
}

impl Use {
    fn unknown(function: Signature) -> Use {
        Use { function, arguments: vec![Argument::Unknown; function.params.len()], offset: None }
    }

    /// What the call may touch outside the program; nothing where the function does not reach out.
    pub fn reaches(&self) -> impl Iterator<Item = Reach<'_>> {
        let named = self.function.params.iter().zip(&self.arguments);
        let named = named.filter_map(|(param, argument)| match param.names {
            Names::Nothing => None,
            Names::Itself(target) => Some(Reach::Named(target, argument)),
            Names::Inside(targets) => Some(Reach::Any(targets)),
        });
        named.chain(self.function.touches.iter().copied().map(Reach::Always))
    }
}

/// Something outside the program that a call may touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach<'a> {
    /// What that argument names.
    Named(Target, &'a Argument),
    /// Anything of these kinds, or nothing: the names stand inside an argument.
    Any(&'static [Target]),
    /// The same at every call.
    Always(Touch),
}

impl Text {
    /// A text of those parts; neighbours of one kind become one part.
    pub fn new(parts: impl IntoIterator<Item = Part>) -> Text {
        let mut joined: Vec<Part> = Vec::new();
        for part in parts {
            match (joined.last_mut(), part) {
                (_, Part::Literal(text)) if text.is_empty() => {}
                (Some(Part::Literal(before)), Part::Literal(text)) => before.push_str(&text),
                (Some(Part::Unknown), Part::Unknown) => {}
                (_, part) => joined.push(part),
            }
        }
        Text(joined)
    }

    /// Its parts, from the beginning on; none for the empty text.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        &self.0
    }

    /// The whole text, where all of it is known.
    #[must_use]
    pub fn whole(&self) -> Option<&str> {
        match self.0.as_slice() {
            [] => Some(""),
            [Part::Literal(text)] => Some(text),
            _ => None,
        }
    }

    /// What it begins with for certain.
    #[must_use]
    pub fn prefix(&self) -> &str {
        match self.0.first() {
            Some(Part::Literal(text)) => text,
            _ => "",
        }
    }

    /// The text in a run with those arguments; `None` where one is missing: then there is no such text.
    #[must_use]
    pub fn with(&self, args: &[String]) -> Option<Text> {
        let parts: Option<Vec<Part>> = self
            .0
            .iter()
            .map(|part| match part {
                Part::Argument(n) => args.get(*n as usize).cloned().map(Part::Literal),
                part => Some(part.clone()),
            })
            .collect();
        parts.map(Text::new)
    }
}

/// Shows what is not known in braces: `https://example.com/{argument 0}`, `notes/{?}`.
impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|part| match part {
            Part::Literal(text) => f.write_str(text),
            Part::Argument(n) => write!(f, "{{argument {n}}}"),
            Part::Unknown => f.write_str("{?}"),
        })
    }
}

/// Shows the texts with `or` between them, and what is unknown as `{?}`.
impl fmt::Display for Argument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Argument::Unknown => f.write_str("{?}"),
            Argument::OneOf(texts) => texts.iter().enumerate().try_for_each(|(at, text)| {
                f.write_str(if at == 0 { "" } else { " or " })?;
                text.fmt(f)
            }),
        }
    }
}
