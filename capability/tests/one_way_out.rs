//! One way out: the HTTP library is known to one file, and what it sends has passed guard and vault.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};

/// All source files below a folder, without what was built.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            sources(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn one_file_knows_the_http_library() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found = Vec::new();
    sources(top, &mut found);
    assert!(found.len() > 300, "only {} files were found below {}", found.len(), top.display());
    // Split, so that this file does not name it.
    let library = concat!("req", "west::");
    let other_ways = [library, concat!("hyper_util::", "client"), concat!("hyper::", "client"), concat!("ur", "eq::")];
    let naming: Vec<String> = found
        .iter()
        .filter(|path| {
            let text = std::fs::read_to_string(path).unwrap();
            other_ways.iter().any(|way| text.contains(way))
        })
        .map(|path| path.strip_prefix(top).unwrap().display().to_string())
        .collect();
    assert_eq!(naming, ["capability/src/egress/wire.rs"]);
}

#[test]
fn one_crate_depends_on_the_http_library() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let library = concat!("req", "west");
    let members = std::fs::read_dir(top).unwrap().map(|entry| entry.unwrap().path().join("Cargo.toml"));
    let depending: Vec<String> = members
        .filter(|manifest| std::fs::read_to_string(manifest).is_ok_and(|text| text.contains(library)))
        .map(|manifest| manifest.strip_prefix(top).unwrap().display().to_string())
        .collect();
    assert_eq!(depending, ["capability/Cargo.toml"]);
}
