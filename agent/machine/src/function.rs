//! Functions: what a model that calls functions may call, and how it is told of them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::mark::one_line;

/// The function that runs a program which the model writes.
pub(crate) const WAT: &str = "wat";
/// The function that ends the run.
pub(crate) const DONE: &str = "done";
/// The function that calls programs which have no function of their own.
pub(crate) const CATALOG: &str = "catalog";

/// Maximum length of a description that a program's author wrote, in characters.
const DESCRIPTION: usize = 300;

/// The longest name that endpoints take, in bytes.
const NAME_BYTES: usize = 64;

/// Describes a function to a model: a name, what it does, and the JSON Schema of its arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionTool {
    /// The name: ASCII letters, digits, `_` and `-`, at most 64 of them; endpoints take no others.
    pub name: String,
    /// What it does and when to call it.
    pub description: String,
    /// The JSON Schema of its arguments, of type `object`.
    pub parameters: Value,
}

/// Is a program of the catalog as a function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramFunction {
    /// The program's name.
    pub program: String,
    /// What it does, in one sentence.
    pub description: String,
    /// Its arguments in order; those with a default come last.
    pub params: Vec<Param>,
    /// Whether the model is told of it.
    pub offer: Offer,
    /// Whether no other call may run beside one of this program.
    pub exclusive: bool,
    /// Whether a call's results stay out of the conversation.
    pub silent: bool,
}

/// Says whether a model is told of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Offer {
    /// It has a function of its own.
    Told,
    /// It has none, for there are too many, and can be called by its name.
    Untold,
    /// It would not run: what it needs is not granted.
    Withheld,
}

/// Is one argument of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Param {
    /// The argument's name.
    pub name: String,
    /// What values it takes.
    pub kind: ParamKind,
    /// What it means.
    pub description: String,
    /// The text that stands for it where it is left out; it makes the argument optional.
    pub default: Option<String>,
}

/// Says what values an argument takes. The program gets each as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ParamKind {
    /// Any text.
    Text,
    /// An integer.
    Integer,
    /// A number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// Any JSON value, as its text.
    Json,
}

impl ParamKind {
    /// The type's name in JSON Schema. JSON values come as texts: not every endpoint takes a schema without a type.
    fn schema_type(self) -> &'static str {
        match self {
            Self::Text | Self::Json => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }

    /// A default as the schema shows it.
    fn value(self, text: &str) -> Value {
        match self {
            Self::Text | Self::Json => json!(text),
            _ => serde_json::from_str(text).unwrap_or_else(|_| json!(text)),
        }
    }
}

impl ProgramFunction {
    /// Gives the name as endpoints take it.
    pub fn name(&self) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
        self.program.chars().map(plain).take(NAME_BYTES).collect()
    }

    /// Whether the name stands for a function that there always is.
    fn is_shadowed(&self) -> bool {
        matches!(self.name().as_str(), WAT | DONE | CATALOG)
    }

    fn tool(&self) -> FunctionTool {
        let property = |param: &Param| {
            let mut schema = Map::new();
            schema.insert("type".to_owned(), json!(param.kind.schema_type()));
            let description = one_line(&param.description, DESCRIPTION);
            if !description.is_empty() {
                schema.insert("description".to_owned(), json!(description));
            }
            // A default is a value: it is shown as it is, or not at all.
            if let Some(default) = param.default.as_ref().filter(|default| one_line(default, DESCRIPTION) == **default)
            {
                schema.insert("default".to_owned(), param.kind.value(default));
            }
            (param.name.clone(), Value::Object(schema))
        };
        let required = self.params.iter().filter(|param| param.default.is_none());
        let parameters = object(
            self.params.iter().map(property).collect(),
            required.map(|param| Value::from(param.name.as_str())).collect(),
        );
        FunctionTool { name: self.name(), description: one_line(&self.description, DESCRIPTION), parameters }
    }
}

/// Gives the functions that a model is offered: one for each program that is, the inline program, and the end of the run.
pub fn function_tools(programs: &[ProgramFunction]) -> Vec<FunctionTool> {
    let offered = programs.iter().filter(|program| program.offer == Offer::Told && !program.is_shadowed());
    let mut tools: Vec<FunctionTool> = Vec::new();
    for tool in offered.map(ProgramFunction::tool) {
        if !tools.iter().any(|known| known.name == tool.name) {
            tools.push(tool);
        }
    }
    tools.extend(programs.iter().any(|program| program.offer == Offer::Untold).then(catalog_tool));
    tools.extend([wat_tool(), done_tool()]);
    tools
}

fn wat_tool() -> FunctionTool {
    let properties = [
        ("body", json!({"type": "string", "description": "The program's body, over as many lines as it takes"})),
        (
            "args",
            json!({"type": "array", "items": {"type": "string"}, "description": "Its arguments: (arg 0), (arg 1) …"}),
        ),
    ];
    FunctionTool {
        name: WAT.to_owned(),
        description: "Run a program that you write, to combine, loop or compute".to_owned(),
        parameters: object(named(properties), vec![json!("body")]),
    }
}

fn done_tool() -> FunctionTool {
    let result = json!({"type": "string", "description": "The final answer, in the user's language"});
    FunctionTool {
        name: DONE.to_owned(),
        description: "End with the final answer".to_owned(),
        parameters: object(named([("result", result)]), vec![json!("result")]),
    }
}

fn catalog_tool() -> FunctionTool {
    let properties = [
        ("name", json!({"type": "string", "description": "The program's name"})),
        ("args", json!({"type": "array", "items": {"type": "string"}, "description": "Its arguments in order"})),
    ];
    FunctionTool {
        name: CATALOG.to_owned(),
        description: "Call a program that has no function of its own".to_owned(),
        parameters: object(named(properties), vec![json!("name")]),
    }
}

fn named<const N: usize>(properties: [(&str, Value); N]) -> Map<String, Value> {
    properties.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect()
}

fn object(properties: Map<String, Value>, required: Vec<Value>) -> Value {
    let mut schema = Map::new();
    schema.insert("type".to_owned(), json!("object"));
    schema.insert("properties".to_owned(), Value::Object(properties));
    // Some endpoints refuse an empty list.
    if !required.is_empty() {
        schema.insert("required".to_owned(), Value::Array(required));
    }
    Value::Object(schema)
}
