//! Opens the inputs of a session in the user's editor.
//!
//! The confinement of the process (see `walls`) prevents it from starting programs, and would
//! prevent an editor from reading its own files. Therefore, before a session confines itself, it
//! starts a small process, the *editor broker*: this binary with the argument [`BROKER`]. The
//! broker receives text, never a command or a path. It writes the text to its own temporary file,
//! opens this file in the editor that the user's environment names, and returns the saved text.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde::{Deserialize, Serialize};

use crate::fault::{Exit, Fault};
use crate::{invocation, output};

/// The argument that makes this binary a broker.
const BROKER: &str = "editor-broker";
/// The environment variables that name the editor, in order of precedence.
const VARIABLES: [&str; 2] = ["VISUAL", "EDITOR"];
/// Maximum size of an edited text, in bytes.
const LARGEST: u64 = 4 << 20;

/// Text to edit.
#[derive(Debug, Serialize, Deserialize)]
struct Draft {
    text: String,
    /// The suffix of the file's name. Editors use it to recognize the language.
    ending: String,
}

/// The text that the user saved, or the reason why there is none.
type Edited = Result<String, String>;

/// The session's handle to the broker. The broker ends when the handle is dropped.
pub(crate) struct EditorBroker {
    socket: UnixStream,
    process: Child,
}

impl EditorBroker {
    /// Starts the broker. Must be called before the process confines itself. Returns `None` if the
    /// environment names no editor or, after a warning, if the broker fails to start.
    pub(crate) fn start() -> Option<EditorBroker> {
        editor()?;
        let started = || -> std::io::Result<EditorBroker> {
            let (socket, theirs) = UnixStream::pair()?;
            let process = invocation::again()?
                .arg(BROKER)
                .stdin(Stdio::from(OwnedFd::from(theirs)))
                .spawn()?;
            Ok(EditorBroker { socket, process })
        };
        match started() {
            Ok(broker) => Some(broker),
            Err(error) => {
                output::warn(&format!("the editor cannot be used: {error}"));
                None
            }
        }
    }

    /// Opens `text` in the editor and waits until the user exits the editor. The name of the
    /// edited file ends with `ending`. Returns the saved text.
    ///
    /// # Errors
    /// If the editor fails, or if the saved text is not valid UTF-8 or is too large.
    pub(crate) fn edit(&mut self, text: &str, ending: &str) -> Result<String, Fault> {
        let draft = Draft { text: text.to_owned(), ending: ending.to_owned() };
        let edited = self.ask(&draft).unwrap_or_else(|error| Err(error.to_string()));
        edited.map_err(|why| Fault::failed(format!("failed to edit the input: {why}")))
    }

    fn ask(&mut self, draft: &Draft) -> std::io::Result<Edited> {
        writeln!(self.socket, "{}", serde_json::to_string(draft)?)?;
        let mut answer = String::new();
        BufReader::new(&self.socket).read_line(&mut answer)?;
        if answer.is_empty() {
            Ok(Err("the editor broker has ended".to_owned()))
        } else {
            Ok(serde_json::from_str(&answer)?)
        }
    }
}

impl Drop for EditorBroker {
    fn drop(&mut self) {
        // The broker ends when its input ends.
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
        let _ = self.process.wait();
    }
}

/// Returns true if this process was started as a broker.
pub(crate) fn is_broker() -> bool {
    invocation::args().next().is_some_and(|argument| argument == BROKER)
}

/// Serves edit requests from the session, over the socket on stdin, until the session ends.
pub(crate) fn serve() -> Exit {
    let serve = async {
        // Interrupts are meant for the editor. Without this handler, they would also end the
        // broker.
        let interrupt = tokio::signal::unix::SignalKind::interrupt();
        let _ignored = tokio::signal::unix::signal(interrupt)?;
        let mut socket = UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned()?);
        let drafts = BufReader::new(socket.try_clone()?);
        for draft in drafts.lines() {
            let edited = serde_json::from_str(&draft?).map_err(|error| error.to_string());
            let edited: Edited = edited.and_then(|draft: Draft| edit(&draft));
            writeln!(socket, "{}", serde_json::to_string(&edited)?)?;
        }
        std::io::Result::Ok(())
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime.and_then(|runtime| runtime.block_on(serve)) {
        Ok(()) => Exit::Done,
        Err(_) => Exit::Failed,
    }
}

/// Returns the editor's command, split into words. Returns `None` if the environment names no
/// editor, or if the command is not valid UTF-8.
fn editor() -> Option<Vec<String>> {
    let named = |name: &&str| std::env::var_os(name).filter(|value| !value.is_empty());
    let command: OsString = VARIABLES.iter().find_map(named)?;
    let words: Vec<String> = command.to_str()?.split_whitespace().map(str::to_owned).collect();
    (!words.is_empty()).then_some(words)
}

/// Opens a file in the editor on the terminal and waits until the user exits the editor.
///
/// # Errors
/// If the environment names no editor, or the editor fails. The error states the reason.
pub(crate) fn open(path: &Path) -> Result<(), String> {
    let words = editor().ok_or("the environment names no editor")?;
    let (program, arguments) = words.split_first().ok_or("the environment names no editor")?;
    let ended = Command::new(program)
        .args(arguments)
        .arg(path)
        .stdin(output::terminal().map_err(|error| error.to_string())?)
        .status()
        .map_err(|error| format!("`{program}`: {error}"))?;
    if ended.success() { Ok(()) } else { Err(format!("`{program}` ended with {ended}")) }
}

/// Opens a draft in the editor on the terminal and returns the saved text.
fn edit(draft: &Draft) -> Edited {
    let failed = |error: std::io::Error| error.to_string();
    if !draft.ending.chars().all(|c| c.is_ascii_alphanumeric() || c == '.') {
        return Err("the ending of the file's name is invalid".to_owned());
    }
    let mut builder = tempfile::Builder::new();
    let file = builder.prefix("wattle-").suffix(&draft.ending).tempfile().map_err(failed)?;
    std::fs::write(file.path(), &draft.text).map_err(failed)?;
    open(file.path()).map_err(|why| format!("{why}; the input stays as it was"))?;
    // Many editors replace the file, so it is reopened.
    let (mut saved, path) = (String::new(), file.path());
    let opened = std::fs::File::open(path).map_err(failed)?;
    let read = opened.take(LARGEST + 1).read_to_string(&mut saved).map_err(failed)?;
    if read as u64 > LARGEST {
        return Err(format!("the text is larger than {} MiB", LARGEST >> 20));
    }
    // Editors add a line end to the last line.
    Ok(saved.trim_end_matches(['\n', '\r']).to_owned())
}
