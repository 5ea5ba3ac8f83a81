//! Programs that consist of a single call. Each tool call runs in the sandbox, with the same grants
//! and guards as any other program.

use std::fmt::Write;
use std::sync::Arc;

use serde_json::Value as Json;
use wattle_agent::host::rt::{Exit, Grants, Outcome, RunError, Runtime, Signature, Ty, ValType};

/// An argument of a call.
pub(super) enum Argument {
    Text(String),
    Int(i32),
    Long(i64),
    Float(f64),
    Array(Json),
    Map(Json),
}

/// A program that calls one function and outputs its result. It outputs a string unchanged, an i32
/// in decimal digits, a wider number as eight bytes, and an array or a map as JSON. If the function
/// changes an array or a map and has no result, the program outputs that array or map.
pub(super) struct OneCall {
    source: String,
    args: Vec<String>,
    result: Option<Ty>,
}

impl OneCall {
    pub(super) fn new(signature: Signature, arguments: Vec<Argument>) -> OneCall {
        let (mut source, mut args, mut operands) = (String::new(), Vec::new(), String::new());
        let mut changed = None;
        for (at, argument) in arguments.into_iter().enumerate() {
            let mut text = |text: String| {
                args.push(text);
                let n = args.len() - 1;
                format!("(argv {n} $a{at})\n")
            };
            let operand = match argument {
                Argument::Int(n) => format!("(i32.const {n})"),
                Argument::Long(n) => format!("(i64.const {n})"),
                Argument::Float(x) => format!("(f64.const {x:?})"),
                Argument::Text(given) => {
                    source += &text(given);
                    format!("(local.get $a{at})")
                }
                Argument::Array(given) | Argument::Map(given) => {
                    let ty = if given.is_array() { Ty::Arr } else { Ty::Map };
                    source += &text(given.to_string());
                    let from = format!("(call ${}.from_json (local.get $a{at}))", namespace(ty));
                    source += &fallible(&from, &format!("h{at}"), ValType::I32);
                    changed.get_or_insert((ty, format!("h{at}")));
                    format!("(local.get $h{at})")
                }
            };
            let _ = write!(operands, " {operand}");
        }
        let call = format!("(call ${}.{}{operands})", signature.module, signature.name);
        let result = signature.results.first().map(|result| result.ty);
        source += &match (result, signature.fallible()) {
            (Some(ty), true) => fallible(&call, "v", ty.val()),
            (Some(ty), false) => format!("(local $v {}) (local.set $v {call})\n", ty.val()),
            (None, true) => format!("(local $err i32) (local.set $err {call}) (check $err)\n"),
            (None, false) => format!("{call}\n"),
        };
        let (output, from) = match (result, changed) {
            (Some(ty), _) => (Some(ty), "v".to_owned()),
            (None, Some((ty, handle))) => (Some(ty), handle),
            (None, None) => (None, String::new()),
        };
        source += &output.map_or_else(String::new, |ty| output_of(ty, &from));
        source += "(i32.const 0)\n";
        OneCall { source, args, result: output }
    }

    /// Runs the program and renders its outcome for the model.
    ///
    /// # Errors
    /// If the host fails.
    pub(super) async fn run(
        self,
        runtime: &Runtime,
        grants: &Arc<Grants>,
    ) -> Result<String, String> {
        let program = runtime
            .prepare(&self.source)
            .await
            .map_err(|why| format!("failed to compile the program of a call: {why}"))?;
        match runtime.run(&program, grants, self.args).await {
            Err(denied @ (RunError::Denied(_) | RunError::Refused(_))) => {
                Ok(format!("error: {denied}"))
            }
            Err(RunError::Bug(bug)) => Err(bug.to_string()),
            Err(RunError::Engine(broken)) => Err(broken.to_string()),
            Ok(outcome) => Ok(render(self.result, outcome)),
        }
    }
}

fn namespace(ty: Ty) -> &'static str {
    if ty == Ty::Arr { "arr" } else { "map" }
}

/// Generates a call to a function that returns a value and an error code. The generated code stores
/// the value in the local `name` and checks the error code.
fn fallible(call: &str, name: &str, ty: ValType) -> String {
    format!(
        "{call} (local $e_{name} i32) (local ${name} {ty}) (local.set $e_{name}) (local.set \
         ${name}) (check $e_{name})\n"
    )
}

/// Generates the code that outputs the local `name`.
fn output_of(ty: Ty, name: &str) -> String {
    match ty {
        Ty::Int | Ty::Bool | Ty::Addr => {
            format!("(call $sys.resv (call $str.from_int (local.get ${name})))\n")
        }
        Ty::Long | Ty::Float => format!(
            "(local $room i32) (local.set $room (call $sys.alloc (i32.const 12))) (i32.store \
             (local.get $room) (i32.const 8))\n({}.store (i32.add (local.get $room) (i32.const \
             4)) (local.get ${name})) (call $sys.resv (local.get $room))\n",
            ty.val()
        ),
        Ty::Arr | Ty::Map => {
            let to = format!("(call ${}.to_json (local.get ${name}))", namespace(ty));
            fallible(&to, "json", ValType::I32) + "(resv $json)\n"
        }
        _ => format!("(resv ${name})\n"),
    }
}

fn render(result_type: Option<Ty>, outcome: Outcome) -> String {
    match (&outcome.exit, &outcome.failure) {
        (Exit::Trapped(trap), _) => return format!("error: {}", trap.message),
        (Exit::Returned(code), Some(failed)) if !code.is_success() => {
            return format!("error: {code}: {}", failed.failure.reason);
        }
        (Exit::Returned(code), None) if !code.is_success() => {
            return format!("error: {code}: {}", code.meaning());
        }
        (Exit::Returned(_), _) => {}
    }
    let Some(result) = outcome.results.into_iter().next() else { return "done".to_owned() };
    let eight = <[u8; 8]>::try_from(result.as_slice());
    match (result_type, eight) {
        (Some(Ty::Long), Ok(bytes)) => i64::from_le_bytes(bytes).to_string(),
        (Some(Ty::Float), Ok(bytes)) => f64::from_le_bytes(bytes).to_string(),
        (Some(Ty::Bool), _) => if result == b"0" { "false" } else { "true" }.to_owned(),
        _ => String::from_utf8_lossy(&result).into_owned(),
    }
}
