//! The configured store, and the files next to it.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use parking_lot::Mutex;
use wattle_agent::agents::TRAITS_FOLDER;
use wattle_agent::host::capability::egress::{Egress, Policy};
use wattle_agent::host::capability::files::{
    EVENTS_FILE, HostFiles, ISSUES_FILE, LEDGER_FILE, ROTATED_FOLDER, TRACE_FILE,
};
use wattle_agent::host::ledger::Keys;
use wattle_agent::host::{
    BlobStore, Retention, S3Bucket, StoreError, StoreLimits, StoredSecrets, TenantStore,
};
use wattle_agent::model::{ApiKey, CLASS_PREFIX};
use wattle_agent::{Store, Tenant};

use crate::config::{BlobLocation, Config, Places, StoreLocation, TraceLocation};
use crate::fault::Fault;
use crate::{output, trust};

use super::models::{NamedEndpoint, endpoint};
use super::remote::mask_key;
use crate::api_keys::variable;

/// Opens the configured store for the configured tenant and creates the store if it is absent.
/// Records that contain a key or a secret are encrypted.
///
/// # Errors
/// If neither a setting nor a home directory determines the store's location, if the store or the
/// storage for large files cannot be opened, or if the tenant's name is invalid.
pub(crate) fn store(config: &Config) -> Result<TenantStore, Fault> {
    let tenant = tenant(config)?;
    let store = open_at(location(config)?, session_time(config)).map_err(no_store)?;
    let (runs, events) = (config.keep_runs.value.0, config.keep_events.value.0);
    let store = store.keeping(Retention { runs, events });
    let mebibytes = |limit: NonZeroU32| u64::from(limit.get()) << 20;
    let store = store.limited(StoreLimits {
        run: mebibytes(config.limits_run_store.value),
        tenant: mebibytes(config.limits_tenant_store.value),
        store: mebibytes(config.limits_store.value),
    });
    let store = match &config.blobs.value {
        Some(location) => store.with_blobs(blobs(location)?),
        None => store,
    };
    let store = store.tenant(&tenant);
    Ok(match keys(config) {
        Some(keys) => store.sealing(config.mask.clone(), keys),
        None => store,
    })
}

/// Returns the time for which an unused session is kept.
pub(super) fn session_time(config: &Config) -> Duration {
    config.keep_sessions.value.0.unwrap_or(Duration::MAX)
}

/// Opens the storage for large files. A bucket's access keys come from environment variables.
///
/// # Errors
/// If the folder cannot be created, or an environment variable for the bucket is missing or
/// invalid.
fn blobs(location: &BlobLocation) -> Result<BlobStore, Fault> {
    let failed = |error: StoreError| {
        Fault::configuration(error).hint("name another location with `--blobs URL`")
    };
    let (bucket, prefix) = match location {
        BlobLocation::Folder(folder) => return BlobStore::folder(folder).map_err(failed),
        BlobLocation::Bucket { bucket, prefix } => (bucket.clone(), prefix.clone()),
    };
    const SECRET: &str = "AWS_SECRET_ACCESS_KEY";
    const SESSION: &str = "AWS_SESSION_TOKEN";
    let needed = |name: &str| {
        bucket_variable(name)?.ok_or_else(|| {
            Fault::configuration(format!("`blobs` is a bucket, but `{name}` is not set"))
                .hint("set `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`")
        })
    };
    let (secret_key, session_token) = (needed(SECRET)?, bucket_variable(SESSION)?);
    for (name, value) in [(SECRET, Some(&secret_key)), (SESSION, session_token.as_ref())] {
        value.and_then(|value| ApiKey::new(value)).iter().for_each(|key| mask_key(key, name));
    }
    let region = match bucket_variable("AWS_REGION")? {
        Some(region) => Some(region),
        None => bucket_variable("AWS_DEFAULT_REGION")?,
    };
    let bucket = S3Bucket {
        bucket,
        prefix,
        endpoint: bucket_variable("AWS_ENDPOINT_URL")?,
        region,
        key_id: needed("AWS_ACCESS_KEY_ID")?,
        secret_key,
        session_token,
    };
    BlobStore::bucket(&bucket, &Egress::new(Policy::default())).map_err(failed)
}

/// Returns the value of an environment variable without surrounding whitespace. Returns `None` if
/// the variable is absent or empty.
///
/// # Errors
/// If the value cannot be part of a request's headers.
fn bucket_variable(name: &str) -> Result<Option<String>, Fault> {
    let value = variable(name).map(|value| value.trim().to_owned());
    match value.filter(|value| !value.is_empty()) {
        Some(value) if value.bytes().all(|byte| byte.is_ascii_graphic()) => Ok(Some(value)),
        Some(_) => Err(Fault::configuration(format!("`{name}` has characters that are invalid"))),
        None => Ok(None),
    }
}

/// The stores that this process has opened, each with its location.
static OPENED: Mutex<Vec<(StoreLocation, Store)>> = Mutex::new(Vec::new());

/// Maximum time to wait for a store when a command ends.
const CLOSE: Duration = Duration::from_secs(2);

/// Opens the store at a location. All stores that a process opens at the same location share their
/// connections, until [`close_stores`] is called.
pub(super) fn open_at(location: &StoreLocation, ttl: Duration) -> Result<Store, StoreError> {
    let mut opened = OPENED.lock();
    if let Some((_, store)) = opened.iter().find(|(known, _)| known == location) {
        return Ok(store.clone());
    }
    let store = match location {
        StoreLocation::File(path) => Store::open(path, ttl)?,
        StoreLocation::Database(url) => Store::connect(url, ttl)?,
    };
    opened.push((location.clone(), store.clone()));
    Ok(store)
}

/// Closes the stores that this process has opened: releases its locks, so that the next process
/// does not wait until they expire, and writes the log of a file back to the file. A store that is
/// opened later gets new connections, because pooled connections end with the threads that opened
/// them.
pub(crate) async fn close_stores() {
    let opened = std::mem::take(&mut *OPENED.lock());
    for (location, store) in opened {
        let closed = match tokio::time::timeout(CLOSE, store.close()).await {
            Ok(closed) => closed.map_err(|error| error.to_string()),
            Err(_) => Err(format!("`{location}` does not respond")),
        };
        if let Err(error) = closed {
            output::warn(&format!("failed to close the store: {error}"));
        }
    }
}

/// Opens the store like [`store`]. Returns `None` if its file is absent.
///
/// # Errors
/// The same as for [`store`].
pub(crate) fn store_if_there(config: &Config) -> Result<Option<TenantStore>, Fault> {
    if may_exist(config) { store(config).map(Some) } else { Ok(None) }
}

/// Returns true if the store is a database or an existing file.
fn may_exist(config: &Config) -> bool {
    location(config).is_ok_and(|location| location.file().is_none_or(Path::exists))
}

fn no_store(error: StoreError) -> Fault {
    let message = error.to_string();
    // Some causes have a hint of their own.
    if message.contains("\nhint: ") {
        Fault::configuration(message)
    } else {
        Fault::configuration(message).hint("name another store with `--store FILE|URL`")
    }
}

/// Returns the configured tenant.
///
/// # Errors
/// If the name is invalid.
pub(crate) fn tenant(config: &Config) -> Result<Tenant, Fault> {
    Tenant::new(&config.tenant.value).map_err(Fault::configuration)
}

/// Opens the tenant's secrets in the store.
///
/// # Errors
/// If the store or the key cannot be opened.
pub(crate) fn stored_secrets(config: &Config) -> Result<StoredSecrets, Fault> {
    let (store, keys) = (store(config)?, keys(config));
    let keys = keys.ok_or_else(|| {
        Fault::configuration("no folder for keys: neither `store` nor a home directory is set")
    })?;
    let cipher = keys.cipher(store.tenant().as_str()).map_err(Fault::configuration)?;
    Ok(StoredSecrets::new(store, cipher))
}

/// Adds the API keys of the configured models and all secrets to the mask, so that they are hidden
/// in everything that the process records. Commands that start a run need not call this function,
/// because the run fills the mask.
///
/// # Errors
/// If a secret is invalid or cannot be read.
pub(crate) async fn mask_settings(config: &Config) -> Result<(), Fault> {
    let classes = config.models.value.0.keys().map(|class| format!("{CLASS_PREFIX}{class}"));
    for name in [None].into_iter().chain(classes.map(Some)) {
        if let Ok(NamedEndpoint { endpoint, .. }) = endpoint(config, name.as_deref()) {
            endpoint.key.iter().for_each(|key| mask_key(key, &endpoint.key_variable));
        }
    }
    let secrets = crate::setup::trusted::secrets(config)?.all().await;
    output::mask().add_secrets(&secrets.map_err(|why| Fault::failed(why.reason))?);
    Ok(())
}

/// Returns true if the tenant may have secrets in the store. Does not open or create anything.
pub(crate) fn may_have_secrets(config: &Config) -> bool {
    may_exist(config)
        && tenant(config)
            .is_ok_and(|tenant| keys(config).is_some_and(|keys| keys.has_cipher(tenant.as_str())))
}

/// Returns a handle to the tenants' keys. They are stored next to the store's file or, for a
/// database, next to the default store. Returns `None` if there is no store.
pub(crate) fn keys(config: &Config) -> Option<Keys> {
    keys_folder(config).map(Keys::new)
}

/// Returns the folder of the tenants' keys, or `None` if there is no store.
pub(crate) fn keys_folder(config: &Config) -> Option<PathBuf> {
    Some(location(config).ok()?.folder()?.join("keys"))
}

/// Checks that the keys are those that the store knows, and makes it remember new ones. Checks the
/// keys of all tenants, or of one tenant.
///
/// # Errors
/// If a key that the store knows is missing or is another one.
pub(crate) async fn check_keys(
    config: &Config,
    store: &Store,
    tenant: Option<&Tenant>,
) -> Result<(), Fault> {
    let Some((keys, folder)) = keys(config).zip(keys_folder(config)) else { return Ok(()) };
    let missing = match store.check_keys(&keys, tenant).await {
        // A database that is down may come back.
        Err(cause) if cause.is_outage() => return Ok(()),
        checked => checked?,
    };
    if missing.is_empty() {
        return Ok(());
    }
    let count = missing.len();
    let mut lost: Vec<String> = missing.iter().take(SHOWN_KEYS).map(ToString::to_string).collect();
    if count > SHOWN_KEYS {
        lost.push(format!("and {} more", count - SHOWN_KEYS));
    }
    let message = format!(
        "the keys in `{}` are not those of the store: {}",
        folder.display(),
        lost.join("; ")
    );
    Err(Fault::configuration(message).hint(
        "put the folder back from a back-up, or give all replicas the same one; to go on without \
         these keys, run `wattle store accept-keys`: stored secrets and encrypted records cannot be \
         read any more then, and new traces have another signature",
    ))
}

/// Maximum number of missing keys in a message.
const SHOWN_KEYS: usize = 4;

/// Checks that the tenant's signing key can be read or created. Does not create it.
///
/// # Errors
/// If the tenant's name is invalid, or the system denies access to the folder of the keys.
pub(super) fn usable_keys(config: &Config) -> Result<(), Fault> {
    let tenant = tenant(config)?;
    match keys(config).map(|keys| keys.check_usable(tenant.as_str())) {
        Some(Err(error)) if error.is_denied() => Err(Fault::configuration(error)),
        // Other errors, such as a key that others can read, end the run.
        _ => Ok(()),
    }
}

/// Returns the host's own files. If such files are inside a workdir, runs can read but not change
/// the files that affect later runs, and cannot see the other host files.
pub(crate) fn host_files(config: &Config) -> HostFiles {
    let places = Places::of_user();
    let mut files = HostFiles::default();
    for folder in &config.catalog.value {
        files = files.protect_folder(folder, &[trust::PROGRAM], "a folder of programs");
    }
    for folder in &config.skills.value {
        files = files.protect(folder, "a folder of skills");
    }
    for folder in &config.agents.value {
        let traits = folder.join(TRAITS_FOLDER);
        files = files.protect_folder(folder, &[trust::AGENT], "a folder of agents");
        files = files.protect_folder(traits, &[trust::AGENT], "a folder of traits");
    }
    if let Some(folder) = places.user_file.as_deref().and_then(Path::parent) {
        files = files.protect(folder, "the folder of the user's settings");
    }
    if let Some(list) = &places.trust {
        files = files.hide(list, "the list of trusted folders");
    }
    if let Some(state) = &places.state {
        files = files.hide(state, "the folder of the token and of histories");
    }
    if let Ok(store) = location(config) {
        if let Some(file) = store.file() {
            files = files.hide_database(file, "the store");
        }
        if let Some(folder) = store.folder() {
            files = files.hide(folder.join("keys"), "the folder of keys");
        }
    }
    if let Some(folder) = config.blobs.value.as_ref().and_then(BlobLocation::folder) {
        files = files.hide(folder, "the folder of large files");
    }
    if let Some(folder) = traces(config) {
        files = files.hide(folder, "the folder of traces");
    } else if config.trace_dir.value == Some(TraceLocation::Workdir) {
        for name in [TRACE_FILE, LEDGER_FILE, EVENTS_FILE, ISSUES_FILE, ROTATED_FOLDER] {
            files = files.hide(config.root.value.join(name), "a trace of runs");
        }
    }
    match places.cache {
        Some(cache) => files.hide(cache, "the folder of caches"),
        None => files,
    }
}

/// Returns the folder that contains the traces of all workdirs, or `None` if each workdir contains
/// its own, or there is no store to keep them beside.
pub(crate) fn traces(config: &Config) -> Option<PathBuf> {
    match &config.trace_dir.value {
        Some(location) => location.folder().map(Path::to_owned),
        None => Some(location(config).ok()?.folder()?.join("traces")),
    }
}

/// Returns the path at which to read the traces of the tenant's runs in a folder and below it. A
/// file is a trace, and a folder that contains traces is read as it is.
pub(crate) fn traces_of(config: &Config, path: PathBuf) -> PathBuf {
    let is_trace = [TRACE_FILE, LEDGER_FILE].iter().any(|name| path.join(name).is_file());
    match trace_dir(config, &path).filter(|folder| !is_trace && folder.is_dir()) {
        Some(traces) => traces,
        None => path,
    }
}

/// Returns the folder for the traces of the tenant's runs in a workdir. It has the path of the
/// workdir, below the folder of the tenant. Returns `None` if there is no folder of traces, or the
/// workdir does not exist.
pub(crate) fn trace_dir(config: &Config, workdir: &Path) -> Option<PathBuf> {
    let workdir = workdir.canonicalize().ok()?;
    if config.trace_dir.value == Some(TraceLocation::Workdir) {
        return Some(workdir);
    }
    let below = workdir.strip_prefix("/").unwrap_or(&workdir);
    Some(traces(config)?.join(tenant(config).ok()?.file_name()).join(below))
}

/// Returns the location of the store.
pub(super) fn location(config: &Config) -> Result<&StoreLocation, Fault> {
    config.store.value.as_ref().ok_or_else(|| {
        Fault::configuration("there is no home directory for the store")
            .hint("name a store with `--store FILE|URL`")
    })
}
