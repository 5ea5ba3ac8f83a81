//! Messages over two streams, one a line, within limits.

use std::collections::HashSet;
use std::io;
use std::marker::PhantomData;
use std::sync::Arc;

use parking_lot::Mutex;
use rmcp::ErrorData;
use rmcp::model::{JsonRpcMessage, RequestId};
use rmcp::service::{RxJsonRpcMessage, ServiceRole, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde::Deserialize;
use serde_json::Value as Json;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::watch;
use wattle_agent::host::rt::truncate;

/// Maximum size of a message, in bytes.
pub(crate) const MAX_MESSAGE: usize = 16 << 20;

/// Maximum size of all that a server sends without an answer to a request, in bytes.
const MAX_UNASKED: usize = 64 << 20;

/// The size for which a short line counts, in bytes.
const LINE: usize = 1 << 10;

/// Number of answers that the other side may leave unread. It is not read until it reads them.
const MAX_UNREAD: usize = 256;

/// Maximum length of the part of a line that errors show, in characters.
const MAX_SHOWN: usize = 200;

/// The faults of the other side that are no errors of a request.
#[derive(Default)]
pub(crate) struct Faults {
    /// The reason why the connection was ended.
    pub(crate) end: Option<String>,
    /// The beginning of the first line that is not a message.
    pub(crate) noise: Option<String>,
}

/// A transport that reads and writes lines.
///
/// A line that is not a message is ignored, because servers print such lines. A message that is too
/// large ends the connection. An answer that does not match its type becomes an error of its request.
pub(crate) struct Lines<Role, R, W> {
    reader: BufReader<R>,
    line: Vec<u8>,
    writer: Arc<tokio::sync::Mutex<Option<W>>>,
    faults: Arc<Mutex<Faults>>,
    /// The ids of the requests without an answer.
    asked: Arc<Mutex<HashSet<String>>>,
    /// Number of bytes that the other side sent without an answer to a request.
    unasked: usize,
    /// Number of answers that are not yet written.
    unread: watch::Sender<usize>,
    role: PhantomData<fn() -> Role>,
}

impl<Role: ServiceRole, R: AsyncRead + Send + Unpin, W: AsyncWrite + Send + Unpin + 'static>
    Lines<Role, R, W>
{
    pub(crate) fn new(reader: R, writer: W, faults: Arc<Mutex<Faults>>) -> Lines<Role, R, W> {
        Lines {
            reader: BufReader::new(reader),
            line: Vec::new(),
            writer: Arc::new(tokio::sync::Mutex::new(Some(writer))),
            faults,
            asked: Arc::default(),
            unasked: 0,
            unread: watch::Sender::new(0),
            role: PhantomData,
        }
    }

    /// Reads the next line to `self.line`. Returns false at the end. A call that is dropped loses
    /// nothing.
    async fn read_line(&mut self) -> io::Result<bool> {
        loop {
            let read = self.reader.fill_buf().await?;
            if read.is_empty() {
                return Ok(false);
            }
            let end = read.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(read.len(), |at| at + 1);
            self.line.extend_from_slice(read.get(..taken).unwrap_or_default());
            self.reader.consume(taken);
            // Each line has a cost of its own.
            self.unasked += if end.is_some() { taken.max(LINE) } else { taken };
            if self.line.len() > MAX_MESSAGE {
                return Err(too_large("a message", MAX_MESSAGE));
            }
            if Role::IS_CLIENT && self.unasked > MAX_UNASKED {
                return Err(too_large("messages that nobody asked for", MAX_UNASKED));
            }
            if end.is_some() {
                return Ok(true);
            }
        }
    }

    /// Parses a line. Returns `None` if it is not a message for the service.
    fn message(&mut self, line: &[u8]) -> Option<RxJsonRpcMessage<Role>> {
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii();
        if line.is_empty() {
            return None;
        }
        let message = match serde_json::from_slice::<RxJsonRpcMessage<Role>>(line) {
            Ok(message) => message,
            Err(error) => self.misfit(line, &error)?,
        };
        let id = match &message {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            _ => None,
        };
        if id.is_some_and(|id| self.asked.lock().remove(&id.to_string())) {
            self.unasked = 0;
        }
        Some(message)
    }

    /// Handles a line that is not a message that the service understands.
    fn misfit(&mut self, line: &[u8], error: &serde_json::Error) -> Option<RxJsonRpcMessage<Role>> {
        let fields = serde_json::from_slice::<Json>(line).ok();
        let has = |name| fields.as_ref().is_some_and(|fields| fields.get(name).is_some());
        let id = fields.as_ref().and_then(|fields| RequestId::deserialize(fields.get("id")?).ok());
        match id {
            Some(id) if has("result") || has("error") => {
                let why = format!("its answer has a wrong form: {error}");
                return Some(JsonRpcMessage::error(ErrorData::internal_error(why, None), Some(id)));
            }
            // An unknown notification.
            None if has("method") && !has("id") => return None,
            id if has("method") => {
                let error = ErrorData::invalid_request(format!("invalid request: {error}"), None);
                tokio::spawn(self.send(JsonRpcMessage::error(error, id)));
                return None;
            }
            _ => {}
        }
        let text =
            String::from_utf8_lossy(line.get(..line.len().min(4 * MAX_SHOWN)).unwrap_or(line));
        self.faults.lock().noise.get_or_insert_with(|| truncate(&text, MAX_SHOWN).into());
        None
    }
}

fn too_large(what: &str, limit: usize) -> io::Error {
    io::Error::other(format!("it sent {what} of more than {} MiB", limit >> 20))
}

/// Counts an answer until it is written or dropped.
struct Unread(watch::Sender<usize>);

impl Unread {
    fn new(count: &watch::Sender<usize>) -> Unread {
        count.send_modify(|count| *count += 1);
        Unread(count.clone())
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

impl<Role: ServiceRole, R: AsyncRead + Send + Unpin, W: AsyncWrite + Send + Unpin + 'static>
    Transport<Role> for Lines<Role, R, W>
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<Role>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let writer = Arc::clone(&self.writer);
        let unread = match &message {
            JsonRpcMessage::Request(request) => {
                self.asked.lock().insert(request.id.to_string());
                None
            }
            JsonRpcMessage::Notification(_) => None,
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {
                Some(Unread::new(&self.unread))
            }
        };
        let line = serde_json::to_vec(&message);
        async move {
            let _unread = unread;
            let mut line = line?;
            line.push(b'\n');
            let mut writer = writer.lock().await;
            let closed = || io::Error::new(io::ErrorKind::NotConnected, "the connection is closed");
            let writer = writer.as_mut().ok_or_else(closed)?;
            writer.write_all(&line).await?;
            writer.flush().await
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<Role>> {
        let mut unread = self.unread.subscribe();
        loop {
            unread.wait_for(|count| *count < MAX_UNREAD).await.ok()?;
            match self.read_line().await {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => {
                    self.faults.lock().end = Some(error.to_string());
                    return None;
                }
            }
            let line = std::mem::take(&mut self.line);
            if let Some(message) = self.message(&line) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        drop(self.writer.lock().await.take());
        Ok(())
    }
}
