//! Tests of the completions in a shell.

use crate::place::Place;

/// Returns the completions of the last word, as the script of bash asks for them.
fn completed(place: &Place, line: &[&str]) -> Vec<String> {
    let call = place.wattle(["--", "wattle"].iter().chain(line)).env("WATTLE_COMPLETE", "bash");
    let call = call.env("_CLAP_COMPLETE_INDEX", line.len().to_string()).env("_CLAP_IFS", "\n");
    let done = call.run().code(0);
    assert_eq!(done.stderr, "", "the user is typing");
    done.stdout.lines().map(str::to_owned).collect()
}

#[test]
fn completions_know_the_names_of_the_user() {
    let place = Place::new();
    let is = |line: &[&str], words: &[&str]| {
        let found = completed(&place, line);
        assert!(
            words.iter().all(|word| found.iter().any(|own| own == word)),
            "{line:?}: {found:?}"
        );
        found
    };
    is(&["ru"], &["run", "runs"]);
    assert_eq!(completed(&place, &["run", "--provider", "op"]), ["openrouter", "openai"]);
    is(&["init", "--provider", ""], &["ollama", "lmstudio"]);
    is(&["run", "--dialect", ""], &["text", "native", "auto"]);
    is(&["config", "set", "max_st"], &["max_steps"]);
    is(&["run", "--max-st"], &["--max-steps"]);
    is(&["run", "--search-en"], &["--search-engine"]);

    place.write("wattle.toml", "catalog = [\"tools\"]\nagents = [\"agents\"]\n");
    place.write(
        "tools/shout.wat",
        ";;; name = \"shout\"\n;;; description = \"Shouts\"\n(ret \"a\")\n",
    );
    place.write("agents/clerk.toml", "name = \"clerk\"\nprompt = \"You sort.\"\n");
    let of_stranger = completed(&place, &["catalog", "show", "sho"]);
    assert!(of_stranger.is_empty(), "{of_stranger:?}");
    place.wattle(["trust"]).run().code(0);
    is(&["catalog", "show", "sho"], &["shout"]);
    place.write("shout.txt", "");
    is(&["exec", "sho"], &["shout", "shout.txt"]);
    is(&["run", "--agent", ""], &["clerk"]);
    is(&["agents", "show", "cl"], &["clerk"]);

    let no_session = completed(&place, &["session", "show", ""]);
    assert!(!no_session.contains(&"last".to_owned()), "{no_session:?}");
    let reply = serde_json::json!({"reply": "ToolCall::Response(\"done\")"}).to_string();
    let recording = format!("{{\"wattle_cassette\":1,\"model\":\"m\"}}\n{reply}\n");
    place.write("c.jsonl", recording);
    place.wattle(["run", "--cassette", "c.jsonl", "--session", "mine", "go"]).run().code(0);
    is(&["session", "show", ""], &["mine", "last"]);
    is(&["run", "--session", "mi"], &["mine"]);
    let runs = completed(&place, &["run", "--resume", ""]);
    assert!(runs[0].len() == 26 && runs.contains(&"last".to_owned()), "{runs:?}");
    is(&["show", ""], &[&runs[0]]);
}

#[test]
fn the_script_of_each_shell_asks_the_binary() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = place.wattle(["completions", shell]).run().code(0).stdout;
        assert!(script.contains("WATTLE_COMPLETE") && script.len() < 4_000, "{shell}: {script}");
    }
    // What a user of bash sees after a tab.
    let line = "set +eu; source /dev/stdin <<<\"$(wattle completions bash)\"; \
                COMP_WORDS=(wattle run --provider ol); COMP_CWORD=3; COMP_TYPE=9; \
                _clap_complete_wattle wattle ol --provider; echo \"${COMPREPLY[@]}\"";
    let done = place.shell(&format!("exec bash -c '{line}'")).run().code(0);
    assert_eq!(done.stdout, "ollama\n", "{}", done.stderr);
}

#[test]
fn each_command_has_a_manual_page() {
    let place = Place::new();
    place.wattle(["man", "share/man1"]).run().code(0);
    let page = |name: &str| place.read(&format!("share/man1/{name}.1"));
    let main = page("wattle");
    assert!(main.contains("wattle\\-run(1)") && main.contains(".SH OPTIONS"), "{main}");
    for name in ["wattle-run", "wattle-session-resume", "wattle-mcp", "wattle-man"] {
        let page = page(name);
        assert!(page.contains(".SH DESCRIPTION") && !page.contains('\u{1b}'), "{page}");
    }
    place.write("file", "");
    let refused = place.wattle(["man", "file/man1"]).run().code(1).stderr;
    assert!(refused.contains("file/man1: "), "{refused}");
}
