//! The error numbers of WASI preview 1, and what the run's files say with them.

use std::fmt;

use wattle_capability::files::{ErrorKind, FilesError};

macro_rules! numbers {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $words:literal;)*) => {
        impl Errno {
            $($(#[$doc])* pub const $name: Errno = Errno($number);)*

            /// What `strerror` says.
            #[must_use]
            pub fn words(self) -> &'static str {
                match self {
                    $(Errno::$name => $words,)*
                    _ => "Unknown error",
                }
            }
        }

        #[cfg(test)]
        const ALL: &[Errno] = &[$(Errno::$name),*];
    };
}

/// Why an operation failed, as a program is told it: one of the numbers of preview 1, never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Errno(u16);

numbers! {
    /// More arguments than fit.
    TOO_BIG = 1, "Argument list too long";
    /// Not allowed.
    ACCES = 2, "Permission denied";
    /// Nothing there yet.
    AGAIN = 6, "Resource temporarily unavailable";
    /// No such descriptor, or not one for this.
    BADF = 8, "Bad file descriptor";
    /// In use.
    BUSY = 10, "Device or resource busy";
    /// It is there already.
    EXIST = 20, "File exists";
    /// An address outside of the memory.
    FAULT = 21, "Bad address";
    /// Beyond a file's bound.
    FBIG = 22, "File too large";
    /// Bytes that are no UTF-8 where text is needed.
    ILSEQ = 25, "Illegal byte sequence";
    /// Ended from outside.
    INTR = 27, "Interrupted system call";
    /// An operand that has no meaning.
    INVAL = 28, "Invalid argument";
    /// The host's file system failed.
    IO = 29, "Input/output error";
    /// A folder where a file is needed.
    ISDIR = 31, "Is a directory";
    /// Links in a circle.
    LOOP = 32, "Too many levels of symbolic links";
    /// More descriptors than a program may have.
    MFILE = 33, "Too many open files";
    /// A path or name beyond its bound.
    NAMETOOLONG = 37, "File name too long";
    /// Nothing is there.
    NOENT = 44, "No such file or directory";
    /// No memory left.
    NOMEM = 48, "Out of memory";
    /// The overlay, or the disk, is full.
    NOSPC = 51, "No space left on device";
    /// The host has no such function.
    NOSYS = 52, "Function not implemented";
    /// Something else where a folder is needed.
    NOTDIR = 54, "Not a directory";
    /// The folder holds something.
    NOTEMPTY = 55, "Directory not empty";
    /// There are no sockets.
    NOTSOCK = 57, "Not a socket";
    /// The files of a run cannot do that.
    NOTSUP = 58, "Not supported";
    /// The entry is a device or a fifo of the host.
    NXIO = 60, "No such device or address";
    /// A number beyond its type.
    OVERFLOW = 61, "Value too large for data type";
    /// Not allowed to anyone.
    PERM = 63, "Operation not permitted";
    /// Nobody reads what is written.
    PIPE = 64, "Broken pipe";
    /// What is no file has no place in it.
    SPIPE = 70, "Illegal seek";
    /// Somebody else changed the base.
    STALE = 72, "Stale file handle";
}

impl Errno {
    /// The number itself.
    #[must_use]
    pub fn number(self) -> u16 {
        self.0
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}

impl std::error::Error for Errno {}

impl From<&FilesError> for Errno {
    fn from(error: &FilesError) -> Errno {
        match error.kind() {
            ErrorKind::Escape | ErrorKind::Denied => Errno::ACCES,
            ErrorKind::Special => Errno::NXIO,
            ErrorKind::LinkLoop => Errno::LOOP,
            ErrorKind::NotFound => Errno::NOENT,
            ErrorKind::NotFolder => Errno::NOTDIR,
            ErrorKind::IsFolder => Errno::ISDIR,
            ErrorKind::Exists => Errno::EXIST,
            ErrorKind::NotEmpty => Errno::NOTEMPTY,
            ErrorKind::TooLarge => Errno::FBIG,
            ErrorKind::Full => Errno::NOSPC,
            ErrorKind::BadPath => Errno::INVAL,
            ErrorKind::PathTooLong => Errno::NAMETOOLONG,
            ErrorKind::Conflict => Errno::STALE,
            _ => Errno::IO,
        }
    }
}

/// Why something was not opened or done: the number for a program, and the words for whoever reads its messages.
///
/// The words are those of `strerror`, but where the run's files refuse and say why: `read blocked: path escapes your working dir`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The number.
    pub errno: Errno,
    /// What the run's files said, where it says more than the number does.
    pub refusal: Option<String>,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.refusal {
            Some(words) => f.write_str(words),
            None => self.errno.fmt(f),
        }
    }
}

impl std::error::Error for Fault {}

impl From<Errno> for Fault {
    fn from(errno: Errno) -> Fault {
        Fault { errno, refusal: None }
    }
}

impl From<FilesError> for Fault {
    fn from(error: FilesError) -> Fault {
        let says_more = matches!(
            error.kind(),
            ErrorKind::Escape
                | ErrorKind::Denied
                | ErrorKind::Special
                | ErrorKind::TooLarge
                | ErrorKind::Full
                | ErrorKind::Conflict
                | ErrorKind::Io
        );
        Fault { errno: Errno::from(&error), refusal: says_more.then(|| error.to_string()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wattle_capability::files::{Files, OVERLAY_LIMIT};

    #[test]
    fn every_number_is_its_own() {
        for (at, one) in ALL.iter().enumerate() {
            assert!(ALL[..at].iter().all(|other| other.number() != one.number()), "{one:?}");
            assert!((1..=76).contains(&one.number()));
            assert_ne!(one.words(), "Unknown error");
        }
    }

    #[test]
    fn a_refusal_keeps_its_words() {
        let files = Files::overlay(None, OVERLAY_LIMIT);
        let fault = |path: &str| Fault::from(files.read(path).unwrap_err());
        assert_eq!(fault("../a").errno, Errno::ACCES);
        assert_eq!(fault("../a").to_string(), "read blocked: path escapes your working dir");
        assert_eq!(fault("a").to_string(), "No such file or directory");
    }
}
