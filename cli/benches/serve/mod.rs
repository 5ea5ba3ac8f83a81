//! A server in a separate process.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

const TOKEN: &str = "token-of-the-bench";

/// A running server, which is killed when this handle is dropped.
pub(crate) struct Server {
    child: Child,
    address: String,
}

impl Server {
    /// Starts a server that uses the given model endpoint, home folder and environment variables.
    /// Waits until the server is listening.
    pub(crate) fn start(endpoint: &str, home: &Path, settings: &[(&str, &str)]) -> Server {
        let mut child = Command::new(env!("CARGO_BIN_EXE_wattle"))
            .args(["serve", "--listen", "127.0.0.1:0", "--model", "m", "--base-url"])
            .arg(endpoint)
            .current_dir(home)
            .env("HOME", home)
            .env("WATTLE_TOKEN", TOKEN)
            .envs(settings.iter().copied())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let address = loop {
            let line = lines.next().expect("the server ended").unwrap();
            if let Some(address) = line.strip_prefix("listening on http://") {
                break address.to_owned();
            }
        };
        std::thread::spawn(move || lines.for_each(drop));
        Server { child, address }
    }

    /// Sends a request and returns the response as a stream.
    pub(crate) fn send(&self, line: &str, body: &str) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let length = body.len();
        let request = format!(
            "{line} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\
             Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).unwrap();
        BufReader::new(stream)
    }

    /// Returns the processor time used so far by the server, in seconds.
    #[allow(dead_code, reason = "not every bench measures it")]
    pub(crate) fn processor_time(&self) -> f64 {
        processor_time(self.child.id())
    }

    /// Returns the resident memory of the server, in KiB.
    #[allow(dead_code, reason = "not every bench measures it")]
    pub(crate) fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }
}

/// Returns the processor time used so far by a process and its threads, in seconds.
#[allow(dead_code, reason = "not every bench measures it")]
pub(crate) fn processor_time(process: u32) -> f64 {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{process}/stat")) else { return 0.0 };
    let fields = stat.rsplit_once(')').map(|(_, fields)| fields).unwrap_or_default();
    // The system counts processor time in hundredths of a second.
    let ticks = fields.split_whitespace().skip(11).take(2);
    ticks.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

impl Drop for Server {
    fn drop(&mut self) {
        // Fails only if the server has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
