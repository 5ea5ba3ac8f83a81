//! The redirect that ends the user's visit to the authorization server: a small HTTP server on this
//! machine that waits for one request.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use wattle_agent::host::rt::quote;

use super::web::MAX_QUOTE;

/// The path to which the browser is redirected.
const PATH: &str = "/callback";

/// Maximum time for the user's sign-in.
const TIME: Duration = Duration::from_secs(300);

/// Maximum time of a connection.
const CONNECTION: Duration = Duration::from_secs(10);

/// Maximum number of open connections. Browsers open some that they do not use.
const MAX_CONNECTIONS: usize = 16;

/// Maximum size of a request, in bytes.
const MAX_REQUEST: usize = 16 << 10;

/// An open port that waits for the redirect.
pub(super) struct Redirect {
    listener: TcpListener,
    uri: String,
}

/// What the redirect must contain.
pub(super) struct Expected {
    /// The random text of the link.
    pub(super) state: String,
    /// The identifier of the authorization server.
    pub(super) issuer: String,
    /// If true, a redirect without the identifier is not from this authorization server.
    pub(super) needs_issuer: bool,
}

impl Redirect {
    /// Opens a port of this machine. If `port` is 0, any free one.
    pub(super) async fn listen(port: u16) -> Result<Redirect, String> {
        let failed = |error: std::io::Error| format!("port {port} cannot be opened: {error}");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Redirect { listener, uri: format!("http://{address}{PATH}") })
    }

    /// Returns the URI of the redirect.
    pub(super) fn uri(&self) -> &str {
        &self.uri
    }

    /// Waits for the redirect and returns its code. The first request to the path decides.
    pub(super) async fn receive(self, expected: Expected) -> Result<String, String> {
        let received = async {
            let mut open = FuturesUnordered::new();
            loop {
                tokio::select! {
                    accepted = self.listener.accept(), if open.len() < MAX_CONNECTIONS => {
                        if let Ok((stream, _)) = accepted {
                            let answered = answer(stream, &expected);
                            open.push(tokio::time::timeout(CONNECTION, answered));
                        }
                    }
                    Some(Ok(Some(code))) = open.next() => return code,
                }
            }
        };
        let late = || format!("nobody signed in within {} minutes", TIME.as_secs() / 60);
        tokio::time::timeout(TIME, received).await.map_err(|_| late())?
    }
}

/// Answers a connection of the browser. Returns the code or the error of the redirect, or `None` if
/// the request is another one.
async fn answer(mut stream: TcpStream, expected: &Expected) -> Option<Result<String, String>> {
    let target = target(&mut stream).await?;
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    if path != PATH {
        respond(&mut stream, "404 Not Found", "There is nothing here.").await;
        return None;
    }
    let code = code(query, expected);
    let (status, text) = match &code {
        Ok(_) => ("200 OK", "You can close this page and return to the terminal."),
        Err(_) => ("400 Bad Request", "The sign-in failed. The terminal says why."),
    };
    respond(&mut stream, status, text).await;
    Some(code)
}

/// Reads a request and returns its target. Returns `None` if it is not a GET request.
async fn target(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    let mut piece = [0; 1024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let length = stream.read(&mut piece).await.ok().filter(|length| *length > 0)?;
        head.extend_from_slice(piece.get(..length)?);
        if head.len() > MAX_REQUEST {
            return None;
        }
    }
    let text = String::from_utf8(head).ok()?;
    let mut words = text.lines().next()?.split(' ');
    (words.next()? == "GET").then(|| words.next().map(str::to_owned))?
}

async fn respond(stream: &mut TcpStream, status: &str, text: &str) {
    let page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Wattle</title>\
         <p style=\"font: 1.2em sans-serif; margin: 3em\">{text}</p></html>\n"
    );
    let response = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\n\
         cache-control: no-store\r\nreferrer-policy: no-referrer\r\nx-content-type-options: nosniff\r\n\
         content-security-policy: default-src 'none'; style-src 'unsafe-inline'\r\n\
         connection: close\r\n\r\n{page}",
        page.len()
    );
    // The browser may be gone. The redirect counts all the same.
    _ = stream.write_all(response.as_bytes()).await;
    _ = stream.shutdown().await;
}

/// Returns the code in the query of a redirect, or the reason why there is none.
fn code(query: &str, expected: &Expected) -> Result<String, String> {
    let mut fields = BTreeMap::new();
    for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
        if fields.insert(name.into_owned(), value.into_owned()).is_some() {
            return Err("the redirect has a parameter twice".to_owned());
        }
    }
    // An error is not shown unless it is certain who reports it.
    if fields.get("state") != Some(&expected.state) {
        return Err(
            "the redirect does not belong to this sign-in: its `state` is another one".to_owned()
        );
    }
    match fields.get("iss") {
        Some(issuer) if *issuer != expected.issuer => {
            return Err(format!(
                "the redirect is from another authorization server, {}",
                quote(issuer, MAX_QUOTE)
            ));
        }
        None if expected.needs_issuer => {
            return Err("the redirect does not name its authorization server".to_owned());
        }
        _ => {}
    }
    if let Some(error) = fields.get("error") {
        let about = fields.get("error_description");
        let about = about.map(|about| format!(": {}", quote(about, MAX_QUOTE))).unwrap_or_default();
        let error = quote(error, MAX_QUOTE);
        return Err(format!("the authorization server reports {error}{about}"));
    }
    fields.remove("code").ok_or_else(|| "the redirect has no code".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_redirect_of_this_sign_in_counts() {
        let expected = |needs_issuer| Expected {
            state: "s".to_owned(),
            issuer: "https://a.example".to_owned(),
            needs_issuer,
        };
        for (query, needs, result) in [
            ("code=c&state=s", false, Ok("c")),
            ("code=c%20d&state=s&iss=https%3A%2F%2Fa.example", true, Ok("c d")),
            ("code=c&state=s", true, Err("does not name")),
            ("code=c&state=s&iss=https://a.example/", false, Err("another authorization server")),
            ("code=c&state=t", false, Err("`state`")),
            ("code=c", false, Err("`state`")),
            ("", false, Err("`state`")),
            ("state=s", false, Err("no code")),
            ("state=s&code=a&code=b", false, Err("twice")),
            ("error=access_denied&state=s", false, Err("\"access_denied\"")),
            ("error=x&error_description=%1b%5B1m&state=s", false, Err("\"\\u{1b}[1m\"")),
            ("error=x&state=t", false, Err("`state`")),
            ("error=x&state=s&iss=https://b.example", false, Err("another authorization server")),
        ] {
            match (code(query, &expected(needs)), result) {
                (Ok(code), Ok(wanted)) => assert_eq!(code, wanted, "{query}"),
                (Err(why), Err(words)) => assert!(why.contains(words), "{query}: {why}"),
                (code, _) => panic!("{query}: {code:?}"),
            }
        }
    }
}
