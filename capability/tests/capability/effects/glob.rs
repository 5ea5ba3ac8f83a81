//! Tests of glob patterns for the run's files.

use std::sync::Arc;

use wattle_capability::files::Files;
use wattle_capability::fs::Fs;
use wattle_capability::policy::{Policy, Preflight};
use wattle_rt::{Code, Grants, Outcome};

use super::{failure, json};
use crate::world::World;

const GLOB: &str = "(ret (arr.to_json? (fs.glob? (arg 0))))";

fn files() -> Files {
    let files = Files::overlay(None, 1 << 20);
    for path in [
        "a.txt",
        "b.md",
        ".hidden.txt",
        "src/main.rs",
        "src/lib.rs",
        "src/net/http.rs",
        "src/net/deep/tls.rs",
        "src/.cache/x.rs",
        "docs/a.txt",
        "odd/[1].txt",
        "odd/{a}.txt",
    ] {
        files.write(path, b"x").unwrap();
    }
    files.mkdir("empty").unwrap();
    files.symlink("src/net", "link").unwrap();
    files.symlink("../a.txt", "docs/link.txt").unwrap();
    files.symlink("nowhere", "dangling.txt").unwrap();
    files
}

fn grants(files: Files) -> Grants {
    (*World::new().grants()).clone().with(Fs(Arc::new(files)))
}

async fn glob(grants: &Grants, pattern: &str) -> Outcome {
    World::new().run_granted(GLOB, &[pattern], &Arc::new(grants.clone())).await.unwrap()
}

#[tokio::test]
async fn files_are_found_by_pattern() {
    let grants = grants(files());
    for (pattern, expected) in [
        ("*", &["a.txt", "b.md"][..]),
        ("*.txt", &["a.txt"]),
        (".*", &[".hidden.txt"]),
        (
            "**",
            &[
                "a.txt",
                "b.md",
                "docs/a.txt",
                "odd/[1].txt",
                "odd/{a}.txt",
                "src/lib.rs",
                "src/main.rs",
                "src/net/deep/tls.rs",
                "src/net/http.rs",
            ],
        ),
        ("**/*.rs", &["src/lib.rs", "src/main.rs", "src/net/deep/tls.rs", "src/net/http.rs"]),
        ("src/**/*.rs", &["src/lib.rs", "src/main.rs", "src/net/deep/tls.rs", "src/net/http.rs"]),
        ("src/*.rs", &["src/lib.rs", "src/main.rs"]),
        ("/src/./*.rs", &["src/lib.rs", "src/main.rs"]),
        ("docs/../src/[lm]*", &["src/lib.rs", "src/main.rs"]),
        (
            "*/*.{txt,rs}",
            &[
                "docs/a.txt",
                "docs/link.txt",
                "link/http.rs",
                "odd/[1].txt",
                "odd/{a}.txt",
                "src/lib.rs",
                "src/main.rs",
            ],
        ),
        ("link/*", &["link/http.rs"]),
        ("**/deep/**", &["src/net/deep/tls.rs"]),
        ("**/net/**/*.rs", &["src/net/deep/tls.rs", "src/net/http.rs"]),
        ("src/net", &[]),
        ("a.txt", &["a.txt"]),
        ("dangling.txt", &[]),
        ("none/*.txt", &[]),
        ("a.txt/*", &[]),
        ("odd/[[]1].txt", &["odd/[1].txt"]),
        ("odd/\\[1].txt", &["odd/[1].txt"]),
        ("*/", &["docs/", "empty/", "link/", "odd/", "src/"]),
        ("src/**/", &["src/net/", "src/net/deep/"]),
        ("src/{main,lib}.rs", &["src/lib.rs", "src/main.rs"]),
        ("src/.*/*", &["src/.cache/x.rs"]),
    ] {
        let found = json(&glob(&grants, pattern).await);
        assert_eq!(found, serde_json::json!(expected), "{pattern}");
    }
}

#[tokio::test]
async fn a_pattern_stays_in_the_workdir() {
    let grants = grants(files());
    for (pattern, code, words) in [
        ("../*", Code::EACCESS, ""),
        ("src/../../*", Code::EACCESS, ""),
        ("../../etc/passwd", Code::EACCESS, ""),
        ("*/../*", Code::EPARSE, "`..` follows a wildcard"),
        ("", Code::EPARSE, "names no file"),
        ("{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}", Code::EBOUND, "more than 256"),
    ] {
        let (found, why) = failure(&glob(&grants, pattern).await);
        assert_eq!(found, code, "{pattern}: {why}");
        assert!(why.contains(words), "{pattern}: {why}");
    }
}

#[tokio::test]
async fn folders_that_may_not_be_read_are_skipped_unless_they_are_named() {
    let policy = Policy::new(Vec::new(), Vec::new(), vec!["read:src/net".parse().unwrap()]);
    let grants = grants(files()).guarded(Arc::new(Preflight::new(policy, None)));
    let found = json(&glob(&grants, "src/**/*.rs").await);
    assert_eq!(found, serde_json::json!(["src/lib.rs", "src/main.rs"]));
    let (code, why) = failure(&glob(&grants, "src/net/*.rs").await);
    assert_eq!(code, Code::EACCESS, "{why}");
}

#[tokio::test]
async fn what_a_pattern_finds_is_limited() {
    let files = Files::overlay(None, 64 << 20);
    for n in 0..50_001 {
        files.write(&format!("d{}/{n}", n % 100), b"").unwrap();
    }
    let grants = grants(files);
    let (code, why) = failure(&glob(&grants, "**").await);
    assert_eq!(code, Code::EBOUND, "{why}");
    assert!(why.contains("more than 50,000 paths"), "{why}");
    let some = json(&glob(&grants, "d7/*").await);
    assert_eq!(some.as_array().map(Vec::len), Some(500));
}
