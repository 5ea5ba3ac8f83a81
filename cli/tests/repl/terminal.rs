//! A terminal that runs the binary with a minimal environment.

use std::path::{Path, PathBuf};
use std::process::Command;

use rexpect::process::WaitStatus;
use rexpect::reader::{Options, ReadUntil};
use rexpect::session::{PtySession, spawn_with_options};
use wattle_cases::guests::SharedGuests;

/// Maximum time to wait for an expected string, in milliseconds.
const NEVER: u64 = 30_000;

/// The prompt as read by [`PtySession`], which decodes each byte as one character.
const PROMPT: &str = "\u{e2}\u{80}\u{ba} ";

/// A home directory and a workdir for the sessions of a test. They are removed when the test ends.
pub(crate) struct Place(tempfile::TempDir);

/// A session in a terminal.
pub(crate) struct Terminal(PtySession);

impl Drop for Place {
    fn drop(&mut self) {
        SharedGuests::in_target().keep(self.0.path());
    }
}

impl Place {
    pub(crate) fn new() -> Place {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("work")).unwrap();
        SharedGuests::in_target().lend(dir.path());
        Place(dir)
    }

    /// Returns the path of a file in the workdir.
    pub(crate) fn work(&self, path: &str) -> PathBuf {
        self.0.path().join("work").join(path)
    }

    /// Returns the path of a file in the home folder.
    pub(crate) fn home(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wattle"));
        command.args(args).current_dir(self.work("")).env_clear().env("HOME", self.0.path());
        command
    }

    /// Starts `wattle repl` and waits until it is ready.
    pub(crate) fn repl(&self, args: &[&str]) -> Terminal {
        let args = [&["repl"], args].concat();
        Terminal::start(self.command(&args))
    }
}

impl Terminal {
    /// Starts a session and waits until it is ready.
    pub(crate) fn start(command: Command) -> Terminal {
        let mut terminal = Terminal::open(command);
        terminal.prompts();
        terminal
    }

    /// Starts a command.
    pub(crate) fn open(command: Command) -> Terminal {
        Terminal::spawn(command, true)
    }

    /// Starts a command. Its output contains the sequences that control the terminal.
    pub(crate) fn with_sequences(command: Command) -> Terminal {
        Terminal::spawn(command, false)
    }

    fn spawn(mut command: Command, strips: bool) -> Terminal {
        command.env("TERM", "xterm").env("NO_COLOR", "1");
        let options = Options::new().timeout_ms(Some(NEVER)).strip_ansi_escape_codes(strips);
        Terminal(spawn_with_options(command, options).unwrap())
    }

    /// Types a line.
    pub(crate) fn types(&mut self, line: &str) {
        // Enter sends a carriage return. A line feed is Ctrl-J.
        self.0.send(&format!("{line}\r")).unwrap();
        self.0.flush().unwrap();
    }

    /// Presses Ctrl and a key.
    pub(crate) fn control(&mut self, key: char) {
        self.0.send_control(key).unwrap();
    }

    /// Waits for a string in the output and returns the output before it.
    #[track_caller]
    pub(crate) fn shows(&mut self, text: &str) -> String {
        self.0.exp_string(text).unwrap_or_else(|error| panic!("{text:?} does not appear: {error}"))
    }

    /// Waits for a line of output. It may replace the line that showed the progress.
    #[track_caller]
    pub(crate) fn shows_line(&mut self, line: &str) {
        let needles = ['\n', '\r'].map(|before| ReadUntil::String(format!("{before}{line}\r\n")));
        let found = self.0.exp_any(needles.into());
        found.unwrap_or_else(|error| panic!("{line:?} does not appear: {error}"));
    }

    /// Waits for the next prompt.
    #[track_caller]
    pub(crate) fn prompts(&mut self) {
        self.shows(PROMPT);
    }

    /// Waits until the session ends, and fails unless it ends with this exit code. Returns the
    /// remaining output.
    #[track_caller]
    pub(crate) fn ends(mut self, code: i32) -> String {
        let rest = self.0.exp_eof().unwrap();
        match self.0.process().wait().unwrap() {
            WaitStatus::Exited(_, exited) => assert_eq!(exited, code, "{rest}"),
            other => panic!("{other:?}: {rest}"),
        }
        rest
    }
}

/// Returns the content of a file, or an empty string if the file is missing.
pub(crate) fn content(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}
