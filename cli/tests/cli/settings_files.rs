//! Tests of the commands that change settings files, and of the search for the project file.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use crate::place::{Done, Place};

fn user_file(place: &Place) -> PathBuf {
    place.home().join(".config/wattle/wattle.toml")
}

fn text(place: &Place) -> String {
    std::fs::read_to_string(user_file(place)).unwrap()
}

fn config(place: &Place, args: &[&str]) -> Done {
    place.wattle(["config"].iter().chain(args)).run()
}

#[test]
fn a_setting_is_set_read_and_removed_and_comments_stay() {
    let place = Place::new();
    config(&place, &["get", "model"]).code(1).reports(&["`model` is not set"]);
    let path = user_file(&place);
    config(&place, &["set", "max_steps", "7"]).code(0).reports(&[path.to_str().unwrap()]);
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    std::fs::write(&path, "# mine\nmax_steps = 7 # few\n\n[ai]\n# programs\ncalls = 3\n").unwrap();
    for (key, value, shown) in [
        ("max_steps", "9", "9"),
        ("ai.calls", "4", "4"),
        ("ai.tokens", "500", "500"),
        ("model", "openai:gpt-5", "openai:gpt-5"),
        ("write", "on", "true"),
        ("timeout", "90s", "90s"),
        ("deny", "http,write:notes", r#"["http","write:/notes"]"#),
        ("max_cost", "$0.5", "0.5"),
        ("keep.runs", "forever", "forever"),
        ("prices", "m = { prompt = 1.0, completion = 2.0 }", r#"{"m":{"#),
    ] {
        config(&place, &["set", key, value]).code(0);
        let got = config(&place, &["get", key]).code(0).stdout;
        assert!(got.starts_with(shown), "{key}: {got}");
    }
    let kept = text(&place);
    for line in ["# mine\n", "max_steps = 9 # few\n", "[ai]\n# programs\ncalls = 4\ntokens = 500\n"]
    {
        assert!(kept.contains(line), "{kept}");
    }
    // The paths of the command line are relative to the current folder, not to the file.
    config(&place, &["set", "catalog", "tools"]).code(0);
    let tools = place.work().canonicalize().unwrap().join("tools");
    let got = config(&place, &["get", "catalog", "--json"]).code(0).stdout;
    assert_eq!(got, format!("[{tools:?}]\n"));

    config(&place, &["unset", "max_steps"]).code(0);
    config(&place, &["unset", "ai.calls"]).code(0);
    config(&place, &["unset", "ai.tokens"]).code(0);
    config(&place, &["unset", "max_steps"]).code(1).reports(&["`max_steps` is not set in"]);
    assert!(!text(&place).contains("max_steps"));
    config(&place, &["get", "max_steps"]).code(1);
    let overridden = place.wattle(["config", "set", "model", "m"]).env("WATTLE_MODEL", "other");
    overridden.run().code(0).reports(&["no effect here: WATTLE_MODEL sets it"]);
}

#[test]
fn only_valid_settings_are_set() {
    let place = Place::new();
    let key = "sk-proj-0123456789abcdefghij";
    for (name, value, words) in [
        ("modle", "m", &["unknown setting `modle`", "did you mean `model`?"][..]),
        ("api_key", key, &["looks like an API key", "wattle init"]),
        ("openai_api_key", "x", &["unknown setting", "settings contain no keys"]),
        ("model", key, &["looks like an API key", "wattle init"]),
        ("api_key_env", key, &["looks like an API key"]),
        ("api_key_env", "not a name", &["not the name of a variable"]),
        ("base_url", "https://me:secret@host.example/v1", &["user name or password"]),
        ("max_steps", "many", &["`max_steps`", "whole number"]),
        ("sandbox", "maybe", &["`on` or `off`"]),
        ("model", "", &["not empty"]),
    ] {
        let done = config(&place, &["set", name, value]);
        assert!(matches!(done.code, 2 | 3), "{name}: {}", done.code);
        let done = done.reports(words);
        assert!(!done.stderr.contains(key) && !done.stderr.contains("secret@"), "{}", done.stderr);
    }
    config(&place, &["set", "root", "/", "--project"]).code(2).reports(&["may not set `root`"]);
    assert!(!user_file(&place).exists() && !place.work().join("wattle.toml").exists());
}

#[test]
fn a_broken_file_can_be_repaired_by_commands() {
    let place = Place::new();
    std::fs::create_dir_all(user_file(&place).parent().unwrap()).unwrap();
    std::fs::write(user_file(&place), "modle = \"m\"\nmax_steps = 3\n\ntimeot = \"9s\"\n").unwrap();
    config(&place, &["show"]).code(3).reports(&[
        "2 unknown keys in",
        "`modle`, line 1: did you mean `model`?",
        "`timeot`, line 4: did you mean `timeout`?",
    ]);
    place.wattle(["trust"]).run().code(2).reports(&["warning:", "no `wattle.toml`"]);
    config(&place, &["unset", "modle"]).code(0);
    config(&place, &["unset", "timeot"]).code(0);
    config(&place, &["show"]).code(0);
    std::fs::write(user_file(&place), "model = \"m\"\n\ntimeout = 9\n").unwrap();
    config(&place, &["show"]).code(3).reports(&["`timeout`", "wattle.toml`, line 3:"]);
    // All settings of a table are commented out.
    std::fs::write(user_file(&place), "[ai]\n# calls = 3\n").unwrap();
    config(&place, &["show"]).code(0);
}

#[test]
fn the_files_are_located_and_edited() {
    let place = Place::new();
    let path = config(&place, &["path"]).code(0).stdout;
    assert_eq!(path.trim_end(), user_file(&place).to_str().unwrap());
    assert_eq!(config(&place, &["path", "--project"]).code(0).stdout, "./wattle.toml\n");
    config(&place, &["edit"]).code(1).reports(&["names no editor", "EDITOR=nano"]);
    let editor = place.home().join("editor");
    std::fs::write(&editor, "#!/bin/sh\necho \"$LINE\" >>\"$1\"\n").unwrap();
    std::fs::set_permissions(&editor, std::fs::Permissions::from_mode(0o755)).unwrap();
    let edit = |args: &[&str], line: &str| {
        let call = place.wattle(["config", "edit"].iter().chain(args));
        call.env("EDITOR", &editor).env("LINE", line).run()
    };
    edit(&[], "model = \"m\"").code(0);
    assert_eq!(text(&place), "model = \"m\"\n");
    edit(&["--project"], "max_steps = 2").code(0);
    assert_eq!(place.read("wattle.toml"), "max_steps = 2\n");
    edit(&[], "modle = 1").code(3).reports(&["unknown key `modle`", "line 2"]);
    config(&place, &["set", "max_steps", "3", "--project"]).code(0);
    assert_eq!(place.read("wattle.toml"), "max_steps = 3\n");
    let warned = config(&place, &["set", "model", "x", "--project"]).code(0);
    warned.reports(&["not trusted", "wattle trust"]);
}

#[test]
fn the_project_file_is_found_upwards_to_the_root_of_the_repository() {
    let place = Place::new();
    place.write("wattle.toml", "max_steps = 3\nmodel = \"of-project\"\ncatalog = [\"tools\"]\n");
    place.write("a/b/c.txt", "");
    let steps = |folder: &str, call: &[&str]| {
        let done = place.wattle(call.iter().chain(&["-C", folder])).run();
        (done.code, done.stdout.trim_end().to_owned())
    };
    let get = ["config", "get", "max_steps"];
    // Neither a repository nor the home folder: the file above may be a stranger's.
    assert_eq!(steps("a/b", &get), (1, String::new()));
    std::fs::create_dir(place.work().join(".git")).unwrap();
    assert_eq!(steps("a/b", &get), (0, "3".to_owned()));
    let work = place.work().canonicalize().unwrap();
    let path = steps("a/b", &["config", "path", "--project"]);
    assert_eq!(path, (0, work.join("wattle.toml").to_str().unwrap().to_owned()));
    // Its folder is trusted as before, and paths start from the file.
    place.wattle(["vars", "list"]).run().code(3);
    place.wattle(["config", "show", "-C", "a/b"]).run().code(3).reports(&["not trusted"]);
    place.wattle(["trust", "a/b"]).run().code(0);
    assert_eq!(steps("a/b", &["config", "get", "model"]).1, "of-project");
    assert_eq!(steps(".", &["config", "get", "model"]).1, "of-project");
    let catalog = steps("a/b", &["config", "get", "catalog"]).1;
    assert_eq!(catalog, format!("[{:?}]", work.join("tools")));
    place.wattle(["untrust", "a"]).run().code(0).reports(&["is no longer trusted"]);
    place.wattle(["config", "show"]).run().code(3).reports(&["not trusted"]);
    // The nearest file holds, and a repository inside ends the search.
    place.write("a/wattle.toml", "max_steps = 2\n");
    assert_eq!(steps("a/b", &get).1, "2");
    std::fs::create_dir(place.work().join("a/b/.git")).unwrap();
    assert_eq!(steps("a/b", &get), (1, String::new()));
    // The home folder is searched, too, and nothing above it.
    std::fs::write(place.home().join("wattle.toml"), "max_steps = 5\n").unwrap();
    std::fs::create_dir_all(place.home().join("notes/old")).unwrap();
    assert_eq!(steps("../home/notes/old", &get).1, "5");
}
