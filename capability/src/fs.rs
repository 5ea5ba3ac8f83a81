//! `fs`: the run's files.

mod glob;

use std::sync::Arc;

use serde_json::json;
use wattle_rt::{Account, Code, Config, Failure, Gate, Run, capability};

use crate::arr::{Arrays, Handle};
use crate::files::{EntryKind, Files, FilesError, MemoryCharge};

capability! {
    /// The run's files; paths are relative to the workdir, parent folders are created as needed.
    pub const FS: "fs" 2;

    /// Returns a file's content
    #[example = r#"(fs.write "a.txt" "hello") (ret (fs.read "a.txt"))"# => "hello"]
    #[prompt(signature)]
    #[effect(reads)]
    async read(path: read_path) with Fs -> ptr: bytes ! ENOENT EACCESS EBOUND EKIND = read;

    /// Returns a file's lines (see `str.lines`)
    #[example = r#"(fs.write "a.txt" "one\ntwo\n") (ret (str.join (fs.lines "a.txt") "+"))"# => "one+two"]
    #[prompt(signature)]
    #[effect(reads)]
    async lines(path: read_path) with Fs -> arr: arr ! ENOENT EACCESS EBOUND EKIND EPARSE ENOMEM = lines;

    /// Writes a file, replacing it
    #[example = r#"(fs.write "notes/a.txt" "hello") (ret (fs.read "notes/a.txt"))"# => "hello"]
    #[prompt(signature)]
    #[effect(writes)]
    async write(path: write_path, data: bytes) with Fs ! EACCESS ENOMEM EEXIST EKIND = write;

    /// Appends to a file; creates it if missing
    #[example = r#"(fs.append "log.txt" "one\n") (fs.append "log.txt" "two\n") (ret (fs.read "log.txt"))"# => "one\ntwo\n"]
    #[prompt(signature)]
    #[effect(changes)]
    async append(path: write_path, data: bytes) with Fs ! EACCESS ENOMEM EEXIST EKIND = append;

    /// Returns the sorted names directly in a folder; folders end with /
    #[example = r#"(fs.write "list/b.txt" "") (fs.mkdir "list/a") (ret (str.join (fs.list "list") " "))"# => "a/ b.txt"]
    #[effect(reads)]
    async list(path: read_path) with Fs -> arr: arr ! ENOENT EACCESS EKIND = list;

    /// Returns the sorted paths of the files that match a pattern: * and ? within a name, ** for
    /// any folders, [a-z], {a,b}; folders if it ends with /; names that start with a dot only if
    /// the pattern spells the dot
    #[example = r#"(fs.write "g/a.txt" "") (fs.write "g/d/b.txt" "") (ret (str.join (fs.glob "g/**/*.txt") " "))"# => "g/a.txt g/d/b.txt"]
    #[prompt(name)]
    #[effect(reads)]
    async glob(pattern: file_query) with Fs -> arr: arr ! EACCESS EBOUND EPARSE ETIME ENOMEM = glob::glob;

    /// Returns JSON {kind: file|folder, size}
    #[example = r#"(fs.write "a.txt" "hello") (ret (fs.stat "a.txt"))"# => r#"{"kind":"file","size":5}"#]
    #[effect(reads)]
    async stat(path: read_path) with Fs -> ptr: str ! ENOENT EACCESS EKIND = stat;

    /// Creates a folder and its parents
    #[example = r#"(fs.mkdir "a/b") (ret (str.join (fs.list "a") " "))"# => "b/"]
    #[prompt(name)]
    #[effect(writes)]
    async mkdir(path: write_path) with Fs ! EACCESS EEXIST EKIND = mkdir;

    /// Removes a file or an empty folder
    #[example = r#"(fs.write "old.txt" "x") (fs.remove "old.txt") (ret (default (fs.read "old.txt") "gone"))"# => "gone"]
    #[prompt(signature)]
    #[effect(changes)]
    async remove(path: write_path) with Fs ! ENOENT EACCESS EEXIST EKIND = remove;

    /// Moves a file or folder
    #[example = r#"(fs.write "old.txt" "x") (fs.move "old.txt" "new.txt") (ret (fs.read "new.txt"))"# => "x"]
    #[prompt(signature)]
    #[effect(changes)]
    async move(from: tree_path, to: tree_path) with Fs ! ENOENT EACCESS EEXIST EKIND = rename;
}

/// Charges the memory of an overlay to an account, until the files are dropped or charged to another
/// account. The first `free` bytes are not charged.
///
/// # Errors
/// `ENOMEM` if the account has no memory for the files. They are then charged to no account.
pub fn charge(files: &Files, account: &Account, free: usize) -> Result<(), FilesError> {
    files.charge(Box::new(Charged { charge: account.nothing(), free }))
}

#[derive(Debug)]
struct Charged {
    charge: wattle_rt::MemoryCharge,
    free: usize,
}

impl MemoryCharge for Charged {
    fn resize(&mut self, bytes: u64) -> Result<(), String> {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX).saturating_sub(self.free);
        self.charge.resize(bytes).map_err(|failure| failure.reason)
    }
}

/// The `fs` grant: access to the run's files.
pub struct Fs(pub Arc<Files>);

impl Config for Fs {
    const CAPABILITIES: &'static [&'static str] = &["fs", "vfs"];
}

impl Fs {
    /// Returns the run's files, restricted to the accesses that `gate` allows.
    pub(crate) fn confined(&self, gate: Gate) -> Arc<Files> {
        if gate.is_open() {
            return Arc::clone(&self.0);
        }
        let admit =
            move |target, path: &str| gate.admit(target, path).map_err(|failure| failure.reason);
        Arc::new(self.0.guarded(Arc::new(admit)))
    }
}

/// Calls `work` with the run's files, on a thread for blocking tasks.
pub(crate) async fn on_files<T: Send + 'static>(
    fs: &Fs,
    run: &Run,
    function: &'static str,
    work: impl FnOnce(&Files) -> Result<T, FilesError> + Send + 'static,
) -> Result<T, Failure> {
    let files = fs.confined(Gate::of(run, function));
    let account = run.account().clone();
    match tokio::task::spawn_blocking(move || account.work(|| work(&files))).await {
        Ok(done) => done.map_err(|e| Failure::new(e.code(), e.to_string())),
        Err(_) => Err(Failure::new(Code::ECANCEL, "the host is shutting down")),
    }
}

async fn read(fs: Arc<Fs>, run: &mut Run, path: String) -> Result<Vec<u8>, Failure> {
    on_files(&fs, run, "fs.read", move |files| files.read(&path)).await.map(Into::into)
}

async fn lines(fs: Arc<Fs>, run: &mut Run, path: String) -> Result<Handle, Failure> {
    let bytes = on_files(&fs, run, "fs.lines", move |files| files.read(&path)).await?;
    let text = std::str::from_utf8(&bytes)
        .map_err(|_| Failure::new(Code::EPARSE, "the file is not text in UTF-8"))?;
    Arrays::make(run, text.lines())
}

async fn write(fs: Arc<Fs>, run: &mut Run, path: String, data: Vec<u8>) -> Result<(), Failure> {
    on_files(&fs, run, "fs.write", move |files| files.write(&path, &data)).await
}

async fn append(fs: Arc<Fs>, run: &mut Run, path: String, data: Vec<u8>) -> Result<(), Failure> {
    on_files(&fs, run, "fs.append", move |files| files.append(&path, &data)).await
}

async fn list(fs: Arc<Fs>, run: &mut Run, path: String) -> Result<Handle, Failure> {
    // An empty path means the workdir, as in `ls` without arguments.
    let path = if path.is_empty() { "/".to_owned() } else { path };
    let entries = on_files(&fs, run, "fs.list", move |files| files.list(&path)).await?;
    let names = entries.into_iter().map(|entry| match entry.kind {
        EntryKind::Folder => format!("{}/", entry.name),
        _ => entry.name,
    });
    Arrays::make(run, names)
}

async fn stat(fs: Arc<Fs>, run: &mut Run, path: String) -> Result<String, Failure> {
    let stat = on_files(&fs, run, "fs.stat", move |files| files.stat(&path)).await?;
    let kind = if stat.kind == EntryKind::Folder { "folder" } else { "file" };
    Ok(json!({"kind": kind, "size": stat.size}).to_string())
}

async fn mkdir(fs: Arc<Fs>, run: &mut Run, path: String) -> Result<(), Failure> {
    on_files(&fs, run, "fs.mkdir", move |files| files.mkdir(&path)).await
}

async fn remove(fs: Arc<Fs>, run: &mut Run, path: String) -> Result<(), Failure> {
    on_files(&fs, run, "fs.remove", move |files| files.remove(&path)).await
}

async fn rename(fs: Arc<Fs>, run: &mut Run, from: String, to: String) -> Result<(), Failure> {
    on_files(&fs, run, "fs.move", move |files| files.rename(&from, &to)).await
}
