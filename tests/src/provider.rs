//! A chat-completions endpoint on loopback that returns scripted responses, including failures.
//!
//! It runs on separate threads, so it can serve both the test process and processes that the test
//! starts.
//!
//! ```
//! use wattle_tests::provider::{Answer, Provider};
//!
//! let limited = Answer::status(429).header("retry-after", "0");
//! let provider = Provider::start([Answer::text("hello"), limited]);
//! assert!(provider.base_url().ends_with("/v1"));
//! assert!(provider.requests().is_empty());
//! ```

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

/// A running endpoint. It stops when it is dropped.
#[derive(Debug)]
pub struct Provider {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    script: Mutex<VecDeque<Answer>>,
    /// The function that creates the answers after the end of the script.
    respond: Option<Box<Respond>>,
    requests: Mutex<Vec<Recorded>>,
    stopped: AtomicBool,
}

/// A function that creates the answer to a request.
type Respond = dyn Fn(&Recorded) -> Answer + Send + Sync;

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("script", &self.script)
            .field("requests", &self.requests)
            .finish_non_exhaustive()
    }
}

/// A received request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// The method, such as `POST`.
    pub method: String,
    /// The path and query.
    pub path: String,
    /// The headers, in the order received. Their names are in lower case.
    pub headers: Vec<(String, String)>,
    /// The body as text.
    pub body: String,
}

impl Recorded {
    /// Returns the value of the first header with the given name. `name` must be in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// Returns the body as JSON, or null if the body is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    /// Returns the content of the request's messages, [without nonces](crate::plain).
    pub fn messages(&self) -> Vec<String> {
        self.messages_verbatim().iter().map(|text| crate::plain(text)).collect()
    }

    /// Returns the content of the request's messages, byte for byte.
    pub fn messages_verbatim(&self) -> Vec<String> {
        let body = self.json();
        let list = body.get("messages").and_then(Value::as_array).into_iter().flatten();
        list.map(|message| {
            message.get("content").and_then(Value::as_str).unwrap_or_default().to_owned()
        })
        .collect()
    }

    fn wants_stream(&self) -> bool {
        self.json().get("stream").and_then(Value::as_bool).unwrap_or(false)
    }
}

/// The endpoint's response to one request.
#[derive(Clone, Debug)]
pub struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: Body,
    piece: usize,
    pause: Duration,
    end: End,
}

#[derive(Clone, Debug)]
enum Body {
    /// A message, as JSON or as a stream. If `stream` is `None`, the request determines the form.
    Message { text: String, stream: Option<bool> },
    /// The bytes of the body.
    Bytes(Vec<u8>),
    /// The bytes of the whole response, including the status line and the headers.
    Raw(Vec<u8>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The body is complete.
    Complete,
    /// The connection closes before the announced length is reached.
    BreakOff,
    /// The connection stays open, and the rest is never sent.
    Hang,
}

impl Answer {
    /// Responds with a message: as a stream of words if the request asks for a stream, and as JSON
    /// otherwise.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(200, Body::Message { text: text.into(), stream: None })
    }

    /// Responds with a message as JSON, even if the request asks for a stream.
    pub fn plain(text: impl Into<String>) -> Self {
        Self::new(200, Body::Message { text: text.into(), stream: Some(false) })
    }

    /// Responds with a message as a stream of events, even if the request asks for JSON.
    pub fn streamed(text: impl Into<String>) -> Self {
        Self::new(200, Body::Message { text: text.into(), stream: Some(true) })
    }

    /// Responds with a status and no body.
    pub fn status(status: u16) -> Self {
        Self::new(status, Body::Bytes(Vec::new()))
    }

    /// Responds with status 200 and `bytes` as the body, without a content type.
    pub fn body(bytes: impl Into<Vec<u8>>) -> Self {
        Self::new(200, Body::Bytes(bytes.into()))
    }

    /// Responds with a stream of events, one (`data: …`) for each string in `data`.
    pub fn events<T: AsRef<str>>(data: impl IntoIterator<Item = T>) -> Self {
        let stream: String =
            data.into_iter().map(|data| format!("data: {}\n\n", data.as_ref())).collect();
        Self::body(stream).header("content-type", "text/event-stream")
    }

    /// Sends `bytes` instead of an HTTP response and then closes the connection.
    pub fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self::new(200, Body::Raw(bytes.into()))
    }

    /// Reads the request and never responds.
    pub fn hang() -> Self {
        Self::raw("").then_hang()
    }

    /// Reads the request and closes the connection without a response.
    pub fn close() -> Self {
        Self::raw("")
    }

    fn new(status: u16, body: Body) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body,
            piece: usize::MAX,
            pause: Duration::ZERO,
            end: End::Complete,
        }
    }

    /// Replaces the status.
    pub fn with_status(self, status: u16) -> Self {
        Self { status, ..self }
    }

    /// Replaces the body.
    pub fn with_body(self, bytes: impl Into<Vec<u8>>) -> Self {
        Self { body: Body::Bytes(bytes.into()), ..self }
    }

    /// Adds a header.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sends the body in pieces of at most `bytes` bytes, each with a separate write.
    pub fn pieces(self, bytes: usize) -> Self {
        Self { piece: bytes.max(1), ..self }
    }

    /// Pauses for `time` before each piece.
    pub fn pause(self, time: Duration) -> Self {
        Self { pause: time, ..self }
    }

    /// Closes the connection after the body, before the announced length is reached.
    pub fn then_break_off(self) -> Self {
        Self { end: End::BreakOff, ..self }
    }

    /// Keeps the connection open after the body without ever reaching the announced length.
    pub fn then_hang(self) -> Self {
        Self { end: End::Hang, ..self }
    }

    /// Returns the bytes of the head and the body.
    fn wire(&self, request: &Recorded) -> (Vec<u8>, Vec<u8>) {
        let (kind, body) = match &self.body {
            Body::Raw(bytes) => return (Vec::new(), bytes.clone()),
            Body::Bytes(bytes) => (None, bytes.clone()),
            Body::Message { text, stream } => {
                match stream.unwrap_or_else(|| request.wants_stream()) {
                    true => (Some("text/event-stream"), event_stream(text, request)),
                    false => (
                        Some("application/json"),
                        completion(text, request).to_string().into_bytes(),
                    ),
                }
            }
        };
        let mut head = format!("HTTP/1.1 {} Scripted\r\n", self.status);
        let kind = kind.map(|kind| ("content-type".to_owned(), kind.to_owned()));
        for (name, value) in kind.iter().chain(&self.headers) {
            head += &format!("{name}: {value}\r\n");
        }
        let more = if self.end == End::Complete { 0 } else { 1000 };
        head += &format!("content-length: {}\r\nconnection: close\r\n\r\n", body.len() + more);
        (head.into_bytes(), body)
    }
}

/// Returns a complete chat completion. Its usage counts one token per word.
fn completion(text: &str, request: &Recorded) -> Value {
    json!({
        "id": "chatcmpl-0",
        "object": "chat.completion",
        "model": request.json().get("model").cloned().unwrap_or_default(),
        "choices": [{
            "index": 0,
            "message": {"role": "assistant", "content": text},
            "finish_reason": "stop",
        }],
        "usage": usage(text, request),
    })
}

fn event_stream(text: &str, request: &Recorded) -> Vec<u8> {
    let chunk = |choices: Value| {
        json!({
            "id": "chatcmpl-0", "object": "chat.completion.chunk", "choices": choices,
        })
    };
    let mut frames =
        vec![chunk(json!([{"index": 0, "delta": {"role": "assistant", "content": ""}}]))];
    frames.extend(
        text.split_inclusive(char::is_whitespace)
            .map(|word| chunk(json!([{"index": 0, "delta": {"content": word}}]))),
    );
    frames.push(chunk(json!([{"index": 0, "delta": {}, "finish_reason": "stop"}])));
    if request.json().pointer("/stream_options/include_usage") == Some(&Value::Bool(true)) {
        let mut last = chunk(json!([]));
        if let Some(fields) = last.as_object_mut() {
            fields.insert("usage".to_owned(), usage(text, request));
        }
        frames.push(last);
    }
    let frames = frames.iter().map(Value::to_string).chain(["[DONE]".to_owned()]);
    frames.map(|frame| format!("data: {frame}\n\n")).collect::<String>().into_bytes()
}

fn usage(text: &str, request: &Recorded) -> Value {
    let words = |text: &str| text.split_whitespace().count();
    let prompt: usize = request.messages().iter().map(|message| words(message)).sum();
    json!({
        "prompt_tokens": prompt,
        "completion_tokens": words(text),
        "total_tokens": prompt + words(text),
    })
}

impl Provider {
    /// Starts an endpoint that returns the scripted answers in order, and status 500 after the last
    /// one.
    ///
    /// # Panics
    /// Panics if no port can be opened on loopback.
    pub fn start(script: impl IntoIterator<Item = Answer>) -> Self {
        Self::serving(Shared {
            script: Mutex::new(script.into_iter().collect()),
            ..Shared::default()
        })
    }

    /// Starts an endpoint that calls `respond` for each request and returns its answer.
    ///
    /// # Panics
    /// Panics if no port can be opened on loopback.
    pub fn answering(respond: impl Fn(&Recorded) -> Answer + Send + Sync + 'static) -> Self {
        Self::serving(Shared { respond: Some(Box::new(respond)), ..Shared::default() })
    }

    #[allow(clippy::expect_used, reason = "a test cannot go on without its provider")]
    fn serving(shared: Shared) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port on loopback");
        let address = listener.local_addr().expect("the address of the port");
        let shared = Arc::new(shared);
        let accepting = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming() {
                if accepting.stopped.load(Ordering::Relaxed) {
                    break;
                }
                let shared = Arc::clone(&accepting);
                // A failed connection does not affect other connections.
                if let Ok(stream) = stream {
                    thread::spawn(move || serve(stream, &shared));
                }
            }
        });
        Self { address, shared }
    }

    /// Returns the base URL: `http://127.0.0.1:PORT/v1`.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Returns the host and port in the form of a host rule: `127.0.0.1:PORT`.
    pub fn host(&self) -> String {
        self.address.to_string()
    }

    /// Adds an answer to the script.
    pub fn push(&self, answer: Answer) {
        lock(&self.shared.script).push_back(answer);
    }

    /// Returns the requests received so far.
    pub fn requests(&self) -> Vec<Recorded> {
        lock(&self.shared.requests).clone()
    }

    /// Returns the number of unused answers in the script.
    pub fn unused_answers(&self) -> usize {
        lock(&self.shared.script).len()
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::Relaxed);
        // Wakes the thread that accepts connections.
        let _ = TcpStream::connect(self.address);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn serve(mut stream: TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let request = read_request(&mut stream)?;
    let answer = {
        let mut requests = lock(&shared.requests);
        requests.push(request.clone());
        lock(&shared.script).pop_front()
    };
    let respond = shared.respond.as_ref().map(|respond| respond(&request));
    let answer = answer.or(respond).unwrap_or_else(|| {
        Answer::status(500)
            .with_body(r#"{"error":{"message":"the script of the fake provider is used up"}}"#)
    });
    let (head, body) = answer.wire(&request);
    stream.write_all(&head)?;
    for piece in body.chunks(answer.piece) {
        thread::sleep(answer.pause);
        stream.write_all(piece)?;
    }
    if answer.end == End::Hang {
        stream.set_read_timeout(Some(Duration::from_millis(20)))?;
        while !shared.stopped.load(Ordering::Relaxed) {
            match stream.read(&mut [0]) {
                Ok(0) => break,
                Err(why)
                    if !matches!(
                        why.kind(),
                        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
                    ) =>
                {
                    break;
                }
                Ok(_) | Err(_) => {}
            }
        }
    }
    Ok(())
}

fn read_request(stream: &mut TcpStream) -> io::Result<Recorded> {
    let mut bytes = Vec::new();
    let mut piece = [0; 8192];
    let (head, start) = loop {
        let n = stream.read(&mut piece)?;
        if n == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes.extend(piece.iter().take(n));
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break (
                String::from_utf8_lossy(bytes.get(..at).unwrap_or_default()).into_owned(),
                at + 4,
            );
        }
    };
    let mut lines = head.lines();
    let mut words = lines.next().unwrap_or_default().split(' ').map(str::to_owned);
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length =
        headers.iter().find(|(name, _)| name == "content-length").and_then(|(_, n)| n.parse().ok());
    let mut body = bytes.split_off(start);
    let missing = length.unwrap_or(0_u64).saturating_sub(body.len() as u64);
    stream.take(missing).read_to_end(&mut body)?;
    Ok(Recorded { method, path, headers, body: String::from_utf8_lossy(&body).into_owned() })
}
