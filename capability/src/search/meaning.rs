//! Search by meaning: passages as a model places them, computed a few at a time and kept in the index.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use wattle_rt::{Code, Failure};

use super::Embedder;
use super::index::{Findings, Index, POOL, PassageId};

/// How many passages are placed in one search at the most.
const A_SEARCH: usize = 16;

/// How many embeddings one grant may ask for.
const A_GRANT: u32 = 400;

/// How many are asked for at once.
const AT_ONCE: usize = 8;

/// How long a search waits for the model.
const PATIENCE: Duration = Duration::from_secs(15);

/// The offset of reciprocal rank fusion, as it is usual.
const OFFSET: f64 = 60.0;

/// The passages in view whose meaning is nearest to the query's, as far as they have been placed.
pub(super) async fn rank(
    index: &Arc<Mutex<Option<Index>>>,
    embedder: &Embedder,
    asked: &AtomicU32,
    query: &str,
    found: &Findings,
) -> Result<Vec<(PassageId, f64)>, Failure> {
    let work = within(index, embedder, asked, query, found);
    let late = |_| Failure::new(Code::ETIME, "the model for embeddings did not answer in time");
    tokio::time::timeout(PATIENCE, work).await.map_err(late)?
}

async fn within(
    index: &Arc<Mutex<Option<Index>>>,
    embedder: &Embedder,
    asked: &AtomicU32,
    query: &str,
    found: &Findings,
) -> Result<Vec<(PassageId, f64)>, Failure> {
    let sought = embed(embedder, asked, query.to_owned()).await?;
    let (name, by_words, view) = (embedder.name.clone(), found.by_words.clone(), found.view.clone());
    let unplaced = on_index(index, move |index| index.unplaced(&name, &by_words, &view, A_SEARCH)).await?;

    let answers = unplaced.into_iter().map(|(id, text)| async move { (id, embed(embedder, asked, text).await) });
    let mut answers = futures_util::stream::iter(answers).buffer_unordered(AT_ONCE);
    let (mut placed, mut failed) = (Vec::new(), None);
    while let Some((id, answer)) = answers.next().await {
        match answer {
            Ok(vector) => placed.push((id, vector.iter().flat_map(|x| x.to_le_bytes()).collect())),
            Err(failure) => failed = Some(failure),
        }
    }
    drop(answers);
    let (name, view) = (embedder.name.clone(), found.view.clone());
    let near = on_index(index, move |index| {
        index.place(&name, &placed)?;
        let mut near: Vec<(PassageId, f64)> = Vec::new();
        index.places(&name, &view, |id, bytes| near.extend(nearness(&sought, bytes).map(|near| (id, near))))?;
        near.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        near.truncate(POOL);
        Ok(near)
    });
    let near = near.await?;
    failed.map_or(Ok(near), Err)
}

/// The fused ranks: what both lists have near their tops comes first.
pub(super) fn fuse(one: &[(PassageId, f64)], other: &[(PassageId, f64)]) -> Vec<(PassageId, f64)> {
    let mut scores: HashMap<PassageId, f64> = HashMap::new();
    for list in [one, other] {
        for (rank, (id, _)) in (1_u32..).zip(list) {
            *scores.entry(*id).or_default() += 1.0 / (OFFSET + f64::from(rank));
        }
    }
    let mut fused: Vec<(PassageId, f64)> = scores.into_iter().collect();
    fused.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    fused
}

/// A text's place, as a vector of length 1.
async fn embed(embedder: &Embedder, asked: &AtomicU32, text: String) -> Result<Vec<f32>, Failure> {
    let more = |count| (count < A_GRANT).then_some(count + 1);
    if asked.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_err() {
        let words = format!("the {A_GRANT} embeddings that a run's searches may ask for are used up");
        return Err(Failure::new(Code::EBUDGET, words));
    }
    let vector = embedder.model.embed(text).await?.vector;
    let length = vector.iter().map(|x| x * x).sum::<f64>().sqrt();
    if !length.is_normal() {
        return Err(Failure::new(Code::EREMOTE, "the model gave no embedding"));
    }
    #[expect(clippy::cast_possible_truncation, reason = "half of the digits do")]
    Ok(vector.iter().map(|x| (x / length) as f32).collect())
}

/// The cosine of the angle between two vectors of length 1; `None` where they are of different spaces.
fn nearness(sought: &[f32], bytes: &[u8]) -> Option<f64> {
    let (numbers, rest) = bytes.as_chunks::<4>();
    let same = numbers.len() == sought.len() && rest.is_empty();
    let products = || sought.iter().zip(numbers).map(|(a, b)| f64::from(*a) * f64::from(f32::from_le_bytes(*b)));
    same.then(|| products().sum())
}

/// Works on the index where blocking is allowed.
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
        Ok(done) => done.map_err(|why| Failure::new(Code::EREMOTE, format!("the index failed: {why}"))),
        Err(_) => Err(Failure::new(Code::ECANCEL, "the host is shutting down")),
    }
}
