//! Tests that programs in earlier editions of Wattle's language still run unchanged.
//!
//! `first-edition/` contains the built-in programs of the first edition. They use `?`
//! after calls, `{i}` in templates, and host functions that forms have replaced. Each program must
//! return the results of its examples. Only two results differ in the second edition: the string
//! passed to `fail` is the reason for the failure rather than a result, and a JSON value of the
//! wrong kind causes the error EKIND rather than EPARSE.
//!
//! `second-edition.txt` contains the bodies of those built-in programs of the second edition, which
//! had no values, that are written differently now. They run on the examples of the built-in
//! programs.

use std::path::PathBuf;

use wattle_catalog::{Catalog, Entry, Origin};
use wattle_tests::World;

use crate::tokens::{failing, with_body};

#[tokio::test]
async fn programs_of_the_first_edition_return_the_results_of_their_examples() {
    let world = World::new();
    let (mut examples, mut wrong) = (0, Vec::new());
    for path in wattle_cases::files("first-edition", "wat") {
        let entry = Entry::parse(&wattle_cases::read(&path), Origin::File(PathBuf::from(&path)));
        let entry = entry.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert!(!entry.meta().examples.is_empty(), "{} has no example", path.display());
        examples += entry.meta().examples.len();
        wrong.extend(failing(&world, &entry).await);
    }
    assert!(examples >= 150, "{examples} examples");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn programs_of_the_second_edition_return_the_results_of_the_built_in_programs() {
    let (world, catalog) = (World::new(), Catalog::built_in());
    let text = wattle_cases::read("second-edition.txt");
    let (_, cases) = wattle_cases::split(&text);
    let mut wrong = Vec::new();
    for case in &cases {
        let entry = with_body(catalog.get(case.title).unwrap(), case.input);
        wrong.extend(failing(&world, &entry).await);
    }
    assert!(cases.len() >= 30, "{} programs", cases.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
