//! Tests of what a message shows while it is written.

use wattle_machine::{
    AnswerPart, Dialect, Draft, DraftPiece, Effect, Ending, Input, ModelAnswer, Setup, ShownAnswer,
    State, step,
};

use crate::native::programs;

/// Returns the answer that a whole message contains, or `None` if it calls a program.
fn answer(dialect: Dialect, text: &str) -> Option<String> {
    let setup = Setup { dialect, programs: programs().into(), ..Setup::default() };
    let (state, _) = step(State::new(setup), Input::Begin { message: "go".into() });
    let answer = ModelAnswer { text: text.to_owned(), ..ModelAnswer::default() };
    let (_, effects) = step(state, Input::Answer(answer));
    effects.into_iter().find_map(|effect| match effect {
        Effect::Finish(Ending::Answered { text, .. }) => Some(text),
        _ => None,
    })
}

/// The parts of the answer after the last [`DraftPiece::Void`], joined, and the thoughts.
#[derive(Debug, Default, PartialEq, Eq)]
struct Shown {
    answer: String,
    thought: String,
}

impl Shown {
    fn add(&mut self, pieces: Vec<DraftPiece>) {
        for piece in pieces {
            match piece {
                DraftPiece::Thought(text) => self.thought.push_str(&text),
                DraftPiece::Answer { text, .. } => self.answer.push_str(&text),
                DraftPiece::Void => self.answer.clear(),
            }
        }
    }
}

/// Returns what a message shows before it is read as a whole, and what it shows in the end.
fn shown<'a>(
    dialect: Dialect,
    parts: impl IntoIterator<Item = &'a str>,
    answer: Option<&str>,
) -> (Shown, Shown) {
    let programs = programs();
    let mut draft = Draft::new(dialect, false, &programs);
    let (mut before, mut after) = (Shown::default(), Shown::default());
    let mut all = ShownAnswer::default();
    for part in parts {
        let pieces = draft.push(AnswerPart::Text(part));
        pieces.iter().for_each(|piece| all.add(piece));
        before.add(pieces.clone());
        after.add(pieces);
    }
    after.add(all.settle(answer));
    (before, after)
}

fn corpus() -> Vec<String> {
    let mut all = Vec::new();
    for (folder, end) in [("tests/answers", "\n==> "), ("tests/families", "\n---\n")] {
        for file in wattle_cases::files(folder, "txt") {
            for case in wattle_cases::read(&file).split("\n=== ").skip(1) {
                let (_, rest) = case.split_once('\n').unwrap();
                let (answer, _) = rest.split_once(end).unwrap_or((rest, ""));
                all.push(answer.replace("␍\n", "\r\n").replace('␍', "\r").replace('␠', " "));
            }
        }
    }
    assert!(all.len() >= 600, "only {} cases were found", all.len());
    all
}

#[test]
fn the_pieces_of_every_answer_are_the_answer_however_it_is_cut() {
    let mut surprises = Vec::new();
    for text in corpus() {
        for dialect in [Dialect::Text, Dialect::Native, Dialect::Plain] {
            let answer = answer(dialect, &text);
            let expected = answer.as_deref().unwrap_or_default();
            let chars = text.char_indices().map(|(at, c)| &text[at..at + c.len_utf8()]);
            let (before, after) = shown(dialect, chars, answer.as_deref());
            assert_eq!(after.answer, expected, "{dialect:?}, character by character: {text:?}");
            if answer.is_some() && !expected.starts_with(&before.answer) {
                surprises.push((dialect, text.clone(), before.answer.clone()));
            }
            for (at, _) in text.char_indices() {
                let (first, rest) = text.split_at(at);
                let (_, after) = shown(dialect, [first, rest], answer.as_deref());
                assert_eq!(after.answer, expected, "{dialect:?}, cut at {at}: {text:?}");
            }
        }
    }
    // An answer whose quotes do not match may show a quote too many.
    assert!(surprises.len() <= 4, "taken back: {surprises:#?}");
}

/// Returns two hundred words with quotes, escapes, code and brackets.
fn words() -> String {
    let part = "The two brothers said that (as always) it is \"fine\".\n\n- one\n- two\n\n\
                ```python\nprint(1 + 1)  # two\n```\n\nSo it goes, and so it ends there.\n";
    part.repeat(8).trim_end().to_owned()
}

fn length(part: &AnswerPart<'_>) -> usize {
    match part {
        AnswerPart::Text(text) | AnswerPart::Reasoning(text) => text.len(),
        AnswerPart::Call { arguments, .. } => arguments.len(),
    }
}

/// Returns the largest number of bytes of an answer that arrived and were not shown yet.
fn longest_delay(dialect: Dialect, parts: &[AnswerPart<'_>], answer: &str) -> usize {
    let programs = programs();
    let mut draft = Draft::new(dialect, false, &programs);
    let (mut shown, mut longest) = (Shown::default(), 0);
    // What stands before and after the answer is not part of it.
    let frame = parts.iter().map(length).sum::<usize>() - answer.len();
    let mut arrived = 0;
    for part in parts {
        shown.add(draft.push(*part));
        arrived += length(part);
        assert!(answer.starts_with(&shown.answer), "{:?} is shown", shown.answer);
        longest = longest.max(arrived.saturating_sub(frame).saturating_sub(shown.answer.len()));
    }
    longest
}

#[test]
fn an_answer_is_shown_while_it_is_written_in_every_form() {
    let whole = words();
    let escaped = serde_json::to_string(&whole).unwrap();
    let forms = [
        whole.clone(),
        format!("<think>short</think>\n\n{whole}"),
        format!("ToolCall::Response(\"\"\"\n{whole}\n\"\"\")"),
        format!("<reasoning>short</reasoning>\nToolCall::Response(\"\"\"{whole}\"\"\")"),
        format!("ToolCall::Response({escaped})"),
        format!("ToolCall::Response(r\"\"\"\n{whole}\n\"\"\")"),
        format!("ToolCall::Response(text=\"\"\"\n{whole}\n\"\"\")"),
        format!("ToolCall::Response(~~~\n{whole}\n~~~)"),
        format!("ToolCall::Response({whole})"),
        format!("Response(\"\"\"\n{whole}\n\"\"\")"),
        format!("<|channel|>analysis<|message|>short<|end|><|channel|>final<|message|>{whole}"),
    ];
    for form in &forms {
        for dialect in [Dialect::Text, Dialect::Native] {
            assert_eq!(answer(dialect, form).as_ref(), Some(&whole), "{form}");
            let parts: Vec<_> = form.split_inclusive(' ').map(AnswerPart::Text).collect();
            let delay = longest_delay(dialect, &parts, &whole);
            assert!(delay <= 100, "{dialect:?}: {delay} bytes are not shown: {form}");
        }
    }
    let arguments = format!("{{\"result\": {escaped}}}");
    for dialect in [Dialect::Text, Dialect::Native] {
        let call = |arguments| AnswerPart::Call { index: 0, name: "done", arguments };
        let parts: Vec<_> = arguments.split_inclusive(' ').map(call).collect();
        let delay = longest_delay(dialect, &parts, &whole);
        assert!(delay <= 100, "{dialect:?}: {delay} bytes are not shown");
    }
}

#[test]
fn a_value_is_shown_while_it_is_written() {
    let value = format!("{{\"text\": {}}}", serde_json::to_string(&words()).unwrap());
    let mut draft = Draft::new(Dialect::Native, true, &[]);
    let mut shown = Shown::default();
    for part in value.split_inclusive(' ') {
        shown.add(draft.push(AnswerPart::Text(part)));
    }
    assert_eq!(shown.answer, value);
}

#[test]
fn a_call_takes_the_text_before_it_back() {
    let call = |index, name, arguments| AnswerPart::Call { index, name, arguments };
    for (dialect, parts) in [
        (
            Dialect::Text,
            vec![AnswerPart::Text("I look.\n\n"), AnswerPart::Text("ToolCall::Catalog(\"now\")")],
        ),
        (
            Dialect::Text,
            vec![
                AnswerPart::Text("I look.\n"),
                AnswerPart::Text("<tool_call>{\"name\":\"now\"}</tool_call>"),
            ],
        ),
        (Dialect::Native, vec![AnswerPart::Text("I look."), call(0, "now", "{}")]),
        (Dialect::Native, vec![call(0, "done", "{\"result\":\"I look."), call(1, "now", "{}")]),
    ] {
        let programs = programs();
        let mut draft = Draft::new(dialect, false, &programs);
        let first = draft.push(parts[0]);
        assert!(
            matches!(&first[..], [DraftPiece::Answer { text, .. }] if text == "I look."),
            "{parts:?}"
        );
        let mut shown = ShownAnswer::default();
        let mut rest = draft.push(parts[1]);
        first.iter().chain(&rest).for_each(|piece| shown.add(piece));
        rest.extend(shown.settle(None));
        assert_eq!(rest, [DraftPiece::Void], "{parts:?}");
    }
}

#[test]
fn a_thought_is_shown_while_it_is_written() {
    for form in ["<think>", "<|channel|>analysis<|message|>", "[THINK]"] {
        let mut draft = Draft::new(Dialect::Text, false, &[]);
        let mut shown = Shown::default();
        for part in [form, "the ", "first ", "of ", "many ", "words "] {
            shown.add(draft.push(AnswerPart::Text(part)));
        }
        assert_eq!(shown.thought, "the first of many words ", "{form}");
        shown.add(draft.push(AnswerPart::Reasoning("and more")));
        assert_eq!(shown.thought, "the first of many words and more");
    }
}

#[test]
fn a_long_answer_in_small_pieces_is_shown_in_linear_time() {
    for part in [" ", "\n", "a", "\\", "`", "tool", "\"\"\"", ")", "<", ";; x\n"] {
        for start in ["", "```\n", "ToolCall::Response(\"\"\"", "ToolCall::Response(", "<think>"] {
            let mut draft = Draft::new(Dialect::Text, false, &[]);
            draft.push(AnswerPart::Text(start));
            // In quadratic time, this would take hours.
            for _ in 0..(1 << 18) / part.len() {
                draft.push(AnswerPart::Text(part));
            }
        }
    }
}
