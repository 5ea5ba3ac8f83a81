//! The standard streams. All output of the binary passes through here: data goes to stdout,
//! everything else to stderr.
//!
//! On a terminal, control characters in all output are made [`visible()`] first. A test checks that
//! no other code writes to the streams. Files and pipes receive the bytes unchanged.

pub(crate) mod highlight;
pub(crate) mod markdown;
mod screen;
mod transient;
mod visible;
pub(crate) mod width;

use std::hash::{BuildHasher, RandomState};
use std::io::{ErrorKind, IsTerminal, Write, stderr, stdout};
use std::sync::LazyLock;

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde::Serialize;
use wattle_agent::host::rt::{Diagnostic, Role, Severity};
use wattle_agent::model::Mask;

use crate::fault::Fault;

pub(crate) use screen::Screen;
pub(crate) use transient::{clear_transient, hold_transient, is_live, transient};
pub(crate) use visible::{Visible, visible};

/// The style of a failure.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
/// The style of a success.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// The style of a warning.
pub(crate) const WARN: Style = AnsiColor::Yellow.on_default();
/// The style of a name or a heading.
pub(crate) const NAME: Style = AnsiColor::Cyan.on_default();
/// The style of secondary text.
pub(crate) const DIM: Style = Style::new().dimmed();

/// The placeholder for the escape character in our own styles. The placeholder is replaced with the
/// escape character when a line is written. It contains random numbers, so that no other output can
/// contain it. A real escape character in a line is therefore never part of our own styles.
static ESCAPE: LazyLock<String> = LazyLock::new(|| {
    let drawn = || RandomState::new().hash_one(std::process::id());
    format!("\u{f8ff}{:016x}{:016x}", drawn(), drawn())
});

/// The mask that hides keys and secrets in what only the operator reads: logs, telemetry and
/// recordings. It has the secrets of all tenants.
static WHOLE_MASK: LazyLock<Mask> = LazyLock::new(Mask::default);

/// The part of the mask for the traces and the store of the configured tenant. It has the operator's
/// keys, and the secrets that the operator may use.
static MASK: LazyLock<Mask> = LazyLock::new(|| WHOLE_MASK.part());

/// Returns the mask for everything that the process records for the configured tenant.
pub(crate) fn mask() -> &'static Mask {
    &MASK
}

/// Returns a duplicate of stdout's file descriptor. If stdout is a terminal, another program can
/// read input from the duplicate.
///
/// # Errors
/// If stdout is closed.
pub(crate) fn terminal() -> std::io::Result<std::os::fd::OwnedFd> {
    std::os::fd::AsFd::as_fd(&std::io::stdout()).try_clone_to_owned()
}

/// Writes data to stdout. On a terminal, control characters are made visible.
///
/// # Errors
/// [`Fault::ReaderGone`] if stdout is closed, and another fault if writing to it fails.
pub(crate) fn data(bytes: &[u8]) -> Result<(), Fault> {
    if !stdout().is_terminal() {
        return to_stdout(bytes);
    }
    let mut filter = Visible::default();
    let shown = filter.feed(bytes) + &filter.finish();
    to_stdout(shown.as_bytes())
}

/// Writes a string to stdout. Adds a final newline if there is none.
///
/// # Errors
/// The same as for [`data`].
pub(crate) fn text(text: &str) -> Result<(), Fault> {
    if text.ends_with('\n') { data(text.as_bytes()) } else { data(format!("{text}\n").as_bytes()) }
}

/// Writes a JSON document to stdout, on one line.
///
/// # Errors
/// The same as for [`data`].
pub(crate) fn json(document: &(impl Serialize + ?Sized)) -> Result<(), Fault> {
    let document = serde_json::to_string(document).map_err(Fault::failed)?;
    let shown = if stdout().is_terminal() { visible::visible_json(&document) } else { document };
    to_stdout(format!("{shown}\n").as_bytes())
}

/// Writes a styled line to stdout. Styles are omitted if stdout is not a terminal or `NO_COLOR` is
/// set.
///
/// # Errors
/// The same as for [`data`].
pub(crate) fn styled(line: &str) -> Result<(), Fault> {
    let end = if line.ends_with('\n') { "" } else { "\n" };
    let shown = shown(line, stdout().is_terminal(), AutoStream::choice(&stdout()));
    to_stdout(format!("{shown}{end}").as_bytes())
}

/// Writes a styled line to stderr. Styles are omitted if stderr is not a terminal or `NO_COLOR` is
/// set.
pub(crate) fn note(line: &str) {
    let shown = shown(line, stderr().is_terminal(), AutoStream::choice(&stderr()));
    to_stderr(format!("{shown}\n").as_bytes());
}

/// Writes a line of secondary text to stderr.
pub(crate) fn aside(text: &str) {
    note(&paint(DIM, text));
}

/// Clears the screen, if stdout is a terminal that can lay out text.
pub(crate) fn clear_screen() {
    if is_screen() {
        // A closed stdout is reported by the next output.
        let _ = to_stdout(b"\x1b[H\x1b[2J\x1b[3J");
    }
}

/// Asks the terminal to copy a text to the clipboard. Returns false if stdout is not a terminal that
/// can lay out text. Many terminals ignore the request if the text is long.
pub(crate) fn copy(text: &str) -> bool {
    let encoded = BASE64_STANDARD.encode(text);
    is_screen() && to_stdout(format!("\x1b]52;c;{encoded}\x07").as_bytes()).is_ok()
}

/// Rings the terminal's bell, if stderr is a terminal.
pub(crate) fn bell() {
    if stderr().is_terminal() {
        to_stderr_now(b"\x07");
    }
}

/// Writes a warning to stderr.
pub(crate) fn warn(message: &str) {
    note(&format!("{} {}", paint(WARN, "warning:"), visible(message)));
}

/// Reports a fault on stderr.
pub(crate) fn fault(fault: &Fault) {
    if let Fault::Reported { .. } = fault {
        note(&format!("{} {}", paint(BAD, "error:"), visible(&fault.to_string())));
    }
}

/// Applies a style to a string, for [`styled`] or [`note`].
pub(crate) fn paint(style: Style, text: &str) -> String {
    let own = |styles: String| styles.replace('\u{1b}', &ESCAPE);
    format!("{}{text}{}", own(style.render().to_string()), own(style.render_reset().to_string()))
}

/// Turns a string into a link, for [`styled`] or [`note`]. Returns the string unchanged if the
/// address could control the terminal, or is not a web or mail address.
pub(crate) fn link(address: &str, text: &str) -> String {
    let is_known =
        ["https://", "http://", "mailto:"].iter().any(|scheme| address.starts_with(scheme));
    if !is_known || !address.bytes().all(|byte| byte.is_ascii_graphic()) {
        return text.to_owned();
    }
    let escape = ESCAPE.as_str();
    format!("{escape}]8;;{address}{escape}\\{text}{escape}]8;;{escape}\\")
}

/// Returns true if a stream is a terminal on which lines can be replaced and fitted to its width.
fn can_lay_out(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("TERM").is_some_and(|name| name != "dumb")
}

/// Returns true if stdout is a terminal on which text is laid out, in colour or without.
pub(crate) fn is_screen() -> bool {
    can_lay_out(&stdout())
}

/// Returns true if stdout is a terminal that shows styles.
pub(crate) fn is_styled() -> bool {
    stdout().is_terminal() && AutoStream::choice(&stdout()) != ColorChoice::Never
}

/// Returns a line in the form that a line editor prints. Styles are kept, and all other control
/// characters are made visible.
pub(crate) fn for_editor(line: &str) -> String {
    shown(line, true, AutoStream::choice(&stdout()))
}

/// Renders a line for a stream. On a terminal, control characters are made visible. Our own styles
/// are kept if they are enabled.
fn shown(line: &str, is_terminal: bool, styles: ColorChoice) -> String {
    let line = if is_terminal { visible(line) } else { line.to_owned() };
    if styles != ColorChoice::Never {
        return line.replace(ESCAPE.as_str(), "\u{1b}");
    }
    let mut parts = line.split(ESCAPE.as_str());
    let mut plain = parts.next().unwrap_or_default().to_owned();
    // Each placeholder is followed by a style, which ends with `m`, or by the start or end of a
    // link.
    parts.for_each(|part| {
        plain.push_str(match part.strip_prefix('\\') {
            Some(rest) => rest,
            None if part.starts_with("]8;;") => "",
            None => part.split_once('m').map_or("", |(_, rest)| rest),
        });
    });
    plain
}

/// The log sink. It writes lines to stderr, with keys and secrets masked.
pub(crate) struct Log;

impl Write for Log {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        let shown = WHOLE_MASK.text(&String::from_utf8_lossy(line));
        if stderr().is_terminal() {
            to_stderr(visible(&shown).as_bytes())
        } else {
            to_stderr(shown.as_bytes())
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn to_stdout(bytes: &[u8]) -> Result<(), Fault> {
    transient::above(bytes, |bytes| {
        let mut stdout = stdout().lock();
        stdout.write_all(bytes).and_then(|()| stdout.flush()).map_err(|error| match error.kind() {
            ErrorKind::BrokenPipe => Fault::ReaderGone,
            _ => Fault::failed(format!("failed to write to stdout: {error}")),
        })
    })
}

fn to_stderr(bytes: &[u8]) {
    transient::above(bytes, to_stderr_now);
}

fn to_stderr_now(bytes: &[u8]) {
    // A closed stderr cannot be reported.
    let _ = stderr().lock().write_all(bytes);
}

/// Renders a diagnostic of a program, in colours.
pub(crate) fn diagnostic(found: &Diagnostic, source: &str) -> String {
    let severe = if found.severity == Severity::Error { BAD } else { WARN };
    found.render(source, |role, piece| match role {
        Role::Severity | Role::Mark => paint(severe, &visible(piece)),
        Role::Message => paint(Style::new().bold(), &visible(piece)),
        Role::Margin => paint(DIM, piece),
        Role::Source | Role::Advice => visible(piece),
        Role::Hint => paint(NAME, piece),
        Role::Removed => paint(AnsiColor::Red.on_default(), &visible(piece)),
        Role::Added => paint(GOOD, &visible(piece)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_styles_act_and_those_of_others_show() {
        let line = format!("{} \u{1b}[31m{}", paint(BAD, "error:"), paint(DIM, "why"));
        assert_eq!(
            shown(&line, true, ColorChoice::Always),
            "\u{1b}[1m\u{1b}[31merror:\u{1b}[0m \\u{1b}[31m\u{1b}[2mwhy\u{1b}[0m"
        );
        assert_eq!(shown(&line, true, ColorChoice::Never), "error: \\u{1b}[31mwhy");
        assert_eq!(shown(&line, false, ColorChoice::Never), "error: \u{1b}[31mwhy");
        assert!(!ESCAPE.contains('\u{1b}') && visible(&ESCAPE) == *ESCAPE);
    }

    #[test]
    fn a_link_is_plain_text_without_styles() {
        let line = format!("see {}.", link("https://a.example/b", "the page"));
        assert_eq!(
            shown(&line, true, ColorChoice::Always),
            "see \u{1b}]8;;https://a.example/b\u{1b}\\the page\u{1b}]8;;\u{1b}\\."
        );
        assert_eq!(shown(&line, true, ColorChoice::Never), "see the page.");
        for address in ["javascript:x", "https://a\u{1b}\\", "https://a b", "/etc/passwd"] {
            assert_eq!(link(address, "x"), "x");
        }
    }
}
