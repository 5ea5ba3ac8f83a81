//! A tmux screen. Tests read its content as a user sees it.

use std::io::Write;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::terminal::Place;

/// Maximum time to wait for a prompt, and for a typed line to be shown.
const SETTLED: Duration = Duration::from_secs(2);

/// Maximum time to wait for an expected string.
const NEVER: Duration = Duration::from_secs(60);

/// Number of screens that this process has started.
static SCREENS: AtomicU32 = AtomicU32::new(0);

/// A screen with a session in it. Each screen has its own tmux server, which ends with the screen.
pub(crate) struct Screen {
    socket: String,
    columns: usize,
}

impl Screen {
    /// Starts `wattle repl` on a screen of this width and waits until it is ready. Returns `None`
    /// if tmux is not installed.
    pub(crate) fn start(place: &Place, columns: usize, args: &[&str]) -> Option<Screen> {
        Screen::with_variables(place, columns, args, &[])
    }

    /// Starts a session with additional environment variables.
    pub(crate) fn with_variables(
        place: &Place,
        columns: usize,
        args: &[&str],
        variables: &[(&str, &str)],
    ) -> Option<Screen> {
        let words = [&[env!("CARGO_BIN_EXE_wattle"), "repl"], args].concat();
        let screen = Screen::with_command(place, columns, &words, variables)?;
        screen.prompts();
        Some(screen)
    }

    /// Starts a command.
    pub(crate) fn with_command(
        place: &Place,
        columns: usize,
        words: &[&str],
        variables: &[(&str, &str)],
    ) -> Option<Screen> {
        if Command::new("tmux").arg("-V").output().is_err() {
            #[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
            {
                eprintln!("skipped: tmux is not installed");
            }
            return None;
        }
        let home = place.home("");
        // Each screen has its own server. A shared server that is shutting down would end the next
        // screen, too.
        let number = SCREENS.fetch_add(1, Ordering::Relaxed);
        let socket = home.join(format!("tmux-{number}.sock")).to_str().unwrap().to_owned();
        let screen = Screen { socket, columns };
        let size = [("-x", columns.to_string()), ("-y", "50".to_owned())];
        let mut command = screen.tmux(&["-f", "/dev/null", "-u", "new-session", "-d"]);
        command.args(size.iter().flat_map(|(flag, value)| [*flag, value.as_str()]));
        command.args(words);
        command.current_dir(place.work("")).env_clear();
        command.env("HOME", &home).env("PATH", "/usr/bin:/bin").env("LANG", "C.UTF-8");
        command.env("TERM", "xterm-256color").envs(variables.iter().copied());
        let started = command.output().unwrap();
        assert!(started.status.success(), "{started:?}");
        Some(screen)
    }

    fn tmux(&self, args: &[&str]) -> Command {
        let mut command = Command::new("tmux");
        command.args(["-S", &self.socket]).args(args);
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        let output = self.tmux(args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {output:?}");
        output
    }

    /// Presses keys by their names, such as `C-c`, `Tab` or `M-Enter`.
    pub(crate) fn press(&self, keys: &[&str]) {
        self.run(&[&["send-keys"], keys].concat());
    }

    /// Changes the width of the screen.
    pub(crate) fn resize(&self, columns: usize) {
        self.run(&["resize-window", "-x", &columns.to_string()]);
    }

    /// Types a string.
    pub(crate) fn text(&self, text: &str) {
        self.run(&["send-keys", "-l", "--", text]);
    }

    /// Waits for a prompt, types a line, and waits until the line is shown. A later wait therefore
    /// does not mistake this prompt for the next one. During a run, neither the prompt nor the line
    /// appears, and both waits time out.
    pub(crate) fn types(&self, line: &str) {
        let prompts = |content: &str| {
            content.trim_end().lines().last().is_some_and(|last| last.starts_with('›'))
        };
        self.settles(prompts);
        let begin: String = line.chars().take(30).collect();
        let before = self.content().matches(&begin).count();
        self.text(line);
        self.settles(|content| content.matches(&begin).count() > before);
        self.press(&["Enter"]);
    }

    /// Waits for a condition, for at most [`SETTLED`].
    fn settles(&self, is_met: impl Fn(&str) -> bool) {
        let begun = Instant::now();
        while !is_met(&self.content()) && begun.elapsed() < SETTLED {
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Pastes a string.
    pub(crate) fn paste(&self, text: &str) {
        let mut load = self.tmux(&["load-buffer", "-"]).stdin(Stdio::piped()).spawn().unwrap();
        load.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        assert!(load.wait().unwrap().success());
        self.run(&["paste-buffer", "-p"]);
    }

    /// Returns the content of the screen, including lines that have scrolled off.
    pub(crate) fn content(&self) -> String {
        String::from_utf8(self.run(&["capture-pane", "-p", "-S", "-500"]).stdout).unwrap()
    }

    /// Returns the content with the escape sequences for its styles. Omits the sequences that only
    /// reset the background.
    pub(crate) fn styled(&self) -> String {
        let shown = self.run(&["capture-pane", "-p", "-e", "-S", "-500"]).stdout;
        String::from_utf8(shown).unwrap().replace("\u{1b}[49m", "")
    }

    /// Returns the process id of the session.
    pub(crate) fn process(&self) -> String {
        let shown = self.run(&["display-message", "-p", "#{pane_pid}"]).stdout;
        String::from_utf8(shown).unwrap().trim().to_owned()
    }

    /// Waits until the screen's content satisfies a condition, and returns the content.
    #[track_caller]
    pub(crate) fn waits(&self, what: &str, is_met: impl Fn(&str) -> bool) -> String {
        let begun = Instant::now();
        loop {
            let content = self.content();
            if is_met(&content) {
                return content;
            }
            assert!(begun.elapsed() < NEVER, "{what:?} does not appear:\n{content}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits for a string.
    #[track_caller]
    pub(crate) fn shows(&self, text: &str) -> String {
        self.waits(text, |content| content.contains(text))
    }

    /// Waits for an empty prompt on the last line.
    #[track_caller]
    pub(crate) fn prompts(&self) -> String {
        self.waits("a prompt", |content| content.trim_end().ends_with("\n›"))
    }

    /// Returns the number of columns.
    pub(crate) fn columns(&self) -> usize {
        self.columns
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // If the session has ended, its server has ended, too.
        let _ = self.tmux(&["kill-server"]).output();
    }
}
