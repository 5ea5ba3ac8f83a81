//! Tests of the reader with random answers, and with very large answers that it must read in linear
//! time.

use proptest::prelude::*;
use wattle_machine::{Action, Reading, read};

const MIB: usize = 1 << 20;

fn repeated(piece: &str, size: usize) -> String {
    piece.repeat(size / piece.len())
}

/// Returns all strings in a reading.
fn strings(reading: &Reading) -> Vec<&str> {
    let mut all = Vec::from_iter(reading.thought.as_deref());
    all.push(&reading.retained);
    match &reading.action {
        Action::Wat { body, args } => {
            all.push(body);
            all.extend(args.iter().map(String::as_str));
        }
        Action::Catalog { name, args, .. } => {
            all.push(name);
            all.extend(args.iter().map(String::as_str));
        }
        Action::Fix { texts } => {
            all.extend(texts.iter().map(|text| text.text.as_str()));
            all.extend(texts.iter().filter_map(|text| text.alternative.as_deref()));
        }
        Action::Response { text } => all.push(text),
    }
    all
}

#[test]
fn a_megabyte_of_anything_has_an_action() {
    for piece in [
        "x ",
        "(",
        "\"",
        "`",
        "```\n",
        "<reasoning>",
        "ToolCall::Wat(",
        "ToolCall::Wat(```wat\n",
        "\"a\"x, ",
        "` ",
        "~",
        "'",
        "\\",
    ] {
        for before in [
            "",
            "ToolCall::Catalog(",
            "ToolCall::Wat(```wat\n",
            "ToolCall::Wat(~~~~\n(",
            "ToolCall::Response(\"\"\"",
        ] {
            let text = format!("{before}{} x", repeated(piece, MIB));
            assert!(
                strings(&read(&text)).into_iter().all(|found| found.len() <= text.len()),
                "{before}{piece}"
            );
        }
    }
}

#[test]
fn unclosed_text_has_an_action() {
    let pieces = [
        "(",
        ")",
        "\"",
        "'",
        "`",
        "```",
        "```\n",
        "~~~\n",
        "\\",
        "\n",
        " ",
        "t",
        "\u{201c}",
        "<",
        "{",
        "[",
        ",",
        ";",
        "(;",
        "<reasoning>",
        "</reasoning>",
        "<think></reasoning>",
        "<think>a</think>",
        "ToolCall",
        "ToolCall::",
        "ToolCall::Wat(",
        "ToolCall::Wat(```",
        "ToolCall::Wat(```\n",
        "ToolCall::Wat(\"",
        "ToolCall::Wat(...) ",
        "ToolCall::Catalog(",
        "ToolCall::Catalog(\"",
        "ToolCall::Catalog(\"a\"x",
        "ToolCall::Catalog(\"(\", ",
        "ToolCall::Catalog(..., \"x",
        "ToolCall::Catalog(..., \"x</think><think></think>",
        "ToolCall::Catalog(...)<think>",
        "ToolCall::Response(",
        "ToolCall::Response(\"\"\"",
        "ToolCall::Response(\"x\") y ",
        "ToolCall::Response(\"\"\"x\"\"\") y ",
        "ToolCall::Response(```\n",
        "\nToolCall::Response(\"(\")",
        "<think>ToolCall::Wat(",
        "<think>x ToolCall::Wat(```y\n",
        "ToolCall::Catalog({\"a\":",
        "ToolCall::Fix(",
        "ToolCall::Fix(\"a\", \"b\")\n",
        "ToolCall::Fix(\"a\", \"b\" ",
        "ToolCall::Fix(\"\"\"\na",
        "ToolCall::Fix('a\n",
        "ToolCall::Fix([\"a\",",
        "ToolCall::Fix(```\n",
        "ToolCall::Catalog([(",
        "\"a\" ",
        "a=\"b\" ",
        "\"a\"x, ",
        "'a'\n",
        "[1,",
        "//,",
        "# ,",
        "ToolCall :: ",
        "Tool",
        "**",
        "<b>",
    ];
    for piece in pieces {
        for before in [
            "",
            "ToolCall::Wat(```wat\n",
            "ToolCall::Catalog(\"a\", ",
            "ToolCall::Response(\"\"\"",
            "<think>",
        ] {
            let text = format!("{before}{}", repeated(piece, MIB / 32));
            let reading = read(&text);
            let longest = strings(&reading).into_iter().map(str::len).max().unwrap_or(0);
            assert!(longest <= text.len(), "{before}{piece} grew to {longest}");
        }
    }
}

#[test]
fn a_call_after_a_megabyte_of_noise_is_found() {
    for noise in ["x ", "<b>", "\" ", "((", "` ", "[ ** ", "tool call ", "`a` "] {
        let text = format!("{}\nToolCall::Catalog(\"now\")\n", repeated(noise, MIB));
        let found = read(&text).action;
        assert_eq!(
            found,
            Action::Catalog { name: "now".into(), args: vec![], names: vec![] },
            "after {noise:?}"
        );
    }
}

/// Generates a fragment of a random answer.
fn piece() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "ToolCall::Wat(",
        "ToolCall::Catalog(",
        "ToolCall::Response(",
        "ToolCall::Fix(",
        "toolcall.wat (",
        "Catalog(",
        "\"",
        "\"\"\"",
        "'",
        "`",
        "```",
        "```wat\n",
        "\n```",
        "~~~",
        "(",
        ")",
        ",",
        "\n",
        "\r\n",
        " ",
        "\\",
        "\\n",
        "\\u00e9",
        "\u{201c}",
        "\u{201d}",
        "<reasoning>",
        "</reasoning>",
        "<think>",
        "</think>",
        "<tool_call>",
        "</tool_call>",
        "**",
        "name",
        "args=",
        "[1, 2]",
        "{\"a\": 1}",
        "(i32.const 0)",
        ";; x\n",
        "(; x ;)",
        "...",
        "true",
        "42",
        "é",
        "[Observation (step 1)]",
        "\0",
    ])
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_mixture_is_read(pieces in prop::collection::vec(piece(), 0..40)) {
        let text = pieces.concat();
        let reading = read(&text);
        for found in strings(&reading) {
            prop_assert!(found.len() <= text.len());
        }
        prop_assert!(reading.thought.as_deref() != Some(""));
    }

    #[test]
    fn line_breaks_make_no_difference(pieces in prop::collection::vec(piece(), 0..40)) {
        let unix = pieces.concat().replace("\r\n", "\n");
        prop_assert_eq!(read(&unix), read(&unix.replace('\n', "\r\n")));
    }

    #[test]
    fn well_formed_strings_are_read_exactly(
        values in prop::collection::vec(any::<String>(), 0..5),
    ) {
        let quoted: Vec<String> = values.iter().map(|value| {
            let escaped = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\r', "\\r");
            format!("\"{escaped}\"")
        }).collect();
        let text = format!(
            "ToolCall::Catalog(\"f\"{}{})",
            if quoted.is_empty() { "" } else { ", " },
            quoted.join(", ")
        );
        let expected = Action::Catalog { name: "f".into(), args: values, names: vec![] };
        prop_assert_eq!(read(&text).action, expected);
    }

    #[test]
    fn well_formed_programs_are_read_exactly(
        lines in prop::collection::vec("[a-z $.()\"0-9]{1,30}", 1..10),
    ) {
        let body = lines.join("\n");
        let text = format!("ToolCall::Wat(```wat\n{body}\n```, \"x\")");
        let found = read(&text).action;
        let is_whole = matches!(
            &found,
            Action::Wat { body, args }
                if args == &["x"] && body.lines().count() <= lines.len()
        );
        prop_assert!(is_whole, "{:?}", found);
    }
}
