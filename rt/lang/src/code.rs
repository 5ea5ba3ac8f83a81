//! Error codes: the result of a program, and the `err` of a host call.

use std::fmt;

/// An error code: 0 is success, and any other number is a kind of failure.
///
/// Codes below 16 are common to all runtimes of this kind. The others are specific to Wattle. A
/// program may return a number without a name, for which [`Code::name`] returns `None`.
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

/// The meaning of a number without a name. A program that pops value and err in the wrong order
/// returns a pointer.
const UNNAMED: &str = "not a known error code: it may be the program's own code, the address of a \
                       string that should be returned with `(ret …)`, or a value popped instead \
                       of err (err is on top of the value and is popped first)";

macro_rules! codes {
    ($($name:ident = $number:literal, $meaning:literal;)*) => {
        impl Code {
            $(#[doc = concat!("`", stringify!($number), "`: ", $meaning, ".")]
            pub const $name: Code = Code($number);)*

            /// All named codes, in ascending order.
            pub const ALL: &'static [Code] = &[$(Code::$name),*];

            /// Returns the code's name, such as `ENOENT`, or `None` for a number without a name.
            #[must_use]
            pub fn name(self) -> Option<&'static str> {
                match self.0 { $($number => Some(stringify!($name)),)* _ => None }
            }

            /// Returns a description of the code.
            #[must_use]
            pub fn meaning(self) -> &'static str {
                match self.0 { $($number => $meaning,)* _ => UNNAMED }
            }

            /// Parses the name of a code.
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
    EKIND = 20, "an entry or a value of another kind";
}

impl Code {
    /// Returns the code's number.
    #[must_use]
    pub const fn number(self) -> i32 {
        self.0
    }

    /// Returns true for [`Code::SUCCESS`].
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
