//! The regular expressions of jq. jq itself uses Oniguruma with Perl syntax; this module translates
//! the expressions for an engine that supports lookaround and backreferences.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use fancy_regex::{Captures, Regex, RegexBuilder};
use jaq_core::native::{Filter, bome, v};
use jaq_core::{Cv, Error, RunPtr};
use jaq_json::{Map, Val, ValR};

use super::Kind;

/// The maximum number of compiled expressions in the cache.
const KEPT: usize = 100;

/// A cache of compiled expressions, by their text and flags.
type Known = HashMap<(String, String), Rc<Regex>>;

thread_local! {
    static KNOWN: RefCell<Known> = RefCell::default();
}

/// Returns the functions on which `test`, `match`, `split`, `sub` and similar filters are based.
pub(super) fn functions() -> [Filter<RunPtr<Kind>>; 3] {
    [
        ("matches", v(2), |cv| bome(search(cv, false, true))),
        ("split_matches", v(2), |cv| bome(search(cv, true, true))),
        ("split_", v(2), |cv| bome(search(cv, true, false))),
    ]
}

/// Applies an expression to the input. Returns the texts between the matches if `between` is true,
/// and the matches if `matches` is true.
fn search(mut cv: Cv<'_, Kind>, between: bool, matches: bool) -> ValR {
    let flags = text(&cv.0.pop_var(), "flags")?;
    let pattern = text(&cv.0.pop_var(), "a regular expression")?;
    let input = text(&cv.1, "the input")?;
    let regex = compiled(&pattern, &flags)?;
    let mut out = Vec::new();
    let mut end = 0;
    let mut offsets = Offsets { text: &input, at: 0, letters: 0 };
    for found in regex.captures_iter(&input) {
        let found = found.map_err(|error| Error::str(format_args!("{pattern}: {error}")))?;
        let Some(whole) = found.get(0) else { continue };
        if whole.as_str().is_empty() && flags.contains('n') {
            continue;
        }
        if between {
            out.push(Val::utf8_str(input.get(end..whole.start()).unwrap_or_default().to_owned()));
            end = whole.end();
        }
        if matches {
            out.push(described(&regex, &found, &mut offsets));
        }
        if !flags.contains('g') {
            break;
        }
    }
    if between {
        out.push(Val::utf8_str(input.get(end..).unwrap_or_default().to_owned()));
    }
    Ok(out.into_iter().collect())
}

fn text(value: &Val, what: &str) -> Result<String, Error<Val>> {
    match value {
        Val::TStr(bytes) => Ok(String::from_utf8_lossy(bytes).into_owned()),
        Val::Null if what == "flags" => Ok(String::new()),
        other => Err(Error::str(format_args!("{other} cannot be matched, as {what} is a string"))),
    }
}

fn compiled(pattern: &str, flags: &str) -> Result<Rc<Regex>, Error<Val>> {
    let key = (pattern.to_owned(), flags.to_owned());
    if let Some(known) = KNOWN.with_borrow(|known| known.get(&key).cloned()) {
        return Ok(known);
    }
    if flags.contains(|flag| !"gnixsp".contains(flag)) {
        return Err(Error::str(format_args!("{flags} is not a valid modifier string")));
    }
    let regex = RegexBuilder::new(&translated(pattern))
        .case_insensitive(flags.contains('i'))
        .dot_matches_new_line(flags.contains('p'))
        .ignore_whitespace(flags.contains('x'))
        .build()
        .map_err(|error| Error::str(format_args!("{pattern} (at regex): {error}")))?;
    let regex = Rc::new(regex);
    KNOWN.with_borrow_mut(|known| {
        if known.len() >= KEPT {
            known.clear();
        }
        known.insert(key, regex.clone());
    });
    Ok(regex)
}

/// Translates the syntax that the engine interprets differently from jq. In jq, `\<`, `\>`, `\h`
/// and `\y` are ordinary characters; `$` and `\Z` also match before a newline that ends the text.
fn translated(pattern: &str) -> String {
    const TEXT_END: &str = r"(?=\n?\z)";
    let mut out = String::with_capacity(pattern.len());
    let mut in_set = false;
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                Some('Z') if !in_set => out.push_str(TEXT_END),
                Some(plain @ ('<' | '>' | 'h' | 'y')) => out.push(plain),
                Some(other) => out.extend(['\\', other]),
                None => out.push('\\'),
            },
            '$' if !in_set => out.push_str(TEXT_END),
            '[' | ']' => {
                in_set = letter == '[' || (in_set && out.ends_with('['));
                out.push(letter);
            }
            other => out.push(other),
        }
    }
    out
}

/// Returns a match and its groups as an array of objects.
fn described(regex: &Regex, found: &Captures<'_>, offsets: &mut Offsets<'_>) -> Val {
    let start = found.get(0).map_or(0, |whole| whole.start());
    let before = offsets.of(start);
    let groups = found.iter().zip(regex.capture_names()).enumerate();
    let described = groups.map(|(number, (group, name))| {
        let (offset, length, string) = match group {
            Some(group) => {
                let inside = offsets.text.get(start..group.start()).unwrap_or_default();
                // A group in a lookbehind may start before the match.
                let offset = if inside.is_empty() && group.start() < start {
                    offsets.text.get(..group.start()).map_or(0, |text| text.chars().count())
                } else {
                    before + inside.chars().count()
                };
                let length = group.as_str().chars().count();
                (offset as isize, length as isize, Val::utf8_str(group.as_str().to_owned()))
            }
            None => (-1, 0, Val::Null),
        };
        let mut map = Map::default();
        map.insert(Val::utf8_str("offset"), Val::from(offset));
        map.insert(Val::utf8_str("length"), Val::from(length));
        map.insert(Val::utf8_str("string"), string);
        if number > 0 {
            let name = name.map_or(Val::Null, |name| Val::utf8_str(name.to_owned()));
            map.insert(Val::utf8_str("name"), name);
        }
        Val::obj(map)
    });
    described.collect()
}

/// A converter of increasing byte offsets to character offsets.
struct Offsets<'a> {
    text: &'a str,
    at: usize,
    letters: usize,
}

impl Offsets<'_> {
    fn of(&mut self, at: usize) -> usize {
        self.letters += self.text.get(self.at..at).map_or(0, |between| between.chars().count());
        self.at = at;
        self.letters
    }
}
