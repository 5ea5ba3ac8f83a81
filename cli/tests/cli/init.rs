//! Tests of `wattle init`.

use wattle_tests::provider::{Answer, Provider};

use crate::place::Place;

fn user_file(place: &Place) -> std::path::PathBuf {
    place.home().join(".config/wattle/wattle.toml")
}

#[test]
fn the_settings_are_saved_after_the_model_answered() {
    let place = Place::new();
    let provider = Provider::answering(|_| Answer::text("ToolCall::Response(\"ready\")"));
    let url = provider.base_url();
    let init = ["init", "--base-url", &url, "--model", "m", "--api-key-env", "OWN_KEY"];
    place.wattle(init).run().code(3).reports(&["the variable `OWN_KEY` with the key is not set"]);
    assert!(!user_file(&place).exists());

    let folder = user_file(&place).parent().unwrap().to_owned();
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(user_file(&place), "# mine\nmax_steps = 3\nprovider = \"ollama\"\n").unwrap();
    let key = "sk-test-0123456789";
    place.wattle(init).env("OWN_KEY", key).run().code(0).reports(&["saved in "]);
    let text = std::fs::read_to_string(user_file(&place)).unwrap();
    assert!(text.starts_with("# mine\nmax_steps = 3\n") && !text.contains("ollama"), "{text}");
    assert!(!text.contains(key), "the file names the variable, not the key");
    assert_eq!(provider.requests()[0].header("authorization"), Some("Bearer sk-test-0123456789"));

    // The commands in the README now work.
    let done = place.wattle(["run", "are you there?"]).env("OWN_KEY", key).run().code(0);
    assert_eq!(done.stdout, "ready\n");
}

#[test]
fn a_model_that_does_not_answer_saves_nothing() {
    let place = Place::new();
    let provider = Provider::answering(|_| Answer::status(401).with_body("{}"));
    let url = provider.base_url();
    let init = ["init", "--base-url", &url, "--model", "m"];
    place
        .wattle(init)
        .env("WATTLE_API_KEY", "sk-test-0123456789")
        .run()
        .code(4)
        .reports(&["nothing is saved", "--no-test"]);
    assert!(!user_file(&place).exists());
    place.wattle(init.iter().chain(&["--no-test"])).run().code(0);
    assert!(user_file(&place).exists());
}

#[test]
fn what_is_missing_is_named() {
    let place = Place::new();
    place.wattle(["init"]).run().code(2).reports(&["no provider is named", "openrouter"]);
    place
        .wattle(["init", "--provider", "nobody", "--model", "m"])
        .run()
        .code(2)
        .reports(&["unknown provider `nobody`", "openrouter"]);
    place
        .wattle(["init", "--base-url", "http://127.0.0.1:9/v1"])
        .run()
        .code(2)
        .reports(&["--model NAME"]);
}
