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

/// Names of error codes on other systems, each with the nearest equivalent here.
const OTHER_NAMES: &[(&str, Code)] = &[
    ("EINVAL", Code::EPARSE),
    ("EILSEQ", Code::EPARSE),
    ("EBADMSG", Code::EPARSE),
    ("EPROTO", Code::EPARSE),
    ("ESYNTAX", Code::EPARSE),
    ("EFORMAT", Code::EPARSE),
    ("EARG", Code::EPARSE),
    ("EINPUT", Code::EPARSE),
    ("BAD_REQUEST", Code::EPARSE),
    ("INVALID_ARGUMENT", Code::EPARSE),
    ("EFAIL", Code::ETRFM),
    ("EFAILED", Code::ETRFM),
    ("EERROR", Code::ETRFM),
    ("EGENERIC", Code::ETRFM),
    ("EUNKNOWN", Code::ETRFM),
    ("EINTERNAL", Code::ETRFM),
    ("EASSERT", Code::ETRFM),
    ("ENOSYS", Code::ETRFM),
    ("ENOTSUP", Code::ETRFM),
    ("EOPNOTSUPP", Code::ETRFM),
    ("INTERNAL", Code::ETRFM),
    ("ENOTFOUND", Code::ENOENT),
    ("ENODATA", Code::ENOENT),
    ("ENOKEY", Code::ENOENT),
    ("ENOATTR", Code::ENOENT),
    ("ENODEV", Code::ENOENT),
    ("ESRCH", Code::ENOENT),
    ("EMISSING", Code::ENOENT),
    ("EEMPTY", Code::ENOENT),
    ("NOT_FOUND", Code::ENOENT),
    ("EACCES", Code::EACCESS),
    ("EPERM", Code::EACCESS),
    ("EAUTH", Code::EACCESS),
    ("EROFS", Code::EACCESS),
    ("EDENIED", Code::EACCESS),
    ("FORBIDDEN", Code::EACCESS),
    ("UNAUTHORIZED", Code::EACCESS),
    ("PERMISSION_DENIED", Code::EACCESS),
    ("ERANGE", Code::EBOUND),
    ("EOVERFLOW", Code::EBOUND),
    ("EDOM", Code::EBOUND),
    ("EINDEX", Code::EBOUND),
    ("EBOUNDS", Code::EBOUND),
    ("E2BIG", Code::EBOUND),
    ("EFBIG", Code::EBOUND),
    ("EMSGSIZE", Code::EBOUND),
    ("OUT_OF_RANGE", Code::EBOUND),
    ("EIO", Code::EREMOTE),
    ("ECONNREFUSED", Code::EREMOTE),
    ("ECONNRESET", Code::EREMOTE),
    ("ECONNABORTED", Code::EREMOTE),
    ("EHOSTUNREACH", Code::EREMOTE),
    ("ENETUNREACH", Code::EREMOTE),
    ("ENETWORK", Code::EREMOTE),
    ("ENET", Code::EREMOTE),
    ("EHTTP", Code::EREMOTE),
    ("EPIPE", Code::EREMOTE),
    ("EAGAIN", Code::EREMOTE),
    ("UNAVAILABLE", Code::EREMOTE),
    ("BAD_GATEWAY", Code::EREMOTE),
    ("SERVICE_UNAVAILABLE", Code::EREMOTE),
    ("ETIMEDOUT", Code::ETIME),
    ("ETIMEOUT", Code::ETIME),
    ("TIMEOUT", Code::ETIME),
    ("DEADLINE_EXCEEDED", Code::ETIME),
    ("GATEWAY_TIMEOUT", Code::ETIME),
    ("EDQUOT", Code::EBUDGET),
    ("ENOSPC", Code::EBUDGET),
    ("EQUOTA", Code::EBUDGET),
    ("ELIMIT", Code::EBUDGET),
    ("EMFILE", Code::EBUDGET),
    ("TOO_MANY_REQUESTS", Code::EBUDGET),
    ("RESOURCE_EXHAUSTED", Code::EBUDGET),
    ("EEXISTS", Code::EEXIST),
    ("EDUP", Code::EEXIST),
    ("CONFLICT", Code::EEXIST),
    ("ALREADY_EXISTS", Code::EEXIST),
    ("ECANCELED", Code::ECANCEL),
    ("ECANCELLED", Code::ECANCEL),
    ("EINTR", Code::ECANCEL),
    ("CANCELLED", Code::ECANCEL),
    ("EISDIR", Code::EKIND),
    ("ENOTDIR", Code::EKIND),
    ("ETYPE", Code::EKIND),
    ("EOK", Code::SUCCESS),
];

impl Code {
    /// Returns the code for a name, ignoring case. The name may belong to a code on another system,
    /// such as `EINVAL`. Returns `None` for an unknown name.
    pub(crate) fn meant(name: &str) -> Option<Code> {
        let upper = name.to_ascii_uppercase();
        let other =
            || OTHER_NAMES.iter().find(|(known, _)| *known == upper).map(|(_, nearest)| *nearest);
        Code::from_name(&upper).or_else(other)
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
