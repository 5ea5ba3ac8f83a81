//! Values from YAML, TOML and XML.

use std::fmt;

use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion, escape};
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use wattle_rt::{Code, Failure, Run};

use super::ValueHandle;
use super::arena::{Builder, Values, with};
use super::number::float_text;
use crate::json::scan::{MAX_DEPTH, position};

/// A seed that adds the deserialized value to a builder. A failure of the builder is kept, since an
/// error of a deserializer is only a text.
struct Seed<'b, 'v> {
    builder: &'b mut Builder<'v>,
    failure: &'b mut Option<Failure>,
    depth: usize,
}

impl<'b, 'v> Seed<'b, 'v> {
    fn deeper(&mut self) -> Seed<'_, 'v> {
        Seed { builder: self.builder, failure: self.failure, depth: self.depth + 1 }
    }

    fn keep<T, E: serde::de::Error>(&mut self, result: Result<T, Failure>) -> Result<T, E> {
        result.map_err(|failure| {
            let error = E::custom(&failure.reason);
            *self.failure = Some(failure);
            error
        })
    }

    fn check_depth<E: serde::de::Error>(&self) -> Result<(), E> {
        if self.depth > MAX_DEPTH {
            return Err(E::custom(format!("values are nested deeper than {MAX_DEPTH}")));
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        self.check_depth()?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E: serde::de::Error>(mut self, yes: bool) -> Result<(), E> {
        let added = self.builder.add_bool(yes);
        self.keep(added)
    }

    fn visit_i64<E: serde::de::Error>(mut self, n: i64) -> Result<(), E> {
        let added = self.builder.add_whole(n);
        self.keep(added)
    }

    fn visit_u64<E: serde::de::Error>(mut self, n: u64) -> Result<(), E> {
        let added = self.builder.add_number(&n.to_string());
        self.keep(added)
    }

    fn visit_i128<E: serde::de::Error>(mut self, n: i128) -> Result<(), E> {
        let added = self.builder.add_number(&n.to_string());
        self.keep(added)
    }

    fn visit_u128<E: serde::de::Error>(mut self, n: u128) -> Result<(), E> {
        let added = self.builder.add_number(&n.to_string());
        self.keep(added)
    }

    /// A fraction that came from text is a decimal.
    fn visit_f64<E: serde::de::Error>(mut self, x: f64) -> Result<(), E> {
        if !x.is_finite() {
            return Err(E::custom("NaN and infinity are not values"));
        }
        let added = self.builder.add_decimal(&float_text(x), None);
        self.keep(added)
    }

    fn visit_str<E: serde::de::Error>(mut self, text: &str) -> Result<(), E> {
        let added = self.builder.add_text(text, None);
        self.keep(added)
    }

    fn visit_unit<E: serde::de::Error>(mut self) -> Result<(), E> {
        let added = self.builder.add_null();
        self.keep(added)
    }

    fn visit_none<E: serde::de::Error>(self) -> Result<(), E> {
        self.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<(), D::Error> {
        inner.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        let opened = self.builder.open(false);
        self.keep(opened)?;
        while items.next_element_seed(self.deeper())?.is_some() {}
        let closed = self.builder.close();
        self.keep(closed)
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut entries: A) -> Result<(), A::Error> {
        let opened = self.builder.open(true);
        self.keep(opened)?;
        while let Some(Key(key)) = entries.next_key()? {
            let added = self.builder.add_key(&key, None);
            if !self.keep(added)? {
                let key = wattle_rt::quote(&key, crate::QUOTED);
                return Err(A::Error::custom(format!("the key {key} is repeated in its object")));
            }
            entries.next_value_seed(self.deeper())?;
        }
        let closed = self.builder.close();
        self.keep(closed)
    }
}

/// A key. Numbers, bools and null become their text.
struct Key(String);

impl<'de> serde::Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Key, D::Error> {
        struct Keys;
        impl Visitor<'_> for Keys {
            type Value = Key;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key, which is a string, a number or a bool")
            }
            fn visit_str<E>(self, key: &str) -> Result<Key, E> {
                Ok(Key(key.to_owned()))
            }
            fn visit_bool<E>(self, key: bool) -> Result<Key, E> {
                Ok(Key(key.to_string()))
            }
            fn visit_i64<E>(self, key: i64) -> Result<Key, E> {
                Ok(Key(key.to_string()))
            }
            fn visit_u64<E>(self, key: u64) -> Result<Key, E> {
                Ok(Key(key.to_string()))
            }
            fn visit_f64<E>(self, key: f64) -> Result<Key, E> {
                Ok(Key(float_text(key)))
            }
            fn visit_unit<E>(self) -> Result<Key, E> {
                Ok(Key("null".to_owned()))
            }
        }
        deserializer.deserialize_any(Keys)
    }
}

/// Maximum size of a document, in bytes. A parser may need several times its size.
const MAX_DOCUMENT: usize = 16 << 20;

/// Size of the stack on which documents are parsed, in bytes. Only the part that is used takes
/// memory.
const STACK: usize = 8 << 20;

/// Calls a function on a thread with a large stack. The parsers are recursive, and a program's stack
/// is too small for a document of the maximum depth.
fn on_large_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, Failure> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work);
        let thread = thread.map_err(|error| {
            Failure::new(Code::ENOMEM, format!("the host has no thread for the parser: {error}"))
        })?;
        Ok(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

/// Builds values with a function that reports the reason if the text is invalid.
fn read(
    run: &mut Run,
    text: &str,
    format: &str,
    build: impl FnOnce(&mut Builder<'_>, &mut Option<Failure>) -> Result<(), String> + Send,
) -> Result<ValueHandle, Failure> {
    if text.len() > MAX_DOCUMENT {
        let why = format!("the text has {} bytes, more than 16 MiB; split it first", text.len());
        return Err(Failure::new(Code::ENOMEM, why));
    }
    let _held = run.account().hold(text.len().saturating_mul(4))?;
    with(run, |values: &mut Values| {
        let mark = values.mark();
        let mut failure = None;
        let mut builder = Builder::new(values);
        let built = match on_large_stack(|| build(&mut builder, &mut failure)) {
            Ok(built) => built,
            Err(failed) => keep(Err(failed), &mut failure),
        };
        let root = builder.finish();
        built.map(|()| ValueHandle(root)).map_err(|why| {
            values.restore(&mark);
            failure.unwrap_or_else(|| {
                Failure::new(Code::EPARSE, format!("the text is not {format}: {why}"))
            })
        })
    })
}

/// The limits on a YAML document. An alias is a copy of the values that it refers to, and the copies
/// of a whole document are bounded.
fn yaml_options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: MAX_DEPTH,
            max_nodes: 1_000_000,
            max_aliases: 10_000,
        },
        with_snippet: false,
        strict_booleans: true,
        legacy_octal_numbers: false,
        duplicate_keys: serde_saphyr::DuplicateKeyPolicy::Error,
    }
}

pub(super) fn yaml(run: &mut Run, s: &str) -> Result<ValueHandle, Failure> {
    read(run, s, "YAML", |builder, failure| add_yaml(builder, failure, s))
}

/// Adds the first document of a YAML text.
fn add_yaml(
    builder: &mut Builder<'_>,
    failure: &mut Option<Failure>,
    text: &str,
) -> Result<(), String> {
    let text = first_document(wattle_rt::without_bom(text));
    if text.trim().is_empty() {
        return keep(builder.add_null(), failure);
    }
    serde_saphyr::with_deserializer_from_str_with_options(text, yaml_options(), |yaml| {
        Seed { builder, failure, depth: 1 }.deserialize(yaml)
    })
    .map_err(|error| one_line(&error.to_string()))
}

/// Keeps a failure of a builder and returns its reason.
fn keep(result: Result<(), Failure>, failure: &mut Option<Failure>) -> Result<(), String> {
    result.map_err(|failed| {
        let why = failed.reason.clone();
        *failure = Some(failed);
        why
    })
}

/// Returns the first document of a YAML stream.
fn first_document(text: &str) -> &str {
    let mut at = 0;
    let mut has_content = false;
    for line in text.split_inclusive('\n') {
        let is_marker = |marker: &str| {
            line.strip_prefix(marker)
                .is_some_and(|rest| rest.trim_start() != rest || rest.is_empty())
        };
        if is_marker("...") || is_marker("---") && has_content {
            return text.get(..at).unwrap_or(text);
        }
        let content = line.trim();
        has_content |= !content.is_empty() && !content.starts_with(['#', '%']);
        at += line.len();
    }
    text
}

/// Returns a message on one line.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

pub(super) fn toml(run: &mut Run, s: &str) -> Result<ValueHandle, Failure> {
    read(run, s, "TOML", |builder, failure| add_toml(builder, failure, s))
}

/// Adds a TOML document.
fn add_toml(
    builder: &mut Builder<'_>,
    failure: &mut Option<Failure>,
    text: &str,
) -> Result<(), String> {
    let text = wattle_rt::without_bom(text);
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
        let place = error
            .span()
            .map_or_else(String::new, |span| format!("{}: ", position(text, span.start)));
        place + &one_line(error.message())
    })?;
    add_toml_value(builder, &toml::Value::Table(table), 1).or_else(|error| match error {
        Ok(why) => Err(why),
        Err(failed) => keep(Err(failed), failure),
    })
}

/// Adds a TOML value. Dates and times become strings. Fails with a reason, or with a failure of the
/// builder.
fn add_toml_value(
    builder: &mut Builder<'_>,
    value: &toml::Value,
    depth: usize,
) -> Result<(), Result<String, Failure>> {
    if depth > MAX_DEPTH {
        return Err(Ok(format!("values are nested deeper than {MAX_DEPTH}")));
    }
    match value {
        toml::Value::String(text) => builder.add_text(text, None),
        toml::Value::Integer(n) => builder.add_whole(*n),
        toml::Value::Float(x) if !x.is_finite() => {
            return Err(Ok(format!("{x} is not a value")));
        }
        toml::Value::Float(x) => builder.add_decimal(&float_text(*x), None),
        toml::Value::Boolean(yes) => builder.add_bool(*yes),
        toml::Value::Datetime(time) => builder.add_text(&time.to_string(), None),
        toml::Value::Array(items) => {
            builder.open(false).map_err(Err)?;
            for item in items {
                add_toml_value(builder, item, depth + 1)?;
            }
            builder.close()
        }
        toml::Value::Table(entries) => {
            builder.open(true).map_err(Err)?;
            for (key, value) in entries {
                builder.add_key(key, None).map_err(Err)?;
                add_toml_value(builder, value, depth + 1)?;
            }
            builder.close()
        }
    }
    .map_err(Err)
}

/// Maximum depth of elements. An element takes two levels of values.
const MAX_ELEMENTS: usize = MAX_DEPTH / 2 - 2;

pub(super) fn xml(run: &mut Run, s: &str) -> Result<ValueHandle, Failure> {
    let text = wattle_rt::without_bom(s);
    read(run, s, "XML", |builder, failure| {
        let mut reader = Reader::from_str(text);
        let read = Elements { builder, texts: Vec::new(), has_root: false }.read(&mut reader);
        read.map_err(|error| match error {
            Ok(why) => {
                let at = usize::try_from(reader.buffer_position()).unwrap_or(0);
                format!("{}: {why}", position(text, at))
            }
            Err(failed) => keep(Err(failed), failure).err().unwrap_or_default(),
        })
    })
}

/// The elements of an XML document.
struct Elements<'b, 'v> {
    builder: &'b mut Builder<'v>,
    /// The text of the elements that are open.
    texts: Vec<String>,
    has_root: bool,
}

/// The reason why XML is invalid, or a failure of the builder.
type XmlError = Result<String, Failure>;

impl Elements<'_, '_> {
    fn read(&mut self, reader: &mut Reader<&[u8]>) -> Result<(), XmlError> {
        let invalid = |error: &dyn fmt::Display| Ok(error.to_string());
        loop {
            match reader.read_event().map_err(|error| invalid(&error))? {
                Event::Start(start) => self.open(&start)?,
                Event::Empty(start) => {
                    self.open(&start)?;
                    self.close().map_err(Err)?;
                }
                Event::End(_) => self.close().map_err(Err)?,
                Event::Text(text) => {
                    let text = text.xml10_content().map_err(|error| invalid(&error))?;
                    self.text(&text)?;
                }
                Event::CData(text) => {
                    let text = text.xml10_content().map_err(|error| invalid(&error))?;
                    self.text(&text)?;
                }
                Event::GeneralRef(name) => {
                    let character = name.resolve_char_ref().map_err(|error| invalid(&error))?;
                    let name = name.decode().map_err(|error| invalid(&error))?;
                    match (character, escape::resolve_xml_entity(&name)) {
                        (Some(character), _) => self.text(character.encode_utf8(&mut [0; 4]))?,
                        (None, Some(text)) => self.text(text)?,
                        (None, None) => return Err(Ok(format!("the entity {name} is unknown"))),
                    }
                }
                Event::Eof if !self.texts.is_empty() => {
                    return Err(Ok("an element is not closed".to_owned()));
                }
                Event::Eof if !self.has_root => return Err(Ok("there is no element".to_owned())),
                Event::Eof => return Ok(()),
                Event::Decl(_) | Event::PI(_) | Event::DocType(_) | Event::Comment(_) => {}
            }
        }
    }

    fn text(&mut self, text: &str) -> Result<(), XmlError> {
        match self.texts.last_mut() {
            Some(all) => all.push_str(text),
            None if text.trim().is_empty() => {}
            None => return Err(Ok("there is text outside the elements".to_owned())),
        }
        Ok(())
    }

    fn open(&mut self, start: &BytesStart<'_>) -> Result<(), XmlError> {
        if self.texts.is_empty() && self.has_root {
            return Err(Ok("there is a second element".to_owned()));
        }
        if self.texts.len() >= MAX_ELEMENTS {
            return Err(Ok(format!("elements are nested deeper than {MAX_ELEMENTS}")));
        }
        self.has_root = true;
        self.texts.push(String::new());
        let name = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        self.builder.open(true).map_err(Err)?;
        self.builder.add_key("tag", None).map_err(Err)?;
        self.builder.add_text(&name(start.name().as_ref()), None).map_err(Err)?;
        self.builder.add_key("attrs", None).map_err(Err)?;
        self.builder.open(true).map_err(Err)?;
        for attribute in start.attributes() {
            let attribute = attribute.map_err(|error| Ok(error.to_string()))?;
            let value = attribute.normalized_value(XmlVersion::Implicit1_0);
            let value = value.map_err(|error| Ok(error.to_string()))?;
            self.builder.add_key(&name(attribute.key.as_ref()), None).map_err(Err)?;
            self.builder.add_text(&value, None).map_err(Err)?;
        }
        self.builder.close().map_err(Err)?;
        self.builder.add_key("children", None).map_err(Err)?;
        self.builder.open(false).map_err(Err)
    }

    fn close(&mut self) -> Result<(), Failure> {
        let text = self.texts.pop().unwrap_or_default();
        self.builder.close()?;
        self.builder.add_key("text", None)?;
        self.builder.add_text(text.trim(), None)?;
        self.builder.close()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the JSON of the values that a function adds.
    fn json(
        text: &str,
        add: fn(&mut Builder<'_>, &mut Option<Failure>, &str) -> Result<(), String>,
    ) -> Result<String, String> {
        let mut values = Values::unlimited();
        let mut builder = Builder::new(&mut values);
        add(&mut builder, &mut None, text)?;
        let root = builder.finish();
        Ok(values.json(root, None).unwrap())
    }

    #[test]
    fn the_deepest_documents_fit_the_stack() {
        let nested = |open: &str, n: usize, close: &str| open.repeat(n) + &close.repeat(n);
        let work = move || {
            for n in [MAX_DEPTH - 4, MAX_DEPTH + 1, 1_000, 100_000] {
                for text in [nested("[", n, "]"), nested("{a: ", n, "}"), "- ".repeat(n)] {
                    let read = json(&text, add_yaml);
                    assert_eq!(read.is_ok(), n < MAX_DEPTH, "{n}: {read:?}");
                }
            }
            for n in [60, 79, 81, 100, 1_000, 100_000] {
                let array = format!("a = {}", nested("[", n, "]"));
                let table = format!("a = {}1{}", "{a=".repeat(n), "}".repeat(n));
                let header = format!("[{}a]", "a.".repeat(n));
                for text in [array, table, header] {
                    let read = json(&text, add_toml);
                    assert!(read.is_ok() || n > 60, "{n}: {read:?}");
                }
            }
        };
        let thread = std::thread::Builder::new().stack_size(STACK / 2);
        thread.spawn(work).unwrap().join().unwrap();
    }
}
