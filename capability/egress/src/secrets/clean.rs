//! The search for secrets in every spelling, and their replacement with references.

use std::fmt;
use std::sync::Arc;

use super::automaton::Automaton;
use super::stream::Search;
use crate::client::{HeaderMap, HeaderName, HeaderValue};

/// Returns the reference to a secret.
pub(super) fn reference(name: &str) -> String {
    format!("${{secret:{name}}}")
}

/// The spellings of a list of secrets: plain, with any bytes escaped (`%2F`, `&#x2f;`, `&sol;`,
/// `\u002f`, `\2f`, `\/`), in base64 at any position in a longer text, and in hex. Base64 and hex
/// may contain whitespace.
#[derive(Debug)]
pub(super) struct Spellings {
    automaton: Arc<Automaton>,
    lowercase: Lowercase,
    /// For each secret, the reference that replaces it.
    markers: Arc<[Vec<u8>]>,
}

impl Spellings {
    /// Prepares the search for secrets, given as pairs of a name and a value. Each secret is
    /// replaced with its reference.
    pub(super) fn new<'a>(secrets: impl Iterator<Item = (&'a str, &'a str)> + Clone) -> Spellings {
        let markers = secrets.clone().map(|(name, _)| reference(name).into_bytes()).collect();
        Spellings::marked(markers, secrets.map(|(_, value)| value))
    }

    /// Prepares the search for values. Each value is replaced with the marker that has the same
    /// index.
    pub(super) fn marked<'a>(
        markers: Arc<[Vec<u8>]>,
        values: impl Iterator<Item = &'a str>,
    ) -> Spellings {
        let values: Vec<&str> = values.collect();
        let lowercase = Lowercase(values.iter().map(|value| value.to_ascii_lowercase()).collect());
        Spellings { automaton: Arc::new(Automaton::new(values)), lowercase, markers }
    }

    /// Searches the concatenation of `parts`. Returns the index of the secret that matches first,
    /// or `None` if there is no match.
    pub(super) fn find<'a>(&self, parts: impl IntoIterator<Item = &'a [u8]>) -> Option<usize> {
        if self.automaton.is_empty() {
            return None;
        }
        Search::new(Arc::clone(&self.automaton), self.all()).first(parts)
    }

    /// Returns a cleaner for all secrets.
    pub(super) fn cleaner(&self) -> Cleaner {
        self.cleaner_of(self.all())
    }

    /// Returns a cleaner for the secrets whose flag in `wanted` is true.
    pub(super) fn cleaner_of(&self, wanted: Arc<[bool]>) -> Cleaner {
        let idle = self.automaton.is_empty() || !wanted.contains(&true);
        let parts = (Arc::clone(&self.automaton), wanted);
        Cleaner {
            parts: (!idle).then_some(parts),
            lowercase: self.lowercase.clone(),
            markers: Arc::clone(&self.markers),
        }
    }

    fn all(&self) -> Arc<[bool]> {
        vec![true; self.markers.len()].into()
    }
}

/// The values of secrets in lowercase. They are searched for in the names of headers, which the
/// HTTP library stores in lowercase.
#[derive(Clone, Default)]
struct Lowercase(Arc<[String]>);

impl Lowercase {
    /// Returns true if the name contains a value whose flag in `wanted` is true.
    fn is_in(&self, name: &str, wanted: &[bool]) -> bool {
        self.0.iter().zip(wanted).any(|(value, wanted)| *wanted && name.contains(value.as_str()))
    }
}

impl fmt::Debug for Lowercase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lowercase").finish_non_exhaustive()
    }
}

/// A filter that replaces secrets with references and leaves all other bytes unchanged.
#[derive(Clone, Debug)]
pub(crate) struct Cleaner {
    /// The automaton and, for each secret, true if it is replaced. `None` if no secret is replaced.
    parts: Option<(Arc<Automaton>, Arc<[bool]>)>,
    lowercase: Lowercase,
    markers: Arc<[Vec<u8>]>,
}

impl Cleaner {
    /// Returns a cleaner that changes nothing.
    pub(crate) fn idle() -> Cleaner {
        Cleaner { parts: None, lowercase: Lowercase::default(), markers: Arc::from([]) }
    }

    /// Cleans a complete byte string.
    pub(crate) fn clean(&self, text: Vec<u8>) -> Vec<u8> {
        if self.parts.is_none() {
            return text;
        }
        let mut stream = self.stream();
        let mut clean = Vec::with_capacity(text.len());
        stream.push(&text, &mut clean);
        stream.finish(&mut clean);
        clean
    }

    /// Cleans a complete string.
    pub(crate) fn clean_text(&self, text: &str) -> String {
        match self.parts {
            None => text.to_owned(),
            Some(_) => String::from_utf8_lossy(&self.clean(text.as_bytes().to_vec())).into_owned(),
        }
    }

    /// Removes every header whose name contains a secret, because a reference is not a valid header
    /// name. Cleans the values of the other headers.
    pub(crate) fn clean_headers(&self, headers: &mut HeaderMap) {
        let Some((automaton, wanted)) = &self.parts else { return };
        let has_secret = |name: &&HeaderName| {
            let search = Search::new(Arc::clone(automaton), Arc::clone(wanted));
            self.lowercase.is_in(name.as_str(), wanted)
                || search.first([name.as_str().as_bytes()]).is_some()
        };
        let secrets: Vec<HeaderName> = headers.keys().filter(has_secret).cloned().collect();
        for name in secrets {
            headers.remove(name);
        }
        for value in headers.values_mut() {
            // A reference is valid in every header value, so this does not fail.
            if let Ok(clean) = HeaderValue::from_bytes(&self.clean(value.as_bytes().to_vec())) {
                *value = clean;
            }
        }
    }

    /// Returns a cleaner for a string that arrives in pieces.
    pub(crate) fn stream(&self) -> CleanStream {
        let search = self
            .parts
            .as_ref()
            .map(|(automaton, wanted)| Search::new(Arc::clone(automaton), Arc::clone(wanted)));
        CleanStream { search, markers: Arc::clone(&self.markers) }
    }
}

/// A cleaner for a string that arrives in pieces. It holds back bytes that may be the start of a
/// secret.
pub(crate) struct CleanStream {
    search: Option<Search>,
    markers: Arc<[Vec<u8>]>,
}

impl CleanStream {
    /// Processes a piece of the string and appends the cleaned bytes to `out`.
    pub(crate) fn push(&mut self, piece: &[u8], out: &mut Vec<u8>) {
        match &mut self.search {
            Some(search) => search.push(piece, &self.markers, out),
            None => out.extend_from_slice(piece),
        }
    }

    /// Appends the bytes that are still held back to `out`. Later calls append nothing.
    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) {
        if let Some(search) = self.search.take() {
            search.finish(&self.markers, out);
        }
    }
}

impl fmt::Debug for CleanStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CleanStream").finish_non_exhaustive()
    }
}
