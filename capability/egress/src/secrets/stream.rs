//! The search for secrets in a string that arrives in pieces.
//!
//! The search takes linear time and bounded memory: it holds back at most the longest spelling of a
//! secret.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use super::automaton::{Automaton, Pattern, Set};
use super::escape::{Escape, MAX_ESCAPE, Unescaped};

/// Maximum number of bytes that are searched at a time. After each piece, the bytes that cannot be
/// part of a secret are output.
const MAX_PIECE: usize = 16 << 10;

/// An incomplete escape.
struct OpenEscape {
    start: usize,
    escape: Escape,
    /// The progress of the patterns at the start of the escape.
    set: Set,
}

/// A complete escape.
struct Edge {
    from: usize,
    to: usize,
    unescaped: Unescaped,
}

/// Leading zeros of an escape that are left out of the text that is held back.
struct SkippedZeros {
    /// The position of the zero that precedes the skipped zeros.
    after: usize,
    count: usize,
}

/// A range of the text that contains a secret or several overlapping secrets.
#[derive(Clone, Copy, Debug)]
struct Match {
    start: usize,
    end: usize,
    /// The end of the match that determines `secret`. That is the match that starts first or, among
    /// several with the same start, the longest one.
    leading_end: usize,
    secret: usize,
    /// If true, the reference that replaces this range has already been output.
    replaced: bool,
}

/// A search for secrets in a string that arrives in pieces. Positions are relative to the start of
/// the text and do not count skipped zeros.
pub(super) struct Search {
    automaton: Arc<Automaton>,
    /// For each secret, true if it is replaced.
    wanted: Arc<[bool]>,
    /// The text that is held back. It starts at the position `base`.
    held: Vec<u8>,
    base: usize,
    set: Set,
    /// Empty sets for reuse.
    spare: Vec<Set>,
    open: Vec<OpenEscape>,
    edges: VecDeque<Edge>,
    zeros: VecDeque<SkippedZeros>,
    matches: VecDeque<Match>,
    /// For each pattern, the end of its last match. The next match starts after it.
    last_end: Vec<usize>,
    /// The earliest possible start of an unfinished match that is not marked as old. See
    /// [`Set::age`].
    young_from: usize,
    /// The earliest possible start of any unfinished match.
    old_from: usize,
    /// The work done so far: the number of bytes read plus the number of machine words updated.
    work: usize,
}

impl Search {
    pub(super) fn new(automaton: Arc<Automaton>, wanted: Arc<[bool]>) -> Search {
        Search {
            held: Vec::new(),
            base: 0,
            set: automaton.empty_set(),
            spare: Vec::new(),
            open: Vec::new(),
            edges: VecDeque::new(),
            zeros: VecDeque::new(),
            matches: VecDeque::new(),
            last_end: vec![0; automaton.patterns().len()],
            young_from: 0,
            old_from: 0,
            work: 0,
            automaton,
            wanted,
        }
    }

    /// Reads a piece of the string and outputs the bytes that cannot be part of a secret.
    pub(super) fn push(&mut self, bytes: &[u8], markers: &[Vec<u8>], out: &mut Vec<u8>) {
        for piece in bytes.chunks(MAX_PIECE) {
            self.read(piece);
            self.output(self.settled_end(), markers, out);
        }
    }

    /// Outputs the remaining bytes.
    pub(super) fn finish(mut self, markers: &[Vec<u8>], out: &mut Vec<u8>) {
        self.end();
        self.output(self.position(), markers, out);
    }

    /// Searches the concatenation of `parts`. Returns the index of the secret that matches first,
    /// or `None` if there is no match.
    pub(super) fn first<'a>(mut self, parts: impl IntoIterator<Item = &'a [u8]>) -> Option<usize> {
        let mut settled = Vec::new();
        for piece in parts.into_iter().flat_map(|part| part.chunks(MAX_PIECE)) {
            self.read(piece);
            if let Some(found) = self.matches.front() {
                return Some(found.secret);
            }
            self.output(self.settled_end(), &[], &mut settled);
            settled.clear();
        }
        self.end();
        self.matches.front().map(|found| found.secret)
    }

    /// Returns the number of machine words and bytes processed so far.
    #[cfg(test)]
    pub(super) fn work(&self) -> usize {
        self.work
    }

    /// Returns the number of bytes that are held back.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.held.len()
    }

    fn position(&self) -> usize {
        self.base + self.held.len()
    }

    fn read(&mut self, piece: &[u8]) {
        for (at, byte) in piece.iter().enumerate() {
            if self.skip_zero(*byte) {
                continue;
            }
            let idle = self.set.active().is_empty() && self.open.is_empty();
            let begins = match piece.get(at + 1) {
                Some(next) => self.automaton.may_begin(*byte, *next),
                None => self.automaton.begins(*byte),
            };
            if idle && !begins && Escape::start(*byte).is_none() {
                self.held.push(*byte);
                self.work += 1;
                self.young_from = self.position();
                continue;
            }
            self.read_byte(*byte);
        }
    }

    /// Skips a leading zero that changes nothing, so that the length of a spelling and the memory
    /// for it are bounded, regardless of the number of zeros. Returns false if the byte must be
    /// read.
    fn skip_zero(&mut self, byte: u8) -> bool {
        if byte != b'0' || !self.open.iter().any(|open| open.escape.ignores_zeros()) {
            return false;
        }
        self.work += 1;
        let after = self.position() - 1;
        match self.zeros.back_mut() {
            Some(last) if last.after == after => last.count += 1,
            _ => self.zeros.push_back(SkippedZeros { after, count: 1 }),
        }
        true
    }

    fn read_byte(&mut self, byte: u8) {
        let at = self.position();
        self.open.retain(|open| at - open.start < MAX_ESCAPE);
        // A NUL is not part of any escape and does not end one.
        let ended = if byte == 0 || self.open.is_empty() {
            Vec::new()
        } else {
            self.step_escapes(byte, at)
        };
        let mut next = self.empty_set();
        self.work += 1 + self.automaton.step(&self.set, byte, &mut next, |_| true);
        self.held.push(byte);
        for (open, unescaped) in ended {
            self.follow(&open, unescaped, at + 1, &mut next);
            self.recycle(open.set);
        }
        if let Some(escape) = Escape::start(byte) {
            let set = self.copy_of_set();
            self.open.push(OpenEscape { start: at, escape, set });
        }
        std::mem::swap(&mut self.set, &mut next);
        self.recycle(next);
        self.accept(at + 1);
        self.limit_unfinished(at + 1);
    }

    /// Processes a byte in all open escapes. Advances the current set by the escapes that end
    /// before the byte. Returns the escapes that end with the byte.
    fn step_escapes(&mut self, byte: u8, at: usize) -> Vec<(OpenEscape, Unescaped)> {
        let mut ended = Vec::new();
        for mut open in std::mem::take(&mut self.open) {
            self.work += 1;
            let step = open.escape.step(byte);
            if let Some(unescaped) = step.before {
                self.follow_here(&open, unescaped, at);
            }
            match (step.with, step.next) {
                (Some(unescaped), Some(next)) => {
                    let start = open.start;
                    let set = open.set.clone();
                    ended.push((open, unescaped));
                    self.open.push(OpenEscape { start, escape: next, set });
                }
                (Some(unescaped), None) => ended.push((open, unescaped)),
                (None, Some(next)) => {
                    open.escape = next;
                    self.open.push(open);
                }
                (None, None) => self.recycle(open.set),
            }
        }
        ended
    }

    /// Advances the current set by an escape that ended just before the position `at`. Records the
    /// matches that end there.
    fn follow_here(&mut self, open: &OpenEscape, unescaped: Unescaped, at: usize) {
        let mut set = std::mem::take(&mut self.set);
        self.follow(open, unescaped, at, &mut set);
        self.set = set;
        self.accept(at);
    }

    /// Advances the set at the start of an escape by the value of the escape, and by each part of
    /// the value that may belong to a secret. Adds the results to `to`. The escape ends before the
    /// position `end`.
    fn follow(&mut self, open: &OpenEscape, unescaped: Unescaped, end: usize, to: &mut Set) {
        for part in unescaped.parts() {
            self.follow_part(open, part, end, to);
        }
    }

    fn follow_part(&mut self, open: &OpenEscape, unescaped: Unescaped, end: usize, to: &mut Set) {
        let mut buffer = [0; 4];
        let bytes = unescaped.bytes(&mut buffer);
        if open.set.active().is_empty()
            && !bytes.first().is_some_and(|byte| self.automaton.begins(*byte))
        {
            return;
        }
        let mut from = self.empty_set();
        from.add(&open.set, &self.automaton);
        for (at, byte) in bytes.iter().enumerate() {
            let mut next = self.empty_set();
            let last_end = &self.last_end;
            let begins =
                |index: usize| at == 0 && last_end.get(index).is_some_and(|end| *end <= open.start);
            self.work += 1 + self.automaton.step(&from, *byte, &mut next, begins);
            std::mem::swap(&mut from, &mut next);
            self.recycle(next);
        }
        if !from.active().is_empty() {
            to.add(&from, &self.automaton);
            self.edges.push_back(Edge { from: open.start, to: end, unescaped });
        }
        self.recycle(from);
    }

    /// Returns an empty set that has memory for all patterns.
    fn empty_set(&mut self) -> Set {
        self.spare.pop().unwrap_or_else(|| self.automaton.empty_set())
    }

    fn copy_of_set(&mut self) -> Set {
        if self.set.active().is_empty() {
            return Set::default();
        }
        let mut copy = self.empty_set();
        copy.add(&self.set, &self.automaton);
        self.work += copy.active().len();
        copy
    }

    /// Keeps a set for reuse.
    fn recycle(&mut self, mut set: Set) {
        if set.has_room() {
            set.clear(&self.automaton);
            self.spare.push(set);
        }
    }

    /// Records the matches that end before the position `end`.
    fn accept(&mut self, end: usize) {
        let matched = self.automaton.matched(&self.set);
        if matched.is_empty() {
            return;
        }
        let automaton = Arc::clone(&self.automaton);
        for index in matched {
            let Some(pattern) = automaton.patterns().get(index) else { continue };
            let min_start = self.last_end.get(index).copied().unwrap_or_default().max(self.base);
            let start = self.start_of(pattern, end, min_start);
            self.set.remove(index, &automaton);
            self.open.iter_mut().for_each(|open| open.set.remove(index, &automaton));
            self.last_end.get_mut(index).into_iter().for_each(|last| *last = end);
            if self.wanted.get(pattern.secret).is_some_and(|wanted| *wanted)
                && let Some(start) = start
            {
                self.record(Match {
                    start,
                    end,
                    leading_end: end,
                    secret: pattern.secret,
                    replaced: false,
                });
            }
        }
    }

    /// Returns the first position, at or after `min_start`, where a match of `pattern` that ends at
    /// `end` can start, or `None` if there is no such position.
    fn start_of(&mut self, pattern: &Pattern, end: usize, min_start: usize) -> Option<usize> {
        let mut reached: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); pattern.len() + 1];
        reached.last_mut()?.insert(end);
        for left in (1..=pattern.len()).rev() {
            let mut here: Vec<usize> = reached.get(left)?.iter().copied().collect();
            while let Some(position) = here.pop() {
                self.work += 1;
                let byte = position
                    .checked_sub(self.base + 1)
                    .and_then(|before| self.held.get(before))
                    .copied();
                for (from, bytes) in self.readings_to(position, byte) {
                    if from < min_start {
                        continue;
                    }
                    let between =
                        left < pattern.len() && bytes.iter().all(|byte| pattern.ignores(*byte));
                    if between && reached.get_mut(left)?.insert(from) {
                        here.push(from);
                    }
                    let Some(to) = left.checked_sub(bytes.len()) else { continue };
                    if bytes.iter().enumerate().all(|(at, byte)| pattern.accepts(to + at, *byte)) {
                        reached.get_mut(to)?.insert(from);
                    }
                }
            }
        }
        reached.first()?.first().copied()
    }

    /// Returns the possible decodings of the input just before `position`, each with its start and
    /// its bytes: the literal byte, and every complete escape that ends there.
    fn readings_to(&self, position: usize, byte: Option<u8>) -> Vec<(usize, Vec<u8>)> {
        let mut readings: Vec<(usize, Vec<u8>)> =
            byte.map(|byte| (position - 1, vec![byte])).into_iter().collect();
        let first = self.edges.partition_point(|edge| edge.to < position);
        for edge in self.edges.range(first..).take_while(|edge| edge.to == position) {
            readings.push((edge.from, edge.unescaped.bytes(&mut [0; 4]).to_vec()));
        }
        readings
    }

    /// Adds a match and merges it with the matches that it overlaps.
    fn record(&mut self, mut new: Match) {
        while let Some(last) = self.matches.pop_back_if(|last| new.start < last.end) {
            let leads = last.replaced
                || (last.start, std::cmp::Reverse(last.leading_end), last.secret)
                    <= (new.start, std::cmp::Reverse(new.leading_end), new.secret);
            let (lead, other) = if leads { (last, new) } else { (new, last) };
            new = Match { end: lead.end.max(other.end), ..lead };
        }
        self.matches.push_back(new);
    }

    /// Limits the length of unfinished matches, so that the number of bytes held back is bounded.
    fn limit_unfinished(&mut self, now: usize) {
        let from = self.open.first().map_or(now, |open| open.start);
        if self.set.active().is_empty() && self.open.iter().all(|open| open.set.active().is_empty())
        {
            (self.young_from, self.old_from) = (from, from);
        } else if now - self.young_from >= self.automaton.max_span() {
            self.set.age(&self.automaton);
            self.open.iter_mut().for_each(|open| open.set.age(&self.automaton));
            (self.old_from, self.young_from) = (self.young_from, from);
        }
    }

    /// Returns the position before which no byte can become part of a match.
    fn settled_end(&self) -> usize {
        let sets = || self.open.iter().map(|open| &open.set).chain([&self.set]);
        let from = if sets().any(|set| set.has_old(&self.automaton)) {
            self.old_from
        } else {
            self.young_from
        };
        from.min(self.open.first().map_or(from, |open| open.start))
            .clamp(self.base, self.position())
    }

    fn end(&mut self) {
        let at = self.position();
        for open in std::mem::take(&mut self.open) {
            if let Some(unescaped) = open.escape.at_end() {
                self.follow_here(&open, unescaped, at);
            }
        }
    }

    /// Outputs the text up to a position, with references in place of secrets.
    fn output(&mut self, until: usize, markers: &[Vec<u8>], out: &mut Vec<u8>) {
        let mut from = self.base;
        while let Some(mut found) = self.matches.pop_front_if(|found| found.start < until) {
            self.copy(from, found.start, out);
            if !found.replaced {
                out.extend_from_slice(
                    markers.get(found.secret).map(Vec::as_slice).unwrap_or_default(),
                );
            }
            from = found.end.min(until);
            if found.end > until {
                (found.start, found.replaced) = (until, true);
                self.matches.push_front(found);
                break;
            }
        }
        self.copy(from, until, out);
        self.held.drain(..until - self.base);
        self.base = until;
        while self.edges.pop_front_if(|edge| edge.to <= until).is_some() {}
    }

    /// Outputs a range of the text with its skipped zeros. Drops the skipped zeros before the
    /// range, which belong to secrets.
    fn copy(&mut self, mut from: usize, to: usize, out: &mut Vec<u8>) {
        while let Some(zeros) = self.zeros.pop_front_if(|zeros| zeros.after < to) {
            if zeros.after >= from {
                out.extend_from_slice(self.text(from, zeros.after + 1));
                out.resize(out.len() + zeros.count, b'0');
                from = zeros.after + 1;
            }
        }
        out.extend_from_slice(self.text(from, to));
    }

    fn text(&self, from: usize, to: usize) -> &[u8] {
        self.held.get(from - self.base..to - self.base).unwrap_or_default()
    }
}
