//! Search by meaning. A model computes embeddings for a few documents (passages or memory items) at
//! a time. The embeddings are stored with the documents.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use wattle_rt::{Code, Failure};

use super::Embedder;
use super::rank::POOL;
use crate::{PortFuture, egress};

/// Maximum number of documents that are embedded per search.
const PER_SEARCH: usize = 16;

/// Maximum number of embeddings per grant.
const PER_GRANT: u32 = 400;

/// Maximum number of concurrent requests for embeddings.
const MAX_CONCURRENT: usize = 8;

/// Maximum time that a search waits for the model.
const TIMEOUT: Duration = Duration::from_secs(15);

/// Documents with stored vectors.
pub(crate) trait Vectors: Sync {
    /// The identifier of a document.
    type Id: Copy + Ord + Send + Sync;

    /// Returns the ids and texts of at most `max` documents that have no vector from the model.
    fn missing(&self, model: &str, max: usize) -> PortFuture<'_, Vec<(Self::Id, String)>>;

    /// Stores vectors computed by the model.
    fn add(&self, model: &str, vectors: Vec<(Self::Id, Vec<u8>)>) -> PortFuture<'_, ()>;

    /// Compares the vectors from the model with the target of `nearest`. Returns the ids of the
    /// documents with the nearest vectors, each with its similarity.
    fn nearest(
        &self,
        model: &str,
        nearest: Nearest<Self::Id>,
    ) -> PortFuture<'_, Vec<(Self::Id, f64)>>;
}

/// A counter of the embeddings requested under a grant, which are limited to [`PER_GRANT`].
#[derive(Default)]
pub(crate) struct Allowance(AtomicU32);

impl Allowance {
    /// Counts a request. Fails with `EBUDGET` if the limit is reached.
    fn count(&self) -> Result<(), Failure> {
        let more = |count| (count < PER_GRANT).then_some(count + 1);
        match self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) {
            Ok(_) => Ok(()),
            Err(_) => {
                let message = format!("the {PER_GRANT} embeddings of a run's searches are used up");
                Err(Failure::new(Code::EBUDGET, message))
            }
        }
    }
}

/// A collector that finds the vectors nearest to a target.
#[derive(Clone, Debug)]
pub struct Nearest<Id> {
    target: Vec<f32>,
    near: Vec<(Id, f64)>,
}

impl<Id: Copy + Ord> Nearest<Id> {
    fn to(target: Vec<f32>) -> Self {
        Nearest { target, near: Vec::new() }
    }

    /// Compares a stored vector with the target. A vector with a different dimension is ignored.
    pub fn compare(&mut self, id: Id, vector: &[u8]) {
        self.near.extend(similarity(&self.target, vector).map(|near| (id, near)));
    }

    /// Returns at most [`POOL`] identifiers with their similarities, nearest first.
    #[must_use]
    pub fn ranked(mut self) -> Vec<(Id, f64)> {
        self.near.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        self.near.truncate(POOL);
        self.near
    }
}

/// Ranks documents by the similarity of their vectors to the query's vector, most similar first.
/// Omits documents without a vector. A document that contains a secret is not sent to the model. If
/// the query contains a secret, fails with `EACCESS`.
pub(crate) async fn rank<V: Vectors>(
    texts: &V,
    embedder: &Embedder,
    allowance: &Allowance,
    out: &egress::Passage,
    query: &str,
) -> Result<Vec<(V::Id, f64)>, Failure> {
    let work = nearest(texts, embedder, allowance, out, query);
    let late = |_| Failure::new(Code::ETIME, "the model for embeddings did not answer in time");
    tokio::time::timeout(TIMEOUT, work).await.map_err(late)?
}

async fn nearest<V: Vectors>(
    texts: &V,
    embedder: &Embedder,
    allowance: &Allowance,
    out: &egress::Passage,
    query: &str,
) -> Result<Vec<(V::Id, f64)>, Failure> {
    out.check_text("the query", query.as_bytes()).await?;
    let target = embed(embedder, allowance, query.to_owned()).await?;

    let mut sendable = Vec::new();
    for (id, text) in texts.missing(&embedder.name, PER_SEARCH).await? {
        if out.check_text("the text", text.as_bytes()).await.is_ok() {
            sendable.push((id, text));
        }
    }
    let answers = sendable
        .into_iter()
        .map(|(id, text)| async move { (id, embed(embedder, allowance, text).await) });
    let mut answers = futures_util::stream::iter(answers).buffer_unordered(MAX_CONCURRENT);
    let mut vectors = Vec::new();
    let mut failed = None;
    while let Some((id, answer)) = answers.next().await {
        match answer {
            Ok(vector) => vectors.push((id, vector.iter().flat_map(|x| x.to_le_bytes()).collect())),
            Err(failure) => failed = Some(failure),
        }
    }
    drop(answers);
    texts.add(&embedder.name, vectors).await?;
    let near = texts.nearest(&embedder.name, Nearest::to(target)).await?;
    failed.map_or(Ok(near), Err)
}

/// Returns a string's embedding, normalized to length 1.
async fn embed(
    embedder: &Embedder,
    allowance: &Allowance,
    text: String,
) -> Result<Vec<f32>, Failure> {
    allowance.count()?;
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
