//! Runs the program in each case of `tests/forms.txt` and `tests/values.txt`, and compares its
//! output with the expected output. The cases cover the rows of the language's tables. The cases of
//! `tests/kept.txt` are several programs of one run. `UPDATE=1` updates the outputs.

use std::fmt::Write;

use wattle_cases::{Case, Comparison};
use wattle_rt::{Callable, CallableParam, Callables, Code, Exit, Kept, KeptLimits, Outcome};

use crate::world;

#[tokio::test]
async fn every_row_of_the_languages_tables_does_what_it_says() {
    outputs_are_as_expected("tests/forms.txt", 36).await;
}

#[tokio::test]
async fn values_of_any_shape_do_what_the_language_says() {
    outputs_are_as_expected("tests/values.txt", 40).await;
}

#[tokio::test]
async fn programs_of_the_catalog_are_functions_of_items() {
    let param = |name: &str, is_optional| CallableParam { name: name.to_owned(), is_optional };
    let program = |name: &str, params| Callable { name: name.to_owned(), params, is_typed: false };
    let mut world = world::World::new();
    world.runtime = world.runtime.with_callables(&Callables::new([
        program("upper", vec![param("text", false), param("locale", true)]),
        program("two", vec![param("text", false), param("other", false)]),
        program("leave", Vec::new()),
    ]));
    let run = async |source: &str| match world.run(source, &[]).await {
        Ok(outcome) => outcome.texts().concat(),
        Err(diagnostic) => diagnostic,
    };
    let source = "(ret (map (list \"a\" 1) upper) (group [\"a\" \"A\"] by upper))";
    assert_eq!(run(source).await, r#"["A","1"] {"A":["a","A"]}"#);
    let source = "(ret (filter (list \"a\") two))";
    assert!(run(source).await.contains("`other`"), "{}", run(source).await);
    let source = "(ret (map (list \"a\") leave))";
    assert!(run(source).await.contains("takes 0 arguments"), "{}", run(source).await);
}

#[tokio::test]
async fn later_programs_read_what_earlier_ones_kept() {
    let path = "tests/kept.txt";
    let text = wattle_cases::read(path);
    let (head, cases) = wattle_cases::split(&text);
    let mut found = format!("{}\n", head.trim_end());
    for Case { title, input, .. } in cases {
        let world = world::World::new();
        let limits = KeptLimits { names: 3, bytes: 100 };
        let mut kept = Kept::new([], limits);
        let mut outputs = String::new();
        for (number, source) in input.split("\nthen:\n").enumerate() {
            let sep = if number == 0 { "" } else { "then:\n" };
            let outcome = world.run_keeping(source, &kept).await;
            write!(outputs, "{sep}{}", shown(outcome)).unwrap();
            let added = kept.added();
            for text in &added {
                writeln!(outputs, "kept: ${} {}", text.name(), text.about()).unwrap();
            }
            let is_replaced = |name: &str| added.iter().any(|text| text.name() == name);
            let names: Vec<&str> = kept.names().filter(|name| !is_replaced(name)).collect();
            let before = names.into_iter().filter_map(|name| kept.get(name)).cloned();
            kept = Kept::new(before.chain(added.iter().cloned()).collect::<Vec<_>>(), limits);
        }
        write!(found, "\n=== {title}\n{}\n---\n{outputs}", input.trim_end()).unwrap();
    }
    let mut comparison = Comparison::new();
    comparison.add(path, &found);
    comparison.finish();
}

/// Compares the outputs of the programs in a file with the expected ones. There are at least
/// `least` programs.
async fn outputs_are_as_expected(path: &str, least: usize) {
    let text = wattle_cases::read(path);
    let (head, cases) = wattle_cases::split(&text);
    let mut found = format!("{}\n", head.trim_end());
    let mut count = 0;
    for Case { title, input, .. } in cases {
        count += 1;
        let input = input.trim_end();
        let (source, args) = match input.rsplit_once("\nargs: ") {
            Some((source, args)) => (source, args.split(' ').collect()),
            None => (input, Vec::new()),
        };
        write!(found, "\n=== {title}\n{input}\n---\n{}", output(source, &args).await).unwrap();
    }
    let mut comparison = Comparison::new();
    comparison.add(path, &found);
    comparison.finish();
    assert!(count >= least, "{count} cases");
}

/// Runs a program and returns its results, one per line, followed by its failure, if any.
async fn output(source: &str, args: &[&str]) -> String {
    shown(world::World::new().run(source, args).await)
}

fn shown(outcome: Result<Outcome, String>) -> String {
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(diagnostic) => return diagnostic,
    };
    let mut text = String::new();
    for result in outcome.texts() {
        writeln!(text, "{result}").unwrap();
    }
    match (&outcome.exit, &outcome.failure) {
        (Exit::Returned(Code::SUCCESS), _) => {}
        (Exit::Trapped(trap), _) => {
            let line = trap.position.map_or(0, |position| position.line);
            writeln!(text, "stopped in line {line}: {}", trap.message).unwrap();
        }
        (_, Some(failed)) => writeln!(text, "{}", failed.failure).unwrap(),
        (exit, None) => writeln!(text, "{exit:?}").unwrap(),
    }
    text
}
