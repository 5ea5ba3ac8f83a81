//! Tests the OpenAPI document.

use serde_json::Value as Json;

use crate::world::{World, bare};

#[test]
fn the_committed_document_is_the_servers() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../server/openapi.json");
    let current = wattle_server::document();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, current).unwrap();
    }
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert!(committed == current, "`server/openapi.json` is stale; `UPDATE=1` writes it");
}

#[tokio::test]
async fn the_document_is_served_and_its_references_exist() {
    let world = World::new().await;
    let answer = world.ask(bare("GET /openapi.json", &["Host: localhost"])).await;
    assert_eq!(answer.body, wattle_server::document());
    let document = answer.json();
    let mut references = 0;
    check(&document, &document, &mut references);
    assert!(references > 50, "{references}");
    let mut ids = Vec::new();
    for operations in document["paths"].as_object().unwrap().values() {
        for operation in operations.as_object().unwrap().values() {
            ids.push(operation["operationId"].as_str().unwrap().to_owned());
            let summary = operation["summary"].as_str().unwrap();
            assert!(summary.ends_with('.') && summary.len() <= 100, "{summary}");
        }
    }
    let count = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), count, "an id is used twice");
}

fn check(whole: &Json, part: &Json, references: &mut usize) {
    match part {
        Json::Object(fields) => {
            if let Some(reference) = fields.get("$ref").and_then(Json::as_str) {
                let pointer = reference.strip_prefix('#').unwrap();
                assert!(whole.pointer(pointer).is_some(), "{reference} does not exist");
                *references += 1;
            }
            fields.values().for_each(|value| check(whole, value, references));
        }
        Json::Array(items) => items.iter().for_each(|value| check(whole, value, references)),
        _ => {}
    }
}
