//! The arguments of builtins: options, then words.
//!
//! The rules are those of bash. Letters may share a word, as in `-ra`. The argument of an option is
//! the rest of its word or, if the word ends there, the next word: `-n1` is `-n 1`. The options end
//! at `--`, at `-`, or at the first word that does not start with `-`.

use crate::language::interpreter::{Attempt, usage};

/// An option that a builtin was called with.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::language) struct GivenOption {
    pub(in crate::language) letter: char,
    /// The option's argument. Empty if the option has none.
    pub(in crate::language) value: String,
}

/// The arguments of a builtin.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::language) struct Arguments {
    /// The options in the order in which they were given.
    pub(in crate::language) options: Vec<GivenOption>,
    /// The words after the options.
    pub(in crate::language) words: Vec<String>,
}

impl Arguments {
    /// Parses the arguments of a builtin. `letters` are its options. A colon follows each option
    /// that has an argument.
    ///
    /// # Errors
    /// Fails with status 2 if an option is unknown or its argument is missing.
    pub(in crate::language) fn parse(words: Vec<String>, letters: &str) -> Attempt<Arguments> {
        let mut parsed = Arguments::default();
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let Some(given) = word.strip_prefix('-').filter(|given| !given.is_empty()) else {
                parsed.words.push(word);
                break;
            };
            if given == "-" {
                break;
            }
            let mut rest = given.chars();
            while let Some(letter) = rest.next() {
                let known = letters.split_once(letter).filter(|_| letter != ':');
                let Some((_, after)) = known else {
                    return Err(usage(format!("-{letter}: invalid option")));
                };
                let mut value = String::new();
                if after.starts_with(':') {
                    value = match std::mem::replace(&mut rest, "".chars()).as_str() {
                        "" => words.next().ok_or_else(|| {
                            usage(format!("-{letter}: option requires an argument"))
                        })?,
                        attached => attached.to_owned(),
                    };
                }
                parsed.options.push(GivenOption { letter, value });
            }
        }
        parsed.words.extend(words);
        Ok(parsed)
    }

    /// Returns true if the option was given.
    pub(in crate::language) fn has(&self, letter: char) -> bool {
        self.options.iter().any(|option| option.letter == letter)
    }

    /// Returns the argument of an option. If the option was given several times, the last one
    /// counts.
    pub(in crate::language) fn value(&self, letter: char) -> Option<&str> {
        let given = self.options.iter().rfind(|option| option.letter == letter)?;
        Some(&given.value)
    }
}

/// Returns the words of a builtin that has no options. A leading `--` is dropped.
pub(super) fn after_dashes(words: &[String]) -> &[String] {
    match words.split_first() {
        Some((first, rest)) if first == "--" => rest,
        _ => words,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::interpreter::Stop;

    #[test]
    fn options_are_parsed_like_those_of_bash() {
        for (given, letters, options, rest) in [
            ("-n1 a b", "n:", "n=1", "a b"),
            ("-n 1 a", "n:", "n=1", "a"),
            ("-rd, -pX a -r", "rd:p:", "r= d=, p=X", "a -r"),
            ("-ra b", "ra:", "r= a=b", ""),
            ("-r -- -n", "rn:", "r=", "-n"),
            ("-r - -n", "rn:", "r=", "- -n"),
            ("-n -- a", "n:", "n=--", "a"),
            ("-n-1", "n:", "n=-1", ""),
            ("", "n:", "", ""),
        ] {
            let words = given.split_whitespace().map(str::to_owned).collect();
            let parsed = Arguments::parse(words, letters).unwrap();
            let found = parsed.options.iter().map(|o| format!("{}={}", o.letter, o.value));
            assert_eq!(found.collect::<Vec<_>>().join(" "), options, "{given}");
            assert_eq!(parsed.words.join(" "), rest, "{given}");
        }
        for (given, letters, words) in [
            ("-x", "n:", "-x: invalid option"),
            ("-n", "n:", "-n: option requires an argument"),
            ("-:", "n:", "-:: invalid option"),
            ("--help", "n:", "--: invalid option"),
        ] {
            let failed = Arguments::parse(vec![given.to_owned()], letters);
            let Err(Stop::Failed { status: 2, message }) = failed else { panic!("{failed:?}") };
            assert_eq!(message, words);
        }
    }
}
