//! Search by meaning: a model's embeddings of passages, computed in small numbers and stored in the
//! index.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use wattle_rt::{Code, Failure};

use super::Embedder;
use super::index::{Findings, Index};
use super::rank::{POOL, PassageId};
use crate::egress;

/// Maximum number of passages that are embedded in one search.
const PER_SEARCH: usize = 16;

/// Maximum number of embeddings per grant.
const PER_GRANT: u32 = 400;

/// Maximum number of concurrent requests for embeddings.
const MAX_CONCURRENT: usize = 8;

/// Maximum time that a search waits for the model.
const TIMEOUT: Duration = Duration::from_secs(15);

/// Returns the passages of the run's view by the distance of their vectors from the query's,
/// nearest first. Passages without a vector are omitted, as are those that contain a secret. If the
/// query contains one, fails with `EACCESS`.
pub(super) async fn rank(
    index: &Arc<Mutex<Option<Index>>>,
    embedder: &Embedder,
    (asked, out): (&AtomicU32, &egress::Passage),
    query: &str,
    found: &Findings,
) -> Result<Vec<(PassageId, f64)>, Failure> {
    let work = nearest(index, embedder, (asked, out), query, found);
    let late = |_| Failure::new(Code::ETIME, "the model for embeddings did not answer in time");
    tokio::time::timeout(TIMEOUT, work).await.map_err(late)?
}

async fn nearest(
    index: &Arc<Mutex<Option<Index>>>,
    embedder: &Embedder,
    (asked, out): (&AtomicU32, &egress::Passage),
    query: &str,
    found: &Findings,
) -> Result<Vec<(PassageId, f64)>, Failure> {
    out.check_text("the query", query.as_bytes()).await?;
    let target = embed(embedder, asked, query.to_owned()).await?;
    let (name, by_words, view) =
        (embedder.name.clone(), found.by_words.clone(), found.view.clone());
    let missing =
        on_index(index, move |index| index.without_vector(&name, &by_words, &view, PER_SEARCH))
            .await?;

    let mut sendable = Vec::new();
    for (id, text) in missing {
        if out.check_text("the passage", text.as_bytes()).await.is_ok() {
            sendable.push((id, text));
        }
    }
    let answers = sendable
        .into_iter()
        .map(|(id, text)| async move { (id, embed(embedder, asked, text).await) });
    let mut answers = futures_util::stream::iter(answers).buffer_unordered(MAX_CONCURRENT);
    let (mut vectors, mut failed) = (Vec::new(), None);
    while let Some((id, answer)) = answers.next().await {
        match answer {
            Ok(vector) => vectors.push((id, vector.iter().flat_map(|x| x.to_le_bytes()).collect())),
            Err(failure) => failed = Some(failure),
        }
    }
    drop(answers);
    let (name, view) = (embedder.name.clone(), found.view.clone());
    let near = on_index(index, move |index| {
        index.add_vectors(&name, &vectors)?;
        let mut near: Vec<(PassageId, f64)> = Vec::new();
        index.for_each_vector(&name, &view, |id, bytes| {
            near.extend(similarity(&target, bytes).map(|near| (id, near)))
        })?;
        near.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        near.truncate(POOL);
        Ok(near)
    });
    let near = near.await?;
    failed.map_or(Ok(near), Err)
}

/// Returns a text's embedding, normalized to length 1.
async fn embed(embedder: &Embedder, asked: &AtomicU32, text: String) -> Result<Vec<f32>, Failure> {
    let more = |count| (count < PER_GRANT).then_some(count + 1);
    if asked.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_err() {
        let message = format!("the {PER_GRANT} embeddings of a run's searches are used up");
        return Err(Failure::new(Code::EBUDGET, message));
    }
    let vector = embedder.model.embed(text).await?.vector;
    let length = vector.iter().map(|x| x * x).sum::<f64>().sqrt();
    if !length.is_normal() {
        return Err(Failure::new(Code::EREMOTE, "the model returned no embedding"));
    }
    #[expect(clippy::cast_possible_truncation, reason = "half of the precision suffices")]
    Ok(vector.iter().map(|x| (x / length) as f32).collect())
}

/// Returns the cosine of the angle between two vectors of length 1, or `None` if their dimensions
/// differ.
fn similarity(target: &[f32], bytes: &[u8]) -> Option<f64> {
    let (numbers, rest) = bytes.as_chunks::<4>();
    let same = numbers.len() == target.len() && rest.is_empty();
    let products = || {
        target.iter().zip(numbers).map(|(a, b)| f64::from(*a) * f64::from(f32::from_le_bytes(*b)))
    };
    same.then(|| products().sum())
}

/// Works on the index on a thread for blocking work.
async fn on_index<T: Send + 'static>(
    index: &Arc<Mutex<Option<Index>>>,
    work: impl FnOnce(&mut Index) -> Result<T, rusqlite::Error> + Send + 'static,
) -> Result<T, Failure> {
    let index = Arc::clone(index);
    let work = move || {
        let mut held = index.lock().unwrap_or_else(PoisonError::into_inner);
        work(held.get_or_insert_with(|| Index::open(None)))
    };
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => {
            done.map_err(|why| Failure::new(Code::EREMOTE, format!("the index failed: {why}")))
        }
        Err(_) => Err(Failure::new(Code::ECANCEL, "the host is shutting down")),
    }
}
