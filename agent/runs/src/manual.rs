//! The manual of functions, programs, language forms and error codes, which can be searched by name
//! or by keywords.

use std::fmt::Write as _;

use wattle_capability::{help, manual};
use wattle_catalog::{Catalog, Entry, Index};
use wattle_rt::{Capability, Code, FormDoc, Function, forms};

/// Maximum number of matches that are listed.
const MAX_MATCHES: usize = 12;

/// The manual of a host: its functions, its catalog, the language, and the error codes.
pub(crate) struct Manual {
    capabilities: Vec<Capability>,
    catalog: Catalog,
}

/// A topic with a page in the manual.
#[derive(Clone, Copy)]
enum Topic<'a> {
    Program(&'a Entry),
    Capability(&'a Capability),
    Function(&'static Function),
    Form(FormDoc),
    Code(Code),
}

impl Manual {
    pub(crate) fn new(capabilities: &[Capability], catalog: Catalog) -> Manual {
        Manual { capabilities: capabilities.to_vec(), catalog }
    }

    /// Returns all topics. Programs come first, because a program call does more than a function
    /// call.
    fn topics(&self) -> impl Iterator<Item = Topic<'_>> {
        let programs = self.catalog.iter().map(|entry| Topic::Program(entry));
        let capabilities = self.capabilities.iter().map(Topic::Capability);
        let functions = self.capabilities.iter().flat_map(|c| c.functions).map(Topic::Function);
        let codes = Code::ALL.iter().copied().map(Topic::Code);
        programs.chain(capabilities).chain(functions).chain(forms().map(Topic::Form)).chain(codes)
    }

    /// Returns the table of contents, for a reader who does not know what to ask for.
    fn contents(&self) -> String {
        let mut text = "Ask about one of these, or give words to look for.\n".to_owned();
        let capabilities: Vec<&str> = self.capabilities.iter().map(|c| c.name).collect();
        let programs: Vec<&str> = self.catalog.iter().map(|entry| entry.name().as_str()).collect();
        let codes: Vec<&str> = Code::ALL.iter().filter_map(|code| code.name()).collect();
        let forms: Vec<&str> = forms().map(|form| form.name).collect();
        let kinds = [
            ("capabilities", capabilities),
            ("programs", programs),
            ("forms", forms),
            ("error codes", codes),
        ];
        for (kind, names) in kinds {
            _ = writeln!(text, "{kind}: {}", names.join(", "));
        }
        text
    }

    /// Returns the pages of the topics with exactly this name.
    fn pages(&self, name: &str) -> Vec<String> {
        let number: Option<i32> = name.parse().ok();
        let named = self.topics().filter(|topic| match topic {
            Topic::Program(entry) => entry.name().as_str() == name,
            Topic::Capability(capability) => capability.name == name,
            Topic::Function(function) => function.name == name,
            Topic::Form(form) => form.name == name,
            Topic::Code(code) => {
                code.name().is_some_and(|n| n.eq_ignore_ascii_case(name))
                    || number == Some(code.number())
            }
        });
        named.map(|topic| self.page(topic)).collect()
    }

    fn page(&self, topic: Topic<'_>) -> String {
        match topic {
            Topic::Program(entry) => format!("program {}", entry.manual()),
            Topic::Capability(capability) => manual::capability(capability),
            Topic::Function(function) => manual::function(function),
            Topic::Form(form) => format!("form {}\n{}\n", form.usage, form.about),
            Topic::Code(code) => {
                let functions = self.capabilities.iter().flat_map(|c| c.functions);
                let returning =
                    functions.filter(|function| function.signature.errors.contains(&code));
                let by: Vec<&str> = returning.map(|function| function.name).collect();
                let by = if by.is_empty() {
                    String::new()
                } else {
                    format!("returned by {}\n", by.join(", "))
                };
                format!("{code}: {}\n{by}", code.meaning())
            }
        }
    }

    /// Returns the topics that match `words`, one per line, best match first. Returns `None` if no
    /// topic matches.
    fn matches(&self, words: &str) -> Option<String> {
        let fields = |topic: Topic<'_>| -> Vec<(f64, String)> {
            match topic {
                Topic::Program(entry) => entry
                    .fields()
                    .into_iter()
                    .map(|(weight, text)| (weight, text.to_owned()))
                    .collect(),
                Topic::Capability(c) => vec![(4.0, c.name.to_owned()), (2.0, c.about.to_owned())],
                Topic::Function(f) => vec![(4.0, f.name.to_owned()), (2.0, f.about.to_owned())],
                Topic::Form(form) => {
                    vec![(4.0, form.name.to_owned()), (2.0, form.about.to_owned())]
                }
                Topic::Code(code) => {
                    vec![(4.0, code.to_string()), (2.0, code.meaning().to_owned())]
                }
            }
        };
        let texts: Vec<(Topic<'_>, Vec<(f64, String)>)> =
            self.topics().map(|topic| (topic, fields(topic))).collect();
        let index = Index::new(texts.iter().map(|(topic, fields)| {
            (*topic, fields.iter().map(|(weight, text)| (*weight, text.as_str())).collect())
        }));
        let found = index.rank(words);
        let lines = found.iter().take(MAX_MATCHES).map(|(topic, _)| line(**topic) + "\n");
        (!found.is_empty()).then(|| {
            format!("nothing is called that; the best matches:\n{}", lines.collect::<String>())
        })
    }
}

/// Describes a topic in one line.
fn line(topic: Topic<'_>) -> String {
    match topic {
        Topic::Program(entry) => {
            format!("program {} — {}", entry.usage(), entry.meta().description.trim())
        }
        Topic::Capability(capability) => {
            format!("capability {} — {}", capability.name, capability.about)
        }
        Topic::Function(function) => format!("{} — {}", function.signature, function.about),
        Topic::Form(form) => format!("form {} — {}", form.usage, form.about),
        Topic::Code(code) => format!("{code} — {}", code.meaning()),
    }
}

impl help::Manual for Manual {
    fn about(&self, topic: &str) -> Option<String> {
        // The name may be written as in code: `$str.cat`, `(http.get? …)`, `"text_count"`.
        let name = topic
            .trim()
            .trim_start_matches(['(', '$', '"', '`'])
            .trim_end_matches([')', '?', '"', '`']);
        if name.is_empty() {
            return Some(self.contents());
        }
        let pages = self.pages(name);
        if pages.is_empty() { self.matches(name) } else { Some(pages.join("\n")) }
    }
}
