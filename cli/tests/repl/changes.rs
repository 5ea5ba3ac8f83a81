//! Tests of the commands that undo, apply and drop the session's changes to files.

use wattle_tests::provider::Provider;

use crate::terminal::{Place, Terminal};
use crate::{acts, responds};

#[test]
fn an_undone_message_is_gone_with_its_files() {
    let write = "(fs.write \"a.txt\" \"one\")\n(ret \"written\")";
    let script =
        [responds("Hello."), acts("Write it.", write), responds("Wrote."), responds("Ok.")];
    let (place, provider) = (Place::new(), Provider::start(script));
    let screen = screen!(place, 100, "--base-url", &provider.base_url(), "--model", "m");
    screen.types("hello");
    screen.shows("Hello.");
    screen.prompts();
    screen.types("write a file");
    screen.shows("[y/N]");
    screen.press(&["Enter"]);
    screen.prompts();
    screen.types("/diff");
    screen.shows("+one");
    screen.types("/undo");
    screen.shows("undone: the last message");
    screen.types("/files");
    screen.shows("there are no changes");
    screen.types("again");
    screen.shows("Ok.");
    let said = provider.requests().last().unwrap().messages();
    assert!(said.iter().any(|text| text == "hello"), "{said:?}");
    assert!(said.iter().all(|text| text != "write a file"), "{said:?}");
}

#[test]
fn an_undone_message_leaves_files_that_have_changed_since() {
    let write = "(fs.write \"a.txt\" \"one\")\n(ret \"written\")";
    let script = [acts("Write it.", write), responds("Wrote.")];
    let (place, provider) = (Place::new(), Provider::start(script));
    let screen = screen!(place, 100, "--base-url", &provider.base_url(), "--model", "m");
    screen.types("write a file");
    screen.shows("[y/N]");
    screen.press(&["Enter"]);
    screen.prompts();
    screen.types("(fs.write \"b.txt\" \"mine\")");
    screen.shows("[y/N]");
    screen.press(&["Enter"]);
    screen.prompts();
    screen.types("/drop a.txt");
    screen.shows("dropped 1 change");
    screen.types("/undo");
    screen.shows("undone: the last message; the files stay as they are");
    screen.types("/files");
    let content = screen.shows("\ncreated b.txt (4 bytes)\n");
    assert!(!content.contains("\ncreated a.txt"), "{content}");
}

#[test]
fn changes_are_applied_and_dropped_by_path() {
    let place = Place::new();
    let screen = screen!(place, 100,);
    screen.types("(fs.write \"new/a.txt\" \"one\") (fs.write \"b.txt\" \"two\")");
    screen.shows("[y/N]");
    screen.press(&["Enter"]);
    screen.prompts();
    screen.types("/apply new/a.txt");
    screen.shows("applied");
    assert_eq!(std::fs::read_to_string(place.work("new/a.txt")).unwrap(), "one");
    assert!(!place.work("b.txt").exists());
    screen.types("/files");
    let content = screen.shows("\ncreated b.txt (3 bytes)\n");
    assert!(!content.contains("\ncreated new/a.txt"), "{content}");
    screen.types("/drop b.txt");
    screen.shows("dropped 1 change");
    screen.types("/files");
    screen.shows("there are no changes");
}

#[test]
fn a_change_applied_or_dropped_by_path_leaves_the_others_in_its_folder() {
    let place = Place::new();
    let screen = screen!(place, 100,);
    screen.types("(fs.write \"D/x\" \"1\") (fs.write \"D/y\" \"2\") (fs.write \"D/z\" \"3\")");
    screen.shows("[y/N]");
    screen.press(&["Enter"]);
    screen.prompts();
    screen.types("/drop D/z");
    screen.shows("dropped 1 change");
    screen.types("/apply D/x");
    screen.shows("applied 2 changes");
    assert_eq!(std::fs::read_to_string(place.work("D/x")).unwrap(), "1");
    assert!(!place.work("D/y").exists());
    screen.types("/files");
    let content = screen.shows("\ncreated D/y (1 byte)\n");
    assert!(!content.contains("\ncreated D/x ("), "{content}");
    screen.types("/apply");
    screen.shows("applied 1 change");
    assert_eq!(std::fs::read_to_string(place.work("D/y")).unwrap(), "2");
    assert!(!place.work("D/z").exists());
}

#[test]
fn a_change_that_is_dropped_in_a_replaced_folder_is_not_applied() {
    let place = Place::new();
    std::fs::create_dir(place.work("D")).unwrap();
    ["D/x", "D/y"].iter().for_each(|path| std::fs::write(place.work(path), "1").unwrap());
    let screen = screen!(place, 100,);
    let removals = "(fs.remove \"D/x\") (fs.remove \"D/y\") (fs.remove \"D\")";
    screen.types(&format!("{removals} (fs.write \"D/n\" \"2\")"));
    screen.shows("[y/N]");
    screen.press(&["Enter"]);
    screen.prompts();
    screen.types("/drop ./D/x");
    screen.shows("dropped 1 change");
    screen.types("/apply .");
    screen.shows("applied 2 changes");
    assert_eq!(std::fs::read_to_string(place.work("D/x")).unwrap(), "1");
    assert!(place.work("D/n").exists() && !place.work("D/y").exists());
}

#[test]
fn changes_that_are_not_applied_stay_in_the_session() {
    let place = Place::new();
    let screen = screen!(place, 100, "--session", "mine");
    screen.types("(fs.write \"a.txt\" \"one\") (fs.write \"b.txt\" \"two\")");
    screen.shows("[y/N]");
    screen.press(&["Enter"]);
    screen.prompts();
    screen.types("/quit");
    screen.shows("before you leave? [y/N]");
    drop(screen);

    let screen = screen!(place, 100, "--session", "mine");
    screen.shows("2 changes of files not applied yet");
    screen.types("/files");
    screen.shows("\ncreated b.txt (3 bytes)\n");
    screen.types("(out (fs.read \"b.txt\"))");
    screen.shows("\ntwo\n");
    screen.types("/apply a.txt");
    screen.shows("applied 1 change");
    drop(screen);
    assert_eq!(std::fs::read_to_string(place.work("a.txt")).unwrap(), "one");

    // Another session has no changes.
    let screen = screen!(place, 100, "--session", "other");
    screen.types("/files");
    screen.shows("there are no changes");
    screen.types("/resume mine");
    screen.shows("1 change of files not applied yet");
    screen.types("/drop");
    screen.shows("dropped 1 change");
    drop(screen);
    let screen = screen!(place, 100, "--session", "mine");
    screen.types("/files");
    screen.shows("there are no changes");
}

#[test]
fn an_undone_message_is_gone_with_its_variables() {
    let set = |value: &str| acts("Set it.", &format!("(kv.set \"n\" \"{value}\")\n(ret \"set\")"));
    let script = [
        set("one"),
        responds("First."),
        set("two"),
        responds("Second."),
        set("three"),
        responds("Third."),
    ];
    let (place, provider) = (Place::new(), Provider::start(script));
    let url = provider.base_url();
    let args = ["--base-url", &url, "--model", "m", "--session", "mine"];
    let screen = screen!(place, 100, args[0], args[1], args[2], args[3], args[4], args[5]);
    for (message, answer) in [("first", "First."), ("second", "Second."), ("third", "Third.")] {
        screen.types(message);
        screen.shows(answer);
        screen.prompts();
    }
    screen.types("/undo");
    screen.shows("undone: the last message; the tenant's variables and memory stay");
    screen.types("(out (str.upper (kv.get \"n\")))");
    screen.shows("\nTWO\n");
    drop(screen);

    // The record of the run is enough to undo its message in another process.
    let screen = screen!(place, 100, "--session", "mine");
    screen.types("(fs.write \"a.txt\" \"mine\")");
    screen.shows("[y/N]");
    screen.press(&["Enter"]);
    screen.prompts();
    screen.types("/undo");
    screen.shows("undone: the last message; the files and variables stay as they are");
    screen.types("/undo");
    screen.shows("undone: the last message; the files and variables stay as they are");
    screen.types("/undo");
    screen.shows("there is nothing to undo");
}

#[test]
fn a_message_of_an_earlier_process_is_undone_with_its_files_and_variables() {
    let write = "(fs.write \"a.txt\" \"one\")\n(kv.set \"n\" \"one\")\n(ret \"written\")";
    let script = [acts("Write it.", write), responds("Wrote.")];
    let (place, provider) = (Place::new(), Provider::start(script));
    let url = provider.base_url();
    let screen = screen!(place, 100, "--base-url", &url, "--model", "m", "--session", "mine");
    screen.types("write a file");
    screen.shows("[y/N]");
    screen.press(&["Enter"]);
    screen.prompts();
    drop(screen);
    let screen = screen!(place, 100, "--session", "mine");
    screen.shows("1 change of files not applied yet");
    screen.types("/undo");
    screen.shows("undone: the last message; the tenant's variables and memory stay");
    screen.types("/files");
    screen.shows("there are no changes");
    screen.types("(out (default (kv.get \"n\") \"unset\"))");
    screen.shows("\nunset\n");
}

#[test]
fn a_run_on_a_terminal_shows_its_changes_and_asks_what_to_do_with_them() {
    let many = "(fs.write \"a.txt\" (str.repeat \"line\\n\" 60))\n(ret \"written\")";
    let script = || [acts("Write it.", many), responds("Wrote.")];
    let place = Place::new();
    let run = |args: &[&str]| {
        let provider = Provider::start(script());
        let url = provider.base_url();
        let args = [&["run", "write a file", "--base-url", &url, "--model", "m"], args].concat();
        (Terminal::open(place.command(&args)), provider)
    };
    let question = "[a] apply  [v] view  [k] keep  (default: keep)";
    // Another reply than the choices shows the choices again.
    let (mut terminal, _provider) = run(&[]);
    terminal.shows("Wrote.");
    terminal.shows("created a.txt (300 bytes)");
    terminal.shows("+line");
    terminal.shows("more lines; `v` shows all");
    for reply in ["?", "v", ""] {
        terminal.shows(question);
        terminal.types(reply);
    }
    terminal.shows("kept; `wattle apply 01");
    terminal.ends(0);
    assert!(!place.work("a.txt").exists());

    // What a session has kept is shown with the changes of its next run.
    let (mut terminal, _provider) = run(&["--session", "mine"]);
    terminal.shows(question);
    terminal.types("k");
    terminal.shows("kept; `wattle apply mine` applies the changes, `wattle discard mine` drops");
    terminal.ends(0);
    // A run that changes nothing is no reason to ask.
    let provider = Provider::start([responds("No.")]);
    let url = provider.base_url();
    let args = ["run", "any news?", "--session", "mine", "--base-url", &url, "--model", "m"];
    let mut terminal = Terminal::open(place.command(&args));
    terminal.shows("1 change (not applied; `wattle apply mine` applies them)");
    assert!(!terminal.ends(0).contains(question));
    let (mut terminal, _provider) = run(&["--session", "other"]);
    terminal.shows(question);
    terminal.types("a");
    terminal.shows("applied 1 change");
    terminal.ends(0);
    assert!(place.work("a.txt").exists());

    // There is no question about what is applied anyway, nor for `-q`.
    for (args, shown) in [(&["--apply"][..], "(applied)"), (&["-q"], "Wrote.")] {
        std::fs::remove_file(place.work("a.txt")).ok();
        let (mut terminal, _provider) = run(args);
        terminal.shows(shown);
        assert!(!terminal.ends(0).contains(question));
    }
}
