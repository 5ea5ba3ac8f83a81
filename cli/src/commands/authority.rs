//! `wattle check --authority`: prints the resources that a program can access, as text or as JSON.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::{Value as Json, json};
use wattle_agent::host::capability::policy;
use wattle_agent::host::catalog::{Catalog, Entry};
use wattle_agent::host::rt::{
    Argument, Names, Part, Position, Program, Reach, Runtime, Target, Text, Touch, Use,
};

use crate::output::{DIM, NAME, paint, visible};

/// Returns the calls that access resources outside the run, each with its position in the source.
/// The position is `None` if it is unknown, or if the function is called indirectly, through a
/// table.
async fn reaching(runtime: &Runtime, program: &Program) -> Vec<(Use, Option<Position>)> {
    let uses = program.authority().uses().iter().cloned().zip(runtime.use_positions(program).await);
    uses.filter(|(one, _)| one.function.reaches_out()).collect()
}

/// Returns the programs of a catalog that a program calls by names that are known, and those that
/// these call. Each has its own authority. A program that does not compile is left out.
pub(super) async fn called(
    runtime: &Runtime,
    catalog: &Catalog,
    program: &Program,
) -> Vec<(Arc<Entry>, Program)> {
    let mut found: Vec<(Arc<Entry>, Program)> = Vec::new();
    let mut names = VecDeque::from(program_names(program));
    while let Some(name) = names.pop_front() {
        let is_new = |entry: &&Arc<Entry>| !found.iter().any(|(own, _)| own.name() == entry.name());
        let Some(entry) = catalog.get(&name).filter(is_new) else { continue };
        let Ok(program) = runtime.prepare(entry.source()).await else { continue };
        names.extend(program_names(&program));
        found.push((Arc::clone(entry), program));
    }
    found
}

fn program_names(program: &Program) -> Vec<String> {
    let reaches = program.authority().uses().iter().flat_map(Use::reaches);
    let texts = reaches.filter_map(|reach| match reach {
        Reach::Named(Target::Program, Argument::OneOf(texts)) => Some(texts),
        _ => None,
    });
    texts.flatten().filter_map(|text| text.whole().map(str::to_owned)).collect()
}

/// Describes the resources that a program can access, with one line for each call and resource.
pub(super) async fn shown(runtime: &Runtime, program: &Program) -> Vec<String> {
    let uses = reaching(runtime, program).await;
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
            let line =
                format!("{}  {} {}", paint(NAME, &capability), visible(&what), paint(DIM, &place));
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
    }
    let mut leaving: Vec<String> = Vec::new();
    for one in uses.iter().map(|(one, _)| one).filter(|one| leaves_machine(one)) {
        let function = format!("{}.{}", one.function.module, one.function.name);
        if !leaving.contains(&function) {
            leaving.push(function);
        }
    }
    if !leaving.is_empty() {
        lines.push(format!("leaves the machine (`egress`): {}", leaving.join(", ")));
    }
    lines
}

/// Returns true if the call can carry data out of the machine.
fn leaves_machine(one: &Use) -> bool {
    one.reaches().any(|reach| match reach {
        Reach::Named(target, _) | Reach::Always(Touch { target, .. }) => {
            policy::leaves_machine(target)
        }
        Reach::Any(targets) => targets.iter().any(|target| policy::leaves_machine(*target)),
    })
}

/// Describes one call, with one line for each resource that it can access.
fn touched(one: &Use) -> Vec<String> {
    let named = |name: &str| {
        one.function.params.iter().zip(&one.arguments).find(|(param, _)| param.name == name)
    };
    let method = match named("method") {
        Some((_, method @ Argument::OneOf(_))) => format!(" {method}"),
        _ => String::new(),
    };
    let does = format!("{}{method}", one.function.name);
    one.reaches()
        .flat_map(|reach| match reach {
            Reach::Named(target, Argument::Unknown) => vec![format!("{does} any {}", noun(target))],
            Reach::Named(target, Argument::OneOf(texts)) if texts.is_empty() => {
                vec![format!("{does} no {}", noun(target))]
            }
            Reach::Named(_, Argument::OneOf(texts)) => {
                texts.iter().map(|text| format!("{does} {}", quoted(text))).collect()
            }
            Reach::Any(targets) => {
                targets.iter().map(|target| format!("{does} any {}", noun(*target))).collect()
            }
            Reach::Always(Touch { target, text: "" }) => {
                vec![format!("{does} the {}", noun(target))]
            }
            Reach::Always(Touch { text: "/", .. }) => vec![format!("{does} every path")],
            Reach::Always(Touch { text, .. }) => vec![format!("{does} {text}")],
        })
        .collect()
}

/// Formats a string for a line of output. Quotes the string if it is empty or contains whitespace,
/// control characters or quotes. A string with unknown parts is never quoted.
fn quoted(text: &Text) -> String {
    let shown = text.to_string();
    let plain = !shown.is_empty()
        && !shown.chars().any(|c| c.is_whitespace() || c.is_control() || c == '"');
    let partly = text.parts().iter().any(|part| !matches!(part, Part::Literal(_)));
    if plain || partly { shown.replace('\n', "\\n") } else { format!("{shown:?}") }
}

fn noun(target: Target) -> &'static str {
    match target {
        Target::Url => "URL",
        Target::Read | Target::ReadTree | Target::Write | Target::Tree => "path",
        Target::Key | Target::Keys => "key",
        Target::Program => "program",
        Target::Agent => "agent",
        Target::Tool => "tool",
        Target::Service(service) => service.label,
    }
}

/// Returns the resources that a program can access, as JSON: one object for each call, with the
/// call's targets. In a target, `values` is null if any value is possible, `argument` is null if
/// the function accesses the target regardless of its arguments. `egress` is true if data can leave
/// the machine there, and absent otherwise.
pub(super) async fn to_json(runtime: &Runtime, program: &Program) -> Json {
    let uses = reaching(runtime, program).await.into_iter().map(|(one, place)| {
        let named = one.function.params.iter().zip(&one.arguments).flat_map(|(param, argument)| {
            let values = match (param.names, argument) {
                (Names::Itself(_), Argument::OneOf(texts)) => texts.iter().map(value).collect(),
                _ => Json::Null,
            };
            targets(param.names)
                .into_iter()
                .map(move |target| target_json(Some(param.name), target, values.clone()))
        });
        let touched = one.function.touches.iter().map(|touch| match touch.text {
            "" => target_json(None, touch.target, Json::Null),
            text => target_json(None, touch.target, json!([text])),
        });
        let targets: Vec<Json> = named.chain(touched).collect();
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

fn targets(names: Names) -> Vec<Target> {
    match names {
        Names::Nothing => Vec::new(),
        Names::Itself(target) => vec![target],
        Names::Inside(targets) => targets.to_vec(),
    }
}

fn target_json(argument: Option<&str>, target: Target, values: Json) -> Json {
    let kind = noun(target).to_ascii_lowercase();
    if policy::leaves_machine(target) {
        json!({"argument": argument, "kind": kind, "values": values, "egress": true})
    } else {
        json!({"argument": argument, "kind": kind, "values": values})
    }
}

/// Converts a string to JSON. The result is a JSON string if the whole string is known, and
/// otherwise an array of its parts.
fn value(text: &Text) -> Json {
    let part = |part: &Part| match part {
        Part::Literal(text) => json!({"text": text}),
        Part::Argument(n) => json!({"program_argument": n}),
        Part::Unknown => json!({"unknown": true}),
    };
    text.whole().map_or_else(|| text.parts().iter().map(part).collect(), |whole| json!(whole))
}
