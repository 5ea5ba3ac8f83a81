//! A workbook, checked: its components by number, each with the numbers of those that it needs.

use std::collections::BTreeSet;

use wattle_rt::{Code, Failure, truncate};

use super::Outputs;
use super::text::{self, Arg, Export, Of};
use crate::par::Work;

/// The most components of a workbook.
const COMPONENTS: usize = 256;

/// Components that need each other in no circle, in the order of their names.
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

/// What an argument is.
#[derive(Debug)]
enum Value {
    Text(String),
    Of(Source),
}

/// What a component puts out: one result of it, or all, one a line.
#[derive(Debug)]
pub(super) struct Source {
    component: usize,
    result: Option<usize>,
}

fn wrong(words: impl Into<String>) -> Failure {
    Failure::new(Code::EPARSE, words)
}

impl Graph {
    /// Reads a workbook.
    ///
    /// # Errors
    /// `EPARSE` where it is none: no TOML, a name that no component has, components that need each other in a circle.
    pub(super) fn read(book: &str) -> Result<Graph, Failure> {
        let book = text::read(book)?;
        if book.components.is_empty() {
            return Err(wrong("the workbook has no components: each is a table [components.NAME]"));
        }
        if book.components.len() > COMPONENTS {
            let words = format!("the workbook has {} components; {COMPONENTS} is the most", book.components.len());
            return Err(Failure::new(Code::EBOUND, words));
        }
        if book.exports.is_empty() {
            return Err(wrong("the workbook exports nothing: under [exports] stands NAME = \"COMPONENT\""));
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
            let source =
                Source { component: find(&names, &of.from, || format!("the export `{name}`"))?, result: of.result };
            exports.push((name, source));
        }
        let graph = Graph { components, exports };
        match graph.circle() {
            Some(circle) => Err(wrong(format!("the components need each other in a circle: {}", circle.join(" → ")))),
            None => Ok(graph),
        }
    }

    fn needs(&self, at: usize) -> impl Iterator<Item = usize> + '_ {
        self.components.get(at).into_iter().flat_map(|component| component.needs.iter().copied())
    }

    /// The names of components each of which needs the next, the last being the first again; `None` where there is no such circle.
    fn circle(&self) -> Option<Vec<String>> {
        let mut left: BTreeSet<usize> = (0..self.components.len()).collect();
        loop {
            let free: Vec<usize> =
                left.iter().copied().filter(|at| !self.needs(*at).any(|need| left.contains(&need))).collect();
            if free.is_empty() {
                break;
            }
            left.retain(|at| !free.contains(at));
        }
        // Each that is left needs another that is left, so that the way comes back to itself.
        let mut way: Vec<usize> = vec![*left.first()?];
        let start = loop {
            let next = self.needs(*way.last()?).find(|need| left.contains(need))?;
            if let Some(start) = way.iter().position(|at| *at == next) {
                way.push(next);
                break start;
            }
            way.push(next);
        };
        let circle = way.get(start..)?.iter().filter_map(|at| self.components.get(*at));
        Some(circle.map(|component| component.name.clone()).collect())
    }

    /// Whether everything that a component needs is there.
    pub(super) fn is_ready(&self, at: usize, outputs: &Outputs) -> bool {
        self.needs(at).all(|need| outputs.get(need).is_some_and(Option::is_some))
    }

    /// A component's program with its arguments, which are all there.
    ///
    /// # Errors
    /// Where another one did not put out what an argument is to be.
    pub(super) fn call(&self, at: usize, outputs: &Outputs) -> Result<(Work, Vec<String>), Failure> {
        let component = self.components.get(at).ok_or_else(|| wrong("there is no such component"))?;
        let args = component.args.iter().enumerate().map(|(number, arg)| match arg {
            Value::Text(text) => Ok(text.clone()),
            Value::Of(source) => self.value(source, outputs).map_err(|failure| {
                Failure::new(failure.code, format!("its argument {number} cannot be given: {}", failure.reason))
            }),
        });
        Ok((component.work.clone(), args.collect::<Result<_, _>>()?))
    }

    /// What a component put out.
    ///
    /// # Errors
    /// `EBOUND` where it has no result of that number, `EPARSE` where it is no text.
    pub(super) fn value(&self, source: &Source, outputs: &Outputs) -> Result<String, Failure> {
        let name = self.components.get(source.component).map_or("", |component| &component.name);
        let results = outputs.get(source.component).and_then(Option::as_deref).unwrap_or_default();
        let bytes = match source.result {
            None => results.join(&b'\n'),
            Some(number) => results.get(number).cloned().ok_or_else(|| {
                let words = format!("`{name}` has no result {number}; it put out {}, counted from 0", results.len());
                Failure::new(Code::EBOUND, words)
            })?,
        };
        String::from_utf8(bytes).map_err(|_| wrong(format!("what `{name}` put out is not UTF-8")))
    }
}

fn component(name: String, raw: text::Component, names: &[String]) -> Result<Component, Failure> {
    let work = match (raw.program, raw.source) {
        (Some(program), None) => Work::Named(program),
        (None, Some(source)) => Work::Inline(source),
        (None, None) => {
            let words = format!("component `{name}` has no program: give `program`, a name, or `source`, a text");
            return Err(wrong(words));
        }
        (Some(_), Some(_)) => {
            return Err(wrong(format!("component `{name}` has both `program` and `source`; give one of them")));
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

/// The number of the component of that name.
fn find(names: &[String], sought: &str, who: impl Fn() -> String) -> Result<usize, Failure> {
    names.binary_search_by(|name| name.as_str().cmp(sought)).map_err(|_| {
        const SHOWN: usize = 20;
        let known: Vec<String> = names.iter().take(SHOWN).map(|name| format!("`{name}`")).collect();
        let more = if names.len() > SHOWN { ", …" } else { "" };
        let sought = truncate(sought, 60);
        wrong(format!("{} needs `{sought}`, which is no component; there is {}{more}", who(), known.join(", ")))
    })
}
