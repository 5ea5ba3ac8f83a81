//! Host functions as JSON tools: the schemas of the tools, and the parsing of calls to them.

use serde_json::{Map, Value as Json};
use wattle_agent::host::capability::manual::schema;
use wattle_agent::host::rt::{Function, Grants, Param, Runtime, Signature, Ty};
use wattle_agent::model::FunctionTool;

use super::call::{Argument, OneCall};

/// Functions that are useful only within a program, because they handle its arguments, results and
/// memory.
const INTERNAL: &[&str] = &["sys.argc", "sys.argv", "sys.resv", "sys.alloc"];

/// The tools of a run: the functions of the granted capabilities.
pub(super) struct Toolbox {
    schemas: Vec<FunctionTool>,
    signatures: Vec<Signature>,
}

impl Toolbox {
    pub(super) fn new(runtime: &Runtime, grants: &Grants) -> Toolbox {
        let granted =
            runtime.capabilities().iter().filter(|capability| grants.allows(capability.name));
        let functions = granted.flat_map(|capability| capability.functions);
        // A tool cannot return a handle to a value that the next call could use.
        let usable = functions.filter(|function| {
            let takes = function.signature.params.iter().chain(function.signature.results);
            !INTERNAL.contains(&function.name)
                && !takes.into_iter().any(|param| param.ty == Ty::Val)
        });
        let (schemas, signatures) =
            usable.map(|function| (describe(function), function.signature)).unzip();
        Toolbox { schemas, signatures }
    }

    /// Returns the schemas of the tools, for the model.
    pub(super) fn schemas(&self) -> &[FunctionTool] {
        &self.schemas
    }

    /// Returns the program that makes a call to the tool `name`.
    pub(super) fn program(&self, name: &str, arguments: &str) -> Result<OneCall, String> {
        let at = self.schemas.iter().position(|tool| tool.name == name);
        let signature = at
            .and_then(|at| self.signatures.get(at))
            .ok_or_else(|| format!("unknown tool `{name}`"))?;
        let given: Map<String, Json> = match arguments.trim() {
            "" => Map::new(),
            text => serde_json::from_str(text)
                .map_err(|why| format!("the arguments are not a JSON object: {why}"))?,
        };
        let names = || {
            signature.params.iter().map(|p| format!("`{}`", p.name)).collect::<Vec<_>>().join(", ")
        };
        if let Some(unknown) =
            given.keys().find(|key| !signature.params.iter().any(|p| p.name == **key))
        {
            return Err(format!("`{name}` has no argument `{unknown}`; it has {}", names()));
        }
        let read = |param: &Param| {
            argument(param.ty, given.get(param.name)).ok_or_else(|| {
                format!("argument `{}` of `{name}` missing or not {}", param.name, words(param.ty))
            })
        };
        Ok(OneCall::new(*signature, signature.params.iter().map(read).collect::<Result<_, _>>()?))
    }
}

fn describe(function: &Function) -> FunctionTool {
    FunctionTool {
        // Endpoints reject dots and slashes in names.
        name: function.name.replace(['.', '/'], "_"),
        description: function.about.to_owned(),
        parameters: schema(&function.signature),
    }
}

fn words(ty: Ty) -> &'static str {
    match ty {
        Ty::Int | Ty::OptInt | Ty::Long | Ty::Addr => "an integer in range",
        Ty::Float => "a number",
        Ty::Bool => "a boolean",
        Ty::Arr => "an array",
        Ty::Map | Ty::OptMap => "an object",
        Ty::Val | Ty::Any => "a value",
        _ => "a string",
    }
}

/// Converts a JSON value to an argument of type `ty`, or returns `None` if that is not possible.
/// Models often put numbers in quotes, or write other values where a string is expected. Both
/// mistakes are accepted.
fn argument(ty: Ty, given: Option<&Json>) -> Option<Argument> {
    let given = given.filter(|value| !value.is_null());
    let Some(value) = given else { return ty.missing().map(Argument::Int) };
    let integer = || value.as_i64().or_else(|| value.as_str()?.trim().parse().ok());
    Some(match ty {
        Ty::Int | Ty::OptInt | Ty::Addr => Argument::Int(i32::try_from(integer()?).ok()?),
        Ty::Long => Argument::Long(integer()?),
        Ty::Float => {
            let number = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok())?;
            Argument::Float(Some(number).filter(|number| number.is_finite())?)
        }
        Ty::Bool => Argument::Int(i32::from(value.as_bool()?)),
        Ty::Arr => Argument::Array(value.as_array()?.clone().into()),
        Ty::Map | Ty::OptMap => Argument::Map(value.as_object()?.clone().into()),
        // A parameter of type `any` takes arrays and maps as handles, and any other value as a
        // string.
        Ty::Any if value.is_array() => Argument::Array(value.clone()),
        Ty::Any if value.is_object() => Argument::Map(value.clone()),
        _ => Argument::Text(value.as_str().map_or_else(|| value.to_string(), str::to_owned)),
    })
}
