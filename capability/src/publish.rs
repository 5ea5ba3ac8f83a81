//! `publish`: copies the run's `content/` and `blog/` to the public folder, in trusted runs.
//!
//! Each file is replaced atomically. A public file with the same content is not rewritten. Files
//! that were removed from the workdir stay public until the operator removes them. Links are never
//! published.

use std::sync::Arc;

use wattle_rt::{Code, Config, Failure, Gate, Run, Service, capability};

use crate::files::{EntryKind, Files, FilesError};
use crate::fs::Fs;

/// The public folder.
pub const PUBLIC: Service = Service {
    name: "public",
    label: "public folder",
    verb: "write to the public folder",
    capability: "publish",
    is_class: false,
    depends_on: &["fs"],
    leaves_machine: true,
    kept_in: None,
};

capability! {
    /// The public folder, in trusted runs.
    pub const PUBLISH: "publish" 1 for "fs";

    /// Copies the files below content/ and blog/ to the public folder, and returns their names
    #[example = r#"(fs.write "blog/first.md" "hello") (ret (publish.run))"# => "published 1 file (5 bytes): blog/first.md"]
    #[prompt(name)]
    #[effect(once)]
    #[touches(reads "content", reads "blog", PUBLIC)]
    async run() with Publish, Fs -> ptr: str ! EACCESS EBOUND EEXIST ENOENT ENOMEM ETRFM = publish;
}

/// The published folders.
const FOLDERS: &[&str] = &["content", "blog"];
/// Maximum number of files per call.
const MAX_FILES: usize = 10_000;
/// Maximum total size of the files, in bytes.
const MAX_BYTES: u64 = 1 << 30;
/// Maximum number of file names that the report lists.
const MAX_NAMES: usize = 20;

/// The `publish` grant: the public folder, or `None` if the operator configured none.
pub struct Publish(pub Option<Arc<Files>>);

impl Config for Publish {
    const CAPABILITIES: &'static [&'static str] = &["publish"];
}

async fn publish(publish: Arc<Publish>, fs: Arc<Fs>, run: &mut Run) -> Result<String, Failure> {
    let Some(public) = publish.0.clone() else {
        let message = "no public folder is configured; the operator sets `publish.root` in the \
                       user file, or `WATTLE_PUBLISH_ROOT`";
        return Err(Failure::new(Code::EACCESS, message));
    };
    let files = fs.confined(Gate::of(run, "publish.run"));
    match tokio::task::spawn_blocking(move || copy(&files, &public)).await {
        Ok(done) => done,
        Err(_) => Err(Failure::new(Code::ECANCEL, "the host is shutting down")),
    }
}

/// The files to publish.
#[derive(Default)]
struct FoundFiles {
    files: Vec<String>,
    bytes: u64,
    /// The number of links and special files, which are not published.
    others: usize,
}

fn failure(error: FilesError) -> Failure {
    Failure::new(error.code(), error.to_string())
}

/// Checks that all files may be written, then copies them. Returns a report for the program.
fn copy(files: &Files, public: &Files) -> Result<String, Failure> {
    let mut found = FoundFiles::default();
    for folder in FOLDERS {
        match files.stat_link(folder) {
            Ok(stat) if stat.kind == EntryKind::Folder => gather(files, folder, &mut found)?,
            Ok(_) => found.others += 1,
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(failure(error)),
        }
    }
    for path in &found.files {
        public.check_write(path).map_err(failure)?;
    }
    let mut names = Vec::new();
    let mut bytes = 0;
    let mut same = 0;
    for path in found.files {
        let data = files.read(&path).map_err(failure)?;
        if public.read(&path).is_ok_and(|there| there == data) {
            same += 1;
            continue;
        }
        public.write(&path, &data).map_err(|error| {
            let done = names.len();
            Failure::new(
                error.code(),
                format!("{error}; {done} files were published before this one"),
            )
        })?;
        bytes += data.len();
        names.push(path);
    }
    Ok(report(&names, bytes, same, found.others))
}

fn gather(files: &Files, folder: &str, found: &mut FoundFiles) -> Result<(), Failure> {
    for entry in files.list(folder).map_err(failure)? {
        let path = format!("{folder}/{}", entry.name);
        match entry.kind {
            EntryKind::Folder => gather(files, &path, found)?,
            EntryKind::Link | EntryKind::Other => found.others += 1,
            EntryKind::File => {
                found.bytes = found.bytes.saturating_add(entry.size);
                found.files.push(path);
            }
        }
        if found.files.len() > MAX_FILES || found.bytes > MAX_BYTES {
            let message = format!(
                "there are more than {MAX_FILES} files or {} MiB to publish; remove some first",
                MAX_BYTES >> 20
            );
            return Err(Failure::new(Code::EBOUND, message));
        }
    }
    Ok(())
}

fn report(names: &[String], bytes: usize, same: usize, others: usize) -> String {
    let files =
        |count: usize| if count == 1 { "1 file".to_owned() } else { format!("{count} files") };
    let mut text = match names {
        [] if same == 0 => {
            "nothing to publish: there are no files below content/ or blog/".to_owned()
        }
        [] => "nothing new to publish".to_owned(),
        names => {
            let shown =
                names.iter().take(MAX_NAMES).map(String::as_str).collect::<Vec<_>>().join(", ");
            let more = names.len().saturating_sub(MAX_NAMES);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("published {} ({bytes} bytes): {shown}{more}", files(names.len()))
        }
    };
    if same > 0 {
        text += &format!("; {} unchanged", files(same));
    }
    if others > 0 {
        text += &format!("; skipped {others} that are not regular files");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(list: &[(&str, &str)]) -> Files {
        let files = Files::overlay(None, 1 << 20);
        list.iter().for_each(|(path, text)| files.write(path, text.as_bytes()).unwrap());
        files
    }

    #[test]
    fn new_files_are_copied_and_the_rest_stays() {
        let run = files(&[
            ("content/a.md", "one"),
            ("content/x/b.md", "two"),
            ("blog/c.md", "3"),
            ("secret.txt", "no"),
        ]);
        let public =
            files(&[("blog/c.md", "3"), ("blog/old.md", "old"), ("content/a.md", "before")]);
        let report = copy(&run, &public).unwrap();
        assert_eq!(
            report,
            "published 2 files (6 bytes): content/a.md, content/x/b.md; 1 file unchanged"
        );
        assert_eq!(public.read("content/a.md").unwrap(), "one");
        assert_eq!(public.read("blog/old.md").unwrap(), "old", "nothing is removed");
        assert!(public.read("secret.txt").is_err());
        assert_eq!(copy(&run, &public).unwrap(), "nothing new to publish; 3 files unchanged");
        assert_eq!(
            copy(&files(&[("a", "b")]), &public).unwrap(),
            "nothing to publish: there are no files below content/ or blog/"
        );
    }

    #[test]
    fn nothing_is_copied_if_one_file_cannot_be() {
        let run = files(&[("blog/a.md", "one"), ("content/b/c.md", "two")]);
        let public = files(&[("content/b", "a file where a folder should be")]);
        assert!(copy(&run, &public).unwrap_err().to_string().contains("is a file, not a folder"));
        assert!(public.read("blog/a.md").is_err());
    }

    #[test]
    fn many_files_are_counted_and_some_are_named() {
        let names: Vec<String> = (0..30).map(|n| format!("blog/{n}")).collect();
        let text = report(&names, 30, 0, 2);
        assert!(
            text.starts_with("published 30 files (30 bytes): blog/0, blog/1, ")
                && text.contains("blog/19 and 10 more")
        );
        assert!(text.ends_with("; skipped 2 that are not regular files"), "{text}");
    }
}
