//! Tests of the calls and thoughts in the formats of model families. The cases in `tests/families/`
//! are read in both dialects, and by the scanner at every cut.

use std::fmt::Write as _;
use std::time::Instant;

use wattle_machine::{
    Dialect, Effect, Ending, Event, Input, ModelAnswer, Piece, Scanner, Setup, step,
};

use crate::native::{programs, shown};

/// Returns the outcome of an answer: its thought, its calls or its text.
fn outcome(dialect: Dialect, answer: &str) -> String {
    let setup = Setup { dialect, programs: programs().into(), ..Setup::default() };
    let (state, _) = step(wattle_machine::State::new(setup), Input::Begin { message: "go".into() });
    let answer = ModelAnswer { text: answer.to_owned(), ..ModelAnswer::default() };
    let (_, effects) = step(state, Input::Answer(answer));
    let mut out = String::new();
    for effect in &effects {
        match effect {
            Effect::Emit(Event::Thinking { content, .. }) => writeln!(out, "thought: {content}"),
            Effect::Emit(Event::Retry { error, .. }) => writeln!(out, "retry: {error}"),
            Effect::Emit(Event::ToolResult { output, .. }) => writeln!(out, "refused: {output}"),
            Effect::Execute { calls, .. } => {
                let calls: Vec<String> = calls.iter().map(shown).collect();
                writeln!(out, "calls: {}", calls.join(" + "))
            }
            Effect::Finish(Ending::Answered { text, .. }) => writeln!(out, "answer: {text}"),
            Effect::Finish(other) => writeln!(out, "ending: {}", other.text()),
            _ => Ok(()),
        }
        .unwrap();
    }
    out
}

/// Returns the pieces of an answer that arrives in parts. Consecutive texts are joined, and so are
/// the parts of a thought.
fn pieces<'a>(parts: impl IntoIterator<Item = &'a str>) -> Vec<Piece> {
    let programs = programs();
    let mut scanner = Scanner::new(&programs);
    let mut all: Vec<Piece> = parts.into_iter().flat_map(|part| scanner.push(part)).collect();
    all.extend(scanner.finish());
    let mut joined: Vec<Piece> = Vec::new();
    for piece in all {
        match (joined.last_mut(), piece) {
            (Some(Piece::Text(last)), Piece::Text(text))
            | (Some(Piece::Thought(last)), Piece::Thought(text)) => last.push_str(&text),
            (_, piece) => joined.push(piece),
        }
    }
    joined
}

fn cut_everywhere(answer: &str) {
    let whole = pieces([answer]);
    for (at, _) in answer.char_indices() {
        let (first, rest) = answer.split_at(at);
        assert_eq!(pieces([first, rest]), whole, "cut at {at}: {first:?} + {rest:?}");
    }
    let chars = answer.char_indices().map(|(at, c)| &answer[at..at + c.len_utf8()]);
    assert_eq!(pieces(chars), whole, "character by character: {answer:?}");
}

#[test]
fn every_family_is_read_in_both_dialects_and_at_every_cut() {
    let (mut count, mut comparison) = (0, wattle_cases::Comparison::new());
    for file in wattle_cases::files("tests/families", "txt") {
        let text = wattle_cases::read(&file);
        let mut parts = text.split("\n=== ");
        let mut found = parts.next().unwrap().to_owned();
        for part in parts {
            let (name, rest) = part.split_once('\n').expect("a case has a name and a text");
            let (answer, _) = rest.split_once("\n---\n").expect("a case has an outcome");
            let native = outcome(Dialect::Native, answer);
            let text = outcome(Dialect::Text, answer);
            let text =
                if text == native { String::new() } else { format!("text dialect:\n{text}") };
            write!(found, "\n=== {name}\n{answer}\n---\n{native}{text}").unwrap();
            cut_everywhere(answer);
            count += 1;
        }
        comparison.add(&file, &found);
    }
    assert!(count >= 350, "only {count} cases were found");
    comparison.finish();
}

#[test]
fn the_other_cases_are_read_the_same_at_every_cut() {
    for folder in ["tests/answers", "tests/functions"] {
        for file in wattle_cases::files(folder, "txt") {
            for answer in wattle_cases::read(&file).split("\n\n") {
                cut_everywhere(answer);
            }
        }
    }
}

#[test]
fn a_megabyte_of_openings_is_read_in_linear_time() {
    let openings = [
        "<|",
        "<",
        "<|channel|>analysis<|message|>",
        "<|channel|>commentary to=functions.file_read <|constrain|>json<|message|>{\"a\":\"",
        "to=functions.file_read {\"path\": ",
        "analysisWe assistantanalysisWe ",
        "<tool_call>",
        "<tool_call>{\"name\":\"",
        "<tool_call>{\"a\":[\"b\",",
        "<tool_call>file_read\n<arg_key>path</arg_key>\n",
        "<function=file_read>",
        "<function=file_read>\n<parameter=path>\n",
        "<｜DSML｜invoke name=\"file_read\">",
        "<｜tool▁calls▁begin｜>",
        "[TOOL_CALLS]",
        "[TOOL_CALLS]file_read[ARGS]{“",
        "[file_read(path=\"\"\"",
        "\n[file_read(path=\"a.txt\"), ",
        "\n{\"name\": \"file_read\", \"arguments\": {}}",
        "```tool_code\n",
        "```tool_code\nfile_read(path=\"a.txt\")\n",
        "<start_function_call>call:file_read{a:[",
        "<start_function_call>call:file_read{a:<escape>",
        "<think>",
        "<think></reasoning>",
        "</think>\n",
        "[THINK]",
        "`",
        "` `` ",
        "~~~\n",
        "<a:",
        "◁think▷",
        "Action: file_read\nAction Input: ",
    ];
    for opening in openings {
        let programs = programs();
        // The whole, then a part of it in pieces.
        for (length, size) in [(1 << 20, 1 << 20), (1 << 17, 1 << 10)] {
            let text = opening.repeat(length / opening.len());
            let started = Instant::now();
            let mut scanner = Scanner::new(&programs);
            let mut at = 0;
            while at < text.len() {
                let end = text.floor_char_boundary((at + size).min(text.len()));
                drop(scanner.push(&text[at..end]));
                at = end;
            }
            drop(scanner.finish());
            let elapsed = started.elapsed();
            assert!(elapsed.as_secs() < 60, "{opening:?} in parts of {size} took {elapsed:?}");
        }
    }
}
