//! What stands behind descriptors: pipes, files of the run, devices, texts in memory, the terminal.

mod capture;
mod device;
mod file;
mod outside;
mod pipe;

use std::fmt;
use std::io::SeekFrom;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};
use wattle_capability::files::Files;

pub use capture::Captured;
pub use device::Device;
pub use file::OpenHow;

use crate::errno::{Errno, Fault};
use capture::Capture;
use device::Endless;
use file::OpenFile;
use outside::{Input, Output};
use pipe::{ReadEnd, WriteEnd};

/// The most bytes that one read gives, whatever it asked for: 1 MiB.
const READ_MOST: usize = 1 << 20;

/// An open stream of bytes. A clone is the same stream, as a duplicated descriptor is: the place in a file is shared, and an end of a
/// pipe is closed when its last clone is dropped.
#[derive(Clone)]
pub struct Stream(Arc<Open>);

struct Open {
    kind: Kind,
    number: u64,
}

enum Kind {
    Endless(Endless),
    Bytes(Mutex<Bytes>),
    PipeOut(ReadEnd),
    PipeIn(WriteEnd),
    File(Arc<OpenFile>),
    Capture(Capture),
    Input(Input),
    Output(Output),
}

/// What a stream is, as `stat` tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamKind {
    /// A plain file of the run.
    File,
    /// A device, such as `/dev/null`.
    Device,
    /// Anything that has no place to go back to.
    Pipe,
}

impl Stream {
    fn of(kind: Kind) -> Stream {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Stream(Arc::new(Open { kind, number: NEXT.fetch_add(1, Ordering::Relaxed) }))
    }

    /// `/dev/null`: empty, and takes anything.
    #[must_use]
    pub fn null() -> Stream {
        Stream::of(Kind::Endless(Endless::Null))
    }

    /// `/dev/zero`.
    #[must_use]
    pub fn zero() -> Stream {
        Stream::of(Kind::Endless(Endless::Zero))
    }

    /// `/dev/full`: zeros to read, and no room to write.
    #[must_use]
    pub fn full() -> Stream {
        Stream::of(Kind::Endless(Endless::Full))
    }

    /// `/dev/random` and `/dev/urandom`.
    #[must_use]
    pub fn random() -> Stream {
        Stream::of(Kind::Endless(Endless::Random))
    }

    /// A text to read, such as a here-document.
    #[must_use]
    pub fn bytes(text: impl Into<Bytes>) -> Stream {
        Stream::of(Kind::Bytes(Mutex::new(text.into())))
    }

    /// A pipe: its end to read from, and its end to write to. It holds 64 KiB.
    #[must_use]
    pub fn pipe() -> (Stream, Stream) {
        let (output, input) = pipe::pipe();
        (Stream::of(Kind::PipeOut(output)), Stream::of(Kind::PipeIn(input)))
    }

    /// A place that keeps what is written. Past `limit` bytes it takes no more, as a pipe that nobody reads.
    #[must_use]
    pub fn capture(limit: usize) -> (Stream, Captured) {
        let (capture, captured) = capture::whole(limit);
        (Stream::of(Kind::Capture(capture)), captured)
    }

    /// A place that takes everything, and of more than `limit` bytes keeps the first and the last half of that.
    #[must_use]
    pub fn capture_ends(limit: usize) -> (Stream, Captured) {
        let (capture, captured) = capture::ends(limit);
        (Stream::of(Kind::Capture(capture)), captured)
    }

    /// What comes from outside of the run, such as the standard input of the process.
    #[must_use]
    pub fn reader(source: impl AsyncRead + Send + Unpin + 'static) -> Stream {
        Stream::of(Kind::Input(Input::new(source)))
    }

    /// What goes out of the run, such as the standard output of the process. Each write is handed on at once.
    #[must_use]
    pub fn writer(sink: impl AsyncWrite + Send + Unpin + 'static) -> Stream {
        Stream::of(Kind::Output(Output::new(sink)))
    }

    /// Opens a file of the run. `path` is absolute in the run's tree; devices are told by [`Device::named`].
    ///
    /// # Errors
    /// As `open` gives them, with the words of the run's files where they refuse.
    pub async fn open(files: &Arc<Files>, path: &str, how: OpenHow) -> Result<Stream, Fault> {
        if files.is_memory() {
            return Stream::open_here(files, path, how);
        }
        let (files, path) = (Arc::clone(files), path.to_owned());
        let opened = tokio::task::spawn_blocking(move || Stream::open_here(&files, &path, how)).await;
        opened.unwrap_or(Err(Errno::INTR.into()))
    }

    /// As [`Stream::open`], on a thread that may wait for a disk.
    pub(crate) fn open_here(files: &Arc<Files>, path: &str, how: OpenHow) -> Result<Stream, Fault> {
        Ok(Stream::of(Kind::File(Arc::new(OpenFile::open(files, path, how)?))))
    }

    /// Reads at most `max` bytes; none at the end. Waits until there is at least one.
    ///
    /// # Errors
    /// [`Errno::BADF`] where it is for writing only.
    pub async fn read(&self, max: usize) -> Result<Bytes, Errno> {
        let max = max.min(READ_MOST);
        match &self.0.kind {
            Kind::PipeOut(end) => Ok(end.read(max).await),
            Kind::Input(input) => input.read(max).await,
            Kind::File(file) => match file.read_ready(max) {
                Some(read) => read,
                None => off_thread(file, move |file| file.read_ahead(max)).await,
            },
            _ => self.read_here(max).unwrap_or(Err(Errno::AGAIN)),
        }
    }

    /// As [`Stream::read`], on a thread that may wait for a disk; `None` where it would have to wait for anything else.
    pub(crate) fn read_here(&self, max: usize) -> Option<Result<Bytes, Errno>> {
        let max = max.min(READ_MOST);
        Some(match &self.0.kind {
            Kind::Endless(device) => device.read(max),
            Kind::Bytes(text) => {
                let mut text = lock(text);
                let most = max.min(text.len());
                Ok(text.split_to(most))
            }
            Kind::PipeOut(end) => return end.read_ready(max).map(Ok),
            Kind::File(file) => file.read(max),
            Kind::Input(_) => return None,
            Kind::PipeIn(_) | Kind::Capture(_) | Kind::Output(_) => Err(Errno::BADF),
        })
    }

    /// Writes all of it. Waits while a pipe is full.
    ///
    /// # Errors
    /// [`Errno::PIPE`] where nobody reads any more, [`Errno::NOSPC`] where there is no room, [`Errno::BADF`] where it is for reading only.
    pub async fn write(&self, data: &[u8]) -> Result<(), Errno> {
        match &self.0.kind {
            Kind::PipeIn(end) => end.write(data).await,
            Kind::Output(output) => output.write(data).await,
            Kind::File(file) if !file.is_memory() => {
                let data = data.to_vec();
                off_thread(file, move |file| file.write(&data)).await.map_err(|fault| fault.errno)
            }
            _ => self.write_here(data).unwrap_or(Err(Errno::AGAIN.into())).map_err(|fault| fault.errno),
        }
    }

    /// As [`Stream::write`], on a thread that may wait for a disk; `None` where it would have to wait for anything else, and nothing is
    /// written.
    pub(crate) fn write_here(&self, data: &[u8]) -> Option<Result<(), Fault>> {
        Some(match &self.0.kind {
            Kind::Endless(device) => device.write().map_err(Fault::from),
            Kind::PipeIn(end) => return end.write_ready(data).map(|written| written.map_err(Fault::from)),
            Kind::File(file) => file.write(data),
            Kind::Capture(capture) => capture.write(data).map_err(Fault::from),
            Kind::Output(_) => return None,
            Kind::Bytes(_) | Kind::PipeOut(_) | Kind::Input(_) => Err(Errno::BADF.into()),
        })
    }

    /// Moves the place in a file, and gives the new one from its beginning.
    ///
    /// # Errors
    /// [`Errno::SPIPE`] where it is no file, [`Errno::INVAL`] before its beginning.
    pub fn seek(&self, to: SeekFrom) -> Result<u64, Errno> {
        match &self.0.kind {
            Kind::File(file) => file.seek(to),
            Kind::Endless(_) => Ok(0),
            _ => Err(Errno::SPIPE),
        }
    }

    /// What it is.
    #[must_use]
    pub fn kind(&self) -> StreamKind {
        match &self.0.kind {
            Kind::File(_) => StreamKind::File,
            Kind::Endless(_) => StreamKind::Device,
            _ => StreamKind::Pipe,
        }
    }

    /// Whether both are the same stream.
    #[must_use]
    pub fn is(&self, other: &Stream) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The file, where it is one.
    pub(crate) fn file(&self) -> Option<&OpenFile> {
        if let Kind::File(file) = &self.0.kind { Some(file) } else { None }
    }

    /// The bytes that can be read at once; `None` where nobody knows, which is told by trying.
    pub(crate) fn ready(&self) -> Option<usize> {
        match &self.0.kind {
            Kind::PipeOut(end) => end.ready(),
            Kind::Input(_) => None,
            Kind::Bytes(text) => Some(lock(text).len()),
            _ => Some(READ_MOST),
        }
    }

    /// Whether a read gives something at once, or the end; or a `write` finds room.
    pub(crate) fn is_ready(&self, write: bool) -> bool {
        match &self.0.kind {
            Kind::PipeIn(end) if write => end.is_ready(),
            _ if write => true,
            _ => self.ready().is_some(),
        }
    }

    /// A number of its own, which no other stream of the process has.
    pub(crate) fn number(&self) -> u64 {
        self.0.number
    }

    /// Waits until a read gives something, or the end; or until a write finds room.
    pub(crate) async fn wait(&self) {
        match &self.0.kind {
            Kind::PipeOut(end) => end.wait().await,
            Kind::PipeIn(end) => end.wait().await,
            Kind::Input(input) => input.wait().await,
            _ => {}
        }
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.kind {
            Kind::Endless(device) => write!(f, "Stream({device:?})"),
            Kind::Bytes(text) => write!(f, "Stream({} bytes)", lock(text).len()),
            Kind::PipeOut(_) => f.write_str("Stream(pipe to read)"),
            Kind::PipeIn(_) => f.write_str("Stream(pipe to write)"),
            Kind::File(file) => write!(f, "Stream(file {:?})", file.path()),
            Kind::Capture(_) => f.write_str("Stream(capture)"),
            Kind::Input(_) => f.write_str("Stream(input)"),
            Kind::Output(_) => f.write_str("Stream(output)"),
        }
    }
}

/// Works on a file where waiting for a disk is allowed.
async fn off_thread<T: Send + 'static, E: From<Errno> + Send + 'static>(
    file: &Arc<OpenFile>,
    work: impl FnOnce(&OpenFile) -> Result<T, E> + Send + 'static,
) -> Result<T, E> {
    let file = Arc::clone(file);
    tokio::task::spawn_blocking(move || work(&file)).await.unwrap_or(Err(Errno::INTR.into()))
}

fn lock<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    // No change is left half done by a panic, so a poisoned lock is as good as any.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
