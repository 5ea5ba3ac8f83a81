//! The built-in programs. The files in `programs/` are compiled into the binary.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use crate::problem::Problem;
use crate::{Entry, Name, Origin};

macro_rules! files {
    ($($file:literal)*) => { &[$(($file, include_str!(concat!("../programs/", $file)))),*] };
}

/// The names and contents of the files, sorted by name.
const FILES: &[(&str, &str)] = files! {
    "ai_answer.wat"
    "ai_classify.wat"
    "ai_extract.wat"
    "ai_summarize.wat"
    "ai_summarize_file.wat"
    "ai_translate.wat"
    "csv_column.wat"
    "csv_filter.wat"
    "csv_from_json.wat"
    "csv_sum.wat"
    "csv_to_json.wat"
    "current_time.wat"
    "date_add.wat"
    "date_diff.wat"
    "date_format.wat"
    "date_now.wat"
    "done.wat"
    "fetch.wat"
    "file_append.wat"
    "file_copy.wat"
    "file_delete.wat"
    "file_find.wat"
    "file_grep.wat"
    "file_issue.wat"
    "file_lines.wat"
    "file_list.wat"
    "file_move.wat"
    "file_read.wat"
    "file_replace.wat"
    "file_write.wat"
    "git.wat"
    "help.wat"
    "http_download.wat"
    "http_get.wat"
    "http_get_all.wat"
    "http_json.wat"
    "http_post.wat"
    "http_request.wat"
    "image.wat"
    "json_delete.wat"
    "json_get.wat"
    "json_merge.wat"
    "json_query.wat"
    "json_set.wat"
    "json_table.wat"
    "kv_delete.wat"
    "kv_get.wat"
    "kv_incr.wat"
    "kv_list.wat"
    "kv_set.wat"
    "publish.wat"
    "recall.wat"
    "run.wat"
    "search.wat"
    "shell.wat"
    "skill.wat"
    "text_between.wat"
    "text_count.wat"
    "text_dedupe.wat"
    "text_frequency.wat"
    "text_links.wat"
    "text_match.wat"
    "text_replace.wat"
    "text_sort.wat"
    "text_template.wat"
    "vfs_read.wat"
    "vfs_write.wat"
    "wattle.wat"
    "web_check.wat"
    "web_links.wat"
    "web_search.wat"
    "web_text.wat"
    "web_title.wat"
};

/// The programs that have been parsed, each at the index of its file. A program is parsed on first
/// use. `None` stands for a file that is invalid; a test makes sure that there is none.
static PARSED: [OnceLock<Option<Arc<Entry>>>; FILES.len()] =
    [const { OnceLock::new() }; FILES.len()];

/// Returns all built-in programs by name.
pub(crate) fn programs() -> BTreeMap<Name, Arc<Entry>> {
    let all = FILES.iter().zip(&PARSED).filter_map(parsed);
    all.map(|entry| (entry.name().clone(), Arc::clone(entry))).collect()
}

/// Returns the built-in program with exactly this name, or `None` if there is none. Parses no other
/// program.
pub(crate) fn program(name: &str) -> Option<&'static Arc<Entry>> {
    let is_named = |file: &str| file.strip_suffix(".wat") == Some(name);
    FILES.iter().zip(&PARSED).find(|((file, _), _)| is_named(file)).and_then(parsed)
}

fn parsed(
    ((file, text), parsed): (&'static (&'static str, &str), &'static OnceLock<Option<Arc<Entry>>>),
) -> Option<&'static Arc<Entry>> {
    parsed.get_or_init(|| parse(file, text).ok().map(Arc::new)).as_ref()
}

fn parse(file: &'static str, text: &str) -> Result<Entry, Problem> {
    Entry::parse(text, Origin::BuiltIn(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_listed() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/programs");
        let names = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        assert_eq!(FILES.iter().map(|(file, _)| *file).collect::<Vec<_>>(), names);
    }

    #[test]
    fn every_program_loads_under_the_name_of_its_file() {
        for (file, text) in FILES {
            let entry = parse(file, text).unwrap_or_else(|problem| panic!("{problem}"));
            assert_eq!(format!("{}.wat", entry.name()), *file);
            assert!(program(entry.name().as_str()).is_some_and(|same| same.name() == entry.name()));
            assert!(entry.meta().examples.len() >= 2, "{file} has too few examples");
            assert!(
                entry.meta().uses.is_some() && entry.meta().returns.is_some(),
                "{file} does not say `uses` and `returns`"
            );
        }
    }
}
