//! Tests that the commands' module matches its manifest and is built from the sources in
//! `shell/toolbox`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

const TOP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Returns the value of the line `name: value` in the manifest.
fn manifest(name: &str) -> String {
    let text = fs::read_to_string(format!("{TOP}/shell/src/toolbox/commands.txt")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    line.unwrap_or_else(|| panic!("commands.txt has no line `{name}`")).to_owned()
}

fn hex(hash: Sha256) -> String {
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}

#[test]
fn the_module_is_built_from_the_sources_beside_it() {
    let sources = PathBuf::from(format!("{TOP}/shell/toolbox/commands"));
    let mut found = Vec::new();
    files(&sources, &mut found);
    let mut paths: Vec<String> = found
        .iter()
        .map(|path| path.strip_prefix(&sources).unwrap().to_str().unwrap().to_owned())
        .collect();
    paths.retain(|path| !path.starts_with("target/"));
    paths.sort();
    let mut hash = Sha256::new();
    paths.push("../patches/jaq-json.patch".to_owned());
    paths.iter().for_each(|path| hash.update(fs::read(sources.join(path)).unwrap()));
    assert_eq!(
        hex(hash),
        manifest("sources"),
        "shell/toolbox/commands has changed since the module was built: run `just toolbox`"
    );
}

#[test]
fn the_module_matches_the_hash_of_the_manifest() {
    let packed = fs::read(format!("{TOP}/shell/src/toolbox/commands.wasm.zst")).unwrap();
    assert!(packed.len() < 5 << 20, "the module has {} bytes, packed", packed.len());
    let module = zstd::decode_all(packed.as_slice()).unwrap();
    let mut hash = Sha256::new();
    hash.update(&module);
    assert_eq!(hex(hash), manifest("module"));
}

#[test]
fn the_manifest_names_the_commands_of_the_table() {
    let table = fs::read_to_string(format!("{TOP}/shell/toolbox/commands/src/table.rs")).unwrap();
    let own = table.lines().filter_map(|line| line.strip_prefix("    (\"")?.split_once('"'));
    let uutils = table.split_whitespace().filter_map(|word| word.strip_prefix("uu_"));
    let rows = own.map(|(name, _)| name).chain(uutils).chain(["["]).map(str::to_owned);
    let rows: BTreeSet<String> = rows.collect();
    let names: BTreeSet<String> = manifest("commands").split(' ').map(str::to_owned).collect();
    assert!(names.len() >= 100, "{} commands", names.len());
    assert_eq!(names, rows);
}
