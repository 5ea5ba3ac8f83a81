//! A pooler for tests: it gives each transaction of a client another session of a PostgreSQL server,
//! as PgBouncer does with `pool_mode = transaction`.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The sessions that no client uses.
type Free = Arc<Mutex<VecDeque<UnixStream>>>;

/// Starts a pooler before the server of a [`postgres::url`](super::postgres::url), and returns the URL
/// of the same schema through it. The pooler ends with the process.
///
/// # Panics
/// Panics if the URL is not one of [`postgres::url`](super::postgres::url).
#[must_use]
pub fn before(url: &str) -> String {
    let field = |name: &str| {
        let found = url.split(['?', '&']).find_map(|part| part.strip_prefix(name));
        found.unwrap_or_else(|| panic!("{url}"))
    };
    let socket = Path::new(field("host=")).join(".s.PGSQL.5432");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap_or_else(|error| panic!("{error}"));
    let address = listener.local_addr().unwrap_or_else(|error| panic!("{error}"));
    let free = Free::default();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let (socket, free) = (socket.clone(), Arc::clone(&free));
            // An error means that the client or the server is gone.
            std::thread::spawn(move || drop(serve(client, &socket, &free)));
        }
    });
    let schema = field("schema=");
    format!("postgres://wattle@{address}/postgres?sslmode=disable&schema={schema}")
}

/// Reads a message: its type, and the whole of it.
fn message(from: &mut impl Read) -> io::Result<(u8, Vec<u8>)> {
    let mut head = [0; 5];
    from.read_exact(&mut head)?;
    let [kind, length @ ..] = head;
    let mut whole = head.to_vec();
    let length = u32::from_be_bytes(length) as usize;
    whole.resize(length + 1, 0);
    from.read_exact(whole.get_mut(5..).unwrap_or_default())?;
    Ok((kind, whole))
}

/// Opens a session of the server. Also returns what the server sends at its start.
fn open(socket: &PathBuf) -> io::Result<(UnixStream, Vec<u8>)> {
    let mut server = UnixStream::connect(socket)?;
    let parameters = b"\0\x03\0\0user\0wattle\0database\0postgres\0client_encoding\0UTF8\0\0";
    let length = u32::try_from(parameters.len() + 4).unwrap_or_default();
    server.write_all(&length.to_be_bytes())?;
    server.write_all(parameters)?;
    let mut greeting = Vec::new();
    loop {
        let (kind, whole) = message(&mut server)?;
        greeting.extend(whole);
        if kind == b'Z' {
            return Ok((server, greeting));
        }
    }
}

/// Serves a client. Each request gets the session that has been free for the longest time, until its
/// transaction ends.
fn serve(mut client: TcpStream, socket: &PathBuf, free: &Free) -> io::Result<()> {
    let lock = || free.lock().unwrap_or_else(PoisonError::into_inner);
    let mut length = [0; 4];
    client.read_exact(&mut length)?;
    let mut parameters = vec![0; (u32::from_be_bytes(length) as usize).saturating_sub(4)];
    client.read_exact(&mut parameters)?;
    let (server, greeting) = open(socket)?;
    lock().push_back(server);
    client.write_all(&greeting)?;
    let mut held: Option<UnixStream> = None;
    loop {
        let (kind, whole) = message(&mut client)?;
        if kind == b'X' {
            return Ok(());
        }
        let mut server = match held.take().or_else(|| lock().pop_front()) {
            Some(server) => server,
            None => open(socket)?.0,
        };
        server.write_all(&whole)?;
        // The server answers a query, and the end of a group of other messages.
        let mut is_over = false;
        while matches!(kind, b'Q' | b'S') && !is_over {
            let (kind, whole) = message(&mut server)?;
            client.write_all(&whole)?;
            is_over = kind == b'Z' && whole.last() == Some(&b'I');
            if kind == b'Z' {
                break;
            }
        }
        if is_over { lock().push_back(server) } else { held = Some(server) }
    }
}
