//! The programs that are compiled into the binary: one line per file of `programs/`.

use std::sync::Arc;

use crate::problem::Problem;
use crate::{Entry, Origin};

macro_rules! files {
    ($($file:literal)*) => { &[$(($file, include_str!(concat!("../programs/", $file)))),*] };
}

/// File names and texts, sorted.
const FILES: &[(&str, &str)] = files! {
    "append_file.wat"
    "csv_column.wat"
    "delete_file.wat"
    "download.wat"
    "extract_between.wat"
    "extract_links.wat"
    "find_files.wat"
    "grep_file.wat"
    "help.wat"
    "http_get.wat"
    "http_post.wat"
    "http_request.wat"
    "json_get.wat"
    "kv_delete.wat"
    "kv_get.wat"
    "kv_list.wat"
    "kv_set.wat"
    "list_files.wat"
    "move_file.wat"
    "read_file.wat"
    "read_lines.wat"
    "replace_text.wat"
    "summarize.wat"
    "summarize_file.wat"
    "word_count.wat"
    "write_file.wat"
};

/// Reads the built-in programs.
pub(crate) fn programs() -> Vec<Result<Arc<Entry>, Problem>> {
    FILES.iter().map(|(file, text)| Entry::parse(text, Origin::BuiltIn(file)).map(Arc::new)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_has_its_line() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/programs");
        let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        assert_eq!(FILES.iter().map(|(file, _)| *file).collect::<Vec<_>>(), names);
    }

    #[test]
    fn every_program_loads_under_the_name_of_its_file() {
        for ((file, _), program) in FILES.iter().zip(programs()) {
            let entry = program.unwrap_or_else(|problem| panic!("{problem}"));
            assert_eq!(format!("{}.wat", entry.name()), *file);
            assert!(entry.meta().examples.len() >= 2, "{file} has too few examples");
            assert!(
                entry.meta().uses.is_some() && entry.meta().returns.is_some(),
                "{file} does not say `uses` and `returns`"
            );
        }
    }
}
