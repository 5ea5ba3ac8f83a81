//! The location of objects outside the database: a folder, or a bucket of S3.

mod location;
mod s3;

use crate::error::Cause;

pub use location::BlobStore;
pub use s3::S3Bucket;

/// Maximum size of a text that is stored in a row, in bytes.
pub(crate) const INLINE: usize = 256 << 10;

/// Maximum size of an object, in bytes.
pub(crate) const MAX_OBJECT: usize = 512 << 20;

/// Runs `work`, which processes `size` bytes. If `size` is large, `work` runs on a thread where
/// blocking is allowed.
pub(crate) async fn off_the_runtime<T: Send + 'static>(
    size: usize,
    work: impl FnOnce() -> Result<T, Cause> + Send + 'static,
) -> Result<T, Cause> {
    if size > INLINE { tokio::task::spawn_blocking(work).await? } else { work() }
}
