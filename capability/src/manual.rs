//! The manual, generated from the function tables: as text for users and models, and as JSON for
//! machines.
//!
//! All output is a pure function of the tables, so that it can be saved to a file and compared byte
//! for byte.
//!
//! ```
//! use wattle_capability::{ALL, manual};
//!
//! let text = manual::about(ALL, "str.cat").unwrap();
//! assert!(text.starts_with("str.cat (a, b) → (ptr, err)\n"));
//! assert!(manual::about(ALL, "str").unwrap().contains("str.cat (a, b)"));
//! assert_eq!(manual::about(ALL, "str.cta"), None);
//! ```

use std::fmt::Write as _;

use serde_json::{Map, Value as Json, json};
use wattle_rt::{Capability, Code, Function, Param, Signature, Ty};

/// Returns the manual page for a capability (`str`) or a function. A function may be written as in
/// a program (`str.cat`, `$str.cat` or `str.cat?`). Returns `None` if the topic is unknown.
#[must_use]
pub fn about(capabilities: &[Capability], topic: &str) -> Option<String> {
    let topic = topic.trim().trim_start_matches('$').trim_end_matches('?');
    let mut functions = capabilities.iter().flat_map(|c| c.functions);
    functions
        .find(|f| f.name == topic)
        .map(function)
        .or_else(|| capabilities.iter().find(|c| c.name == topic).map(capability))
}

/// Renders the manual page for a capability: its description, and a line for each function.
#[must_use]
pub fn capability(capability: &Capability) -> String {
    let mut text = format!("{}: {}\n", capability.name, capability.about);
    for f in capability.functions {
        _ = writeln!(text, "- {}: {}", f.signature, f.about);
    }
    text
}

/// Renders the manual page for a function: its signature, description, types, errors, and an
/// example with its output.
#[must_use]
pub fn function(function: &Function) -> String {
    let mut text = format!("{}\n{}\n", function.signature, function.about);
    let Signature { params, results, errors, .. } = function.signature;
    for (label, list) in [("arguments", params), ("returns", results)] {
        if !list.is_empty() {
            _ = writeln!(text, "{label}: {}", types(list));
        }
    }
    if !errors.is_empty() {
        _ = writeln!(text, "errors: {}", codes(errors));
    }
    _ = writeln!(text, "example: {}", function.example);
    if !function.output.is_empty() {
        _ = writeln!(text, "prints: {}", function.output.join("\n"));
    }
    text
}

/// Renders the manual as Markdown: a section per capability, with a subsection per function.
#[must_use]
pub fn markdown(capabilities: &[Capability]) -> String {
    let mut text = String::new();
    for capability in capabilities {
        _ = write!(text, "## {}\n\n{}\n", capability.name, capability.about);
        for f in capability.functions {
            let Signature { params, results, errors, .. } = f.signature;
            _ = write!(text, "\n### {}\n\n    {}\n\n{}.\n", f.name, f.signature, f.about);
            let facts = [
                ("Arguments", types(params)),
                ("Returns", types(results)),
                ("Errors", codes(errors)),
            ];
            for (label, list) in facts.iter().filter(|(_, list)| !list.is_empty()) {
                _ = write!(text, "\n{label}: {list}.\n");
            }
            _ = write!(text, "\n```wat\n{}\n```\n", f.example);
            if !f.output.is_empty() {
                _ = write!(text, "\n```text\n{}\n```\n", f.output.join("\n"));
            }
        }
        text.push('\n');
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

/// Renders the manual as JSON: an array of `{name, version, about, functions}`, with each function
/// rendered by [`function_json`].
#[must_use]
pub fn json(capabilities: &[Capability]) -> Json {
    let functions = |c: &Capability| c.functions.iter().map(function_json).collect::<Vec<_>>();
    capabilities
        .iter()
        .map(|c| {
            json!({
                "name": c.name, "version": c.version, "about": c.about, "functions": functions(c),
            })
        })
        .collect()
}

/// Renders a function as JSON: `{name, signature, about, params: [{name, type}], results: [{name,
/// type}], errors: [code], waits, example, gives: [result]}`.
#[must_use]
pub fn function_json(function: &Function) -> Json {
    let list = |params: &[Param]| -> Json {
        params.iter().map(|p| json!({"name": p.name, "type": p.ty.word()})).collect()
    };
    let errors: Vec<_> = function.signature.errors.iter().filter_map(|code| code.name()).collect();
    json!({
        "name": function.name,
        "signature": function.signature.to_string(),
        "about": function.about,
        "params": list(function.signature.params),
        "results": list(function.signature.results),
        "errors": errors,
        "waits": function.waits,
        "example": function.example,
        "gives": function.output,
    })
}

/// Returns the JSON Schema of an object that contains a function's arguments. The schema is for
/// callers that pass JSON values instead of pointers: they pass an `arr` as an array of strings,
/// and a `map` as an object whose values are strings.
#[must_use]
pub fn schema(signature: &Signature) -> Json {
    let properties: Map<String, Json> =
        signature.params.iter().map(|p| (p.name.to_owned(), value_schema(p.ty))).collect();
    let required: Vec<&str> =
        signature.params.iter().filter(|p| !p.ty.is_optional()).map(|p| p.name).collect();
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

/// Returns the JSON Schema for values of the type.
#[must_use]
pub fn value_schema(ty: Ty) -> Json {
    match ty {
        Ty::Str | Ty::Bytes => json!({"type": "string"}),
        Ty::OptStr | Ty::OptBytes => json!({"type": ["string", "null"]}),
        Ty::Int => json!({"type": "integer", "minimum": i32::MIN, "maximum": i32::MAX}),
        Ty::OptInt => {
            json!({"type": ["integer", "null"], "minimum": -i32::MAX, "maximum": i32::MAX})
        }
        Ty::OptMap => {
            json!({"type": ["object", "null"], "additionalProperties": {"type": "string"}})
        }
        Ty::Long => json!({"type": "integer"}),
        Ty::Float => json!({"type": "number"}),
        Ty::Bool => json!({"type": "boolean"}),
        Ty::Arr => json!({"type": "array", "items": {"type": "string"}}),
        Ty::Map => json!({"type": "object", "additionalProperties": {"type": "string"}}),
        Ty::Addr => json!({"type": "integer", "minimum": 0}),
        Ty::Val | Ty::Any => json!({}),
    }
}

/// Renders parameters with their types, such as `s text, start i32`.
fn types(params: &[Param]) -> String {
    params.iter().map(|p| format!("{} {}", p.name, p.ty.word())).collect::<Vec<_>>().join(", ")
}

/// Renders error codes with their meanings, such as `EBOUND (out of bounds), ENOMEM (out of
/// memory)`.
fn codes(codes: &[Code]) -> String {
    let words =
        codes.iter().filter_map(|code| Some(format!("{} ({})", code.name()?, code.meaning())));
    words.collect::<Vec<_>>().join(", ")
}
