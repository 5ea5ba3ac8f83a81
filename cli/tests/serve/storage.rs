//! Tests of servers whose store is locked, lost or damaged, whose file system has no locks, or
//! whose clock is wrong.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use wattle_tests::provider::{Answer, Provider};

use super::{Served, ended, wattle};

/// Maximum time until a server has answered about its state, with some time for a busy machine.
const SOON: Duration = Duration::from_secs(3);
/// Maximum time until a server has recovered.
const RECOVERED: Duration = Duration::from_secs(40);

fn provider() -> Provider {
    Provider::answering(|_| Answer::text("ToolCall::Response(\"hi\")"))
}

/// Sends a request about the server's state, and returns the response, which must come soon.
fn state(served: &Served, line: &str) -> String {
    let began = Instant::now();
    let answer = served.send("", line, "").unwrap();
    assert!(began.elapsed() < SOON, "{line}: {:?}", began.elapsed());
    answer
}

fn store(home: &Path) -> PathBuf {
    home.join(".local/share/wattle/wattle.db")
}

/// Returns the server's token, which only the first server of a home prints.
fn token(served: &Served) -> String {
    served.token.clone().unwrap()
}

/// Runs a message in a session, and returns the response.
fn chat(served: &Served, token: &str, session: &str) -> String {
    served.ask(token, &format!(r#"{{"message":"hello","session_id":"{session}"}}"#))
}

#[test]
fn a_lock_of_another_process_stops_readiness_and_never_liveness() {
    let home = tempfile::tempdir().unwrap();
    let provider = Provider::answering(|_| {
        std::thread::sleep(Duration::from_millis(1_500));
        Answer::text("ToolCall::Response(\"hi\")")
    });
    let served = Served::start(home.path(), &provider);
    assert!(state(&served, "GET /readyz").starts_with("HTTP/1.1 200"));
    let other = rusqlite::Connection::open(store(home.path())).unwrap();
    std::thread::scope(|scope| {
        for session in ["a", "b", "c", "d"] {
            let served = &served;
            scope.spawn(move || chat(served, &token(served), session));
        }
        std::thread::sleep(Duration::from_secs(1));
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(8) {
            assert!(state(&served, "GET /healthz").starts_with("HTTP/1.1 200"));
            std::thread::sleep(Duration::from_millis(200));
        }
        let answer = state(&served, "GET /readyz");
        assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
        assert!(answer.contains("another process holds the lock of the store"), "{answer}");
        other.execute_batch("ROLLBACK").unwrap();
    });
    let began = Instant::now();
    while !state(&served, "GET /readyz").starts_with("HTTP/1.1 200") {
        assert!(began.elapsed() < RECOVERED, "the server does not become ready again");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_server_whose_store_is_removed_accepts_no_runs() {
    let home = tempfile::tempdir().unwrap();
    let provider = provider();
    let served = Served::start(home.path(), &provider);
    assert!(chat(&served, &token(&served), "s").contains("hi"));
    for suffix in ["", "-wal", "-shm"] {
        std::fs::remove_file(format!("{}{suffix}", store(home.path()).display())).unwrap();
    }
    let refused = [
        state(&served, "GET /readyz"),
        served.send(&token(&served), "POST /api/run", r#"{"prompt":"hello"}"#).unwrap(),
    ];
    for answer in refused {
        assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
        assert!(answer.contains("the files of the store were removed or replaced"), "{answer}");
    }
    assert!(state(&served, "GET /healthz").starts_with("HTTP/1.1 200"));
}

#[test]
fn a_server_that_was_stopped_leaves_a_complete_file() {
    let home = tempfile::tempdir().unwrap();
    let provider = provider();
    let served = Served::start(home.path(), &provider);
    assert!(chat(&served, &token(&served), "s").contains("hi"));
    served.stop();
    let copy = home.path().join("copy.db");
    std::fs::copy(store(home.path()), &copy).unwrap();
    let shown = ended(&mut wattle(home.path(), &["session", "list", "--store", "copy.db"]));
    assert!(shown.0 == Some(0), "{shown:?}");
    let query = "SELECT COUNT(*) FROM message";
    let copied = rusqlite::Connection::open(copy).unwrap();
    let messages: i64 = copied.query_row(query, [], |row| row.get(0)).unwrap();
    assert_eq!(messages, 2);
}

#[test]
fn a_damaged_store_is_refused_with_what_to_do() {
    let home = tempfile::tempdir().unwrap();
    let provider = provider();
    let served = Served::start(home.path(), &provider);
    assert!(chat(&served, &token(&served), "s").contains("hi"));
    served.stop();
    let path = store(home.path());
    let mut content = std::fs::read(&path).unwrap();
    let page = content.len() / 4_096 / 2 * 4_096;
    content[page..page + 4_096].fill(0xA5);
    std::fs::write(&path, content).unwrap();
    let url = provider.base_url();
    let serve = ["serve", "--listen", "127.0.0.1:0", "--base-url", &url, "--model", "m"];
    for args in [&serve[..], &["doctor", "--base-url", &url, "--model", "m"]] {
        let done = wattle(home.path(), args).output().unwrap();
        assert!(!done.status.success(), "{done:?}");
        let text = [done.stdout, done.stderr].concat();
        let text = String::from_utf8_lossy(&text).replace("\n                  ", " ");
        for part in ["restore a back-up", "`wattle store check`", "`wattle store copy"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("SELECT"), "{text}");
    }
}

/// Compiles a library that replaces functions of the C library.
#[cfg(target_os = "linux")]
fn preload(folder: &Path, name: &str, source: &str) -> PathBuf {
    let (code, library) = (folder.join(name).with_extension("c"), folder.join(name));
    std::fs::write(&code, source).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&code).arg("-ldl");
    assert!(compiler.status().unwrap().success());
    library
}

/// A clock that is ahead by `CLOCK_AHEAD` seconds.
#[cfg(target_os = "linux")]
const CLOCK: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
int clock_gettime(clockid_t id, struct timespec *time) {
    int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
    int done = real(id, time);
    if (id == CLOCK_REALTIME) time->tv_sec += atol(getenv("CLOCK_AHEAD"));
    return done;
}
"#;

/// Starts a server, with a clock that is ahead by a number of seconds.
#[cfg(target_os = "linux")]
fn start_ahead(home: &Path, provider: &Provider, more: &[&str], seconds: u64) -> Served {
    let library = preload(home, "clock.so", CLOCK);
    let ahead =
        [("LD_PRELOAD", library.display().to_string()), ("CLOCK_AHEAD", seconds.to_string())];
    Served::start_in(home, provider, more, &ahead)
}

/// Checks that a session and a run are kept by a server whose clock is ahead.
#[cfg(target_os = "linux")]
fn is_kept(more: &[&str], seconds: u64) {
    let home = tempfile::tempdir().unwrap();
    let provider = provider();
    let served = Served::start_with(home.path(), &provider, more);
    let token = token(&served);
    assert!(chat(&served, &token, "s").contains("hi"));
    served.stop();
    let served = start_ahead(home.path(), &provider, more, seconds);
    assert!(chat(&served, &token, "other").contains("hi"));
    // The server removes old data when it starts.
    std::thread::sleep(Duration::from_secs(1));
    let sessions = served.send(&token, "GET /api/sessions", "").unwrap();
    assert!(sessions.contains("\"id\":\"s\""), "{sessions}");
    let runs = served.send(&token, "GET /api/runs", "").unwrap();
    assert_eq!(runs.matches("\"session_id\":").count(), 2, "{runs}");
    served.stop();
}

#[test]
#[cfg(target_os = "linux")]
fn a_server_whose_clock_is_ahead_removes_nothing() {
    is_kept(&[], 40 * 24 * 3_600);
    is_kept(&[], 2 * 3_600);
}

#[test]
#[cfg(target_os = "linux")]
#[ignore = "needs PostgreSQL"]
fn a_replica_whose_clock_is_ahead_removes_nothing() {
    let url = wattle_cases::postgres::own_url().unwrap();
    is_kept(&["--store", &url], 2 * 3_600);
}

#[test]
#[cfg(target_os = "linux")]
fn a_file_system_without_locks_is_named() {
    let home = tempfile::tempdir().unwrap();
    let library = preload(
        home.path(),
        "locks.so",
        r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
static int change(const char *name, int file, int command, void *argument) {
    int (*real)(int, int, ...) = dlsym(RTLD_NEXT, name);
    if (command == F_SETLK || command == F_SETLKW) { errno = ENOLCK; return -1; }
    return real(file, command, argument);
}
#define REPLACE(name) int name(int file, int command, ...) { \
    va_list rest; va_start(rest, command); \
    void *argument = va_arg(rest, void *); va_end(rest); \
    return change(#name, file, command, argument); }
REPLACE(fcntl)
REPLACE(fcntl64)
"#,
    );
    let mut command = wattle(home.path(), &["vars", "set", "a", "b"]);
    let began = Instant::now();
    let (code, text) = ended(command.env("LD_PRELOAD", library));
    assert_ne!(code, Some(0));
    assert!(text.contains("the file system of the store refuses to lock files"), "{text}");
    assert!(text.contains("hint: keep the store on a local disk"), "{text}");
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
}
