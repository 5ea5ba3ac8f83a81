//! Handling of the keys that a user presses while no line is being read.
//!
//! While a run is in progress, keys are not echoed, because the echo would disturb the run's
//! output. They stay in the terminal's queue and become the next input. Keys that were pressed
//! before a question was shown never answer it.

use std::io::{IsTerminal, stdin};

use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};

/// Maximum number of bytes per read from the terminal's queue.
const PIECE: usize = 4_096;

/// The state of the terminal while a run is in progress.
struct State {
    /// The terminal's mode before the run.
    before: Termios,
    /// The keys that were pressed before a question was shown.
    early: Vec<u8>,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);

/// The terminal's mode before the session, while one keeps [`Returns`].
static BEFORE_SESSION: Mutex<Option<Termios>> = Mutex::new(None);

/// A guard of a session, in which Enter and Ctrl-J are different keys.
pub(crate) struct Returns(());

/// Makes the terminal pass Enter on as it is until the returned guard is dropped. Otherwise, it would
/// turn an Enter that is pressed while no line is being read into Ctrl-J, which begins a new line.
/// Does nothing if stdin is not a terminal.
pub(crate) fn keep_returns() -> Returns {
    if stdin().is_terminal()
        && let Ok(before) = tcgetattr(stdin())
    {
        set(&with_returns(&before));
        *BEFORE_SESSION.lock() = Some(before);
    }
    Returns(())
}

impl Drop for Returns {
    fn drop(&mut self) {
        if let Some(before) = BEFORE_SESSION.lock().take() {
            set(&before);
        }
    }
}

fn with_returns(before: &Termios) -> Termios {
    let mut mode = before.clone();
    mode.input_modes -= InputModes::ICRNL;
    mode
}

/// A guard that suppresses the echo of keys until it is dropped.
pub(crate) struct Quiet(());

/// Stops echoing keys until the returned guard is dropped. Ctrl-C still interrupts. Does nothing if
/// stdin is not a terminal.
pub(crate) fn quiet() -> Quiet {
    if stdin().is_terminal()
        && let Ok(before) = tcgetattr(stdin())
    {
        set(&quiet_mode(&before));
        *STATE.lock() = Some(State { before, early: Vec::new() });
    }
    Quiet(())
}

impl Quiet {
    /// Enables the echo of keys again. Returns the keys that were pressed before a question was
    /// shown, without control characters other than line ends.
    pub(crate) fn end(self) -> String {
        let early = STATE.lock().as_mut().map(|state| std::mem::take(&mut state.early));
        let text = String::from_utf8_lossy(&early.unwrap_or_default()).replace('\r', "\n");
        text.chars().filter(|c| !c.is_control() || *c == '\n').collect()
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        if let Some(state) = STATE.lock().take() {
            set(&state.before);
        }
    }
}

/// A guard for a question, or for another program that reads the keys. Until it is dropped, keys are
/// echoed, and a line can be read.
pub(crate) struct Question(());

/// Prepares the terminal for a question. Keys that were pressed earlier during a run are kept for the
/// next input.
pub(crate) fn question() -> Question {
    let mut state = STATE.lock();
    if let Some(state) = state.as_mut() {
        state.early.extend(pending());
    }
    let before_session = BEFORE_SESSION.lock();
    if let Some(mode) = before_session.as_ref().or(state.as_ref().map(|state| &state.before)) {
        set(mode);
    }
    Question(())
}

impl Drop for Question {
    fn drop(&mut self) {
        if let Some(state) = STATE.lock().as_ref() {
            set(&quiet_mode(&state.before));
        } else if let Some(before) = BEFORE_SESSION.lock().as_ref() {
            set(&with_returns(before));
        }
    }
}

/// Returns a terminal mode that does not echo keys and makes each key readable immediately.
fn quiet_mode(before: &Termios) -> Termios {
    let mut mode = before.clone();
    mode.local_modes -= LocalModes::ECHO | LocalModes::ECHONL | LocalModes::ICANON;
    mode.input_modes -= InputModes::ICRNL;
    mode.special_codes[SpecialCodeIndex::VMIN] = 0;
    mode.special_codes[SpecialCodeIndex::VTIME] = 0;
    mode
}

/// Changes the terminal's mode without dropping pending keys. If the change fails, the terminal
/// keeps its current mode.
fn set(mode: &Termios) {
    let _ = tcsetattr(stdin(), OptionalActions::Drain, mode);
}

/// Removes the pending keys from the queue and returns them.
fn pending() -> Vec<u8> {
    let (mut keys, mut piece) = (Vec::new(), [0; PIECE]);
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    loop {
        let stdin = stdin();
        let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
        if !poll(&mut fds, Some(&now)).is_ok_and(|ready| ready > 0) {
            return keys;
        }
        match rustix::io::read(&stdin, &mut piece) {
            Ok(read) if read > 0 => keys.extend(piece.iter().take(read)),
            _ => return keys,
        }
    }
}
