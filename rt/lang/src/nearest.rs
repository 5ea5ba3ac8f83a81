//! The names that an unknown one probably stands for.

use crate::program::Program;
use crate::{Signature, Signatures};

/// The most names that a hint shows.
const SHOWN: usize = 3;

/// Message that people use for a function of another name, by last part.
const SYNONYMS: &[(&str, &[&str])] = &[
    ("fetch", &["get"]),
    ("concat", &["cat"]),
    ("concatenate", &["cat"]),
    ("append", &["cat", "push"]),
    ("length", &["len"]),
    ("size", &["len"]),
    ("count", &["len"]),
    ("substring", &["slice"]),
    ("substr", &["slice"]),
    ("sub", &["slice"]),
    ("index_of", &["find"]),
    ("indexof", &["find"]),
    ("includes", &["contains"]),
    ("equals", &["eq"]),
    ("equal", &["eq"]),
    ("print", &["log"]),
    ("println", &["log"]),
    ("puts", &["log"]),
    ("parse_int", &["to_int"]),
    ("atoi", &["to_int"]),
    ("itoa", &["from_int"]),
    ("int_to_str", &["from_int"]),
    ("to_string", &["from_int"]),
    ("add", &["push", "set"]),
    ("put", &["set"]),
    ("insert", &["set", "push"]),
    ("load", &["read"]),
    ("save", &["write"]),
    ("malloc", &["alloc"]),
    ("summarize", &["assist"]),
    ("complete", &["assist"]),
    ("chat", &["assist"]),
    ("args", &["argv"]),
    ("arg", &["argv"]),
    ("return", &["resv"]),
    ("output", &["resv"]),
];

/// A hint with the functions that `name` may mean, with their signatures; `None` where nothing is close.
pub(super) fn functions(name: &str, host: &Signatures, program: Option<&Program<'_>>) -> Option<String> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let helpers = program.into_iter().flat_map(|program| program.defined.keys().chain(program.aliases.keys()));
    for helper in helpers {
        if let Some(distance) = distance(name, helper.trim_start_matches('$')) {
            found.push((distance, format!("`{helper}`")));
        }
    }
    for signature in host.iter() {
        if let Some(distance) = function_distance(name, signature) {
            found.push((distance, format!("`${signature}`")));
        }
    }
    if !found.is_empty() {
        found.sort();
        let best = found.first().map_or(0, |(distance, _)| *distance);
        let names: Vec<String> =
            found.into_iter().filter(|(far, _)| *far <= best + 1).take(SHOWN).map(|(_, text)| text).collect();
        return Some(format!("nearest: {}", names.join(", ")));
    }
    let module = name.split(['.', '_', ':']).next().unwrap_or("");
    let all: Vec<String> =
        host.iter().filter(|s| s.module == module).map(|s| format!("`${}.{}`", s.module, s.name)).collect();
    (!all.is_empty()).then(|| format!("functions of `{module}`: {}", all.join(", ")))
}

/// The one function that `name` can only mean, as a call names it: `$http.get`. `None` where there are several, or
/// where the name may be meant as it is.
pub(super) fn certain_function(name: &str, host: &Signatures, program: Option<&Program<'_>>) -> Option<String> {
    let helpers: Vec<&str> =
        program.into_iter().flat_map(|p| p.defined.keys().chain(p.aliases.keys())).copied().collect();
    let plain: Vec<&str> = helpers.iter().map(|helper| helper.trim_start_matches('$')).collect();
    let mut found: Vec<String> = Vec::new();
    found.extend(certain(name, plain.iter().copied()).map(|helper| format!("${helper}")));
    let (module, last) = parts(name);
    for known in host.iter() {
        let same_module = module == Some(known.module);
        let means = |part: &str| {
            let said = |word: &str| word == part || !self::word(part, host) && is_slip(part, word);
            SYNONYMS.iter().any(|(word, meant)| meant.contains(&known.name) && said(word))
        };
        let same = last == known.name && (same_module || module.is_none());
        // One word for another is no slip of the keyboard: what a synonym does not say is a guess.
        let slip =
            !word(last, host) && module.is_none_or(|module| module == known.module || is_slip(module, known.module));
        let full = || format!("{}.{}", known.module, known.name);
        let near = slip && if module.is_some() { is_slip(last, known.name) } else { is_slip(name, &full()) };
        let module_slip =
            module.is_some_and(|module| module.len() > 2 && strsim::damerau_levenshtein(module, known.module) == 1);
        if same || same_module && means(last) || near || last == known.name && module_slip {
            found.push(format!("${}", full()));
        }
    }
    match found.as_slice() {
        [only] => Some(only.clone()),
        _ => None,
    }
}

/// Whether the last part of a name is a word that may be meant as it is.
fn word(last: &str, host: &Signatures) -> bool {
    host.iter().any(|known| known.name == last) || SYNONYMS.iter().any(|(word, _)| *word == last)
}

/// A name's module and the rest; `None` where it names no module.
fn parts(name: &str) -> (Option<&str>, &str) {
    match name.split_once(['.', '_', ':', '/']) {
        Some((module, last)) => (Some(module), last.trim_start_matches(':')),
        None => (None, name),
    }
}

/// The one candidate that a name is a slip of, and of no other.
pub(super) fn certain<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let mut near = candidates.into_iter().filter(|candidate| is_slip(name, candidate));
    let first = near.next()?;
    near.all(|other| other == first).then_some(first)
}

/// Whether one name is the other in another spelling or with a slip of the keyboard. Names that differ in a digit or by
/// a plural are names of two things.
fn is_slip(a: &str, b: &str) -> bool {
    let plain = |name: &str| name.replace(['_', '-', '.'], "").to_ascii_lowercase();
    let (x, y) = (plain(a), plain(b));
    let length = x.len().min(y.len());
    if x == y {
        return a != b;
    }
    let digits = |name: &str| name.chars().filter(char::is_ascii_digit).collect::<String>();
    let plural = |one: &str, many: &str| many.strip_suffix('s') == Some(one) && !many.ends_with("ss");
    if length < 3 || x.len().max(y.len()) > 64 || digits(&x) != digits(&y) || plural(&x, &y) || plural(&y, &x) {
        return false;
    }
    let letters = |name: &str| {
        let mut letters: Vec<char> = name.chars().collect();
        letters.sort_unstable();
        letters
    };
    match strsim::damerau_levenshtein(&x, &y) {
        // Of short names only swapped letters and doubled or missing ones are slips, not a letter for another.
        1 if length < 5 => x.len() != y.len() || letters(&x) == letters(&y),
        1 => true,
        2 => length >= 8,
        _ => false,
    }
}

/// A hint with the capabilities that there are; `None` where there is none.
pub(super) fn modules(host: &Signatures) -> Option<String> {
    let mut modules: Vec<&str> = host.iter().map(|signature| signature.module).collect();
    modules.sort_unstable();
    modules.dedup();
    let shown: Vec<String> = modules.iter().map(|module| format!("`{module}`")).collect();
    (!shown.is_empty()).then(|| format!("there are functions of {}", shown.join(", ")))
}

/// The names closest to `name` among `candidates`, best first; none that is far.
pub(super) fn names<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let plain = |name: &'a str| name.strip_prefix('$').unwrap_or(name);
    let own = name.strip_prefix('$').unwrap_or(name);
    let near = |candidate| Some((distance(own, plain(candidate))?, candidate));
    let mut found: Vec<(usize, &str)> = candidates.into_iter().filter_map(near).collect();
    found.sort();
    found.dedup();
    let best = found.first().map_or(0, |(distance, _)| *distance);
    found.into_iter().filter(|(far, _)| *far == best).take(SHOWN).map(|(_, text)| text).collect()
}

/// How far two names are apart in edits; `None` where they are no likely slip of one another.
fn distance(a: &str, b: &str) -> Option<usize> {
    let (short, long) = if a.len() < b.len() { (a.len(), b.len()) } else { (b.len(), a.len()) };
    // A giant name is a slip of nothing, and comparing it would take time.
    if long > 64 || long - short > 4 {
        return None;
    }
    let apart = strsim::damerau_levenshtein(a, b);
    (apart <= (long / 3).max(1) && apart < long).then_some(apart)
}

fn function_distance(name: &str, signature: &Signature) -> Option<usize> {
    let same = |part: &str| part == signature.name;
    let (module, last) = match name.split_once(['.', '_', ':']) {
        Some((module, last)) => (Some(module), last.trim_start_matches(':')),
        None => (None, name),
    };
    let synonyms = |part: &str| SYNONYMS.iter().any(|(word, meant)| *word == part && meant.contains(&signature.name));
    match module {
        Some(module) if module == signature.module && same(last) => return Some(0),
        Some(module) if module == signature.module && synonyms(last) => return Some(1),
        None if same(last) => return Some(1),
        _ if synonyms(name) && signature.module != "arr" => return Some(2),
        _ => {}
    }
    distance(name, &format!("{}.{}", signature.module, signature.name))
}
