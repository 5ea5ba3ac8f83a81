//! Measures the time to start the process, run a program from a file and print its result. The
//! benchmark `true` is the lower bound: a process that does nothing.

#![allow(clippy::unwrap_used, reason = "a bench that cannot go on has failed")]

use std::process::{Command, Stdio};

use criterion::{Criterion, criterion_group, criterion_main};

fn start(c: &mut Criterion) {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("hello.wat");
    std::fs::write(&program, "(resv \"hello\") (i32.const 0)").unwrap();
    let mut group = c.benchmark_group("start");
    group.bench_function("wattle exec", |b| {
        b.iter(|| {
            let mut wattle = Command::new(env!("CARGO_BIN_EXE_wattle"));
            let output =
                wattle.arg("exec").arg(&program).current_dir(folder.path()).output().unwrap();
            assert_eq!(output.stdout, b"hello\n");
        });
    });
    group.bench_function("true", |b| {
        b.iter(|| assert!(Command::new("true").stdout(Stdio::null()).status().unwrap().success()));
    });
    group.finish();
}

criterion_group!(benches, start);
criterion_main!(benches);
