//! Paths in the run's files.

/// Resolves a path against the folder `cwd` and removes `.`, `..` and repeated slashes. A path that
/// leads above the root keeps its `..`, so that the run's files deny access to it.
pub(crate) fn absolute(cwd: &str, path: &str) -> String {
    let whole = if path.starts_with('/') { path.to_owned() } else { format!("{cwd}/{path}") };
    let mut names: Vec<&str> = Vec::new();
    for name in whole.split('/') {
        match name {
            "" | "." => {}
            ".." if names.last().is_some_and(|last| *last != "..") => {
                names.pop();
            }
            name => names.push(name),
        }
    }
    format!("/{}", names.join("/"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn paths_are_resolved_against_the_working_folder() {
        for (cwd, path, expected) in [
            ("/", "a", "/a"),
            ("/a/b", "c", "/a/b/c"),
            ("/a/b", "..", "/a"),
            ("/a/b", "../../c/./d//", "/c/d"),
            ("/a", "/x/../y", "/y"),
            ("/a", "../..", "/.."),
            ("/", "..", "/.."),
            ("/", "", "/"),
        ] {
            assert_eq!(super::absolute(cwd, path), expected, "{path} in {cwd}");
        }
    }
}
