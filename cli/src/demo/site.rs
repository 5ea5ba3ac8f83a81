//! The web site of a demo. It serves a few pages on a loopback address until the process ends.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use wattle_agent::host::capability::egress::HostRule;

/// The pages, each with its path and its content.
const PAGES: &[(&str, &str)] = &[
    ("/", include_str!("../../demo/fetch/index.html")),
    ("/visit.html", include_str!("../../demo/fetch/visit.html")),
];

/// Maximum size of a request, in bytes.
const LONGEST: usize = 8 << 10;

/// A running site.
pub(super) struct Site {
    address: SocketAddr,
    rule: HostRule,
}

impl Site {
    /// Serves the pages on a free port.
    pub(super) async fn start() -> std::io::Result<Site> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let rule = address
            .to_string()
            .parse()
            .map_err(|error| std::io::Error::other(format!("{error}")))?;
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // Connection errors are ignored.
                tokio::spawn(async move { drop(answer(stream).await) });
            }
        });
        Ok(Site { address, rule })
    }

    /// Returns the site's URL without a final `/`.
    pub(super) fn base(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the host rule that allows access to this site, but to nothing else on this machine.
    pub(super) fn rule(&self) -> HostRule {
        self.rule.clone()
    }
}

async fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    let mut request = Vec::new();
    while !request.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
        if request.len() > LONGEST || stream.read_buf(&mut request).await? == 0 {
            return Ok(());
        }
    }
    let request = String::from_utf8_lossy(&request);
    let path = request.split(' ').nth(1).unwrap_or_default();
    let (status, page) = match PAGES.iter().find(|(known, _)| *known == path) {
        Some((_, page)) => ("200 OK", *page),
        None => ("404 Not Found", "no such page\n"),
    };
    let length = page.len();
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: \
         {length}\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(page.as_bytes()).await?;
    stream.shutdown().await
}
