//! Tests that only one source file uses an HTTP client library, and that only one crate depends on
//! it.

use std::path::{Path, PathBuf};

/// Collects all files with the given suffix in a folder and its subfolders, except for build
/// output.
fn files(folder: &Path, suffix: &str, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            files(&path, suffix, found);
        } else if name.ends_with(suffix) {
            found.push(path);
        }
    }
}

#[test]
fn one_file_uses_the_http_library() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let mut found = Vec::new();
    files(top, ".rs", &mut found);
    assert!(found.len() > 300, "only {} files were found below {}", found.len(), top.display());
    // The names are split, so that this file does not contain them.
    let library = concat!("req", "west::");
    let other_ways = [
        library,
        concat!("hyper_util::", "client"),
        concat!("hyper::", "client"),
        concat!("ur", "eq::"),
    ];
    let users: Vec<String> = found
        .iter()
        .filter(|path| {
            let text = std::fs::read_to_string(path).unwrap();
            other_ways.iter().any(|way| text.contains(way))
        })
        .map(|path| path.strip_prefix(top).unwrap().display().to_string())
        .collect();
    assert_eq!(users, ["capability/egress/src/client.rs"]);
}

#[test]
fn one_crate_depends_on_the_http_library() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let library = concat!("req", "west");
    let mut manifests = Vec::new();
    files(top, "Cargo.toml", &mut manifests);
    let users: Vec<String> = manifests
        .iter()
        .filter(|manifest| std::fs::read_to_string(manifest).unwrap().contains(library))
        .map(|manifest| manifest.strip_prefix(top).unwrap().display().to_string())
        .filter(|manifest| manifest != "Cargo.toml" && !manifest.starts_with("shell/toolbox"))
        .collect();
    assert_eq!(users, ["capability/egress/Cargo.toml"]);
}
