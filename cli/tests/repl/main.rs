//! Tests of `wattle repl` on a pseudo-terminal.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests may panic"
)]

/// Starts a session on a screen of the given width. Returns from the test if tmux is not installed.
macro_rules! screen {
    ($place:expr, $columns:expr, $($arg:expr),*) => {
        match $crate::tmux::Screen::start(&$place, $columns, &[$($arg),*]) {
            Some(screen) => screen,
            None => return,
        }
    };
}

mod changes;
mod init;
mod mcp;
mod picture;
mod readme;
mod screen;
mod terminal;
mod tmux;
mod view;

use std::io::Write;
use std::process::Stdio;

use wattle_tests::provider::{Answer, Provider};

use terminal::{Place, Terminal, content};

/// A program that computes and prints 42. Its source does not contain the number.
const ANSWER: &str =
    "(resv (call $str.from_int (i32.mul (i32.const 6) (i32.const 7)))) (i32.const 0)";

fn acts(thought: &str, program: &str) -> Answer {
    Answer::text(format!("<reasoning>{thought}</reasoning>\nToolCall::Wat(```wat\n{program}\n```)"))
}

fn responds(text: &str) -> Answer {
    Answer::text(format!("ToolCall::Response(\"\"\"\n{text}\n\"\"\")"))
}

#[test]
fn messages_run_and_are_remembered() {
    let (place, provider) = (
        Place::new(),
        Provider::start([
            acts("Compute it.", ANSWER),
            responds("It is what it is."),
            responds("As I said."),
        ]),
    );
    let mut terminal = place.repl(&["--base-url", &provider.base_url(), "--model", "m"]);
    terminal.types("what's six times seven? :(");
    terminal.shows("Compute it.");
    terminal.shows("42");
    terminal.shows_line("It is what it is.");
    terminal.prompts();
    terminal.types("again");
    terminal.shows_line("As I said.");
    terminal.prompts();
    terminal.types("/quit");
    terminal.ends(0);
    let requests = provider.requests();
    let said = requests.last().unwrap().messages();
    assert!(said.iter().any(|text| text == "what's six times seven? :("), "{said:?}");
    assert!(said.iter().any(|text| text.contains("It is what it is.")), "{said:?}");
    assert_eq!(said.last().unwrap(), "again");
    let trace = place.command(&["trace", "show", "--json"]).output().unwrap();
    assert_eq!(String::from_utf8(trace.stdout).unwrap().lines().count(), 1);
}

#[test]
fn at_its_end_a_session_names_the_command_that_continues_it() {
    let (place, provider) = (Place::new(), Provider::start([responds("Noted.")]));
    let url = provider.base_url();
    let mut terminal = place.repl(&["--base-url", &url, "-m", "m", "--session", "mine"]);
    terminal.types("hello");
    terminal.shows_line("Noted.");
    terminal.prompts();
    terminal.control('d');
    terminal.shows("continue with `wattle session resume mine`");
    terminal.ends(0);
    // A session without messages is not worth a line.
    let mut empty = place.repl(&["--session", "empty"]);
    empty.control('d');
    assert!(!empty.ends(0).contains("session resume"));
}

#[test]
fn a_program_runs_at_once_without_a_model() {
    let place = Place::new();
    let mut terminal = place.repl(&[]);
    terminal.types(ANSWER);
    terminal.shows_line("42");
    terminal.prompts();
    // A later program sees the state of an earlier one.
    terminal.types("(call $kv.incr \"n\" (i32.const 40)) (drop) (drop) (i32.const 0)");
    terminal.prompts();
    terminal.types(
        "(call $kv.incr \"n\" (i32.const 4)) (drop) (call $str.from_int) (call $sys.resv) \
         (i32.const 0)",
    );
    terminal.shows_line("44");
    terminal.prompts();
    terminal.types("/run text_count 'one two  three'");
    terminal.shows("\"words\":3");
    terminal.prompts();
    terminal.control('d');
    terminal.ends(0);
}

#[test]
fn an_input_continues_while_something_is_open() {
    let provider = Provider::start([responds("I see."), responds("Two lines.")]);
    let place = Place::new();
    let mut terminal = place.repl(&["--base-url", &provider.base_url(), "--model", "m"]);
    for line in
        ["(resv", "(call $str.from_int ;; not yet )", "(i32.mul (i32.const 6)", "(i32.const 7))))"]
    {
        terminal.types(line);
    }
    terminal.shows_line("42");
    terminal.prompts();
    for line in ["look at this:", "```", "(open", "```"] {
        terminal.types(line);
        if line == "look at this:" {
            terminal.shows_line("I see.");
            terminal.prompts();
        }
    }
    terminal.shows_line("Two lines.");
    terminal.prompts();
    assert_eq!(provider.requests().last().unwrap().messages().last().unwrap(), "```\n(open\n```");
    // Two blank lines end an incomplete input.
    ["(resv \"never closed", "", ""].iter().for_each(|line| terminal.types(line));
    terminal.shows("error");
    terminal.prompts();
    terminal.types("/quit");
    terminal.ends(0);
}

#[test]
fn errors_are_shown_and_the_session_continues() {
    let place = Place::new();
    let mut terminal = place.repl(&[]);
    terminal.types("(call $str.form_int (i32.const 1))");
    terminal.shows("str.from_int");
    terminal.prompts();
    terminal.types("(call $fs.read \"absent.txt\") (drop) (drop) (i32.const 4)");
    terminal.shows("ENOENT");
    terminal.prompts();
    terminal.types("hello");
    terminal.shows("no model is set up");
    terminal.prompts();
    terminal.types("/nonsense");
    terminal.shows("there is no command `/nonsense`");
    terminal.prompts();
    terminal.types("/run text_cuont x");
    terminal.shows("`text_count`");
    terminal.prompts();
    terminal.types("/catalog");
    terminal.shows("text_count ");
    terminal.prompts();
    terminal.types("/help");
    terminal.shows("/run NAME");
    terminal.prompts();
    terminal.types(ANSWER);
    terminal.shows_line("42");
    terminal.prompts();
    terminal.types("/quit");
    terminal.ends(0);
}

#[test]
fn an_interrupt_stops_the_work_and_keeps_its_results() {
    let provider =
        Provider::start([acts("First this.", ANSWER), Answer::hang(), responds("Went on.")]);
    let place = Place::new();
    let mut terminal = place.repl(&["--base-url", &provider.base_url(), "--model", "m", "--write"]);
    terminal.types("begin");
    terminal.shows("42");
    // Waits for the second request before the interrupt.
    for _ in 0..3_000 {
        if provider.requests().len() == 2 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    terminal.control('c');
    terminal.shows("cancelled");
    terminal.prompts();
    terminal.types("go on");
    terminal.shows_line("Went on.");
    terminal.prompts();
    let said = provider.requests().last().unwrap().messages();
    assert!(
        said.iter().any(|text| text == "begin") && said.iter().any(|text| text.contains("42")),
        "{said:?}"
    );
    // An interrupt also stops a program.
    terminal
        .types("(drop (call $fs.write \"begun\" \"\")) (loop $again (br $again)) (i32.const 0)");
    // The program's file shows that the program is running. Before that, the line editor may still
    // control the terminal and would receive the key.
    let begun = std::time::Instant::now();
    while !place.work("begun").exists() {
        assert!(begun.elapsed() < std::time::Duration::from_secs(30), "the program does not start");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    terminal.control('c');
    terminal.shows("stopping");
    terminal.prompts();
    terminal.types(ANSWER);
    terminal.shows_line("42");
    terminal.prompts();
    terminal.control('c');
    terminal.shows("Ctrl-C again");
    terminal.prompts();
    terminal.control('c');
    terminal.ends(130);
}

#[test]
fn the_user_is_asked_what_the_policy_asks_about() {
    let place = Place::new();
    let mut terminal = place.repl(&["--ask", "kv"]);
    let program = "(check (call $kv.set \"seen\" \"yes\")) (resv \"done\") (i32.const 0)";
    let refused =
        "denied before it ran: `kv.set` would use the key \"seen\" (line 1: (check (call $kv.set";
    let question = "[y] once  [s] this session  [n] no  [e] show program  (default: no)";
    terminal.types(program);
    terminal.shows("`kv.set` would use the key \"seen\"");
    terminal.shows_line(question);
    terminal.types("");
    terminal.shows(refused);
    terminal.prompts();
    // `y` approves the call for one run, and `s` for the rest of the session. Both answers apply
    // only to this key.
    terminal.types(program);
    terminal.shows_line(question);
    terminal.types("y");
    terminal.shows("done\r\n");
    terminal.prompts();
    terminal.types(program);
    terminal.shows_line(question);
    // `e` shows the program and asks again.
    terminal.types("e");
    terminal.shows("(check (call $kv.set");
    terminal.shows_line(question);
    terminal.types("s");
    terminal.shows("done\r\n");
    terminal.prompts();
    terminal.types(program);
    terminal.shows("done\r\n");
    terminal.prompts();
    terminal.types("(check (call $kv.set \"other\" \"yes\")) (i32.const 0)");
    terminal.shows_line(question);
    terminal.types("no");
    terminal.shows("`kv.set` would use the key \"other\"");
    terminal.prompts();
    terminal.control('d');
    terminal.ends(0);
}

#[test]
fn another_key_than_the_choices_shows_them_again_with_the_call() {
    let place = Place::new();
    let mut terminal = place.repl(&["--ask", "kv"]);
    let question = "[y] once  [s] this session  [n] no  [e] show program  (default: no)";
    terminal.types("/run kv_set seen \"two words\"");
    terminal.shows("    kv_set(\"seen\", \"two words\")");
    for reply in ["?", "maybe", "y"] {
        terminal.shows(question);
        terminal.types(reply);
    }
    terminal.prompts();
    terminal.types("(out (str.upper (kv.get \"seen\")))");
    terminal.shows_line(question);
    terminal.types("y");
    terminal.shows("TWO WORDS");
    terminal.prompts();
    terminal.types("quit");
    terminal.ends(0);
}

#[test]
fn a_line_of_the_shell_runs_over_the_files_of_the_session() {
    let place = Place::new();
    let mut terminal = place.repl(&[]);
    terminal.types("!echo hi | tr a-z A-Z; pwd >where.txt");
    terminal.shows_line("HI");
    terminal.shows("created where.txt");
    terminal.shows("[y/N]");
    terminal.types("n");
    terminal.prompts();
    terminal.types("exit");
    terminal.shows("before you leave? [y/N]");
    terminal.types("n");
    // The session is worth a line, because it keeps a change.
    assert!(terminal.ends(0).contains("continue with `wattle session resume 01"));
}

#[test]
fn the_last_answer_is_copied_to_the_clipboard_of_the_terminal() {
    let (place, provider) = (Place::new(), Provider::start([responds("**Noted** \u{e9}.")]));
    let url = provider.base_url();
    let command = place.command(&["repl", "--base-url", &url, "-m", "m"]);
    let mut terminal = Terminal::with_sequences(command);
    terminal.prompts();
    terminal.types("/copy");
    terminal.shows("there is no answer to copy yet");
    terminal.prompts();
    terminal.types("hello");
    terminal.shows("Noted");
    terminal.prompts();
    terminal.types("/copy");
    // The Markdown of the answer, in UTF-8.
    terminal.shows("\u{1b}]52;c;KipOb3RlZCoqIMOpLg==\u{7}");
    terminal.prompts();
    terminal.types("/quit");
    terminal.ends(0);
}

#[test]
fn changes_are_applied_when_the_user_approves() {
    let place = Place::new();
    let mut terminal = place.repl(&[]);
    terminal.types("(call $fs.write \"notes/a.txt\" \"one\")");
    terminal.shows("created notes/a.txt (3 bytes)");
    terminal.shows("[y/N] ");
    terminal.types("");
    terminal.prompts();
    assert!(!place.work("notes/a.txt").exists());
    // The next program sees the change, and the user is not asked about it again.
    terminal.types(
        "(call $fs.read \"notes/a.txt\") (drop) (call $str.len) (call $str.from_int) (call \
         $sys.resv) (i32.const 0)",
    );
    terminal.shows_line("3");
    terminal.prompts();
    terminal.types("(call $fs.append \"notes/a.txt\" \" two\")");
    terminal.shows("created notes/a.txt (7 bytes)");
    terminal.shows("[y/N] ");
    terminal.types("y");
    terminal.prompts();
    assert_eq!(content(&place.work("notes/a.txt")), "one two");
    terminal.types("(call $fs.write \"b.txt\" \"lost\")");
    terminal.shows("[y/N] ");
    terminal.types("n");
    terminal.prompts();
    // The user is asked once more before the change is lost.
    terminal.types("/quit");
    terminal.shows("before you leave? [y/N] ");
    terminal.types("");
    assert!(terminal.ends(0).contains("1 change was not applied"));
    assert!(!place.work("b.txt").exists());

    let mut terminal = place.repl(&["--write"]);
    terminal.types("(call $fs.write \"c.txt\" \"at once\")");
    terminal.shows("written to the workdir");
    terminal.prompts();
    assert_eq!(content(&place.work("c.txt")), "at once");
    terminal.control('d');
    terminal.ends(0);
}

#[test]
fn inputs_are_remembered_across_sessions() {
    let place = Place::new();
    let mut terminal = place.repl(&[]);
    terminal.types(ANSWER);
    terminal.shows_line("42");
    terminal.prompts();
    terminal.control('d');
    terminal.ends(0);
    assert!(content(&place.home(".local/state/wattle/history")).contains(ANSWER));
    let mut terminal = place.repl(&[]);
    // Ctrl-P recalls the previous input.
    terminal.control('p');
    terminal.shows("(resv");
    terminal.types("");
    terminal.shows_line("42");
    terminal.prompts();
    terminal.control('d');
    terminal.ends(0);
}

#[test]
fn the_binary_without_a_command_is_a_session_on_a_terminal() {
    let place = Place::new();
    let mut terminal = terminal::Terminal::start(place.command(&[]));
    terminal.types(ANSWER);
    terminal.shows_line("42");
    terminal.prompts();
    terminal.control('d');
    terminal.ends(0);
}

#[test]
fn inputs_may_come_from_a_pipe() {
    let place = Place::new();
    let inputs =
        "(resv\n  (call $str.from_int\n    (i32.const 1234)))\n/nonsense\n\n(resv \"never closed\n";
    let mut child = place
        .command(&["repl"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(inputs.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        (output.status.code(), String::from_utf8(output.stdout).unwrap().as_str()),
        (Some(0), "1234\n"),
        "{stderr}"
    );
    assert!(stderr.contains("`/nonsense`") && stderr.contains("never closed"), "{stderr}");
}

/// A question that is cancelled must not read what is typed later.
#[test]
fn an_interrupted_question_takes_no_later_line() {
    let remember = || acts("Remember it.", "(kv.set \"n\" \"7\")\n(ret \"set\")");
    let (place, provider) = (Place::new(), Provider::start([remember(), remember()]));
    let url = provider.base_url();
    let mut terminal = place.repl(&["--base-url", &url, "--model", "m", "--ask", "kv"]);
    for (input, stopped) in [
        ("remember 7", "cancelled"),
        ("(kv.set \"a\" \"b\")", "stopping"),
        ("remember 7 again", "cancelled"),
    ] {
        terminal.types(input);
        terminal.shows_line("[y] once  [s] this session  [n] no  [e] show program  (default: no)");
        terminal.control('c');
        terminal.shows(stopped);
        terminal.prompts();
        for line in ["first", "second", "third"] {
            terminal.types(&format!("(out (str.upper \"{line}\"))"));
            terminal.shows_line(&line.to_uppercase());
            terminal.prompts();
        }
    }
    // An answer still reaches its question.
    terminal.types("(kv.set \"a\" \"b\") (out (str.upper (kv.get \"a\")))");
    terminal.shows("[e] show program");
    terminal.types("y");
    terminal.shows_line("B");
    terminal.prompts();
    terminal.control('d');
    terminal.ends(0);
}
