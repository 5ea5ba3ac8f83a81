//! The schema that an agent sets for a program's arguments, in addition to the types of the
//! parameters.

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value as Json};
use wattle_schema::{Schema, SchemaLimits};

use crate::{Arg, TypeHint};

/// Limits on the size and the features of a schema.
const LIMITS: SchemaLimits = SchemaLimits { text: 32 << 10, parts: 4_096, checks_formats: true };

/// Maximum number of faults that an error lists.
const MAX_FAULTS: usize = 5;

/// Maximum total length of the `enum` values in a usage line, in bytes.
const MAX_CHOICES: usize = 80;

/// A JSON Schema for a program's arguments: an object with one field for each argument given by the
/// caller. It is cheap to clone.
#[derive(Clone)]
pub struct ArgumentSchema {
    document: Arc<Json>,
    compiled: Arc<Schema>,
}

impl ArgumentSchema {
    /// Compiles the schema for a program with the parameters `args`.
    pub(crate) fn compile(document: &Json, args: &[Arg]) -> Result<ArgumentSchema, String> {
        let Some(fields) = document.as_object() else {
            return Err("it is not an object".to_owned());
        };
        if fields.get("type").is_some_and(|of| of != "object") {
            return Err("its `type` is not `object`; it describes all arguments".to_owned());
        }
        for (name, property) in properties(document).into_iter().flatten() {
            if !args.iter().any(|arg| arg.name == *name) {
                let known: Vec<String> = args.iter().map(|arg| format!("`{}`", arg.name)).collect();
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                return Err(format!(
                    "`{name}` is no parameter that a caller sets; there are {known}"
                ));
            }
            if property.get("default").is_some() {
                return Err(format!(
                    "`{name}` has a `default`, which the program sets; give the value in `context`"
                ));
            }
        }
        let compiled = Arc::new(Schema::compile(document, LIMITS)?);
        Ok(ArgumentSchema { document: Arc::new(document.clone()), compiled })
    }

    /// Returns the schema as JSON.
    #[must_use]
    pub fn document(&self) -> &Json {
        &self.document
    }

    /// Returns true if the schema expects an array or an object for the parameter.
    #[must_use]
    pub fn is_structured(&self, parameter: &str) -> bool {
        let types = self.property(parameter).map(types).unwrap_or_default();
        types.iter().any(|of| *of == "array" || *of == "object")
    }

    /// Replaces the parameter's description with the one in the schema, if the schema contains one.
    /// If the schema lists `enum` values of at most [`MAX_CHOICES`] bytes in total, replaces the
    /// parameter's format with the list.
    pub(crate) fn describe(&self, arg: &mut Arg) {
        let Some(property) = self.property(&arg.name) else { return };
        if let Some(description) = property.get("description").and_then(Json::as_str) {
            description.clone_into(&mut arg.description);
        }
        let choices = property.get("enum").and_then(Json::as_array);
        let choices = choices.map(|all| all.iter().map(ToString::to_string).collect::<Vec<_>>());
        if let Some(choices) = choices.map(|all| all.join(" | "))
            && choices.len() <= MAX_CHOICES
        {
            arg.format = Some(choices);
        }
    }

    /// Validates the arguments given by a caller, each paired with its parameter. Returns one
    /// message per schema violation, and at most [`MAX_FAULTS`] messages.
    pub(crate) fn faults<'a>(
        &self,
        given: impl IntoIterator<Item = (&'a Arg, &'a String)>,
    ) -> Vec<String> {
        let fields = given.into_iter().map(|(arg, text)| (arg.name.clone(), self.value(arg, text)));
        self.compiled.faults(&Json::Object(fields.collect::<Map<_, _>>()), MAX_FAULTS)
    }

    /// Converts an argument to the JSON value that is validated against the schema.
    fn value(&self, arg: &Arg, text: &str) -> Json {
        let wants_text = || {
            let types = self.property(&arg.name).map(types).unwrap_or_default();
            types.is_empty() || types.contains(&"string")
        };
        let is_text = match arg.type_hint {
            TypeHint::Int | TypeHint::Float | TypeHint::Bool | TypeHint::Json => false,
            TypeHint::String | TypeHint::Path | TypeHint::Url => wants_text(),
        };
        let parsed = if is_text { None } else { serde_json::from_str(text).ok() };
        match (parsed, arg.type_hint) {
            (Some(parsed), _) => parsed,
            (None, TypeHint::Path) => Json::from(normal_path(text)),
            (None, _) => Json::from(text),
        }
    }

    fn property(&self, parameter: &str) -> Option<&Json> {
        properties(&self.document)?.get(parameter)
    }
}

/// Returns the path in the form in which it is used: without `.`, `..` and repeated slashes, so that
/// a pattern such as `^notes/` does not match `notes/../secret`.
fn normal_path(text: &str) -> String {
    let mut names: Vec<&str> = Vec::new();
    for name in text.split('/') {
        match name {
            "" | "." => {}
            ".." if names.last().is_some_and(|last| *last != "..") => _ = names.pop(),
            name => names.push(name),
        }
    }
    let start = if text.starts_with('/') { "/" } else { "" };
    let end = if text.ends_with('/') && !names.is_empty() { "/" } else { "" };
    format!("{start}{}{end}", names.join("/"))
}

fn properties(document: &Json) -> Option<&Map<String, Json>> {
    document.get("properties")?.as_object()
}

/// Returns the types that a property's schema allows, or an empty list if it does not restrict the
/// type.
fn types(property: &Json) -> Vec<&str> {
    match property.get("type") {
        Some(Json::String(one)) => vec![one],
        Some(Json::Array(all)) => all.iter().filter_map(Json::as_str).collect(),
        _ => Vec::new(),
    }
}

impl fmt::Debug for ArgumentSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.document.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_matched_in_the_form_in_which_it_is_used() {
        for (text, normal) in [
            ("notes/a", "notes/a"),
            ("notes/../secret", "secret"),
            ("./notes//a/", "notes/a/"),
            ("/notes/./a", "/notes/a"),
            ("../a", "../a"),
            ("a/../../b", "../b"),
            ("a/..", ""),
            ("/", "/"),
        ] {
            assert_eq!(normal_path(text), normal, "{text}");
        }
    }
}
