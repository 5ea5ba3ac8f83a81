//! Tests of behaviour that bash does not define, such as limits, messages and sessions, and tests
//! that run random scripts.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
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

const TEN_SECONDS: Duration = Duration::from_secs(10);

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
async fn an_endless_line_ends_at_a_limit_and_the_session_continues() {
    let mut session = shell().session(Arc::new(Files::overlay(None, OVERLAY_LIMIT)));
    line(&mut session, "kept=1", Duration::from_secs(5)).await;
    for (script, status, words) in [
        ("while :; do :; done", 124, "took longer"),
        ("while :; do :; done & wait", 124, "took longer"),
        ("while read x; do :; done < /dev/zero", 0, "longer than 64 KiB"),
        ("f(){ f|f & wait; }; f", 125, "at once"),
        (":(){ :|: & wait; };:", 125, "at once"),
        ("f(){ f; }; f", 125, "nested deeper"),
        ("f(){ echo $(f); }; f", 125, "nested deeper"),
        ("f(){ (f); }; f", 125, "nested deeper"),
        ("f(){ eval f; }; f", 125, "nested deeper"),
        ("echo '. /s' > /s; . /s", 125, "nested deeper"),
        ("echo 'sh /s' > /s; sh /s", 125, "nested deeper"),
        ("while :; do (:); done", 125, "more than 2000 commands"),
        ("a=x; while :; do a=$a$a; done", 125, "MiB"),
        ("a=(x); while :; do a+=(\"${a[@]}\"); done", 125, "MiB"),
        ("declare -A a; i=0; while :; do a[$((i++))]=$i$i$i$i$i$i$i$i; done", 125, "MiB"),
        ("x=$(while :; do echo yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy; done)", 125, "substitution"),
        ("x=$(</dev/zero)", 125, "substitution"),
        ("echo {1..1000000}", 125, "braces"),
        ("echo {1..80}{1..80}{1..80}", 125, "braces"),
        (": | : | : | : | : | : | : | : | : | : | : | : | : | : | : | : | : | :", 125, "stages"),
    ] {
        let limit = if status == 124 { Duration::from_secs(1) } else { Duration::from_secs(60) };
        let (_, stderr, ended) = line(&mut session, script, limit).await;
        assert_eq!(ended, status, "{script}: {stderr}");
        assert!(stderr.contains(words), "{script}: {stderr}");
        let after = line(&mut session, "echo on $kept", Duration::from_secs(5)).await;
        assert_eq!(after, ("on 1\n".into(), String::new(), 0), "after {script}");
    }
}

#[tokio::test]
async fn deeply_nested_texts_never_overflow_the_stack() {
    let nested = |open: &str, times: usize, middle: &str, close: &str| {
        format!("{}{middle}{}", open.repeat(times), close.repeat(times))
    };
    for (script, status) in [
        ("(".repeat(50_000), 2),
        ("$(".repeat(50_000), 2),
        ("{ ".repeat(50_000), 2),
        ("if ".repeat(50_000), 2),
        ("\"$(".repeat(50_000), 2),
        (format!("echo {}", "${x:-".repeat(50_000)), 2),
        (format!("[[ {}", "! ".repeat(50_000)), 2),
        (format!("[[ {}", "( ".repeat(50_000)), 2),
        (format!("echo $(({}", "(".repeat(50_000)), 2),
        (nested("echo $((", 1, &"-".repeat(50_000), "1))"), 1),
        (nested("if true; then ", 45, "echo deep; ", "fi; "), 0),
        (format!("echo {}", nested("{a,", 2_000, "", "}")), 0),
        (
            format!(
                "f() {{ {} }}; f 0",
                nested("if true; then ", 40, "if [ $1 -lt 50 ]; then f $(($1+1)); fi; ", "fi; ")
            ),
            0,
        ),
    ] {
        let output = run(&script, Duration::from_secs(5)).await;
        assert_eq!(
            output.status.0,
            status,
            "{}…: {}",
            &script[..script.len().min(60)],
            text(&output.stderr)
        );
    }
}

#[tokio::test]
async fn variables_that_refer_to_themselves_in_subscripts_are_reported() {
    for script in [
        "x=x; echo $((x))",
        "a=(1); x='a[x]'; echo $((x))",
        "s=5; x='s[x]'; echo ${s[x]}",
        "f() { x='FUNCNAME[x]'; echo $((x)); }; f",
        "declare -n r='s[r]'; s=1; echo $((r))",
        "x='s[x]'; s=1; echo ${!x}",
        "x='s[x]'; s=1; [[ x -eq 1 ]]",
        "x='s[x]'; s=1; declare -i y; y=x",
        "x='s[x]'; s=1; let 'x[x] = 1'",
        "a=(1); x='a[x]'; a[x]=1",
        "x='y[x]=1'; echo $((x))",
    ] {
        let output = run(script, Duration::from_secs(20)).await;
        let stderr = text(&output.stderr);
        assert!(stderr.contains("expression recursion level exceeded"), "{script}: {stderr}");
    }
    let nested = format!("a=1; echo $(({}0{}))", "a[".repeat(1_000), "]".repeat(1_000));
    let output = run(&nested, Duration::from_secs(20)).await;
    assert!(text(&output.stderr).contains("expression recursion level exceeded"));
}

#[tokio::test]
async fn arithmetic_ends_after_its_maximum_number_of_steps() {
    let chain = "a0=1; for i in {1..19}; do j=$((i-1)); \
                 declare a$i=\"a$j+a$j+a$j+a$j+a$j\"; done;";
    for script in [
        "echo $((a19))",
        "((a19))",
        "let a19",
        "s=1; echo ${s[a19]}",
        "[[ a19 -eq 1 ]]",
        "declare -i x; x=a19",
        "declare -ai x; x=(a6 a6 a6 a6 a6 a6 a6 a6)",
    ] {
        let output = run(&format!("{chain} {script}"), Duration::from_secs(60)).await;
        let stderr = text(&output.stderr);
        assert!(stderr.contains("more than 100000 steps"), "{script}: {stderr}");
    }
    let output = run(&format!("{chain} echo $((a5))"), Duration::from_secs(60)).await;
    assert_eq!(text(&output.stdout), "3125\n");
}

#[tokio::test]
async fn patterns_with_groups_are_matched_quickly_or_refused() {
    let long = "x=$(printf '%020000d' 0); x=${x//0/a};";
    for (script, stdout) in [
        ("[[ $x == !(*) ]]; echo $?", "1\n"),
        ("[[ $x == !(+(a)) ]]; echo $?", "1\n"),
        ("[[ $x == +(a) ]]; echo $?", "0\n"),
        ("[[ ${x}b == +(a) ]]; echo $?", "1\n"),
        ("y=${x//@(a)/b}; echo ${#y} ${y:0:2} ${y: -1}", "20000 bb b\n"),
        ("shopt -s extglob; x=äöü; echo ${x//@(ö)/-} ${x%%+(ü|ö)} ${x##!(ö)ö}", "ä-ü ä ü\n"),
    ] {
        let output = run(&format!("{long} shopt -s extglob; {script}"), TEN_SECONDS).await;
        assert_eq!(text(&output.stdout), stdout, "{script}: {}", text(&output.stderr));
    }
    for script in [
        "y=${x%%+(a|aa)*b}",
        "y=${x%+(a|aa)*b}",
        "y=${x//+(a|aa)b/c}",
        "[[ $x == *!(+(a))*!(a)b ]]",
        "case $x in *!(+(a))*!(a)b) ;; esac",
    ] {
        let output = run(&format!("{long} shopt -s extglob; {script}"), TEN_SECONDS).await;
        let stderr = text(&output.stderr);
        assert!(stderr.contains("a pattern takes too long on this text"), "{script}: {stderr}");
    }
}

#[test]
fn a_caller_with_a_small_stack_can_run_every_permitted_nesting() {
    let nested = |open: &str, middle: &str, close: &str, times: usize| {
        format!("{}{middle}{}", open.repeat(times), close.repeat(times))
    };
    let mut scripts = vec![
        "f() { if [ $1 -lt 190 ]; then f $(($1+1)); else echo a; fi; }; f 0".to_owned(),
        "f() { if [ $1 -lt 90 ]; then eval f $(($1+1)); else echo a; fi; }; f 0".to_owned(),
        "f() { f; }; f".to_owned(),
        "f() { eval f; }; f".to_owned(),
        "f() { f & wait; }; f".to_owned(),
        "f() { : | f; }; f".to_owned(),
    ];
    for times in 1..=50 {
        let substitutions = nested("$(echo ", "a", ")", times);
        scripts.extend([
            format!("echo {}", nested("${x:-", "a", "}", times)),
            format!("echo {}", nested("\"${x:-", "a", "}\"", times)),
            nested("{ ", "echo a; ", "}; ", times),
            nested("( ", "echo a", " )", times),
            nested("if true; then ", "echo a; ", "fi; ", times),
            nested("while true; do case a in a) ", "echo a;", "break;; esac; done; ", times),
            format!("{{ echo {substitutions}; }} &\nwait"),
            format!("true | echo {substitutions}"),
            format!("echo {substitutions}"),
        ]);
    }
    let run_all = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let shell = Shell::new(Arc::new(NoCommands), Bounds::default());
        for script in scripts {
            let files = Arc::new(Files::overlay(None, OVERLAY_LIMIT));
            let run = Box::pin(shell.capture(&files, &script, "", None));
            let output = runtime.block_on(run);
            let stderr = text(&output.stderr);
            let limited = stderr.contains("nested deeper") || stderr.contains("at once");
            assert!(output.stdout == b"a\n" || limited, "{script}: {stderr}");
        }
    };
    let thread = std::thread::Builder::new().stack_size(256 << 10).spawn(run_all).unwrap();
    thread.join().unwrap();
}

#[tokio::test]
async fn the_words_of_commands_have_a_maximum_total_size() {
    let x = format!("x={}\n", "a".repeat(60_000));
    for (script, status, words) in [
        (format!(": {{1..4000}}{}", "a".repeat(500)), 125, "braces"),
        (format!(": {{1..2000}}{{{}1..1}}", "0".repeat(5_000)), 125, "braces"),
        (format!(": {{{}1..4000}}", "0".repeat(5_000)), 125, "braces"),
        (format!("{x}: {}", "\"$x\" ".repeat(20)), 125, "words of the running commands"),
        (format!("{x}: {{1..20}}\"$x\""), 125, "words of the running commands"),
        (format!("{x}for i in {}; do :; done", "$x ".repeat(20)), 125, "words of the running"),
        (format!("{x}f() {{ f \"$@\" \"$x\"; }}; f"), 125, "words of the running commands"),
        (format!("{x}set -- {{1..20}}; : \"${{@/#/$x}}\""), 1, "grew too large"),
        (format!("{x}for i in {{1..40}}; do : \"$x\" \"$x\"; done"), 0, ""),
    ] {
        let output = run(&script, Duration::from_secs(60)).await;
        let stderr = text(&output.stderr);
        assert_eq!(output.status.0, status, "{}…: {stderr}", &script[script.len() - 40..]);
        assert!(stderr.contains(words), "{}…: {stderr}", &script[script.len() - 40..]);
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

#[tokio::test]
async fn ambiguous_parentheses_are_parsed_quickly() {
    for text in
        ["$((".repeat(40), "((".repeat(48), "$((($((".repeat(12), "\"$(( `echo $((".repeat(12)]
    {
        let output = run(&text, Duration::from_secs(5)).await;
        assert_eq!(output.status.0, 2, "{text}: {}", self::text(&output.stderr));
    }
    assert_eq!(text(&run("((echo a); (echo b))", Duration::from_secs(5)).await.stdout), "a\nb\n");
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

/// Strings from which random scripts are built.
const PIECES: &[&str] = &[
    "echo",
    "a",
    "b=1",
    "c=(x y)",
    "c[1]=2",
    " ",
    " ",
    " ",
    "\n",
    ";",
    "&",
    "|",
    "&&",
    "||",
    "!",
    "(",
    ")",
    "{",
    "}",
    "((",
    "))",
    "[[",
    "]]",
    "$x",
    "${c[@]}",
    "${#x}",
    "${x:-",
    "${x//a/",
    "${x%%",
    "$(",
    "`",
    "$((",
    "'",
    "\"",
    "\\",
    "<",
    ">",
    "<<E",
    "\nE\n",
    "<<<",
    "2>&1",
    ">&-",
    "&>",
    "<(",
    "/dev/null",
    "if",
    "then",
    "else",
    "fi",
    "for i in",
    "do",
    "done",
    "while",
    "until",
    "case x in",
    "esac",
    ";;",
    "function f",
    "f()",
    "f",
    "return",
    "break",
    "continue 2",
    "exit",
    "local",
    "declare -A m",
    "m[k]=v",
    "export",
    "unset",
    "read x",
    "printf '%5s%d'",
    "test",
    "[",
    "]",
    "-eq",
    "=~",
    "==",
    "*",
    "?",
    "[a-z]",
    "!(a|b)",
    "{1..3}",
    "{a,b",
    "~",
    "$@",
    "$*",
    "$#",
    "$?",
    "$!",
    "é",
    "\0",
    "\t",
    "set -e",
    "set -- 1 2",
    "shift",
    "trap f EXIT",
    "eval",
    "let x+=1",
    "wait",
    "jobs",
    "kill %1",
    "getopts ab: o",
    "mapfile",
    "select s in a",
    "time",
    "x[9223372036854775807]=1",
    "1/0",
    "-9223372036854775808",
    "shopt -s extglob",
    "cd /",
    "pushd /",
    "sh -c",
    "source /dev/stdin",
    "exec",
    "9>",
    "99999999999>",
];

fn any_script() -> impl Strategy<Value = String> {
    let pieces = proptest::collection::vec(proptest::sample::select(PIECES), 0..24)
        .prop_map(|pieces| pieces.concat());
    let spaced = proptest::collection::vec(proptest::sample::select(PIECES), 0..24)
        .prop_map(|pieces| pieces.join(" "));
    prop_oneof![2 => pieces, 3 => spaced, 1 => "\\PC{0,60}"]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    /// Tests that every script ends in time and without a panic.
    #[test]
    fn every_script_ends(script in any_script()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let output = runtime.block_on(async {
            tokio::time::timeout(
                Duration::from_secs(20),
                run(&script, Duration::from_millis(50)),
            )
            .await
        });
        let output = output.map_err(|_| TestCaseError::fail("the script does not end"))?;
        prop_assert!(!text(&output.stderr).contains("bug in the host"), "{}", text(&output.stderr));
    }
}
