//! JSON Schemas from untrusted sources, with limits on the cost of parsing and validation.
//!
//! References that lead outside the schema are not fetched. Recursive schemas are rejected, as are
//! keywords whose cost doubles with each nesting level. The cost of validation is therefore at most
//! the size of the schema, with its references expanded, times the size of the value.

use jsonschema::{PatternOptions, Validator};
use serde_json::Value as Json;
use wattle_lang::truncate;

/// Maximum length of a program's schema, in bytes.
const MAX_TEXT: usize = 32 << 10;
/// Maximum number of parts (JSON values) in a program's schema, with references expanded.
const MAX_PARTS: usize = 4_096;
/// Maximum number of regular expressions, with references expanded.
const MAX_PATTERNS: usize = 256;
/// Maximum nesting depth of subschemas, with references expanded.
const MAX_DEPTH: usize = 64;
/// Maximum size of a compiled regular expression, in bytes.
const MAX_PATTERN: usize = 256 << 10;
/// Maximum number of faults that are reported for a value.
const MAX_FAULTS: usize = 5;

/// Limits on a schema, and an option for its validation.
#[derive(Clone, Copy, Debug)]
pub struct SchemaLimits {
    /// Maximum length of the serialized schema, in bytes.
    pub text: usize,
    /// Maximum number of parts, with references expanded. Every value in the schema counts as a
    /// part.
    pub parts: usize,
    /// If true, the keyword `format` is checked.
    pub checks_formats: bool,
}

/// A JSON Schema.
pub struct Schema {
    validator: Validator,
}

impl Schema {
    /// Parses a schema.
    ///
    /// # Errors
    /// If the schema is invalid or not supported. The error states the reason.
    pub fn parse(text: &str) -> Result<Schema, String> {
        check_length(text.len(), MAX_TEXT)?;
        let document: Json =
            serde_json::from_str(text).map_err(|error| format!("it is not JSON: {error}"))?;
        let limits = SchemaLimits { text: MAX_TEXT, parts: MAX_PARTS, checks_formats: false };
        Schema::compile(&document, limits)
    }

    /// Compiles a schema within the limits.
    ///
    /// # Errors
    /// If the schema is invalid or not supported. The error states the reason.
    pub fn compile(document: &Json, limits: SchemaLimits) -> Result<Schema, String> {
        check_length(document.to_string().len(), limits.text)?;
        let mut cost = Cost {
            root: document,
            max_parts: limits.parts,
            parts: 0,
            patterns: 0,
            open: Vec::new(),
        };
        cost.of(document, 0)?;
        let options = jsonschema::options().offline().with_pattern_options(
            PatternOptions::regex().size_limit(MAX_PATTERN).dfa_size_limit(MAX_PATTERN),
        );
        let options =
            if limits.checks_formats { options.should_validate_formats(true) } else { options };
        let validator = options.build(document).map_err(|error| error.to_string())?;
        Ok(Schema { validator })
    }

    /// Validates a value.
    ///
    /// # Errors
    /// If the value does not match. The error lists the first faults, each with its location as a
    /// JSON pointer into the value.
    pub fn check(&self, value: &Json) -> Result<(), String> {
        let faults = self.faults(value, MAX_FAULTS);
        if faults.is_empty() { Ok(()) } else { Err(faults.join("; ")) }
    }

    /// Returns at most `limit` validation errors for a value, each with its location as a JSON
    /// pointer into the value. Returns an empty list if the value is valid.
    #[must_use]
    pub fn faults(&self, value: &Json, limit: usize) -> Vec<String> {
        let described = self.validator.iter_errors(value).take(limit).map(|error| {
            match error.instance_path().as_str() {
                "" => truncate(&error.to_string(), FAULT).into_owned(),
                pointer => format!("at {pointer}: {}", truncate(&error.to_string(), FAULT)),
            }
        });
        described.collect()
    }
}

fn check_length(length: usize, limit: usize) -> Result<(), String> {
    if length > limit { Err(format!("it has {length} bytes, more than {limit}")) } else { Ok(()) }
}

/// Maximum length of a reported fault, in characters. A fault quotes the value, which may be long.
const FAULT: usize = 300;

/// A walk that expands the references of a schema and counts its parts and regular expressions.
struct Cost<'a> {
    root: &'a Json,
    max_parts: usize,
    parts: usize,
    patterns: usize,
    /// The references that are currently being expanded.
    open: Vec<&'a str>,
}

impl<'a> Cost<'a> {
    /// Counts the parts and regular expressions in `part`. Fails if a limit is exceeded or a
    /// keyword is not supported.
    fn of(&mut self, part: &'a Json, depth: usize) -> Result<(), String> {
        self.parts += 1;
        if self.parts > self.max_parts || depth > MAX_DEPTH {
            return Err(format!(
                "it is too large: at most {} parts, nested at most {MAX_DEPTH} deep, with \
                 references expanded",
                self.max_parts
            ));
        }
        match part {
            Json::Array(items) => items.iter().try_for_each(|item| self.of(item, depth + 1)),
            Json::Object(fields) => {
                fields.iter().try_for_each(|(key, value)| match (key.as_str(), value) {
                    (
                        "$dynamicRef"
                        | "$recursiveRef"
                        | "unevaluatedItems"
                        | "unevaluatedProperties",
                        _,
                    ) => Err(format!("the keyword `{key}` is not supported")),
                    ("$id", Json::String(_)) if depth > 0 => Err(nested_id()),
                    ("id", Json::String(_)) if depth > 0 && self.is_draft4() => Err(nested_id()),
                    ("$ref", Json::String(target)) => self.reference(target, depth),
                    ("pattern", Json::String(_)) => self.add_patterns(1),
                    ("patternProperties", Json::Object(patterns)) => {
                        self.add_patterns(patterns.len())?;
                        self.of(value, depth + 1)
                    }
                    _ => self.of(value, depth + 1),
                })
            }
            _ => Ok(()),
        }
    }

    fn add_patterns(&mut self, count: usize) -> Result<(), String> {
        self.patterns += count;
        if self.patterns > MAX_PATTERNS {
            Err(format!("it has more than {MAX_PATTERNS} regular expressions"))
        } else {
            Ok(())
        }
    }

    /// Returns true if the schema declares draft 4, where plain `id` means `$id`.
    fn is_draft4(&self) -> bool {
        self.root
            .get("$schema")
            .and_then(Json::as_str)
            .is_some_and(|draft| draft.contains("draft-04"))
    }

    fn reference(&mut self, target: &'a str, depth: usize) -> Result<(), String> {
        if self.open.contains(&target) {
            return Err(format!("it refers to itself by `{target}`; write the levels out"));
        }
        let path = target.strip_prefix('#').filter(|path| path.is_empty() || path.starts_with('/'));
        let path = path.ok_or_else(|| {
            format!("the reference `{target}` leaves the schema; refer to `#/$defs/…`")
        })?;
        // The reference may contain percent-encoded characters, as in a URL.
        let path =
            percent_decoded(path).ok_or_else(|| format!("the reference `{target}` is invalid"))?;
        let part = self
            .root
            .pointer(&path)
            .ok_or_else(|| format!("the reference `{target}` refers to nothing"))?;
        self.open.push(target);
        let walked = self.of(part, depth + 1);
        self.open.pop();
        walked
    }
}

fn nested_id() -> String {
    "an `$id` inside a schema is not supported; refer to `#/$defs/…`".to_owned()
}

/// Decodes percent-encoding: replaces `%41` with `A`, and so on. Returns `None` if the encoding is
/// invalid or the result is not UTF-8.
fn percent_decoded(path: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
            }
            byte => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_validated_and_its_faults_are_located() {
        let text = r##"{"type":"object","properties":{"name":{"$ref":"#/$defs/name"},"ages":{"type":"array","items":{"type":"integer"}}},"required":["name"],"$defs":{"name":{"type":"string","pattern":"^[A-Z]"}}}"##;
        let schema = Schema::parse(text).unwrap();
        for (value, expected) in [
            (r#"{"name":"Ada","ages":[1,2]}"#, Ok(())),
            (r#"{"name":"ada"}"#, Err("at /name: ")),
            (r#"{"name":"Ada","ages":[1,"2"]}"#, Err("at /ages/1: ")),
            (r#"{}"#, Err("\"name\" is a required property")),
        ] {
            let value = serde_json::from_str(value).unwrap();
            match (schema.check(&value), expected) {
                (Ok(()), Ok(())) => {}
                (Err(found), Err(words)) => assert!(found.contains(words), "{found}"),
                (found, _) => panic!("{value}: {found:?}"),
            }
        }
    }

    #[test]
    fn schemas_of_unlimited_cost_are_rejected() {
        let doubling: String = (0..40)
            .map(|n| format!(r##""d{n}":{{"allOf":[{{"$ref":"#/$defs/d{0}"}},{{"$ref":"#/$defs/d{0}"}}]}},"##, n + 1))
            .collect();
        let doubling = format!(r##"{{"$ref":"#/$defs/d0","$defs":{{{doubling}"d40":true}}}}"##);
        for (text, words) in [
            ("", "not JSON"),
            ("{\"type\":", "not JSON"),
            ("{\"type\":\"strin\"}", "strin"),
            ("7", "7"),
            (r##"{"$ref":"#"}"##, "refers to itself by `#`"),
            (r##"{"$ref":"#/a%2Fb","a/b":true}"##, "refers to nothing"),
            (
                r##"{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}"##,
                "refers to itself",
            ),
            (r##"{"properties":{"child":{"$ref":"#"}}}"##, "refers to itself"),
            (r##"{"$ref":"#/$defs/x"}"##, "refers to nothing"),
            (r##"{"$ref":"https://example.com/schema.json"}"##, "leaves the schema"),
            (r##"{"$ref":"#name","$defs":{"a":{"$anchor":"name"}}}"##, "leaves the schema"),
            (r##"{"$schema":"https://example.com/meta"}"##, ""),
            (r##"{"$dynamicRef":"#a"}"##, "`$dynamicRef` is not supported"),
            (r##"{"allOf":[{"unevaluatedProperties":false}]}"##, "not supported"),
            (r##"{"$defs":{"a":{"$id":"x","$ref":"#"}}}"##, "`$id`"),
            (r##"{"pattern":"(a{1000}){1000}"}"##, ""),
            (r##"{"pattern":"(?=a)"}"##, ""),
            (&doubling, "too large"),
            (&format!("{}true{}", "{\"not\":".repeat(100), "}".repeat(100)), "too large"),
            (&" ".repeat(MAX_TEXT + 1), "bytes"),
        ] {
            let why = Schema::parse(text).err().unwrap_or_else(|| panic!("{text} was accepted"));
            assert!(why.contains(words), "{text}: {why}");
        }
    }
}
