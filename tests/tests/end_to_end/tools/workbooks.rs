//! Runs every workbook in `docs/workbooks.md` and compares its output with the output on the page.

use std::path::Path;
use std::sync::Arc;

use serde_json::Value as Json;
use wattle_agent::Resources;
use wattle_agent::host::capability::files::{Files, OVERLAY_LIMIT};
use wattle_rt::Exit;
use wattle_tests::World;

#[tokio::test]
async fn every_workbook_of_the_page_has_the_output_that_follows_it() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/workbooks.md");
    let page = std::fs::read_to_string(page).unwrap();
    let world = World::new();
    let run = world.host.catalog().get("run").unwrap().clone();
    let program = world.host.runtime().prepare(run.source()).await.unwrap();
    let mut ran = 0;
    let blocks = ["toml", "org"].map(|kind| {
        let fence = format!("```{kind}\n");
        let parts = page.split(&fence).skip(1);
        parts.map(|part| (kind, part.to_owned())).collect::<Vec<_>>()
    });
    for (form, part) in blocks.iter().flatten() {
        let (book, rest) = part.split_once("```\n```").unwrap();
        let (kind, rest) = rest.split_once('\n').unwrap();
        let (expected, _) = rest.split_once("```").unwrap();
        for as_file in [false, true] {
            let files = Arc::new(Files::overlay(None, OVERLAY_LIMIT));
            files.write(&format!("book.{form}"), book.as_bytes()).unwrap();
            let args = vec![if as_file { format!("book.{form}") } else { book.to_owned() }];
            let grants = Arc::new(Resources::new(&world.host, files).grants());
            let outcome = world.host.runtime().run(&program, &grants, args).await.unwrap();
            if kind == "json" {
                assert!(outcome.success(), "{book}\n{:?}", outcome.failure);
                let found: Json = serde_json::from_str(&outcome.texts()[0]).unwrap();
                assert_eq!(found, serde_json::from_str::<Json>(expected).unwrap(), "{book}");
            } else {
                let Exit::Returned(code) = outcome.exit else { panic!("{:?}", outcome.exit) };
                let message = format!(
                    "{}: {}",
                    code.name().unwrap(),
                    outcome.failure.unwrap().failure.reason
                );
                // Each line on the page must be a prefix of a line in the output.
                for line in expected.lines() {
                    assert!(
                        message.lines().any(|found| found.starts_with(line)),
                        "{line}\n{message}"
                    );
                }
            }
        }
        ran += 1;
    }
    assert_eq!(ran, 7);
}
