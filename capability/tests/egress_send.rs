//! The guard at work against servers on loopback and resolvers that lie.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by a panic")]

use std::collections::{HashMap, VecDeque};
use std::future::ready;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use wattle_capability::egress::{
    Egress, EgressErrorKind as Kind, HeaderValue, Limits, Method, Policy, Request, Resolver, header,
};

/// Gives the prepared answers of a name one after the other, the last one for ever, and counts the questions.
#[derive(Clone, Default)]
struct Script {
    answers: Arc<Mutex<HashMap<String, VecDeque<Vec<IpAddr>>>>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Script {
    fn new(names: &[(&str, &[&[&str]])]) -> Self {
        let script = Self::default();
        for (name, answers) in names {
            let parse = |answer: &&[&str]| answer.iter().map(|ip| ip.parse().unwrap()).collect();
            script.answers.lock().unwrap().insert((*name).to_owned(), answers.iter().map(parse).collect());
        }
        script
    }

    fn asked(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

impl Resolver for Script {
    fn resolve(&self, name: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        self.asked.lock().unwrap().push(name.to_owned());
        let mut answers = self.answers.lock().unwrap();
        let found = answers.get_mut(name).and_then(|queue| match queue.len() {
            1 => queue.front().cloned(),
            _ => queue.pop_front(),
        });
        ready(found.ok_or_else(|| io::Error::other("no such name"))).boxed()
    }
}

/// A server that gives each connection the next of its answers, and keeps what it was sent.
struct Server {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
}

type Answers = Vec<Vec<u8>>;

async fn serve_at(ip: &str, port: u16, answers: Answers) -> Server {
    let listener = TcpListener::bind((ip, port)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let requests = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&requests);
    tokio::spawn(async move {
        for answer in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            let request = read_request(&mut stream).await;
            seen.lock().unwrap().push(request);
            let _ = stream.write_all(&answer).await;
        }
    });
    Server { address, requests }
}

async fn serve(answers: &[String]) -> Server {
    serve_at("127.0.0.1", 0, answers.iter().map(|answer| answer.clone().into_bytes()).collect()).await
}

impl Server {
    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    fn rule(&self) -> String {
        self.address.to_string()
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

async fn read_request(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let n = stream.read(&mut piece).await.unwrap_or(0);
        text.extend_from_slice(&piece[..n]);
        let whole = String::from_utf8_lossy(&text).into_owned();
        let length = whole.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok()).unwrap_or(0);
        if n == 0 || whole.split_once("\r\n\r\n").is_some_and(|(_, body)| body.len() >= length) {
            return whole;
        }
    }
}

fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
}

fn moved(status: u16, to: &str) -> String {
    format!("HTTP/1.1 {status} Moved\r\nlocation: {to}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
}

fn allowing(rules: &[String]) -> Policy {
    Policy { allow: rules.iter().map(|rule| rule.parse().unwrap()).collect(), ..Policy::default() }
}

fn limited(server: &Server, limits: Limits) -> Egress {
    Egress::new(Policy { limits, ..allowing(&[server.rule()]) })
}

#[tokio::test]
async fn an_allowed_host_answers() {
    let server = serve(&[ok("hello")]).await;
    let egress = Egress::new(allowing(&[server.rule()]));
    let response = egress.send(Request::get(server.url("/a?b=c#d"))).await.unwrap();
    assert_eq!((response.status.as_u16(), &response.body[..]), (200, &b"hello"[..]));
    assert_eq!(response.url.as_str(), server.url("/a?b=c"));
    let request = &server.requests()[0];
    assert!(request.starts_with("GET /a?b=c HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("user-agent: wattle/") && !request.contains("cookie") && !request.contains("referer"));
}

#[tokio::test]
async fn a_failure_status_is_a_response() {
    let server = serve(&["HTTP/1.1 500 Oh\r\ncontent-length: 2\r\n\r\nno".to_owned()]).await;
    let response = Egress::new(allowing(&[server.rule()])).send(Request::get(server.url("/"))).await.unwrap();
    assert_eq!((response.status.as_u16(), &response.body[..]), (500, &b"no"[..]));
}

#[tokio::test]
async fn every_class_of_address_behind_a_name_is_refused_before_connecting() {
    for (address, class) in [
        ("127.0.0.1", "loopback"),
        ("::1", "loopback"),
        ("::ffff:127.0.0.1", "loopback"),
        ("10.0.0.1", "private"),
        ("192.168.0.1", "private"),
        ("172.20.0.1", "private"),
        ("64:ff9b::a00:1", "private"),
        ("169.254.0.1", "link-local"),
        ("fe80::1", "link-local"),
        ("100.64.0.1", "carrier-grade NAT"),
        ("fc00::1", "unique local"),
        ("224.0.0.1", "multicast"),
        ("ff02::1", "multicast"),
        ("255.255.255.255", "broadcast"),
        ("0.0.0.0", "unspecified"),
        ("::", "unspecified"),
        ("198.18.0.1", "benchmark"),
        ("192.0.2.1", "documentation"),
        ("2001:db8::1", "documentation"),
        ("240.0.0.1", "reserved"),
        ("169.254.169.254", "cloud metadata"),
        ("fd00:ec2::254", "cloud metadata"),
        ("2002:7f00:1::", "tunnel"),
        ("2001:0:7f00:1::", "tunnel"),
        ("::7f00:1", "tunnel"),
    ] {
        let script = Script::new(&[("name.example", &[&["1.1.1.1", address]])]);
        let egress = Egress::with_resolver(Policy::default(), script.clone());
        let why = egress.send(Request::get("http://name.example/")).await.unwrap_err();
        assert!(why.is_refusal(), "{address}: {why}");
        let text = why.to_string();
        let article = if class == "unspecified" { "an" } else { "a" };
        assert!(
            text.starts_with(&format!("refused: name.example resolves to {address}, {article} {class} address; ")),
            "{text}"
        );
        let permittable = !matches!(class, "cloud metadata" | "multicast" | "broadcast");
        assert_eq!(text.ends_with("; `--allow-host name.example` would permit it"), permittable, "{text}");
        assert_eq!(script.asked(), 1);
    }
}

#[tokio::test]
async fn an_allowed_name_still_does_not_lead_to_metadata() {
    let script = Script::new(&[("name.example", &[&["169.254.169.254"]])]);
    let egress = Egress::with_resolver(allowing(&["name.example".to_owned()]), script);
    let why = egress.send(Request::get("http://name.example/")).await.unwrap_err();
    assert!(why.is_refusal() && why.to_string().contains("no setting permits"), "{why}");
}

#[tokio::test]
async fn a_rebinding_name_is_looked_up_once_and_connected_where_it_was_checked() {
    let first = serve(&[ok("first")]).await;
    let port = first.address.port();
    let second = serve_at("127.0.0.2", port, vec![ok("second").into_bytes()]).await;
    let script = Script::new(&[("twice.example", &[&["127.0.0.1"], &["127.0.0.2"]])]);
    let egress = Egress::with_resolver(allowing(&[format!("twice.example:{port}")]), script.clone());
    let response = egress.send(Request::get(format!("http://twice.example:{port}/"))).await.unwrap();
    assert_eq!(&response.body[..], b"first");
    assert_eq!((script.asked(), second.requests().len()), (1, 0));
    assert!(first.requests()[0].contains(&format!("\r\nhost: twice.example:{port}\r\n")), "{:?}", first.requests());
}

#[tokio::test]
async fn a_name_that_is_public_at_first_never_reaches_loopback() {
    let server = serve(&[ok("inside")]).await;
    let port = server.address.port();
    // A public address that nobody has been given: the connection fails or times out.
    let script = Script::new(&[("twice.example", &[&["2000::1"], &["127.0.0.1"]])]);
    let limits = Limits { time: Duration::from_millis(300), ..Limits::default() };
    let egress = Egress::with_resolver(Policy { limits, ..Policy::default() }, script.clone());
    let url = format!("http://twice.example:{port}/");
    let why = egress.send(Request::get(&url)).await.unwrap_err();
    assert!(why.is_transient(), "{why}");
    assert_eq!(script.asked(), 1);
    let why = egress.send(Request::get(&url)).await.unwrap_err();
    assert!(why.is_refusal(), "{why}");
    assert!(server.requests().is_empty());
}

/// The same name on an allowed and on another port: what the first may reach is no door for the second.
#[tokio::test]
async fn a_rule_for_one_port_opens_no_other() {
    let (open, shut) = (serve(&[ok("open"), ok("open")]).await, serve(&[ok("shut")]).await);
    let script = Script::new(&[("host.example", &[&["127.0.0.1"]])]);
    let egress = Egress::with_resolver(allowing(&[format!("host.example:{}", open.address.port())]), script);
    let ask = |port: u16| egress.send(Request::get(format!("http://host.example:{port}/")));
    let (allowed, refused) = tokio::join!(ask(open.address.port()), ask(shut.address.port()));
    assert_eq!(&allowed.unwrap().body[..], b"open");
    assert!(refused.unwrap_err().is_refusal());
    assert!(shut.requests().is_empty());
}

#[tokio::test]
async fn names_without_an_address_fail_to_resolve() {
    let script = Script::new(&[("empty.example", &[&[]])]);
    let egress = Egress::with_resolver(Policy::default(), script);
    for (name, why) in [("empty.example", "the name has no address"), ("missing.example", "no such name")] {
        let error = egress.send(Request::get(format!("http://{name}/"))).await.unwrap_err();
        assert_eq!(error.kind(), Kind::Resolve);
        assert_eq!(error.to_string(), format!("failed to resolve {name}: {why}"));
    }
}

#[tokio::test]
async fn the_server_name_goes_out_in_the_tls_handshake() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let script = Script::new(&[("secure.example", &[&["127.0.0.1"]])]);
    let egress = Egress::with_resolver(allowing(&["secure.example".to_owned()]), script);
    let hello = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut bytes = vec![0; 4096];
        let n = stream.read(&mut bytes).await.unwrap();
        bytes.truncate(n);
        bytes
    });
    let why = egress.send(Request::get(format!("https://secure.example:{port}/"))).await.unwrap_err();
    assert_eq!(why.kind(), Kind::Connect, "{why}");
    let hello = hello.await.unwrap();
    assert!(hello.windows(14).any(|window| window == b"secure.example"), "no server name in the client's greeting");
}

#[tokio::test]
async fn redirects_to_what_is_not_public_are_refused() {
    for to in [
        "http://127.0.0.1:1/",
        "http://2130706433:1/",
        "//0x7f.1:1/",
        "http://[::1]:1/",
        "http://169.254.169.254/latest/",
        "http://localhost:1/",
        "http://metadata.google.internal/",
        "file:///etc/passwd",
        "ftp://example.com/",
        "http://user:pass@example.com/",
    ] {
        let server = serve(&[moved(302, to)]).await;
        let why = Egress::new(allowing(&[server.rule()])).send(Request::get(server.url("/"))).await.unwrap_err();
        assert!(why.is_refusal(), "{to}: {why}");
    }
}

#[tokio::test]
async fn a_redirect_out_of_the_domain_list_is_refused() {
    let server = serve(&[moved(301, "https://elsewhere.example/")]).await;
    let only = Some(vec!["example.com".parse().unwrap()]);
    let egress = Egress::new(Policy { only, ..allowing(&[server.rule()]) });
    let why = egress.send(Request::get(server.url("/"))).await.unwrap_err();
    assert!(why.to_string().starts_with("refused: elsewhere.example is not one of the allowed domains"), "{why}");
}

#[tokio::test]
async fn redirects_are_followed_within_their_bound() {
    let chain: Vec<String> = (1..=6).map(|i| moved(302, &format!("/{i}"))).chain([ok("end")]).collect();
    for (limit, reaches) in [(5, false), (6, true)] {
        let server = serve(&chain).await;
        let egress = limited(&server, Limits { redirects: limit, ..Limits::default() });
        match egress.send(Request::get(server.url("/0"))).await {
            Ok(response) => {
                assert!(reaches);
                assert_eq!(response.url.as_str(), server.url("/6"));
            }
            Err(why) => {
                assert!(!reaches && why.kind() == Kind::Redirect, "{why}");
                assert_eq!(server.requests().len(), limit + 1);
            }
        }
    }
}

#[tokio::test]
async fn a_redirect_changes_the_method_as_browsers_do() {
    for (status, method, expected) in [
        (301, Method::POST, "GET"),
        (302, Method::POST, "GET"),
        (303, Method::PUT, "GET"),
        (303, Method::HEAD, "HEAD"),
        (307, Method::POST, "POST"),
        (308, Method::PUT, "PUT"),
    ] {
        let server = serve(&[moved(status, "/next"), ok("")]).await;
        let mut request = Request::post(server.url("/"), "data");
        request.method = method;
        request.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
        request.headers.insert(header::AUTHORIZATION, HeaderValue::from_static("Bearer k"));
        Egress::new(allowing(&[server.rule()])).send(request).await.unwrap();
        let second = &server.requests()[1];
        assert!(second.starts_with(&format!("{expected} /next ")), "{status}: {second}");
        let keeps_body = matches!(expected, "POST" | "PUT");
        assert_eq!(
            second.ends_with("data") && second.contains("content-type"),
            keeps_body || expected == "HEAD",
            "{second}"
        );
        assert!(second.contains("authorization: Bearer k"), "same origin keeps its credentials: {second}");
    }
}

#[tokio::test]
async fn another_origin_gets_no_header_that_may_hold_a_secret() {
    let other = serve(&[ok("there")]).await;
    let server = serve(&[moved(307, &other.url("/x"))]).await;
    let mut request = Request::post(server.url("/"), "data");
    for (name, value) in [
        ("authorization", "Bearer top"),
        ("cookie", "s=top"),
        ("x-api-key", "top"),
        ("x-custom", "top"),
        ("accept", "text/html"),
        ("content-type", "text/plain"),
    ] {
        request.headers.insert(name, HeaderValue::from_static(value));
    }
    let mut secret = HeaderValue::from_static("top");
    secret.set_sensitive(true);
    request.headers.insert("accept-language", secret);
    let egress = Egress::new(allowing(&[server.rule(), other.rule()]));
    assert_eq!(&egress.send(request).await.unwrap().body[..], b"there");
    assert!(server.requests()[0].contains("authorization: Bearer top"));
    let second = &other.requests()[0];
    assert!(
        second.ends_with("data") && second.contains("accept: text/html") && second.contains("content-type: text/plain")
    );
    assert!(!second.contains("top"), "{second}");
}

#[tokio::test]
async fn headers_of_the_connection_cannot_be_given() {
    let egress = Egress::new(Policy::default());
    for name in
        ["host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "expect", "proxy-authorization"]
    {
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
    let bomb = include_bytes!("data/egress/zeros-16m.gz");
    let big = vec![b'a'; 100_000];
    let mut chunked = format!("{:x}\r\n", big.len()).into_bytes();
    chunked.extend_from_slice(&big);
    chunked.extend_from_slice(b"\r\n0\r\n\r\n");
    for (what, answer) in [
        ("announced", framed("content-length: 100000", &big)),
        ("announced far too large", framed("content-length: 18446744073709551615", &big)),
        ("until the end of the connection", framed("connection: close", &big)),
        ("chunked", framed("transfer-encoding: chunked", &chunked)),
        ("a bomb", framed(&format!("content-encoding: gzip\r\ncontent-length: {}", bomb.len()), bomb)),
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
async fn broken_answers_are_told_apart_from_whole_ones() {
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
        let why = Egress::new(allowing(&[server.rule()])).send(Request::get(server.url("/"))).await.expect_err(what);
        assert_eq!(why.kind(), Kind::Broken, "{what}: {why}");
    }
}

/// Answers `head`, then one byte at a time until the client goes away.
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
    for head in ["", "HTTP/1.1 200 OK\r\nx-slow: ", "HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n"] {
        let address = drip(head).await;
        let limits = Limits { time: Duration::from_millis(150), ..Limits::default() };
        let egress = Egress::new(Policy { limits, ..allowing(&[address.to_string()]) });
        let why = egress.send(Request::get(format!("http://{address}/"))).await.unwrap_err();
        assert!(matches!(why.kind(), Kind::Timeout | Kind::Broken), "{head:?}: {why}");
        assert!(why.kind() == Kind::Timeout || head.is_empty(), "{head:?}: {why}");
    }
}

#[tokio::test]
async fn nobody_listening_is_a_failed_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let why =
        Egress::new(allowing(&[address.to_string()])).send(Request::get(format!("http://{address}/k?secret=1"))).await;
    let why = why.unwrap_err();
    assert_eq!(why.kind(), Kind::Connect);
    assert!(!why.to_string().contains("secret"), "an error repeats no path or query: {why}");
}

#[tokio::test]
async fn an_endpoint_is_open_to_its_own_client_only() {
    let server = serve(&[ok("model")]).await;
    let egress = Egress::new(Policy::default());
    let endpoint = egress.endpoint(&server.url("/v1").parse().unwrap()).unwrap();
    assert!(egress.send(Request::get(server.url("/v1"))).await.unwrap_err().is_refusal());
    for other in ["http://127.0.0.1:1/", &server.url("/v1").replace("http:", "https:"), "http://example.com/"] {
        let why = endpoint.send(Request::get(other)).await.unwrap_err();
        assert!(why.is_refusal() && why.to_string().contains("outside the configured endpoint"), "{why}");
    }
    assert_eq!(&endpoint.send(Request::get(server.url("/v1/models"))).await.unwrap().body[..], b"model");
    assert!(
        egress.send(Request::get(server.url("/v1"))).await.unwrap_err().is_refusal(),
        "its connections are not shared"
    );
}

#[tokio::test]
async fn an_endpoint_that_redirects_is_a_setting_to_correct() {
    let server = serve(&[moved(308, "https://new.example/v1/x")]).await;
    let endpoint = Egress::new(Policy::default()).endpoint(&server.url("/").parse().unwrap()).unwrap();
    let why = endpoint.send(Request::get(server.url("/x"))).await.unwrap_err();
    assert_eq!(why.kind(), Kind::Redirect);
    assert!(why.to_string().contains("redirects to `https://new.example/v1/x`"), "{why}");
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
    let egress = Egress::new(allowing(&[address.to_string()]));
    let mut response = egress.start(Request::get(format!("http://{address}/"))).await.unwrap();
    assert_eq!(response.chunk().await.unwrap().as_deref(), Some(&b"one"[..]));
    go.send(()).unwrap();
    assert_eq!(response.chunk().await.unwrap().as_deref(), Some(&b"two"[..]));
    assert_eq!(response.chunk().await.unwrap(), None);
}
