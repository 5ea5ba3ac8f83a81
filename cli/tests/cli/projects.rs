//! Tests of project files: the settings that an untrusted folder may change, and how trust is
//! granted and revoked.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use serde_json::Value as Json;

use crate::place::Place;

/// The tested settings. Each row contains a key, a value, and the outcome if the project file of an
/// untrusted folder sets the key to the value. Every key has at least one row.
const KEYS: &[(&str, &str, Fate)] = &[
    ("model", "\"m\"", Fate::Refused),
    ("base_url", "\"http://evil.example/v1\"", Fate::Refused),
    ("api_key_env", "\"HOME\"", Fate::Refused),
    ("provider", "\"openai\"", Fate::Refused),
    ("cassette", "\"x\"", Fate::Refused),
    ("record", "\"x\"", Fate::Refused),
    ("dialect", "\"text\"", Fate::Applies),
    ("models", "{ fast = \"small\" }", Fate::Refused),
    ("temperature", "0.5", Fate::Applies),
    ("max_tokens", "100", Fate::Applies),
    ("max_tokens", "1000000", Fate::Refused),
    ("thinking_effort", "50", Fate::Refused),
    ("system", "\"x\"", Fate::Never),
    ("tool_call", "\"none\"", Fate::Applies),
    ("engine.file", "\"x\"", Fate::Never),
    ("engine.memory_mb", "64", Fate::Applies),
    ("engine.memory_mb", "100000", Fate::Refused),
    ("engine.turn", "\"1s\"", Fate::Applies),
    ("engine.turn", "\"1h\"", Fate::Refused),
    ("http_timeout", "\"30s\"", Fate::Applies),
    ("http_timeout", "\"1h\"", Fate::Refused),
    ("retry_for", "\"5s\"", Fate::Applies),
    ("retry_for", "\"1m\"", Fate::Refused),
    ("max_steps", "3", Fate::Applies),
    ("max_steps", "1000", Fate::Refused),
    ("max_steps", "0", Fate::Refused),
    ("on_max_steps", "\"stop\"", Fate::Applies),
    ("max_repetitions", "3", Fate::Applies),
    ("max_repetitions", "9", Fate::Refused),
    ("max_repetitions", "0", Fate::Refused),
    ("timeout", "\"1s\"", Fate::Applies),
    ("max_tokens_total", "5", Fate::Applies),
    ("max_cost", "0.5", Fate::Applies),
    ("prices", "{ m = { prompt = 0.0, completion = 0.0 } }", Fate::Refused),
    ("guard", "false", Fate::Refused),
    ("ai.calls", "1", Fate::Applies),
    ("ai.calls", "1000", Fate::Refused),
    ("ai.tokens", "1", Fate::Applies),
    ("ai.tokens", "5000000", Fate::Refused),
    ("ai.embed_model", "\"e\"", Fate::Refused),
    ("limits.memory_mb", "64", Fate::Applies),
    ("limits.memory_mb", "100000", Fate::Refused),
    ("limits.cpu", "\"1s\"", Fate::Applies),
    ("limits.cpu", "\"10h\"", Fate::Refused),
    ("limits.programs", "1", Fate::Applies),
    ("limits.programs", "100000", Fate::Refused),
    ("limits.received_mb", "1", Fate::Applies),
    ("limits.received_mb", "100000", Fate::Refused),
    ("limits.process_memory_mb", "64", Fate::Applies),
    ("limits.process_memory_mb", "100000", Fate::Refused),
    ("limits.run_store_mb", "1", Fate::Applies),
    ("limits.run_store_mb", "100000", Fate::Refused),
    ("limits.tenant_store_mb", "1", Fate::Never),
    ("limits.store_mb", "1", Fate::Never),
    ("search.engine", "\"searxng\"", Fate::Refused),
    ("search.engine", "\"off\"", Fate::Applies),
    ("search.url", "\"http://evil.example\"", Fate::Refused),
    ("search.key_env", "\"HOME\"", Fate::Refused),
    ("root", "\"/\"", Fate::Never),
    ("write", "true", Fate::Refused),
    ("write", "false", Fate::Applies),
    ("apply", "true", Fate::Refused),
    ("exec", "true", Fate::Never),
    ("git.remote", "\"/srv/evil.git\"", Fate::Never),
    ("git.branch", "\"main\"", Fate::Never),
    ("git.author_email", "\"a@b.example\"", Fate::Never),
    ("git.token_env", "\"HOME\"", Fate::Never),
    ("git.ca_file", "\"/x\"", Fate::Never),
    ("git.ssh_key", "\"/x\"", Fate::Never),
    ("git.known_hosts", "\"/x\"", Fate::Never),
    ("publish.root", "\"/srv\"", Fate::Never),
    ("image.base_url", "\"https://evil.example/v1\"", Fate::Never),
    ("image.model", "\"m\"", Fate::Never),
    ("image.api_key_env", "\"HOME\"", Fate::Never),
    (
        "programs",
        "{ a = { sha256 = \"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\", grants = [\"host:evil.example\"] } }",
        Fate::Never,
    ),
    ("mcp", "{ a = { command = \"sh\" } }", Fate::Never),
    ("secrets", "{ a = { env = \"HOME\", hosts = [\"evil.example\"] } }", Fate::Never),
    ("allow_host", "[\"127.0.0.1\"]", Fate::Refused),
    ("allow_host", "[]", Fate::Applies),
    ("allow", "[\"http\"]", Fate::Refused),
    ("ask", "[\"http\"]", Fate::Applies),
    ("deny", "[\"http\"]", Fate::Applies),
    ("catalog", "[\"tools\"]", Fate::Refused),
    ("skills", "[\"skills\"]", Fate::Never),
    ("agents", "[\"agents\"]", Fate::Refused),
    ("agent_resolver", "\"find_agent\"", Fate::Refused),
    ("agent", "\"clerk\"", Fate::Refused),
    ("session", "\"main\"", Fate::Refused),
    ("tenant", "\"other\"", Fate::Refused),
    ("session_ttl", "\"1ms\"", Fate::Refused),
    ("keep.sessions", "\"1ms\"", Fate::Never),
    ("keep.runs", "\"1ms\"", Fate::Never),
    ("keep.events", "\"1ms\"", Fate::Never),
    ("store", "\"x\"", Fate::Refused),
    ("blobs", "\"file:///x\"", Fate::Refused),
    ("orient", "true", Fate::Applies),
    ("orient", "false", Fate::Applies),
    ("agents_md", "true", Fate::Applies),
    ("agents_md", "false", Fate::Applies),
    ("verbose", "true", Fate::Applies),
    ("bell", "false", Fate::Applies),
    ("serve.runs", "8", Fate::Never),
    ("serve.runs_per_tenant", "8", Fate::Never),
    ("serve.queue", "8", Fate::Never),
    ("sandbox", "\"off\"", Fate::Never),
    ("trace.dir", "\"traces\"", Fate::Never),
];

#[derive(Clone, Copy, PartialEq)]
enum Fate {
    /// The value takes effect.
    Applies,
    /// The command fails, and its error names the command that trusts the folder.
    Refused,
    /// The command fails, even in a trusted folder.
    Never,
}

#[test]
fn every_setting_of_an_untrusted_folder_narrows_or_is_rejected() {
    let place = Place::new();
    let all: Json =
        serde_json::from_str(&place.wattle(["config", "show", "--json"]).run().code(0).stdout)
            .unwrap();
    let listed: Vec<&str> = KEYS.iter().map(|(key, ..)| *key).collect();
    for key in all.as_object().unwrap().keys() {
        assert!(listed.contains(&key.as_str()), "the setting `{key}` has no row here");
    }
    for (key, value, fate) in KEYS {
        let place = Place::new();
        place.write("wattle.toml", format!("{key} = {value}\n"));
        let shown = place.wattle(["config", "show", "--origin", "--json"]).run();
        match fate {
            Fate::Applies => {
                let shown: Json = serde_json::from_str(&shown.code(0).stdout).unwrap();
                assert_eq!(shown[key]["origin"], "project", "{key}");
            }
            Fate::Refused => {
                shown.code(3).reports(&[&format!("`{key}`"), "not trusted", "wattle trust"]);
                place.wattle(["trust"]).run().code(0);
                place.wattle(["config", "show"]).run().code(0);
            }
            Fate::Never => {
                shown.code(3).reports(&[&format!("`{key}`"), "may not set", "user file"]);
                place.wattle(["trust"]).run().code(3).reports(&["may not set"]);
            }
        }
    }
}

#[test]
fn commands_with_settings_reject_an_untrusted_file_unless_they_only_look() {
    let place = Place::new();
    place.write("wattle.toml", "session_ttl = \"1ms\"\n");
    let words = ["`session_ttl`", "not trusted"];
    for command in [
        &["run", "x"][..],
        &["exec", "-"],
        &["shell", "-c", "echo x"],
        &["repl"],
        &["serve"],
        &["vars", "list"],
        &["ledger", "key"],
    ] {
        let done = place.wattle(command).run().code(3).reports(&words).reports(&["wattle trust"]);
        assert_eq!(done.stdout, "", "{command:?}");
    }
    for (command, code) in
        [(["config", "show"], 3), (["catalog", "list"], 0), (["session", "list"], 0)]
    {
        place.wattle(command).run().code(code).reports(&words);
    }
    place.wattle(["status"]).run().code(0);
    place.wattle(["config", "show", "--root", place.home().to_str().unwrap()]).run().code(0);
}

#[test]
fn trust_applies_to_one_folder_and_its_content() {
    let place = Place::new();
    let ok = |args: &[&str]| place.wattle(args.iter().copied()).run().code(0);
    let file = "model = \"m\"\ncatalog = [\"tools\"]\n";
    place.write("wattle.toml", file);
    place.write("tools/a.wat", ";;; name = \"a\"\n;;; description = \"A\"\n(ret \"a\")\n");
    ok(&["trust"]);
    assert_eq!(ok(&["exec", "a"]).stdout, "a\n");
    let changed = |words: &[&str]| place.wattle(["exec", "a"]).run().code(3).reports(words);

    place.write("wattle.toml", "model = \"other\"\ncatalog = [\"tools\"]\n");
    changed(&[
        "has changed since its folder was trusted",
        "model was \"m\" and is \"other\"",
        "wattle.toml has other content",
    ]);
    place.write("wattle.toml", file);
    ok(&["exec", "a"]);
    place.write("tools/a.wat", ";;; name = \"a\"\n;;; description = \"A\"\n(ret \"evil\")\n");
    changed(&["tools/a.wat has other content"]);
    place.write("tools/a.wat", ";;; name = \"a\"\n;;; description = \"A\"\n(ret \"a\")\n");
    place.write("tools/b.wat", ";;; name = \"b\"\n;;; description = \"B\"\n(ret \"b\")\n");
    changed(&["tools/b.wat is new"]);
    std::fs::remove_file(place.work().join("tools/b.wat")).unwrap();
    ok(&["exec", "a"]);
    // A copy of the file in a subfolder is not trusted, and trust can be revoked.
    place.write("sub/wattle.toml", file);
    place.wattle(["exec", "a", "--root", "sub"]).run().code(3).reports(&["not trusted"]);
    ok(&["untrust"]);
    place.wattle(["exec", "a"]).run().code(3).reports(&["not trusted"]);

    // If a link is trusted, the folder that it points to is trusted.
    symlink(place.work(), place.home().join("link")).unwrap();
    ok(&["trust", place.home().join("link").to_str().unwrap()]);
    ok(&["exec", "a"]);
    let list = place.home().join(".local/share/wattle/trust.json");
    assert_eq!(std::fs::metadata(&list).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(
        std::fs::metadata(list.parent().unwrap()).unwrap().permissions().mode() & 0o777,
        0o700
    );
    std::fs::write(&list, "{}").unwrap();
    place.wattle(["exec", "a"]).run().code(3).reports(&["failed to read the trusted folders"]);
}

/// Writes a project file that selects an agent and a recording. Also writes the files that the
/// project file refers to.
fn write_clerk(place: &Place) {
    let settings = "agents = [\"agents\"]\nagent = \"clerk\"\ncassette = \"c.jsonl\"\n";
    place.write("wattle.toml", settings);
    place.write("agents/clerk.toml", "name = \"clerk\"\nprompt = \"You sort.\"\n");
    place.write("agents/traits/tone.toml", "name = \"tone\"\nprompt = \"Be brief.\"\n");
    let lines = [
        serde_json::json!({"wattle_cassette": 1, "model": "recorded"}),
        serde_json::json!({"reply": "ToolCall::Response(\"sorted\")"}),
    ];
    place.write("c.jsonl", lines.map(|line| format!("{line}\n")).concat());
}

#[test]
fn trust_covers_the_agents_the_traits_and_the_recording() {
    let place = Place::new();
    write_clerk(&place);
    let files = ["agents/clerk.toml", "agents/traits/tone.toml", "c.jsonl"];
    let listed = files.map(|file| format!("  file {file}\n"));
    place.wattle(["trust"]).run().code(0).reports(&listed.each_ref().map(String::as_str));
    let run = || place.wattle(["run", "go"]).run();
    assert_eq!(run().code(0).stdout, "sorted\n");
    for (path, content, difference) in [
        ("agents/clerk.toml", "name = \"clerk\"\n", "agents/clerk.toml has other content"),
        ("agents/other.toml", "name = \"other\"\n", "agents/other.toml is new"),
        (
            "agents/traits/tone.toml",
            "name = \"tone\"\n",
            "agents/traits/tone.toml has other content",
        ),
        ("agents/traits/more.toml", "name = \"more\"\n", "agents/traits/more.toml is new"),
        ("c.jsonl", "{}\n", "c.jsonl has other content"),
    ] {
        let before = std::fs::read(place.work().join(path)).ok();
        place.write(path, content);
        run().code(3).reports(&["has changed since its folder was trusted", difference]);
        let status = place.wattle(["status", "--json"]).run().code(0).stdout;
        let status: Json = serde_json::from_str(&status).unwrap();
        assert_eq!(status["state"], "changed", "{path}");
        assert_eq!(status["changed"], serde_json::json!([difference]), "{path}");
        match before {
            Some(before) => drop(place.write(path, before)),
            None => std::fs::remove_file(place.work().join(path)).unwrap(),
        }
        run().code(0);
    }
    let status = place.wattle(["status", "--json"]).run().code(0).stdout;
    let status: Json = serde_json::from_str(&status).unwrap();
    assert_eq!(status["files"], serde_json::json!(files));
    assert_eq!(status["programs"], serde_json::json!([]));
}

#[test]
fn trust_that_was_recorded_without_the_loaded_files_has_ended() {
    let place = Place::new();
    write_clerk(&place);
    place.wattle(["trust"]).run().code(0);
    let list = place.home().join(".local/share/wattle/trust.json");
    let mut records: Json = serde_json::from_str(&std::fs::read_to_string(&list).unwrap()).unwrap();
    for record in records["folders"].as_object_mut().unwrap().values_mut() {
        record["pins"].as_object_mut().unwrap().retain(|name, _| name == "wattle.toml");
    }
    std::fs::write(&list, records.to_string()).unwrap();
    let words = ["agents/clerk.toml is new", "agents/traits/tone.toml is new", "c.jsonl is new"];
    place.wattle(["config", "show"]).run().code(3).reports(&words);
}

#[test]
fn a_recording_is_trusted_only_if_it_is_a_regular_file_of_limited_size() {
    let place = Place::new();
    write_clerk(&place);
    let recording = place.work().join("c.jsonl");
    let rejected = |words: &[&str]| {
        for command in [&["trust"][..], &["status"], &["config", "show"]] {
            let done = place.wattle(command).run().code(3);
            done.reports(&["cannot be trusted: failed to read its recording"]).reports(words);
        }
    };
    std::fs::rename(&recording, place.work().join("moved.jsonl")).unwrap();
    symlink("moved.jsonl", &recording).unwrap();
    rejected(&["it is a link"]);
    std::fs::remove_file(&recording).unwrap();
    std::fs::File::create(&recording).unwrap().set_len(65 << 20).unwrap();
    rejected(&["it is larger than", "64 MiB"]);
}

#[test]
fn programs_beyond_the_maximum_total_size_are_not_trusted() {
    let place = Place::new();
    place.write("wattle.toml", "catalog = [\"tools\"]\n");
    place.write("tools/z.wat", ";;; name = \"z\"\n;;; description = \"Z\"\n(ret \"z\")\n");
    for number in 0..64 {
        let file = std::fs::File::create(place.work().join(format!("tools/{number}.wat"))).unwrap();
        file.set_len((1 << 20) - u64::from(number == 0)).unwrap();
    }
    place.wattle(["trust"]).run().code(3).reports(&["64 MiB, and cannot be trusted"]);
}

#[test]
fn files_whose_names_are_not_utf8_are_not_trusted() {
    use std::os::unix::ffi::OsStrExt;
    let place = Place::new();
    write_clerk(&place);
    let name = std::ffi::OsStr::from_bytes(b"agents/\xff.toml");
    std::fs::write(place.work().join(name), "name = \"other\"\n").unwrap();
    place.wattle(["trust"]).run().code(3).reports(&["cannot be trusted", "is not UTF-8"]);
}

/// A function that creates an invalid project file.
type Setup<'a> = &'a dyn Fn(&Place);

#[test]
fn only_a_regular_file_of_limited_size_is_a_project_file() {
    let cases: &[(Setup, &str)] = &[
        (&|place| symlink("/etc/passwd", place.work().join("wattle.toml")).unwrap(), "a link"),
        (&|place| symlink("/dev/zero", place.work().join("wattle.toml")).unwrap(), "a link"),
        (
            &|place| {
                place.write("own.toml", "max_steps = 3\n");
                symlink("own.toml", place.work().join("wattle.toml")).unwrap();
            },
            "a link",
        ),
        (
            &|place| {
                let made =
                    Command::new("mkfifo").arg(place.work().join("wattle.toml")).status().unwrap();
                assert!(made.success());
            },
            "a fifo",
        ),
        (&|place| std::fs::create_dir(place.work().join("wattle.toml")).unwrap(), "a folder"),
        (
            &|place| drop(place.write("wattle.toml", "#".repeat((1 << 20) + 1))),
            "larger than 1024 KiB",
        ),
        (
            &|place| {
                let file = std::fs::File::create(place.work().join("wattle.toml")).unwrap();
                file.set_len(1 << 42).unwrap();
            },
            "larger than 1024 KiB",
        ),
        (&|place| drop(place.write("wattle.toml", b"model = \"\xff\"")), "not UTF-8"),
        (
            &|place| drop(place.write("wattle.toml", "a = ".to_owned() + &"[".repeat(500_000))),
            "recurse",
        ),
        (&|place| drop(place.write("wattle.toml", "a.".repeat(200_000) + "a = 1")), "recursion"),
        (
            &|place| {
                drop(place.write("wattle.toml", format!("[{}a]\nb = 1", "a.".repeat(200_000))))
            },
            "recursion",
        ),
    ];
    for (make, words) in cases {
        let place = Place::new();
        make(&place);
        for command in [&["config", "show"][..], &["status"], &["trust"], &["exec", "-"]] {
            let done = place
                .wattle(command)
                .run()
                .code(3)
                .reports(&["failed to read `./wattle.toml`", words]);
            assert!(done.stderr.len() < 2_000, "{}", done.stderr.len());
        }
    }
}

#[test]
fn a_run_writes_neither_project_files_nor_catalog_folders() {
    let place = Place::new();
    place.write("wattle.toml", "catalog = [\"tools\"]\n");
    place.write("tools/a.wat", ";;; name = \"a\"\n;;; description = \"A\"\n(ret \"a\")\n");
    place.wattle(["trust"]).run().code(0);
    let lines = [
        "echo x > wattle.toml",
        "echo x > WATTLE.toml",
        "mkdir sub && echo x > sub/wattle.toml",
        "mv wattle.toml other.toml",
        "rm wattle.toml",
        "echo x > other && mv other wattle.toml",
        "ln -s nowhere wattle.toml",
        "ln -s . here && echo x > here/wattle.toml",
        "echo x > tools/b.wat",
        "echo x >> tools/a.wat",
        "rm tools/a.wat",
        "mv tools elsewhere",
        "rm -r tools",
        "ln -s tools also && echo x > also/b.wat",
    ];
    for (line, how) in lines.into_iter().zip(["--write", "--apply"].into_iter().cycle()) {
        place.wattle(["shell", how, "-c", line]).run();
        assert_eq!(
            std::fs::read_dir(place.work().join("tools")).unwrap().count(),
            1,
            "{line} {how}"
        );
        assert_eq!(place.read("wattle.toml"), "catalog = [\"tools\"]\n", "{line} {how}");
        assert!(place.read("tools/a.wat").ends_with("(ret \"a\")\n"), "{line} {how}");
    }
    assert!(
        !place.work().join("sub/wattle.toml").exists()
            && !place.work().join("WATTLE.toml").exists()
    );
}

#[test]
fn a_run_adds_no_programs_and_no_agents_if_their_folder_is_the_workdir() {
    const PROGRAM: &str = ";;; name = \"a\"\n;;; description = \"A\"\n(ret \"a\")\n";
    let place = Place::new();
    place.write("wattle.toml", "catalog = [\".\"]\nagents = [\".\"]\n");
    place.write("a.wat", PROGRAM);
    place.write("clerk.toml", "name = \"clerk\"\n");
    place.wattle(["trust"]).run().code(0);
    let lines = [
        "echo x > b.wat",
        "echo x > B.WAT",
        "echo x > other && mv other b.wat",
        "ln -s nowhere b.wat",
        "echo x >> a.wat",
        "rm a.wat",
        "mv a.wat a.txt",
        "cp clerk.toml b.toml",
        "mv clerk.toml c.txt",
        "mkdir traits && echo x > traits/x.toml",
        "mkdir -p folder && echo x > folder/x.toml && mv folder traits",
        "ln -s folder traits",
    ];
    for line in lines {
        for how in ["--write", "--apply"] {
            place.wattle(["shell", how, "-c", line]).run();
            assert_eq!(place.read("a.wat"), PROGRAM, "{line} {how}");
            assert_eq!(place.read("clerk.toml"), "name = \"clerk\"\n", "{line} {how}");
            for name in ["b.wat", "B.WAT", "b.toml", "traits"] {
                let there = place.work().join(name).symlink_metadata().is_ok();
                assert!(!there, "{name}: {line} {how}");
            }
        }
    }
    place.wattle(["shell", "--write", "-c", "echo rain > notes.txt"]).run().code(0);
    assert_eq!(place.read("notes.txt"), "rain\n");
}
