//! Tests of the session as a user sees it on a screen.

use std::process::Command;
use std::time::Duration;

use serde_json::json;
use wattle_tests::provider::{Answer, Provider};

use crate::terminal::Place;
use crate::tmux::Screen;
use crate::{ANSWER, acts, responds};

#[test]
fn an_input_of_several_lines_is_one_message() {
    let (place, provider) = (Place::new(), Provider::start([responds("I see.")]));
    let screen = screen!(place, 100, "--base-url", &provider.base_url(), "--model", "m");
    screen.text("first");
    screen.press(&["M-Enter"]);
    screen.text("second");
    screen.press(&["C-j"]);
    screen.text("third");
    screen.press(&["Enter"]);
    screen.shows("I see.");
    screen.prompts();
    assert_eq!(provider.requests()[0].messages().last().unwrap(), "first\nsecond\nthird");
}

#[test]
fn a_paste_is_one_input() {
    let (place, provider) = (Place::new(), Provider::start([responds("I see.")]));
    let screen = screen!(place, 100, "--base-url", &provider.base_url(), "--model", "m");
    let text: String = (1..=200).map(|at| format!("line {at} of a paste\n")).collect();
    screen.text("Look: ");
    screen.paste("a short\nlist");
    screen.paste(&text);
    let content = screen.shows("list[pasted 200 lines]");
    assert!(content.contains("Look: a short"), "{content}");
    screen.press(&["Enter"]);
    screen.shows("I see.");
    assert_eq!(provider.requests().len(), 1);
    let whole = format!("Look: a short\nlist{}", text.trim_end());
    assert_eq!(provider.requests()[0].messages().last().unwrap(), &whole);
}

#[test]
fn names_are_completed() {
    let place = Place::new();
    std::fs::write(place.work("sales.csv"), "a,b\n").unwrap();
    let screen = screen!(place, 120,);
    screen.text("/cat");
    screen.press(&["Tab"]);
    screen.shows("› /catalog");
    screen.press(&["C-u"]);
    screen.text("/run text_cou");
    screen.press(&["Tab"]);
    screen.shows("› /run text_count");
    screen.press(&["C-u"]);
    screen.text("(str.from_");
    screen.press(&["Tab"]);
    // Several functions match and are listed with their signatures.
    screen.shows("(str.from_int n");
    screen.press(&["C-u"]);
    screen.text("(out (str.find ");
    screen.shows("(str.find s");
    screen.press(&["C-u"]);
    screen.text("(fs.read \"sal");
    screen.press(&["Tab"]);
    screen.shows("(fs.read \"sales.csv");
    screen.press(&["C-u"]);
    screen.text("(let $total 3) (out $to");
    screen.press(&["Tab"]);
    screen.shows("(out $total");
}

#[test]
fn programs_and_commands_are_highlighted() {
    let place = Place::new();
    let screen = screen!(place, 100,);
    screen.text("(let $n (str.len \"abc\"))");
    screen.shows("\"abc\"))");
    let styled = screen.styled();
    for piece in ["\u{1b}[35mlet", "\u{1b}[33m$n", "\u{1b}[36mstr.len", "\u{1b}[32m\"abc\""] {
        assert!(styled.contains(piece), "{piece:?} is missing in {styled:?}");
    }
    screen.press(&["C-u"]);
    screen.text("/help");
    screen.shows("› /help");
    assert!(screen.styled().contains("\u{1b}[36m/help"), "{:?}", screen.styled());
    screen.press(&["C-u"]);
    screen.text("/nonsense");
    screen.shows("› /nonsense");
    let styled = screen.styled();
    assert!(styled.contains("31m/nonsense"), "{styled:?}");
}

#[test]
fn an_answer_is_shown_while_the_model_writes_it_in_every_form() {
    let text = "# Title\n\nThe first **words** of";
    let marked = json!({"content": format!("ToolCall::Response(\"\"\"\n{text}")});
    let plain = json!({"content": text});
    let arguments = json!({ "result": text }).to_string();
    let arguments = arguments.trim_end_matches("\"}");
    let done = json!({"tool_calls": [{"index": 0, "id": "a", "type": "function",
        "function": {"name": "done", "arguments": arguments}}]});
    for (dialect, delta) in [
        ("text", &marked),
        ("text", &plain),
        ("native", &marked),
        ("native", &plain),
        ("native", &done),
    ] {
        let frame = json!({"choices": [{"index": 0, "delta": delta}]}).to_string();
        let provider = Provider::start([Answer::events([frame]).then_hang()]);
        let (place, url) = (Place::new(), provider.base_url());
        let screen = screen!(place, 100, "--dialect", dialect, "--base-url", &url, "--model", "m");
        screen.types("go");
        // The block is not complete, and the model has not ended its answer.
        let content = screen.waits("the first words", |text| text.contains("The first words of"));
        assert!(content.contains("\nTitle\n"), "{dialect}, {delta}: {content}");
        screen.press(&["C-c"]);
        screen.prompts();
    }
}

#[test]
fn an_interrupt_within_a_step_keeps_the_steps_before_it() {
    let script = [acts("First this.", ANSWER), Answer::hang(), responds("Went on.")];
    let (place, provider) = (Place::new(), Provider::start(script));
    let screen = screen!(place, 100, "--base-url", &provider.base_url(), "--model", "m");
    screen.types("begin");
    // The line below the step shows what the run waits for.
    screen.shows("s · model");
    screen.shows("● 1  program, 1 line");
    screen.waits("the second request", |_| provider.requests().len() == 2);
    screen.press(&["C-c"]);
    screen.shows("cancelled after 1 step");
    let content = screen.prompts();
    assert!(!content.contains("s · model"), "{content}");
    screen.types("go on");
    screen.shows("Went on.");
    let said = provider.requests().last().unwrap().messages();
    assert!(said.iter().any(|text| text == "begin"), "{said:?}");
    assert!(said.iter().any(|text| text.contains("42")), "{said:?}");
}

#[test]
fn keys_during_a_run_become_the_next_input() {
    let script = [responds("Done now.").pieces(40).pause(Duration::from_millis(60))];
    let (place, provider) = (Place::new(), Provider::start(script));
    let screen = screen!(place, 100, "--base-url", &provider.base_url(), "--model", "m");
    screen.types("begin");
    screen.waits("the request", |_| provider.requests().len() == 1);
    screen.types("/cost");
    screen.types("(out \"after\")");
    screen.shows("1 message: ");
    let content = screen.shows("\nafter\n");
    // The keys are not echoed between the lines of the run.
    let answer = content.find("Done now.").unwrap();
    assert!(content.find("/cost").unwrap() > answer, "{content}");
}

#[test]
fn a_session_is_resumed_after_the_process_was_killed() {
    let script = [responds("Noted."), Answer::hang(), responds("You said so.")];
    let (place, provider) = (Place::new(), Provider::start(script));
    let url = provider.base_url();
    let start =
        || Screen::start(&place, 100, &["--base-url", &url, "--model", "m", "--session", "s"]);
    let Some(screen) = start() else { return };
    screen.types("remember the number 7");
    screen.shows("Noted.");
    screen.prompts();
    screen.types("and think");
    screen.waits("the second request", |_| provider.requests().len() == 2);
    assert!(Command::new("kill").args(["-9", &screen.process()]).status().unwrap().success());
    drop(screen);
    let screen = start().unwrap();
    screen.shows("session s: 2 messages, the last one: remember the number 7");
    screen.shows("a run of this session did not end; `wattle run --resume ");
    screen.types("what did I say?");
    screen.shows("You said so.");
    let said = provider.requests().last().unwrap().messages();
    assert!(said.iter().any(|text| text == "remember the number 7"), "{said:?}");
}

#[test]
fn a_saved_program_can_be_called_and_tested() {
    let place = Place::new();
    std::fs::create_dir(place.work("tools")).unwrap();
    let screen = screen!(place, 100, "--catalog", "tools");
    screen.types("(ret (str.upper \"hi\"))");
    screen.shows("\nHI\n");
    screen.types("/save shout");
    screen.shows("saved tools/shout.wat · `wattle catalog test shout` runs its example");
    // The catalog reloads its folders at most once a second.
    std::thread::sleep(Duration::from_millis(1_100));
    screen.types("/run shout");
    screen.waits("the second result", |content| content.matches("\nHI\n").count() == 2);
    let tested = place.command(&["catalog", "test", "shout", "--catalog", "tools"]).output();
    let tested = tested.unwrap();
    assert!(tested.status.success(), "{tested:?}");
    screen.types("/save shout");
    screen.shows("already exists");
}

#[test]
fn a_fork_leaves_the_session_as_it_is() {
    let script = [responds("One."), responds("Two."), responds("Three.")];
    let (place, provider) = (Place::new(), Provider::start(script));
    let screen =
        screen!(place, 100, "--base-url", &provider.base_url(), "--model", "m", "--session", "s");
    screen.types("first");
    screen.shows("One.");
    screen.types("/fork");
    screen.shows("a copy of s");
    screen.types("second");
    screen.shows("Two.");
    screen.prompts();
    screen.types("/resume s");
    screen.shows("session s: 2 messages");
    screen.types("third");
    screen.shows("Three.");
    let requests = provider.requests();
    let said = |at: usize| requests[at].messages();
    assert!(said(1).iter().any(|text| text == "first"), "{:?}", said(1));
    assert!(said(2).iter().any(|text| text == "first"), "{:?}", said(2));
    assert!(said(2).iter().all(|text| text != "second"), "{:?}", said(2));
}

#[test]
fn old_messages_are_replaced_by_a_summary() {
    let script =
        [responds("One."), responds("Two."), Answer::text("They counted."), responds("Three.")];
    let (place, provider) = (Place::new(), Provider::start(script));
    let screen = screen!(place, 100, "--base-url", &provider.base_url(), "--model", "m");
    for (said, answer) in [("first", "One."), ("second", "Two.")] {
        screen.types(said);
        screen.shows(answer);
        screen.prompts();
    }
    screen.types("/compact");
    screen.shows("They counted.");
    screen.shows("the summary replaces 2 messages");
    screen.types("/context");
    screen.shows("in all, before the next message");
    screen.types("third");
    screen.shows("Three.");
    let said = provider.requests().last().unwrap().messages();
    assert!(said.iter().any(|text| text.ends_with("They counted.")), "{said:?}");
    assert!(said.iter().any(|text| text == "second"), "{said:?}");
    assert!(said.iter().all(|text| text != "first"), "{said:?}");
}

#[test]
fn inputs_continue_each_other_and_repeat_no_call() {
    let place = Place::new();
    let screen = screen!(place, 100,);
    screen.types("(let $x 5)");
    screen.prompts();
    screen.types("(fn $double ($n) (* $n 2))");
    screen.prompts();
    screen.types("(let $count (kv.incr \"n\" 1))");
    screen.prompts();
    screen.types("(set $x (+ $x 1))");
    screen.prompts();
    screen.types("(out (fmt \"{} {}\" ($double $x) $count))");
    screen.shows("\n12 1\n");
    screen.prompts();
    screen.types("(out (fmt \"stored {}\" (kv.get \"n\")))");
    let content = screen.shows("\nstored 1\n");
    screen.prompts();
    // Earlier output is not repeated.
    assert_eq!(content.matches("\n12 1\n").count(), 1, "{content}");
    screen.types("(let $y 1) (ret \"end\")");
    screen.shows("later inputs do not see the variables of this one");
    screen.prompts();
    screen.types("(out $y)");
    screen.shows("error");
    screen.prompts();
    screen.types("/wat");
    screen.shows("(set $x (+ $x 1))\n");
    screen.prompts();
    screen.types("/wat new");
    screen.prompts();
    screen.types("(out (fmt \"{} again\" $x))");
    screen.waits("another error", |content| content.matches("error").count() > 1);
}

#[test]
fn a_kept_value_stays_in_the_session() {
    let place = Place::new();
    let screen = screen!(place, 100,);
    screen.types("(keep $rows (list 1 2 3))");
    screen.shows("kept: $rows list of 3 numbers");
    screen.prompts();
    screen.types("(out (len $rows) \"in the same program\")");
    screen.shows("\n3 in the same program\n");
    screen.prompts();
    screen.types("/wat new");
    screen.prompts();
    screen.types("(out (sum $rows) \"in the next one\")");
    screen.shows("\n6 in the next one\n");
    screen.prompts();
    screen.types("(let $n (len $rows))");
    screen.prompts();
    screen.types("(out (+ $n 4))");
    screen.shows("\n7\n");
    screen.prompts();
    screen.types("/new");
    screen.prompts();
    screen.types("(out (len $rows))");
    screen.shows("no local `$rows`");
}

/// Markdown with a table, a list, wide characters and right-to-left text.
const MARKDOWN: &str = "# Result\n\nEast sold **most**, as the [report](https://a.example/r) says \
                        in a long line.\n\n| region | units |\n|---|--:|\n| east | 1809 |\n| 漢字漢字 \
                        | 12 |\n\n- שלום עולם\n- two\n\n```wat\n(let $n 1)\n```\n";

fn fits(columns: usize) {
    let script = [
        acts("A thought that is long enough to be cut on a narrow screen.", ANSWER),
        responds(MARKDOWN),
    ];
    let (place, provider) = (Place::new(), Provider::start(script));
    let Some(screen) =
        Screen::start(&place, columns, &["--base-url", &provider.base_url(), "--model", "m"])
    else {
        return;
    };
    screen.types("which region?");
    screen.shows("(let $n 1)");
    let content = screen.prompts();
    // A step is one line, with its time at the margin.
    let step = content.lines().find(|line| line.starts_with("● 1")).unwrap();
    assert!(step.contains("program, 1 line") && step.ends_with(" ms"), "{content}");
    assert_eq!(step.chars().count(), columns.min(100), "{content}");
    // The columns of the table are aligned.
    for row in ["region   │ units", "─────────┼──────", "east     │  1809", "漢字漢字 │    12"]
    {
        assert!(content.contains(row), "{row:?} is missing:\n{content}");
    }
    assert!(content.contains("• two") && content.contains("\nResult\n"), "{content}");
    let longest = content.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(longest <= screen.columns(), "{content}");
    // A long line is broken between words.
    if columns == 40 {
        assert!(
            content.contains("East sold most, as the report says in a\nlong line."),
            "{content}"
        );
        assert!(content.contains("  A thought that is long enough to be c…\n"), "{content}");
    }
    assert!(screen.styled().contains("\u{1b}[35mlet"));
}

#[test]
fn the_layout_fits_a_narrow_screen() {
    fits(40);
}

#[test]
fn the_layout_fits_a_wide_screen() {
    fits(120);
}

#[test]
fn the_steps_of_a_run_can_be_read_again() {
    let program = "(each $x (str.split \"a b c d e\" \" \") (out $x))";
    let script = [acts("List them.", program), responds("Listed.")];
    let (place, provider) = (Place::new(), Provider::start(script));
    let screen = screen!(place, 100, "--base-url", &provider.base_url(), "--model", "m");
    screen.types("list");
    screen.shows("5 lines in all");
    screen.shows("/trace shows them · /source 1 the program");
    screen.types("/trace 1");
    screen.shows("     e\n");
    screen.types("/source 1");
    screen.shows("\n(each $x");
    screen.types("/replay");
    screen.shows("matches its record");
    screen.types("/export talk.md");
    screen.shows("wrote ");
    assert!(std::fs::read_to_string(place.work("talk.md")).unwrap().contains("## User\n\nlist"));
}

#[test]
fn an_input_is_edited_in_the_users_editor() {
    let place = Place::new();
    let script = place.home("editor.sh");
    let text = "grep -q fails \"$2\" && exit 3\necho \"$1\" >> arguments.txt\n\
                sed s/one/two/ \"$2\" > \"$2.new\" && mv \"$2.new\" \"$2\"\n";
    std::fs::write(&script, text).unwrap();
    let command = format!("sh {} --wait", script.display());
    let drafts = place.home("drafts");
    std::fs::create_dir(&drafts).unwrap();
    let variables = [("EDITOR", command.as_str()), ("TMPDIR", drafts.to_str().unwrap())];
    let Some(screen) = Screen::with_variables(&place, 100, &[], &variables) else { return };
    screen.types("(out \"one\")");
    screen.shows("\none\n");
    screen.types("/edit");
    screen.waits("the edited input", |content| content.trim_end().ends_with("› (out \"two\")"));
    screen.press(&["Enter"]);
    screen.shows("\ntwo\n");
    screen.prompts();
    // Ctrl-X Ctrl-E opens the typed text in the editor, even if the input is incomplete.
    screen.text("say one");
    screen.shows("› say one");
    screen.press(&["C-x", "C-e"]);
    screen.waits("the edited text", |content| content.trim_end().ends_with("› say two"));
    screen.press(&["C-u"]);
    screen.text("it fails");
    screen.shows("› it fails");
    screen.press(&["C-x", "C-e"]);
    screen.shows("failed to edit the input: `sh` ended with exit status: 3");
    screen.waits("the input", |content| content.trim_end().ends_with("› it fails"));
    assert_eq!(std::fs::read_to_string(place.work("arguments.txt")).unwrap(), "--wait\n--wait\n");
    assert_eq!(std::fs::read_dir(drafts).unwrap().count(), 0, "no draft stays");
}

#[test]
fn the_first_lines_say_what_to_do() {
    let place = Place::new();
    let screen = screen!(place, 120,);
    let content = screen.content();
    assert!(content.contains("no model · session "), "{content}");
    assert!(content.contains("read-only, changes stay in this session"), "{content}");
    assert!(content.contains("set OPENROUTER_API_KEY"), "{content}");
    screen.types("/hlep");
    screen.shows("did you mean `/help`?");
    screen.types("(out \"once\")");
    screen.shows("\nonce\n");
    screen.types("/edit");
    screen.waits("the program", |content| content.trim_end().ends_with("› (out \"once\")"));
    screen.press(&["C-u"]);
    screen.types("/hlep");
    // A failed input can be recalled.
    screen.press(&["Up"]);
    screen.waits("the input", |content| content.trim_end().ends_with("› /hlep"));
}

#[test]
fn keys_from_before_a_question_do_not_answer_it() {
    let program = "(kv.set \"a\" \"b\")\n(ret \"it was set\")";
    let slow = acts("Set it.", program).pieces(40).pause(Duration::from_millis(60));
    let (place, provider) = (Place::new(), Provider::start([slow, responds("Over.")]));
    let screen =
        screen!(place, 100, "--base-url", &provider.base_url(), "--model", "m", "--ask", "kv");
    screen.types("begin");
    screen.waits("the request", |_| provider.requests().len() == 1);
    screen.text("y");
    screen.press(&["Enter"]);
    screen.shows("[y] once  [s] this session  [n] no  [e] show program");
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(provider.requests().len(), 1, "the question is open");
    screen.press(&["Enter"]);
    screen.shows("Over.");
    let content = screen.waits("the keys", |content| content.contains("› y"));
    assert!(!content.contains("it was set"), "{content}");
    let said = provider.requests()[1].messages();
    assert!(said.last().unwrap().contains("denied"), "{said:?}");
}

#[test]
fn a_resized_screen_keeps_no_progress_of_an_ended_run() {
    let script = [acts("First this.", ANSWER), Answer::hang()];
    let (place, provider) = (Place::new(), Provider::start(script));
    let screen = screen!(place, 100, "--base-url", &provider.base_url(), "--model", "m");
    screen.types("begin");
    screen.shows("● 1  program, 1 line");
    for columns in [50, 30, 90] {
        screen.resize(columns);
        screen.shows("s · model");
    }
    screen.press(&["C-c"]);
    screen.shows("cancelled after 1 step");
    let content = screen.prompts();
    let is_frame = |c: char| ('\u{2800}'..='\u{28ff}').contains(&c);
    assert!(!content.contains(is_frame) && !content.contains("· model"), "{content}");
}

#[test]
fn a_program_saved_in_a_folder_that_is_not_listed_can_be_called_at_once() {
    let place = Place::new();
    std::fs::create_dir(place.work("catalog")).unwrap();
    let other = ";;; name = \"other\"\n;;; description = \"Greet\"\n(ret \"other\")\n";
    std::fs::write(place.work("catalog/other.wat"), other).unwrap();
    let screen = screen!(place, 100,);
    screen.types("(ret (str.upper \"hi\"))");
    screen.shows("\nHI\n");
    screen.types("/save shout");
    screen.shows("`/run shout` calls it; later sessions need `--catalog catalog`");
    screen.types("/run shout");
    screen.waits("the second result", |content| content.matches("\nHI\n").count() == 2);
    // Only what the user saved is trusted.
    screen.types("/run other");
    screen.shows("no program `other`");
}

#[test]
fn the_models_of_the_endpoint_are_listed_and_completed() {
    let models = json!({"data": [{"id": "small-model"}, {"id": "large-model"}]}).to_string();
    let provider = Provider::start([Answer::body(models)]);
    let place = Place::new();
    let screen = screen!(place, 100, "--base-url", &provider.base_url(), "--model", "m");
    screen.types("/model");
    screen.shows("\n  large-model\n  small-model\n/model NAME switches");
    assert!(provider.requests()[0].path.ends_with("/models"), "{:?}", provider.requests());
    screen.text("/model sm");
    screen.press(&["Tab"]);
    screen.shows("› /model small-model");
    screen.press(&["Enter"]);
    screen.shows("the model is small-model");
}

#[test]
fn a_session_is_left_for_a_new_one_and_found_again_by_its_title() {
    let (place, provider) = (Place::new(), Provider::start([responds("Noted."), responds("Yes.")]));
    let screen = screen!(place, 100, "--base-url", &provider.base_url(), "--model", "m");
    screen.types("remember the number 7");
    screen.shows("Noted.");
    screen.types("/status");
    let content = screen.shows("changes   0 changes of files not applied");
    assert!(content.contains("(2 messages)"), "{content}");
    screen.types("/new");
    screen.shows("returns to the one before");
    screen.types("are you there?");
    screen.shows("Yes.");
    let said = provider.requests().last().unwrap().messages();
    assert!(said.iter().all(|text| text != "remember the number 7"), "{said:?}");
    screen.types("/sessions");
    screen.waits("the sessions with their sizes", |content| {
        content.lines().any(|line| {
            line.contains("remember the number 7")
                && line.contains("2 messages")
                && line.contains(" B ")
        })
    });
    screen.types("/clear");
    screen.waits("an empty screen", |content| content.trim_start().starts_with("session 01"));
}
