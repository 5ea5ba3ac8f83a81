//! The only host function besides those of WASI: `spawn`, which runs another command.

use std::io::Write as _;

#[expect(unsafe_code, reason = "a function of the host")]
#[link(wasm_import_module = "wattle")]
unsafe extern "C" {
    fn spawn(
        argv: *const u8,
        argv_len: usize,
        env: *const u8,
        env_len: usize,
        flags: u32,
        timeout_ms: i64,
    ) -> i32;
}

/// The flag that replaces the caller's environment with the given one.
const OWN_ENVIRONMENT: u32 = 1;
/// The flag that makes the command's standard input empty.
const EMPTY_INPUT: u32 = 2;

/// A command to run: its words, and the settings that differ from the caller's.
#[derive(Default)]
pub(crate) struct Command {
    pub argv: Vec<Vec<u8>>,
    /// The environment as `NAME=value` entries; `None` inherits the caller's.
    pub env: Option<Vec<Vec<u8>>>,
    pub empty_input: bool,
    /// The time limit in milliseconds; 0 means no limit.
    pub timeout: i64,
}

impl Command {
    pub(crate) fn new(argv: Vec<Vec<u8>>) -> Command {
        Command { argv, ..Command::default() }
    }

    /// Returns a command that runs `text` in the shell.
    pub(crate) fn line(text: &[u8]) -> Command {
        Command::new(vec![b"sh".to_vec(), b"-c".to_vec(), text.to_vec()])
    }

    /// Returns the command that runs this one in `folder`.
    pub(crate) fn within(mut self, folder: &str) -> Command {
        let head = ["sh", "-c", "cd -- \"$1\" && shift && \"$@\"", "sh", folder];
        self.argv.splice(0..0, head.map(|word| word.as_bytes().to_vec()));
        self
    }

    /// Flushes standard output, runs the command to completion, and returns its exit status.
    pub(crate) fn run(&self) -> i32 {
        _ = std::io::stdout().flush();
        let argv = ended(&self.argv);
        let env = self.env.as_deref().map(ended).unwrap_or_default();
        let mut flags = 0;
        if self.env.is_some() {
            flags |= OWN_ENVIRONMENT;
        }
        if self.empty_input {
            flags |= EMPTY_INPUT;
        }
        // SAFETY: both buffers are valid during the call, which only reads them.
        #[expect(unsafe_code, reason = "a call of the host")]
        unsafe {
            spawn(argv.as_ptr(), argv.len(), env.as_ptr(), env.len(), flags, self.timeout)
        }
    }
}

/// Joins the words, each terminated by a NUL. Omits NULs inside words, which would end them early.
fn ended(words: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for word in words {
        bytes.extend(word.iter().filter(|byte| **byte != 0));
        bytes.push(0);
    }
    bytes
}
