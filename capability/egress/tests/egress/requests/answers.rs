//! Tests the headers and bodies of requests and responses, and the limits on size and time.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use wattle_egress::{EgressErrorKind as Kind, HeaderValue, Limits, Method, Policy, Request};

use super::site::{Open, allowing, limited, ok, read_request, serve, serve_at};

#[tokio::test]
async fn an_allowed_host_answers() {
    let server = serve(&[ok("hello")]).await;
    let egress = Open::new(allowing(&[server.rule()]));
    let mut response = egress.start(Request::get(server.url("/a?b=c#d"))).await.unwrap();
    assert_eq!(response.status.as_u16(), 200);
    assert_eq!(response.chunk().await.unwrap().as_deref(), Some(&b"hello"[..]));
    assert_eq!(response.url.as_str(), server.url("/a?b=c"));
    let request = &server.requests()[0];
    assert!(request.starts_with("GET /a?b=c HTTP/1.1\r\n"), "{request}");
    assert!(
        request.contains("user-agent: wattle/")
            && !request.contains("cookie")
            && !request.contains("referer")
    );
}

#[tokio::test]
async fn a_failure_status_is_a_response() {
    let server = serve(&["HTTP/1.1 500 Oh\r\ncontent-length: 2\r\n\r\nno".to_owned()]).await;
    let response =
        Open::new(allowing(&[server.rule()])).send(Request::get(server.url("/"))).await.unwrap();
    assert_eq!((response.status.as_u16(), &response.body[..]), (500, &b"no"[..]));
}

#[tokio::test]
async fn headers_of_the_connection_cannot_be_given() {
    let egress = Open::new(Policy::default());
    for name in [
        "host",
        "content-length",
        "transfer-encoding",
        "connection",
        "upgrade",
        "te",
        "expect",
        "proxy-authorization",
    ] {
        let mut request = Request::get("https://example.com/");
        request.headers.insert(name, HeaderValue::from_static("x"));
        let why = egress.send(request).await.unwrap_err();
        assert_eq!(why.kind(), Kind::BadRequest);
        assert!(why.to_string().contains(name), "{why}");
    }
    for method in [Method::CONNECT, Method::TRACE] {
        let request = Request { method, ..Request::get("https://example.com/") };
        assert_eq!(egress.send(request).await.unwrap_err().kind(), Kind::BadRequest);
    }
}

fn framed(headers: &str, body: &[u8]) -> Vec<u8> {
    let mut answer = format!("HTTP/1.1 200 OK\r\n{headers}\r\n\r\n").into_bytes();
    answer.extend_from_slice(body);
    answer
}

#[tokio::test]
async fn a_body_over_the_limit_is_cut_off_however_it_comes() {
    let bomb = include_bytes!("../../data/zeros-16m.gz");
    let big = vec![b'a'; 100_000];
    let mut chunked = format!("{:x}\r\n", big.len()).into_bytes();
    chunked.extend_from_slice(&big);
    chunked.extend_from_slice(b"\r\n0\r\n\r\n");
    for (what, answer) in [
        ("announced", framed("content-length: 100000", &big)),
        ("announced far too large", framed("content-length: 18446744073709551615", &big)),
        ("until the end of the connection", framed("connection: close", &big)),
        ("chunked", framed("transfer-encoding: chunked", &chunked)),
        (
            "a bomb",
            framed(&format!("content-encoding: gzip\r\ncontent-length: {}", bomb.len()), bomb),
        ),
        ("a bomb without length", framed("content-encoding: gzip\r\nconnection: close", bomb)),
    ] {
        let server = serve_at("127.0.0.1", 0, vec![answer]).await;
        let egress = limited(&server, Limits { body: 50_000, ..Limits::default() });
        let why = egress.send(Request::get(server.url("/"))).await.expect_err(what);
        assert!(matches!(why.kind(), Kind::TooLarge | Kind::Broken), "{what}: {why}");
        assert_eq!(why.kind() == Kind::Broken, what == "announced far too large", "{what}: {why}");
    }
    let server = serve_at("127.0.0.1", 0, vec![framed("connection: close", &big)]).await;
    let exact = limited(&server, Limits { body: big.len(), ..Limits::default() });
    assert_eq!(exact.send(Request::get(server.url("/"))).await.unwrap().body.len(), big.len());
}

#[tokio::test]
async fn broken_responses_are_errors() {
    for (what, answer) in [
        ("shorter than announced", framed("content-length: 10", b"short")),
        ("chunk missing", framed("transfer-encoding: chunked", b"5\r\nhel")),
        ("bad chunk size", framed("transfer-encoding: chunked", b"zz\r\nhello\r\n0\r\n\r\n")),
        ("no HTTP", b"SSH-2.0-OpenSSH\r\n".to_vec()),
        ("nothing", Vec::new()),
        ("bad gzip", framed("content-encoding: gzip\r\ncontent-length: 5", b"hello")),
        ("endless header", [b"HTTP/1.1 200 OK\r\nx: ".to_vec(), vec![b'a'; 1 << 20]].concat()),
    ] {
        let server = serve_at("127.0.0.1", 0, vec![answer]).await;
        let why = Open::new(allowing(&[server.rule()]))
            .send(Request::get(server.url("/")))
            .await
            .expect_err(what);
        assert_eq!(why.kind(), Kind::Broken, "{what}: {why}");
    }
}

/// Starts a server that sends `head` and then one byte at a time until the client disconnects.
/// Returns the server's address.
async fn drip(head: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_request(&mut stream).await;
        let _ = stream.write_all(head.as_bytes()).await;
        while stream.write_all(b"a").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    address
}

#[tokio::test]
async fn slow_answers_end_at_the_time_limit() {
    for head in
        ["", "HTTP/1.1 200 OK\r\nx-slow: ", "HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n"]
    {
        let address = drip(head).await;
        let limits = Limits { time: Duration::from_millis(150), ..Limits::default() };
        let egress = Open::new(Policy { limits, ..allowing(&[address.to_string()]) });
        let why = egress.send(Request::get(format!("http://{address}/"))).await.unwrap_err();
        assert!(matches!(why.kind(), Kind::Timeout | Kind::Broken), "{head:?}: {why}");
        assert!(why.kind() == Kind::Timeout || head.is_empty(), "{head:?}: {why}");
    }
}

#[tokio::test]
async fn a_streamed_body_comes_piece_by_piece() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (go, wait) = tokio::sync::oneshot::channel::<()>();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_request(&mut stream).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\none").await.unwrap();
        wait.await.unwrap();
        stream.write_all(b"two").await.unwrap();
    });
    let egress = Open::new(allowing(&[address.to_string()]));
    let mut response = egress.start(Request::get(format!("http://{address}/"))).await.unwrap();
    assert_eq!(response.chunk().await.unwrap().as_deref(), Some(&b"one"[..]));
    go.send(()).unwrap();
    assert_eq!(response.chunk().await.unwrap().as_deref(), Some(&b"two"[..]));
    assert_eq!(response.chunk().await.unwrap(), None);
}
