//! Tests of `vfs`, which reads and writes whole files.

use wattle_rt::Code;

use super::failure;
use crate::world::World;

const OUTSIDE: &str = "is outside the run's folder; only files in it can be written";

#[tokio::test]
async fn files_are_shared_with_fs_and_paths_stay_inside() {
    let world = World::new();
    let text = r#"(vfs.write? (arg 0) "one") (out (fs.read? (arg 0))) (fs.write? (arg 0) "two") (ret (vfs.read? (arg 0)))"#;
    for path in ["a.txt", "/deep/er/a.txt"] {
        assert_eq!(world.run(text, &[path]).await.unwrap().texts(), ["one", "two"], "{path}");
    }
    let (read, write) = ("(ret (vfs.read? (arg 0)))", "(vfs.write? (arg 0) \"x\")");
    for (text, path, code, words) in [
        (read, "none", Code::ENOENT, "none"),
        (read, "deep", Code::EKIND, "deep"),
        (
            read,
            "/etc/shadow",
            Code::EACCESS,
            "/etc/shadow is outside the run's folder; only files in it can be read",
        ),
        (
            read,
            "../etc/passwd",
            Code::EACCESS,
            "../etc/passwd is outside the run's folder; only files in it can be read",
        ),
        (write, "../a", Code::EACCESS, OUTSIDE),
        (write, "/../a", Code::EACCESS, OUTSIDE),
        (
            write,
            "_issues.jsonl",
            Code::EACCESS,
            "`_issues.jsonl` is the list of tickets, which only the host writes",
        ),
        (write, "a.txt/b", Code::EKIND, "a.txt"),
    ] {
        let (found, why) = failure(&world.run(text, &[path]).await.unwrap());
        assert_eq!(found, code, "{path}: {why}");
        assert!(why.contains(words), "{path}: {why}");
    }
}
