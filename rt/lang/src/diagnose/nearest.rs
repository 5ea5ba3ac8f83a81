//! Names that are similar to an unknown name.

use crate::types::instruction;
use crate::{Signature, Signatures};

/// Maximum number of names in a hint.
const MAX_NAMES: usize = 3;

/// Common names for functions, and the names of these functions in this language. The part of an
/// unknown name after its module, such as `fetch` in `http.fetch`, is looked up in this table.
const SYNONYMS: &[(&[&str], &[&str])] = &[
    (&["fetch"], &["get"]),
    (&["starts_with", "begins_with", "has_prefix"], &["starts"]),
    (&["ends_with", "has_suffix"], &["ends"]),
    (&["to_upper", "to_upper_case", "upper_case"], &["upper"]),
    (&["to_lower", "to_lower_case", "lower_case"], &["lower"]),
    (&["replace_all"], &["replace"]),
    (&["split_lines"], &["lines"]),
    (&["read_file", "read_text", "load"], &["read"]),
    (&["write_file", "write_text", "save"], &["write"]),
    (&["append_file"], &["append"]),
    (&["list_dir", "readdir"], &["list"]),
    (&["unique", "distinct"], &["uniq"]),
    (&["has_key", "contains_key"], &["has"]),
    (&["increment"], &["incr"]),
    (&["ceiling"], &["ceil"]),
    (&["parse_float"], &["to_float"]),
    (&["concat", "concatenate"], &["cat"]),
    (&["append"], &["cat", "push"]),
    (&["length", "size", "count"], &["len"]),
    (&["strip"], &["trim"]),
    (&["substring", "substr", "sub"], &["slice"]),
    (&["index_of", "indexof"], &["find"]),
    (&["includes"], &["contains"]),
    (&["equals", "equal"], &["eq"]),
    (&["print", "println", "puts"], &["log"]),
    (&["parse_int", "atoi"], &["to_int"]),
    (&["itoa", "int_to_str", "to_string"], &["from_int"]),
    (&["add"], &["push", "set"]),
    (&["put"], &["set"]),
    (&["insert"], &["set", "push"]),
    (&["malloc"], &["alloc"]),
    (&["summarize", "complete", "chat"], &["assist"]),
    (&["args", "arg"], &["argv"]),
    (&["return", "output"], &["resv"]),
];

/// Words in [`SYNONYMS`] for functions that take different arguments, such as a length instead of
/// an end index. A hint shows the intended function, but no fix replaces the word automatically.
const OTHER_ARGUMENTS: &[&str] = &["sub", "substr"];

/// Functions for internal use. Lowered forms call them, but programs do not call them by name.
const INTERNAL: &[(&str, &str)] = &[("str", "append"), ("sys", "trap")];

/// Returns the functions that a program may call by name.
fn callable(host: &Signatures) -> impl Iterator<Item = &Signature> {
    host.iter().filter(|known| !INTERNAL.contains(&(known.module, known.name)))
}

/// Returns a hint with the signatures of the functions that `name` may mean. Considers the host's
/// functions and `own`, the program's own functions. If no function is similar, the hint lists the
/// functions of the capability that `name` begins with. Returns `None` if `name` does not begin
/// with a capability.
pub(crate) fn functions(name: &str, host: &Signatures, own: &[&str]) -> Option<String> {
    let mut found: Vec<(usize, String)> = Vec::new();
    for helper in own {
        if let Some(distance) = distance(name, helper.trim_start_matches('$')) {
            found.push((distance, format!("`{helper}`")));
        }
    }
    for signature in callable(host) {
        if let Some(distance) = function_distance(name, signature) {
            found.push((distance, format!("`${signature}`")));
        }
    }
    if !found.is_empty() {
        found.sort();
        let best = found.first().map_or(0, |(distance, _)| *distance);
        let names: Vec<String> = found
            .into_iter()
            .filter(|(far, _)| *far <= best + 1)
            .take(MAX_NAMES)
            .map(|(_, text)| text)
            .collect();
        return Some(format!("nearest: {}", names.join(", ")));
    }
    let module = name.split(['.', '_', ':']).next().unwrap_or("");
    let all: Vec<String> = callable(host)
        .filter(|s| s.module == module)
        .map(|s| format!("`${}`", s.full_name()))
        .collect();
    (!all.is_empty()).then(|| format!("functions of `{module}`: {}", all.join(", ")))
}

/// Returns the instructions that an unknown name probably means.
pub(crate) fn instructions(name: &str) -> Vec<&'static str> {
    match instruction::renamed(name).or_else(|| instruction::signed(name)) {
        Some(meant) => vec![meant],
        None => names(name, instruction::names()),
    }
}

/// Returns the name of the only function that `name` can mean, including the `$`, as in
/// `$http.get`. Returns `None` unless there is exactly one such function.
pub(crate) fn certain_function(name: &str, host: &Signatures, own: &[&str]) -> Option<String> {
    let plain: Vec<&str> = own.iter().map(|helper| helper.trim_start_matches('$')).collect();
    let mut found: Vec<String> = Vec::new();
    found.extend(certain(name, plain.iter().copied()).map(|helper| format!("${helper}")));
    let (module, last) = parts(name);
    for known in callable(host) {
        let same_module = module == Some(known.module);
        let is_synonym = |part: &str| {
            let matches = |word: &str| {
                is_same_word(word, part) || !is_known_word(part, host) && is_typo(part, word)
            };
            let may_mean = |word: &&str| !OTHER_ARGUMENTS.contains(word) && matches(word);
            SYNONYMS
                .iter()
                .any(|(words, meant)| meant.contains(&known.name) && words.iter().any(may_mean))
        };
        let same = last == known.name && (same_module || module.is_none());
        // If the part of the name after its module is a known word, the name is not a typo of
        // another name.
        let typo = !is_known_word(last, host)
            && module.is_none_or(|module| module == known.module || is_typo(module, known.module));
        let full = || known.full_name();
        let near = typo
            && if module.is_some() { is_typo(last, known.name) } else { is_typo(name, &full()) };
        let module_typo = module.is_some_and(|module| {
            module.len() > 2 && strsim::damerau_levenshtein(module, known.module) == 1
        });
        if same || same_module && is_synonym(last) || near || last == known.name && module_typo {
            found.push(format!("${}", full()));
        }
    }
    match found.as_slice() {
        [only] => Some(only.clone()),
        _ => None,
    }
}

/// Returns true if `last`, the part of a name after its module, is the name of a function or a
/// synonym. Such a name is probably not a typo.
fn is_known_word(last: &str, host: &Signatures) -> bool {
    host.iter().any(|known| known.name == last)
        || SYNONYMS.iter().any(|(words, _)| words.contains(&last))
}

/// Returns true if two words differ only in case and separators, like `startsWith` and
/// `starts-with`.
fn is_same_word(a: &str, b: &str) -> bool {
    let plain = |word: &str| word.replace(['_', '-'], "").to_ascii_lowercase();
    plain(a) == plain(b)
}

/// Splits a name into its module, if it has one, and the part after the module.
fn parts(name: &str) -> (Option<&str>, &str) {
    match name.split_once(['.', '_', ':', '/']) {
        Some((module, last)) => (Some(module), last.trim_start_matches(':')),
        None => (None, name),
    }
}

/// Returns the candidate of which `name` is probably a typo. Returns `None` unless there is exactly
/// one such candidate.
pub(crate) fn certain<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let mut near = candidates.into_iter().filter(|candidate| is_typo(name, candidate));
    let first = near.next()?;
    near.all(|other| other == first).then_some(first)
}

/// Returns true if one name is probably a typo or a spelling variant of the other. Names that
/// differ in a digit or a plural `s` are considered distinct.
fn is_typo(a: &str, b: &str) -> bool {
    let plain = |name: &str| name.replace(['_', '-', '.'], "").to_ascii_lowercase();
    let (x, y) = (plain(a), plain(b));
    // `$x--` is an operation, not a name.
    if a.ends_with("--") || b.ends_with("--") {
        return false;
    }
    let length = x.len().min(y.len());
    if x == y {
        return a != b;
    }
    let digits = |name: &str| name.chars().filter(char::is_ascii_digit).collect::<String>();
    let plural =
        |one: &str, many: &str| many.strip_suffix('s') == Some(one) && !many.ends_with("ss");
    if length < 3
        || x.len().max(y.len()) > 64
        || digits(&x) != digits(&y)
        || plural(&x, &y)
        || plural(&y, &x)
    {
        return false;
    }
    let letters = |name: &str| {
        let mut letters: Vec<char> = name.chars().collect();
        letters.sort_unstable();
        letters
    };
    match strsim::damerau_levenshtein(&x, &y) {
        // In short names, only swapped, doubled or missing letters count as typos; replaced letters
        // do not.
        1 if length < 5 => x.len() != y.len() || letters(&x) == letters(&y),
        1 => true,
        2 => length >= 8,
        _ => false,
    }
}

/// Returns a hint that lists all capabilities, or `None` if there are none.
pub(crate) fn modules(host: &Signatures) -> Option<String> {
    let mut modules: Vec<&str> = host.iter().map(|signature| signature.module).collect();
    modules.sort_unstable();
    modules.dedup();
    let shown: Vec<String> = modules.iter().map(|module| format!("`{module}`")).collect();
    (!shown.is_empty()).then(|| format!("there are functions of {}", shown.join(", ")))
}

/// Returns the candidates most similar to `name`. Dissimilar candidates are never returned.
pub(crate) fn names<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let plain = |name: &'a str| name.strip_prefix('$').unwrap_or(name);
    let own = name.strip_prefix('$').unwrap_or(name);
    let near = |candidate| Some((distance(own, plain(candidate))?, candidate));
    let mut found: Vec<(usize, &str)> = candidates.into_iter().filter_map(near).collect();
    found.sort();
    found.dedup();
    let best = found.first().map_or(0, |(distance, _)| *distance);
    found
        .into_iter()
        .filter(|(far, _)| *far == best)
        .take(MAX_NAMES)
        .map(|(_, text)| text)
        .collect()
}

/// Returns the edit distance between two names, or `None` if they are not similar.
fn distance(a: &str, b: &str) -> Option<usize> {
    let (short, long) = if a.len() < b.len() { (a.len(), b.len()) } else { (b.len(), a.len()) };
    // Very long names are never similar, and comparing them is slow.
    if long > 64 || long - short > 4 {
        return None;
    }
    let apart = strsim::damerau_levenshtein(a, b);
    (apart <= (long / 3).max(1) && apart < long).then_some(apart)
}

fn function_distance(name: &str, signature: &Signature) -> Option<usize> {
    let same = |part: &str| part == signature.name;
    let (module, last) = parts(name);
    let synonyms = |part: &str| {
        let mut rows = SYNONYMS.iter();
        rows.any(|(words, meant)| words.contains(&part) && meant.contains(&signature.name))
    };
    match module {
        Some(module) if module == signature.module && same(last) => return Some(0),
        Some(module) if module == signature.module && synonyms(last) => return Some(1),
        None if same(last) => return Some(1),
        _ if synonyms(name) && signature.module != "arr" => return Some(2),
        _ => {}
    }
    distance(name, &signature.full_name())
}
