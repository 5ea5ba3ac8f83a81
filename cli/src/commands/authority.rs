//! `wattle check --authority`: what a program can touch, in words and as JSON.

use serde_json::{Value as Json, json};
use wattle_agent::capability::reaches_out;
use wattle_agent::rt::{Argument, Part, Position, Program, Runtime, Target, Text, Use};

use crate::output::{DIM, NAME, paint, visible};

/// The calls that reach outside the run, each with its place.
fn reaching(runtime: &Runtime, program: &Program) -> Vec<(Use, Option<Position>)> {
    let uses = program.authority().uses().iter().cloned().zip(runtime.places(program));
    uses.filter(|(one, _)| reaches_out(one.function.module)).collect()
}

/// What a program can touch, a line for each call and for each thing that it names.
pub(super) fn shown(runtime: &Runtime, program: &Program) -> Vec<String> {
    let uses = reaching(runtime, program);
    if uses.is_empty() {
        return vec!["touches nothing outside the run".to_owned()];
    }
    let width = uses.iter().map(|(one, _)| one.function.module.len()).max().unwrap_or(0);
    let mut lines = Vec::new();
    for (one, place) in &uses {
        let place = match place {
            Some(place) => format!("(line {})", place.line),
            None => "(through a table)".to_owned(),
        };
        for what in touched(one) {
            let capability = format!("{:width$}", one.function.module);
            let line = format!("{}  {} {}", paint(NAME, &capability), visible(&what), paint(DIM, &place));
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
    }
    lines
}

/// What one call does, once for each thing that it may name.
fn touched(one: &Use) -> Vec<String> {
    let named = |name: &str| one.function.params.iter().zip(&one.arguments).find(|(param, _)| param.name == name);
    let method = match named("method") {
        Some((_, method @ Argument::OneOf(_))) => format!(" {method}"),
        _ => String::new(),
    };
    let does = format!("{}{method}", one.function.name);
    let each: Vec<String> = one
        .targets()
        .flat_map(|(target, argument)| match argument {
            Argument::Unknown => vec![format!("{does} any {}", noun(target))],
            Argument::OneOf(texts) if texts.is_empty() => vec![format!("{does} no {}", noun(target))],
            Argument::OneOf(texts) => texts.iter().map(|text| format!("{does} {}", quoted(text))).collect(),
        })
        .collect();
    if each.is_empty() { vec![does] } else { each }
}

/// A text that could be mistaken for something else in its line stands in quotes.
fn quoted(text: &Text) -> String {
    let shown = text.to_string();
    let plain = !shown.is_empty() && !shown.chars().any(|c| c.is_whitespace() || c.is_control() || c == '"');
    let partly = text.parts().iter().any(|part| !matches!(part, Part::Literal(_)));
    if plain || partly { shown.replace('\n', "\\n") } else { format!("{shown:?}") }
}

fn noun(target: Target) -> &'static str {
    match target {
        Target::Url => "URL",
        Target::Read | Target::Write | Target::Tree => "path",
        Target::Key | Target::Keys => "key",
        Target::Program => "program",
        Target::Agent => "agent",
    }
}

/// The same as JSON: one object for each call. `values` is null where an argument may be anything.
pub(super) fn to_json(runtime: &Runtime, program: &Program) -> Json {
    let uses = reaching(runtime, program).into_iter().map(|(one, place)| {
        let targets: Vec<Json> = one
            .function
            .params
            .iter()
            .zip(&one.arguments)
            .filter_map(|(param, argument)| {
                let values = match argument {
                    Argument::OneOf(texts) if !param.inside => texts.iter().map(value).collect(),
                    _ => Json::Null,
                };
                Some(
                    json!({"argument": param.name, "kind": noun(param.target?).to_ascii_lowercase(), "values": values}),
                )
            })
            .collect();
        json!({
            "capability": one.function.module,
            "function": format!("{}.{}", one.function.module, one.function.name),
            "line": place.map(|at| at.line),
            "column": place.map(|at| at.column),
            "targets": targets,
        })
    });
    uses.collect()
}

/// A text: as a string where all of it is known, else its parts.
fn value(text: &Text) -> Json {
    let part = |part: &Part| match part {
        Part::Literal(text) => json!({"text": text}),
        Part::Argument(n) => json!({"program_argument": n}),
        Part::Unknown => json!({"unknown": true}),
    };
    text.whole().map_or_else(|| text.parts().iter().map(part).collect(), |whole| json!(whole))
}
