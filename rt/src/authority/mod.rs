//! Authority: the resources that a compiled program can access, determined without running it.
//!
//! This is an abstract interpretation of the module's binary. A value is an address in the static
//! data, an argument of the program, a string composed of static strings and arguments, or unknown.
//! The result is sound, which means that it omits no call that the program can make:
//!
//! - Where branches meet, the values of both branches are kept.
//! - If memory may have been overwritten, its content is unknown. If the walk over the module takes
//!   too long, everything is unknown.
//! - A function whose reference is taken is assumed to be called with any arguments.
//!
//! Unreachable code is ignored.

mod module;
mod value;
mod walk;

use std::fmt;

use crate::{Names, Signature, Target, Touch};

/// The resources that a program can access: every host function call that it may make, with
/// everything known about the arguments.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use wattle_rt::{Failure, Limits, Run, Runtime};
/// wattle_rt::capability! {
///     /// Accesses the network.
///     pub const NET: "net" 1;
///     /// Fetches
///     #[example = "(drop (call $net.get \"https://example.com/\")) (i32.const 0)"]
///     fn get(url: url) -> n: int = get;
/// }
/// fn get(_run: &mut Run, url: &str) -> Result<i32, Failure> { Ok(url.len() as i32) }
///
/// let runtime = Runtime::new(&[NET], Limits::default()).unwrap();
/// let source = "(drop (call $net.get \"https://example.com/\")) (i32.const 0)";
/// let program = runtime.prepare(source).await.unwrap();
/// let uses = program.authority().uses();
/// assert_eq!(uses[0].function.name, "get");
/// assert_eq!(uses[0].arguments[0].to_string(), "https://example.com/");
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Authority {
    uses: Vec<Use>,
}

/// A call to a host function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Use {
    /// The function.
    pub function: Signature,
    /// The arguments, one for each parameter.
    pub arguments: Vec<Argument>,
    /// The offset of the call in the module's binary, or `None` if the call can be made through a
    /// table.
    pub offset: Option<usize>,
}

/// The known values of a call's argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Argument {
    /// A string from this list. If the argument is not one of these strings, it is not a valid
    /// string, and the call fails.
    OneOf(Vec<Text>),
    /// Any value.
    Unknown,
}

/// A string that may be only partly known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Text(Vec<Part>);

/// A part of a string.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Known characters.
    Literal(String),
    /// The program's argument with this index, counted from 0.
    Argument(u32),
    /// Any string, including the empty string.
    Unknown,
}

impl Authority {
    /// Returns the authority of a module whose static data ends before `heap`. `imports` lists the
    /// host functions that the module may import.
    ///
    /// If the walk is aborted, the authority includes every import, with any arguments.
    pub(crate) fn of(binary: &[u8], imports: &[Signature], heap: u32) -> Authority {
        let uses =
            module::Module::read(binary, heap).and_then(|module| walk::uses(&module, imports));
        let anything = |function: &Signature| Use::unknown(*function);
        Authority { uses: uses.unwrap_or_else(|| imports.iter().map(anything).collect()) }
    }

    /// Returns the calls that the program may make, in the order in which they occur in its binary.
    #[must_use]
    pub fn uses(&self) -> &[Use] {
        &self.uses
    }
}

impl Use {
    fn unknown(function: Signature) -> Use {
        Use { function, arguments: vec![Argument::Unknown; function.params.len()], offset: None }
    }

    /// Returns the resources outside the program that the call may access.
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

/// A resource outside the program that a call may access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach<'a> {
    /// The resource that this argument names.
    Named(Target, &'a Argument),
    /// Any resource of these kinds. The names of the resources are inside an argument and are
    /// unknown.
    Any(&'static [Target]),
    /// A resource that every call to the function accesses.
    Always(Touch),
}

impl Text {
    /// Creates a string from its parts. Adjacent literals are joined, and so are adjacent unknown
    /// parts.
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

    /// Returns the parts in order. The empty string has none.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        &self.0
    }

    /// Returns the whole string if all of it is known.
    #[must_use]
    pub fn whole(&self) -> Option<&str> {
        match self.0.as_slice() {
            [] => Some(""),
            [Part::Literal(text)] => Some(text),
            _ => None,
        }
    }

    /// Returns the known prefix of the string.
    #[must_use]
    pub fn prefix(&self) -> &str {
        match self.0.first() {
            Some(Part::Literal(text)) => text,
            _ => "",
        }
    }

    /// Replaces each argument part with the value of that argument in `args`. Returns `None` if the
    /// string contains an argument that is missing from `args`.
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

/// Shows unknown parts in braces: `https://example.com/{argument 0}`, `notes/{?}`.
impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|part| match part {
            Part::Literal(text) => f.write_str(text),
            Part::Argument(n) => write!(f, "{{argument {n}}}"),
            Part::Unknown => f.write_str("{?}"),
        })
    }
}

/// Shows the strings separated by `or`, and an unknown argument as `{?}`.
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
