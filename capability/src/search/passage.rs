//! Splits a file's text into passages with line numbers.

/// Maximum length of a passage, in characters.
const MAX_CHARS: usize = 1_200;

/// Maximum number of lines in a passage.
const MAX_LINES: usize = 40;

/// Number of lines after which a passage ends at the next blank line. A passage that has at least
/// half of [`MAX_CHARS`] characters also ends at the next blank line.
const ENOUGH_LINES: usize = 20;

/// A passage: consecutive lines of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Passage {
    /// The number of the first line, counted from 1.
    pub(super) first: usize,
    /// The number of the last line.
    pub(super) last: usize,
    /// The text, without leading and trailing blank lines.
    pub(super) text: String,
}

/// A line, or a part of a line that is too long for a passage.
struct Line<'a> {
    number: usize,
    text: &'a str,
    chars: usize,
}

/// Splits the text of a file at headings. A long section is also split at blank lines and where a
/// passage reaches its maximum size. Passages that contain only whitespace are omitted.
pub(super) fn passages(path: &str, text: &str) -> Vec<Passage> {
    // In other formats, a line with one star is a list item.
    let fewest = if path.ends_with(".org") { 1 } else { 2 };
    let mut all = Vec::new();
    let mut open: Vec<Line<'_>> = Vec::new();
    let mut chars = 0;
    let mut fenced = false;
    for (at, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        let heading = !fenced && is_heading(line, fewest);
        let enough = open.len() >= ENOUGH_LINES || chars >= MAX_CHARS / 2;
        if heading || (enough && line.trim().is_empty()) {
            close(&mut all, &mut open);
            chars = 0;
        }
        for part in parts(line) {
            let line = Line { number: at + 1, text: part, chars: part.chars().count() + 1 };
            if !open.is_empty() && (chars + line.chars > MAX_CHARS || open.len() >= MAX_LINES) {
                split(&mut all, &mut open);
                chars = open.iter().map(|line| line.chars).sum();
                if chars + line.chars > MAX_CHARS {
                    close(&mut all, &mut open);
                    chars = 0;
                }
            }
            chars += line.chars;
            open.push(line);
        }
    }
    close(&mut all, &mut open);
    all
}

/// Returns true if the line is a Markdown heading, or an Org heading with at least `fewest` stars.
fn is_heading(line: &str, fewest: usize) -> bool {
    let marks = line.trim_start_matches('#');
    let hashes = line.len() - marks.len();
    let stars = line.len() - line.trim_start_matches('*').len();
    ((1..=6).contains(&hashes) && marks.starts_with(' '))
        || ((fewest..=6).contains(&stars)
            && line.get(stars..).is_some_and(|rest| rest.starts_with(' ')))
}

/// Splits a line into parts that fit into a passage.
fn parts(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        let text = rest?;
        let (part, more) = match text.char_indices().nth(MAX_CHARS - 1) {
            Some((end, _)) => {
                let space = text
                    .get(..end)
                    .and_then(|part| part.rfind(' '))
                    .filter(|space| *space > end / 2);
                let (part, more) = text.split_at(space.map_or(end, |space| space + 1));
                (part, Some(more))
            }
            None => (text, None),
        };
        rest = more;
        Some(part)
    })
}

/// Ends a full passage at the last blank line in its second half, and keeps the lines after that
/// line in `open`. If the second half has no blank line, all lines belong to the passage.
fn split<'a>(all: &mut Vec<Passage>, open: &mut Vec<Line<'a>>) {
    let blank =
        open.iter().rposition(|line| line.text.trim().is_empty()).filter(|at| *at > open.len() / 2);
    let mut rest = blank.map_or_else(Vec::new, |at| open.split_off(at));
    close(all, open);
    open.append(&mut rest);
}

fn close(all: &mut Vec<Passage>, open: &mut Vec<Line<'_>>) {
    let full = |line: &Line<'_>| !line.text.trim().is_empty();
    let lines: Vec<Line<'_>> = std::mem::take(open);
    let (Some(first), Some(last)) = (lines.iter().position(full), lines.iter().rposition(full))
    else {
        return;
    };
    let Some(lines) = lines.get(first..=last) else { return };
    let mut text = String::new();
    let mut before = None;
    for line in lines {
        if before.is_some_and(|before| before != line.number) {
            text.push('\n');
        }
        before = Some(line.number);
        text.push_str(line.text);
    }
    let (Some(first), Some(last)) = (lines.first(), lines.last()) else { return };
    all.push(Passage { first: first.number, last: last.number, text: text.trim_end().to_owned() });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_nonblank_line_is_in_one_passage() {
        let prose = (1..=300)
            .map(|n| if n % 7 == 0 { String::new() } else { format!("line {n} of a long text") });
        let long = format!("{}\n{}\n\nend", "word ".repeat(2_000), "x".repeat(5_000));
        let headed =
            "intro\n# One\ntext\n## Two\n\nmore\n```\n# no heading\n```\n** Org\nlast".to_owned();
        for text in [
            prose.collect::<Vec<_>>().join("\n"),
            long,
            headed,
            String::new(),
            "\n\n \n".to_owned(),
        ] {
            let passages = passages("a.md", &text);
            let mut seen: Vec<usize> = Vec::new();
            for passage in &passages {
                let chars = passage.text.chars().count();
                assert!(
                    chars <= MAX_CHARS && passage.last - passage.first < MAX_LINES,
                    "{chars} {passage:?}"
                );
                assert!(!passage.text.trim().is_empty());
                seen.extend(passage.first..=passage.last);
            }
            seen.dedup();
            assert!(seen.is_sorted(), "{seen:?}");
            let lines = text
                .lines()
                .enumerate()
                .filter(|(_, line)| !line.trim().is_empty())
                .map(|(at, _)| at + 1);
            assert!(lines.clone().all(|line| seen.contains(&line)));
            let squeezed = |text: &str| text.split_whitespace().collect::<String>();
            let joined: String = passages.iter().map(|passage| squeezed(&passage.text)).collect();
            assert_eq!(joined, squeezed(&text));
        }
    }

    #[test]
    fn a_heading_starts_a_passage() {
        let text = "intro\n# One\ntext\n```\n# code\n```\n## Two\n\nmore\n#tag\n";
        let found: Vec<(usize, usize)> =
            passages("a.md", text).iter().map(|passage| (passage.first, passage.last)).collect();
        assert_eq!(found, [(1, 1), (2, 6), (7, 10)]);
        let lines = |path| passages(path, "* One\ntext\n* Two\n").len();
        assert_eq!((lines("book.org"), lines("list.md")), (2, 1));
    }

    #[test]
    fn a_full_passage_ends_at_a_blank_line() {
        let paragraph = "a line of the text that is about forty long\n".repeat(10);
        let text = [paragraph.as_str(); 6].join("\n");
        for passage in passages("a.md", &text) {
            assert_eq!((passage.first % 11, passage.last % 11), (1, 10), "{passage:?}");
        }
    }
}
