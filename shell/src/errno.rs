//! Error numbers of WASI preview 1 with their messages, and the conversion of file errors to
//! error numbers.

use std::fmt;

use wattle_capability::files::{ErrorKind, FilesError};

macro_rules! numbers {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $words:literal;)*) => {
        impl Errno {
            $($(#[$doc])* pub const $name: Errno = Errno($number);)*

            /// Returns the error message, in the wording of `strerror`.
            #[must_use]
            pub fn message(self) -> &'static str {
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

/// An error number of WASI preview 1. It is never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Errno(u16);

numbers! {
    /// The arguments exceed the size limit.
    TOO_BIG = 1, "Argument list too long";
    /// Access is denied.
    ACCES = 2, "Permission denied";
    /// No data is available yet.
    AGAIN = 6, "Resource temporarily unavailable";
    /// The descriptor is not open, or does not support the operation.
    BADF = 8, "Bad file descriptor";
    /// The resource is in use.
    BUSY = 10, "Device or resource busy";
    /// A file or folder already exists at the path.
    EXIST = 20, "File exists";
    /// The address is outside the guest's memory.
    FAULT = 21, "Bad address";
    /// The file exceeds its size limit.
    FBIG = 22, "File too large";
    /// The bytes are not valid UTF-8.
    ILSEQ = 25, "Illegal byte sequence";
    /// The call was interrupted.
    INTR = 27, "Interrupted system call";
    /// The argument is invalid.
    INVAL = 28, "Invalid argument";
    /// The host's file system failed.
    IO = 29, "Input/output error";
    /// The path names a folder, but the operation needs a file.
    ISDIR = 31, "Is a directory";
    /// The symbolic links form a loop.
    LOOP = 32, "Too many levels of symbolic links";
    /// The program has its maximum number of descriptors open.
    MFILE = 33, "Too many open files";
    /// The path or name exceeds its length limit.
    NAMETOOLONG = 37, "File name too long";
    /// No file or folder exists at the path.
    NOENT = 44, "No such file or directory";
    /// The memory limit is reached.
    NOMEM = 48, "Out of memory";
    /// The overlay or the disk is full.
    NOSPC = 51, "No space left on device";
    /// The host does not implement the function.
    NOSYS = 52, "Function not implemented";
    /// The path does not name a folder, but the operation needs one.
    NOTDIR = 54, "Not a directory";
    /// The folder is not empty.
    NOTEMPTY = 55, "Directory not empty";
    /// The descriptor is not a socket. The host has no sockets.
    NOTSOCK = 57, "Not a socket";
    /// The run's files do not support the operation.
    NOTSUP = 58, "Not supported";
    /// The path names a device or a fifo of the host.
    NXIO = 60, "No such device or address";
    /// The value does not fit its type.
    OVERFLOW = 61, "Value too large for data type";
    /// The operation is never permitted.
    PERM = 63, "Operation not permitted";
    /// The pipe has no reader.
    PIPE = 64, "Broken pipe";
    /// The stream is not a file, so it has no position.
    SPIPE = 70, "Illegal seek";
    /// Another process changed the overlay's base folder after the run had read it.
    STALE = 72, "Stale file handle";
}

impl Errno {
    /// Returns the WASI preview 1 error number.
    #[must_use]
    pub fn number(self) -> u16 {
        self.0
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
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

/// An error from a file operation: an error number for the program, and a message for the user.
///
/// The message is the `strerror` text, unless the file layer returned a more specific message, such
/// as `/etc/shadow is outside the run's folder; …`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The error number.
    pub errno: Errno,
    /// The file layer's message, if it is more specific than the error number.
    pub refusal: Option<String>,
    /// The file layer's message without the path at its start.
    without_path: Option<String>,
}

impl Fault {
    /// Returns the error message, preceded by `path`, which is the path as the user wrote it.
    #[must_use]
    pub fn about(&self, path: &str) -> String {
        match &self.without_path {
            Some(rest) => format!("{path} {rest}"),
            None => format!("{path}: {self}"),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.refusal {
            Some(message) => f.write_str(message),
            None => self.errno.fmt(f),
        }
    }
}

impl std::error::Error for Fault {}

impl From<Errno> for Fault {
    fn from(errno: Errno) -> Fault {
        Fault { errno, refusal: None, without_path: None }
    }
}

impl From<FilesError> for Fault {
    fn from(error: FilesError) -> Fault {
        let has_reason = matches!(
            error.kind(),
            ErrorKind::Escape
                | ErrorKind::Denied
                | ErrorKind::Special
                | ErrorKind::TooLarge
                | ErrorKind::Full
                | ErrorKind::Conflict
                | ErrorKind::Io
        );
        Fault {
            errno: Errno::from(&error),
            refusal: has_reason.then(|| error.to_string()),
            without_path: error.without_path().map(str::to_owned),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wattle_capability::files::{Files, OVERLAY_LIMIT};

    #[test]
    fn error_numbers_are_unique() {
        for (index, errno) in ALL.iter().enumerate() {
            assert!(ALL[..index].iter().all(|other| other.number() != errno.number()), "{errno:?}");
            assert!((1..=76).contains(&errno.number()));
            assert_ne!(errno.message(), "Unknown error");
        }
    }

    #[test]
    fn a_refusal_keeps_its_message() {
        let files = Files::overlay(None, OVERLAY_LIMIT);
        let fault = |path: &str| Fault::from(files.read(path).unwrap_err());
        assert_eq!(fault("../a").errno, Errno::ACCES);
        let outside = "is outside the run's folder; only files in it can be read";
        assert_eq!(fault("../a").to_string(), format!("../a {outside}"));
        assert_eq!(fault("/../a").about("../../a"), format!("../../a {outside}"));
        assert_eq!(fault("a").to_string(), "No such file or directory");
        assert_eq!(fault("/d/a").about("a"), "a: No such file or directory");
    }
}
