//! What a reading is.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Holds what was read from an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// The content of the reasoning tags, or else the text before the call; trimmed, never empty.
    pub thought: Option<String>,
    /// What the model wants done.
    pub action: Action,
    /// What the model should be told about the form of its answer.
    pub notes: Vec<Note>,
    /// The answer without what was dropped, as later turns should see it; line breaks are `\n`.
    pub said: String,
}

/// Says what the model wants done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "lowercase")]
pub enum Action {
    /// Run a program written in the answer.
    Wat {
        /// The program's body, without blank lines at its ends.
        body: String,
        /// The arguments in order; values that are no strings as their source text.
        args: Vec<String>,
    },
    /// Run a program of the catalog.
    Catalog {
        /// The program's name, trimmed; empty where the model gave none.
        name: String,
        /// The arguments in order; values that are no strings as their source text.
        args: Vec<String>,
    },
    /// End the run.
    Response {
        /// The final answer, without blank lines at its ends.
        text: String,
    },
}

/// Tells the model something about the form of its answer; `Display` gives the sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Note {
    /// Something stood after the call.
    DroppedAfterCall,
    /// The fence around the program or the text was not closed.
    UnclosedFence,
    /// A string was not closed.
    UnclosedString,
    /// The call's parenthesis was missing.
    UnclosedCall,
    /// A program stood in a fence without a call around it.
    BareProgram,
    /// The call lacked `ToolCall::` or its parentheses.
    BareCall,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DroppedAfterCall => {
                "what you wrote after the first call was dropped: write one call, then stop and wait for its observation"
            }
            Self::UnclosedFence => "the fence was not closed: end it with ``` on a line of its own",
            Self::UnclosedString => "a string was not closed: check that what arrived is what you meant",
            Self::UnclosedCall => "the call lacked a parenthesis: write ToolCall::Name(…) in full",
            Self::BareProgram => "the fenced program was run as it stood: put ToolCall::Wat(…) around it",
            Self::BareCall => "the call was not complete: write ToolCall::Name(…) in full",
        })
    }
}

impl Reading {
    /// Gives the action as `wattle parse` prints it.
    ///
    /// ```
    /// let reading = wattle_machine::read("ToolCall::Catalog(\"now\", 1)");
    /// assert_eq!(reading.to_json().to_string(), r#"{"action":"catalog","thought":null,"name":"now","args":["1"]}"#);
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
            Action::Catalog { name, args } => {
                put("action", json!("catalog"));
                put("thought", thought);
                put("name", json!(name));
                put("args", json!(args));
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
