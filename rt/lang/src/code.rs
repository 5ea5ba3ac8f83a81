//! Error codes: what a program leaves with, and what a host call pushes as its `err`.

use std::fmt;

/// An error code of the program interface: 0 is success, anything else names a kind of failure.
///
/// Codes below 16 belong to the field and mean the same in every runtime of this kind; the rest are Wattle's own.
/// A program may leave with a number that has no name; [`Code::name`] then gives `None`.
///
/// ```
/// use wattle_lang::Code;
/// assert_eq!(Code::ENOENT.number(), 4);
/// assert_eq!(Code::from_name("ENOENT"), Some(Code::ENOENT));
/// assert_eq!(Code(4).to_string(), "ENOENT (4)");
/// assert_eq!(Code(99).to_string(), "99");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Code(pub i32);

/// What a number without a name means. A program that pops value and err in the wrong order leaves a pointer.
const UNNAMED: &str = "no error code has this number: it is one of the program's own, the address of a string that should be put out \
                       with `(ret …)`, or a value popped in place of an err (err lies on top of the value and is popped first)";

macro_rules! codes {
    ($($name:ident = $number:literal, $meaning:literal;)*) => {
        impl Code {
            $(#[doc = concat!("`", stringify!($number), "`: ", $meaning, ".")]
            pub const $name: Code = Code($number);)*

            /// Every named code, in the order of their numbers.
            pub const ALL: &'static [Code] = &[$(Code::$name),*];

            /// The code's name, such as `ENOENT`; `None` for a number that has none.
            #[must_use]
            pub fn name(self) -> Option<&'static str> {
                match self.0 { $($number => Some(stringify!($name)),)* _ => None }
            }

            /// What the code means, in words.
            #[must_use]
            pub fn meaning(self) -> &'static str {
                match self.0 { $($number => $meaning,)* _ => UNNAMED }
            }

            /// The code of that name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Code> {
                match name { $(stringify!($name) => Some(Code::$name),)* _ => None }
            }
        }
    };
}

codes! {
    SUCCESS = 0, "success";
    ETRFM = 1, "a transformation failed";
    ENOMEM = 2, "out of memory";
    EACCESS = 3, "access denied";
    ENOENT = 4, "no such entry";
    EBOUND = 5, "out of bounds";
    EREMOTE = 6, "the remote side failed";
    EPARSE = 7, "the input could not be parsed";
    ETIME = 16, "out of time";
    EBUDGET = 17, "a budget is used up";
    EEXIST = 18, "the entry exists already";
    ECANCEL = 19, "cancelled";
}

impl Code {
    /// The number on the wire.
    #[must_use]
    pub const fn number(self) -> i32 {
        self.0
    }

    /// Whether this is [`Code::SUCCESS`].
    #[must_use]
    pub const fn is_success(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{name} ({})", self.0),
            None => write!(f, "{}", self.0),
        }
    }
}
