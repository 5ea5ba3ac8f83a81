//! The home folder and the workdir of one test, and commands that run the binary in a minimal
//! environment.

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use wattle_cases::guests::SharedGuests;

/// The home folder and the workdir of one test. They are removed when the test ends.
pub(crate) struct Place {
    dir: tempfile::TempDir,
    /// The database that the commands use as their store, if the tests run with PostgreSQL.
    /// Otherwise, the store is a file in the home folder.
    store: Option<String>,
}

/// A command that has not started yet: the binary, or a shell line that can call the binary.
pub(crate) struct Call {
    command: Command,
    stdin: Vec<u8>,
}

/// The result of a command.
#[derive(Debug)]
pub(crate) struct Done {
    /// The exit code.
    pub(crate) code: i32,
    /// The text on stdout.
    pub(crate) stdout: String,
    /// The text on stderr.
    pub(crate) stderr: String,
}

/// Parses a command's output as JSON.
pub(crate) fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap()
}

/// Returns the compiled guests that tests share.
fn guests() -> SharedGuests {
    SharedGuests::in_target()
}

impl Drop for Place {
    fn drop(&mut self) {
        guests().keep(&self.home());
    }
}

impl Place {
    /// Creates the home folder and the workdir.
    pub(crate) fn new() -> Place {
        let dir = tempfile::tempdir().unwrap();
        for name in ["home", "work"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        }
        guests().lend(&dir.path().join("home"));
        Place { dir, store: wattle_cases::postgres::url_if_switched() }
    }

    /// Returns the home folder.
    pub(crate) fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    /// Returns the workdir, where commands run.
    pub(crate) fn work(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    /// Writes a file in the workdir and creates its parent folders.
    pub(crate) fn write(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.work().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    /// Reads a file in the workdir.
    pub(crate) fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.work().join(path)).unwrap()
    }

    /// Returns the folder of the traces of runs in the workdir. There must be only one.
    pub(crate) fn traces(&self) -> PathBuf {
        let mut folders: Vec<PathBuf> = self
            .files()
            .into_iter()
            .filter(|(path, _)| path.ends_with("_steps.jsonl"))
            .map(|(path, _)| path.parent().unwrap().to_owned())
            .collect();
        assert_eq!(folders.len(), 1, "{folders:?}");
        folders.remove(0)
    }

    /// Reads a file in the folder of the traces.
    pub(crate) fn read_trace(&self, name: &str) -> String {
        std::fs::read_to_string(self.traces().join(name)).unwrap()
    }

    /// Writes a file in the folder of the traces.
    pub(crate) fn write_trace(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.traces().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// Returns all files under the test's folders except compiled guests, with their contents.
    pub(crate) fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let (mut folders, mut files) = (vec![self.dir.path().to_owned()], Vec::new());
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => folders.push(path),
                    false if SharedGuests::is_guest(&path) => {}
                    false => files.push((path.clone(), std::fs::read(path).unwrap())),
                }
            }
        }
        files
    }

    /// Prepares a command that runs the binary in the workdir.
    pub(crate) fn wattle<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Call {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wattle"));
        command.args(args).current_dir(self.work()).env_clear().env("HOME", self.home());
        command.envs(self.store.iter().map(|url| ("WATTLE_STORE", url)));
        Call { command, stdin: Vec::new() }
    }

    /// Prepares a shell line in the workdir. In the line, `wattle` denotes the binary.
    pub(crate) fn shell(&self, line: &str) -> Call {
        let folder = Path::new(env!("CARGO_BIN_EXE_wattle")).parent().unwrap();
        let mut command = Command::new("/bin/sh");
        command.args(["-euc", line]).current_dir(self.work()).env_clear().env("HOME", self.home());
        command.envs(self.store.iter().map(|url| ("WATTLE_STORE", url)));
        command.env("PATH", format!("{}:/usr/bin:/bin", folder.display()));
        Call { command, stdin: Vec::new() }
    }
}

impl Call {
    /// Sets an environment variable.
    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Call {
        self.command.env(name, value);
        self
    }

    /// Sets the bytes of stdin.
    pub(crate) fn stdin(self, bytes: impl Into<Vec<u8>>) -> Call {
        Call { stdin: bytes.into(), ..self }
    }

    /// Starts the command and writes the given bytes to its stdin.
    pub(crate) fn start(mut self) -> Child {
        let piped =
            self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = piped.spawn().unwrap();
        // Writing fails if the binary ends without reading its stdin.
        let _ = child.stdin.take().unwrap().write_all(&self.stdin);
        child
    }

    /// Runs the command and waits until it ends.
    pub(crate) fn run(self) -> Done {
        Done::of(self.start())
    }
}

impl Done {
    /// Waits until a command ends, and collects its output.
    pub(crate) fn of(child: Child) -> Done {
        let output = child.wait_with_output().unwrap();
        Done {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Parses each line of stdout as JSON.
    pub(crate) fn json_lines(&self) -> Vec<serde_json::Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Fails unless the command ended with this exit code.
    #[track_caller]
    pub(crate) fn code(self, code: i32) -> Done {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    /// Fails unless stderr contains all of these strings.
    #[track_caller]
    pub(crate) fn reports(self, words: &[&str]) -> Done {
        for word in words {
            assert!(self.stderr.contains(word), "{word:?} is missing in\n{}", self.stderr);
        }
        self
    }
}
