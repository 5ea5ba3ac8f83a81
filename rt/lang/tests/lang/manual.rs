//! The host functions that the manual describes, parsed from `docs/capabilities.md`.

use wattle_lang::{Code, Names, Param, Signature, Signatures, Ty};

/// All types, for looking up their names in the manual.
const TYPES: &[Ty] = &[
    Ty::Str,
    Ty::OptStr,
    Ty::Bytes,
    Ty::OptBytes,
    Ty::Int,
    Ty::OptInt,
    Ty::Long,
    Ty::Float,
    Ty::Bool,
    Ty::Arr,
    Ty::Map,
    Ty::OptMap,
    Ty::Val,
    Ty::Addr,
    Ty::Any,
];

/// Leaks values, so that they live until the process exits.
fn kept<T>(values: Vec<T>) -> &'static [T] {
    Box::leak(values.into_boxed_slice())
}

fn kept_text(text: &str) -> &'static str {
    Box::leak(text.to_owned().into_boxed_str())
}

/// Parses the arguments or results in a line such as `Arguments: h array, i i32.` `label` is the
/// prefix of the line.
fn params(section: &str, label: &str) -> &'static [Param] {
    let line = section.lines().find_map(|line| line.strip_prefix(label)?.strip_suffix('.'));
    let one = |text: &str| {
        let (name, word) = text.trim().split_once(' ').unwrap();
        let ty = TYPES.iter().copied().find(|ty| ty.word() == word);
        Param {
            name: kept_text(name),
            ty: ty.unwrap_or_else(|| panic!("the type {word}")),
            names: Names::Nothing,
        }
    };
    kept(line.map(|line| line.split(',').map(one).collect()).unwrap_or_default())
}

/// Parses the error codes in a line such as `Errors: EBOUND (out of bounds).`
fn errors(section: &str) -> &'static [Code] {
    let line = section.lines().find_map(|line| line.strip_prefix("Errors:"));
    let words = line.unwrap_or("").split([' ', ',', '(', ')', '.', '`']);
    kept(words.filter_map(Code::from_name).collect())
}

/// Returns the signatures of all functions in the manual.
pub(crate) fn manual() -> Signatures {
    let text = wattle_cases::read("../../docs/capabilities.md");
    let sections = text.split("\n### ").skip(1);
    let all: Vec<Signature> = sections
        .filter_map(|section| {
            let (module, name) = section.lines().next()?.trim().split_once('.')?;
            Some(Signature {
                module: kept_text(module),
                name: kept_text(name),
                params: params(section, "Arguments: "),
                results: params(section, "Returns: "),
                errors: errors(section),
                touches: &[],
            })
        })
        .collect();
    assert!(all.len() > 150, "{} functions in the manual", all.len());
    Signatures::new(all)
}
