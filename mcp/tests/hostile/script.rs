//! Scripted servers, over streams in memory and over HTTP.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value as Json, json};
use tokio::io::{
    AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, DuplexStream,
};
use tokio::net::{TcpListener, TcpStream};
use wattle_mcp::{Launch, Launched, Launcher};

/// What a server does when it gets a request.
#[derive(Clone)]
pub(crate) enum Act {
    /// Answers like a well-behaved server.
    Usual,
    /// Answers with this result.
    Result(Json),
    /// Answers with an error of this message.
    Error(&'static str),
    /// Answers the request with this id with this result.
    As(Json, Json),
    /// Answers with this result, one byte a write.
    Bytewise(Json),
    /// Writes these bytes. `$id` is replaced by the request's id.
    Raw(Vec<u8>),
    /// Writes these bytes many times.
    Times(usize, Vec<u8>),
    /// Writes these bytes again and again.
    Forever(Vec<u8>),
    /// Writes these bytes to its standard error.
    Stderr(Vec<u8>),
    /// Reads nothing more.
    Deaf,
    /// Ends.
    Crash,
}

/// The acts of a server by the method of the request: those for the first request, for the second,
/// and so on. The last ones are repeated.
pub(crate) type Script = Vec<(&'static str, Vec<Act>)>;

/// A server with its script. It counts the requests of each method, over all its connections.
#[derive(Clone)]
pub(crate) struct Scripted {
    script: Arc<Script>,
    seen: Arc<Mutex<BTreeMap<String, usize>>>,
}

impl Scripted {
    pub(crate) fn new(script: Script) -> Scripted {
        Scripted { script: Arc::new(script), seen: Arc::default() }
    }

    /// Returns how many requests of a method the server got.
    pub(crate) fn count(&self, method: &str) -> usize {
        self.seen.lock().get(method).copied().unwrap_or(0)
    }

    fn acts(&self, method: &str) -> Vec<Act> {
        let nth = {
            let mut seen = self.seen.lock();
            let count = seen.entry(method.to_owned()).or_default();
            *count += 1;
            *count - 1
        };
        let mut of_method = self.script.iter().filter(|(of, _)| *of == method);
        let last = of_method.clone().next_back();
        let acts = of_method.nth(nth).or(last);
        acts.map_or_else(|| vec![Act::Usual], |(_, acts)| acts.clone())
    }
}

/// Returns the answer of a well-behaved server of the version 2025-11-25.
fn usual(request: &Json) -> Json {
    let id = &request["id"];
    let result = match request["method"].as_str().unwrap_or_default() {
        "initialize" => json!({
            "protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": true}},
            "serverInfo": {"name": "scripted", "version": "1"},
        }),
        "tools/list" => json!({"tools": [tool("echo")]}),
        "tools/call" => text("ok"),
        method => {
            let error = json!({"code": -32601, "message": format!("unknown method {method}")});
            return json!({"jsonrpc": "2.0", "id": id, "error": error});
        }
    };
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

/// Returns a tool that takes nothing.
pub(crate) fn tool(name: &str) -> Json {
    json!({"name": name, "description": "Says ok.", "inputSchema": {"type": "object"}})
}

/// Returns the result of a call: a text.
pub(crate) fn text(text: &str) -> Json {
    json!({"content": [{"type": "text", "text": text}]})
}

/// Returns a line with a message.
pub(crate) fn line(message: &Json) -> Vec<u8> {
    format!("{message}\n").into_bytes()
}

fn answer(request: &Json, act: &Act) -> Option<Json> {
    let id = &request["id"];
    Some(match act {
        Act::Usual => usual(request),
        Act::Result(result) | Act::Bytewise(result) => {
            json!({"jsonrpc": "2.0", "id": id, "result": result})
        }
        Act::Error(message) => {
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32000, "message": message}})
        }
        Act::As(id, result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        _ => return None,
    })
}

/// Replaces `$id` by the request's id.
fn filled(bytes: &[u8], request: &Json) -> Vec<u8> {
    let Some(at) = bytes.windows(3).position(|three| three == b"$id") else {
        return bytes.to_owned();
    };
    let rest = filled(&bytes[at + 3..], request);
    [&bytes[..at], request["id"].to_string().as_bytes(), &rest].concat()
}

/// Serves one connection over streams until it ends.
async fn serve(
    server: Scripted,
    input: DuplexStream,
    mut output: DuplexStream,
    mut errors: DuplexStream,
) -> io::Result<()> {
    let mut lines = BufReader::new(input).lines();
    while let Some(read) = lines.next_line().await? {
        let request: Json = serde_json::from_str(&read)?;
        // Notifications and answers get no answer.
        let (Some(method), true) = (request["method"].as_str(), request.get("id").is_some()) else {
            continue;
        };
        for act in server.acts(method) {
            match (&act, answer(&request, &act)) {
                (Act::Bytewise(_), Some(answer)) => {
                    for byte in line(&answer) {
                        output.write_all(&[byte]).await?;
                        tokio::task::yield_now().await;
                    }
                }
                (_, Some(answer)) => output.write_all(&line(&answer)).await?,
                (Act::Raw(bytes), _) => output.write_all(&filled(bytes, &request)).await?,
                (Act::Times(times, bytes), _) => repeat(&mut output, bytes, *times).await?,
                (Act::Forever(bytes), _) => repeat(&mut output, bytes, usize::MAX).await?,
                (Act::Stderr(bytes), _) => errors.write_all(bytes).await?,
                (Act::Deaf, _) => std::future::pending().await,
                (_, None) => return Ok(()),
            }
        }
    }
    Ok(())
}

async fn repeat(
    output: &mut (impl AsyncWrite + Unpin),
    bytes: &[u8],
    times: usize,
) -> io::Result<()> {
    let many = (1 << 16) / bytes.len().max(1) + 1;
    let block = bytes.repeat(many.min(times));
    let mut left = times;
    while left >= many {
        output.write_all(&block).await?;
        left -= many;
    }
    output.write_all(&bytes.repeat(left)).await
}

/// Starts scripted servers by their names.
pub(crate) struct Streams(pub(crate) BTreeMap<&'static str, Scripted>);

impl Launcher for Streams {
    fn launch<'a>(&'a self, server: &'a str) -> Launch<'a> {
        Box::pin(async move {
            let scripted = self.0.get(server).cloned();
            let scripted = scripted.ok_or_else(|| io::Error::other("no such command"))?;
            let (input, their_input) = tokio::io::duplex(1 << 16);
            let (output, their_output) = tokio::io::duplex(1 << 16);
            let (errors, their_errors) = tokio::io::duplex(1 << 16);
            tokio::spawn(serve(scripted, their_input, their_output, their_errors));
            Ok(Launched {
                output: Box::new(output),
                input: Box::new(input),
                errors: Box::new(errors),
            })
        })
    }
}

/// Serves a scripted server over HTTP on the loopback interface, and returns its URL.
pub(crate) async fn listen(server: Scripted) -> io::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/mcp", listener.local_addr()?);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve_http(server.clone(), stream));
        }
    });
    Ok(url)
}

/// Serves the requests of one HTTP connection. `Raw`, `Times` and `Forever` are the bytes of the
/// response; other acts are responses with a JSON body.
async fn serve_http(server: Scripted, stream: TcpStream) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let mut read = String::new();
            if stream.read_line(&mut read).await? == 0 {
                return Ok(());
            }
            if let Some(value) = read.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().map_err(io::Error::other)?;
            }
            if read == "\r\n" {
                break;
            }
            head.push_str(&read);
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await?;
        if !head.starts_with("POST") {
            let acts = server.acts(head.split(' ').next().unwrap_or_default());
            let refusal = b"HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\n\r\n".to_vec();
            let acts = acts.into_iter().map(|act| match act {
                Act::Usual => Act::Raw(refusal.clone()),
                act => act,
            });
            respond(&mut stream, &json!({}), acts.collect()).await?;
            continue;
        }
        let request: Json = serde_json::from_slice(&body)?;
        if request.get("id").is_none() || request.get("method").is_none() {
            stream.write_all(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n").await?;
            continue;
        }
        let acts = server.acts(request["method"].as_str().unwrap_or_default());
        respond(&mut stream, &request, acts).await?;
    }
}

async fn respond(
    stream: &mut BufReader<TcpStream>,
    request: &Json,
    acts: Vec<Act>,
) -> io::Result<()> {
    for act in acts {
        match (&act, answer(request, &act)) {
            (_, Some(answer)) => {
                let body = answer.to_string();
                stream.write_all(&http("200 OK", "application/json", body.as_bytes())).await?;
            }
            (Act::Raw(bytes), _) => stream.write_all(&filled(bytes, request)).await?,
            (Act::Times(times, bytes), _) => repeat(stream, bytes, *times).await?,
            (Act::Forever(bytes), _) => repeat(stream, bytes, usize::MAX).await?,
            (Act::Deaf, _) => std::future::pending().await,
            (_, None) => return Err(io::Error::other("it crashes")),
        }
    }
    Ok(())
}

/// Returns a response with a body.
pub(crate) fn http(status: &str, kind: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}
