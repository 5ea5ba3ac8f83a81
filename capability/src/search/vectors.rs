//! The vectors of the passages in an index.

use std::sync::{Arc, Mutex, PoisonError};

use wattle_rt::{Code, Failure};

use super::index::{Findings, Index};
use super::meaning::{Nearest, Vectors};
use super::rank::PassageId;
use crate::PortFuture;

/// The vectors of the passages in the run's view. When missing vectors are computed, the passages
/// that the keyword search found come first.
pub(super) struct PassageVectors<'a> {
    pub(super) index: &'a Arc<Mutex<Option<Index>>>,
    pub(super) found: &'a Findings,
}

impl Vectors for PassageVectors<'_> {
    type Id = PassageId;

    fn missing(&self, model: &str, max: usize) -> PortFuture<'_, Vec<(PassageId, String)>> {
        let model = model.to_owned();
        let by_words = self.found.by_words.clone();
        let view = self.found.view.clone();
        self.work(move |index| index.without_vector(&model, &by_words, &view, max))
    }

    fn add(&self, model: &str, vectors: Vec<(PassageId, Vec<u8>)>) -> PortFuture<'_, ()> {
        let model = model.to_owned();
        self.work(move |index| index.add_vectors(&model, &vectors))
    }

    fn nearest(
        &self,
        model: &str,
        mut nearest: Nearest<PassageId>,
    ) -> PortFuture<'_, Vec<(PassageId, f64)>> {
        let model = model.to_owned();
        let view = self.found.view.clone();
        self.work(move |index| {
            index.for_each_vector(&model, &view, |id, vector| nearest.compare(id, vector))?;
            Ok(nearest.ranked())
        })
    }
}

impl PassageVectors<'_> {
    /// Calls `work` with the index, on a thread for blocking tasks.
    fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Index) -> Result<T, rusqlite::Error> + Send + 'static,
    ) -> PortFuture<'_, T> {
        let index = Arc::clone(self.index);
        let work = move || {
            let mut held = index.lock().unwrap_or_else(PoisonError::into_inner);
            work(held.get_or_insert_with(|| Index::open(None)))
        };
        Box::pin(async {
            match tokio::task::spawn_blocking(work).await {
                Ok(done) => done
                    .map_err(|why| Failure::new(Code::EREMOTE, format!("the index failed: {why}"))),
                Err(_) => Err(Failure::new(Code::ECANCEL, "the host is shutting down")),
            }
        })
    }
}
