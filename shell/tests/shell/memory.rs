//! Tests the limits on the memory that a shell itself uses, excluding the memory of its commands.

use std::sync::Arc;
use std::time::{Duration, Instant};

use wattle_capability::files::{Files, OVERLAY_LIMIT};
use wattle_capability::shell::Shell as _;
use wattle_rt::Account;
use wattle_shell::{Bounds, NoCommands, Shell};

const TIME: Duration = Duration::from_secs(60);

fn shell(trees: u64) -> Shell {
    let bounds = Bounds {
        parallel: 16,
        depth: 60,
        variables: 1 << 20,
        trees,
        substitution: 64 << 10,
        ..Bounds::default()
    };
    Shell::new(Arc::new(NoCommands), bounds)
}

#[tokio::test]
async fn all_that_a_shell_keeps_has_a_maximum_total_size() {
    let files = Arc::new(Files::overlay(None, OVERLAY_LIMIT));
    let commands = "a;".repeat(300);
    let define = format!("for i in {{1..9}}; do eval \"f$i() {{ {commands} }}\" || exit 9; done");
    let define_again = format!("for i in {{1..40}}; do eval 'f() {{ {commands} }}'; done");
    let eval = format!("eval 'exit 0; {}'", commands.repeat(8));
    let names = "for i in {1..40}; do eval \"f$i() { x$k=; }\" || exit 9; done";
    let shared = "a=({1..7000}); [[ $(echo $(echo $(echo $(echo ${#a[@]})))) = 7000 ]]";
    let full = "variables hold more than 1 MiB";
    let no_words = "the running commands take more than 1 MiB";
    let no_trees = "the running scripts and the functions take more than 1 MiB";
    for (script, status, words) in [
        ("declare -A m; for i in {1..40}; do m[$k$i]=; done", 125, full),
        ("for i in {1..40}; do declare \"$k$i\"; done", 125, full),
        ("f() { (trap \"$k\" INT; f); }; f", 125, full),
        ("unset k; f() { printf %060000d 0; x=$(f); }; f", 125, no_words),
        ("for i in {1..40}; do eval \"$k$i() { :; }\"; done", 2, "at most 1024 bytes"),
        (define.as_str(), 9, no_trees),
        (eval.as_str(), 2, no_trees),
        (names, 9, no_trees),
        // Subshells share the elements of an array.
        (shared, 0, ""),
        // What is removed or replaced makes room.
        ("declare -A m; for i in {1..99}; do m[$k$i]=; unset \"m[$k$i]\"; done", 0, ""),
        ("f() { local \"$k$1\"; }; for i in {1..99}; do f $i; done", 0, ""),
        ("for i in {1..99}; do a=({1..1000}); a=(); done", 0, ""),
        (define_again.as_str(), 0, ""),
    ] {
        let whole = format!("k=$(printf %047000d 0); k=k$k\n{script}");
        let output = shell(1 << 20).capture(&files, &whole, "", Some(TIME)).await;
        let stderr = String::from_utf8_lossy(&output.stderr);
        let label = &script[..script.len().min(60)];
        assert_eq!(output.status.0, status, "{label}: {stderr}");
        assert!(stderr.contains(words), "{label}: {stderr}");
    }
}

#[tokio::test]
async fn the_memory_of_a_shell_is_charged_to_the_account_of_its_run() {
    let account = Account::of_process(512 << 10);
    let files = Arc::new(Files::overlay(None, OVERLAY_LIMIT));
    let eval = format!("eval 'exit 0; {}'", "a;".repeat(3_000));
    for (script, status, words) in [
        ("x=$(printf %060000d 0)", 0, ""),
        ("x=$(printf %060000d 0); for i in {1..9}; do a[$i]=$x; done", 125, "the run has left"),
        (eval.as_str(), 2, "more memory than the run has left"),
    ] {
        let (files, script) = (Arc::clone(&files), script.to_owned());
        let until = Instant::now() + TIME;
        let output = shell(64 << 20).run(&account, files, script, Vec::new(), until).await.unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status, status, "{stderr}");
        assert!(stderr.contains(words), "{stderr}");
        // The thread of the shell may end a little later.
        while account.held() > 0 {
            assert!(Instant::now() < until, "{} bytes are still charged", account.held());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}
