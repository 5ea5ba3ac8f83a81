//! Reads the inputs of commands: prompts, programs and stdin.

use std::io::Read;
use std::path::Path;
use std::time::Duration;

use wattle_agent::host::rt::decode_text;

use crate::fault::Fault;
use crate::{output, stdin};

/// Maximum size of a prompt, a program or a model's answer, in bytes.
const LARGEST: u64 = 16 << 20;

/// Maximum time to wait for the first bytes of a pipe without a notice.
const QUIET: Duration = Duration::from_secs(1);

/// Returns the prompt without surrounding whitespace: `given`, or the content of stdin if `given`
/// is `-`.
///
/// # Errors
/// If the prompt is empty, or stdin cannot be read, is too large or is not UTF-8.
pub(crate) fn prompt(given: &str) -> Result<String, Fault> {
    let text = match given {
        "-" => utf8(stdin()?, "stdin")?,
        text => text.to_owned(),
    };
    match text.trim() {
        "" => Err(Fault::usage("the prompt is empty").hint("add the request: wattle run \"…\"")),
        text => Ok(text.to_owned()),
    }
}

/// Returns the prompt, followed by the text of stdin if stdin is a pipe or a file and `adds_stdin`
/// is true. Prints a notice if the pipe is open and sends nothing.
///
/// # Errors
/// The same as for [`prompt`].
pub(crate) fn request(given: &str, adds_stdin: bool) -> Result<String, Fault> {
    let prompt = prompt(given)?;
    if given == "-" || !adds_stdin || !stdin::is_pipe_or_file() {
        return Ok(prompt);
    }
    if !stdin::has_input(QUIET) {
        output::aside("waiting for the end of stdin; `--no-stdin` runs without it");
    }
    let text = utf8(stdin()?, "stdin")?;
    let text = text.trim_end();
    Ok(if text.is_empty() { prompt } else { format!("{prompt}\n\n<stdin>\n{text}\n</stdin>") })
}

/// Reads a file as text, or stdin if the path is `-`.
///
/// # Errors
/// If the input cannot be read, is too large or is not UTF-8.
pub(crate) fn text(path: &Path) -> Result<String, Fault> {
    if path == Path::new("-") {
        return utf8(stdin()?, "stdin");
    }
    let shown = format!("`{}`", path.display());
    let failed = |error: std::io::Error| Fault::usage(format!("failed to read {shown}: {error}"));
    utf8(bounded(std::fs::File::open(path).map_err(failed)?, &shown)?, &shown)
}

/// Reads all of stdin.
///
/// # Errors
/// If stdin cannot be read or is too large.
pub(crate) fn stdin() -> Result<Vec<u8>, Fault> {
    bounded(&mut *stdin::lock(), "stdin")
}

fn bounded(from: impl Read, shown: &str) -> Result<Vec<u8>, Fault> {
    let mut bytes = Vec::new();
    let read = from.take(LARGEST + 1).read_to_end(&mut bytes);
    read.map_err(|error| Fault::usage(format!("failed to read {shown}: {error}")))?;
    if bytes.len() as u64 > LARGEST {
        return Err(Fault::usage(format!("{shown} is larger than {} MiB", LARGEST >> 20)));
    }
    Ok(bytes)
}

fn utf8(bytes: Vec<u8>, shown: &str) -> Result<String, Fault> {
    decode_text(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Fault::usage(format!("{shown} is not UTF-8 (byte {at})")).hint("save it as UTF-8")
    })
}
