//! The recordings of a suite: `recordings/MODEL/KIND/NAME.jsonl`. For the native dialect, the file
//! name is `NAME.native.jsonl`, and for the baseline, `NAME.tools.jsonl`. A handwritten recording
//! is a text file, `NAME.txt`.
//!
//! ```text
//! === reply
//! ToolCall::Catalog("file_grep", "a.log", "ERROR")
//! === reply
//! ToolCall::Response("3")
//! ```

use std::path::{Path, PathBuf};

use percent_encoding::percent_decode_str;
use serde_json::json;
use wattle_agent::model::{Cassette, MAX_RECORDING, ModelError};

use crate::attempt::Approach;
use crate::error::EvalError;
use crate::place;
use crate::task::Task;

/// The folder that contains a suite's recordings.
#[derive(Clone, Debug)]
pub struct Recordings {
    dir: PathBuf,
}

impl Recordings {
    /// The name of the folder with a suite's recordings.
    pub(crate) const FOLDER: &str = "recordings";

    pub(crate) fn beside(suite: &Path) -> Recordings {
        Recordings { dir: suite.join(Self::FOLDER) }
    }

    /// Returns the names of the models that have recordings, sorted.
    ///
    /// # Errors
    /// If the folder exists but cannot be read.
    pub fn models(&self) -> Result<Vec<String>, EvalError> {
        let unreadable = |why: std::io::Error| EvalError::load(&self.dir, why);
        if !self.dir.exists() {
            return Ok(Vec::new());
        }
        let mut models = Vec::new();
        for entry in std::fs::read_dir(&self.dir).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            let name = path
                .file_name()
                .and_then(|name| name.to_str())
                .filter(|name| !name.starts_with('.'));
            models.extend(name.filter(|_| path.is_dir()).map(decode));
        }
        models.sort();
        Ok(models)
    }

    /// Returns the path of the recording of an attempt. If a repeated attempt has no recording,
    /// returns the path for the first attempt. Returns `None` if neither file exists.
    pub(crate) fn find(
        &self,
        model: &str,
        approach: Approach,
        task: &Task,
        trial: u32,
    ) -> Option<PathBuf> {
        let own = self.path(model, approach, task, trial);
        let first = self.path(model, approach, task, 1);
        let text = |path: &PathBuf| path.with_extension("txt");
        [text(&own), own, text(&first), first].into_iter().find(|path| path.is_file())
    }

    /// Returns the path to which an attempt is recorded.
    pub(crate) fn path(&self, model: &str, approach: Approach, task: &Task, trial: u32) -> PathBuf {
        self.dir.join(encode(model)).join(attempt_name(&task.id, approach, trial) + ".jsonl")
    }
}

/// Returns the path of an attempt's files, relative to the model's folder and without an extension.
pub(crate) fn attempt_name(task: &str, approach: Approach, trial: u32) -> String {
    let trial = if trial > 1 { format!(".{trial}") } else { String::new() };
    let approach = match approach {
        Approach::Programs => "",
        Approach::Native => ".native",
        Approach::Tools => ".tools",
    };
    format!("{task}{trial}{approach}")
}

/// Opens a recording. Errors contain the path of the recording.
pub(crate) fn open(path: &Path) -> Result<Cassette, EvalError> {
    let failed = |why: ModelError| EvalError::load(path, why);
    let text = place::read_existing(path, MAX_RECORDING)?;
    if path.extension().is_none_or(|extension| extension != "txt") {
        return Cassette::parse(&text).map_err(failed);
    }
    let replies = replies(&text).ok_or_else(|| {
        EvalError::load(path, "the text does not begin with a line `=== reply`").at(1)
    })?;
    let turns = replies.iter().map(|reply| json!({ "reply": reply }).to_string());
    let header = json!({ "wattle_cassette": 1, "model": "" }).to_string();
    let lines: Vec<String> = std::iter::once(header).chain(turns).collect();
    Cassette::parse(&lines.join("\n")).map_err(failed)
}

/// Returns the replies in a text recording. Each reply follows a line `=== reply`. Returns `None`
/// if the text does not begin with such a line.
fn replies(text: &str) -> Option<Vec<String>> {
    const MARK: &str = "=== reply";
    let mut replies: Vec<String> = Vec::new();
    for line in text.lines() {
        if line.trim_end() == MARK {
            replies.push(String::new());
            continue;
        }
        let reply = replies.last_mut()?;
        reply.push_str(line);
        reply.push('\n');
    }
    replies.iter_mut().for_each(|reply| _ = reply.pop());
    (!replies.is_empty()).then_some(replies)
}

/// Encodes a model's name as a folder name. Every byte except ASCII letters, digits, `-`, `_` and
/// `.` becomes `%` and two hex digits, and so does a `.` at the start.
pub(crate) fn encode(model: &str) -> String {
    let mut name = String::new();
    for (at, byte) in model.bytes().enumerate() {
        match byte {
            b'.' if at == 0 => name.push_str("%2e"),
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {
                name.push(char::from(byte))
            }
            byte => name.push_str(&format!("%{byte:02x}")),
        }
    }
    name
}

/// Decodes a folder name to a model's name.
fn decode(name: &str) -> String {
    percent_decode_str(name).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_separated_by_their_marks() {
        let replies = |text| super::replies(text);
        let some = |texts: &[&str]| Some(texts.iter().map(|t| (*t).to_owned()).collect());
        assert_eq!(
            replies("=== reply\na\n\nb\n=== reply\n=== reply\nc"),
            some(&["a\n\nb", "", "c"])
        );
        assert_eq!(replies("a\n=== reply\nb"), None);
        assert_eq!(replies(""), None);
    }

    #[test]
    fn every_model_has_its_own_folder() {
        for (model, folder) in [
            ("gpt-5.1", "gpt-5.1"),
            ("openai/gpt-5.1:free", "openai%2fgpt-5.1%3afree"),
            ("..", "%2e."),
            ("ä %", "%c3%a4%20%25"),
        ] {
            assert_eq!(encode(model), folder);
            assert_eq!(decode(folder), model);
        }
        assert_eq!(decode("50%"), "50%");
    }
}
