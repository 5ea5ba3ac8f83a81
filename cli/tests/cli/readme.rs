//! Tests of the README's examples: every line of its `sh` blocks runs unchanged.

use crate::place::Place;

const README: &str = include_str!("../../../README.md");

/// Prefixes of lines that are not run here, because they build or install the binary or set a key.
const ELSEWHERE: &[&str] = &["cargo ", "export ", "npx ", "uv tool ", "uvx "];

/// The prefix of lines that need a model. Without a model, these lines must fail because settings are
/// missing, not because a flag is invalid.
const NEED_A_MODEL: &[&str] = &["wattle run ", "cat README.md | wattle run "];

/// The prefix of the line that does not end by itself. Tests of `serve` start servers.
const SERVE: &str = "wattle serve ";

/// Returns the lines of the `sh` blocks.
fn lines() -> Vec<&'static str> {
    let blocks =
        README.split("\n```").skip(1).step_by(2).filter_map(|block| block.strip_prefix("sh\n"));
    blocks.flat_map(str::lines).filter(|line| !line.trim().is_empty()).collect()
}

fn starts_with_any(line: &str, prefixes: &[&str]) -> bool {
    prefixes.iter().any(|prefix| line.starts_with(prefix))
}

#[test]
fn each_command_runs_unchanged() {
    let place = Place::new();
    place.write("README.md", README);
    let lines = lines();
    for beginning in ELSEWHERE.iter().chain(NEED_A_MODEL).chain([&SERVE]) {
        assert!(
            lines.iter().any(|line| line.starts_with(beginning)),
            "no line begins with {beginning:?}"
        );
    }
    let mut ran = 0;
    let is_run = |line: &&str| !starts_with_any(line, ELSEWHERE) && !line.starts_with(SERVE);
    for line in lines.into_iter().filter(is_run) {
        let done = place.shell(line).run();
        let (expected, message) =
            if starts_with_any(line, NEED_A_MODEL) { (3, "key") } else { (0, "") };
        assert_eq!(done.code, expected, "{line}\n{}{}", done.stdout, done.stderr);
        assert!(
            done.stderr.contains(message) && !done.stderr.contains("warning"),
            "{line}\n{}",
            done.stderr
        );
        ran += 1;
    }
    assert!(ran >= 8, "only {ran} lines were found");
}

#[test]
fn each_flag_that_is_named_exists() {
    let place = Place::new();
    let help = place.wattle(["run", "--help"]).run().code(0).stdout
        + &place.wattle(["serve", "--help"]).run().stdout
        + &place.wattle(["changes", "--help"]).run().stdout;
    let known: Vec<&str> = help.split(|c: char| !c.is_alphanumeric() && c != '-').collect();
    let prose = README.split("\n```").step_by(2);
    let code = prose
        .flat_map(|text| text.split('`').skip(1).step_by(2))
        .filter(|code| !starts_with_any(code, ELSEWHERE));
    for flag in code.flat_map(str::split_whitespace).filter(|word| word.starts_with("--")) {
        assert!(known.contains(&flag), "{flag} is not a flag");
    }
}
