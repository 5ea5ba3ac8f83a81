//! A tool as its server describes it, and the catalog program that stands for it.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use wattle_agent::host::capability::schema::{Schema, SchemaLimits};
use wattle_agent::host::catalog::{Entry, Meta, Name, Origin};
use wattle_agent::host::machine::one_line;
use wattle_agent::host::{ToolProgram, result_shape};

/// Maximum length of a description, in characters. The rest is left out.
const MAX_DESCRIPTION: usize = 2_000;

/// Maximum length of a tool's name, in bytes.
const MAX_NAME: usize = 256;

/// Maximum size of a schema, in bytes.
const MAX_SCHEMA: usize = 64 << 10;

/// Maximum number of values in a schema, with references expanded.
const MAX_PARTS: usize = 4_096;

/// A tool as its server describes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolDefinition {
    /// The name by which the server knows the tool.
    pub name: String,
    /// The description that models read.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The JSON Schema of the arguments.
    pub input_schema: Json,
    /// The JSON Schema of the structured result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Json>,
    /// If true, the server says that the tool changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// If true, the server says that the tool may destroy something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destructive: Option<bool>,
}

/// The reason why a tool of a server is not offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolProblem {
    /// The tool's name, shortened.
    pub tool: String,
    /// The reason.
    pub why: String,
}

impl fmt::Display for ToolProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the tool `{}` is left out: {}", self.tool, self.why)
    }
}

impl From<rmcp::model::Tool> for ToolDefinition {
    fn from(tool: rmcp::model::Tool) -> ToolDefinition {
        let title = tool.title.unwrap_or_default();
        let hints = tool.annotations.unwrap_or_default();
        ToolDefinition {
            name: tool.name.into_owned(),
            description: tool.description.map_or(title, std::borrow::Cow::into_owned),
            input_schema: Json::Object(tool.input_schema.as_ref().clone()),
            output_schema: tool.output_schema.map(|it| Json::Object(it.as_ref().clone())),
            read_only: hints.read_only_hint,
            destructive: hints.destructive_hint,
        }
    }
}

impl ToolDefinition {
    /// Returns true if the tool's own hints ask for care: it may destroy something, and does not say
    /// that it only reads.
    #[must_use]
    pub fn needs_care(&self) -> bool {
        self.destructive == Some(true) && self.read_only != Some(true)
    }

    /// Returns the name of the tool's program: the server's prefix and the tool's name in lowercase,
    /// with `_` for other characters.
    ///
    /// # Errors
    /// If the tool's name is empty or too long.
    pub fn program_name(&self, prefix: &str) -> Result<Name, String> {
        let mut name = format!("{prefix}.");
        let mut was_lower = false;
        for c in self.name.chars() {
            if c.is_ascii_uppercase() && was_lower {
                name.push('_');
            }
            was_lower = c.is_ascii_lowercase() || c.is_ascii_digit();
            let plain = c.is_ascii_alphanumeric() || c == '.';
            name.push(if plain { c.to_ascii_lowercase() } else { '_' });
        }
        if self.name.is_empty() || self.name.len() > MAX_NAME {
            return Err(format!("its name does not have 1 to {MAX_NAME} bytes"));
        }
        name.parse().map_err(|why| format!("its name cannot be a program's name: {why}"))
    }

    /// Returns the number of regular expressions in the schemas.
    pub(crate) fn patterns(&self) -> usize {
        patterns(&self.input_schema) + self.output_schema.as_ref().map_or(0, patterns)
    }

    /// Compiles the tool's schemas. `name` is the name by which programs call it.
    ///
    /// # Errors
    /// If a schema cannot be used.
    pub(crate) fn compile(&self, server: &str, name: Name) -> Result<Tool, String> {
        let called = name.to_string();
        let program = ToolProgram::of_any(name, &called, &self.input_schema)?;
        let limits = SchemaLimits { text: MAX_SCHEMA, parts: MAX_PARTS, checks_formats: false };
        let compiled = self.output_schema.as_ref().map(|schema| Schema::compile(schema, limits));
        let output = compiled
            .transpose()
            .map_err(|why| format!("the schema of its result cannot be used: {why}"))?;
        let meta = Meta {
            description: one_line(&self.description, MAX_DESCRIPTION),
            result: self.output_schema.as_ref().map(result_shape),
            ..Meta::default()
        };
        let entry = program.entry(Origin::Server(server.to_owned()), meta);
        Ok(Tool { ask: Ask::Tool, definition: self.clone(), program, output, entry })
    }
}

/// What a program asks of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// A call of a tool.
    Tool,
    /// The list of the resources.
    Resources,
    /// The contents of a resource.
    Resource,
}

impl Ask {
    /// Returns the programs of a server that has resources.
    pub(crate) fn of_resources() -> [(Ask, ToolDefinition); 2] {
        let definition = |name: &str, description: &str, properties: Json| ToolDefinition {
            name: name.to_owned(),
            description: description.to_owned(),
            input_schema: json!({
                "type": "object",
                "required": properties.as_object().map(|it| it.keys().collect::<Vec<_>>()),
                "properties": properties,
            }),
            output_schema: None,
            read_only: Some(true),
            destructive: None,
        };
        let uri = json!({"uri": {"type": "string"}});
        [
            (
                Ask::Resources,
                definition("list_resources", "List the resources, one per line", json!({})),
            ),
            (Ask::Resource, definition("read_resource", "Return the text of a resource", uri)),
        ]
    }
}

/// A tool with its compiled schemas and its program.
pub(crate) struct Tool {
    pub(crate) ask: Ask,
    pub(crate) definition: ToolDefinition,
    pub(crate) program: ToolProgram,
    pub(crate) output: Option<Schema>,
    pub(crate) entry: Entry,
}

/// Returns the number of regular expressions in a schema.
fn patterns(schema: &Json) -> usize {
    match schema {
        Json::Object(fields) => {
            let of_field = |(key, value): (&String, &Json)| match (key.as_str(), value) {
                ("pattern", Json::String(_)) => 1,
                ("patternProperties", Json::Object(named)) => named.len() + patterns(value),
                _ => patterns(value),
            };
            fields.iter().map(of_field).sum()
        }
        Json::Array(items) => items.iter().map(patterns).sum(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str) -> ToolDefinition {
        ToolDefinition {
            name: name.to_owned(),
            description: String::new(),
            input_schema: json!({"type": "object"}),
            output_schema: None,
            read_only: None,
            destructive: None,
        }
    }

    #[test]
    fn names_of_tools_become_names_of_programs() {
        for (name, program) in [
            ("read_file", "fs.read_file"),
            ("get-sum", "fs.get_sum"),
            ("getUserByID", "fs.get_user_by_id"),
            ("a/b c", "fs.a_b_c"),
            ("Ünïcode", "fs._n_code"),
        ] {
            assert_eq!(tool(name).program_name("fs").unwrap().as_str(), program, "{name}");
        }
        for name in ["", &"a".repeat(62), &"a".repeat(300)] {
            assert!(tool(name).program_name("fs").is_err(), "{name}");
        }
    }
}
