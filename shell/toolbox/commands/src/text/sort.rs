//! `sort`: the uutils implementation, without the modes that need threads. Instead, `-c` and `-C`
//! compare the input with its sorted lines, and `-m` sorts the files rather than merging them.

use std::ffi::OsString;
use std::fs;

use crate::say::{about, say, whole};

/// Runs `sort` and returns its exit status.
pub(crate) fn sort(args: &[String]) -> i32 {
    let mut options: Vec<String> = Vec::new();
    let mut files: Vec<String> = Vec::new();
    let mut checks = false;
    let mut silent = false;
    let mut words = args.iter().skip(1);
    while let Some(word) = words.next() {
        let mut takes = false;
        match word.as_str() {
            "--" => files.extend(words.by_ref().cloned()),
            "--check" | "--check=diagnose-first" => checks = true,
            "--check=quiet" | "--check=silent" => (checks, silent) = (true, true),
            "--merge" => {}
            long if long.starts_with("--") => {
                takes = TAKING.contains(&long);
                options.push(word.clone());
            }
            cluster if cluster.starts_with('-') && cluster.len() > 1 => {
                // The value of an option letter is the rest of its word, or the next word.
                let (letters, value) = cluster
                    .split_at(cluster.find(['k', 't', 'o', 'S', 'T']).unwrap_or(cluster.len()));
                checks |= letters.contains(['c', 'C']);
                silent |= letters.contains('C');
                takes = value.len() == 1;
                let kept: String = letters
                    .chars()
                    .filter(|letter| !"cCm".contains(*letter))
                    .chain(value.chars())
                    .collect();
                if kept.len() > 1 {
                    options.push(kept);
                }
            }
            _ => files.push(word.clone()),
        }
        if takes {
            options.extend(words.next().cloned());
        }
    }
    if checks { check(options, &files, silent) } else { run(options, &files) }
}

const TAKING: [&str; 7] = [
    "--key",
    "--field-separator",
    "--output",
    "--buffer-size",
    "--temporary-directory",
    "--sort",
    "--files0-from",
];

fn run(options: Vec<String>, files: &[String]) -> i32 {
    let separator = (!files.is_empty()).then(|| "--".to_owned());
    let words = std::iter::once("sort".to_owned())
        .chain(options)
        .chain(separator)
        .chain(files.iter().cloned());
    uu_sort::uumain(words.map(OsString::from).collect::<Vec<_>>().into_iter())
}

/// Checks that the input is sorted, by comparing it with the output of `sort`.
fn check(mut options: Vec<String>, files: &[String], silent: bool) -> i32 {
    let file = files.first().map_or("-", String::as_str);
    if let Some(extra) = files.get(1) {
        say("sort", format_args!("extra operand '{extra}' not allowed with -c"));
        return 2;
    }
    let folders = [std::env::var("TMPDIR").unwrap_or_default(), "/tmp".to_owned(), ".".to_owned()];
    let folder = folders.iter().find(|folder| {
        !folder.is_empty() && fs::metadata(folder).is_ok_and(|found| found.is_dir())
    });
    let folder = folder.map_or(".", String::as_str);
    let before = format!("{folder}/.sort-before");
    let after = format!("{folder}/.sort-after");
    let done = whole(file).and_then(|mut bytes| {
        if bytes.last().is_some_and(|last| *last != b'\n') {
            bytes.push(b'\n');
        }
        fs::write(&before, &bytes).map(|()| bytes)
    });
    let status = match done {
        Err(error) => {
            about("sort", &format!("cannot read: {file}"), &error);
            2
        }
        Ok(bytes) => {
            options.extend(["-o".to_owned(), after.clone()]);
            match run(options, std::slice::from_ref(&before)) {
                0 if fs::read(&after).is_ok_and(|sorted| sorted == bytes) => 0,
                0 => {
                    if !silent {
                        say("sort", format_args!("{file}: disorder"));
                    }
                    1
                }
                other => other,
            }
        }
    };
    _ = fs::remove_file(before);
    _ = fs::remove_file(after);
    status
}
