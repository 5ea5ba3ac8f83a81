//! Tests that untrusted text in the output of commands cannot control the terminal.

use rexpect::reader::Options;
use rexpect::session::spawn_with_options;
use wattle_tests::provider::{Answer, Provider};

use crate::terminal::Place;

/// Text with control characters and with control sequences in their C0 and C1 forms. They clear the
/// screen, access the clipboard, change colours, or overwrite, reorder or hide text.
const HOSTILE: &str = "A\u{1b}[2JB\u{1b}]52;c;aGk=\u{7}C\u{9b}31mD\u{8}\u{8}E\rF\u{202e}G\\
                       u{2066}H\u{2028}I\u{e0041}J\u{7f}K";

/// Runs a command on a terminal that has no control sequences, and returns its output.
fn shows(place: &Place, args: &[&str], typed: &str) -> String {
    let mut command = place.command(args);
    command.env("TERM", "dumb");
    output_of(command, typed)
}

/// Runs a command on a terminal with colours and returns its output.
fn shows_styled(place: &Place, args: &[&str]) -> String {
    let mut command = place.command(args);
    command.env("TERM", "xterm");
    output_of(command, "")
}

fn output_of(command: std::process::Command, typed: &str) -> String {
    let options = Options::new().timeout_ms(Some(300_000)).strip_ansi_escape_codes(false);
    let mut session = spawn_with_options(command, options).unwrap();
    if !typed.is_empty() {
        session.send(typed).unwrap();
        session.flush().unwrap();
    }
    // The session reads each byte as one character.
    let bytes: Vec<u8> =
        session.exp_eof().unwrap().chars().map(|c| u8::try_from(c).unwrap()).collect();
    String::from_utf8(bytes).unwrap()
}

/// Fails if the output would control a terminal or does not contain `has`.
#[track_caller]
fn harmless(shown: &str, has: &str) {
    let text = shown.replace("\r\n", "\n");
    let acts = |c: &char| {
        c.is_control() && *c != '\n' && *c != '\t'
            || "\u{202e}\u{2066}\u{2028}\u{e0041}".contains(*c)
    };
    assert_eq!(text.chars().find(acts), None, "{shown:?}");
    assert!(shown.contains(has), "{has:?} is missing in {shown:?}");
}

fn wat_text(text: &str) -> String {
    text.bytes().map(|byte| format!("\\{byte:02x}")).collect()
}

#[test]
fn programs_files_and_names_cannot_control_the_terminal() {
    let place = Place::new();
    let program = format!("(ret \"{}\\9b1m\\ff\")", wat_text(HOSTILE));
    std::fs::write(place.work("evil.wat"), program).unwrap();
    harmless(
        &shows(&place, &["exec", "evil.wat"], ""),
        "A\\u{1b}[2JB\\u{1b}]52;c;aGk=\\u{7}C\\u{9b}31mD\\u{8}\\u{8}E\\u{d}F",
    );
    harmless(&shows(&place, &["exec", "evil.wat", "--json"], ""), "A\\u001b[2JB");

    std::fs::write(place.work(HOSTILE), HOSTILE).unwrap();
    harmless(
        &shows(&place, &["shell", "-c", "ls; cat A*; cat A* >&2; cat /A*x; nothing$(cat A*)"], ""),
        "A\\u{1b}[2JB",
    );
    harmless(
        &shows(&place, &["shell", "-c", "printf 'x\\302'; printf '\\233\\n'; printf 'y\\302'"], ""),
        "x\\u{9b}\r\ny\\xc2",
    );
    harmless(&shows(&place, &["exec", HOSTILE], ""), "1 | A [2JB");
    harmless(&shows(&place, &["check", HOSTILE], ""), "A\\u{1b}[2JB");
    harmless(&shows(&place, &["check", "--authority", HOSTILE], ""), "A\\u{1b}[2JB");
    harmless(&shows(&place, &["expand", HOSTILE], ""), "error");
    harmless(
        &shows(&place, &["run", "x", "--model", HOSTILE, "--provider", HOSTILE], ""),
        "A\\u{1b}[2JB",
    );
    harmless(&shows(&place, &["config", "show", "--model", HOSTILE], ""), "model = ");
    harmless(&shows(&place, &["rn", HOSTILE], ""), "unrecognized subcommand");
    harmless(&shows(&place, &["catalog", "search", HOSTILE], ""), "");

    std::fs::create_dir(place.work("tools")).unwrap();
    let front = ";;; name = \"evil\"\n;;; description = \"A\\u001b[2JB\\u009bC\\u202eD\"\n(ret \
                 \"x\") ;; \u{1b}[2J\u{9b}\n";
    std::fs::write(place.work("tools/evil.wat"), front).unwrap();
    std::fs::write(place.work("tools/broken\u{1b}[2J.wat"), "x").unwrap();
    for command in ["list", "test", "show"] {
        let args = [
            &["catalog", command][..],
            if command == "show" { &["evil"] } else { &[] },
            &["--catalog", "tools"],
        ]
        .concat();
        harmless(
            &shows(&place, &args, ""),
            if command == "test" {
                "broken\\u{1b}[2J.wat"
            } else {
                "A\\u{1b}[2JB\\u{9b}C\\u{202e}D"
            },
        );
    }

    harmless(&shows(&place, &["vars", "set", HOSTILE, HOSTILE], ""), "");
    harmless(&shows(&place, &["vars", "list"], ""), "A\\u{1b}[2JB");
    harmless(&shows(&place, &["vars", "get", HOSTILE], ""), "A\\u{1b}[2JB");
    harmless(&shows(&place, &["vars", "list", "--json"], ""), "A\\u001b[2JB");
}

#[test]
fn a_model_and_its_provider_cannot_control_the_terminal() {
    let place = Place::new();
    let answer = || {
        Answer::text(format!(
            "<reasoning>{HOSTILE}</reasoning>\nToolCall::Response(\"\"\"\n{HOSTILE}\n\"\"\")"
        ))
    };
    let provider = Provider::start([answer(), answer(), Answer::status(400).with_body(HOSTILE)]);
    let url = provider.base_url();
    let run = |more: &[&str]| {
        let args = [&["run", HOSTILE, "--base-url", &url, "--model", "m"], more].concat();
        shows(&place, &args, "")
    };
    harmless(&run(&["--session", "s"]), "A\\u{1b}[2JB\\u{1b}]52;c;aGk=\\u{7}C");
    harmless(&run(&["--json"]), "A\\u001b[2JB");
    harmless(&run(&[]), "error:");
    for command in [
        &["session", "show", "s"][..],
        &["session", "list"],
        &["runs"],
        &["trace", "show"],
        &["trace", "feed"],
    ] {
        harmless(&shows(&place, command, ""), "");
    }
}

#[test]
fn the_answer_of_a_run_is_rendered_at_a_terminal() {
    let place = Place::new();
    let answer = format!("ToolCall::Response(\"\"\"\n# Totals\n\n- **one** {HOSTILE}\n\"\"\")");
    let provider = Provider::start([Answer::text(answer)]);
    let url = provider.base_url();
    let shown = shows_styled(&place, &["run", "count", "--base-url", &url, "--model", "m"]);
    assert!(shown.contains("Totals") && !shown.contains("# Totals"), "{shown:?}");
    assert!(!shown.contains("**one**"), "{shown:?}");
    for sequence in ["\u{1b}[2J", "\u{1b}]52", "\u{9b}31m", "\u{202e}"] {
        assert!(!shown.contains(sequence), "{shown:?}");
    }
}

#[test]
fn without_colours_the_progress_and_the_layout_of_the_answer_stay() {
    let place = Place::new();
    let answer = Answer::text("ToolCall::Response(\"\"\"\n# Totals\n\n- **one**\n  two\n\"\"\")");
    let provider =
        Provider::start([answer.pieces(200).pause(std::time::Duration::from_millis(30))]);
    let url = provider.base_url();
    let mut command = place.command(&["run", "count", "--base-url", &url, "--model", "m"]);
    command.env("TERM", "xterm").env("NO_COLOR", "1");
    let shown = output_of(command, "");
    for part in ["s · model", "Totals\r\n", "• one\r\n  two\r\n"] {
        assert!(shown.contains(part), "{part:?} is missing in {shown:?}");
    }
    let is_style = |after: &str| {
        after.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';').starts_with('m')
    };
    assert!(!shown.split("\u{1b}[").skip(1).any(is_style), "{shown:?}");
}

#[test]
fn the_lines_of_a_trace_cannot_control_the_terminal() {
    let place = Place::new();
    let line = serde_json::json!({
        "run_id": HOSTILE, "agent": HOSTILE, "step": 1, "tool": HOSTILE, "args": [HOSTILE],
        "output": HOSTILE, "error": HOSTILE, "exit_code": 1, "dur_ms": 1, "ts": 1,
    });
    std::fs::write(place.work("_steps.jsonl"), format!("{line}\n")).unwrap();
    for command in [
        &["trace", "show"][..],
        &["trace", "digest"],
        &["trace", "feed"],
        &["trace", "query", ".[]"],
        &["telemetry"],
    ] {
        harmless(&shows(&place, command, ""), "");
    }
}

#[test]
fn the_user_is_asked_once_to_trust_a_folder() {
    let place = Place::new();
    let write = |text: &str| std::fs::write(place.work("wattle.toml"), text).unwrap();
    std::fs::write(place.work("a.wat"), "(ret \"the result\")").unwrap();
    write("session_ttl = \"1ms\"\nmodel = \"evil\\u001b[2J\"\nmax_steps = 2\n");
    let exec = |typed: &str| shows(&place, &["exec", "a.wat"], typed);
    let asked = exec("n\r");
    harmless(&asked, "session_ttl = \"1ms\" (without the file: \"1h\")");
    assert!(
        asked.contains("trust it?") && asked.contains("the result") && !asked.contains("max_steps"),
        "{asked}"
    );
    let again = exec("");
    assert!(
        !again.contains("trust it?")
            && again.contains("has no effect")
            && again.contains("the result"),
        "{again}"
    );
    write("session_ttl = \"2ms\"\n");
    assert!(exec("y\r").contains("trust it?"));
    let trusted = exec("");
    assert!(!trusted.contains("trust it?") && !trusted.contains("has no effect"), "{trusted}");
    write("session_ttl = \"3ms\"\n");
    let changed = exec("\r");
    assert!(
        changed.contains("session_ttl was \"2ms\" and is \"3ms\"") && changed.contains("trust it?"),
        "{changed}"
    );
}

#[test]
fn the_user_is_asked_once_to_trust_the_skills_and_instructions_of_a_project() {
    let place = Place::new();
    let skill = |name: &str, text: &str| {
        let folder = place.work(&format!(".agents/skills/{name}"));
        std::fs::create_dir_all(&folder).unwrap();
        let text = format!("---\nname: {name}\ndescription: \"{text}\"\n---\nRead it.\n");
        std::fs::write(folder.join("SKILL.md"), text).unwrap();
    };
    std::fs::write(place.work("AGENTS.md"), "Be brief.\n").unwrap();
    skill("evil", "Runs. \\e[2J\\u202e");
    skill("good", "Works.");
    let provider = Provider::answering(|_| Answer::text("ToolCall::Response(\"done\")"));
    let url = provider.base_url();
    let run = |typed: &str| {
        let shown = shows(&place, &["run", "x", "--base-url", &url, "--model", "m"], typed);
        (shown, provider.requests().pop().unwrap().messages().remove(0))
    };
    let (asked, prompt) = run("n\r");
    harmless(&asked, "skill: Works.");
    assert!(asked.contains("use them?") && asked.contains("AGENTS.md"), "{asked}");
    assert!(!prompt.contains("good — ") && prompt.contains("| Be brief."), "{prompt}");
    let (again, _) = run("");
    assert!(!again.contains("use them?") && again.contains("are not used"), "{again}");

    skill("good", "Works well.");
    let (asked, prompt) = run("y\r");
    assert!(asked.contains("use them?") && !asked.contains("skills/evil ("), "{asked}");
    assert!(prompt.contains("good — Works well.") && !prompt.contains("evil — "), "{prompt}");
    skill("good", "Works otherwise.");
    let (changed, prompt) = run("\r");
    assert!(changed.contains("has changed since you trusted it"), "{changed}");
    assert!(!prompt.contains("good — "), "{prompt}");
}
