//! The terminal: all that the binary writes goes through here. Data goes to stdout, everything else to stderr.

use std::io::{ErrorKind, Write};

use anstyle::{AnsiColor, Style};
use serde_json::Value as Json;
use wattle_agent::rt::{Diagnostic, Role, Severity};

use crate::fault::Fault;

/// How a failure is marked.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
/// How a success is marked.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// How what deserves a look is marked.
pub(crate) const WARN: Style = AnsiColor::Yellow.on_default();
/// How a name or a heading is marked.
pub(crate) const NAME: Style = AnsiColor::Cyan.on_default();
/// How what matters less is marked.
pub(crate) const DIM: Style = Style::new().dimmed();

/// Writes data to stdout, as it is.
///
/// # Errors
/// [`Fault::ReaderGone`] where stdout is closed; a failure where it cannot be written.
pub(crate) fn data(bytes: &[u8]) -> Result<(), Fault> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(bytes).and_then(|()| stdout.flush()).map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => Fault::ReaderGone,
        _ => Fault::failed(format!("failed to write to stdout: {error}")),
    })
}

/// Writes a text to stdout and ends the line where the text does not.
///
/// # Errors
/// As [`data`].
pub(crate) fn text(text: &str) -> Result<(), Fault> {
    match text.ends_with('\n') {
        true => data(text.as_bytes()),
        false => data(format!("{text}\n").as_bytes()),
    }
}

/// Writes one JSON document in one line to stdout.
///
/// # Errors
/// As [`data`].
pub(crate) fn json(document: &Json) -> Result<(), Fault> {
    data(format!("{document}\n").as_bytes())
}

/// Writes a line with styles to stdout; they are left out where stdout is no terminal, and under `NO_COLOR`.
///
/// # Errors
/// As [`data`].
pub(crate) fn styled(line: &str) -> Result<(), Fault> {
    let styles = anstream::AutoStream::choice(&std::io::stdout()) != anstream::ColorChoice::Never;
    match styles {
        true => text(line),
        false => text(&anstream::adapter::strip_str(line).to_string()),
    }
}

/// Writes a line to stderr. Styles in it are for a terminal: they are left out elsewhere, and under `NO_COLOR`.
pub(crate) fn note(line: &str) {
    // Nothing can be told where stderr is closed.
    let _ = writeln!(anstream::stderr(), "{line}");
}

/// Writes a warning to stderr.
pub(crate) fn warn(message: &str) {
    note(&format!("{} {}", paint(WARN, "warning:"), visible(message)));
}

/// Tells a fault on stderr.
pub(crate) fn fault(fault: &Fault) {
    if let Fault::Told { .. } = fault {
        note(&format!("{} {}", paint(BAD, "error:"), visible(&fault.to_string())));
    }
}

/// A text in a style.
pub(crate) fn paint(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// A finding about a program's text, in colours.
pub(crate) fn diagnostic(found: &Diagnostic, source: &str) -> String {
    let severe = if found.severity == Severity::Error { BAD } else { WARN };
    found.shown(source, |role, piece| match role {
        Role::Severity | Role::Mark => paint(severe, &visible(piece)),
        Role::Message => paint(Style::new().bold(), &visible(piece)),
        Role::Margin => paint(DIM, piece),
        Role::Source | Role::Advice => visible(piece),
        Role::Hint => paint(NAME, piece),
        Role::Removed => paint(AnsiColor::Red.on_default(), &visible(piece)),
        Role::Added => paint(GOOD, &visible(piece)),
    })
}

/// A text that moves no cursor and changes no colour, whoever wrote it: control and direction characters are replaced, line ends and
/// tabs kept.
pub(crate) fn visible(text: &str) -> String {
    let acts = |c: char| c.is_control() && c != '\n' && c != '\t';
    let turns = |c: char| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let text = text.replace("\r\n", "\n");
    text.chars().map(|c| if acts(c) || turns(c) { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_wrote_cannot_act_on_the_terminal() {
        assert_eq!(visible("a\x1b[2Jb\u{202e}c\r\nd\te\rf"), "a\u{fffd}[2Jb\u{fffd}c\nd\te\u{fffd}f");
    }
}
