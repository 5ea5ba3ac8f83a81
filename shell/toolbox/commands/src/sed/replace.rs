//! The `s` command.

use super::Error;
use super::syntax::{Case, Part, Substitution};
use crate::pattern::{Groups, Posix};

/// Replaces the matches in a text. Returns `None` if nothing was replaced.
pub(super) fn replaced(
    substitution: &Substitution,
    regex: &Posix,
    text: &[u8],
) -> Result<Option<Vec<u8>>, Error> {
    let mut out = Builder { text: Vec::with_capacity(text.len()), all: Case::End, one: None };
    let (mut count, mut end, mut failure) = (0, 0, None);
    regex.each(text, |groups| {
        count += 1;
        if count < substitution.from {
            return true;
        }
        let whole = groups.whole();
        out.text.extend_from_slice(text.get(end..whole.start).unwrap_or_default());
        end = whole.end;
        failure = out.expand(&substitution.replacement, groups, text).err();
        substitution.all && failure.is_none()
    });
    if let Some(failure) = failure {
        return Err(failure);
    }
    if count < substitution.from {
        return Ok(None);
    }
    out.text.extend_from_slice(text.get(end..).unwrap_or_default());
    Ok(Some(out.text))
}

/// A builder of the result, which applies the case conversions of the replacement.
struct Builder {
    text: Vec<u8>,
    all: Case,
    /// The case of the next letter, if it differs from `all`.
    one: Option<Case>,
}

impl Builder {
    fn expand(&mut self, parts: &[Part], groups: &Groups, text: &[u8]) -> Result<(), Error> {
        (self.all, self.one) = (Case::End, None);
        for part in parts {
            match part {
                Part::Text(text) => self.push(text),
                Part::Group(number) if *number >= groups.len() => {
                    let why = format!("invalid reference \\{number} on `s' command's RHS");
                    return Err(Error(why, 1));
                }
                Part::Group(number) => {
                    let range = groups.get(*number).unwrap_or_default();
                    self.push(text.get(range).unwrap_or_default());
                }
                Part::Case(one @ (Case::NextUpper | Case::NextLower)) => self.one = Some(*one),
                Part::Case(all) => (self.all, self.one) = (*all, None),
            }
        }
        Ok(())
    }

    fn push(&mut self, text: &[u8]) {
        if self.all == Case::End && self.one.is_none() {
            self.text.extend_from_slice(text);
            return;
        }
        for chunk in text.utf8_chunks() {
            for letter in chunk.valid().chars() {
                let letter = changed(letter, self.one.take().unwrap_or(self.all));
                self.text.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
            }
            self.text.extend_from_slice(chunk.invalid());
        }
    }
}

/// Converts the case of a letter. Returns it unchanged if the result is not a single character.
fn changed(letter: char, case: Case) -> char {
    let only = |mut letters: Box<dyn Iterator<Item = char>>| match (letters.next(), letters.next())
    {
        (Some(only), None) => only,
        _ => letter,
    };
    match case {
        Case::Upper | Case::NextUpper => only(Box::new(letter.to_uppercase())),
        Case::Lower | Case::NextLower => only(Box::new(letter.to_lowercase())),
        Case::End => letter,
    }
}
