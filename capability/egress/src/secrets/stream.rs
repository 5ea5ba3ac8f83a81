//! A text on its way in, cleaned of secrets piece by piece.
//!
//! Time is linear in the text, memory bounded: no more is held back than the longest spelling of a secret takes.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use super::automaton::{Automaton, Pattern, Set};
use super::escape::{ESCAPE_LIMIT, Escape, Spelled};

/// How many bytes are taken in before some are put out.
const PIECE: usize = 16 << 10;

/// An escape of which a beginning was read.
struct Open {
    start: usize,
    escape: Escape,
    /// How far the patterns had got where it begins.
    set: Set,
}

/// An escape that was read whole.
struct Edge {
    from: usize,
    to: usize,
    spelled: Spelled,
}

/// A part of the text that spells secrets.
#[derive(Clone, Copy, Debug)]
struct Found {
    start: usize,
    end: usize,
    /// The end of the match that names it: of those that begin first, the longest.
    named_to: usize,
    secret: usize,
    /// Its marker was put out.
    marked: bool,
}

/// Finds spellings in a text that comes in pieces. Positions are counted from the text's beginning.
pub(super) struct Search {
    automaton: Arc<Automaton>,
    /// The secrets that are looked for.
    wanted: Arc<[bool]>,
    /// The text from `base` on.
    held: Vec<u8>,
    base: usize,
    set: Set,
    /// Sets that nobody uses, all of them empty.
    spare: Vec<Set>,
    open: Vec<Open>,
    edges: VecDeque<Edge>,
    found: VecDeque<Found>,
    /// For each pattern, the end of its last match: the next one begins behind it.
    reset: Vec<usize>,
    /// No match under way that is not old begins before this.
    young_from: usize,
    /// No match under way begins before this.
    old_from: usize,
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
            found: VecDeque::new(),
            reset: vec![0; automaton.patterns().len()],
            young_from: 0,
            old_from: 0,
            work: 0,
            automaton,
            wanted,
        }
    }

    /// Takes in a piece, and puts out what can be no part of a secret any more.
    pub(super) fn push(&mut self, bytes: &[u8], markers: &[Vec<u8>], out: &mut Vec<u8>) {
        for piece in bytes.chunks(PIECE) {
            self.read(piece);
            self.put_out(self.settled(), markers, out);
        }
    }

    /// Puts out the rest.
    pub(super) fn finish(mut self, markers: &[Vec<u8>], out: &mut Vec<u8>) {
        self.end();
        self.put_out(self.position(), markers, out);
    }

    /// Returns the first secret that a whole text spells.
    pub(super) fn first(mut self, text: &[u8]) -> Option<usize> {
        for piece in text.chunks(PIECE) {
            self.read(piece);
            if let Some(found) = self.found.front() {
                return Some(found.secret);
            }
        }
        self.end();
        self.found.front().map(|found| found.secret)
    }

    /// Count of the words and bytes that were worked on so far.
    #[cfg(test)]
    pub(super) fn work(&self) -> usize {
        self.work
    }

    /// Count of the bytes that are held back.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.held.len()
    }

    fn position(&self) -> usize {
        self.base + self.held.len()
    }

    fn read(&mut self, piece: &[u8]) {
        for (at, byte) in piece.iter().enumerate() {
            let idle = self.set.active().is_empty() && self.open.is_empty();
            let begins = match piece.get(at + 1) {
                Some(next) => self.automaton.may_begin(*byte, *next),
                None => self.automaton.begins(*byte),
            };
            if idle && !begins && Escape::begun_by(*byte).is_none() {
                self.held.push(*byte);
                self.work += 1;
                self.young_from = self.position();
                continue;
            }
            self.read_byte(*byte);
        }
    }

    fn read_byte(&mut self, byte: u8) {
        let at = self.position();
        self.open.retain(|open| at - open.start < ESCAPE_LIMIT);
        // NUL is not a part of any spelling, and does not end one.
        let ended = if byte == 0 || self.open.is_empty() { Vec::new() } else { self.feed(byte, at) };
        let mut next = self.fresh();
        self.work += 1 + self.automaton.step(&self.set, byte, &mut next, |_| true);
        self.held.push(byte);
        for (open, spelled) in ended {
            self.follow(&open, spelled, at + 1, &mut next);
            self.spare(open.set);
        }
        if let Some(escape) = Escape::begun_by(byte) {
            let set = self.copy_of_set();
            self.open.push(Open { start: at, escape, set });
        }
        std::mem::swap(&mut self.set, &mut next);
        self.spare(next);
        self.accept(at + 1);
        self.keep_ages(at + 1);
    }

    /// Lets the open escapes read a byte. Those that end before it are followed, those that end with it returned.
    fn feed(&mut self, byte: u8, at: usize) -> Vec<(Open, Spelled)> {
        let mut ended = Vec::new();
        for mut open in std::mem::take(&mut self.open) {
            self.work += 1;
            let fed = open.escape.feed(byte);
            if let Some(spelled) = fed.before {
                self.follow_here(&open, spelled, at);
            }
            match (fed.with, fed.next) {
                (Some(spelled), Some(next)) => {
                    let (start, set) = (open.start, open.set.clone());
                    ended.push((open, spelled));
                    self.open.push(Open { start, escape: next, set });
                }
                (Some(spelled), None) => ended.push((open, spelled)),
                (None, Some(next)) => {
                    open.escape = next;
                    self.open.push(open);
                }
                (None, None) => self.spare(open.set),
            }
        }
        ended
    }

    /// Follows an escape that ends before the next byte.
    fn follow_here(&mut self, open: &Open, spelled: Spelled, at: usize) {
        let mut set = std::mem::take(&mut self.set);
        self.follow(open, spelled, at, &mut set);
        self.set = set;
        self.accept(at);
    }

    /// Adds to `to` what an escape makes of the set at its beginning; it ends before the position `end`.
    fn follow(&mut self, open: &Open, spelled: Spelled, end: usize, to: &mut Set) {
        let mut buffer = [0; 4];
        let bytes = spelled.bytes(&mut buffer);
        if open.set.active().is_empty() && !bytes.first().is_some_and(|byte| self.automaton.begins(*byte)) {
            return;
        }
        let mut from = self.fresh();
        from.add(&open.set, &self.automaton);
        for (at, byte) in bytes.iter().enumerate() {
            let mut next = self.fresh();
            let reset = &self.reset;
            let begins = |index: usize| at == 0 && reset.get(index).is_some_and(|reset| *reset <= open.start);
            self.work += 1 + self.automaton.step(&from, *byte, &mut next, begins);
            std::mem::swap(&mut from, &mut next);
            self.spare(next);
        }
        if !from.active().is_empty() {
            to.add(&from, &self.automaton);
            self.edges.push_back(Edge { from: open.start, to: end, spelled });
        }
        self.spare(from);
    }

    /// Returns an empty set with room for all patterns.
    fn fresh(&mut self) -> Set {
        self.spare.pop().unwrap_or_else(|| self.automaton.empty_set())
    }

    fn copy_of_set(&mut self) -> Set {
        if self.set.active().is_empty() {
            return Set::default();
        }
        let mut copy = self.fresh();
        copy.add(&self.set, &self.automaton);
        self.work += copy.active().len();
        copy
    }

    /// Takes a set that is not used any more.
    fn spare(&mut self, mut set: Set) {
        if set.has_room() {
            set.clear(&self.automaton);
            self.spare.push(set);
        }
    }

    /// Notes the patterns that end before the position `end`.
    fn accept(&mut self, end: usize) {
        let matched = self.automaton.matched(&self.set);
        if matched.is_empty() {
            return;
        }
        let automaton = Arc::clone(&self.automaton);
        for index in matched {
            let Some(pattern) = automaton.patterns().get(index) else { continue };
            let least = self.reset.get(index).copied().unwrap_or_default().max(self.base);
            let start = self.start_of(pattern, end, least);
            self.set.forget(index, &automaton);
            self.open.iter_mut().for_each(|open| open.set.forget(index, &automaton));
            self.reset.get_mut(index).into_iter().for_each(|reset| *reset = end);
            if self.wanted.get(pattern.secret).is_some_and(|wanted| *wanted)
                && let Some(start) = start
            {
                self.note(Found { start, end, named_to: end, secret: pattern.secret, marked: false });
            }
        }
    }

    /// Returns the first position, not before `least`, from which the text up to `end` can be read as the pattern.
    fn start_of(&mut self, pattern: &Pattern, end: usize, least: usize) -> Option<usize> {
        let mut reached: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); pattern.len() + 1];
        reached.last_mut()?.insert(end);
        for left in (1..=pattern.len()).rev() {
            let mut here: Vec<usize> = reached.get(left)?.iter().copied().collect();
            while let Some(position) = here.pop() {
                self.work += 1;
                let byte = position.checked_sub(self.base + 1).and_then(|before| self.held.get(before)).copied();
                for (from, bytes) in self.readings_to(position, byte) {
                    if from < least {
                        continue;
                    }
                    let between = left < pattern.len() && bytes.iter().all(|byte| pattern.ignores(*byte));
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

    /// The readings that end before a position: the byte there as it is, and the escapes.
    fn readings_to(&self, position: usize, byte: Option<u8>) -> Vec<(usize, Vec<u8>)> {
        let mut readings: Vec<(usize, Vec<u8>)> = byte.map(|byte| (position - 1, vec![byte])).into_iter().collect();
        let first = self.edges.partition_point(|edge| edge.to < position);
        for edge in self.edges.range(first..).take_while(|edge| edge.to == position) {
            readings.push((edge.from, edge.spelled.bytes(&mut [0; 4]).to_vec()));
        }
        readings
    }

    /// Joins a match with those that it overlaps.
    fn note(&mut self, mut new: Found) {
        while let Some(last) = self.found.pop_back_if(|last| new.start < last.end) {
            let leads = last.marked
                || (last.start, std::cmp::Reverse(last.named_to), last.secret)
                    <= (new.start, std::cmp::Reverse(new.named_to), new.secret);
            let (lead, other) = if leads { (last, new) } else { (new, last) };
            new = Found { end: lead.end.max(other.end), ..lead };
        }
        self.found.push_back(new);
    }

    /// Bounds how long a match may be under way, so that what is held back is bounded.
    fn keep_ages(&mut self, now: usize) {
        let from = self.open.first().map_or(now, |open| open.start);
        if self.set.active().is_empty() && self.open.iter().all(|open| open.set.active().is_empty()) {
            (self.young_from, self.old_from) = (from, from);
        } else if now - self.young_from >= self.automaton.span() {
            self.set.age(&self.automaton);
            self.open.iter_mut().for_each(|open| open.set.age(&self.automaton));
            (self.old_from, self.young_from) = (self.young_from, from);
        }
    }

    /// The position up to which nothing can become a part of a match any more.
    fn settled(&self) -> usize {
        let sets = || self.open.iter().map(|open| &open.set).chain([&self.set]);
        let from = if sets().any(|set| set.has_old(&self.automaton)) { self.old_from } else { self.young_from };
        from.min(self.open.first().map_or(from, |open| open.start)).clamp(self.base, self.position())
    }

    fn end(&mut self) {
        let at = self.position();
        for open in std::mem::take(&mut self.open) {
            if let Some(spelled) = open.escape.at_end() {
                self.follow_here(&open, spelled, at);
            }
        }
    }

    /// Puts out the text up to a position, with markers in place of what spells a secret.
    fn put_out(&mut self, until: usize, markers: &[Vec<u8>], out: &mut Vec<u8>) {
        let mut from = self.base;
        while let Some(mut found) = self.found.pop_front_if(|found| found.start < until) {
            out.extend_from_slice(self.text(from, found.start));
            if !found.marked {
                out.extend_from_slice(markers.get(found.secret).map(Vec::as_slice).unwrap_or_default());
            }
            from = found.end.min(until);
            if found.end > until {
                (found.start, found.marked) = (until, true);
                self.found.push_front(found);
                break;
            }
        }
        out.extend_from_slice(self.text(from, until));
        self.held.drain(..until - self.base);
        self.base = until;
        while self.edges.pop_front_if(|edge| edge.to <= until).is_some() {}
    }

    fn text(&self, from: usize, to: usize) -> &[u8] {
        self.held.get(from - self.base..to - self.base).unwrap_or_default()
    }
}
