//! Prints the circles among the modules of each crate, and fails if one of them is not allowed.
//!
//! A node is a module at the root of a crate, with all modules below it. An arrow from one node to
//! another is a path in the code of the first that names an item of the second. Tests do not count.
//! A circle is allowed if all its modules are plain files, which lie in the same folder, or if it is
//! listed in [`KNOWN`]. In the crates of [`STRICT`], no circle is allowed.

#![allow(clippy::print_stdout, reason = "the list is the output")]

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, File, Item, ItemMod, Macro, UseTree};

/// The folders of the crates.
const CRATES: &[&str] = &[
    "rt/lang",
    "rt",
    "capability/schema",
    "capability/files",
    "capability/egress",
    "capability",
    "shell",
    "catalog",
    "agent/machine",
    "agent/model",
    "agent/store",
    "agent/runs",
    "agent",
    "eval",
    "server",
    "cli",
];

/// The crates that have no circle at all.
const STRICT: &[&str] = &["server", "cli"];

/// The circles that exist, by crate. A circle may lose modules, and must not get new ones.
const KNOWN: &[(&str, &[&str])] = &[
    ("agent/machine", &["dialect", "families", "reader"]),
    ("capability/files", &["entry", "error", "git_names", "host_files", "jail", "path", "stamp"]),
    (
        "rt",
        &[
            "cache",
            "capability",
            "compiled",
            "data",
            "engine",
            "grants",
            "growing",
            "guard",
            "host",
            "kind",
            "program",
            "run",
            "runtime",
        ],
    ),
    ("rt", &["outcome", "tape"]),
    ("capability", &["arr", "json", "map", "str", "sys"]),
    ("capability", &["fs", "search"]),
    ("capability", &["http", "web"]),
    ("shell", &["command", "language"]),
    ("catalog", &["argument", "entry", "folder", "front", "nearest", "problem"]),
    ("eval", &["agent", "baseline", "trial"]),
];

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut is_new = false;
    for folder in CRATES {
        let modules = Modules::read(&Path::new(folder).join("src"))?;
        for circle in modules.circles() {
            let known = KNOWN.iter().any(|(of, known)| {
                of == folder && circle.iter().all(|module| known.contains(&module.as_str()))
            });
            let is_flat = circle.iter().all(|module| !modules.folders.contains(module));
            let is_allowed = known || is_flat && !STRICT.contains(folder);
            is_new |= !is_allowed;
            let verdict = if is_allowed { "" } else { ", which is not allowed" };
            println!("{folder}: a circle of {} modules{verdict}", circle.len());
            for from in &circle {
                let to = modules.arrows.get(from).into_iter().flatten();
                let within: Vec<&str> =
                    to.filter(|to| circle.contains(*to)).map(String::as_str).collect();
                println!("  {from} -> {}", within.join(", "));
            }
        }
    }
    Ok(if is_new { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The modules at the root of a crate.
struct Modules {
    /// The modules that have a folder.
    folders: BTreeSet<String>,
    /// The modules that each module names.
    arrows: BTreeMap<String, BTreeSet<String>>,
}

impl Modules {
    fn read(source: &Path) -> Result<Modules, Box<dyn Error>> {
        let mut files = Vec::new();
        list(source, &mut files)?;
        let mut parsed: Vec<(Vec<String>, File)> = Vec::new();
        for path in files {
            let file = syn::parse_file(&std::fs::read_to_string(&path)?)
                .map_err(|cause| format!("failed to parse `{}`: {cause}", path.display()))?;
            parsed.push((module_path(path.strip_prefix(source)?), file));
        }
        let roots: BTreeSet<String> =
            parsed.iter().filter_map(|(path, _)| path.first().cloned()).collect();
        let exports = parsed
            .iter()
            .filter(|(path, _)| path.is_empty())
            .flat_map(|(_, file)| &file.items)
            .fold(BTreeMap::new(), |mut exports, item| {
                if let Item::Use(item) = item {
                    let mut paths = Vec::new();
                    flatten(&item.tree, &mut Vec::new(), &mut paths);
                    for path in paths {
                        let path: Vec<String> =
                            path.into_iter().filter(|part| part != "crate").collect();
                        if let [module, .., name] = path.as_slice()
                            && roots.contains(module)
                        {
                            exports.insert(name.clone(), module.clone());
                        }
                    }
                }
                exports
            });
        let mut arrows: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let tests = test_modules(&parsed);
        for (path, file) in &parsed {
            let Some(own) = path.first() else { continue };
            if tests.iter().any(|test| path.starts_with(test)) {
                continue;
            }
            let mut paths = Paths { within: path.clone(), found: Vec::new() };
            paths.visit_file(file);
            for found in paths.found {
                let module = found.first().and_then(|first| {
                    if roots.contains(first) { Some(first) } else { exports.get(first) }
                });
                if let Some(module) = module.filter(|module| *module != own) {
                    arrows.entry(own.clone()).or_default().insert(module.clone());
                }
            }
        }
        let nested = parsed
            .iter()
            .filter(|(path, _)| path.len() > 1 && !tests.iter().any(|test| path.starts_with(test)));
        let folders = nested.filter_map(|(path, _)| path.first().cloned()).collect();
        Ok(Modules { folders, arrows })
    }

    /// Returns the sets of modules that reach each other.
    fn circles(&self) -> Vec<Vec<String>> {
        let mut left: BTreeSet<&String> = self.arrows.keys().collect();
        let mut circles = Vec::new();
        while let Some(module) = left.pop_first() {
            let reached = self.reached(module);
            let circle: Vec<String> = reached
                .iter()
                .filter(|other| self.reached(other).contains(module))
                .cloned()
                .collect();
            left.retain(|module| !circle.contains(module));
            if circle.len() > 1 {
                circles.push(circle);
            }
        }
        circles
    }

    /// Returns the modules that a module reaches over one arrow or more.
    fn reached(&self, module: &str) -> BTreeSet<String> {
        let mut reached = BTreeSet::new();
        let mut next = vec![module.to_owned()];
        while let Some(module) = next.pop() {
            for to in self.arrows.get(&module).into_iter().flatten() {
                if reached.insert(to.clone()) {
                    next.push(to.clone());
                }
            }
        }
        reached
    }
}

/// The paths in a file that begin at the root of the crate.
struct Paths {
    /// The path of the current module.
    within: Vec<String>,
    found: Vec<Vec<String>>,
}

impl Paths {
    fn add(&mut self, path: &[String]) {
        let found = match path.first().map(String::as_str) {
            Some("crate") => path.get(1..).map(<[String]>::to_vec),
            Some("super") => {
                let up = path.iter().take_while(|part| *part == "super").count();
                self.within.len().checked_sub(up).map(|kept| {
                    let kept = self.within.iter().take(kept);
                    kept.chain(path.iter().skip(up)).cloned().collect()
                })
            }
            _ => None,
        };
        self.found.extend(found);
    }

    /// Adds the paths in the tokens of a macro.
    fn add_tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => path.push(ident.to_string()),
                TokenTree::Punct(punct) if punct.as_char() == ':' => continue,
                TokenTree::Group(group) => self.add_tokens(group.stream()),
                _ => {}
            }
            let goes_on = path.first().is_some_and(|first| first == "crate" || first == "super");
            if !goes_on || path.len() == 2 {
                self.add(&path);
                path.clear();
            }
        }
    }
}

impl<'ast> Visit<'ast> for Paths {
    fn visit_item(&mut self, item: &'ast Item) {
        let attributes = match item {
            Item::Mod(item) => &item.attrs,
            Item::Fn(item) => &item.attrs,
            Item::Use(item) => &item.attrs,
            Item::Impl(item) => &item.attrs,
            _ => return visit::visit_item(self, item),
        };
        if !is_test(attributes) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        self.within.push(module.ident.to_string());
        visit::visit_item_mod(self, module);
        self.within.pop();
    }

    fn visit_use_tree(&mut self, tree: &'ast UseTree) {
        let mut paths = Vec::new();
        flatten(tree, &mut Vec::new(), &mut paths);
        paths.iter().for_each(|path| self.add(path));
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let parts: Vec<String> = path.segments.iter().map(|part| part.ident.to_string()).collect();
        self.add(&parts);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        self.add_tokens(call.tokens.clone());
    }
}

/// Collects the paths of a `use` tree.
fn flatten(tree: &UseTree, path: &mut Vec<String>, paths: &mut Vec<Vec<String>>) {
    let mut end = |name: String| {
        let mut whole = path.clone();
        whole.push(name);
        paths.push(whole);
    };
    match tree {
        UseTree::Name(name) => end(name.ident.to_string()),
        UseTree::Rename(name) => end(name.ident.to_string()),
        UseTree::Glob(_) => end("*".to_owned()),
        UseTree::Path(step) => {
            path.push(step.ident.to_string());
            flatten(&step.tree, path, paths);
            path.pop();
        }
        UseTree::Group(group) => {
            group.items.iter().for_each(|tree| flatten(tree, path, paths));
        }
    }
}

/// Returns true if an item is compiled only for tests.
fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Path>().is_ok_and(|condition| condition.is_ident("test"))
    })
}

/// Returns the paths of the modules in files of their own that are compiled only for tests.
fn test_modules(files: &[(Vec<String>, File)]) -> Vec<Vec<String>> {
    let mut tests = Vec::new();
    for (path, file) in files {
        for item in &file.items {
            if let Item::Mod(module) = item
                && module.content.is_none()
                && is_test(&module.attrs)
            {
                let mut test = path.clone();
                test.push(module.ident.to_string());
                tests.push(test);
            }
        }
    }
    tests
}

/// Collects the source files in a folder and its subfolders.
fn list(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            list(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

/// Returns the path of the module in a file, relative to the root of the crate.
fn module_path(file: &Path) -> Vec<String> {
    let file = file.with_extension("");
    let parts = file.iter().map(|part| part.to_string_lossy().into_owned());
    parts.filter(|part| !matches!(part.as_str(), "mod" | "lib" | "main")).collect()
}
