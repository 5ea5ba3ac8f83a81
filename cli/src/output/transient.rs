//! The transient text: the last lines on the terminal, which show the work in progress. All other
//! output appears above them.

use std::io::{Write, stderr};
use std::sync::atomic::{AtomicUsize, Ordering};

use anstream::{AutoStream, ColorChoice};
use parking_lot::Mutex;

use super::width::{columns, width};

/// The transient text on the screen. The lock is held while a stream is written, so that no output
/// appears in the middle of the text.
static SHOWN: Mutex<Transient> = Mutex::new(Transient { text: String::new(), widths: Vec::new() });

struct Transient {
    /// The styled text, or an empty string if there is none.
    text: String,
    /// The width of each line, in columns.
    widths: Vec<usize>,
}

impl Transient {
    /// Returns the escape sequence that erases the text. The terminal may have become narrower since
    /// the text was shown, and a line may occupy several rows.
    fn erase(&self) -> Vec<u8> {
        let columns = columns();
        let rows: usize = self.widths.iter().map(|width| width.div_ceil(columns).max(1)).sum();
        match rows {
            0 | 1 => b"\r\x1b[J".to_vec(),
            rows => format!("\r\x1b[{}A\x1b[J", rows - 1).into_bytes(),
        }
    }
}

/// Number of open questions. While there are any, no transient text is shown.
static HELD: AtomicUsize = AtomicUsize::new(0);

/// A guard for a question. No transient text is shown until the guard is dropped.
pub(crate) struct Hold(());

/// Hides the transient text until the returned guard is dropped.
pub(crate) fn hold_transient() -> Hold {
    HELD.fetch_add(1, Ordering::SeqCst);
    clear_transient();
    Hold(())
}

impl Drop for Hold {
    fn drop(&mut self) {
        HELD.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Returns true if stderr is a terminal that can replace a line.
pub(crate) fn is_live() -> bool {
    super::can_lay_out(&stderr())
}

/// Shows a styled text below all other output and replaces the previous transient text. Its lines
/// must fit the width of the terminal, and all of them its height. Does nothing while a question is
/// open, or if [`is_live`] returns false.
pub(crate) fn transient(text: &str) {
    let mut current = SHOWN.lock();
    if HELD.load(Ordering::SeqCst) > 0 || !is_live() {
        return;
    }
    let shown = super::shown(text, true, AutoStream::choice(&stderr()));
    if shown == current.text {
        return;
    }
    let plain = super::shown(text, true, ColorChoice::Never);
    let widths = plain.split('\n').map(width).collect();
    write(&[current.erase(), shown.as_bytes().to_vec()].concat());
    *current = Transient { text: shown, widths };
}

/// Removes the transient text.
pub(crate) fn clear_transient() {
    let mut current = SHOWN.lock();
    if !current.text.is_empty() {
        write(&current.erase());
        *current = Transient { text: String::new(), widths: Vec::new() };
    }
}

/// Calls `print` with the bytes, so that they appear above the transient text.
pub(super) fn above<T>(bytes: &[u8], print: impl FnOnce(&[u8]) -> T) -> T {
    let mut current = SHOWN.lock();
    if current.text.is_empty() {
        return print(bytes);
    }
    write(&current.erase());
    let printed = print(bytes);
    // After an unfinished line, there is no room for the transient text. The next update shows it
    // again.
    if bytes.ends_with(b"\n") {
        write(current.text.as_bytes());
    } else {
        *current = Transient { text: String::new(), widths: Vec::new() };
    }
    printed
}

fn write(bytes: &[u8]) {
    super::to_stderr_now(bytes);
    // A closed stderr cannot be reported.
    let _ = stderr().flush();
}
