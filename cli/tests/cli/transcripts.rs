//! Tests of transcripts: commands with their exact output.
//!
//! A transcript in `tests/transcripts` lists commands. Each command is a line that begins with
//! `$ `, followed by its output: stdout unchanged, stderr after `! `, and the exit code after `? `
//! unless it is 0. A line `@ NAME` begins the content of the file NAME in the workdir; a line `@`
//! ends it. `UPDATE=1` updates the transcripts.

use std::fmt::Write;

use crate::place::Place;

#[test]
fn calls_print_what_their_transcripts_have() {
    let mut comparison = wattle_cases::Comparison::new();
    for path in wattle_cases::files("tests/transcripts", "txt") {
        comparison.add(&path, &play(&wattle_cases::read(&path)));
    }
    comparison.finish();
}

/// Runs the commands of a transcript and returns the transcript with their output.
fn play(transcript: &str) -> String {
    let place = Place::new();
    let mut played = String::new();
    let mut lines = transcript.lines();
    while let Some(line) = lines.next() {
        if let Some(name) = line.strip_prefix("@ ") {
            let content: Vec<&str> = lines.by_ref().take_while(|line| *line != "@").collect();
            place.write(name, content.join("\n") + "\n");
            let _ = write!(played, "{line}\n{}\n@\n", content.join("\n"));
        } else if let Some(call) = line.strip_prefix("$ wattle") {
            let _ = write!(played, "{line}\n{}", made(&place, call));
        } else if line.is_empty() || line.starts_with("# ") {
            // An empty line of output would look like the empty line between two commands, so empty
            // lines are omitted from outputs.
            let _ = writeln!(played, "{line}");
        }
    }
    played.trim_end().to_owned() + "\n"
}

fn made(place: &Place, call: &str) -> String {
    let (words, stdin) = match call.split_once(" < ") {
        Some((words, file)) => (words, std::fs::read(place.work().join(file)).unwrap()),
        None => (call, Vec::new()),
    };
    let done = place.wattle(words.split_whitespace()).stdin(stdin).run();
    let mut seen = String::new();
    for (mark, text) in [("", &done.stdout), ("! ", &done.stderr)] {
        for line in text.lines().filter(|line| !line.is_empty()) {
            let line = line
                .replace(place.work().to_str().unwrap(), "[work]")
                .replace(place.home().to_str().unwrap(), "[home]");
            let _ = writeln!(seen, "{mark}{line}");
        }
    }
    if done.code != 0 {
        let _ = writeln!(seen, "? {}", done.code);
    }
    seen
}
