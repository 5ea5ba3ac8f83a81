//! A PostgreSQL server for tests. It stops when the process that started it ends.
//!
//! The server listens only on a Unix socket in a temporary folder. PostgreSQL refuses to run as
//! root, so under root it runs as the user `postgres`.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// The environment variable that, if set, makes the store tests use PostgreSQL instead of SQLite.
pub const SWITCH: &str = "WATTLE_TEST_POSTGRES";

/// The environment variable that contains the [`folder`] of a running server, which the tests
/// share. If it is not set, each test process starts its own server.
pub const SHARED: &str = "WATTLE_TEST_POSTGRES_SERVER";

/// A running PostgreSQL server.
struct Server {
    folder: PathBuf,
    /// The stdin of the shell that runs the server. The shell stops the server when stdin is
    /// closed, even if the test process is killed.
    _alive: ChildStdin,
    _shell: Child,
}

impl Server {
    /// Returns the id of the server's main process.
    fn postmaster(&self) -> String {
        let file = self.folder.join("data/postmaster.pid");
        let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("no server: {error}"));
        text.lines().next().unwrap_or_default().to_owned()
    }
}

/// Returns the URL of a new, empty schema on the [`SHARED`] server or, if there is none, on this
/// process's server. Prints a line and returns `None` if PostgreSQL is not installed.
#[must_use]
pub fn url() -> Option<String> {
    match std::env::var_os(SHARED) {
        Some(folder) => Some(schema_on(Path::new(&folder))),
        None => own_url(),
    }
}

/// Returns the URL of a new, empty schema on this process's server, like [`url`]. For tests that
/// restart the server, end its connections or change its users.
#[must_use]
pub fn own_url() -> Option<String> {
    Some(schema_on(&running()?.folder))
}

/// Returns the URL of a new, empty schema on the server that uses the given folder.
fn schema_on(folder: &Path) -> String {
    static SCHEMA: AtomicU32 = AtomicU32::new(0);
    // The system reuses the ids of processes, so the time is part of the name, too.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let (process, schema) = (std::process::id(), SCHEMA.fetch_add(1, Ordering::Relaxed));
    let folder = folder.display();
    format!("postgres:///postgres?user=wattle&host={folder}&schema=t{now}_{process}_{schema}")
}

/// Returns the folder of this process's server, or `None` if PostgreSQL is not installed. Other
/// processes can use the server as long as this process runs; see [`SHARED`].
#[must_use]
pub fn folder() -> Option<&'static Path> {
    Some(&running()?.folder)
}

/// Executes SQL statements in the schema of a [`url`] with `psql`.
///
/// # Panics
/// Panics if PostgreSQL is not installed, or if a statement fails.
pub fn sql(url: &str, statements: &str) {
    let (base, schema) = url.rsplit_once("&schema=").unwrap_or_else(|| panic!("{url}"));
    let programs = programs().unwrap_or_else(|| panic!("PostgreSQL is not installed"));
    let done = Command::new(programs.join("psql"))
        .args([base, "-qX", "-v", "ON_ERROR_STOP=1", "-c"])
        .arg(format!("SET search_path TO {schema}; {statements}"))
        .output();
    let done = done.unwrap_or_else(|error| panic!("failed to start psql: {error}"));
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// Returns the Unix socket of the server, or `None` if PostgreSQL is not installed. On a connection
/// through the socket, the parameter `schema` of a [`url`] selects the schema.
#[must_use]
pub fn socket() -> Option<PathBuf> {
    Some(running()?.folder.join(".s.PGSQL.5432"))
}

/// Returns the ids of the server's processes, or `None` if PostgreSQL is not installed.
#[must_use]
pub fn processes() -> Option<Vec<u32>> {
    let postmaster = running()?.postmaster();
    let parent = |process: &u32| {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        stat.rsplit_once(')')?.1.split_whitespace().nth(1).map(str::to_owned)
    };
    let all = fs::read_dir("/proc").ok()?.flatten();
    let all = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let below = all.filter(|process: &u32| {
        *process.to_string() == *postmaster || parent(process).as_deref() == Some(&postmaster)
    });
    Some(below.collect())
}

/// Stops the server and closes its connections. The server starts again in the background. If
/// `crashes` is true, the server is stopped without a clean shutdown and recovers when it starts
/// again.
///
/// # Panics
/// Panics if PostgreSQL is not installed, or if the server cannot be stopped.
pub fn restart(crashes: bool) {
    let server = running().unwrap_or_else(|| panic!("PostgreSQL is not installed"));
    let pid = server.postmaster();
    let signal = if crashes { "-QUIT" } else { "-INT" };
    let sent = Command::new("kill").args([signal, &pid]).status();
    assert!(sent.is_ok_and(|status| status.success()), "the server cannot be stopped");
}

/// Returns true if the [`SWITCH`] is set.
#[must_use]
pub fn is_switched() -> bool {
    std::env::var_os(SWITCH).is_some()
}

/// Returns the URL of a new, empty schema, or `None` if the [`SWITCH`] is not set.
///
/// # Panics
/// Panics if the switch is set and PostgreSQL is not installed.
#[must_use]
pub fn url_if_switched() -> Option<String> {
    std::env::var_os(SWITCH)?;
    let url = url();
    assert!(url.is_some(), "{SWITCH} is set, but PostgreSQL is not installed");
    url
}

/// Returns this process's server, or `None` if PostgreSQL is not installed. The first call starts
/// the server.
fn running() -> Option<&'static Server> {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    SERVER.get_or_init(start).as_ref()
}

#[allow(clippy::print_stderr, reason = "a skipped test says so")]
fn start() -> Option<Server> {
    let Some(programs) = programs() else {
        eprintln!("skipped: PostgreSQL is not installed (there is no `initdb`)");
        return None;
    };
    let is_root = fs::metadata("/proc/self").is_ok_and(|meta| owner(&meta) == 0);
    let run_as = if is_root { "runuser -u postgres -- " } else { "" };
    // The shell stops the server and removes its folder when the pipe from this process is closed.
    let script = format!(
        "set -e
         dir=$({run_as}mktemp -d /tmp/wattle-pg.XXXXXX)
         {run_as}{programs}/initdb -D $dir/data -U wattle -A trust -E UTF8 --locale=C --no-sync \
         >$dir.log 2>&1 \
         || {{ cat $dir.log >&2; exit 1; }}
         while [ ! -e $dir.stop ]; do
           {run_as}{programs}/postgres -D $dir/data -k $dir -c listen_addresses= -c fsync=off \
           -c max_connections=200 -c shared_buffers=16MB >>$dir.log 2>&1 || true
         done &
         i=0
         while ! {programs}/pg_isready -q -h $dir; do i=$((i+1)); [ $i -lt 300 ] || exit 1; \
           sleep 0.1; done
         echo $dir
         cat >/dev/null || true
         touch $dir.stop
         kill -INT $(head -1 $dir/data/postmaster.pid) || true
         wait || true
         rm -rf $dir $dir.log $dir.stop",
        programs = programs.display()
    );
    let mut shell = Command::new("sh")
        .args(["-c", &script])
        .current_dir("/")
        // A signal to the process group of the tests must not prevent the shell from stopping the
        // server.
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("failed to start a shell: {error}"));
    let mut line = String::new();
    let output = shell.stdout.take().unwrap_or_else(|| panic!("the shell has no output"));
    let read = BufReader::new(output).read_line(&mut line);
    let folder = PathBuf::from(line.trim());
    assert!(read.is_ok() && folder.is_absolute(), "PostgreSQL did not start");
    let alive = shell.stdin.take().unwrap_or_else(|| panic!("the shell has no input"));
    Some(Server { folder, _alive: alive, _shell: shell })
}

fn owner(meta: &fs::Metadata) -> u32 {
    std::os::unix::fs::MetadataExt::uid(meta)
}

/// Returns the folder that contains the programs of the latest installed PostgreSQL version, or
/// `None` if PostgreSQL is not installed.
fn programs() -> Option<PathBuf> {
    let mut versions: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
        .map(|entries| entries.flatten().map(|entry| entry.path().join("bin")).collect())
        .unwrap_or_default();
    versions.sort_by_key(|path| {
        let version = path.parent().and_then(Path::file_name).and_then(|name| name.to_str());
        version.and_then(|version| version.parse::<u32>().ok())
    });
    let in_path = std::env::var_os("PATH").unwrap_or_default();
    let all = versions.into_iter().rev().chain(std::env::split_paths(&in_path));
    // A folder in `PATH` may contain only a wrapper for one program.
    all.into_iter().find(|folder| {
        ["initdb", "postgres", "pg_isready", "psql"]
            .iter()
            .all(|program| folder.join(program).exists())
    })
}
