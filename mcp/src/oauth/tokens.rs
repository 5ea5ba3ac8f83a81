//! The tokens of sign-ins, as they are kept on disk.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use wattle_agent::host::capability::secrets::Mask;
use wattle_agent::host::create_folder;
use wattle_agent::host::ledger::Keys;

use super::grant::Grant;

/// Maximum size of a file, in bytes.
const MAX_FILE: u64 = 256 << 10;

/// Maximum time that a process waits for another one that renews the same tokens.
const PATIENCE: Duration = Duration::from_secs(40);

/// The time between two attempts to lock a file.
const PAUSE: Duration = Duration::from_millis(20);

/// The folder with the tokens of sign-ins: a file for each server, which only the user can read. Each
/// file is encrypted with a key of [`Keys`], and its content is masked in all records.
#[derive(Clone, Debug)]
pub struct Tokens {
    folder: PathBuf,
    keys: Keys,
    tenant: String,
    mask: Mask,
}

impl Tokens {
    /// Keeps tokens in `folder`, which is created when the first ones are kept. They are encrypted
    /// with the key of `tenant`, and `mask` receives each of them.
    #[must_use]
    pub fn in_folder(folder: impl Into<PathBuf>, keys: Keys, tenant: &str, mask: Mask) -> Tokens {
        Tokens { folder: folder.into(), keys, tenant: tenant.to_owned(), mask }
    }

    fn file(&self, server: &str) -> PathBuf {
        self.folder.join(format!("{server}.token"))
    }

    /// Returns the associated data that is authenticated with a file.
    fn context(&self, server: &str) -> Vec<u8> {
        [self.tenant.as_bytes(), b"\0\0mcp\0", server.as_bytes()].concat()
    }

    /// Returns the tokens for a server if they are for this URL. Those for another URL are removed:
    /// the operator has chosen another server.
    pub(super) fn load(&self, server: &str, url: &str) -> io::Result<Option<Grant>> {
        let path = self.file(server);
        let mut sealed = Vec::new();
        match File::open(&path) {
            Ok(file) => file.take(MAX_FILE).read_to_end(&mut sealed),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => Err(error),
        }
        .map_err(|error| named(&path, &error))?;
        let changed = || named(&path, &"the tokens or their key were changed");
        if !self.keys.has_cipher(&self.tenant) {
            return Err(changed());
        }
        let cipher = self.keys.cipher(&self.tenant).map_err(io::Error::other)?;
        let text = cipher.open(&self.context(server), &sealed).ok_or_else(changed)?;
        let grant: Grant = serde_json::from_slice(&text).map_err(|_| changed())?;
        if grant.server != url {
            self.remove(server)?;
            return Ok(None);
        }
        self.cover(server, &grant);
        Ok(Some(grant))
    }

    /// Keeps the tokens for a server. Replaces the file in one step.
    pub(super) fn save(&self, server: &str, grant: &Grant) -> io::Result<()> {
        self.cover(server, grant);
        create_folder(&self.folder).map_err(|error| named(&self.folder, &error))?;
        let cipher = self.keys.cipher(&self.tenant).map_err(io::Error::other)?;
        let sealed = cipher.seal(&self.context(server), &serde_json::to_vec(grant)?)?;
        let (path, part) = (self.file(server), self.folder.join(format!(".{server}.token.part")));
        let write = || {
            let mut file = private(&part, OpenOptions::new().write(true).truncate(true))?;
            file.write_all(&sealed)?;
            file.sync_all()?;
            std::fs::rename(&part, &path)
        };
        write().map_err(|error| named(&path, &error))
    }

    /// Removes the tokens for a server.
    pub(super) fn remove(&self, server: &str) -> io::Result<()> {
        let path = self.file(server);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(named(&path, &error)),
            _ => Ok(()),
        }
    }

    /// Waits until no other process changes the tokens for a server. The others wait until the
    /// returned file is closed.
    pub(super) async fn lock(&self, server: &str) -> io::Result<File> {
        create_folder(&self.folder).map_err(|error| named(&self.folder, &error))?;
        let path = self.folder.join(format!("{server}.lock"));
        let file = private(&path, OpenOptions::new().write(true));
        let file = file.map_err(|error| named(&path, &error))?;
        let locked = async {
            loop {
                match file.try_lock() {
                    Ok(()) => return Ok(()),
                    Err(TryLockError::WouldBlock) => tokio::time::sleep(PAUSE).await,
                    Err(TryLockError::Error(error)) => return Err(named(&path, &error)),
                }
            }
        };
        match tokio::time::timeout(PATIENCE, locked).await {
            Ok(locked) => locked.map(|()| file),
            Err(_) => Err(named(&path, &"another process holds it")),
        }
    }

    /// Makes all records mask the tokens.
    fn cover(&self, server: &str, grant: &Grant) {
        grant.secrets(server).iter().for_each(|secret| self.mask.renew_secret(secret));
    }
}

/// Opens a file, or creates one that only the user can read.
fn private(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    options.create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options.open(path)
}

fn named(path: &Path, why: &dyn std::fmt::Display) -> io::Error {
    io::Error::other(format!("`{}`: {why}", path.display()))
}
