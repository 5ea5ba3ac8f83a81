//! A test guest that makes the host calls listed in a [`Script`] and outputs their results.
//!
//! ```text
//! input     memory from address 0 (64 KiB), then calls: function u32, 4 unused, operands 10 × u64
//! output    result of each call, u32; then memory from address 0 (64 KiB)
//! ```

use std::fmt::{self, Write as _};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::BoxFuture;
use wattle_capability::files::Files;
use wattle_shell::{Command, CommandOutcome, Spawn, StageBounds, Status, Stream, Toolbox};

/// The functions of preview 1, each with its operands: `i` for 32 bits, `I` for 64 bits.
const FUNCTIONS: &str = include_str!("preview1.txt");
/// Size of the part of the guest's memory that a script sets and reads, in bytes.
pub(crate) const IMAGE: usize = 64 << 10;
/// Size of one call, in bytes.
const CALL: usize = 88;

pub(crate) fn functions() -> Vec<(&'static str, &'static str)> {
    let rows = FUNCTIONS.lines().map(|line| line.split_once(' ').unwrap_or((line, "")));
    rows.collect()
}

fn wat() -> String {
    let mut text = String::from("(module\n");
    let wasm = |kind| if kind == 'i' { "i32" } else { "i64" };
    for (name, operands) in functions() {
        let types: Vec<&str> = operands.chars().map(wasm).collect();
        let params =
            if types.is_empty() { String::new() } else { format!("(param {})", types.join(" ")) };
        writeln!(
            text,
            r#"(import "wasi_snapshot_preview1" "{name}" (func ${name} {params} (result i32)))"#
        )
        .unwrap();
    }
    text.push_str(
        r#"(import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
        (import "wattle" "spawn" (func $spawn (param i32 i32 i32 i32 i32 i64) (result i32)))
        (memory (export "memory") 16)
        (func $one (param $at i32) (result i32)
        "#,
    );
    let count = functions().len();
    for index in (0..=count).rev() {
        writeln!(text, "(block $b{index}").unwrap();
    }
    let labels: Vec<String> = (0..=count).map(|index| format!("$b{index}")).collect();
    writeln!(
        text,
        "(block $none (br_table {} $none (i32.load (local.get $at)))) (return (i32.const -1))",
        labels.join(" ")
    )
    .unwrap();
    let load = |operand: usize, kind: char| {
        let offset = 8 + operand * 8;
        let whole = format!("(i64.load offset={offset} (local.get $at))");
        if kind == 'i' { format!("(i32.wrap_i64 {whole})") } else { whole }
    };
    // The innermost block ends first: it belongs to the first function.
    for (name, operands) in functions() {
        let operands: Vec<String> =
            operands.chars().enumerate().map(|(at, kind)| load(at, kind)).collect();
        writeln!(text, ") (return (call ${name} {}))", operands.join(" ")).unwrap();
    }
    let operands: Vec<String> =
        "iiiiiI".chars().enumerate().map(|(at, kind)| load(at, kind)).collect();
    writeln!(text, ") (call $spawn {}))", operands.join(" ")).unwrap();
    // Reads all calls, makes them, and writes their results.
    text.push_str(
        r#"(func (export "_start") (local $end i32) (local $at i32) (local $out i32)
          (block $read (loop $more
            (i32.store (i32.const 0xf0000) (local.get $end))
            (i32.store (i32.const 0xf0004) (i32.sub (i32.const 0xe0000) (local.get $end)))
            (drop (call $fd_read (i32.const 0) (i32.const 0xf0000) (i32.const 1) (i32.const 0xf0008)))
            (br_if $read (i32.eqz (i32.load (i32.const 0xf0008))))
            (local.set $end (i32.add (local.get $end) (i32.load (i32.const 0xf0008))))
            (br $more)))
          (local.set $at (i32.const 0x10000))
          (local.set $out (i32.const 0xe0000))
          (block $done (loop $next
            (br_if $done (i32.ge_u (local.get $at) (local.get $end)))
            (i32.store (local.get $out) (call $one (local.get $at)))
            (local.set $out (i32.add (local.get $out) (i32.const 4)))
            (local.set $at (i32.add (local.get $at) (i32.const 88)))
            (br $next)))
          (call $tell (i32.const 0xe0000) (i32.sub (local.get $out) (i32.const 0xe0000)))
          (call $tell (i32.const 0) (i32.const 0x10000)))
        (func $tell (param $at i32) (param $len i32)
          (block $done (loop $more
            (br_if $done (i32.eqz (local.get $len)))
            (i32.store (i32.const 0xf0000) (local.get $at))
            (i32.store (i32.const 0xf0004) (local.get $len))
            (br_if $done (call $fd_write (i32.const 1) (i32.const 0xf0000) (i32.const 1) (i32.const 0xf0008)))
            (local.set $at (i32.add (local.get $at) (i32.load (i32.const 0xf0008))))
            (local.set $len (i32.sub (local.get $len) (i32.load (i32.const 0xf0008))))
            (br $more)))))"#,
    );
    text
}

pub(crate) fn toolbox(wat: &str) -> Toolbox {
    Toolbox::with_module(wat::parse_str(wat).unwrap(), &["guest"], None)
}

/// Returns the guest, compiled once for all tests of the process.
fn guest() -> &'static Toolbox {
    static GUEST: OnceLock<Toolbox> = OnceLock::new();
    GUEST.get_or_init(|| toolbox(&wat()))
}

/// A [`Spawn`] that runs no command. It prints each command that it receives.
pub(crate) struct Echo;

impl Spawn for Echo {
    fn spawn(&self, command: Command, timeout: Option<Duration>) -> BoxFuture<'_, Status> {
        Box::pin(async move {
            let input = match command.fd(0) {
                Some(stream) => stream.read(100).await.unwrap(),
                None => "closed".into(),
            };
            let words = format!(
                "{:?} {:?} {} {timeout:?} {input:?}\n",
                command.argv, command.env, command.cwd
            );
            command.fd(1).unwrap().write(words.as_bytes()).await.unwrap();
            Status(7)
        })
    }
}

/// A list of host calls for the test guest, and the initial content of the memory that they use.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    image: Vec<u8>,
    calls: Vec<u8>,
    free: usize,
    pub(crate) fds: Vec<(u32, Stream)>,
    pub(crate) bounds: StageBounds,
}

/// Result of running a [`Script`].
pub(crate) struct GuestResult {
    pub(crate) outcome: CommandOutcome,
    pub(crate) answers: Vec<u32>,
    pub(crate) image: Vec<u8>,
    pub(crate) stderr: String,
}

impl fmt::Debug for GuestResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {:?} {:?}", self.outcome, self.answers, self.stderr)
    }
}

impl Script {
    pub(crate) fn new() -> Script {
        let image = vec![0; IMAGE];
        Script {
            image,
            calls: Vec::new(),
            free: 32 << 10,
            fds: Vec::new(),
            bounds: StageBounds::default(),
        }
    }

    /// Stores bytes in the upper half of the image. Returns their address and length.
    pub(crate) fn text(&mut self, text: &[u8]) -> (u64, u64) {
        let at = self.free;
        self.image[at..at + text.len()].copy_from_slice(text);
        self.free = (at + text.len()).next_multiple_of(8);
        (at as u64, text.len() as u64)
    }

    /// Stores paths at the start of the image, 32 bytes apart.
    pub(crate) fn paths(&mut self, paths: &[&str]) {
        for (slot, path) in self.image.chunks_exact_mut(32).zip(paths) {
            slot[..path.len()].copy_from_slice(path.as_bytes());
        }
    }

    pub(crate) fn call(&mut self, name: &str, operands: &[u64]) {
        let names = functions();
        let index = names.iter().position(|(known, _)| *known == name).unwrap_or_else(|| {
            assert_eq!(name, "spawn");
            names.len()
        });
        self.raw(index as u32, operands);
    }

    pub(crate) fn raw(&mut self, function: u32, operands: &[u64]) {
        let mut call = vec![0; CALL];
        call[..4].copy_from_slice(&function.to_le_bytes());
        for (slot, operand) in call[8..].chunks_exact_mut(8).zip(operands) {
            slot.copy_from_slice(&operand.to_le_bytes());
        }
        self.calls.extend(call);
    }

    /// Adds a call that opens a path relative to the root. The call stores the descriptor at
    /// address 0.
    pub(crate) fn open(&mut self, path: &str, how: u64, rights: u64, flags: u64) {
        let (at, len) = self.text(path.as_bytes());
        self.call("path_open", &[3, 1, at, len, how, rights, 0, flags, 0]);
    }

    pub(crate) fn write(&mut self, fd: u64, text: &[u8]) {
        let (at, len) = self.text(text);
        let part = [(at as u32).to_le_bytes(), (len as u32).to_le_bytes()].concat();
        let (part, _) = self.text(&part);
        self.call("fd_write", &[fd, part, 1, 8]);
    }

    /// Adds a call that reads at most `len` bytes from `fd` into memory at address `at`, which is
    /// in the lower half of the image.
    pub(crate) fn read(&mut self, fd: u64, at: u32, len: u32) {
        let part = [at.to_le_bytes(), len.to_le_bytes()].concat();
        let (part, _) = self.text(&part);
        self.call("fd_read", &[fd, part, 1, 8]);
    }

    pub(crate) async fn run(&self, files: &Arc<Files>) -> GuestResult {
        let (output, captured) = Stream::capture(1 << 20);
        let (errors, captured_errors) = Stream::capture(1 << 16);
        let mut fds = vec![
            (0, Stream::bytes([&self.image[..], &self.calls].concat())),
            (1, output),
            (2, errors),
        ];
        fds.extend(self.fds.iter().cloned());
        let command = Command {
            argv: vec!["guest".to_owned(), "one".to_owned()],
            env: vec![("A".to_owned(), "b".to_owned())],
            cwd: "/".to_owned(),
            fds,
        };
        let outcome = guest().run(command, files, Arc::new(Echo), &self.bounds).await;
        let output = captured.take();
        let answers = output.len().saturating_sub(IMAGE);
        let (answers, image) = output.split_at(answers);
        GuestResult {
            outcome,
            answers: answers
                .chunks_exact(4)
                .map(|word| u32::from_le_bytes(word.try_into().unwrap()))
                .collect(),
            image: image.to_vec(),
            stderr: String::from_utf8_lossy(&captured_errors.take()).into_owned(),
        }
    }
}
