//! The outline of a workbook's components, for display to users.

use std::collections::BTreeMap;

use serde::Serialize;
use wattle_rt::Failure;

use super::graph::Graph;
use super::text::{self, Arg, Book, Export, Of};
use crate::par::Programs;

/// A component, as declared in the workbook.
#[derive(Serialize)]
pub struct ComponentOutline {
    /// The component's name.
    pub name: String,
    /// The line number of the component's headline, counted from 1. `None` in TOML.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// The catalog program that the component runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// The source of the program that the component runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    args: Vec<Arg>,
    /// The components that must run first, including those that the arguments refer to, sorted.
    pub needs: Vec<String>,
    /// The names under which the workbook exports the component's output, sorted.
    pub exports: Vec<String>,
    /// The prose below the component's headline.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub about: String,
}

/// Returns the components of a workbook: in document order for an Org document, and sorted by name
/// for TOML.
///
/// # Errors
/// `EPARSE` or `EBOUND` if the workbook is invalid. References to components are not checked.
pub fn outline(text: &str) -> Result<Vec<ComponentOutline>, Failure> {
    let Book { components, exports } = text::read(text)?;
    let mut exported: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, export) in exports {
        let (Export::Whole(from) | Export::Of(Of { from, .. })) = export;
        exported.entry(from).or_default().push(name);
    }
    let mut all: Vec<ComponentOutline> = components
        .into_iter()
        .map(|(name, component)| {
            let inputs = component.args.iter().filter_map(|arg| match arg {
                Arg::Of(of) => Some(of.from.clone()),
                _ => None,
            });
            let mut needs: Vec<String> = component.needs.into_iter().chain(inputs).collect();
            needs.sort();
            needs.dedup();
            ComponentOutline {
                exports: exported.remove(&name).unwrap_or_default(),
                line: component.line,
                program: component.program,
                source: component.source,
                args: component.args,
                about: component.about,
                needs,
                name,
            }
        })
        .collect();
    all.sort_by_key(|component| component.line);
    Ok(all)
}

/// Checks a workbook without running it. Returns the problems found. If the format is valid,
/// reports each program that does not exist or does not compile.
pub async fn lint(text: &str, programs: &dyn Programs) -> Vec<String> {
    let graph = match Graph::read(text) {
        Ok(graph) => graph,
        Err(failure) => return vec![failure.reason],
    };
    let mut faults = Vec::new();
    for component in &graph.components {
        if let Err(failure) = programs.check(component.work.clone()).await {
            faults.push(format!("component `{}`: {}", component.name, failure.reason));
        }
    }
    faults
}
