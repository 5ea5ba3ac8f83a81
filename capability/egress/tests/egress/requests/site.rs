//! Servers on loopback, policies that allow these servers, and a scripted resolver.

use std::collections::{HashMap, VecDeque};
use std::future::ready;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use wattle_egress::{
    Egress, EgressError, Limits, Outgoing, Passage, Policy, Request, Resolver, Response,
    StreamedResponse,
};

/// A resolver that returns prepared answers in order, repeats the last one, and counts the lookups.
#[derive(Clone, Default)]
pub(crate) struct Script {
    answers: Arc<Mutex<HashMap<String, VecDeque<Vec<IpAddr>>>>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Script {
    pub(crate) fn new(names: &[(&str, &[&[&str]])]) -> Self {
        let script = Self::default();
        for (name, answers) in names {
            let parse = |answer: &&[&str]| answer.iter().map(|ip| ip.parse().unwrap()).collect();
            script
                .answers
                .lock()
                .unwrap()
                .insert((*name).to_owned(), answers.iter().map(parse).collect());
        }
        script
    }

    pub(crate) fn asked(&self) -> usize {
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

/// An egress client for a run without a guard and without secrets.
pub(crate) struct Open(pub(crate) Egress);

impl Open {
    pub(crate) fn new(policy: Policy) -> Open {
        Open(Egress::new(policy))
    }

    pub(crate) fn with_resolver(policy: Policy, resolver: impl Resolver) -> Open {
        Open(Egress::with_resolver(policy, resolver))
    }

    pub(crate) async fn send(&self, request: Request) -> Result<Response, EgressError> {
        self.0.send(&passed(request).await).await
    }

    pub(crate) async fn start(&self, request: Request) -> Result<StreamedResponse, EgressError> {
        self.0.start(&passed(request).await).await
    }
}

async fn passed(request: Request) -> Outgoing {
    Passage::new(None, Arc::default(), "http").pass("http.get", request).await.unwrap()
}

/// A server that sends the next scripted answer on each connection and records the requests.
pub(crate) struct Server {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
}

pub(crate) type Answers = Vec<Vec<u8>>;

pub(crate) async fn serve_at(ip: &str, port: u16, answers: Answers) -> Server {
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

pub(crate) async fn serve(answers: &[String]) -> Server {
    serve_at("127.0.0.1", 0, answers.iter().map(|answer| answer.clone().into_bytes()).collect())
        .await
}

impl Server {
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    pub(crate) fn rule(&self) -> String {
        self.address.to_string()
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

pub(crate) async fn read_request(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let n = stream.read(&mut piece).await.unwrap_or(0);
        text.extend_from_slice(&piece[..n]);
        let whole = String::from_utf8_lossy(&text).into_owned();
        let length = whole
            .lines()
            .find_map(|line| line.strip_prefix("content-length: ")?.parse().ok())
            .unwrap_or(0);
        if n == 0 || whole.split_once("\r\n\r\n").is_some_and(|(_, body)| body.len() >= length) {
            return whole;
        }
    }
}

pub(crate) fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
}

pub(crate) fn moved(status: u16, to: &str) -> String {
    format!(
        "HTTP/1.1 {status} Moved\r\nlocation: {to}\r\ncontent-length: 0\r\nconnection: \
         close\r\n\r\n"
    )
}

pub(crate) fn allowing(rules: &[String]) -> Policy {
    Policy { allow: rules.iter().map(|rule| rule.parse().unwrap()).collect(), ..Policy::default() }
}

pub(crate) fn limited(server: &Server, limits: Limits) -> Open {
    Open::new(Policy { limits, ..allowing(&[server.rule()]) })
}
