//! Programs that call tools: the catalog entries that stand for functions outside the sandbox.

use std::fmt::Write as _;

use serde_json::{Map, Value as Json};
use wattle_capability::schema::{Schema, SchemaLimits};
use wattle_catalog::{Arg, Entry, Meta, Name, Origin, TypeHint};
use wattle_machine::one_line;
use wattle_rt::{Code, Failure, quote};

/// Maximum size of a schema, in bytes.
const MAX_SCHEMA: usize = 64 << 10;

/// Maximum number of values in a schema, with references expanded.
const MAX_PARTS: usize = 4_096;

/// Maximum number of properties in a tool's input.
const MAX_PROPERTIES: usize = 32;

/// Maximum length of a property name, in characters.
const MAX_PROPERTY: usize = 64;

/// Maximum length of the description of a property, in characters. The rest is left out.
const MAX_DESCRIPTION: usize = 2_000;

/// Maximum number of violations that an error lists.
const MAX_FAULTS: usize = 8;

/// Maximum size of a call's arguments, in bytes.
const MAX_ARGUMENTS: usize = 4 << 20;

/// Maximum length of the shape of a result, in characters.
const MAX_SHAPE: usize = 160;

/// Maximum depth of the shape of a result.
const MAX_DEPTH: usize = 4;

/// The name of the one argument of a tool whose properties cannot be arguments.
const WHOLE: &str = "arguments";

/// A tool as a catalog program: the program's arguments are the properties of the tool's JSON
/// Schema, and its body calls the tool with a JSON object through `tool.call`.
pub struct ToolProgram {
    name: Name,
    /// The name that `tool.call` gets.
    tool: String,
    schema: Schema,
    required: Vec<String>,
    args: Vec<Arg>,
    /// If true, the only argument is the JSON object with all properties.
    is_whole: bool,
}

impl ToolProgram {
    /// Compiles the schema of a tool's input, which must describe an object. `name` is the program's
    /// name, and `tool` the name by which the run's [`ToolBox`](wattle_capability::tool::ToolBox)
    /// knows the tool.
    ///
    /// # Errors
    /// If the schema is invalid or too large, has more than 32 properties, or has one whose name is
    /// not an argument's name. The error names the rule.
    pub fn new(name: Name, tool: &str, schema: &Json) -> Result<ToolProgram, String> {
        let program = ToolProgram::without_args(name, tool, schema)?;
        let args = args(schema, &program.required)?;
        Ok(ToolProgram { args, ..program })
    }

    /// Compiles the schema of a tool that somebody else wrote. If its properties cannot be arguments,
    /// the program has one argument: the JSON object with all of them.
    ///
    /// # Errors
    /// If the schema is invalid or too large.
    pub fn of_any(name: Name, tool: &str, schema: &Json) -> Result<ToolProgram, String> {
        let program = ToolProgram::without_args(name, tool, schema)?;
        match args(schema, &program.required) {
            Ok(args) => Ok(ToolProgram { args, ..program }),
            Err(_) => {
                let whole = Arg {
                    name: WHOLE.to_owned(),
                    type_hint: TypeHint::Json,
                    format: Some("JSON object".to_owned()),
                    description: "The arguments as a JSON object".to_owned(),
                    default: None,
                };
                Ok(ToolProgram { args: vec![whole], is_whole: true, ..program })
            }
        }
    }

    fn without_args(name: Name, tool: &str, schema: &Json) -> Result<ToolProgram, String> {
        let limits = SchemaLimits { text: MAX_SCHEMA, parts: MAX_PARTS, checks_formats: true };
        let compiled = Schema::compile(schema, limits)
            .map_err(|why| format!("the schema of its input cannot be used: {why}"))?;
        Ok(ToolProgram {
            name,
            tool: tool.to_owned(),
            schema: compiled,
            required: required(schema),
            args: Vec::new(),
            is_whole: false,
        })
    }

    /// Returns the program's name.
    #[must_use]
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// Returns the catalog program. `meta` has the description, the [shape](Meta::result) of the tool's
    /// result if it is one JSON value, and what else is not determined by the schema.
    #[must_use]
    pub fn entry(&self, origin: Origin, meta: Meta) -> Entry {
        let mut uses = vec!["tool".to_owned()];
        if !self.args.is_empty() && !self.is_whole {
            uses.extend(["json".to_owned(), "str".to_owned()]);
        }
        let meta = Meta {
            args: self.args.clone(),
            returns: Some("the tool's result".to_owned()),
            uses: Some(uses),
            ..meta
        };
        Entry::declared(origin, self.name.clone(), meta, self.body())
    }

    /// Returns the source of the tool's program. The program combines its arguments into a JSON
    /// object and calls the tool with the object.
    fn body(&self) -> String {
        if self.is_whole {
            return format!("(ret (tool.call {} (arg 0)))\n", wat(&self.tool));
        }
        let mut body = String::new();
        let mut before = "{".to_owned();
        for (at, arg) in self.args.iter().enumerate() {
            let key = Json::String(arg.name.clone());
            let (form, piece) = (if at == 0 { "let" } else { "set" }, format!("{before}{key}:"));
            let piece = match at {
                0 => wat(&piece),
                _ => format!("(str.cat $json {})", wat(&piece)),
            };
            let value = match (arg.type_hint, &arg.default) {
                (TypeHint::String, None) => format!("(json.quote (arg {at}))"),
                (TypeHint::String, Some(_)) => {
                    format!("(if (len (arg {at})) (json.quote (arg {at})) \"null\")")
                }
                // A number in a notation that JSON does not allow, such as `.5`, is quoted, so that
                // it violates the schema.
                (TypeHint::Float, _) => {
                    format!("(if (json.has (arg {at}) \"\") (arg {at}) (json.quote (arg {at})))")
                }
                _ => format!("(arg {at})"),
            };
            _ = writeln!(body, "({form} $json (str.cat {piece} {value}))");
            before = ",".to_owned();
        }
        let json = if self.args.is_empty() {
            "\"{}\"".to_owned()
        } else {
            "(str.cat $json \"}\")".to_owned()
        };
        _ = writeln!(body, "(ret (tool.call {} {json}))", wat(&self.tool));
        body
    }

    /// Parses the arguments of a call and checks them against the schema. `null` for an optional
    /// property means that it is missing.
    ///
    /// # Errors
    /// `EBOUND` if the arguments are too large or violate the schema, and `EPARSE` if they are not a
    /// JSON object.
    pub fn read(&self, arguments: &str) -> Result<Json, Failure> {
        if arguments.len() > MAX_ARGUMENTS {
            return Err(Failure::new(Code::EBOUND, "the arguments have more than 4 MiB"));
        }
        let parsed: Result<Map<String, Json>, _> = serde_json::from_str(arguments);
        let mut fields = parsed.map_err(|error| {
            let shown = quote(arguments, 100);
            Failure::new(Code::EPARSE, format!("{shown} is not a JSON object: {error}"))
        })?;
        // The tool's program passes null for an optional argument that is missing.
        fields.retain(|name, value| !value.is_null() || self.required.contains(name));
        let arguments = Json::Object(fields);
        match self.schema.faults(&arguments, MAX_FAULTS) {
            faults if faults.is_empty() => Ok(arguments),
            faults => {
                let name = &self.tool;
                let reason =
                    format!("the arguments of `{name}` are invalid: {}", faults.join("; "));
                Err(Failure::new(Code::EBOUND, reason))
            }
        }
    }
}

/// Formats a string as a string literal in program source.
fn wat(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Returns the names of the required properties.
fn required(schema: &Json) -> Vec<String> {
    let names = schema.get("required").and_then(Json::as_array).into_iter().flatten();
    names.filter_map(Json::as_str).map(str::to_owned).collect()
}

/// Returns the arguments of a tool's program: the properties of its schema, the required ones
/// first.
fn args(schema: &Json, required: &[String]) -> Result<Vec<Arg>, String> {
    if schema.get("type").and_then(Json::as_str) != Some("object") {
        return Err("its input must be a JSON object; make it a struct with named fields".into());
    }
    let properties = schema.get("properties").and_then(Json::as_object);
    let properties: Vec<(&String, &Json)> = properties.into_iter().flatten().collect();
    if properties.len() > MAX_PROPERTIES {
        return Err(format!("its input has more than {MAX_PROPERTIES} properties"));
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    for (name, _) in &properties {
        if name.is_empty() || name.len() > MAX_PROPERTY || !name.chars().all(is_plain) {
            return Err(format!(
                "the property {} has an invalid name: it needs 1 to {MAX_PROPERTY} letters, \
                 digits, `_`, `-` and `.`",
                quote(name, MAX_PROPERTY)
            ));
        }
    }
    let is_required = |name: &str| required.iter().any(|one| one == name);
    let (first, last): (Vec<_>, Vec<_>) =
        properties.into_iter().partition(|(name, _)| is_required(name));
    let first = first.into_iter().map(|(name, property)| arg(schema, name, property, true));
    Ok(first
        .chain(last.into_iter().map(|(name, property)| arg(schema, name, property, false)))
        .collect())
}

/// Returns the argument that a property of the schema describes.
fn arg(schema: &Json, name: &str, property: &Json, is_required: bool) -> Arg {
    let type_hint = type_hint(schema, property);
    let description = property.get("description").and_then(Json::as_str).unwrap_or_default();
    let text = |value: &Json| match value {
        Json::String(text) => text.clone(),
        value => value.to_string(),
    };
    let default = match (is_required, property.get("default").filter(|value| !value.is_null())) {
        (true, _) => None,
        (false, Some(default)) => Some(text(default)),
        (false, None) if type_hint == TypeHint::String => Some(String::new()),
        (false, None) => Some("null".to_owned()),
    };
    let choices = resolved(schema, property).get("enum").and_then(Json::as_array);
    let format = choices
        .map(|choices| choices.iter().map(text).collect::<Vec<_>>().join("|"))
        .filter(|format| type_hint == TypeHint::String && format.len() <= MAX_PROPERTY);
    Arg {
        name: name.to_owned(),
        type_hint,
        format,
        description: one_line(description, MAX_DESCRIPTION),
        default,
    }
}

/// Returns the schema that a property refers to, or the property's own schema.
fn resolved<'a>(schema: &'a Json, property: &'a Json) -> &'a Json {
    let reference = property.get("$ref").and_then(Json::as_str);
    let target = reference.and_then(|it| it.strip_prefix('#')).and_then(|it| schema.pointer(it));
    target.unwrap_or(property)
}

/// Returns the type of an argument: the type of a scalar property, or JSON for any other property.
fn type_hint(schema: &Json, property: &Json) -> TypeHint {
    let kinds: Vec<&str> = match resolved(schema, property).get("type") {
        Some(Json::String(kind)) => vec![kind],
        Some(Json::Array(kinds)) => kinds.iter().filter_map(Json::as_str).collect(),
        _ => Vec::new(),
    };
    let kinds: Vec<&str> = kinds.into_iter().filter(|kind| *kind != "null").collect();
    match kinds.as_slice() {
        ["string"] => TypeHint::String,
        ["integer"] => TypeHint::Int,
        ["number"] => TypeHint::Float,
        ["boolean"] => TypeHint::Bool,
        _ => TypeHint::Json,
    }
}

/// Returns the shape of the JSON values that a schema describes, as programs' front matter writes it,
/// such as `{id: number, tags: [string]}`.
#[must_use]
pub fn result_shape(schema: &Json) -> String {
    // A shape that is too long, or has keys that are no plain text, is written with fewer levels.
    // The last level with keys may be longer.
    let limits = (0..MAX_DEPTH).map(|depth| match depth + 1 {
        MAX_DEPTH => (depth, 3 * MAX_SHAPE),
        _ => (depth, MAX_SHAPE),
    });
    let mut shapes = limits.map(|(depth, limit)| (shape_at(schema, schema, depth), limit));
    let fitting = shapes.find(|(shape, limit)| one_line(shape, *limit) == *shape);
    fitting.map_or_else(|| shape_at(schema, schema, MAX_DEPTH), |(shape, _)| shape)
}

fn shape_at(root: &Json, schema: &Json, depth: usize) -> String {
    let reference = schema.get("$ref").and_then(Json::as_str);
    let target = reference.and_then(|it| it.strip_prefix('#')).and_then(|it| root.pointer(it));
    let schema = target.unwrap_or(schema);
    let kind = match schema.get("type") {
        Some(Json::String(kind)) => kind.as_str(),
        Some(Json::Array(kinds)) => {
            kinds.iter().filter_map(Json::as_str).find(|kind| *kind != "null").unwrap_or("any")
        }
        _ => "any",
    };
    match kind {
        "object" if depth < MAX_DEPTH => {
            let properties = schema.get("properties").and_then(Json::as_object);
            let parts: Vec<String> = properties
                .into_iter()
                .flatten()
                .map(|(key, value)| format!("{key}: {}", shape_at(root, value, depth + 1)))
                .collect();
            if parts.is_empty() { "object".to_owned() } else { format!("{{{}}}", parts.join(", ")) }
        }
        "array" if depth < MAX_DEPTH => match schema.get("items") {
            Some(items) => format!("[{}]", shape_at(root, items, depth + 1)),
            None => "list".to_owned(),
        },
        "array" => "list".to_owned(),
        "integer" => "number".to_owned(),
        "boolean" => "bool".to_owned(),
        kind => kind.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_shape_of_a_result_is_short() {
        let schema = json!({"type": "object", "properties": {
            "id": {"type": "integer"},
            "name": {"type": ["string", "null"]},
            "tags": {"type": "array", "items": {"type": "string"}},
            "next": {"$ref": "#"},
        }});
        let text = result_shape(&schema);
        assert!(text.starts_with("{id: number, name: string, tags: [string], next: "), "{text}");
        assert!(text.chars().count() <= 3 * MAX_SHAPE, "{text}");
        let wide: serde_json::Map<String, Json> =
            (0..100).map(|n| (format!("property{n}"), json!({"type": "string"}))).collect();
        let hidden = json!({"a\u{202e}\nb": {"type": "string"}});
        for properties in [json!(wide), hidden] {
            assert_eq!(
                result_shape(&json!({"type": "object", "properties": properties})),
                "object"
            );
        }
        assert_eq!(result_shape(&json!({})), "any");
        assert_eq!(result_shape(&json!({"type": "array"})), "list");
    }
}
