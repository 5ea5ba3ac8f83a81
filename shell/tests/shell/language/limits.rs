//! Tests that every script ends at a limit, whatever it repeats, nests or computes.

use std::sync::Arc;
use std::time::Duration;

use wattle_capability::files::{Files, OVERLAY_LIMIT};
use wattle_shell::{Bounds, NoCommands, Shell};

use super::{line, run, shell, text};

const TEN_SECONDS: Duration = Duration::from_secs(10);

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
async fn loops_over_large_arrays_and_many_patterns_are_fast() {
    let arms: String = (0..100).map(|at| format!("*a{at}b*) echo {at};; ")).collect();
    let case = format!("for i in {{1..300}}; do case $i in {arms} esac; done; echo $i");
    let unset = "for i in {1..1000}; do a+=(1 2 3 4 5 6 7 8 9 0); done
        for i in {0..2999}; do unset \"a[$i]\"; done; echo ${#a[@]}";
    for (script, stdout) in [(unset, "7000\n"), (case.as_str(), "300\n")] {
        let output = run(script, Duration::from_secs(20)).await;
        assert_eq!(text(&output.stdout), stdout, "{script}: {}", text(&output.stderr));
    }
}

#[tokio::test]
async fn an_alias_beyond_the_limits_is_reported() {
    let long = "x".repeat(10_001);
    for script in [
        format!("alias a={long}"),
        format!("alias {long}=a"),
        "for i in {1..1001}; do alias a$i=b || exit; done".to_owned(),
    ] {
        let output = run(&script, Duration::from_secs(20)).await;
        assert_eq!(output.status.0, 1);
        let stderr = text(&output.stderr);
        assert!(stderr.contains("a shell has at most 1000 aliases"), "{stderr}");
        assert!(stderr.len() < 500, "{} bytes", stderr.len());
    }
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
async fn ambiguous_parentheses_are_parsed_quickly() {
    for text in
        ["$((".repeat(40), "((".repeat(48), "$((($((".repeat(12), "\"$(( `echo $((".repeat(12)]
    {
        let output = run(&text, Duration::from_secs(5)).await;
        assert_eq!(output.status.0, 2, "{text}: {}", self::text(&output.stderr));
    }
    assert_eq!(text(&run("((echo a); (echo b))", Duration::from_secs(5)).await.stdout), "a\nb\n");
}
