//! Tests that the session in the README matches a real session on a screen.

use wattle_tests::provider::{Answer, Provider};

use crate::picture::svg;
use crate::terminal::Place;
use crate::tmux::Screen;
use crate::{acts, responds};

/// Width of the screen, in columns.
const COLUMNS: usize = 96;

const README: &str = include_str!("../../../README.md");

/// The lines that enclose the session in the README.
const BEGIN: &str = "<!-- session -->\n```text\n";
const END: &str = "```\n";

const SALES: &str = "day,region,units\n2026-03-01,north,12\n2026-03-01,east,20\n\
                     2026-03-02,south,9\n2026-03-02,east,31\n2026-03-03,west,17\n\
                     2026-03-03,north,8";

const SUM: &str = r#"(let $sum (map))
(each $line (str.lines (fs.read "sales.csv"))
  (when (not (str.starts $line "day"))
    (let ($day $region $units) (str.split $line ","))
    (map.incr $sum $region (str.to_int $units))))
(each $region $units $sum
  (out (fmt "{} {}" $region $units)))"#;

fn calls(thought: &str, program: &str, argument: &str) -> Answer {
    Answer::text(format!(
        "<reasoning>{thought}</reasoning>\nToolCall::Catalog({program:?}, {argument:?})"
    ))
}

#[test]
fn the_session_in_the_readme_is_one_on_a_screen() {
    let script = [
        calls("I look at its columns first.", "csv_to_json", "sales.csv"),
        acts("Sum the units by region.", SUM),
        responds("**East** sold most: 51 of 97 units."),
    ];
    let (place, provider) = (Place::new(), Provider::start(script));
    std::fs::write(place.work("sales.csv"), SALES).unwrap();
    std::fs::create_dir(place.work("tools")).unwrap();
    let url = provider.base_url();
    let args = ["--base-url", &url, "--model", "some-model", "--catalog", "tools"];
    let Some(screen) = Screen::start(&place, COLUMNS, &args) else { return };
    screen.types("which region sold most in sales.csv?");
    screen.shows("/trace");
    screen.prompts();
    screen.types("(ret (str.upper \"hi\"))");
    screen.shows("\nHI\n");
    screen.prompts();
    screen.types("/save top_region 2");
    screen.shows("saved tools/top_region.wat");
    let shown: String = screen.prompts().trim_end().lines().map(steady).collect();
    let shown = shown.trim_end_matches("›\n");
    let (before, rest) = README.split_once(BEGIN).unwrap();
    let (written, after) = rest.split_once(END).unwrap();
    let styled = screen.styled();
    let styled = styled.trim_end().rsplit_once('\n').unwrap().0;
    let picture = svg(styled, COLUMNS, steady);
    wattle_cases::compare("../docs/session.svg", &picture);
    if std::env::var_os("UPDATE").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../README.md");
        std::fs::write(path, format!("{before}{BEGIN}{shown}{END}{after}")).unwrap();
        return;
    }
    assert_eq!(shown, written, "the session in the README is stale; `UPDATE=1` writes it");
}

/// Replaces the parts of a line that differ between sessions: ids, folders, times and tokens.
fn steady(line: &str) -> String {
    let line = if line.starts_with("wattle ") {
        let (about, _) = line.rsplit_once(' ').unwrap();
        format!("{about} 01JZ…K4T")
    } else if line.ends_with("(read-only, changes stay in this session)") {
        "~/data (read-only, changes stay in this session)".to_owned()
    } else if line.starts_with('●') {
        // On a slow machine, the time is in seconds.
        let time = line.trim_end_matches([' ', 'm', 's']);
        let call = time.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        format!("{:<1$}4 ms", call.trim_end(), COLUMNS - "4 ms".len())
    } else if line.contains(" tokens · ") {
        line.split(" · ").map(steady_part).collect::<Vec<_>>().join(" · ")
    } else {
        line.to_owned()
    };
    format!("{}\n", line.trim_end())
}

fn steady_part(part: &str) -> &str {
    match part {
        time if time.ends_with(" ms") || time.ends_with(" s") => "2.3 s",
        tokens if tokens.ends_with(" tokens") => "6,600 tokens",
        part => part,
    }
}
