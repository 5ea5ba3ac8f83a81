//! Workbooks as Org documents, in which a headline is a component and prose is documentation.
//!
//! ```text
//! * total
//! :PROPERTIES:
//! :PROGRAM: csv_sum
//! :ARGS: ["sales.csv", "amount"]
//! :END:
//! * report
//! :PROPERTIES:
//! :ARGS: [{"from": "total"}]
//! :EXPORT: report
//! :END:
//! #+begin_src wat
//! (ret (fmt "sold: {} EUR" (arg 0)))
//! #+end_src
//! ```
//!
//! The parser supports only a subset of Org: headlines, their property drawers, blocks and prose.
//! It reads each line once.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use wattle_rt::{Code, Failure, truncate};

use super::text::{Book, Component, Export, Of};

/// Maximum number of headlines in a workbook.
const MAX_HEADLINES: usize = 4_096;

/// Maximum number of stars in a headline.
const MAX_LEVEL: usize = 32;

/// Maximum number of properties per headline.
const MAX_PROPERTIES: usize = 64;

/// Maximum length of a component's name, in characters.
const MAX_NAME: usize = 64;

/// The properties that make a headline a component.
const OF_COMPONENTS: &[&str] = &["PROGRAM", "ARGS", "DEPENDS", "EXPORT"];

/// A headline with the text up to the next headline.
#[derive(Debug, Default)]
struct Section {
    /// The line number of the headline, counted from 1. 0 for the text before the first headline.
    line: usize,
    title: String,
    properties: BTreeMap<String, String>,
    /// The source in the program block.
    source: Option<String>,
    /// The text outside of drawers and program blocks.
    prose: String,
}

/// The part of a section that a line belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// The line after a headline, where a drawer may begin.
    Top,
    Drawer,
    Prose,
    /// A block that contains the component's program.
    Program,
    /// A block in a language other than WAT.
    Other,
}

/// Returns true if a string is an Org document and not TOML: an Org headline or keyword precedes
/// the first TOML table.
pub(super) fn is_org(text: &str) -> bool {
    let decides = |line: &str| {
        let is_org = level(line).is_some() || line.trim_start().starts_with("#+");
        (is_org || line.starts_with('[') && !line.starts_with("[[")).then_some(is_org)
    };
    text.lines().find_map(decides).unwrap_or(false)
}

/// Parses an Org document.
///
/// # Errors
/// `EPARSE` with the line number if the document is invalid; `EBOUND` if it contains too many
/// headlines or properties.
pub(super) fn read(text: &str) -> Result<Book, Failure> {
    let mut book = Book { components: BTreeMap::new(), exports: BTreeMap::new() };
    for section in sections(text)? {
        if !section.is_component() {
            continue;
        }
        let name = section.name()?;
        for (export, of) in section.exports(&name)? {
            if book.exports.insert(export.clone(), of).is_some() {
                return Err(wrong(section.line, &format!("the export `{export}` exists already")));
            }
        }
        let component = Component {
            program: section.properties.get("PROGRAM").cloned(),
            source: section.source.clone(),
            args: section.json("ARGS")?,
            needs: section.needs(),
            line: Some(section.line),
            about: section.prose.trim().to_owned(),
        };
        if book.components.insert(name.clone(), component).is_some() {
            return Err(wrong(section.line, &format!("the component `{name}` exists already")));
        }
    }
    Ok(book)
}

/// Splits a document at its headlines.
fn sections(text: &str) -> Result<Vec<Section>, Failure> {
    let mut sections = vec![Section::default()];
    let mut part = Part::Prose;
    for (number, line) in (1..).zip(text.lines()) {
        let in_block = matches!(part, Part::Program | Part::Other);
        if !in_block && let Some((level, title)) = level(line) {
            if level > MAX_LEVEL || sections.len() > MAX_HEADLINES {
                let why = format!(
                    "line {number}: a workbook has at most {MAX_HEADLINES} headlines of at most \
                     {MAX_LEVEL} levels"
                );
                return Err(Failure::new(Code::EBOUND, why));
            }
            let title = title.to_owned();
            sections.push(Section { line: number, title, ..Section::default() });
            part = Part::Top;
            continue;
        }
        let Some(section) = sections.last_mut() else { continue };
        part = section.add(number, line, part)?;
    }
    match (part, sections.last()) {
        (Part::Drawer, Some(open)) => Err(wrong(open.line, "its drawer has no line `:END:`")),
        (Part::Program | Part::Other, Some(open)) => {
            Err(wrong(open.line, "its last block has no line `#+end_src`"))
        }
        _ => Ok(sections),
    }
}

impl Section {
    /// Adds a line to the section and returns the part that the next line belongs to.
    fn add(&mut self, number: usize, line: &str, part: Part) -> Result<Part, Failure> {
        let word = line.trim();
        match part {
            Part::Top if word.eq_ignore_ascii_case(":PROPERTIES:") && self.line > 0 => {
                return Ok(Part::Drawer);
            }
            Part::Drawer if word.eq_ignore_ascii_case(":END:") => return Ok(Part::Prose),
            Part::Drawer => {
                self.property(number, word)?;
                return Ok(Part::Drawer);
            }
            Part::Program | Part::Other if is_keyword(word, "#+end_src") => return Ok(Part::Prose),
            Part::Program => {
                let source = self.source.get_or_insert_default();
                source.push_str(unquoted(line));
                source.push('\n');
                return Ok(Part::Program);
            }
            _ => {}
        }
        let block = is_keyword(word, "#+begin_src") && part != Part::Other;
        let language = word.split_whitespace().nth(1).filter(|_| block);
        if language.is_some_and(|language| language.eq_ignore_ascii_case("wat")) && self.line > 0 {
            if self.source.replace(String::new()).is_some() {
                return Err(wrong(number, "a headline has at most one block of a program"));
            }
            return Ok(Part::Program);
        }
        self.prose.push_str(line);
        self.prose.push('\n');
        Ok(if block || part == Part::Other { Part::Other } else { Part::Prose })
    }

    fn property(&mut self, number: usize, line: &str) -> Result<(), Failure> {
        let (name, value) = line
            .strip_prefix(':')
            .and_then(|rest| rest.split_once(':'))
            .ok_or_else(|| wrong(number, "a line of a drawer is `:NAME: value` or `:END:`"))?;
        if self.properties.len() == MAX_PROPERTIES {
            let why = format!("line {number}: a drawer has at most {MAX_PROPERTIES} properties");
            return Err(Failure::new(Code::EBOUND, why));
        }
        let (name, value) = (name.to_ascii_uppercase(), value.trim().to_owned());
        match self.properties.insert(name, value) {
            None => Ok(()),
            Some(_) => Err(wrong(number, "the property is set already")),
        }
    }

    /// Returns true if the section contains a program, or a property that only components have.
    fn is_component(&self) -> bool {
        self.source.is_some()
            || OF_COMPONENTS.iter().any(|name| self.properties.contains_key(*name))
    }

    /// Returns the component's name: the value of the property `NAME` or, if that property is
    /// missing, the title of the headline.
    fn name(&self) -> Result<String, Failure> {
        let name = self.properties.get("NAME").map_or(self.title.as_str(), String::as_str);
        let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
        let is_name = !name.is_empty()
            && !name.starts_with('.')
            && name.chars().count() <= MAX_NAME
            && name.chars().all(plain);
        if is_name {
            return Ok(name.to_owned());
        }
        let name = truncate(name, MAX_NAME);
        let why = format!(
            "`{name}` is not the name of a component, which is one word of letters, digits, `_`, \
             `-` and `.`; set the property `:NAME:`"
        );
        Err(wrong(self.line, &why))
    }

    /// Returns the component names in the property `DEPENDS`. The names are separated by commas or
    /// whitespace.
    fn needs(&self) -> Vec<String> {
        let names = self.properties.get("DEPENDS").map_or("", String::as_str);
        let names = names.split(|c: char| c == ',' || c.is_whitespace());
        names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
    }

    /// Parses the exports in the property `EXPORT`: `NAME` for the whole output, `NAME N` for one
    /// result. If the property is empty, the component is exported under its own name.
    fn exports(&self, component: &str) -> Result<Vec<(String, Export)>, Failure> {
        let Some(exports) = self.properties.get("EXPORT") else { return Ok(Vec::new()) };
        let export = |text: &str| {
            let mut words = text.split_whitespace();
            let name = words.next().unwrap_or(component).to_owned();
            let result = words.next().map(str::parse).transpose().ok();
            match (result, words.next()) {
                (Some(result), None) => {
                    Ok((name, Export::Of(Of { from: component.to_owned(), result })))
                }
                _ => Err(wrong(
                    self.line,
                    "an export is a name, with the number of a result unless it is the whole \
                     output",
                )),
            }
        };
        exports.split(',').map(export).collect()
    }

    /// Parses a property as JSON. Returns the default if the property is missing or empty.
    fn json<T: DeserializeOwned + Default>(&self, name: &str) -> Result<T, Failure> {
        let Some(text) = self.properties.get(name).filter(|text| !text.is_empty()) else {
            return Ok(T::default());
        };
        serde_json::from_str(text)
            .map_err(|why| wrong(self.line, &format!("`:{name}:` is not a JSON array: {why}")))
    }
}

/// Parses a headline. Returns the headline's level and its title, without the `TODO` or `DONE`
/// keyword and the tags. Returns `None` if the line is not a headline.
fn level(line: &str) -> Option<(usize, &str)> {
    let title = line.trim_start_matches('*');
    let level = line.len() - title.len();
    let title = title.strip_prefix(' ').filter(|_| level > 0)?.trim();
    let title = match title.rsplit_once(char::is_whitespace) {
        Some((before, tags)) if tags.len() > 2 && tags.starts_with(':') && tags.ends_with(':') => {
            before.trim_end()
        }
        _ => title,
    };
    let title =
        ["TODO ", "DONE "].iter().find_map(|word| title.strip_prefix(word)).unwrap_or(title);
    Some((level, title.trim()))
}

/// Returns true if a line begins with a keyword, in upper or lower case.
fn is_keyword(line: &str, keyword: &str) -> bool {
    let (word, rest) = line.split_at_checked(keyword.len()).unwrap_or((line, ""));
    word.eq_ignore_ascii_case(keyword) && rest.chars().next().is_none_or(char::is_whitespace)
}

/// Removes the comma that Org inserts in a block before a line that looks like Org syntax.
fn unquoted(line: &str) -> &str {
    let rest = line.trim_start();
    let quoted = rest.strip_prefix(',').filter(|rest| {
        let rest = rest.trim_start_matches(',');
        rest.starts_with('*') || rest.starts_with("#+")
    });
    quoted.unwrap_or(line)
}

fn wrong(line: usize, why: &str) -> Failure {
    Failure::new(Code::EPARSE, format!("invalid workbook, line {line}: {why}"))
}
