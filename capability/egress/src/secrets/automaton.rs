//! A bit-parallel automaton that recognizes the spellings of secrets.
//!
//! A secret has five patterns: its bytes, its hex digits, and its base64 characters at the three
//! alignments that a secret can have within a longer text. Each byte of a pattern may be plain or
//! an escape ([`Escape`](super::escape::Escape)). The searched text is therefore treated as a graph
//! with an edge for each possible decoding of its bytes. A [`Set`] contains the progress of each
//! pattern at one position in the text. Advancing a set by one byte takes a bounded number of
//! operations on machine words, regardless of the text.

use std::iter::repeat;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

/// The encoding of a pattern. It determines which bytes may separate the pattern's characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    Plain,
    Base64,
    Hex,
}

impl Encoding {
    /// Returns true if the byte may be between two characters of a pattern. NUL is allowed in every
    /// pattern, because UTF-16 text contains one beside each ASCII character, and no secret
    /// contains one.
    fn ignores(self, byte: u8) -> bool {
        match (self, byte) {
            (_, 0) => true,
            (Encoding::Plain, _) => false,
            (Encoding::Base64, _) => byte.is_ascii_whitespace(),
            (Encoding::Hex, _) => {
                byte.is_ascii_whitespace() || matches!(byte, b':' | b'-' | b'.' | b',')
            }
        }
    }
}

/// A spelling of a secret. Each position accepts two bytes, which are usually the same.
#[derive(Debug)]
pub(super) struct Pattern {
    /// The index of the secret in the automaton.
    pub(super) secret: usize,
    encoding: Encoding,
    accepts: Vec<[u8; 2]>,
    /// The index of the pattern's first machine word in a set.
    offset: usize,
    /// The number of machine words that the pattern uses in a set.
    words: usize,
    /// The index of each byte's row in `rows`, plus one. The value is 0 if no position accepts the
    /// byte.
    row_of: Box<[u16; 256]>,
    /// Bit sets, one row for each byte that a position accepts. A set bit marks a position that
    /// accepts the row's byte.
    rows: Vec<u64>,
}

impl Pattern {
    fn new(secret: usize, encoding: Encoding, accepts: Vec<[u8; 2]>) -> Pattern {
        let words = accepts.len().div_ceil(64);
        let mut row_of = Box::new([0_u16; 256]);
        let mut rows: Vec<u64> = Vec::new();
        for (at, byte) in accepts
            .iter()
            .enumerate()
            .flat_map(|(at, both)| both.iter().map(move |byte| (at, *byte)))
        {
            let Some(row) = row_of.get_mut(usize::from(byte)) else { continue };
            if *row == 0 {
                rows.resize(rows.len() + words, 0);
                *row = u16::try_from(rows.len() / words).unwrap_or_default();
            }
            if let Some(word) = rows.get_mut((usize::from(*row) - 1) * words + at / 64) {
                *word |= 1 << (at % 64);
            }
        }
        Pattern { secret, encoding, accepts, offset: 0, words, row_of, rows }
    }

    /// Returns the number of positions.
    pub(super) fn len(&self) -> usize {
        self.accepts.len()
    }

    /// Returns true if the position accepts the byte.
    pub(super) fn accepts(&self, position: usize, byte: u8) -> bool {
        self.accepts.get(position).is_some_and(|both| both.contains(&byte))
    }

    /// Returns true if the byte may be between two positions.
    pub(super) fn ignores(&self, byte: u8) -> bool {
        self.encoding.ignores(byte)
    }

    fn row(&self, byte: u8) -> Option<&[u64]> {
        let row = usize::from(*self.row_of.get(usize::from(byte))?).checked_sub(1)?;
        self.rows.get(row * self.words..(row + 1) * self.words)
    }

    fn range(&self) -> std::ops::Range<usize> {
        self.offset..self.offset + self.words
    }
}

/// Returns the patterns of a secret's value. `secret` is the index of the secret.
fn patterns(secret: usize, value: &str) -> Vec<Pattern> {
    let plain = value.bytes().map(|byte| [byte, if byte == b' ' { b'+' } else { byte }]).collect();
    let hex = value.bytes().flat_map(|byte| [byte >> 4, byte & 15]).filter_map(|digit| {
        let digit =
            char::from_digit(digit.into(), 16).and_then(|digit| u8::try_from(digit).ok())?;
        Some([digit, digit.to_ascii_uppercase()])
    });
    let mut all = vec![
        Pattern::new(secret, Encoding::Plain, plain),
        Pattern::new(secret, Encoding::Hex, hex.collect()),
    ];
    all.extend((0..3).map(|shift| {
        let letters =
            inner_base64(value, shift).into_bytes().into_iter().map(|letter| match letter {
                b'+' => [letter, b'-'],
                b'/' => [letter, b'_'],
                _ => [letter, letter],
            });
        Pattern::new(secret, Encoding::Base64, letters.collect())
    }));
    all
}

/// Returns the base64 characters that depend on the value alone if `shift` bytes (modulo 3) precede
/// the value.
fn inner_base64(value: &str, shift: usize) -> String {
    let mut bytes = vec![0; shift];
    bytes.extend_from_slice(value.as_bytes());
    let (from, to) = ((8 * shift).div_ceil(6), 8 * bytes.len() / 6);
    STANDARD_NO_PAD.encode(&bytes).get(from..to).unwrap_or_default().to_owned()
}

/// The progress of each pattern at one position in a string. Bit `k` of a pattern is set if a match
/// of its first `k + 1` positions can end here.
#[derive(Clone, Debug, Default)]
pub(super) struct Set {
    /// The bits of all patterns, one pattern after another.
    all: Vec<u64>,
    /// The bits of matches that started before the last call to [`Set::age`].
    old: Vec<u64>,
    /// The indexes of the patterns with at least one bit set.
    active: Vec<usize>,
}

impl Set {
    /// Returns the indexes of the patterns that have at least one bit set.
    pub(super) fn active(&self) -> &[usize] {
        &self.active
    }

    /// Returns true if memory for the bits of all patterns is allocated.
    pub(super) fn has_room(&self) -> bool {
        !self.all.is_empty()
    }

    /// Returns true if an unfinished match started before the last call to [`Set::age`].
    pub(super) fn has_old(&self, automaton: &Automaton) -> bool {
        let words = self.active.iter().filter_map(|pattern| automaton.patterns.get(*pattern));
        words.flat_map(|pattern| self.old.get(pattern.range())).flatten().any(|word| *word != 0)
    }

    /// Removes the unfinished matches that are marked as old and marks the others as old.
    pub(super) fn age(&mut self, automaton: &Automaton) {
        let Set { all, old, active } = self;
        active.retain(|pattern| {
            let range = automaton.patterns.get(*pattern).map(Pattern::range).unwrap_or_default();
            let (Some(all), Some(old)) = (all.get_mut(range.clone()), old.get_mut(range)) else {
                return false;
            };
            for (all, old) in all.iter_mut().zip(old) {
                *all &= !*old;
                *old = *all;
            }
            all.iter().any(|word| *word != 0)
        });
    }

    /// Removes the matches of a pattern.
    pub(super) fn remove(&mut self, pattern: usize, automaton: &Automaton) {
        if let Some(at) = self.active.iter().position(|active| *active == pattern) {
            self.active.swap_remove(at);
            self.zero(pattern, automaton);
        }
    }

    /// Removes all matches.
    pub(super) fn clear(&mut self, automaton: &Automaton) {
        while let Some(pattern) = self.active.pop() {
            self.zero(pattern, automaton);
        }
    }

    fn zero(&mut self, pattern: usize, automaton: &Automaton) {
        let Some(range) = automaton.patterns.get(pattern).map(Pattern::range) else { return };
        for words in
            [self.all.get_mut(range.clone()), self.old.get_mut(range)].into_iter().flatten()
        {
            words.fill(0);
        }
    }

    /// Adds the bits of another set.
    pub(super) fn add(&mut self, other: &Set, automaton: &Automaton) {
        for index in &other.active {
            let Some(range) = automaton.patterns.get(*index).map(Pattern::range) else { continue };
            for (to, from) in [(&mut self.all, &other.all), (&mut self.old, &other.old)] {
                let words = to.get_mut(range.clone()).into_iter().flatten();
                words
                    .zip(from.get(range.clone()).into_iter().flatten())
                    .for_each(|(to, from)| *to |= from);
            }
            if !self.active.contains(index) {
                self.active.push(*index);
            }
        }
    }
}

/// An automaton that recognizes the patterns of a list of secrets.
#[derive(Debug)]
pub(super) struct Automaton {
    patterns: Vec<Pattern>,
    /// For each byte, the patterns that start with it.
    starts: Vec<Vec<usize>>,
    /// A bit for each pair of bytes, which is set if a match may start with the pair. For most
    /// inputs, this table saves most of the work.
    pairs: Vec<u64>,
    /// The number of machine words in a set.
    words: usize,
    /// Maximum length of a spelling, in bytes.
    max_span: usize,
}

impl Automaton {
    pub(super) fn new<'a>(values: impl IntoIterator<Item = &'a str>) -> Automaton {
        let mut all: Vec<Pattern> = values
            .into_iter()
            .enumerate()
            .flat_map(|(secret, value)| patterns(secret, value))
            .collect();
        let mut starts = vec![Vec::new(); 256];
        let mut words = 0;
        for (index, pattern) in all.iter_mut().enumerate() {
            pattern.offset = words;
            words += pattern.words;
            let mut first = pattern.accepts.first().map(|both| both.to_vec()).unwrap_or_default();
            first.dedup();
            for byte in first {
                starts
                    .get_mut(usize::from(byte))
                    .into_iter()
                    .for_each(|list: &mut Vec<usize>| list.push(index));
            }
        }
        let mut pairs = vec![0_u64; 256 * 256 / 64];
        for pattern in &all {
            for first in pattern.accepts.first().into_iter().flatten() {
                let continues = |byte: &u8| {
                    pattern.accepts(1, *byte) || pattern.ignores(*byte) || b"%&\\".contains(byte)
                };
                for second in (0..=u8::MAX).filter(continues) {
                    let pair = usize::from(*first) * 256 + usize::from(second);
                    pairs.get_mut(pair / 64).into_iter().for_each(|word| *word |= 1 << (pair % 64));
                }
            }
        }
        let longest = all.iter().map(Pattern::len).max().unwrap_or_default();
        Automaton { patterns: all, starts, pairs, words, max_span: 1024 + 64 * longest }
    }

    /// Returns true if there are no secrets.
    pub(super) fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    pub(super) fn patterns(&self) -> &[Pattern] {
        &self.patterns
    }

    /// Returns the maximum length of a recognized spelling, in bytes.
    pub(super) fn max_span(&self) -> usize {
        self.max_span
    }

    pub(super) fn empty_set(&self) -> Set {
        Set { all: vec![0; self.words], old: vec![0; self.words], active: Vec::new() }
    }

    /// Returns true if a pattern starts with the byte.
    pub(super) fn begins(&self, byte: u8) -> bool {
        self.starts.get(usize::from(byte)).is_some_and(|patterns| !patterns.is_empty())
    }

    /// Returns false if no match can start with the bytes `first` and `second`.
    pub(super) fn may_begin(&self, first: u8, second: u8) -> bool {
        let pair = usize::from(first) * 256 + usize::from(second);
        self.pairs.get(pair / 64).is_some_and(|word| word >> (pair % 64) & 1 == 1)
    }

    /// Advances the matches of `from` by a byte and adds them to `to`. A pattern may start with the
    /// byte if `begins` returns true for the pattern's index. Returns the number of machine words
    /// that were processed.
    pub(super) fn step(
        &self,
        from: &Set,
        byte: u8,
        to: &mut Set,
        begins: impl Fn(usize) -> bool,
    ) -> usize {
        let new = self.starts.get(usize::from(byte)).map(Vec::as_slice).unwrap_or_default();
        let new = new.iter().copied().filter(|index| begins(*index));
        let mut work = 0;
        for index in
            from.active.iter().copied().filter(|index| !new.clone().any(|new| new == *index))
        {
            work += self.advance(index, from, byte, to, false);
        }
        for index in new.clone() {
            work += self.advance(index, from, byte, to, true);
        }
        work
    }

    fn advance<'s>(
        &self,
        index: usize,
        from: &'s Set,
        byte: u8,
        to: &mut Set,
        begin: bool,
    ) -> usize {
        let Some(pattern) = self.patterns.get(index) else { return 0 };
        let range = pattern.range();
        let row = pattern.row(byte);
        let ignored = pattern.ignores(byte);
        if row.is_none() && !ignored {
            return 1;
        }
        let (Some(to_all), Some(to_old)) =
            (to.all.get_mut(range.clone()), to.old.get_mut(range.clone()))
        else {
            return 1;
        };
        // A set that was never written has no words.
        let words_of = |words: &'s [u64]| {
            words.get(range.clone()).unwrap_or_default().iter().copied().chain(repeat(0))
        };
        let from = words_of(&from.all).zip(words_of(&from.old));
        let (mut carry_all, mut carry_old) = (u64::from(begin), 0);
        let mut any = false;
        for (at, ((to_all, to_old), (all, old))) in
            to_all.iter_mut().zip(to_old).zip(from).enumerate()
        {
            let accepted = row.and_then(|row| row.get(at)).copied().unwrap_or_default();
            let ignore = if ignored { u64::MAX } else { 0 };
            *to_all |= ((all << 1 | carry_all) & accepted) | (all & ignore);
            *to_old |= ((old << 1 | carry_old) & accepted) | (old & ignore);
            (carry_all, carry_old) = (all >> 63, old >> 63);
            any |= *to_all != 0;
        }
        if any && !to.active.contains(&index) {
            to.active.push(index);
        }
        pattern.words
    }

    /// Returns the indexes of the patterns that are completely matched in a set.
    pub(super) fn matched(&self, set: &Set) -> Vec<usize> {
        let whole = |index: &usize| {
            let Some(pattern) = self.patterns.get(*index) else { return false };
            let last = pattern.len() - 1;
            set.all.get(pattern.offset + last / 64).is_some_and(|word| word >> (last % 64) & 1 == 1)
        };
        let mut matched = Vec::new();
        matched.extend(set.active.iter().copied().filter(whole));
        matched.sort_unstable();
        matched
    }
}
