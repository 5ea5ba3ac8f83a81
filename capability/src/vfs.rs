//! `vfs`: reads and writes whole files of the run, through the functions in [`fs`](crate::fs).

use std::sync::Arc;

use wattle_rt::{Failure, Run, capability};

use crate::fs::{Fs, on_files};

capability! {
    /// The run's files; each call reads or writes a whole file.
    pub const VFS: "vfs" 2 for "fs";

    /// Returns a file's content
    #[example = r#"(vfs.write "a.txt" "hello") (ret (vfs.read "a.txt"))"# => "hello"]
    #[prompt(name)]
    #[effect(reads)]
    async read(path: read_path) with Fs -> ptr: bytes ! ENOENT EACCESS EBOUND EKIND = read;

    /// Writes a file, replacing it; creates parent folders
    #[example = r#"(vfs.write "notes/a.txt" "hello") (ret (fs.read "notes/a.txt"))"# => "hello"]
    #[prompt(name)]
    #[effect(writes)]
    async write(path: write_path, data: bytes) with Fs ! ENOENT EACCESS ENOMEM EEXIST EKIND = write;
}

async fn read(fs: Arc<Fs>, run: &mut Run, path: String) -> Result<Vec<u8>, Failure> {
    on_files(&fs, run, "vfs.read", move |files| files.read(&path)).await.map(Into::into)
}

async fn write(fs: Arc<Fs>, run: &mut Run, path: String, data: Vec<u8>) -> Result<(), Failure> {
    on_files(&fs, run, "vfs.write", move |files| files.write(&path, &data)).await
}
