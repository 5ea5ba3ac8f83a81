//! The functions that a model may call in the native dialect, and their schemas.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{
    mark::one_line,
    parts::{ArgLine, ProgramLine},
};

/// Name of the function that runs a program written by the model.
pub(crate) const WAT: &str = "wat";
/// Name of the function that fixes the last failed program.
pub(crate) const FIX: &str = "fix";
/// Name of the function that ends the run.
pub(crate) const DONE: &str = "done";
/// Name of the function that calls a catalog program by its name.
pub(crate) const CATALOG: &str = "catalog";

/// Maximum length of a description that a program's author wrote, in characters.
const MAX_DESCRIPTION: usize = 300;

/// Maximum length of a function name that endpoints accept, in bytes.
const MAX_NAME_BYTES: usize = 64;

/// A function offered to a model: its name, its description, and the JSON Schema of its arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionTool {
    /// The name. Endpoints accept at most 64 ASCII letters, digits, `_` and `-`.
    pub name: String,
    /// A sentence that says what the function does and when to call it.
    pub description: String,
    /// The JSON Schema of the arguments. Its type is `object`.
    pub parameters: Value,
}

/// A catalog program, described as a function.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProgramFunction {
    /// The program's name.
    pub program: String,
    /// A one-sentence description.
    pub description: String,
    /// The parameters, in order. Optional parameters come last.
    pub params: Vec<Param>,
    /// The shape of the result, such as `[{id, title}]`, if it is a JSON value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// The way the program is offered to the model.
    pub offer: Offer,
    /// If true, a call to the program must be the only call in its step.
    pub exclusive: bool,
    /// If true, the results of a call are not added to the conversation.
    pub silent: bool,
    /// If true, the results of a call are added to the conversation whole, up to
    /// [`WHOLE_LIMIT`](crate::WHOLE_LIMIT).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub whole: bool,
    /// A JSON Schema that describes the arguments in more detail than `params`. Each of its
    /// properties is a parameter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
}

/// A way to offer a program to a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Offer {
    /// The program is offered as a function of its own, because the agent lists it by name.
    Listed,
    /// The program has no function of its own: `catalog` calls it by its name.
    Unlisted,
    /// The program is not offered, because a required capability is not granted or because only the
    /// host calls the program.
    Withheld,
}

/// A parameter of a program.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Param {
    /// The parameter's name.
    pub name: String,
    /// The type of the parameter's values.
    pub kind: ParamKind,
    /// A short description of the format, such as `int from 1`, which lists show in place of the
    /// type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// A description of the parameter.
    pub description: String,
    /// The default value, which makes the parameter optional.
    pub default: Option<String>,
}

/// The type of a parameter. The program receives every value as a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ParamKind {
    /// Any string.
    Text,
    /// An integer.
    Integer,
    /// A number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// Any JSON value, serialized as a string.
    Json,
}

impl ParamKind {
    /// Returns the name of the type in JSON Schema. JSON values are passed as strings, because some
    /// endpoints reject a schema without a type.
    fn schema_type(self) -> &'static str {
        match self {
            Self::Text | Self::Json => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }

    /// Returns the name of the type in a list of programs.
    fn hint(self) -> &'static str {
        match self {
            Self::Text => "string",
            Self::Integer => "int",
            Self::Number => "float",
            Self::Boolean => "bool",
            Self::Json => "json",
        }
    }

    /// Converts a default value from a string to the type that the schema declares.
    fn value(self, text: &str) -> Value {
        match self {
            Self::Text | Self::Json => json!(text),
            _ => serde_json::from_str(text).unwrap_or_else(|_| json!(text)),
        }
    }
}

impl ProgramFunction {
    /// Returns the function's name: the program's name, with each character that endpoints reject
    /// replaced by `_`, and truncated to 64 bytes.
    pub fn name(&self) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
        self.program.chars().map(plain).take(MAX_NAME_BYTES).collect()
    }

    /// Returns the program's entry in a list of programs.
    pub(crate) fn line(&self) -> ProgramLine {
        let argument = |param: &Param| ArgLine {
            name: param.name.clone(),
            type_hint: param.format.clone().unwrap_or_else(|| param.kind.hint().to_owned()),
            optional: param.default.is_some(),
        };
        ProgramLine {
            name: self.program.clone(),
            args: self.params.iter().map(argument).collect(),
            result: self.result.clone(),
            description: self.description.clone(),
        }
    }

    /// Returns true if a built-in function has the same name as the program.
    fn is_shadowed(&self) -> bool {
        matches!(self.name().as_str(), WAT | FIX | DONE | CATALOG)
    }

    fn tool(&self) -> FunctionTool {
        let property = |param: &Param| {
            let mut schema = Map::new();
            schema.insert("type".to_owned(), json!(param.kind.schema_type()));
            let description = one_line(&param.description, MAX_DESCRIPTION);
            if !description.is_empty() {
                schema.insert("description".to_owned(), json!(description));
            }
            // A truncated default would be a wrong value, so a long default is omitted.
            if let Some(default) = param
                .default
                .as_ref()
                .filter(|default| one_line(default, MAX_DESCRIPTION) == **default)
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
        FunctionTool {
            name: self.name(),
            description: match &self.result {
                Some(result) => {
                    one_line(&format!("{} → {result}", self.description.trim()), MAX_DESCRIPTION)
                }
                None => one_line(&self.description, MAX_DESCRIPTION),
            },
            parameters: match &self.schema {
                Some(schema) => described(parameters, schema),
                None => parameters,
            },
        }
    }
}

/// Merges `schema` into the schema of a function's arguments.
fn described(mut parameters: Value, schema: &Value) -> Value {
    let (Some(own), Some(schema)) = (parameters.as_object_mut(), schema.as_object()) else {
        return parameters;
    };
    for (key, value) in schema {
        match (own.get_mut(key), value) {
            (Some(Value::Object(known)), Value::Object(new)) if key == "properties" => {
                known.extend(new.clone());
            }
            (Some(Value::Array(known)), Value::Array(new)) if key == "required" => {
                let more = new.iter().filter(|name| !known.contains(name)).cloned();
                let more: Vec<Value> = more.collect();
                known.extend(more);
            }
            _ => _ = own.insert(key.clone(), value.clone()),
        }
    }
    parameters
}

/// Adds programs to those that the model may call. A program replaces the one with its name.
pub(crate) fn add(programs: &mut Arc<Vec<ProgramFunction>>, added: &[ProgramFunction]) {
    if added.is_empty() {
        return;
    }
    let programs = Arc::make_mut(programs);
    for function in added {
        programs.retain(|known| known.program != function.program);
        programs.push(function.clone());
    }
}

/// Returns the functions offered to a model: one per listed program, `catalog` for the others, `wat`
/// for inline programs, `fix` for the last program that failed, and `done` to end the run.
pub fn function_tools(programs: &[ProgramFunction]) -> Vec<FunctionTool> {
    let offered =
        programs.iter().filter(|program| program.offer == Offer::Listed && !program.is_shadowed());
    let mut tools: Vec<FunctionTool> = Vec::new();
    for tool in offered.map(ProgramFunction::tool) {
        if !tools.iter().any(|known| known.name == tool.name) {
            tools.push(tool);
        }
    }
    tools
        .extend(programs.iter().any(|program| program.offer == Offer::Unlisted).then(catalog_tool));
    tools.extend([wat_tool(), fix_tool(), done_tool()]);
    tools
}

fn wat_tool() -> FunctionTool {
    let properties = [
        (
            "body",
            json!({
                "type": "string",
                "description": "The program's body, over as many lines as it takes",
            }),
        ),
        (
            "args",
            json!({
                "type": "array",
                "items": {"type": "string"},
                "description": "Its arguments: (arg 0), (arg 1) …",
            }),
        ),
    ];
    FunctionTool {
        name: WAT.to_owned(),
        description: "Run a program that you write, to combine, loop or compute".to_owned(),
        parameters: object(named(properties), vec![json!("body")]),
    }
}

fn fix_tool() -> FunctionTool {
    let text = |description: &str| json!({"type": "string", "description": description});
    let change = object(
        named([
            ("old", text("A text that occurs in the program exactly once")),
            ("new", text("The text that replaces it")),
        ]),
        vec![json!("old"), json!("new")],
    );
    let changes = json!({"type": "array", "items": change});
    FunctionTool {
        name: FIX.to_owned(),
        description: "Change your last program, which failed, and run it again".to_owned(),
        parameters: object(named([("changes", changes)]), vec![json!("changes")]),
    }
}

fn done_tool() -> FunctionTool {
    let result =
        json!({"type": "string", "description": "The final answer, in the user's language"});
    FunctionTool {
        name: DONE.to_owned(),
        description: "End with the final answer".to_owned(),
        parameters: object(named([("result", result)]), vec![json!("result")]),
    }
}

fn catalog_tool() -> FunctionTool {
    let properties = [
        ("name", json!({"type": "string", "description": "The program's name"})),
        ("arguments", json!({"type": "object", "description": "Its arguments by name"})),
    ];
    FunctionTool {
        name: CATALOG.to_owned(),
        description: "Run a catalog program".to_owned(),
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
    // Some endpoints reject an empty list.
    if !required.is_empty() {
        schema.insert("required".to_owned(), Value::Array(required));
    }
    Value::Object(schema)
}
