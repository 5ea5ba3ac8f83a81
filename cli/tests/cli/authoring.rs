//! A test of the pages for authors of programs and skills. It writes the files of a page, runs its
//! commands, and compares their output with the page.
//!
//! If a line ends with a file's name and a colon, the next block is the content of that file. A
//! `console` block contains commands after `$ `, each followed by its output: stdout, then stderr.
//! `UPDATE=1` updates the outputs.

use std::fmt::Write;

use crate::place::Place;

/// Runs the commands on a page. Returns the page with the actual output of each command, and the
/// number of commands.
fn play(page: &str) -> (String, usize) {
    let place = Place::new();
    let (mut played, mut commands) = (String::new(), 0);
    let mut lines = page.lines();
    let mut named = None;
    while let Some(line) = lines.next() {
        let _ = writeln!(played, "{line}");
        let Some(kind) = line.strip_prefix("```") else {
            // The name of the file whose content is the next block.
            let name = line.strip_suffix("`:").and_then(|rest| rest.rsplit('`').next());
            named = name.or(named.filter(|_| line.is_empty()));
            continue;
        };
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        if kind == "console" {
            for command in block.iter().filter_map(|line| line.strip_prefix("$ ")) {
                let done = place.shell(&format!("{command} || true")).run();
                let output = format!("{}{}", done.stdout, done.stderr)
                    .replace(place.work().to_str().unwrap(), "/home/ada/programs");
                let _ = write!(played, "$ {command}\n{output}");
                commands += 1;
            }
        } else {
            let content = block.join("\n") + "\n";
            assert!(named.is_some(), "a block without a name:\n{content}");
            place.write(named.take().unwrap(), &content);
            played += &content;
        }
        played += "```\n";
    }
    (played, commands)
}

#[test]
fn each_step_has_the_output_on_the_page() {
    for (path, least) in [("../docs/authoring.md", 10), ("../docs/skills.md", 9)] {
        let (played, commands) = play(&wattle_cases::read(path));
        assert!(commands >= least, "only {commands} commands were found");
        wattle_cases::compare(path, &played);
    }
}
