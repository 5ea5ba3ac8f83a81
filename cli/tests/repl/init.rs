//! Tests of the dialogue of `wattle init`, from nothing to a first answer.

use std::os::unix::fs::PermissionsExt as _;

use wattle_tests::provider::{Answer, Provider};

use crate::terminal::Place;
use crate::tmux::Screen;

const KEY: &str = "sk-test-0123456789abcdefghij";

/// An endpoint that answers only requests with the key.
fn provider() -> Provider {
    Provider::answering(|request| {
        if request.header("authorization") != Some(&format!("Bearer {KEY}")) {
            return Answer::status(401).with_body("{}");
        }
        match request.path.as_str() {
            "/v1/models" => Answer::body(r#"{"data":[{"id":"tiny-1"},{"id":"large-2"}]}"#),
            _ => Answer::text("ToolCall::Response(\"ready\")"),
        }
    })
}

/// Starts `wattle init` on a screen that stays open.
fn start(place: &Place, columns: usize) -> Option<Screen> {
    let wattle = env!("CARGO_BIN_EXE_wattle");
    let script = format!("{wattle} init; echo \"ended with $?\"; exec cat");
    Screen::with_command(place, columns, &["sh", "-c", &script], &[])
}

fn kept(place: &Place) -> (String, String) {
    let read = |path: &str| std::fs::read_to_string(place.home(path)).unwrap_or_default();
    (read(".config/wattle/wattle.toml"), read(".local/state/wattle/api-keys.toml"))
}

#[test]
fn the_dialogue_leads_from_nothing_to_a_first_answer() {
    let (place, provider) = (Place::new(), provider());
    let Some(screen) = start(&place, 100) else { return };
    screen.shows("Which provider answers?");
    screen.shows("needs a key");
    screen.text("another");
    screen.shows("> another endpoint");
    screen.press(&["Enter"]);
    screen.shows("URL of the endpoint:");
    screen.text("localhost");
    screen.press(&["Enter"]);
    screen.shows("write a URL such as");
    screen.press(&["BSpace"; 12]);
    screen.waits("an empty answer", |content| !content.contains("localhost"));
    screen.waits("an empty answer", |content| content.contains("URL of the endpoint:\n"));
    screen.text(&provider.base_url());
    screen.press(&["Enter"]);
    screen.shows("Key (HOST_127_0_0_1_API_KEY):");
    // Back to the previous question, and on again.
    screen.press(&["Escape"]);
    screen.waits("the URL again", |content| content.matches("URL of the endpoint:").count() > 1);
    screen.text(&provider.base_url());
    screen.press(&["Enter"]);
    screen.waits("the key again", |content| content.matches("Key (HOST").count() > 1);
    // A wrong key is asked for again, and no key is ever shown.
    screen.text("sk-wrong-0123456789");
    screen.press(&["Enter"]);
    screen.shows("rejected the key");
    screen.waits("the key again", |content| content.matches("Key (HOST").count() > 2);
    screen.text(KEY);
    screen.press(&["Enter"]);
    screen.shows("Which model?");
    screen.shows("tiny-1");
    // A key in place of a model is refused.
    screen.text("another");
    screen.press(&["Enter"]);
    screen.shows("Name of the model:");
    screen.text(KEY);
    screen.press(&["Enter"]);
    let content = screen.shows("this looks like a key");
    assert!(!content.contains("sk-wrong"), "{content}");
    screen.press(&["Escape"]);
    screen.waits("the key again", |content| content.matches("Key (HOST").count() > 3);
    screen.text(KEY);
    screen.press(&["Enter"]);
    screen.waits("the models again", |content| content.matches("Which model?").count() > 1);
    screen.press(&["Down", "Enter"]);
    screen.shows("large-2 answers:");
    let content = screen.shows("ended with 0");
    assert!(content.contains("which only you can read"), "{content}");

    let (settings, keys) = kept(&place);
    assert!(settings.contains("model = \"large-2\""), "{settings}");
    assert!(settings.contains("api_key_env = \"HOST_127_0_0_1_API_KEY\""), "{settings}");
    assert!(!settings.contains(KEY) && keys.contains(KEY), "{settings}{keys}");
    let file = std::fs::metadata(place.home(".local/state/wattle/api-keys.toml")).unwrap();
    assert_eq!(file.permissions().mode() & 0o777, 0o600);
    // The key is used without a variable, and no program can read it.
    let done = place.command(&["run", "hello"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&done.stdout), "ready\n", "{done:?}");
    let read = "(ret (fs.read? \".local/state/wattle/api-keys.toml\"))";
    let program = place.home("read.wat");
    std::fs::write(&program, read).unwrap();
    let mut exec = place.command(&["exec", program.to_str().unwrap(), "--root"]);
    let done = exec.arg(place.home("")).output().unwrap();
    assert!(!String::from_utf8_lossy(&done.stdout).contains("sk-"), "{done:?}");
    assert_ne!(done.status.code(), Some(0));
    let doctor = place.command(&["doctor"]).output().unwrap();
    let found = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(found.contains("api-keys.toml") && !found.contains(KEY), "{found}");
}

#[test]
fn an_ended_dialogue_changes_nothing() {
    let place = Place::new();
    let Some(screen) = start(&place, 60) else { return };
    screen.shows("Which provider answers?");
    screen.press(&["C-c"]);
    let content = screen.shows("ended with 130");
    assert!(content.contains("nothing is saved"), "{content}");
    assert_eq!(kept(&place), (String::new(), String::new()));
}
