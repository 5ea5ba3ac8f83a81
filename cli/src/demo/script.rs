//! The script of a recorded run: a text file with sections, which is easy to read and edit.
//!
//! A section begins with a line such as `=== reply`. The sections `about` and `ask` come first.
//! Each turn of the model is a `reply` section, followed by an `observed` section with lines that
//! the observation must contain. `{{base}}` denotes the address of the demo's site.

use serde_json::json;
use wattle_agent::host::machine::{Action, Ending, read};
use wattle_agent::model::{Cassette, ModelError};

/// A recorded run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Script {
    /// The purpose of the run.
    pub(crate) about: String,
    /// The user's message.
    pub(crate) ask: String,
    turns: Vec<Turn>,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Turn {
    reply: String,
    observed: Vec<String>,
}

impl Script {
    /// Parses a script.
    pub(super) fn read(text: &str, base: &str) -> Result<Script, String> {
        let text = text.replace("{{base}}", base);
        let mut script = Script::default();
        let mut sections =
            text.split("\n=== ").map(|section| section.strip_prefix("=== ").unwrap_or(section));
        sections.try_for_each(|section| {
            let (name, content) = section.split_once('\n').unwrap_or((section, ""));
            let content = content.trim();
            match (name.trim(), script.turns.last_mut()) {
                ("about", None) => script.about = content.to_owned(),
                ("ask", None) => script.ask = content.to_owned(),
                ("reply", _) => {
                    script.turns.push(Turn { reply: content.to_owned(), observed: Vec::new() })
                }
                ("observed", Some(turn)) => {
                    turn.observed = content.lines().map(str::to_owned).collect()
                }
                (name, _) => {
                    return Err(format!("the script has a section `{name}` out of its place"));
                }
            }
            Ok(())
        })?;
        Ok(script)
    }

    /// Returns the replies as a recording.
    pub(super) fn cassette(&self) -> Result<Cassette, ModelError> {
        let header = json!({"wattle_cassette": 1, "model": "recorded"}).to_string();
        let turns = self.turns.iter().map(|turn| json!({"reply": turn.reply}).to_string());
        Cassette::parse(&std::iter::once(header).chain(turns).collect::<Vec<_>>().join("\n"))
    }

    /// Checks that a run followed the script: each reply except the last must have led to the
    /// expected observation, and the last reply must be the answer.
    pub(super) fn compare(&self, seen: &[String], ending: &Ending) -> Result<(), String> {
        let Some((last, acting)) = self.turns.split_last() else {
            return Err("the script has no reply".to_owned());
        };
        for (at, turn) in acting.iter().enumerate() {
            let seen = seen.get(at).map_or("", String::as_str);
            if let Some(missing) = turn.observed.iter().find(|line| !seen.contains(line.trim())) {
                return Err(format!(
                    "reply {} should lead to {missing:?}, and led to {seen:?}",
                    at + 1
                ));
            }
        }
        match (ending, read(&last.reply).action) {
            (Ending::Answered { text, .. }, Action::Response { text: reply }) if *text == reply => {
                Ok(())
            }
            (ending, _) => Err(format!("it ended with {:?}", ending.text())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str = "=== about\nIt counts.\n=== ask\nHow many at {{base}}?\n=== \
                          reply\nToolCall::Catalog(\"count\")\n=== observed\nfour\n=== \
                          reply\nToolCall::Response(\"\"\"4\"\"\")\n";

    #[test]
    fn a_script_is_read_and_held_against_what_happened() {
        let script = Script::read(SCRIPT, "http://127.0.0.1:9").unwrap();
        assert_eq!(script.ask, "How many at http://127.0.0.1:9?");
        let answered = |text: &str| Ending::Answered { text: text.to_owned(), data: None };
        assert_eq!(script.compare(&["it was four".to_owned()], &answered("4")), Ok(()));
        assert!(
            script
                .compare(&["it was five".to_owned()], &answered("4"))
                .unwrap_err()
                .contains("five")
        );
        assert!(script.compare(&[], &answered("4")).is_err());
        assert!(script.compare(&["four".to_owned()], &answered("5")).is_err());
        assert!(
            script
                .compare(&["four".to_owned()], &Ending::Failed { message: "error: x".to_owned() })
                .is_err()
        );
    }

    #[test]
    fn sections_have_their_place() {
        assert!(Script::read("=== observed\nx", "").unwrap_err().contains("observed"));
        assert!(Script::read("=== replies\nx", "").is_err());
        assert!(Script::read("=== reply\nx\n=== ask\ny", "").is_err());
    }
}
