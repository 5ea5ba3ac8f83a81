//! Runs the binary, with pipes or in a terminal.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStringExt;
use std::process::{Command, Stdio};

use rexpect::process::{PtyProcess, WaitStatus};
use wattle_tests::provider::{Answer, Provider};

use crate::files::{Place, guests};
use crate::format::Call;
use crate::text::Values;

/// The result of a call.
pub(crate) struct Done {
    /// The exit code, or -1 if a signal ended the process.
    pub(crate) code: i32,
    /// The bytes of stdout and stderr.
    pub(crate) output: Vec<u8>,
}

/// Creates a command that runs the binary in the workdir with a minimal environment.
pub(crate) fn wattle(place: &Place) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wattle"));
    command
        .current_dir(place.at("work"))
        .env_clear()
        .env("HOME", place.at("home"))
        .env("PATH", "/usr/bin:/bin");
    command
}

/// Compiles the guests (the shell's commands, and the parsers of pages and filters) unless another
/// test has already compiled them. Compiling them during an attack could exceed the attack's time
/// limit.
pub(crate) fn warm_up() {
    let _alone = guests().lock().unwrap();
    let pages =
        Provider::answering(|_| Answer::body("<p>warm").header("content-type", "text/html"));
    let (url, host) = (pages.base_url(), pages.host());
    for args in [
        &["shell", "-c", "echo warm | cat"][..],
        &["exec", "json_query", "1", "."],
        &["exec", "fetch", &url, "--allow-host", &host],
    ] {
        let done = wattle(&Place::new()).args(args).output().unwrap();
        assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
    }
}

pub(crate) fn run(place: &Place, call: &Call, values: &Values) -> Done {
    let mut command = wattle(place);
    command.args(call.args.iter().map(|arg| OsString::from_vec(values.bytes(arg))));
    for (name, value) in &call.env {
        command.env(values.text(name), OsString::from_vec(values.bytes(value)));
    }
    let stdin = values.bytes(&call.stdin);
    if call.terminal { on_a_terminal(command, &stdin) } else { with_pipes(command, &stdin) }
}

fn with_pipes(mut command: Command, stdin: &[u8]) -> Done {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut feed = child.stdin.take().unwrap();
    let output = std::thread::scope(|scope| {
        // Writing fails if the binary ends without reading its stdin.
        scope.spawn(move || feed.write_all(stdin));
        child.wait_with_output().unwrap()
    });
    Done {
        code: output.status.code().unwrap_or(-1),
        output: [output.stdout, output.stderr].concat(),
    }
}

fn on_a_terminal(mut command: Command, stdin: &[u8]) -> Done {
    command.env("TERM", "xterm").env("NO_COLOR", "1");
    let process = PtyProcess::new(command).unwrap();
    let mut terminal = process.get_file_handle().unwrap();
    terminal.write_all(stdin).unwrap();
    let mut output = Vec::new();
    let mut piece = [0; 8192];
    // Reading fails once no process uses the terminal.
    while let Ok(count @ 1..) = terminal.read(&mut piece) {
        output.extend_from_slice(&piece[..count]);
    }
    let code = match process.wait().unwrap() {
        WaitStatus::Exited(_, code) => code,
        _ => -1,
    };
    Done { code, output }
}
