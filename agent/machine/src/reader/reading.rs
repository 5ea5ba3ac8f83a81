//! The result of reading an answer.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::fix::FixText;

/// The result of reading an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// The content of the reasoning tags, or else the text before the call. It is trimmed and never
    /// empty.
    pub thought: Option<String>,
    /// The action that the model asks for.
    pub action: Action,
    /// Notes for the model about the form of its answer.
    pub notes: Vec<Note>,
    /// The answer as it is recorded in the conversation, without dropped text. Line breaks are
    /// `\n`.
    pub retained: String,
}

/// The action that a model requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "lowercase")]
pub enum Action {
    /// A call to a program written in the answer.
    Wat {
        /// The program's body, without leading and trailing blank lines.
        body: String,
        /// The arguments, in order. A value that is not a string is represented by its source text.
        args: Vec<String>,
    },
    /// A call to a catalog program.
    Catalog {
        /// The program's name, trimmed. Empty if the model gave none.
        name: String,
        /// The arguments: those given by position, in order, then those given by name. A value that
        /// is not a string is represented by its source text.
        args: Vec<String>,
        /// The names of the last arguments. Empty if all arguments are given by position.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        names: Vec<String>,
    },
    /// A fix for the last program that failed. The fixed program is then run.
    Fix {
        /// The strings of the fix, which alternate between old and new strings.
        texts: Vec<FixText>,
    },
    /// The answer that ends the run.
    Response {
        /// The final answer, without leading and trailing blank lines.
        text: String,
    },
}

/// A note for the model about the form of its answer. `Display` prints it as a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Note {
    /// Text followed the call and was dropped.
    DroppedAfterCall,
    /// The fence around the program or the answer is not closed.
    UnclosedFence,
    /// A string is not closed.
    UnclosedString,
    /// The call's closing parenthesis is missing.
    UnclosedCall,
    /// The answer is a fenced program without a call around it.
    BareProgram,
    /// `ToolCall::` or the parentheses of the call are missing.
    BareCall,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DroppedAfterCall => {
                "what you wrote after the first call was dropped: write one call, then stop and \
                 wait for its observation"
            }
            Self::UnclosedFence => "the fence was not closed: end it with ``` on a line of its own",
            Self::UnclosedString => {
                "a string was not closed: check that the arguments are what you meant"
            }
            Self::UnclosedCall => {
                "a parenthesis of the call was missing: write ToolCall::Name(…) in full"
            }
            Self::BareProgram => {
                "the fenced program was run without a call: put ToolCall::Wat(…) around it"
            }
            Self::BareCall => "the call was not complete: write ToolCall::Name(…) in full",
        })
    }
}

impl Reading {
    /// Returns the reading as JSON, as printed by `wattle parse`.
    ///
    /// ```
    /// let reading = wattle_machine::read("ToolCall::Catalog(\"now\", 1)");
    /// assert_eq!(
    ///     reading.to_json().to_string(),
    ///     r#"{"action":"catalog","thought":null,"name":"now","args":["1"]}"#
    /// );
    /// ```
    pub fn to_json(&self) -> Value {
        let mut object = Map::new();
        let mut put = |key: &str, value: Value| object.insert(key.to_owned(), value);
        let thought = json!(self.thought);
        match &self.action {
            Action::Wat { body, args } => {
                put("action", json!("wat"));
                put("thought", thought);
                put("body", json!(body));
                put("args", json!(args));
            }
            Action::Catalog { name, args, names } => {
                put("action", json!("catalog"));
                put("thought", thought);
                put("name", json!(name));
                put("args", json!(args));
                if !names.is_empty() {
                    put("names", json!(names));
                }
            }
            Action::Fix { texts } => {
                put("action", json!("fix"));
                put("thought", thought);
                let texts: Vec<&str> = texts.iter().map(|text| text.text.as_str()).collect();
                put("texts", json!(texts));
            }
            Action::Response { text } => {
                put("action", json!("response"));
                put("thought", thought);
                put("text", json!(text));
            }
        }
        Value::Object(object)
    }
}
