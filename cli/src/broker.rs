//! Starts the processes of MCP servers.
//!
//! The confinement of the process (see `walls`) prevents it from starting programs. Therefore,
//! before a command confines itself, it starts a small process, the *server broker*: this binary
//! with the argument [`BROKER`]. The broker receives the commands that the settings list before
//! anything else, and later only their names. For each name, it starts the command and returns the
//! ends of its standard streams. If a server has walls of its own, the broker starts this binary
//! with the argument [`CONFINED`], which confines itself and becomes the command.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, IoSlice, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use rustix::process::{Pid, Signal, kill_process_group};
use serde::{Deserialize, Serialize};
use tokio::net::unix::pipe;
use wattle_agent::host::capability::secrets::Secret;
use wattle_mcp::{Launch, Launched, Launcher};

use crate::api_keys::variable;
use crate::config::Config;
use crate::fault::{Exit, Fault};
use crate::walls::{self, Reach, Rule};
use crate::{invocation, output};

/// The argument that makes this binary a broker.
const BROKER: &str = "mcp-broker";

/// The argument that makes this binary confine itself and become a server. The next one is a
/// [`Started`] in JSON.
const CONFINED: &str = "mcp-server-process";

/// The variables of this process that servers get. Others reach a server only by its `env`.
const VARIABLES: &[&str] = &[
    "HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TMPDIR",
    "TZ",
    "USER",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_RUNTIME_DIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "all_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
];

/// The variable that counts the gateways above a server, because a gateway may be a server of itself.
pub(crate) const DEPTH: &str = "WATTLE_MCP_DEPTH";

/// Maximum number of gateways above a server.
const MAX_DEPTH: u32 = 2;

/// The most that a reply of the broker has besides descriptors, in bytes.
const MAX_REPLY: usize = 4096;

/// A command as the broker starts it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Started {
    command: String,
    args: Vec<String>,
    env: BTreeMap<String, String>,
    cwd: PathBuf,
    walls: Option<ServerWalls>,
}

/// What a confined server may reach.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct ServerWalls {
    read: Vec<PathBuf>,
    write: Vec<PathBuf>,
    network: bool,
}

/// The commands by the names of their servers, or the reasons why they cannot be started.
type Commands = BTreeMap<String, Result<Started, String>>;

/// The handle to the broker. The broker and all servers end when the process ends.
pub(crate) struct ServerBroker {
    socket: Arc<Mutex<UnixStream>>,
    _process: Child,
}

/// The broker of this process.
static STARTED: OnceLock<Option<Arc<ServerBroker>>> = OnceLock::new();

/// Returns the broker, if one was started.
pub(crate) fn started() -> Option<Arc<ServerBroker>> {
    STARTED.get().cloned().flatten()
}

/// Starts the broker if the settings list a server with a command. Must be called before the process
/// confines itself.
///
/// # Errors
/// If the broker cannot be started.
pub(crate) fn start(config: &Config) -> Result<(), Fault> {
    let servers = &config.mcp.value.0;
    if servers.values().all(|settings| settings.command.is_none()) || started().is_some() {
        return Ok(());
    }
    let commands: Commands =
        servers.keys().map(|name| (name.clone(), command(config, name))).collect();
    let broker = || -> io::Result<ServerBroker> {
        let (mut socket, theirs) = UnixStream::pair()?;
        let process = invocation::again()?
            .arg(BROKER)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .process_group(0)
            .spawn()?;
        writeln!(socket, "{}", serde_json::to_string(&commands)?)?;
        Ok(ServerBroker { socket: Arc::new(Mutex::new(socket)), _process: process })
    };
    let broker = broker().map_err(|error| {
        Fault::failed(format!("failed to start the broker of MCP servers: {error}"))
    })?;
    _ = STARTED.set(Some(Arc::new(broker)));
    Ok(())
}

/// Returns the value of an environment variable, or of a secret that the settings declare. The value
/// is masked in everything that the process records.
pub(crate) fn value(config: &Config, name: &str, is_secret: bool) -> Option<String> {
    let from = match is_secret {
        false => name,
        true => {
            let entries = &config.secrets.value.0;
            &entries.iter().find(|entry| entry.name == name)?.variable
        }
    };
    let value = variable(from)?;
    if is_secret && let Ok(secret) = Secret::new(name, &value, Vec::new()) {
        output::mask().add_secrets([&secret]);
    }
    Some(value)
}

/// Returns the number of gateways above this process.
fn depth() -> u32 {
    std::env::var(DEPTH).ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Returns the command of a server, with its variables filled in.
fn command(config: &Config, name: &str) -> Result<Started, String> {
    let settings = config.mcp.value.0.get(name).ok_or("it is not configured")?;
    let command = settings.command.clone().ok_or("it has no command")?;
    let get = |name: &str, is_secret| value(config, name, is_secret);
    let own = VARIABLES.iter().filter_map(|name| Some((*name, std::env::var(name).ok()?)));
    let mut env: BTreeMap<String, String> =
        own.map(|(name, value)| (name.to_owned(), value)).collect();
    let depth = depth() + 1;
    if depth > MAX_DEPTH {
        return Err(format!(
            "it is below {MAX_DEPTH} gateways, which looks as if `wattle mcp` started itself; \
             remove it from its own list of servers"
        ));
    }
    env.insert(DEPTH.to_owned(), depth.to_string());
    for (name, value) in settings.filled_env(&get)? {
        env.insert(name, value);
    }
    let args = settings.filled_args(&get)?;
    let root = &config.root.value;
    let cwd = settings.cwd.clone().unwrap_or_else(|| root.clone());
    let cwd = std::path::absolute(cwd).map_err(|error| error.to_string())?;
    let walls = settings.has_walls().then(|| ServerWalls {
        read: settings.read.clone().unwrap_or_default(),
        write: settings.write.clone().unwrap_or_default(),
        network: settings.network.unwrap_or(false),
    });
    Ok(Started { command, args, env, cwd, walls })
}

impl Launcher for ServerBroker {
    fn launch<'a>(&'a self, server: &'a str) -> Launch<'a> {
        let (socket, server) = (Arc::clone(&self.socket), server.to_owned());
        Box::pin(async move {
            let asked = tokio::task::spawn_blocking(move || ask(&mut socket.lock(), &server));
            let [input, output, errors] = asked.await.map_err(io::Error::other)??;
            Ok(Launched {
                output: Box::new(pipe::Receiver::from_owned_fd(output)?),
                input: Box::new(pipe::Sender::from_owned_fd(input)?),
                errors: Box::new(pipe::Receiver::from_owned_fd(errors)?),
            })
        })
    }
}

/// Asks the broker to start a server. Returns the ends of its standard input, output and error.
fn ask(socket: &mut UnixStream, server: &str) -> io::Result<[OwnedFd; 3]> {
    writeln!(socket, "{}", serde_json::to_string(server)?)?;
    let mut text = [0; MAX_REPLY];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let reply =
        recvmsg(&*socket, &mut [IoSliceMut::new(&mut text)], &mut ancillary, RecvFlags::empty())?;
    let descriptors = ancillary.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    let descriptors: Vec<OwnedFd> = descriptors.flatten().collect();
    descriptors.try_into().map_err(|_| {
        let text = text.get(..reply.bytes).unwrap_or_default();
        let text = String::from_utf8_lossy(text);
        let ended = "the broker of MCP servers has ended".into();
        io::Error::other(if text.is_empty() { ended } else { text }.into_owned())
    })
}

/// Returns true if this process was started as a broker or as a confined server.
pub(crate) fn is_broker() -> bool {
    invocation::args().next().is_some_and(|argument| argument == BROKER || argument == CONFINED)
}

/// Serves the process that started this one, or becomes a server.
pub(crate) fn serve() -> Exit {
    let mut args = invocation::args().cloned();
    let is_confined = args.next().is_some_and(|argument| argument == CONFINED);
    let done = if is_confined { become_server(args.next()) } else { serve_broker() };
    match done {
        Ok(()) => Exit::Done,
        Err(error) => {
            output::note(&error.to_string());
            Exit::Failed
        }
    }
}

fn serve_broker() -> io::Result<()> {
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut lines = BufReader::new(socket.try_clone()?).lines();
    let commands = lines.next().transpose()?.unwrap_or_default();
    let commands: Commands = serde_json::from_str(&commands)?;
    let mut running: BTreeMap<String, Child> = BTreeMap::new();
    for line in lines {
        let Ok(server) = serde_json::from_str::<String>(&line?) else { break };
        if let Some(old) = running.remove(&server) {
            end(old);
        }
        let child = match commands.get(&server) {
            Some(Ok(command)) => command
                .spawn()
                .map_err(|error| format!("`{}` cannot be started: {error}", command.command)),
            Some(Err(why)) => Err(why.clone()),
            None => Err("it is not configured".to_owned()),
        };
        match child {
            Ok(mut child) => {
                let streams = (child.stdin.take(), child.stdout.take(), child.stderr.take());
                if let (Some(input), Some(output), Some(errors)) = streams {
                    reply(&socket, b"+", &[input.as_fd(), output.as_fd(), errors.as_fd()])?;
                }
                running.insert(server, child);
            }
            Err(why) => {
                let text = why.as_bytes();
                reply(&socket, text.get(..text.len().min(MAX_REPLY)).unwrap_or_default(), &[])?;
            }
        }
    }
    running.into_values().for_each(end);
    Ok(())
}

fn reply(
    socket: &UnixStream,
    text: &[u8],
    descriptors: &[std::os::fd::BorrowedFd<'_>],
) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(descriptors));
    }
    sendmsg(socket, &[IoSlice::new(text)], &mut ancillary, SendFlags::empty())?;
    Ok(())
}

/// Ends a server and everything that it started.
fn end(mut child: Child) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    if let Some(group) = pid {
        _ = kill_process_group(group, Signal::KILL);
    }
    _ = child.wait();
}

impl Started {
    /// Starts the command in a process group of its own, so that an interrupt at the terminal does
    /// not reach it.
    fn spawn(&self) -> io::Result<Child> {
        let mut command = match &self.walls {
            None => {
                let mut command = Command::new(&self.command);
                command.args(&self.args);
                command
            }
            Some(_) => {
                let mut command = invocation::again()?;
                command.arg(CONFINED).arg(serde_json::to_string(self)?);
                command
            }
        };
        command
            .env_clear()
            .envs(&self.env)
            .current_dir(&self.cwd)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
    }
}

/// Confines this process and becomes the command of a server. Returns only if that fails.
fn become_server(started: Option<OsString>) -> io::Result<()> {
    let text = started.and_then(|text| text.into_string().ok()).unwrap_or_default();
    let started: Started = serde_json::from_str(&text)?;
    let walls = started.walls.as_ref().ok_or_else(|| io::Error::other("it has no walls"))?;
    let rule = |reach: Reach| move |path: &PathBuf| Rule { path: path.clone(), reach };
    let reads = walls.read.iter().map(rule(Reach::Run));
    let writes = walls.write.iter().map(rule(Reach::Write));
    let rules = reads.chain(writes).collect();
    walls::around_program(&started.command, rules, walls.network)
        .map_err(|why| io::Error::other(format!("failed to confine the server: {why}")))?;
    Err(Command::new(&started.command).args(&started.args).exec())
}
