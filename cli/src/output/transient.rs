//! The transient line: the last line on the terminal, which shows the work in progress. All other
//! output appears above it.

use std::io::{IsTerminal, Write, stderr};
use std::sync::atomic::{AtomicUsize, Ordering};

use anstream::{AutoStream, ColorChoice};
use parking_lot::Mutex;

/// The escape sequence that erases the line that contains the cursor.
const ERASE: &[u8] = b"\r\x1b[K";

/// The transient line on the screen, or an empty string. The lock is held while a stream is
/// written, so that no output appears in the middle of the line.
static LINE: Mutex<String> = Mutex::new(String::new());

/// Number of open questions. While there are any, no transient line is shown.
static HELD: AtomicUsize = AtomicUsize::new(0);

/// A guard for a question. No transient line is shown until the guard is dropped.
pub(crate) struct Hold(());

/// Hides the transient line until the returned guard is dropped.
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
    stderr().is_terminal() && AutoStream::choice(&stderr()) != ColorChoice::Never
}

/// Shows a styled line below all other output and replaces the previous transient line. The line
/// must fit the width of the terminal. Does nothing while a question is open, or if [`is_live`]
/// returns false.
pub(crate) fn transient(line: &str) {
    let mut current = LINE.lock();
    if HELD.load(Ordering::SeqCst) > 0 || !is_live() {
        return;
    }
    let shown = super::shown(line, true, AutoStream::choice(&stderr()));
    write(&[ERASE, shown.as_bytes()].concat());
    *current = shown;
}

/// Removes the transient line.
pub(crate) fn clear_transient() {
    let mut current = LINE.lock();
    if !current.is_empty() {
        current.clear();
        write(ERASE);
    }
}

/// Calls `print` with the bytes, so that they appear above the transient line.
pub(super) fn above<T>(bytes: &[u8], print: impl FnOnce(&[u8]) -> T) -> T {
    let current = LINE.lock();
    if current.is_empty() {
        return print(bytes);
    }
    write(ERASE);
    let printed = print(bytes);
    // After an unfinished line, there is no room for the transient line. The next update shows it
    // again.
    if bytes.ends_with(b"\n") {
        write(current.as_bytes());
    }
    printed
}

fn write(bytes: &[u8]) {
    super::to_stderr_now(bytes);
    // A closed stderr cannot be reported.
    let _ = stderr().flush();
}
