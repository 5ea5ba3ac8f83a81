//! Tests that all output to the terminal passes through one module.

use std::path::Path;

/// Collects the source files under a folder, with their contents.
fn sources(folder: &Path, found: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found)
        } else {
            found.push((path.display().to_string(), std::fs::read_to_string(&path).unwrap()))
        }
    }
}

/// Expressions that use stdout or stderr but are allowed everywhere because they print nothing.
const HARMLESS: &[&str] = &["stdout().is_terminal()", "stderr().is_terminal()"];

#[test]
fn only_the_output_module_writes_to_the_terminal() {
    let mut found = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
    assert!(found.len() > 40);
    for (path, text) in found.iter().filter(|(path, _)| !path.contains("/src/output/")) {
        let text = text.split("#[cfg(test)]").next().unwrap().to_owned();
        let text = HARMLESS.iter().fold(text, |text, harmless| text.replace(harmless, ""));
        for way in [
            "stdout()",
            "stderr()",
            "println!",
            "print!(",
            "anstream",
            "/dev/tty",
            "/dev/stdout",
            "/dev/fd",
            "from_raw_fd",
        ] {
            let own = way == "/dev/tty" && path.ends_with("walls/rules.rs");
            assert!(own || !text.contains(way), "{path} has `{way}`: write through `output`");
        }
    }
}
