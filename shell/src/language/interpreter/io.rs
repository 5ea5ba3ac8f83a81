//! A shell's access to the run's files and to its standard streams.

use std::sync::Arc;

use wattle_capability::files::Files;

use super::Interpreter;
use super::flow::{Flow, Jump};
use crate::errno::{Errno, Fault};
use crate::language::paths;

impl Interpreter {
    /// Runs an operation on the run's files. Unless the files are in memory, the operation runs on
    /// a thread where blocking is allowed.
    pub(crate) async fn on_files<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Arc<Files>) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        let files = Arc::clone(&self.run.files);
        if files.is_memory() {
            return work(&files);
        }
        tokio::task::spawn_blocking(move || work(&files)).await.unwrap_or(Err(Errno::INTR.into()))
    }

    /// Converts a path to an absolute path in the run's files.
    pub(crate) fn path(&self, path: &str) -> String {
        paths::absolute(&self.folders.current, path)
    }

    /// Checks that an absolute path, as the user wrote it, does not lead outside the run's files. A
    /// relative path is checked only when it is used.
    pub(crate) async fn check_inside(&self, path: &str, write: bool) -> Result<(), Fault> {
        if !path.starts_with('/') {
            return Ok(());
        }
        let path = path.to_owned();
        self.on_files(move |files| Ok(files.check_inside(&path, write)?)).await
    }

    /// Writes to standard output and returns the status. If the pipe has no reader, ends the shell
    /// as SIGPIPE would.
    pub(crate) async fn print(&mut self, text: impl AsRef<[u8]>) -> Flow<u8> {
        self.write(1, text.as_ref()).await
    }

    async fn write(&mut self, fd: u32, text: &[u8]) -> Flow<u8> {
        let written = match self.descriptors.open.get(&fd).cloned() {
            Some(stream) => stream.write(text).await,
            None => Err(Errno::BADF),
        };
        match written {
            Ok(()) => Ok(0),
            Err(Errno::PIPE) => {
                self.last.status = 141;
                Err(Jump::Exit)
            }
            Err(errno) if fd == 1 => {
                self.report(&format!("write error: {errno}")).await;
                Ok(1)
            }
            Err(_) => Ok(1),
        }
    }

    /// Writes an error message to standard error. The message starts with the current line number,
    /// unless the current line is the first.
    pub(crate) async fn report(&self, message: &str) {
        let text = if self.execution.line > 1 {
            format!("line {}: {message}\n", self.execution.line)
        } else {
            format!("{message}\n")
        };
        self.write_stderr(&text).await;
    }

    /// Writes a string to standard error. Drops it if descriptor 2 is closed or has no reader.
    pub(crate) async fn write_stderr(&self, text: &str) {
        if let Some(stream) = self.descriptors.open.get(&2).cloned() {
            // If descriptor 2 has no reader, the message is lost.
            let _ = stream.write(text.as_bytes()).await;
        }
    }
}
