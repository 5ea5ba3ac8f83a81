//! A client over plain TCP that sends raw requests and reads responses and frames one at a time.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value as Json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

/// Timeout for every operation that waits. The tests share their machine with others.
pub(crate) const NEVER: Duration = Duration::from_secs(60);

/// A connection to the server.
pub(crate) struct Client {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// The head of a response.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
}

/// A complete response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) head: Head,
    pub(crate) body: String,
}

/// A frame in a stream of server-sent events.
#[derive(Debug)]
pub(crate) enum Frame {
    /// An event. A live event has no id.
    Event {
        id: Option<u64>,
        data: Json,
    },
    Comment(String),
}

impl Head {
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }
}

impl Answer {
    pub(crate) fn json(&self) -> Json {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Asserts that the response is an error with the given status and code. Returns its message.
    pub(crate) fn refused(&self, status: u16, code: &str) -> String {
        assert_eq!(self.head.status, status, "{self:?}");
        assert_eq!(self.head.get("content-type"), Some("application/json"), "{self:?}");
        let json = self.json();
        let keys: Vec<&String> = json["error"].as_object().unwrap().keys().collect();
        assert_eq!(keys, ["code", "message", "hint", "retryable"]);
        assert_eq!(json["error"]["code"], code, "{self:?}");
        assert_eq!(json["error"]["retryable"], self.head.get("retry-after").is_some(), "{self:?}");
        json["error"]["message"].as_str().unwrap().to_owned()
    }
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Client {
        let stream = timeout(NEVER, TcpStream::connect(address)).await.unwrap().unwrap();
        Client { stream, buffer: Vec::new() }
    }

    /// Connects with the smallest receive buffer, so that the server soon has to wait for the client.
    pub(crate) async fn connect_with_small_buffer(address: SocketAddr) -> Client {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(1).unwrap();
        let stream = timeout(NEVER, socket.connect(address)).await.unwrap().unwrap();
        Client { stream, buffer: Vec::new() }
    }

    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).await.unwrap();
    }

    /// Sends data that the server may refuse to read. Ignores errors.
    pub(crate) async fn send_in_vain(&mut self, bytes: impl AsRef<[u8]>) {
        drop(self.stream.write_all(bytes.as_ref()).await);
    }

    /// Reads more data into the buffer. Returns false at the end of the connection.
    async fn more(&mut self) -> bool {
        let mut piece = [0; 4096];
        let read = timeout(NEVER, self.stream.read(&mut piece))
            .await
            .expect("the server sends nothing")
            .unwrap_or(0);
        self.buffer.extend_from_slice(&piece[..read]);
        read > 0
    }

    /// Reads up to a delimiter. Returns the data before the delimiter, or `None` at the end of the
    /// connection.
    async fn until(&mut self, mark: &str) -> Option<String> {
        loop {
            if let Some(at) =
                self.buffer.windows(mark.len()).position(|window| window == mark.as_bytes())
            {
                let rest = self.buffer.split_off(at + mark.len());
                let mut text = std::mem::replace(&mut self.buffer, rest);
                text.truncate(at);
                return Some(String::from_utf8(text).unwrap());
            }
            if !self.more().await {
                return None;
            }
        }
    }

    async fn exactly(&mut self, count: usize) -> String {
        while self.buffer.len() < count {
            assert!(self.more().await, "the connection broke off");
        }
        let rest = self.buffer.split_off(count);
        String::from_utf8(std::mem::replace(&mut self.buffer, rest)).unwrap()
    }

    pub(crate) async fn head(&mut self) -> Head {
        let head = self.until("\r\n\r\n").await.expect("the connection ended without an answer");
        let mut lines = head.split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers = lines
            .map(|line| line.split_once(": ").unwrap())
            .map(|(n, v)| (n.to_lowercase(), v.to_owned()));
        Head { status, headers: headers.collect() }
    }

    pub(crate) async fn answer(&mut self) -> Answer {
        let head = self.head().await;
        let length = head.get("content-length").map_or(0, |length| length.parse().unwrap());
        let body = self.exactly(length).await;
        Answer { head, body }
    }

    /// Reads the next chunk of a chunked body. Returns `None` at the proper end of the body.
    async fn chunk(&mut self) -> Option<String> {
        let size = self.until("\r\n").await.expect("the stream broke off");
        let size = usize::from_str_radix(&size, 16).unwrap();
        let chunk = self.exactly(size).await;
        self.exactly(2).await;
        (size > 0).then_some(chunk)
    }

    /// Reads the next frame of any event stream, with its data as a string. Returns `None` at the
    /// proper end of the stream.
    pub(crate) async fn any_frame(&mut self) -> Option<Frame> {
        let text = self.chunk().await?;
        if let Some(comment) = text.strip_prefix(": ").or(text.strip_prefix(':')) {
            return Some(Frame::Comment(comment.trim_end().to_owned()));
        }
        let data: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
        Some(Frame::Event { id: None, data: data.join("\n").into() })
    }

    /// Reads the next frame with data, which must be a single HTTP chunk. Returns its unparsed `id`
    /// and its data, or `None` at the proper end of the stream.
    pub(crate) async fn identified(&mut self) -> Option<(Option<String>, Json)> {
        loop {
            let text = self.chunk().await?;
            if text.starts_with(':') {
                continue;
            }
            let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
            let data = serde_json::from_str(field("data: ").unwrap()).unwrap();
            return Some((field("id: ").map(str::to_owned), data));
        }
    }

    /// Reads the next frame, which must be a single HTTP chunk. Returns `None` at the proper end of
    /// the stream.
    pub(crate) async fn frame(&mut self) -> Option<Frame> {
        let text = self.chunk().await?;
        let text =
            text.strip_suffix("\n\n").unwrap_or_else(|| panic!("{text:?} is not a complete frame"));
        if let Some(comment) = text.strip_prefix(": ").or(text.strip_prefix(':')) {
            return Some(Frame::Comment(comment.to_owned()));
        }
        let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
        let id: Option<u64> = field("id: ").map(|id| id.parse().unwrap());
        assert_eq!(text.lines().count(), 1 + usize::from(id.is_some()), "{text}");
        let data = serde_json::from_str(field("data: ").unwrap()).unwrap();
        Some(Frame::Event { id, data })
    }

    /// Reads the next event, skipping heartbeats. Returns `None` at the proper end of the stream.
    pub(crate) async fn event(&mut self) -> Option<Json> {
        loop {
            match self.frame().await? {
                Frame::Event { id, data } => {
                    if let Some(id) = id {
                        assert_eq!(data["seq"], id);
                    }
                    return Some(data);
                }
                Frame::Comment(_) => {}
            }
        }
    }

    /// Reads all events until the end of the stream.
    pub(crate) async fn events(&mut self) -> Vec<Json> {
        let mut events = Vec::new();
        while let Some(event) = self.event().await {
            events.push(event);
        }
        events
    }

    /// Reads everything until the end of the connection.
    pub(crate) async fn rest(&mut self) -> Vec<u8> {
        while self.more().await {}
        std::mem::take(&mut self.buffer)
    }

    /// Waits for the server to close the connection.
    pub(crate) async fn closed(&mut self) {
        while self.more().await {}
    }
}
