//! Host functions as JSON tools: what the model is told of them, and how a call of one is read.

use serde_json::{Map, Value as Json};
use wattle_agent::capability::manual::schema;
use wattle_agent::model::FunctionTool;
use wattle_agent::rt::{Function, Grants, Param, Runtime, Signature, Ty};

use super::call::{Argument, OneCall};

/// What only makes sense inside a program: its own arguments, results and memory.
const PLUMBING: &[&str] = &["sys.argc", "sys.argv", "sys.resv", "sys.alloc"];

/// The tools of one run: a function of a granted capability each.
pub(super) struct Toolbox {
    described: Vec<FunctionTool>,
    signatures: Vec<Signature>,
}

impl Toolbox {
    pub(super) fn new(runtime: &Runtime, grants: &Grants) -> Toolbox {
        let granted = runtime.capabilities().iter().filter(|capability| grants.allows(capability.name));
        let functions = granted.flat_map(|capability| capability.functions);
        let usable = functions.filter(|function| !PLUMBING.contains(&function.name));
        let (described, signatures) = usable.map(|function| (describe(function), function.signature)).unzip();
        Toolbox { described, signatures }
    }

    /// What the model is told.
    pub(super) fn described(&self) -> &[FunctionTool] {
        &self.described
    }

    /// The program that makes a call.
    pub(super) fn program(&self, name: &str, arguments: &str) -> Result<OneCall, String> {
        let at = self.described.iter().position(|tool| tool.name == name);
        let signature =
            at.and_then(|at| self.signatures.get(at)).ok_or_else(|| format!("there is no tool `{name}`"))?;
        let given: Map<String, Json> = match arguments.trim() {
            "" => Map::new(),
            text => serde_json::from_str(text).map_err(|why| format!("the arguments are no JSON object: {why}"))?,
        };
        let names = || signature.params.iter().map(|p| format!("`{}`", p.name)).collect::<Vec<_>>().join(", ");
        if let Some(unknown) = given.keys().find(|key| !signature.params.iter().any(|p| p.name == **key)) {
            return Err(format!("`{name}` has no argument `{unknown}`; it has {}", names()));
        }
        let read = |param: &Param| {
            argument(param.ty, given.get(param.name))
                .ok_or_else(|| format!("argument `{}` of `{name}` missing or not {}", param.name, words(param.ty)))
        };
        Ok(OneCall::new(*signature, signature.params.iter().map(read).collect::<Result<_, _>>()?))
    }
}

fn describe(function: &Function) -> FunctionTool {
    FunctionTool {
        // Endpoints take no dots in a name.
        name: function.name.replace('.', "_"),
        description: function.about.to_owned(),
        parameters: schema(&function.signature),
    }
}

fn words(ty: Ty) -> &'static str {
    match ty {
        Ty::Int | Ty::Long | Ty::Addr => "an integer in range",
        Ty::Float => "a number",
        Ty::Bool => "a boolean",
        Ty::Arr => "an array",
        Ty::Map => "an object",
        Ty::Any => "a value",
        _ => "a string",
    }
}

/// What a JSON value is to a function. Numbers in quotes count, and so does what is given for a string as JSON: models write both.
fn argument(ty: Ty, given: Option<&Json>) -> Option<Argument> {
    let given = given.filter(|value| !value.is_null());
    let Some(value) = given else { return ty.is_optional().then_some(Argument::NoApprover) };
    let integer = || value.as_i64().or_else(|| value.as_str()?.trim().parse().ok());
    Some(match ty {
        Ty::Int | Ty::Addr => Argument::Int(i32::try_from(integer()?).ok()?),
        Ty::Long => Argument::Long(integer()?),
        Ty::Float => {
            let number = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok())?;
            Argument::Float(Some(number).filter(|number| number.is_finite())?)
        }
        Ty::Bool => Argument::Int(i32::from(value.as_bool()?)),
        Ty::Arr => Argument::Array(value.as_array()?.clone().into()),
        Ty::Map => Argument::Map(value.as_object()?.clone().into()),
        // A value of any kind is what its own kind says; what has no handle and is no text is its text.
        Ty::Any if value.is_array() => Argument::Array(value.clone()),
        Ty::Any if value.is_object() => Argument::Map(value.clone()),
        _ => Argument::Text(value.as_str().map_or_else(|| value.to_string(), str::to_owned)),
    })
}
