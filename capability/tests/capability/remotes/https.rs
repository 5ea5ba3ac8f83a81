//! Tests of pushes over https to `git http-backend` behind a server that requires a token.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use wattle_capability::git::RemoteFiles;

use super::authority::{Authority, FUTURE, NOW, PAST};
use super::place::{Place, git, needed};

const TOKEN: &str = "t0ken-of-the-remote";

/// The behaviour of the test server.
#[derive(Clone, Copy, PartialEq)]
enum Answer {
    /// The server accepts pushes with the token.
    Open,
    /// The server accepts the token but forbids pushes.
    Forbidden,
    /// The server redirects to another location.
    Moved,
}

struct Server {
    port: u16,
    requests: Arc<Mutex<Vec<String>>>,
    /// One flag per connection, which is true if the connection is closed.
    connections: Arc<Mutex<Vec<Arc<AtomicBool>>>>,
}

impl Server {
    async fn start(folder: PathBuf, acceptor: TlsAcceptor, answer: Answer) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let connections = Arc::<Mutex<Vec<_>>>::default();
        let (seen, opened) = (Arc::clone(&requests), Arc::clone(&connections));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, seen, folder) =
                    (acceptor.clone(), Arc::clone(&seen), folder.clone());
                let closed = Arc::new(AtomicBool::new(false));
                opened.lock().unwrap().push(Arc::clone(&closed));
                tokio::spawn(async move {
                    let _close = Close(closed);
                    let Ok(mut stream) = acceptor.accept(stream).await else { return };
                    let mut request = Vec::new();
                    let mut piece = [0; 8192];
                    while let Ok(count @ 1..) = stream.read(&mut piece).await {
                        request.extend_from_slice(&piece[..count]);
                        if is_whole(&request) {
                            break;
                        }
                    }
                    // A client with GnuTLS completes the handshake before it verifies the
                    // certificate, and then disconnects without sending a byte. Any bytes received
                    // count as a request, even if it is incomplete.
                    if request.is_empty() {
                        return;
                    }
                    let end = request
                        .windows(4)
                        .position(|four| four == b"\r\n\r\n")
                        .unwrap_or(request.len());
                    let head = String::from_utf8_lossy(&request[..end]).into_owned();
                    seen.lock().unwrap().push(head.clone());
                    let body = request.get(end + 4..).unwrap_or_default().to_vec();
                    let response =
                        tokio::task::spawn_blocking(move || reply(&folder, &head, &body, answer))
                            .await
                            .unwrap();
                    let _ = stream.write_all(&response).await;
                    let _ = stream.shutdown().await;
                });
            }
        });
        Server { port, requests, connections }
    }

    fn url(&self) -> String {
        format!("https://localhost:{}/site.git", self.port)
    }

    fn requests(&self) -> usize {
        self.requests.lock().unwrap().len()
    }

    fn connections(&self) -> usize {
        self.connections.lock().unwrap().len()
    }

    /// Waits until every connection is closed, so that no request is still incomplete. Returns the
    /// total number of requests.
    async fn settled(&self) -> usize {
        let open =
            || self.connections.lock().unwrap().iter().any(|closed| !closed.load(Ordering::SeqCst));
        let wait = async {
            while open() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), wait).await.expect("a connection stays open");
        self.requests()
    }
}

/// A guard that marks a connection as closed on drop.
struct Close(Arc<AtomicBool>);

impl Drop for Close {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut fields = head.lines().filter_map(|line| line.split_once(": "));
    fields.find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

fn is_whole(request: &[u8]) -> bool {
    let Some(end) = request.windows(4).position(|four| four == b"\r\n\r\n") else { return false };
    let head = String::from_utf8_lossy(&request[..end]);
    let length = field(&head, "content-length").map_or(0, |length| length.parse().unwrap());
    request.len() >= end + 4 + length
}

fn reply(folder: &std::path::Path, head: &str, body: &[u8], answer: Answer) -> Vec<u8> {
    let plain = |status: &str| {
        format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").into_bytes()
    };
    let right = format!("Basic {}", STANDARD.encode(format!("x-access-token:{TOKEN}")));
    if field(head, "authorization") != Some(&right) {
        return plain("401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"git\"");
    }
    match answer {
        Answer::Open => {}
        Answer::Forbidden => return plain("403 Forbidden"),
        Answer::Moved => {
            return plain(
                "302 Found\r\nLocation: \
                 https://127.0.0.1:1/site.git/info/refs?service=git-receive-pack",
            );
        }
    }
    let line: Vec<&str> = head.lines().next().unwrap().split(' ').collect();
    let (path, query) = line[1].split_once('?').unwrap_or((line[1], ""));
    let mut command = Command::new(git().unwrap());
    command
        .arg("http-backend")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_PROJECT_ROOT", folder)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("REMOTE_USER", "acme")
        .env("REQUEST_METHOD", line[0])
        .env("PATH_INFO", path)
        .env("QUERY_STRING", query)
        .env("CONTENT_LENGTH", body.len().to_string())
        .env("CONTENT_TYPE", field(head, "content-type").unwrap_or_default())
        .env("HTTP_CONTENT_ENCODING", field(head, "content-encoding").unwrap_or_default())
        .env("GIT_PROTOCOL", field(head, "git-protocol").unwrap_or_default())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(body).unwrap();
    let out = child.wait_with_output().unwrap().stdout;
    let end = out.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    let head = String::from_utf8_lossy(&out[..end]).into_owned();
    let status = field(&head, "status").unwrap_or("200 OK").to_owned();
    let body = &out[end + 4..];
    let head = format!(
        "HTTP/1.1 {status}\r\n{head}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// Returns true if the programs that these tests need are installed.
fn ready() -> bool {
    let Some(git) = needed(git(), "git") else { return false };
    let path = Command::new(git).arg("--exec-path").output().unwrap().stdout;
    let backend = PathBuf::from(String::from_utf8(path).unwrap().trim()).join("git-http-backend");
    needed(Some(backend).filter(|file| file.is_file()), "git http-backend").is_some()
}

#[tokio::test]
async fn a_push_over_https_needs_the_right_token_and_certificate() {
    if !ready() {
        return;
    }
    let (place, authority) = (Place::new(), Authority::new());
    let server = Server::start(
        place.folder().to_owned(),
        authority.acceptor("localhost", NOW),
        Answer::Open,
    )
    .await;
    let files =
        || RemoteFiles::new(Some(place.write("ca.pem", &authority.pem)), None, None).unwrap();
    for (token, words) in [(Some("t0ken-that-is-wrong"), "git.token_env"), (None, "git.token_env")]
    {
        place.refused(&server.url(), token, files(), words).await;
    }
    let before = server.requests();
    assert!(before > 0);
    let output = place.push(&server.url(), Some(TOKEN), files()).await.unwrap();
    assert_eq!(output, "nothing to commit; pushed the earlier commits to main");
    assert_eq!(place.pushed(), ["a.txt"]);
    std::fs::write(place.path("work/b.txt"), "two").unwrap();
    let output = place.push(&server.url(), Some(TOKEN), files()).await.unwrap();
    assert!(
        output.starts_with("committed 1 file as ") && output.ends_with(" and pushed to main"),
        "{output}"
    );
    assert_eq!(place.pushed(), ["a.txt", "b.txt"]);
}

#[tokio::test]
async fn a_server_with_an_invalid_certificate_gets_no_request() {
    if !ready() {
        return;
    }
    let (authority, other) = (Authority::new(), Authority::new());
    for (ca, host, years) in [
        (Some(&other), "localhost", NOW),
        (None, "localhost", NOW),
        (Some(&authority), "other.example", NOW),
        (Some(&authority), "localhost.other.example", NOW),
        (Some(&authority), "localhost", PAST),
        (Some(&authority), "localhost", FUTURE),
    ] {
        let place = Place::new();
        let server =
            Server::start(place.folder().to_owned(), authority.acceptor(host, years), Answer::Open)
                .await;
        let ca = ca.map(|ca| place.write("ca.pem", &ca.pem));
        let files = RemoteFiles::new(ca, None, None).unwrap();
        place.refused(&server.url(), Some(TOKEN), files, "with `git.ca_file`").await;
        assert_eq!(server.settled().await, 0, "{host} {years:?}");
        assert!(server.connections() > 0, "{host} {years:?}");
    }
}

#[tokio::test]
async fn a_push_to_a_remote_that_forbids_or_redirects_it_fails() {
    if !ready() {
        return;
    }
    for (answer, words) in [(Answer::Forbidden, "git.token_env"), (Answer::Moved, "302")] {
        let (place, authority) = (Place::new(), Authority::new());
        let server =
            Server::start(place.folder().to_owned(), authority.acceptor("localhost", NOW), answer)
                .await;
        let files =
            RemoteFiles::new(Some(place.write("ca.pem", &authority.pem)), None, None).unwrap();
        place.refused(&server.url(), Some(TOKEN), files, words).await;
        assert!(server.requests() > 0);
    }
}
