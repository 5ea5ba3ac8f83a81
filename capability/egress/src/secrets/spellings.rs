//! The spellings of some secrets, ready to be found in texts and taken out of them.

use std::sync::Arc;

use super::automaton::Automaton;
use super::stream::Search;
use crate::{HeaderMap, HeaderValue};

/// The spellings of some secrets: raw, escaped byte by byte in any mix (`%2F`, `&#x2f;`, `&sol;`, `\u002f`, `\/`), in base64 at any
/// place of a longer text and in hex, these with white space inside.
#[derive(Debug)]
pub(super) struct Spellings {
    automaton: Arc<Automaton>,
    /// For each secret, what replaces it.
    markers: Arc<[Vec<u8>]>,
}

impl Spellings {
    /// Prepares the search for values with these names.
    pub(super) fn new<'a>(secrets: impl Iterator<Item = (&'a str, &'a str)> + Clone) -> Spellings {
        let marker = |(name, _): (&str, &str)| format!("${{secret:{name}}}").into_bytes();
        let automaton = Automaton::new(secrets.clone().map(|(_, value)| value));
        Spellings { automaton: Arc::new(automaton), markers: secrets.map(marker).collect() }
    }

    /// Returns the number of the first secret that a text spells.
    pub(super) fn find(&self, text: &[u8]) -> Option<usize> {
        if self.automaton.is_empty() {
            return None;
        }
        Search::new(Arc::clone(&self.automaton), self.all()).first(text)
    }

    /// Returns what cleans a text of all of them.
    pub(super) fn cleaner(&self) -> Cleaner {
        self.cleaner_of(self.all())
    }

    /// Returns what cleans a text of those whose flag is set.
    pub(super) fn cleaner_of(&self, wanted: Arc<[bool]>) -> Cleaner {
        let idle = self.automaton.is_empty() || !wanted.contains(&true);
        let parts = (Arc::clone(&self.automaton), wanted);
        Cleaner { parts: (!idle).then_some(parts), markers: Arc::clone(&self.markers) }
    }

    fn all(&self) -> Arc<[bool]> {
        vec![true; self.markers.len()].into()
    }
}

/// Takes secrets out of texts; a reference takes the place of each. The rest of a text is kept byte for byte.
#[derive(Clone, Debug)]
pub struct Cleaner {
    /// `None` if there is nothing to look for.
    parts: Option<(Arc<Automaton>, Arc<[bool]>)>,
    markers: Arc<[Vec<u8>]>,
}

impl Cleaner {
    /// Returns a cleaner that changes nothing.
    pub fn idle() -> Cleaner {
        Cleaner { parts: None, markers: Arc::from([]) }
    }

    /// Cleans a whole text.
    pub fn clean(&self, text: Vec<u8>) -> Vec<u8> {
        if self.parts.is_none() {
            return text;
        }
        let mut stream = self.stream();
        let mut clean = Vec::with_capacity(text.len());
        stream.push(&text, &mut clean);
        stream.finish(&mut clean);
        clean
    }

    /// Cleans a whole text that is UTF-8.
    pub fn clean_text(&self, text: &str) -> String {
        match self.parts {
            None => text.to_owned(),
            Some(_) => String::from_utf8_lossy(&self.clean(text.as_bytes().to_vec())).into_owned(),
        }
    }

    /// Cleans the values of headers.
    pub fn clean_headers(&self, headers: &mut HeaderMap) {
        if self.parts.is_none() {
            return;
        }
        for value in headers.values_mut() {
            // A name takes the place of the value, which every header can carry.
            if let Ok(clean) = HeaderValue::from_bytes(&self.clean(value.as_bytes().to_vec())) {
                *value = clean;
            }
        }
    }

    /// Returns what cleans a text that comes in pieces.
    pub fn stream(&self) -> CleanStream {
        let search =
            self.parts.as_ref().map(|(automaton, wanted)| Search::new(Arc::clone(automaton), Arc::clone(wanted)));
        CleanStream { search, markers: Arc::clone(&self.markers) }
    }
}

/// Cleans a text piece by piece, and holds back what may be the beginning of a secret.
pub struct CleanStream {
    search: Option<Search>,
    markers: Arc<[Vec<u8>]>,
}

impl CleanStream {
    /// Takes in a piece and appends what is clean to `out`.
    pub fn push(&mut self, piece: &[u8], out: &mut Vec<u8>) {
        match &mut self.search {
            Some(search) => search.push(piece, &self.markers, out),
            None => out.extend_from_slice(piece),
        }
    }

    /// Appends the rest to `out`. A further call appends nothing.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        if let Some(search) = self.search.take() {
            search.finish(&self.markers, out);
        }
    }
}

impl std::fmt::Debug for CleanStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CleanStream").finish_non_exhaustive()
    }
}
