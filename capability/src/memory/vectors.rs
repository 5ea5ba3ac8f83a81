//! The vectors of memory items.

use super::Memory;
use crate::PortFuture;
use crate::search::{Nearest, Vectors};

/// The vectors of a memory's items. When missing vectors are computed, the items that the keyword
/// search found come first.
pub(super) struct ItemVectors<'a> {
    pub(super) memory: &'a dyn Memory,
    pub(super) by_words: &'a [(i32, f64)],
}

impl Vectors for ItemVectors<'_> {
    type Id = i32;

    fn missing(&self, model: &str, max: usize) -> PortFuture<'_, Vec<(i32, String)>> {
        let first = self.by_words.iter().map(|(id, _)| *id).collect();
        self.memory.without_vector(model.to_owned(), first, max)
    }

    fn add(&self, model: &str, vectors: Vec<(i32, Vec<u8>)>) -> PortFuture<'_, ()> {
        self.memory.add_vectors(model.to_owned(), vectors)
    }

    fn nearest(&self, model: &str, nearest: Nearest<i32>) -> PortFuture<'_, Vec<(i32, f64)>> {
        self.memory.nearest(model.to_owned(), nearest)
    }
}
