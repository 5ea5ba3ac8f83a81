//! A proxy between a process and its database. A test can make it cut, stall or delay connections.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "only tests use it, and may panic"
)]

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread::{sleep, spawn};
use std::time::Duration;

/// Interval at which connections check the state of the proxy, and the delay that a slow proxy
/// adds.
pub const TICK: Duration = Duration::from_millis(20);

const OPEN: u8 = 0;
const CUT: u8 = 1;
const STALLED: u8 = 2;
const SLOW: u8 = 3;

/// A proxy that forwards a loopback port to a Unix socket.
pub struct Proxy {
    /// The port on loopback.
    pub port: u16,
    state: Arc<AtomicU8>,
}

impl Proxy {
    /// Starts a proxy for a Unix socket on a free port.
    ///
    /// # Panics
    /// Panics if no port can be opened on loopback.
    #[must_use]
    pub fn start(socket: PathBuf) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(AtomicU8::new(OPEN));
        let of_connections = Arc::clone(&state);
        spawn(move || {
            for client in listener.incoming().flatten() {
                if of_connections.load(Ordering::SeqCst) == CUT {
                    continue;
                }
                if let Ok(server) = UnixStream::connect(&socket) {
                    connect(&client, &server, &of_connections);
                }
            }
        });
        Proxy { port, state }
    }

    /// Closes all connections and refuses new ones until [`open`](Proxy::open) is called.
    pub fn cut(&self) {
        self.state.store(CUT, Ordering::SeqCst);
    }

    /// Holds back all data until [`open`](Proxy::open) is called.
    pub fn stall(&self) {
        self.state.store(STALLED, Ordering::SeqCst);
    }

    /// Delays all data by [`TICK`].
    pub fn slow(&self) {
        self.state.store(SLOW, Ordering::SeqCst);
    }

    /// Forwards all data without delay.
    pub fn open(&self) {
        self.state.store(OPEN, Ordering::SeqCst);
    }
}

fn connect(client: &TcpStream, server: &UnixStream, state: &Arc<AtomicU8>) {
    client.set_read_timeout(Some(TICK)).unwrap();
    server.set_read_timeout(Some(TICK)).unwrap();
    let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    let (back_from, back_to) = (server.try_clone().unwrap(), client.try_clone().unwrap());
    let (one, other) = (Arc::clone(state), Arc::clone(state));
    spawn(move || {
        pass(&from, &to, &one);
        drop(to.shutdown(Shutdown::Both));
        drop(from.shutdown(Shutdown::Both));
    });
    spawn(move || {
        pass(&back_from, &back_to, &other);
        drop(back_to.shutdown(Shutdown::Both));
        drop(back_from.shutdown(Shutdown::Both));
    });
}

/// Forwards bytes until one side closes or the proxy is cut.
fn pass(mut from: impl Read, mut to: impl Write, state: &AtomicU8) {
    let mut buffer = [0; 16 << 10];
    loop {
        let read = match from.read(&mut buffer) {
            Ok(0) => return,
            Ok(read) => read,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => 0,
            Err(_) => return,
        };
        if read > 0 && state.load(Ordering::SeqCst) == SLOW {
            sleep(TICK);
        }
        while state.load(Ordering::SeqCst) == STALLED {
            sleep(TICK);
        }
        if state.load(Ordering::SeqCst) == CUT || to.write_all(&buffer[..read]).is_err() {
            return;
        }
    }
}
