//! JSON Schemas that come from outside: read within bounds, so that neither reading one nor checking against it can go on without end.
//!
//! Nothing is fetched. A schema that refers to itself, and the keywords whose cost doubles at each level, are refused: what is
//! left costs no more than the schema's size, with its references written out, times the size of the value.

use jsonschema::{PatternOptions, Validator};
use serde_json::Value as Json;
use wattle_rt::truncate;

/// The longest text of a schema, in bytes.
const TEXT_BYTES: usize = 32 << 10;
/// The most subschemas, with references written out.
const NODES: usize = 4_096;
/// How deep subschemas may be nested, with references written out.
const DEPTH: usize = 64;
/// The largest program of one regular expression, in bytes.
const PATTERN_BYTES: usize = 256 << 10;
/// How many faults of a value are told.
const FAULTS: usize = 5;

/// A schema that values can be checked against.
pub struct Schema {
    validator: Validator,
}

impl Schema {
    /// Reads a schema.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn parse(text: &str) -> Result<Schema, String> {
        if text.len() > TEXT_BYTES {
            return Err(format!("it has {} bytes, more than {TEXT_BYTES}", text.len()));
        }
        let document: Json = serde_json::from_str(text).map_err(|error| format!("it is no JSON: {error}"))?;
        Cost { root: &document, nodes: 0, open: Vec::new() }.of(&document, 0)?;
        let options = jsonschema::options()
            .offline()
            .with_pattern_options(PatternOptions::regex().size_limit(PATTERN_BYTES).dfa_size_limit(PATTERN_BYTES));
        let validator = options.build(&document).map_err(|error| error.to_string())?;
        Ok(Schema { validator })
    }

    /// Checks a value.
    ///
    /// # Errors
    /// The first faults, each with its place in the value as a JSON pointer.
    pub fn check(&self, value: &Json) -> Result<(), String> {
        let faults: Vec<String> = self
            .validator
            .iter_errors(value)
            .take(FAULTS)
            .map(|error| match error.instance_path().as_str() {
                "" => truncate(&error.to_string(), FAULT).into_owned(),
                place => format!("at {place}: {}", truncate(&error.to_string(), FAULT)),
            })
            .collect();
        if faults.is_empty() { Ok(()) } else { Err(faults.join("; ")) }
    }
}

/// Maximum length of a fault, in characters: a fault quotes the value.
const FAULT: usize = 300;

/// Walks a schema with its references written out.
struct Cost<'a> {
    root: &'a Json,
    nodes: usize,
    /// The references that are being written out.
    open: Vec<&'a str>,
}

impl<'a> Cost<'a> {
    /// Every object and array is walked as if it were a schema: that overcounts, and misses none.
    fn of(&mut self, part: &'a Json, depth: usize) -> Result<(), String> {
        self.nodes += 1;
        if self.nodes > NODES || depth > DEPTH {
            return Err(format!(
                "it is too large: at most {NODES} parts, nested at most {DEPTH} deep, with references written out"
            ));
        }
        match part {
            Json::Array(items) => items.iter().try_for_each(|item| self.of(item, depth + 1)),
            Json::Object(fields) => fields.iter().try_for_each(|(key, value)| match (key.as_str(), value) {
                ("$dynamicRef" | "$recursiveRef" | "unevaluatedItems" | "unevaluatedProperties", _) => {
                    Err(format!("the keyword `{key}` is not supported"))
                }
                ("$id", Json::String(_)) if depth > 0 => Err(nested_id()),
                ("id", Json::String(_)) if depth > 0 && self.is_draft4() => Err(nested_id()),
                ("$ref", Json::String(target)) => self.reference(target, depth),
                _ => self.of(value, depth + 1),
            }),
            _ => Ok(()),
        }
    }

    /// Whether plain `id` has the meaning that `$id` has since.
    fn is_draft4(&self) -> bool {
        self.root.get("$schema").and_then(Json::as_str).is_some_and(|draft| draft.contains("draft-04"))
    }

    fn reference(&mut self, target: &'a str, depth: usize) -> Result<(), String> {
        if self.open.contains(&target) {
            return Err(format!("it refers to itself by `{target}`; spell the levels out"));
        }
        let path = target.strip_prefix('#').filter(|path| path.is_empty() || path.starts_with('/'));
        let path = path.ok_or_else(|| format!("the reference `{target}` leads elsewhere; refer by `#/$defs/…`"))?;
        // Characters may stand there as in a URL.
        let path = decoded(path).ok_or_else(|| format!("the reference `{target}` cannot be read"))?;
        let part = self.root.pointer(&path).ok_or_else(|| format!("the reference `{target}` leads to nothing"))?;
        self.open.push(target);
        let walked = self.of(part, depth + 1);
        self.open.pop();
        walked
    }
}

fn nested_id() -> String {
    "an `$id` inside of a schema is not supported; refer by `#/$defs/…`".to_owned()
}

/// Replaces `%41` by `A` and the like.
fn decoded(path: &str) -> Option<String> {
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
    fn a_value_is_checked_and_its_faults_are_placed() {
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
    fn what_could_go_on_without_end_is_refused() {
        let doubling: String = (0..40)
            .map(|n| format!(r##""d{n}":{{"allOf":[{{"$ref":"#/$defs/d{0}"}},{{"$ref":"#/$defs/d{0}"}}]}},"##, n + 1))
            .collect();
        let doubling = format!(r##"{{"$ref":"#/$defs/d0","$defs":{{{doubling}"d40":true}}}}"##);
        for (text, words) in [
            ("", "no JSON"),
            ("{\"type\":", "no JSON"),
            ("{\"type\":\"strin\"}", "strin"),
            ("7", "7"),
            (r##"{"$ref":"#"}"##, "refers to itself by `#`"),
            (r##"{"$ref":"#/a%2Fb","a/b":true}"##, "leads to nothing"),
            (r##"{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}"##, "refers to itself"),
            (r##"{"properties":{"child":{"$ref":"#"}}}"##, "refers to itself"),
            (r##"{"$ref":"#/$defs/x"}"##, "leads to nothing"),
            (r##"{"$ref":"https://example.com/schema.json"}"##, "leads elsewhere"),
            (r##"{"$ref":"#name","$defs":{"a":{"$anchor":"name"}}}"##, "leads elsewhere"),
            (r##"{"$schema":"https://example.com/meta"}"##, ""),
            (r##"{"$dynamicRef":"#a"}"##, "`$dynamicRef` is not supported"),
            (r##"{"allOf":[{"unevaluatedProperties":false}]}"##, "not supported"),
            (r##"{"$defs":{"a":{"$id":"x","$ref":"#"}}}"##, "`$id`"),
            (r##"{"pattern":"(a{1000}){1000}"}"##, ""),
            (r##"{"pattern":"(?=a)"}"##, ""),
            (&doubling, "too large"),
            (&format!("{}true{}", "{\"not\":".repeat(100), "}".repeat(100)), "too large"),
            (&" ".repeat(TEXT_BYTES + 1), "bytes"),
        ] {
            let why = Schema::parse(text).err().unwrap_or_else(|| panic!("{text} is no schema"));
            assert!(why.contains(words), "{text}: {why}");
        }
    }
}
