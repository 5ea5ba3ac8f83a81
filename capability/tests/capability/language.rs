//! Tests of the examples in `docs/language.md`: expansions and outputs. `UPDATE=1` updates both,
//! and the table of forms.

use std::fmt::Write;

use wattle_rt::{Signatures, assemble, forms};

use crate::world;

#[tokio::test]
async fn the_examples_of_the_language_manual_are_correct() {
    let path = "../docs/language.md";
    let written = wattle_cases::read(path);
    let signatures = wattle_capability::ALL.iter().flat_map(|capability| capability.functions);
    let signatures = Signatures::new(signatures.map(|function| function.signature));
    let mut found = String::new();
    let mut rest = written.as_str();
    let mut examples = 0;
    while let Some((before, after)) = rest.split_once("```wattle") {
        let (args, after) = after.split_once('\n').unwrap();
        let (source, after) = after.split_once("\n```\n").unwrap();
        // The block after an example is its output. In the appendix, the expansion precedes it.
        let (expansion, after) = after.split_once("```text\n").unwrap();
        let is_expanded = expansion.starts_with("```wat\n");
        assert!(is_expanded || expansion.is_empty(), "no output follows:\n{source}");
        let (_, after) = after.split_once("```\n").unwrap();
        let module =
            assemble(source, &signatures).unwrap_or_else(|e| panic!("{source}\n{e}")).module;
        let put_out = run(source, args).await;
        write!(found, "{before}```wattle{args}\n{source}\n```\n").unwrap();
        if is_expanded {
            write!(found, "```wat\n{}```\n", body(&module)).unwrap();
        }
        write!(found, "```text\n{put_out}```\n").unwrap();
        rest = after;
        examples += 1;
    }
    found.push_str(rest.split("<!-- forms -->").next().unwrap());
    found.push_str("<!-- forms -->\n");
    for form in forms() {
        writeln!(found, "| `{}` | {} |", form.usage, form.about).unwrap();
    }
    assert!(examples > 12, "{examples} examples");
    wattle_cases::compare(path, &found);
}

/// Runs a program and returns its output, one result per line.
async fn run(source: &str, args: &str) -> String {
    let args: Vec<String> = args.split('"').skip(1).step_by(2).map(str::to_owned).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome =
        world::World::new().run(source, &args).await.unwrap_or_else(|e| panic!("{source}\n{e}"));
    let ending = match outcome.exit {
        wattle_rt::Exit::Returned(wattle_rt::Code(0)) => None,
        ref other => Some(format!("{other:?}")),
    };
    outcome.texts().into_iter().chain(ending).fold(String::new(), |text, line| text + &line + "\n")
}

/// Returns the helper functions of a module and the instructions of its function `run`, without the
/// locals of `run`.
fn body(module: &str) -> String {
    let (_, functions) = module.split_once("\n  (func ").unwrap();
    let mut text = String::new();
    for function in functions.split("\n  (func ") {
        let lines = function.trim_end().trim_end_matches("\n)").lines();
        match function.starts_with("$run ") {
            true => {
                let body: Vec<&str> =
                    lines.skip(1).filter(|line| !line.starts_with("    (local $")).collect();
                // The last parenthesis closes the function.
                let body = body.join("\n");
                let body = body.strip_suffix(')').unwrap_or(&body);
                body.lines().for_each(|line| {
                    writeln!(text, "{}", line.strip_prefix("    ").unwrap_or(line)).unwrap()
                });
            }
            false => writeln!(
                text,
                "(func {}",
                lines
                    .map(|line| line.strip_prefix("  ").unwrap_or(line))
                    .collect::<Vec<_>>()
                    .join("\n")
            )
            .unwrap(),
        }
    }
    text
}
