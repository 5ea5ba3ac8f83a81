//! The streams behind descriptors: pipes, files of the run, devices, bytes in memory, and sources
//! and sinks outside the run.

mod capture;
mod device;
mod file;
mod outside;
mod pipe;

use std::fmt;
use std::io::SeekFrom;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};
use wattle_capability::files::Files;

pub use capture::CapturedBytes;
pub use device::Device;
pub use file::OpenMode;

use crate::errno::{Errno, Fault};
use crate::ledger::Charge;
use crate::lock::lock;
use capture::Capture;
use file::OpenFile;
use outside::{Input, Output};
use pipe::{PipeReader, PipeWriter};

/// Maximum number of bytes that one read returns: 1 MiB.
const MAX_READ: usize = 1 << 20;

/// An open stream of bytes. Clones share the stream, like duplicated descriptors: they share the
/// position in a file, and an end of a pipe is closed when its last clone is dropped.
#[derive(Clone)]
pub struct Stream(Arc<Inner>);

struct Inner {
    kind: Kind,
    id: u64,
}

enum Kind {
    Device(Device),
    Bytes(Mutex<Bytes>),
    PipeReader(PipeReader),
    PipeWriter(PipeWriter),
    File(Arc<OpenFile>),
    Capture(Capture),
    Input(Input),
    Output(Output),
}

/// The kind of a stream, for `stat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamKind {
    /// A regular file of the run.
    File,
    /// A device, such as `/dev/null`.
    Device,
    /// Any other stream. It is not seekable.
    Pipe,
}

impl Stream {
    fn of_kind(kind: Kind) -> Stream {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Stream(Arc::new(Inner { kind, id: NEXT.fetch_add(1, Ordering::Relaxed) }))
    }

    /// Opens `/dev/null`, which reads as empty and accepts all writes.
    #[must_use]
    pub fn null() -> Stream {
        Stream::of_kind(Kind::Device(Device::Null))
    }

    /// Creates a stream that yields the given bytes, such as those of a here-document.
    #[must_use]
    pub fn bytes(text: impl Into<Bytes>) -> Stream {
        Stream::of_kind(Kind::Bytes(Mutex::new(text.into())))
    }

    /// Creates a pipe with a capacity of 64 KiB. Returns its reading end and its writing end.
    #[must_use]
    pub fn pipe() -> (Stream, Stream) {
        let (reader, writer) = pipe::pipe();
        (Stream::of_kind(Kind::PipeReader(reader)), Stream::of_kind(Kind::PipeWriter(writer)))
    }

    /// Creates a stream that captures all writes. A write beyond `limit` bytes fails like a write
    /// to a broken pipe.
    #[must_use]
    pub fn capture(limit: usize) -> (Stream, CapturedBytes) {
        let (capture, captured) = capture::head(limit, None);
        (Stream::of_kind(Kind::Capture(capture)), captured)
    }

    /// Creates a stream like [`Stream::capture`] whose captured bytes are added to `charge`. A
    /// write also fails if the charge has no room for it.
    pub(crate) fn capture_charged(limit: usize, charge: Charge) -> (Stream, CapturedBytes) {
        let (capture, captured) = capture::head(limit, Some(charge));
        (Stream::of_kind(Kind::Capture(capture)), captured)
    }

    /// Creates a stream that accepts all writes. It captures at most `limit` bytes: half of them
    /// from the start, half from the end.
    #[must_use]
    pub fn capture_ends(limit: usize) -> (Stream, CapturedBytes) {
        let (capture, captured) = capture::ends(limit);
        (Stream::of_kind(Kind::Capture(capture)), captured)
    }

    /// Creates a stream that reads from a source outside the run, such as the process's standard
    /// input.
    #[must_use]
    pub fn reader(source: impl AsyncRead + Send + Unpin + 'static) -> Stream {
        Stream::of_kind(Kind::Input(Input::new(source)))
    }

    /// Creates a stream that writes to a destination outside the run, such as the process's
    /// standard output. Each write is flushed.
    #[must_use]
    pub fn writer(sink: impl AsyncWrite + Send + Unpin + 'static) -> Stream {
        Stream::of_kind(Kind::Output(Output::new(sink)))
    }

    /// Opens a file of the run. `path` is an absolute path in the run's files. Devices are opened
    /// with [`Device::stream`].
    ///
    /// # Errors
    /// The same errors as POSIX `open`. If the run's files deny access, the error contains their
    /// message.
    pub async fn open(files: &Arc<Files>, path: &str, mode: OpenMode) -> Result<Stream, Fault> {
        if files.is_memory() {
            return Stream::open_blocking(files, path, mode);
        }
        let files = Arc::clone(files);
        let path = path.to_owned();
        let opened =
            tokio::task::spawn_blocking(move || Stream::open_blocking(&files, &path, mode)).await;
        opened.unwrap_or(Err(Errno::INTR.into()))
    }

    /// Opens a file like [`Stream::open`], but blocks the calling thread.
    pub(crate) fn open_blocking(
        files: &Arc<Files>,
        path: &str,
        mode: OpenMode,
    ) -> Result<Stream, Fault> {
        Ok(Stream::of_kind(Kind::File(Arc::new(OpenFile::open(files, path, mode)?))))
    }

    /// Reads at most `max` bytes. Waits until at least one is available. Returns no bytes at the
    /// end of the stream.
    ///
    /// # Errors
    /// [`Errno::BADF`] if the stream is open for writing only.
    pub async fn read(&self, max: usize) -> Result<Bytes, Errno> {
        let max = max.min(MAX_READ);
        match &self.0.kind {
            Kind::PipeReader(end) => Ok(end.read(max).await),
            Kind::Input(input) => input.read(max).await,
            Kind::File(file) => match file.try_read(max) {
                Some(read) => read,
                None => off_thread(file, move |file| file.read_ahead(max)).await,
            },
            _ => self.try_read(max).unwrap_or(Err(Errno::AGAIN)),
        }
    }

    /// Reads like [`Stream::read`], but never waits, except for a disk. Returns `None` if the read
    /// would have to wait for anything else.
    pub(crate) fn try_read(&self, max: usize) -> Option<Result<Bytes, Errno>> {
        let max = max.min(MAX_READ);
        Some(match &self.0.kind {
            Kind::Device(device) => device.read(max),
            Kind::Bytes(text) => {
                let mut text = lock(text);
                let len = max.min(text.len());
                Ok(text.split_to(len))
            }
            Kind::PipeReader(end) => return end.try_read(max).map(Ok),
            Kind::File(file) => file.read(max),
            Kind::Input(_) => return None,
            Kind::PipeWriter(_) | Kind::Capture(_) | Kind::Output(_) => Err(Errno::BADF),
        })
    }

    /// Writes all data. Waits while a pipe is full.
    ///
    /// # Errors
    /// [`Errno::PIPE`] if the stream has no reader, [`Errno::NOSPC`] if there is no space left, and
    /// [`Errno::BADF`] if the stream is open for reading only.
    pub async fn write(&self, data: &[u8]) -> Result<(), Errno> {
        match &self.0.kind {
            Kind::PipeWriter(end) => end.write(data).await,
            Kind::Output(output) => output.write(data).await,
            Kind::File(file) if !file.is_memory() => {
                let data = data.to_vec();
                off_thread(file, move |file| file.write(&data)).await.map_err(|fault| fault.errno)
            }
            _ => self
                .try_write(data)
                .unwrap_or(Err(Errno::AGAIN.into()))
                .map_err(|fault| fault.errno),
        }
    }

    /// Writes like [`Stream::write`], but never waits, except for a disk. If the write would have
    /// to wait for anything else, writes nothing and returns `None`.
    pub(crate) fn try_write(&self, data: &[u8]) -> Option<Result<(), Fault>> {
        Some(match &self.0.kind {
            Kind::Device(device) => device.write().map_err(Fault::from),
            Kind::PipeWriter(end) => {
                return end.try_write(data).map(|written| written.map_err(Fault::from));
            }
            Kind::File(file) => file.write(data),
            Kind::Capture(capture) => capture.write(data).map_err(Fault::from),
            Kind::Output(_) => return None,
            Kind::Bytes(_) | Kind::PipeReader(_) | Kind::Input(_) => Err(Errno::BADF.into()),
        })
    }

    /// Moves the position in a file and returns it as an offset from the start. For a device,
    /// returns 0.
    ///
    /// # Errors
    /// [`Errno::SPIPE`] if the stream is neither a file nor a device, and [`Errno::INVAL`] if the
    /// new position is before the start.
    pub fn seek(&self, to: SeekFrom) -> Result<u64, Errno> {
        match &self.0.kind {
            Kind::File(file) => file.seek(to),
            Kind::Device(_) => Ok(0),
            _ => Err(Errno::SPIPE),
        }
    }

    /// Returns the kind of the stream.
    #[must_use]
    pub fn kind(&self) -> StreamKind {
        match &self.0.kind {
            Kind::File(_) => StreamKind::File,
            Kind::Device(_) => StreamKind::Device,
            _ => StreamKind::Pipe,
        }
    }

    /// Returns the open file, if the stream is a file.
    pub(crate) fn file(&self) -> Option<&OpenFile> {
        if let Kind::File(file) = &self.0.kind { Some(file) } else { None }
    }

    /// Returns the number of bytes that can be read without waiting, or `None` if a read may have
    /// to wait.
    pub(crate) fn ready(&self) -> Option<usize> {
        match &self.0.kind {
            Kind::PipeReader(end) => end.ready(),
            Kind::Input(_) => None,
            Kind::Bytes(text) => Some(lock(text).len()),
            _ => Some(MAX_READ),
        }
    }

    /// Returns true if the stream can be read without blocking or, if `write` is true, written
    /// without blocking.
    pub(crate) fn is_ready(&self, write: bool) -> bool {
        match &self.0.kind {
            Kind::PipeWriter(end) if write => end.is_ready(),
            _ if write => true,
            _ => self.ready().is_some(),
        }
    }

    /// Returns the stream's id, which is unique in the process.
    pub(crate) fn id(&self) -> u64 {
        self.0.id
    }

    /// Waits until the stream can be read or written without blocking.
    pub(crate) async fn wait(&self) {
        match &self.0.kind {
            Kind::PipeReader(end) => end.wait().await,
            Kind::PipeWriter(end) => end.wait().await,
            Kind::Input(input) => input.wait().await,
            _ => {}
        }
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.kind {
            Kind::Device(device) => write!(f, "Stream({device:?})"),
            Kind::Bytes(text) => write!(f, "Stream({} bytes)", lock(text).len()),
            Kind::PipeReader(_) => f.write_str("Stream(pipe to read)"),
            Kind::PipeWriter(_) => f.write_str("Stream(pipe to write)"),
            Kind::File(file) => write!(f, "Stream(file {:?})", file.path()),
            Kind::Capture(_) => f.write_str("Stream(capture)"),
            Kind::Input(_) => f.write_str("Stream(input)"),
            Kind::Output(_) => f.write_str("Stream(output)"),
        }
    }
}

/// Runs a file operation on a thread where blocking is allowed.
async fn off_thread<T: Send + 'static, E: From<Errno> + Send + 'static>(
    file: &Arc<OpenFile>,
    work: impl FnOnce(&OpenFile) -> Result<T, E> + Send + 'static,
) -> Result<T, E> {
    let file = Arc::clone(file);
    tokio::task::spawn_blocking(move || work(&file)).await.unwrap_or(Err(Errno::INTR.into()))
}
