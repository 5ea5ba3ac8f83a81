//! Measures how long the binary takes to print its version, to run a program from a file and print
//! its result, and to start a server and answer its first HTTP request. The benchmark `true`
//! starts a process that does nothing. Its time is the lower bound. Also prints the memory usage
//! of an idle server.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a bench that cannot go on has failed"
)]

mod serve;

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};

use serve::Server;

/// An endpoint that is never used.
const ENDPOINT: &str = "http://127.0.0.1:9/v1";

fn answer(server: &Server) {
    let mut text = String::new();
    server.send("GET /api/catalog", "").read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 200") && text.contains("file_read"), "{text}");
}

fn start(c: &mut Criterion) {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("hello.wat");
    std::fs::write(&program, "(resv \"hello\") (i32.const 0)").unwrap();
    let mut group = c.benchmark_group("start");
    group.bench_function("wattle --version", |b| {
        b.iter(|| {
            let output = Command::new(env!("CARGO_BIN_EXE_wattle")).arg("--version").output();
            assert!(output.unwrap().stdout.starts_with(b"wattle "));
        });
    });
    group.bench_function("wattle exec", |b| {
        b.iter(|| {
            let mut wattle = Command::new(env!("CARGO_BIN_EXE_wattle"));
            let output =
                wattle.arg("exec").arg(&program).current_dir(folder.path()).output().unwrap();
            assert_eq!(output.stdout, b"hello\n");
        });
    });
    group.bench_function("wattle exec of a catalog program", |b| {
        b.iter(|| {
            let mut wattle = Command::new(env!("CARGO_BIN_EXE_wattle"));
            let wattle = wattle.args(["exec", "text_sort", "b\na"]).current_dir(folder.path());
            assert_eq!(wattle.output().unwrap().stdout, b"a\nb\n");
        });
    });
    // The first server fills the cache of compiled modules.
    answer(&Server::start(ENDPOINT, folder.path(), &[]));
    group.bench_function("wattle serve", |b| {
        b.iter_with_large_drop(|| {
            let server = Server::start(ENDPOINT, folder.path(), &[]);
            answer(&server);
            server
        });
    });
    group.bench_function("true", |b| {
        b.iter(|| assert!(Command::new("true").stdout(Stdio::null()).status().unwrap().success()));
    });
    group.finish();
    let server = Server::start(ENDPOINT, folder.path(), &[]);
    answer(&server);
    std::thread::sleep(Duration::from_secs(2));
    println!("a server with nothing to do: {:.1} MiB", server.memory() as f64 / 1024.0);
}

criterion_group!(benches, start);
criterion_main!(benches);
