//! The server that an attack sends requests to.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::files::Place;
use crate::format::Serve;
use crate::process::wattle;
use crate::text::Values;

/// Maximum time to wait for a response.
const PATIENCE: Duration = Duration::from_secs(30);

/// A listening server.
pub(crate) struct Served {
    child: Child,
    pub(crate) address: String,
}

impl Served {
    pub(crate) fn start(place: &Place, serve: &Serve, model: &str, values: &Values) -> Served {
        let mut command = wattle(place);
        command.args(["serve", "--listen", "127.0.0.1:0", "--base-url", model, "--model", "m"]);
        command.args(serve.args.iter().map(|arg| values.text(arg))).env("WATTLE_TOKEN", TOKEN);
        for (name, value) in &serve.env {
            command.env(values.text(name), values.text(value));
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut served = Served { child: command.spawn().unwrap(), address: String::new() };
        let mut lines = BufReader::new(served.child.stderr.take().unwrap()).lines();
        let mut output = String::new();
        loop {
            let line =
                lines.next().unwrap_or_else(|| panic!("the server ended: {output}")).unwrap();
            if let Some(address) = line.strip_prefix("listening on http://") {
                served.address = address.to_owned();
                std::thread::spawn(move || lines.for_each(drop));
                return served;
            }
            output += &line;
        }
    }

    /// Sends the bytes and returns the whole response.
    pub(crate) fn ask(&self, request: &[u8]) -> Vec<u8> {
        let mut answer = Vec::new();
        let mut exchange = || -> std::io::Result<()> {
            let mut stream = TcpStream::connect(&self.address)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            // A server may reject a request before it has read all of it.
            let _ = stream.write_all(request);
            let _ = stream.read_to_end(&mut answer);
            Ok(())
        };
        exchange().unwrap();
        answer
    }

    /// Asks the server to stop. Returns an error message if the server has already ended or does
    /// not exit successfully.
    pub(crate) fn stop(mut self) -> Option<String> {
        if let Some(ended) = self.child.try_wait().unwrap() {
            return Some(format!("the server ended by itself: {ended}"));
        }
        Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status().unwrap();
        let ended = self.child.wait().unwrap();
        (!ended.success()).then(|| format!("the server ended with {ended}"))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The server's token.
pub(crate) const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// Returns the HTTP status code of a response, or 0 if the response has none.
pub(crate) fn status(answer: &[u8]) -> u16 {
    let head = String::from_utf8_lossy(&answer[..answer.len().min(32)]).into_owned();
    head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
}
