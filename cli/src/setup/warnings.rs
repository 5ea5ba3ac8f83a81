//! What an operator should know about the settings, although the command works with them. `serve`
//! logs these warnings when it starts, and `doctor` shows them.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use wattle_agent::host::catalog::nearest_name;

use super::store::traces;
use super::{keys_folder, variable};
use crate::broker::DEPTH;
use crate::config::{BlobLocation, Config, StoreLocation, VARIABLES};

/// The environment variable that contains the operator's API token.
pub(crate) const TOKEN_VARIABLE: &str = "WATTLE_TOKEN";
/// The environment variable that allows clients to request trusted runs.
pub(crate) const EXEC_VARIABLE: &str = "WATTLE_AGENT_EXEC";
/// Minimum length of a token that nobody can guess, in characters.
pub(crate) const LONG_TOKEN: usize = 16;
/// Minimum free space on the disk of the store and of the traces, in bytes.
const FREE: u64 = 256 << 20;

/// Returns the warnings about the settings and the environment.
pub(crate) fn warnings(config: &Config) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(token) = variable(TOKEN_VARIABLE)
        && (1..LONG_TOKEN).contains(&token.trim().len())
    {
        found.push(format!(
            "the token in `{TOKEN_VARIABLE}` has {} characters, which can be guessed: use one of \
             `openssl rand -hex 32`",
            token.trim().len()
        ));
    }
    found.extend(unknown_variables(config));
    let root = &config.root.value;
    let is_home = |home: PathBuf| home.canonicalize().ok() == root.canonicalize().ok();
    if std::env::home_dir().is_some_and(is_home) {
        found.push(
            "the workdir is your home folder, which runs can read: name another folder with \
             `--root DIR`"
                .to_owned(),
        );
    }
    let mut folders = vec![root.clone()];
    folders.extend(config.catalog.value.iter().chain(&config.agents.value).cloned());
    folders.extend(keys_folder(config));
    folders.extend(traces(config));
    folders.extend(config.blobs.value.as_ref().and_then(BlobLocation::folder).map(Path::to_owned));
    folders.extend(config.publish_root.value.clone());
    folders.dedup();
    found.extend(folders.iter().filter_map(|folder| open_to_others(folder)));
    let store = config.store.value.as_ref();
    let disks = [store.and_then(StoreLocation::folder), traces(config)];
    let mut full: Vec<String> =
        disks.iter().flatten().filter_map(|disk| almost_full(disk)).collect();
    full.dedup();
    found.extend(full);
    if store.is_some_and(StoreLocation::is_pooled) {
        found.push(
            "the store is behind a pooler by transaction: replicas find each other's changes by \
             polling, which delays followers; a direct connection or a pooler by session does not"
                .to_owned(),
        );
    }
    found
}

/// Returns a warning for each environment variable whose name begins like a setting but is none.
fn unknown_variables(config: &Config) -> Vec<String> {
    let mut known = [VARIABLES, &[TOKEN_VARIABLE, EXEC_VARIABLE, DEPTH]].concat();
    let models = config.models.value.0.values().map(|class| &class.api_key_env);
    let named = [&config.api_key_env, &config.image_api_key_env, &config.git_token_env]
        .map(|key| &key.value);
    known.extend(models.chain(named).filter_map(|name| name.as_deref()));
    known.push(&config.search_key_env.value);
    known.extend(config.secrets.value.0.iter().map(|secret| secret.variable.as_str()));
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let mut unknown: Vec<String> = names
        .filter(|name| name.starts_with("WATTLE_") && !known.contains(&name.as_str()))
        .filter(|name| !name.starts_with("WATTLE_TEST_"))
        .collect();
    unknown.sort();
    let warning = |name: String| match nearest_name(&name, known.iter().copied()) {
        Some(nearest) => {
            format!("the variable `{name}` is no setting; did you mean `{nearest}`?")
        }
        None => format!("the variable `{name}` is no setting"),
    };
    unknown.into_iter().map(warning).collect()
}

/// Returns a warning if every user can write to the folder.
fn open_to_others(folder: &Path) -> Option<String> {
    let mode = std::fs::metadata(folder).ok()?.mode();
    (mode & 0o002 != 0).then(|| {
        let shown = folder.display();
        format!(
            "every user can write to `{shown}` (mode {:03o}): `chmod o-w {shown}`",
            mode & 0o7777
        )
    })
}

/// Returns a warning if the disk of the folder has little free space.
fn almost_full(folder: &Path) -> Option<String> {
    let disk = rustix::fs::statvfs(folder).ok()?;
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    (free < FREE).then(|| {
        format!("the disk of `{}` has {} MiB left: free some space", folder.display(), free >> 20)
    })
}
