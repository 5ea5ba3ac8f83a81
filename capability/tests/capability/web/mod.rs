//! Tests of page conversion and of search engines, against a local server with prepared answers.

mod engines;
mod pages;

use std::io::Write as _;
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

/// A server that sends its answers in order, one for each connection. It repeats the last answer
/// and records the requests.
pub(crate) struct Server {
    pub(crate) base: String,
    pub(crate) rule: String,
    pub(crate) requests: Arc<Mutex<Vec<String>>>,
}

pub(crate) fn answer(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 {status}\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

pub(crate) fn serve(answers: Vec<Vec<u8>>) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let rule = listener.local_addr().unwrap().to_string();
    let requests = Arc::new(Mutex::new(Vec::new()));
    let received = Arc::clone(&requests);
    std::thread::spawn(move || {
        let mut answers = answers.into_iter();
        let mut last = Vec::new();
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut request = Vec::new();
            let mut byte = [0; 1];
            while !request.ends_with(b"\r\n\r\n")
                && matches!(std::io::Read::read(&mut stream, &mut byte), Ok(1))
            {
                request.push(byte[0]);
            }
            received.lock().unwrap().push(String::from_utf8_lossy(&request).into_owned());
            last = answers.next().unwrap_or(last);
            let _ = stream.write_all(&last);
        }
    });
    Server { base: format!("http://{rule}"), rule, requests }
}
