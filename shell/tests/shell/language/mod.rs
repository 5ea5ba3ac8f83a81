//! Tests of behaviour that bash does not define, such as limits, messages and sessions, and tests
//! that run random scripts.

mod limits;
mod random;

use std::sync::Arc;
use std::time::Duration;

use wattle_capability::files::{Files, OVERLAY_LIMIT, PathGuard};
use wattle_rt::Target;
use wattle_shell::{Bounds, NoCommands, Output, Session, Shell, Stdio, Stream};

fn bounds() -> Bounds {
    Bounds {
        commands: 2_000,
        parallel: 16,
        depth: 60,
        variables: 1 << 20,
        substitution: 64 << 10,
        words: 5_000,
        ..Bounds::default()
    }
}

fn shell() -> Shell {
    Shell::new(Arc::new(NoCommands), bounds())
}

async fn run(script: &str, deadline: Duration) -> Output {
    let files = Arc::new(Files::overlay(None, OVERLAY_LIMIT));
    shell().capture(&files, script, "", Some(deadline)).await
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs a line of a session. Returns its standard output, standard error and status.
async fn line(session: &mut Session, line: &str, deadline: Duration) -> (String, String, u8) {
    let (stdout, out) = Stream::capture(1 << 16);
    let (stderr, err) = Stream::capture(1 << 16);
    let status =
        session.run(line, Stdio { stdin: Stream::null(), stdout, stderr }, Some(deadline)).await;
    (text(&out.take()), text(&err.take()), status.0)
}

#[tokio::test]
async fn a_redirection_through_a_link_that_may_not_be_written_to_creates_no_file() {
    let files = Files::overlay(None, OVERLAY_LIMIT);
    files.mkdir("vault").unwrap();
    files.symlink("vault", "open").unwrap();
    let guard: PathGuard = Arc::new(|target: Target, path: &str| match target {
        Target::Write if path.starts_with("open") => Err("denied".to_owned()),
        _ => Ok(()),
    });
    let guarded = Arc::new(files.guarded(guard));
    for script in ["echo x > open/new", "echo x >> open/new", "exec 3<> open/new"] {
        let output = shell().capture(&guarded, script, "", None).await;
        assert_ne!(output.status.0, 0, "{script}");
        assert!(files.list("vault").unwrap().is_empty(), "{script}");
    }
}

#[tokio::test]
async fn mistakes_are_reported() {
    for (script, status, words) in [
        (
            "echo a\nif true; then\necho b",
            2,
            "syntax error in line 3: unexpected end of the script: expected `fi` for the `if` in \
             line 2",
        ),
        ("echo 'open", 2, "the quote `'` is not closed"),
        ("echo \"open", 2, "the quote `\"` is not closed"),
        ("cat <<END\nbody", 2, "expected a line that is `END`"),
        ("for x in a b; done", 2, "expected `do` for the `for` in line 1"),
        (
            "while true; do echo; fi",
            2,
            "unexpected `fi`: expected `done` for the `while` in line 1",
        ),
        ("echo )", 2, "unexpected `)`"),
        ("echo (a)", 2, "unexpected `(`"),
        ("| cat", 2, "expected a command"),
        ("case x in a) echo", 2, "expected `esac`"),
        ("x=(1 2", 2, "expected `)` for the array"),
        ("echo ${x", 2, "expected `}`"),
        ("coproc cat", 2, "`coproc` is not supported"),
        ("ehco hi", 127, "ehco: command not found; there are: echo"),
        ("git push", 127, "there is no version control here"),
        ("/usr/bin/python3 x.py", 127, "there is no such interpreter here"),
        ("curl http://x", 127, "the shell has no network"),
        ("sudo ls", 127, "run the command without it"),
        ("./nothing.sh", 127, "No such file or directory"),
        ("echo > ../x", 1, "../x is outside the run's folder; only files in it can be written\n"),
        ("echo > /etc/passwd", 1, "/etc/passwd is outside the run's folder; only"),
        ("read x < ../x", 1, "../x is outside the run's folder; only files in it can be read\n"),
        ("read x < /etc/shadow", 1, "/etc/shadow is outside the run's folder; only"),
        (". /etc/profile", 1, "/etc/profile is outside the run's folder; only"),
        ("sh /opt/x.sh", 127, "/opt/x.sh is outside the run's folder; only"),
        ("/etc/init.d/x", 127, "/etc/init.d/x is outside the run's folder; only"),
        ("cd ..", 1, "cd: .. is outside the run's folder; only files in it can be read\n"),
        ("cd /etc", 1, "cd: /etc is outside the run's folder; only files in it can be read\n"),
        ("cd etc", 1, "cd: etc: No such file or directory"),
        ("echo $((1 +))", 1, "operand expected"),
        ("echo $((1/0))", 1, "division by 0"),
        ("readonly a=1; a=2", 1, "a: readonly variable"),
        ("set -u; echo $nothing", 127, "nothing: unbound variable"),
        ("[ a -xx b ]", 2, "binary operator expected"),
        ("[[ a =~ ( ]]", 2, "expected"),
    ] {
        let output = run(script, Duration::from_secs(5)).await;
        let stderr = text(&output.stderr);
        assert!(stderr.contains(words), "{script}: {stderr}");
        assert_eq!(output.status.0, status, "{script}: {stderr}");
        assert!(output.stdout.is_empty(), "{script}: nothing runs before the whole text is parsed");
    }
}

#[tokio::test]
async fn a_session_keeps_the_settings_of_its_lines() {
    let mut session = shell().session(Arc::new(Files::overlay(None, OVERLAY_LIMIT)));
    let second = Duration::from_secs(5);
    line(&mut session, "x=1; f() { echo f $x; }; set -u; echo > file", second).await;
    assert_eq!(line(&mut session, "x=2; f", second).await.0, "f 2\n");
    assert_eq!(line(&mut session, "echo $nothing", second).await.2, 127);
    assert_eq!(line(&mut session, "echo $?", second).await.0, "127\n");
    assert!(!session.has_exited(), "a mistake does not end a session");
    assert_eq!(
        line(&mut session, "trap 'echo bye' EXIT; exit 3", second).await,
        ("bye\n".into(), String::new(), 3)
    );
    assert!(session.has_exited());
}

#[tokio::test]
async fn a_dropped_line_leaves_the_session_unchanged() {
    let mut session = shell().session(Arc::new(Files::overlay(None, OVERLAY_LIMIT)));
    line(&mut session, "x=before", Duration::from_secs(5)).await;
    let dropped = tokio::time::timeout(
        Duration::from_millis(50),
        line(
            &mut session,
            "x=during; f() { f2; }; f2() { while :; do :; done; }; f",
            Duration::from_secs(60),
        ),
    );
    assert!(dropped.await.is_err());
    assert_eq!(session.variable("x").as_deref(), Some("before"));
    assert_eq!(line(&mut session, "echo $x", Duration::from_secs(5)).await.0, "before\n");
}

#[test]
fn an_incomplete_text_is_recognized() {
    for (text, open) in [
        ("echo hi", false),
        ("if true; then", true),
        ("for x in a b; do\necho $x", true),
        ("echo 'a", true),
        ("cat <<E\nbody\n", true),
        ("f() {", true),
        ("x=(1", true),
        ("echo $(", true),
        ("a &&", true),
        ("fi", false),
        ("echo )", false),
    ] {
        assert_eq!(Session::is_incomplete(text), open, "{text}");
    }
}
