//! Shows changes as unified diffs.

use similar::{ChangeTag, TextDiff};
use wattle_agent::host::capability::files::{Change, ChangeKind, EntryKind, Files};

use crate::output::{BAD, DIM, GOOD, NAME, paint, visible};

/// Number of unchanged lines printed before and after each change.
const CONTEXT: usize = 3;

/// Renders a change as a unified diff between the files `before` and `after`, in colours. The first
/// line names the change, and each line ends with a newline.
pub(crate) fn render(change: &Change, before: &Files, after: &Files) -> String {
    let head = format!("{}\n", paint(NAME, &visible(&change.to_string())));
    if change.entry != EntryKind::File {
        return head;
    }
    let read = |files: &Files, is_there: bool| {
        if is_there {
            files.read(&change.path).map(|bytes| bytes.to_vec()).unwrap_or_default()
        } else {
            Vec::new()
        }
    };
    let old = String::from_utf8(read(before, change.kind != ChangeKind::Created));
    let new = String::from_utf8(read(after, change.kind != ChangeKind::Deleted));
    match (old, new) {
        (Ok(old), Ok(new)) => head + &unified(&old, &new),
        _ => format!("{head}{}\n", paint(DIM, "  the content is not text")),
    }
}

/// Renders the difference between two strings, in colours.
fn unified(old: &str, new: &str) -> String {
    let diff = TextDiff::from_lines(old, new);
    let mut text = String::new();
    for hunk in diff.unified_diff().context_radius(CONTEXT).iter_hunks() {
        text.push_str(&paint(DIM, &hunk.header().to_string()));
        text.push('\n');
        for change in hunk.iter_changes() {
            let line = visible(change.value().trim_end_matches('\n'));
            text.push_str(&match change.tag() {
                ChangeTag::Equal => format!(" {line}"),
                ChangeTag::Delete => paint(BAD, &format!("-{line}")),
                ChangeTag::Insert => paint(GOOD, &format!("+{line}")),
            });
            text.push('\n');
        }
    }
    text
}
