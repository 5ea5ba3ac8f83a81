//! Messages and standard streams of the commands.

use std::io::Write as _;

/// Flushes standard output, then prints `NAME: text` to standard error.
pub(crate) fn say(name: &str, text: impl std::fmt::Display) {
    _ = std::io::stdout().flush();
    _ = writeln!(std::io::stderr(), "{name}: {text}");
}

/// Prints a line to standard output. A closed pipe is not an error.
pub(crate) fn line(text: impl std::fmt::Display) {
    _ = writeln!(std::io::stdout(), "{text}");
}

/// Prints a line to standard error.
pub(crate) fn note(text: impl std::fmt::Display) {
    _ = writeln!(std::io::stderr(), "{text}");
}

/// Returns the message of a system error, without the error number that Rust appends.
pub(crate) fn words(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(end) => text.get(..end).unwrap_or_default().to_owned(),
        None => text,
    }
}

/// Prints an error about a file to standard error.
pub(crate) fn about(name: &str, file: &str, error: &std::io::Error) {
    say(name, format_args!("{file}: {}", words(error)));
}

/// The reason why a command failed.
pub(crate) struct Failure(String);

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<String> for Failure {
    fn from(why: String) -> Failure {
        Failure(why)
    }
}

impl From<&str> for Failure {
    fn from(why: &str) -> Failure {
        Failure(why.to_owned())
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        Failure(words(&error))
    }
}

impl From<zip::result::ZipError> for Failure {
    fn from(error: zip::result::ZipError) -> Failure {
        Failure(error.to_string())
    }
}

/// Adds to an error what it is about, such as the path of a file.
pub(crate) trait About<T> {
    fn about(self, what: impl std::fmt::Display) -> Result<T, Failure>;
}

impl<T, E: Into<Failure>> About<T> for Result<T, E> {
    fn about(self, what: impl std::fmt::Display) -> Result<T, Failure> {
        self.map_err(|error| Failure(format!("{what}: {}", error.into())))
    }
}

/// Returns the exit status of a command. If it failed, prints the reason and returns `failed`.
pub(crate) fn ended(name: &str, failed: i32, done: Result<i32, Failure>) -> i32 {
    done.unwrap_or_else(|why| {
        say(name, why);
        failed
    })
}

/// Returns the names in a folder, sorted.
///
/// # Errors
///
/// If the folder cannot be read.
pub(crate) fn names(folder: &str) -> std::io::Result<Vec<String>> {
    let entries = std::fs::read_dir(folder)?;
    let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    let mut names = names.collect::<std::io::Result<Vec<_>>>()?;
    names.sort();
    Ok(names)
}

/// Opens a file; `-` is standard input.
///
/// # Errors
///
/// If the file cannot be opened, or is a directory.
pub(crate) fn open(file: &str) -> std::io::Result<Box<dyn std::io::Read>> {
    if file == "-" || file == "/dev/stdin" {
        return Ok(Box::new(std::io::stdin().lock()));
    }
    if std::fs::metadata(file)?.is_dir() {
        return Err(std::io::Error::other("Is a directory"));
    }
    Ok(Box::new(std::fs::File::open(file)?))
}

/// Reads a whole file; `-` is standard input.
///
/// # Errors
///
/// If the file cannot be opened or read.
pub(crate) fn whole(file: &str) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(file)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns standard output with a buffer of 64 KiB.
pub(crate) fn out() -> std::io::BufWriter<std::io::StdoutLock<'static>> {
    std::io::BufWriter::with_capacity(1 << 16, std::io::stdout().lock())
}
