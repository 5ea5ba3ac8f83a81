//! Runs the example in every row of the function tables. The example must call the row's function
//! and print the stated output. `docs/capabilities.md` is generated from the rows.

use wattle_capability::{ALL, manual};
use wattle_rt::Exit;

use crate::world;

#[tokio::test]
async fn every_example_prints_the_output_of_its_row() {
    let world = world::World::new();
    let mut wrong = Vec::new();
    for function in ALL.iter().flat_map(|capability| capability.functions) {
        match world.run(function.example, &["one", "two"]).await {
            Err(why) => wrong.push(format!("{}: {why}", function.name)),
            Ok(outcome) => {
                if !outcome.calls.iter().any(|call| call.function == function.name) {
                    wrong.push(format!("{}: the example does not call it", function.name));
                }
                if function.name == wattle_rt::TRAP {
                    assert!(matches!(outcome.exit, Exit::Trapped(_)), "{:?}", outcome.exit);
                } else if !outcome.success() || outcome.texts() != function.output {
                    let (texts, exit, failure) = (outcome.texts(), outcome.exit, outcome.failure);
                    wrong.push(format!("{}: gave {texts:?}, {exit:?} {failure:?}", function.name));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The introduction of the manual. The rest is generated from the rows.
const HEAD: &str = include_str!("../manual-head.md");

#[test]
fn the_manual_is_made_from_the_rows() {
    wattle_cases::compare("../docs/capabilities.md", &format!("{HEAD}\n{}", manual::markdown(ALL)));
}

#[test]
fn every_function_has_a_schema_and_a_page() {
    for function in ALL.iter().flat_map(|capability| capability.functions) {
        let schema = manual::schema(&function.signature);
        let properties = schema["properties"].as_object().unwrap();
        assert_eq!(properties.len(), function.signature.params.len(), "{}", function.name);
        assert_eq!(manual::about(ALL, function.name), Some(manual::function(function)));
    }
    assert_eq!(manual::about(ALL, "$str.trim?"), manual::about(ALL, "str.trim"));
    assert_eq!(manual::json(ALL).as_array().map(Vec::len), Some(ALL.len()));
}

#[test]
fn each_guest_is_built_from_the_sources_that_are_committed_with_it() {
    use sha2::{Digest as _, Sha256};
    let top = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    for (guest, patches, expected) in [
        ("jq", &["patches/jaq-json.patch"][..], "json/jq.source"),
        ("pages", &[], "web/pages.source"),
    ] {
        let sources = format!("{top}/shell/toolbox/{guest}/src");
        let sources = std::fs::read_dir(sources)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut files: Vec<String> = sources.map(|name| format!("src/{name}")).collect();
        files.sort();
        let own = ["Cargo.toml", "Cargo.lock"].into_iter().map(str::to_owned).chain(files);
        let shared = ["Cargo.toml", "src/lib.rs"].map(|file| format!("guest/{file}"));
        let own = own.map(|file| format!("{guest}/{file}"));
        let patches = patches.iter().map(|&file| file.to_owned());
        let mut hash = Sha256::new();
        for file in shared.into_iter().chain(own).chain(patches) {
            hash.update(std::fs::read(format!("{top}/shell/toolbox/{file}")).unwrap());
        }
        let found: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        let expected = std::fs::read_to_string(format!("{top}/capability/src/{expected}")).unwrap();
        assert_eq!(
            found,
            expected.trim(),
            "shell/toolbox/{guest} has changed since its module was built: run `just toolbox`"
        );
    }
}
