//! Uses cargo's metadata to check that each crate has only the dependencies that the arrows in
//! ARCHITECTURE.md allow.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use cargo_metadata::{DependencyKind, MetadataCommand, Package};

/// The dependencies within the workspace that each crate may have. Dev-dependencies are not
/// restricted.
const ARROWS: &[(&str, &[&str])] = &[
    ("wattle-lang", &[]),
    ("wattle-rt", &["wattle-lang"]),
    ("wattle-machine", &[]),
    ("wattle-files", &["wattle-lang"]),
    ("wattle-egress", &["wattle-rt"]),
    ("wattle-schema", &["wattle-lang"]),
    ("wattle-capability", &["wattle-egress", "wattle-files", "wattle-rt", "wattle-schema"]),
    ("wattle-catalog", &["wattle-rt", "wattle-schema"]),
    ("wattle-shell", &["wattle-capability", "wattle-rt"]),
    (
        "wattle-model",
        &["wattle-egress", "wattle-files", "wattle-machine", "wattle-rt", "wattle-schema"],
    ),
    ("wattle-store", &["wattle-capability", "wattle-machine", "wattle-rt"]),
    ("wattle-engine", &["wattle-machine", "wattle-rt"]),
    ("wattle-loop", &["wattle-machine"]),
    (
        "wattle-runs",
        &[
            "wattle-capability",
            "wattle-catalog",
            "wattle-engine",
            "wattle-machine",
            "wattle-model",
            "wattle-rt",
            "wattle-shell",
            "wattle-store",
        ],
    ),
    (
        "wattle-agent",
        &[
            "wattle-capability",
            "wattle-catalog",
            "wattle-machine",
            "wattle-model",
            "wattle-rt",
            "wattle-runs",
            "wattle-shell",
            "wattle-store",
        ],
    ),
    ("wattle-eval", &["wattle-agent"]),
    ("wattle-mcp", &["wattle-agent"]),
    ("wattle-server", &["wattle-agent", "wattle-mcp"]),
    ("wattle", &["wattle-agent", "wattle-eval", "wattle-mcp", "wattle-server"]),
    ("wattle-bindings", &["wattle-agent", "wattle-mcp"]),
    ("wattle-python", &["wattle", "wattle-bindings"]),
    ("wattle-node", &["wattle", "wattle-bindings"]),
    ("wattle-cases", &[]),
    (
        "wattle-tests",
        &[
            "wattle-agent",
            "wattle-capability",
            "wattle-cases",
            "wattle-catalog",
            "wattle-machine",
            "wattle-rt",
        ],
    ),
    (
        "wattle-fuzz",
        &[
            "wattle",
            "wattle-agent",
            "wattle-capability",
            "wattle-cases",
            "wattle-catalog",
            "wattle-lang",
            "wattle-machine",
            "wattle-pages",
            "wattle-rt",
            "wattle-shell",
        ],
    ),
];

/// Crates on which the state machine must not depend, even indirectly, because it also runs in
/// WebAssembly.
const FORBIDDEN_IN_THE_MACHINE: &[&str] =
    &["tokio", "reqwest", "wasmtime", "hyper", "rusqlite", "cap-std"];

fn normal(package: &Package) -> impl Iterator<Item = &str> {
    package
        .dependencies
        .iter()
        .filter(|d| d.kind != DependencyKind::Development)
        .map(|d| d.name.as_str())
}

#[test]
fn crates_depend_only_on_the_crates_that_they_may_know() {
    let metadata = MetadataCommand::new().no_deps().manifest_path("../Cargo.toml").exec().unwrap();
    let found: BTreeMap<&str, BTreeSet<&str>> = metadata
        .packages
        .iter()
        .map(|p| (p.name.as_str(), normal(p).filter(|d| d.starts_with("wattle")).collect()))
        .collect();
    let allowed: BTreeMap<&str, BTreeSet<&str>> =
        ARROWS.iter().map(|(name, to)| (*name, to.iter().copied().collect())).collect();
    assert_eq!(
        found.keys().collect::<Vec<_>>(),
        allowed.keys().collect::<Vec<_>>(),
        "every crate has its arrows here"
    );
    for (name, dependencies) in found {
        let beyond: Vec<_> = dependencies.difference(&allowed[name]).collect();
        assert!(beyond.is_empty(), "{name} must not depend on {beyond:?}");
    }
}

#[test]
fn the_machine_depends_on_nothing_that_needs_a_host() {
    let metadata = MetadataCommand::new().manifest_path("../Cargo.toml").exec().unwrap();
    let nodes = metadata.resolve.unwrap().nodes;
    let name = |id: &cargo_metadata::PackageId| {
        metadata.packages.iter().find(|p| p.id == *id).unwrap().name.to_string()
    };
    let mut todo =
        vec![metadata.packages.iter().find(|p| p.name == "wattle-machine").unwrap().id.clone()];
    let mut dependencies = BTreeSet::new();
    while let Some(id) = todo.pop() {
        for dep in &nodes.iter().find(|n| n.id == id).unwrap().deps {
            let normal = dep.dep_kinds.iter().any(|k| k.kind != DependencyKind::Development);
            if normal && dependencies.insert(name(&dep.pkg)) {
                todo.push(dep.pkg.clone());
            }
        }
    }
    let wrong: Vec<_> =
        FORBIDDEN_IN_THE_MACHINE.iter().filter(|n| dependencies.contains(**n)).collect();
    assert!(wrong.is_empty(), "wattle-machine depends on {wrong:?}");
}

/// Collects the source files of the workspace's crates from a folder and its subfolders.
fn sources(folder: &Path, all: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let is_outside = name.starts_with('.')
            || matches!(name.as_str(), "target" | "toolbox" | "fuzz" | "peers");
        if path.is_dir() && (!is_outside || path.ends_with("src/toolbox")) {
            sources(&path, all);
        } else if name.ends_with(".rs") {
            all.push(path);
        }
    }
}

#[test]
fn unsafe_code_is_in_one_function() {
    let mut all = Vec::new();
    sources(Path::new(".."), &mut all);
    let lint = ["(unsafe", "_code"].concat();
    let mut exceptions = Vec::new();
    for path in all {
        let text = std::fs::read_to_string(&path).unwrap();
        exceptions.extend(text.match_indices(&lint).map(|_| path.clone()));
    }
    assert_eq!(exceptions, [Path::new("../rt/src/compiled.rs")]);
}

#[test]
fn the_guides_name_files_that_exist() {
    let top = Path::new("..");
    let mut count = 0;
    for guide in ["ARCHITECTURE.md", "CONTRIBUTING.md"] {
        let text = std::fs::read_to_string(top.join(guide)).unwrap();
        // Every second piece is between two backticks. Capitals are placeholders.
        for path in text.split('`').skip(1).step_by(2) {
            let is_path = path
                .split_once('/')
                .is_some_and(|(room, _)| !room.is_empty() && top.join(room).is_dir())
                && path.chars().all(|c| c.is_ascii_lowercase() || "_-./0123456789".contains(c));
            if is_path && !path.starts_with("target/") {
                assert!(top.join(path).exists(), "{guide} names `{path}`");
                count += 1;
            }
        }
    }
    assert!(count >= 40, "{count}");
}
