//! The keys of each tenant, created on first use. One key seals traces, and another encrypts
//! secrets.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use chacha20poly1305::aead::{Aead as _, Payload};
use chacha20poly1305::{KeyInit as _, XChaCha20Poly1305, XNonce};
use ed25519_dalek::{Signer as _, SigningKey, VerifyingKey};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::chain::{Hash, hex, of, unhex};
use crate::folder::create_folder;

/// A folder of keys, readable only by its owner. For each tenant, it contains a signing key, the
/// pinned public key that verifies the tenant's traces, and a key that encrypts secrets.
#[derive(Clone, Debug)]
pub struct Keys {
    folder: PathBuf,
}

/// The kind of a tenant's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeyKind {
    /// The key that signs the tenant's traces.
    Signing,
    /// The key that encrypts the tenant's secrets, and records with secrets.
    Encryption,
}

impl KeyKind {
    /// All kinds.
    pub(crate) const ALL: [KeyKind; 2] = [KeyKind::Signing, KeyKind::Encryption];

    /// Returns the name of the kind in a store.
    pub(crate) fn name(self) -> &'static str {
        match self {
            KeyKind::Signing => "signing",
            KeyKind::Encryption => "encryption",
        }
    }

    /// Returns the kind with this name in a store.
    pub(crate) fn of_name(name: &str) -> Option<KeyKind> {
        KeyKind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns the extension of the key's file.
    fn extension(self) -> &'static str {
        match self {
            KeyKind::Signing => "key",
            KeyKind::Encryption => "cipher",
        }
    }
}

/// A failure to read or create a key.
#[derive(Debug, thiserror::Error)]
#[error("failed to {what} the key of tenant `{tenant}` in `{}`: {cause}", .path.display())]
pub struct KeyError {
    what: &'static str,
    tenant: String,
    path: PathBuf,
    cause: Box<dyn std::error::Error + Send + Sync>,
}

impl KeyError {
    /// Returns true if the system denies access to the key or its folder, for example because the
    /// file system is read-only.
    #[must_use]
    pub fn is_denied(&self) -> bool {
        self.cause.is::<std::io::Error>()
    }
}

/// A tenant's secret signing key. It is never printed, and its memory is cleared when it is
/// dropped.
pub struct Signer {
    tenant: String,
    key: SigningKey,
}

/// A tenant's key for encryption at rest. It is never printed, and its memory is cleared when it is
/// dropped.
pub struct Cipher {
    cipher: XChaCha20Poly1305,
    /// The key of the hash from which [`Cipher::seal_same`] takes its nonces.
    nonces: Zeroizing<[u8; 32]>,
}

/// The purpose of the key of [`Cipher::nonces`], from which this key is derived.
const NONCES: &str = "wattle 0.1.0: nonces of records that are stored once";

/// Length of the nonce at the start of a ciphertext, in bytes.
pub(crate) const NONCE: usize = 24;

impl Cipher {
    fn new(seed: Hash) -> Cipher {
        let nonces = Zeroizing::new(blake3::derive_key(NONCES, &seed));
        Cipher { cipher: XChaCha20Poly1305::new(&seed.into()), nonces }
    }

    /// Encrypts a text. The ciphertext can be decrypted only with the same `context`, which is not
    /// part of it.
    ///
    /// # Errors
    /// If the system has no random numbers, or the text is too long for the cipher.
    pub fn seal(&self, context: &[u8], text: &[u8]) -> std::io::Result<Vec<u8>> {
        let mut nonce = [0; NONCE];
        getrandom::fill(&mut nonce).map_err(std::io::Error::other)?;
        self.seal_with(nonce, context, text)
    }

    /// Encrypts a text like [`Cipher::seal`], but always to the same ciphertext. Only the owner of
    /// the key can tell which text it belongs to, but anyone can tell that two texts are equal.
    ///
    /// # Errors
    /// If the text is too long for the cipher.
    pub(crate) fn seal_same(&self, context: &[u8], text: &[u8]) -> std::io::Result<Vec<u8>> {
        // A nonce that is a keyed hash of all that is encrypted occurs twice only with equal texts.
        let mut hasher = blake3::Hasher::new_keyed(&self.nonces);
        hasher.update(&(context.len() as u64).to_le_bytes()).update(context).update(text);
        let mut nonce = [0; NONCE];
        hasher.finalize_xof().fill(&mut nonce);
        self.seal_with(nonce, context, text)
    }

    fn seal_with(
        &self,
        nonce: [u8; NONCE],
        context: &[u8],
        text: &[u8],
    ) -> std::io::Result<Vec<u8>> {
        let payload = Payload { msg: text, aad: context };
        let sealed = self.cipher.encrypt(&XNonce::from(nonce), payload);
        let sealed = sealed.map_err(|_| std::io::Error::other("the encryption failed"))?;
        Ok([&nonce[..], &sealed].concat())
    }

    /// Decrypts a ciphertext of [`Cipher::seal`]. Returns `None` if it or the context was changed,
    /// or another key encrypted it.
    #[must_use]
    pub fn open(&self, context: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, sealed) = sealed.split_first_chunk::<NONCE>()?;
        let payload = Payload { msg: sealed, aad: context };
        self.cipher.decrypt(&XNonce::from(*nonce), payload).ok()
    }
}

impl std::fmt::Debug for Cipher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Cipher")
    }
}

/// A public key that verifies seals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicKey(pub(super) VerifyingKey);

/// The content of a key file. A secret key's file contains `secret`, and a pinned key's file
/// contains `public`.
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
    /// Returns the keys in a folder, which is created when the first key is created.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>) -> Keys {
        Keys { folder: folder.into() }
    }

    /// Returns the tenant's signing key. Creates and pins the key if it does not exist. Processes
    /// that create it at the same time get the same key.
    ///
    /// # Errors
    /// If the folder cannot be written, or the key file is invalid, belongs to another tenant, or
    /// can be read by other users.
    pub fn signer(&self, tenant: &str) -> Result<Signer, KeyError> {
        let key = SigningKey::from_bytes(&self.seed(tenant, KeyKind::Signing)?);
        let pin = self.path(tenant, "pub");
        if !pin.exists() {
            let public = Some(hex(key.verifying_key().as_bytes()));
            let pinned =
                write_new(&pin, &KeyFile { tenant: tenant.to_owned(), secret: None, public });
            pinned.map_err(|cause| KeyError {
                what: "use",
                tenant: tenant.to_owned(),
                path: pin,
                cause,
            })?;
        }
        Ok(Signer { tenant: tenant.to_owned(), key })
    }

    /// Returns the key that encrypts the tenant's secrets. Creates the key if it does not exist.
    ///
    /// # Errors
    /// The same as for [`Keys::signer`].
    pub fn cipher(&self, tenant: &str) -> Result<Cipher, KeyError> {
        self.seed(tenant, KeyKind::Encryption).map(Cipher::new)
    }

    /// Returns true if the tenant has a key that encrypts secrets. Without this key, no secret can
    /// be read.
    #[must_use]
    pub fn has_cipher(&self, tenant: &str) -> bool {
        self.path(tenant, KeyKind::Encryption.extension()).exists()
    }

    /// Checks that the tenant's signing key can be read, or that it is absent and can be created.
    /// Creates the folder only.
    ///
    /// # Errors
    /// The same as for [`Keys::signer`].
    pub fn check_usable(&self, tenant: &str) -> Result<(), KeyError> {
        let path = self.path(tenant, KeyKind::Signing.extension());
        let is_writable = || -> Result<(), Cause> {
            create_folder(&self.folder)?;
            rustix::fs::access(&self.folder, rustix::fs::Access::WRITE_OK)
                .map_err(std::io::Error::from)?;
            Ok(())
        };
        let checked = match self.secret(tenant, &path) {
            Ok(Some(_)) => Ok(()),
            Ok(None) => is_writable(),
            Err(cause) => Err(cause),
        };
        checked.map_err(|cause| KeyError { what: "use", tenant: tenant.to_owned(), path, cause })
    }

    /// Returns 16 hexadecimal digits that identify a tenant's key without revealing it, or `None` if
    /// the tenant has no such key. Creates nothing.
    pub(crate) fn fingerprint(
        &self,
        tenant: &str,
        kind: KeyKind,
    ) -> Result<Option<String>, KeyError> {
        let path = self.path(tenant, kind.extension());
        let seed = self.secret(tenant, &path);
        let seed = seed.map_err(|cause| KeyError {
            what: "read",
            tenant: tenant.to_owned(),
            path,
            cause,
        })?;
        Ok(seed.map(|seed| {
            let digest = hex(&of(&[b"wattle fingerprint of a key\0", &seed[..]].concat()));
            digest.get(..16).unwrap_or_default().to_owned()
        }))
    }

    fn seed(&self, tenant: &str, kind: KeyKind) -> Result<Hash, KeyError> {
        let path = self.path(tenant, kind.extension());
        restrict_folder(&self.folder);
        let seed = match self.secret(tenant, &path) {
            Ok(Some(seed)) => Ok(seed),
            Ok(None) => self.create(tenant, &path),
            Err(cause) => Err(cause),
        };
        seed.map_err(|cause| KeyError { what: "use", tenant: tenant.to_owned(), path, cause })
    }

    /// Returns the public key that is pinned for the tenant, or `None` if no key is pinned.
    ///
    /// # Errors
    /// If the key file cannot be read, is invalid, or belongs to another tenant.
    pub fn pinned(&self, tenant: &str) -> Result<Option<PublicKey>, KeyError> {
        let path = self.path(tenant, "pub");
        let read = || -> Result<Option<PublicKey>, Cause> {
            let Some(file) = read_file(&path, tenant)? else { return Ok(None) };
            Ok(Some(
                PublicKey::parse(file.public.as_deref().unwrap_or_default())
                    .ok_or("it contains no public key")?,
            ))
        };
        let failed =
            |cause| KeyError { what: "read", tenant: tenant.to_owned(), path: path.clone(), cause };
        read().map_err(failed)
    }

    fn secret(&self, tenant: &str, path: &Path) -> Result<Option<Hash>, Cause> {
        let Some(file) = read_file(path, tenant)? else { return Ok(None) };
        check_private(path)?;
        let seed =
            unhex(file.secret.as_deref().unwrap_or_default()).ok_or("it contains no secret key")?;
        Ok(Some(seed))
    }

    fn create(&self, tenant: &str, path: &Path) -> Result<Hash, Cause> {
        create_folder(&self.folder)?;
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(|error| error.to_string())?;
        write_new(
            path,
            &KeyFile { tenant: tenant.to_owned(), secret: Some(hex(&seed)), public: None },
        )?;
        // Another process may have created the key first, so the content of the file is used.
        Ok(self.secret(tenant, path)?.ok_or("it was removed while it was being created")?)
    }

    /// Returns the path of a key file. The tenant's name is hashed, so that the file name is valid
    /// for any tenant.
    fn path(&self, tenant: &str, kind: &str) -> PathBuf {
        let name = hex(&of(tenant.as_bytes()));
        self.folder.join(format!("{}.{kind}", name.get(..32).unwrap_or_default()))
    }
}

impl Signer {
    /// Returns the tenant that owns the key.
    #[must_use]
    pub fn tenant(&self) -> &str {
        &self.tenant
    }

    /// Returns the public key that verifies this signer's signatures.
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
    /// Parses a public key from 64 hexadecimal digits. Returns `None` if it is invalid.
    #[must_use]
    pub fn parse(text: &str) -> Option<PublicKey> {
        VerifyingKey::from_bytes(&unhex(text.trim())?).ok().map(PublicKey)
    }

    /// Returns the first 16 hexadecimal digits of the key's SHA-256 hash. These digits distinguish
    /// keys without revealing them.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        hex(&of(self.0.as_bytes())).get(..16).unwrap_or_default().to_owned()
    }
}

/// Formats the key in the form that [`PublicKey::parse`] reads.
impl std::fmt::Display for PublicKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&hex(self.0.as_bytes()))
    }
}

type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Reads the tenant's key file at `path`. Returns `None` if the file does not exist.
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

/// Atomically writes a file that only its owner can read. Does not replace an existing file.
fn write_new(path: &Path, content: &KeyFile) -> Result<(), Cause> {
    let temporary = path.with_extension(format!("new-{}", ulid::Ulid::generate()));
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = || -> Result<(), Cause> {
        let mut file = options.open(&temporary)?;
        #[cfg(unix)]
        file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
        file.write_all(&serde_json::to_vec(content)?)?;
        file.sync_all()?;
        match std::fs::hard_link(&temporary, path) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error.into()),
            _ => Ok(()),
        }
    };
    let result = written();
    _ = std::fs::remove_file(&temporary);
    result
}

/// Removes the permissions of other users from the key folder, if it exists.
#[cfg(unix)]
fn restrict_folder(folder: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let Ok(mode) = std::fs::symlink_metadata(folder).map(|meta| meta.permissions().mode() & 0o777)
    else {
        return;
    };
    if mode & 0o077 == 0 || folder.is_symlink() {
        return;
    }
    if let Err(error) = std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700)) {
        tracing::warn!(
            folder = %folder.display(),
            %error,
            "others can read the folder of the keys, and its mode cannot be changed"
        );
    }
}

#[cfg(not(unix))]
fn restrict_folder(_: &Path) {}

/// Checks that only the owner can read the file.
#[cfg(unix)]
fn check_private(path: &Path) -> Result<(), Cause> {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(path)?.permissions().mode() & 0o777;
    if mode & 0o077 == 0 {
        return Ok(());
    }
    Err(format!("others can read it (mode {mode:03o}); make it private with `chmod 600`").into())
}

#[cfg(not(unix))]
fn check_private(_: &Path) -> Result<(), Cause> {
    Ok(())
}
