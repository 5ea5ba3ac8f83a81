//! Error codes. A program returns one, and a host call that can fail returns one as `err`.

use std::fmt;

/// An error code. 0 is success, and any other number is a kind of failure.
///
/// Codes below 16 are shared with similar runtimes. The others are specific to Wattle. A program
/// may return a number without a name, for which [`Code::name`] returns `None`.
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

/// The description of an error code without a name. The number may be a pointer, for example, if
/// the program pops the value and `err` in the wrong order.
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

            /// Returns the code with this name, or `None` if the name is unknown.
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

/// The error codes, each with the names of codes on other systems whose nearest equivalent it is.
const OTHER_NAMES: &[(Code, &[&str])] = &[
    (
        Code::EPARSE,
        &[
            "EINVAL",
            "EILSEQ",
            "EBADMSG",
            "EPROTO",
            "ESYNTAX",
            "EFORMAT",
            "EARG",
            "EINPUT",
            "BAD_REQUEST",
            "INVALID_ARGUMENT",
        ],
    ),
    (
        Code::ETRFM,
        &[
            "EFAIL",
            "EFAILED",
            "EERROR",
            "EGENERIC",
            "EUNKNOWN",
            "EINTERNAL",
            "EASSERT",
            "ENOSYS",
            "ENOTSUP",
            "EOPNOTSUPP",
            "INTERNAL",
        ],
    ),
    (
        Code::ENOENT,
        &[
            "ENOTFOUND",
            "ENODATA",
            "ENOKEY",
            "ENOATTR",
            "ENODEV",
            "ESRCH",
            "EMISSING",
            "EEMPTY",
            "NOT_FOUND",
        ],
    ),
    (
        Code::EACCESS,
        &[
            "EACCES",
            "EPERM",
            "EAUTH",
            "EROFS",
            "EDENIED",
            "FORBIDDEN",
            "UNAUTHORIZED",
            "PERMISSION_DENIED",
        ],
    ),
    (
        Code::EBOUND,
        &[
            "ERANGE",
            "EOVERFLOW",
            "EDOM",
            "EINDEX",
            "EBOUNDS",
            "E2BIG",
            "EFBIG",
            "EMSGSIZE",
            "OUT_OF_RANGE",
        ],
    ),
    (
        Code::EREMOTE,
        &[
            "EIO",
            "ECONNREFUSED",
            "ECONNRESET",
            "ECONNABORTED",
            "EHOSTUNREACH",
            "ENETUNREACH",
            "ENETWORK",
            "ENET",
            "EHTTP",
            "EPIPE",
            "EAGAIN",
            "UNAVAILABLE",
            "BAD_GATEWAY",
            "SERVICE_UNAVAILABLE",
        ],
    ),
    (Code::ETIME, &["ETIMEDOUT", "ETIMEOUT", "TIMEOUT", "DEADLINE_EXCEEDED", "GATEWAY_TIMEOUT"]),
    (
        Code::EBUDGET,
        &[
            "EDQUOT",
            "ENOSPC",
            "EQUOTA",
            "ELIMIT",
            "EMFILE",
            "TOO_MANY_REQUESTS",
            "RESOURCE_EXHAUSTED",
        ],
    ),
    (Code::EEXIST, &["EEXISTS", "EDUP", "CONFLICT", "ALREADY_EXISTS"]),
    (Code::ECANCEL, &["ECANCELED", "ECANCELLED", "EINTR", "CANCELLED"]),
    (Code::EKIND, &["EISDIR", "ENOTDIR", "ETYPE"]),
    (Code::SUCCESS, &["EOK"]),
];

impl Code {
    /// Returns the code for a name, ignoring case. The name may belong to a code on another system,
    /// such as `EINVAL`. Returns `None` for an unknown name.
    pub(crate) fn meant(name: &str) -> Option<Code> {
        let upper = name.to_ascii_uppercase();
        let row = || OTHER_NAMES.iter().find(|(_, names)| names.contains(&upper.as_str()));
        Code::from_name(&upper).or_else(|| Some(row()?.0))
    }

    /// Returns the code's number.
    #[must_use]
    pub const fn number(self) -> i32 {
        self.0
    }

    /// Returns true if this is [`Code::SUCCESS`].
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
