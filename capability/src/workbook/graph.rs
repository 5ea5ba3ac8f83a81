//! A validated workbook: its components, each with the indexes of the components that it depends
//! on.

use std::collections::BTreeSet;

use wattle_rt::{Code, Failure, truncate};

use super::Outputs;
use super::text::{self, Arg, Export, Of};
use crate::par::{Call, Work};

/// Maximum number of components in a workbook.
const MAX_COMPONENTS: usize = 256;

/// A workbook's exports and components. The components are sorted by name and form no cycle.
#[derive(Debug)]
pub(super) struct Graph {
    pub(super) components: Vec<Component>,
    pub(super) exports: Vec<(String, Source)>,
}

#[derive(Debug)]
pub(super) struct Component {
    pub(super) name: String,
    pub(super) work: Work,
    args: Vec<Value>,
    needs: BTreeSet<usize>,
}

/// An argument of a component.
#[derive(Debug)]
enum Value {
    Text(String),
    Of(Source),
}

/// A reference to a component's output: one of its results, or all of them, one per line.
#[derive(Debug)]
pub(super) struct Source {
    component: usize,
    result: Option<usize>,
}

fn wrong(message: impl Into<String>) -> Failure {
    Failure::new(Code::EPARSE, message)
}

impl Graph {
    /// Parses and validates a workbook.
    ///
    /// # Errors
    /// `EPARSE` if the workbook is invalid, for example because it refers to a missing component or
    /// contains a cycle; `EBOUND` if it is too large.
    pub(super) fn read(book: &str) -> Result<Graph, Failure> {
        let book = text::read(book)?;
        if book.components.is_empty() {
            return Err(wrong(
                "the workbook has no components: add a table [components.NAME], or in Org a \
                 headline with a program",
            ));
        }
        if book.components.len() > MAX_COMPONENTS {
            let message = format!(
                "the workbook has {} components, more than {MAX_COMPONENTS}",
                book.components.len()
            );
            return Err(Failure::new(Code::EBOUND, message));
        }
        if book.exports.is_empty() {
            return Err(wrong(
                "the workbook exports nothing: add NAME = \"COMPONENT\" under [exports], or in Org \
                 the property `:EXPORT: NAME`",
            ));
        }
        let names: Vec<String> = book.components.keys().cloned().collect();
        let mut components = Vec::with_capacity(names.len());
        for (name, raw) in book.components {
            components.push(component(name, raw, &names)?);
        }
        let mut exports = Vec::with_capacity(book.exports.len());
        for (name, export) in book.exports {
            let of = match export {
                Export::Whole(from) => Of { from, result: None },
                Export::Of(of) => of,
            };
            let source = Source {
                component: find(&names, &of.from, || format!("the export `{name}`"))?,
                result: of.result,
            };
            exports.push((name, source));
        }
        let graph = Graph { components, exports };
        match graph.cycle() {
            Some(cycle) => Err(wrong(format!(
                "the components depend on each other in a cycle: {}",
                cycle.join(" → ")
            ))),
            None => Ok(graph),
        }
    }

    fn needs(&self, at: usize) -> impl Iterator<Item = usize> + '_ {
        self.components.get(at).into_iter().flat_map(|component| component.needs.iter().copied())
    }

    /// Returns the names of the components in a cycle, or `None` if there is no cycle. Each
    /// component depends on the next, and the first name is repeated at the end.
    fn cycle(&self) -> Option<Vec<String>> {
        let mut left: BTreeSet<usize> = (0..self.components.len()).collect();
        loop {
            let free: Vec<usize> = left
                .iter()
                .copied()
                .filter(|at| !self.needs(*at).any(|need| left.contains(&need)))
                .collect();
            if free.is_empty() {
                break;
            }
            left.retain(|at| !free.contains(at));
        }
        // Each remaining component depends on another remaining component, so every path leads into
        // a cycle.
        let mut path: Vec<usize> = vec![*left.first()?];
        let start = loop {
            let next = self.needs(*path.last()?).find(|need| left.contains(need))?;
            if let Some(start) = path.iter().position(|at| *at == next) {
                path.push(next);
                break start;
            }
            path.push(next);
        };
        let cycle = path.get(start..)?.iter().filter_map(|at| self.components.get(*at));
        Some(cycle.map(|component| component.name.clone()).collect())
    }

    /// Returns true if all inputs of a component are available.
    pub(super) fn is_ready(&self, at: usize, outputs: &Outputs) -> bool {
        self.needs(at).all(|need| outputs.get(need).is_some_and(Option::is_some))
    }

    /// Returns the call for a component whose inputs are available.
    ///
    /// # Errors
    /// If an argument refers to a result that another component did not return, or that is not
    /// UTF-8.
    pub(super) fn call(&self, at: usize, outputs: &Outputs) -> Result<Call, Failure> {
        let component = self.components.get(at).ok_or_else(|| wrong("no such component"))?;
        let args = component.args.iter().enumerate().map(|(number, arg)| match arg {
            Value::Text(text) => Ok(text.clone()),
            Value::Of(source) => self.value(source, outputs).map_err(|failure| {
                Failure::new(
                    failure.code,
                    format!("its argument {number} has no value: {}", failure.reason),
                )
            }),
        });
        Ok(Call { work: component.work.clone(), args: args.collect::<Result<_, _>>()? })
    }

    /// Returns the output that a source refers to, as a string.
    ///
    /// # Errors
    /// `EBOUND` if the component has no such result, `EPARSE` if the result is not UTF-8.
    pub(super) fn value(&self, source: &Source, outputs: &Outputs) -> Result<String, Failure> {
        let name = self.components.get(source.component).map_or("", |component| &component.name);
        let results = outputs.get(source.component).and_then(Option::as_deref).unwrap_or_default();
        let bytes = match source.result {
            None => results.join(&b'\n'),
            Some(number) => results.get(number).cloned().ok_or_else(|| {
                let message = format!(
                    "`{name}` has no result {number}; it has {}, counted from 0",
                    results.len()
                );
                Failure::new(Code::EBOUND, message)
            })?,
        };
        String::from_utf8(bytes).map_err(|_| wrong(format!("the output of `{name}` is not UTF-8")))
    }
}

fn component(name: String, raw: text::Component, names: &[String]) -> Result<Component, Failure> {
    let work = match (raw.program, raw.source) {
        (Some(program), None) => Work::Named(program),
        (None, Some(source)) => Work::Inline(source),
        (None, None) => {
            let message = format!(
                "component `{name}` has no program: set `program` to a name, or `source` to a \
                 text; in Org, set `:PROGRAM:`, or write a block `#+begin_src wat`"
            );
            return Err(wrong(message));
        }
        (Some(_), Some(_)) => {
            return Err(wrong(format!(
                "component `{name}` has both a `program` and a `source`; set one of them"
            )));
        }
    };
    let who = || format!("component `{name}`");
    let mut needs = BTreeSet::new();
    for need in &raw.needs {
        needs.insert(find(names, need, who)?);
    }
    let mut args = Vec::with_capacity(raw.args.len());
    for arg in raw.args {
        args.push(match arg {
            Arg::Text(text) => Value::Text(text),
            Arg::Int(number) => Value::Text(number.to_string()),
            Arg::Float(number) => Value::Text(format!("{number:?}")),
            Arg::Bool(yes) => Value::Text(yes.to_string()),
            Arg::Of(Of { from, result }) => {
                let component = find(names, &from, who)?;
                needs.insert(component);
                Value::Of(Source { component, result })
            }
        });
    }
    Ok(Component { name, work, args, needs })
}

/// Returns the index of the component with this name.
fn find(names: &[String], name: &str, who: impl Fn() -> String) -> Result<usize, Failure> {
    names.binary_search_by(|known| known.as_str().cmp(name)).map_err(|_| {
        const SHOWN: usize = 20;
        let known: Vec<String> = names.iter().take(SHOWN).map(|name| format!("`{name}`")).collect();
        let more = if names.len() > SHOWN { ", …" } else { "" };
        let name = truncate(name, 60);
        wrong(format!(
            "{} needs `{name}`, which is not a component; the components are {}{more}",
            who(),
            known.join(", ")
        ))
    })
}
