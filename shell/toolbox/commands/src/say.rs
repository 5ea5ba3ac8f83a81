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
