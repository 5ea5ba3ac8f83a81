//! The keys of tenants, made at their first use: one that traces are sealed with, one that secrets are encrypted with.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use chacha20poly1305::{KeyInit as _, XChaCha20Poly1305};
use ed25519_dalek::{Signer as _, SigningKey, VerifyingKey};
use serde::{Deserialize, Serialize};

use super::chain::{Hash, hex, of, unhex};
use crate::store::make_folder;

/// A folder of keys that only its owner can look into. For each tenant it holds a secret key and, beside it, the public key that
/// traces are held against.
#[derive(Clone, Debug)]
pub struct Keys {
    folder: PathBuf,
}

/// Why a key cannot be had.
#[derive(Debug, thiserror::Error)]
#[error("failed to {what} the key of tenant `{tenant}` in `{}`: {cause}", .path.display())]
pub struct KeyError {
    what: &'static str,
    tenant: String,
    path: PathBuf,
    cause: Box<dyn std::error::Error + Send + Sync>,
}

/// A tenant's secret key. It is never shown, and gone from memory when it is dropped.
pub struct Signer {
    tenant: String,
    key: SigningKey,
}

/// A tenant's key for what is encrypted at rest. It is never shown, and gone from memory when it is dropped.
pub struct Cipher(pub(crate) XChaCha20Poly1305);

impl std::fmt::Debug for Cipher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Cipher")
    }
}

/// A public key, by which seals are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicKey(pub(super) VerifyingKey);

/// A key file: the secret one has `secret`, the pinned one has `public`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyFile {
    tenant: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    secret: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    public: Option<String>,
}

impl Keys {
    /// Keys in that folder, which is made when the first key is.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>) -> Keys {
        Keys { folder: folder.into() }
    }

    /// The tenant's key, made and pinned where there is none yet. Processes that make it at the same time get the same one.
    ///
    /// # Errors
    /// Where the folder cannot be written, the file is none of ours, or others may read it.
    pub fn signer(&self, tenant: &str) -> Result<Signer, KeyError> {
        let key = SigningKey::from_bytes(&self.seed(tenant, "key")?);
        let pin = self.path(tenant, "pub");
        if !pin.exists() {
            let public = Some(hex(key.verifying_key().as_bytes()));
            let pinned = write_new(&pin, &KeyFile { tenant: tenant.to_owned(), secret: None, public });
            pinned.map_err(|cause| KeyError { what: "use", tenant: tenant.to_owned(), path: pin, cause })?;
        }
        Ok(Signer { tenant: tenant.to_owned(), key })
    }

    /// The key that the tenant's stored secrets are encrypted with, made where there is none yet.
    ///
    /// # Errors
    /// As [`Keys::signer`].
    pub fn cipher(&self, tenant: &str) -> Result<Cipher, KeyError> {
        self.seed(tenant, "cipher").map(|seed| Cipher(XChaCha20Poly1305::new(&seed.into())))
    }

    /// Returns true if the tenant has a key for stored secrets. Without one there is no secret that could be read.
    #[must_use]
    pub fn has_cipher(&self, tenant: &str) -> bool {
        self.path(tenant, "cipher").exists()
    }

    fn seed(&self, tenant: &str, kind: &str) -> Result<Hash, KeyError> {
        let path = self.path(tenant, kind);
        shut(&self.folder);
        let seed = match self.secret(tenant, &path) {
            Ok(Some(seed)) => Ok(seed),
            Ok(None) => self.make(tenant, &path),
            Err(cause) => Err(cause),
        };
        seed.map_err(|cause| KeyError { what: "use", tenant: tenant.to_owned(), path, cause })
    }

    /// The public key that is pinned for the tenant; `None` where there is none.
    ///
    /// # Errors
    /// Where the file cannot be read or is none of ours.
    pub fn pinned(&self, tenant: &str) -> Result<Option<PublicKey>, KeyError> {
        let path = self.path(tenant, "pub");
        let read = || -> Result<Option<PublicKey>, Cause> {
            let Some(file) = read_file(&path, tenant)? else { return Ok(None) };
            Ok(Some(PublicKey::parse(file.public.as_deref().unwrap_or_default()).ok_or("it holds no public key")?))
        };
        let failed = |cause| KeyError { what: "read", tenant: tenant.to_owned(), path: path.clone(), cause };
        read().map_err(failed)
    }

    fn secret(&self, tenant: &str, path: &Path) -> Result<Option<Hash>, Cause> {
        let Some(file) = read_file(path, tenant)? else { return Ok(None) };
        private(path)?;
        let seed = unhex(file.secret.as_deref().unwrap_or_default()).ok_or("it holds no secret key")?;
        Ok(Some(seed))
    }

    fn make(&self, tenant: &str, path: &Path) -> Result<Hash, Cause> {
        make_folder(&self.folder)?;
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(|error| error.to_string())?;
        write_new(path, &KeyFile { tenant: tenant.to_owned(), secret: Some(hex(&seed)), public: None })?;
        // Another process may have been first: what the file holds is the key.
        Ok(self.secret(tenant, path)?.ok_or("it was removed while it was made")?)
    }

    /// Tenants may be named in any way, files may not.
    fn path(&self, tenant: &str, kind: &str) -> PathBuf {
        let name = hex(&of(tenant.as_bytes()));
        self.folder.join(format!("{}.{kind}", name.get(..32).unwrap_or_default()))
    }
}

impl Signer {
    /// The tenant whose key it is.
    #[must_use]
    pub fn tenant(&self) -> &str {
        &self.tenant
    }

    /// The public key that belongs to it.
    #[must_use]
    pub fn public(&self) -> PublicKey {
        PublicKey(self.key.verifying_key())
    }

    pub(super) fn sign(&self, bytes: &[u8]) -> [u8; 64] {
        self.key.sign(bytes).to_bytes()
    }
}

impl std::fmt::Debug for Signer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Signer({})", self.tenant)
    }
}

impl PublicKey {
    /// Reads 64 hexadecimal digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<PublicKey> {
        VerifyingKey::from_bytes(&unhex(text.trim())?).ok().map(PublicKey)
    }

    /// The first 16 hexadecimal digits of the key's SHA-256: enough to tell keys apart, by which none can be made.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        hex(&of(self.0.as_bytes())).get(..16).unwrap_or_default().to_owned()
    }
}

/// The 64 hexadecimal digits that [`PublicKey::parse`] reads.
impl std::fmt::Display for PublicKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&hex(self.0.as_bytes()))
    }
}

type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Reads a key file of that tenant; `None` where there is none.
fn read_file(path: &Path, tenant: &str) -> Result<Option<KeyFile>, Cause> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flags.bits().cast_signed());
    }
    let file = match options.open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(_) if path.is_symlink() => return Err("it is a link".into()),
        Err(error) => return Err(error.into()),
    };
    let mut text = String::new();
    file.take(4_096).read_to_string(&mut text)?;
    let found: KeyFile = serde_json::from_str(&text)?;
    if found.tenant != tenant {
        return Err(format!("it is the key of tenant `{}`", found.tenant).into());
    }
    Ok(Some(found))
}

/// Writes a file that only its owner may read, as a whole or not at all; one that is there stays.
fn write_new(path: &Path, content: &KeyFile) -> Result<(), Cause> {
    let whole = path.with_extension(format!("new-{}", ulid::Ulid::generate()));
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = || -> Result<(), Cause> {
        let mut file = options.open(&whole)?;
        #[cfg(unix)]
        file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
        file.write_all(&serde_json::to_vec(content)?)?;
        file.sync_all()?;
        match std::fs::hard_link(&whole, path) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error.into()),
            _ => Ok(()),
        }
    };
    let done = written();
    _ = std::fs::remove_file(&whole);
    done
}

/// Takes away what others may do in the folder of the keys, if it is there.
#[cfg(unix)]
fn shut(folder: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let Ok(mode) = std::fs::symlink_metadata(folder).map(|meta| meta.permissions().mode() & 0o777) else { return };
    if mode & 0o077 == 0 || folder.is_symlink() {
        return;
    }
    if let Err(error) = std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700)) {
        tracing::warn!(folder = %folder.display(), %error, "others may look into the folder of the keys, and its mode cannot be changed");
    }
}

#[cfg(not(unix))]
fn shut(_: &Path) {}

/// Fails where others than the owner may read the file.
#[cfg(unix)]
fn private(path: &Path) -> Result<(), Cause> {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(path)?.permissions().mode() & 0o777;
    if mode & 0o077 == 0 {
        return Ok(());
    }
    Err(format!("others may read it (mode {mode:03o}); make it private with `chmod 600`").into())
}

#[cfg(not(unix))]
fn private(_: &Path) -> Result<(), Cause> {
    Ok(())
}
