//! Validation of `[[example]]` tables.

use toml::Spanned;
use wattle_rt::Code;

use crate::argument::{self, ArgumentError};
use crate::front::block::Block;
use crate::front::keys::{RawExample, RawHttp, Scalar};
use crate::front::{LineFault, Texts};
use crate::meta::is_web;
use crate::problem::Fault;
use crate::{Example, Expected, Fixtures, HttpAnswer, Meta, Name, Results};

/// Validates the examples and adds them to `meta`.
pub(super) fn check(
    name: Name,
    mut meta: Meta,
    raw: Vec<Spanned<RawExample>>,
    block: &Block,
) -> Result<(Name, Meta), LineFault> {
    let mut examples = Vec::with_capacity(raw.len());
    for raw in raw {
        let line = block.line_of(&raw);
        let example = example(raw.into_inner(), line, block)?;
        let fits: Result<_, ArgumentError> = argument::check(&name, &meta.args, &example.args);
        fits.map_err(|error| (line, Fault::ExampleArgs(error)))?;
        examples.push(example);
    }
    meta.examples = examples;
    Ok((name, meta))
}

fn example(raw: RawExample, line: usize, block: &Block) -> Result<Example, LineFault> {
    for path in raw.files.keys().chain(raw.files_after.keys()) {
        if !is_inside(path) {
            return Err((line, Fault::ExamplePath(path.clone())));
        }
    }
    let expects_nothing = raw.code.is_none()
        && raw.reason.is_none()
        && raw.files_after == Texts::new()
        && raw.kv_after == Texts::new();
    let results = match (raw.results, raw.contains) {
        (Some(_), Some(_)) => return Err((line, Fault::ResultsAndContains)),
        (None, None) if expects_nothing => return Err((line, Fault::ExpectsNothing)),
        (None, None) => Results::Any,
        (Some(results), None) => Results::Exactly(results),
        (None, Some(texts)) => Results::Containing(texts),
    };
    let code = match raw.code {
        None => Code::SUCCESS,
        Some(code) => {
            let line = block.line_of(&code);
            code_of(&code.into_inner()).map_err(|fault| (line, fault))?
        }
    };
    let now = match raw.now {
        Some(now) if now.get_ref().offset.is_none() => {
            return Err((block.line_of(&now), Fault::ExampleNow));
        }
        now => now.map(|now| now.into_inner().to_string()),
    };
    let http =
        raw.http.into_iter().map(|answer| http_answer(answer, block)).collect::<Result<_, _>>()?;
    Ok(Example {
        line,
        args: raw.args.iter().map(ToString::to_string).collect(),
        fixtures: Fixtures {
            files: raw.files,
            kv: raw.kv,
            memory: raw.memory,
            http,
            now,
            random: raw.random,
            ai: raw.ai,
            shell: raw.shell,
        },
        expected: Expected {
            code,
            reason: raw.reason,
            results,
            files: raw.files_after,
            kv: raw.kv_after,
        },
    })
}

/// Returns true if a path is relative and stays inside the run's files.
fn is_inside(path: &str) -> bool {
    !path.contains('\0') && path.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

fn code_of(code: &Scalar) -> Result<Code, Fault> {
    let known = match code {
        Scalar::Text(name) => Code::from_name(name),
        Scalar::Int(number) => i32::try_from(*number).ok().map(Code),
        Scalar::Float(_) | Scalar::Bool(_) => None,
    };
    known.ok_or_else(|| Fault::ExampleCode(argument::excerpt(&code.to_string())))
}

fn http_answer(raw: RawHttp, block: &Block) -> Result<HttpAnswer, LineFault> {
    if !is_web(raw.url.get_ref()) {
        return Err((block.line_of(&raw.url), Fault::ExampleUrl(raw.url.into_inner())));
    }
    let method = match raw.method {
        None => "GET".to_owned(),
        Some(method)
            if !method.get_ref().is_empty()
                && method.get_ref().bytes().all(|b| b.is_ascii_alphabetic()) =>
        {
            method.get_ref().to_ascii_uppercase()
        }
        Some(method) => {
            return Err((block.line_of(&method), Fault::ExampleMethod(method.into_inner())));
        }
    };
    let status = match raw.status {
        None => 200,
        Some(status) => match u16::try_from(*status.get_ref()) {
            Ok(number @ 100..=599) => number,
            _ => return Err((block.line_of(&status), Fault::ExampleStatus(status.into_inner()))),
        },
    };
    Ok(HttpAnswer {
        url: raw.url.into_inner(),
        method,
        status,
        headers: raw.headers,
        body: raw.body,
    })
}
