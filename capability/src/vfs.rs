//! `vfs`: the run's files for the tools that read and write them as a whole. The functions are those of [`fs`](crate::fs).

use wattle_rt::{Failure, Run, capability};

use crate::fs::on_files;

capability! {
    /// The run's files, whole ones.
    pub const VFS: "vfs" 1;

    /// Gives a file's content
    #[example = r#"(vfs.write? "a.txt" "hello") (ret (vfs.read? "a.txt"))"# => "hello"]
    #[prompt(name)]
    async read(path: read_path) -> ptr: bytes ! ENOENT EACCESS EBOUND EEXIST = read;

    /// Writes a file, replacing it; the folders above it are made as needed
    #[example = r#"(vfs.write? "notes/a.txt" "hello") (ret (fs.read? "notes/a.txt"))"# => "hello"]
    #[prompt(name)]
    async write(path: write_path, data: bytes) ! ENOENT EACCESS ENOMEM EEXIST = write;
}

async fn read(run: &mut Run, path: String) -> Result<Vec<u8>, Failure> {
    on_files(run, "vfs.read", move |files| files.read(&path)).await.map(Into::into)
}

async fn write(run: &mut Run, path: String, data: Vec<u8>) -> Result<(), Failure> {
    on_files(run, "vfs.write", move |files| files.write(&path, &data)).await
}
