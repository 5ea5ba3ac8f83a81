//! The additional capabilities of a trusted run, and the secrets that a program's HTTP requests may
//! refer to.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use wattle_agent::host::LazySecrets;
use wattle_agent::host::Trusted;
use wattle_agent::host::capability::egress::{Egress, Url};
use wattle_agent::host::capability::files::Files;
use wattle_agent::host::capability::git::{
    Author, Broker, NoRepository, PushTo, RemoteFiles, Repository, find_git,
};
use wattle_agent::host::capability::image::{Endpoint, ImageGenerator};
use wattle_agent::host::capability::secrets::{ApiKey, Secret, SecretChain, SecretList, Secrets};

use crate::api_keys::variable;
use crate::config::{Config, SecretEntry};
use crate::fault::Fault;
use crate::output;
use crate::walls::USUAL_PATH;

/// Returns the additional capabilities of a trusted run in this workdir. If a capability's settings
/// are missing, programs that use the capability fail with an error.
///
/// # Errors
/// If a setting cannot be used, for example because the public folder does not exist or a key's
/// environment variable is not set.
pub(crate) fn trusted(
    config: &Config,
    workdir: &Path,
    tenant: &str,
    egress: &Egress,
) -> Result<Trusted, Fault> {
    Ok(Trusted {
        repository: repository(config, workdir, tenant)?,
        public: public(config)?,
        image_generator: image_generator(config, egress)?,
    })
}

fn repository(config: &Config, workdir: &Path, tenant: &str) -> Result<Arc<dyn Repository>, Fault> {
    let Some(remote) = config.git_remote.value.clone() else {
        return Ok(Arc::new(NoRepository::no_remote()));
    };
    let token = key(config.git_token_env.value.as_deref(), "git.token_env")?;
    let file = |path: &Option<PathBuf>, setting: &str| {
        let absolute = path.as_deref().map(std::path::absolute).transpose();
        absolute.map_err(|why| Fault::configuration(format!("`{setting}`: {why}")))
    };
    let files = RemoteFiles::new(
        file(&config.git_ca_file.value, "git.ca_file")?,
        file(&config.git_ssh_key.value, "git.ssh_key")?,
        file(&config.git_known_hosts.value, "git.known_hosts")?,
    );
    let files = files.map_err(Fault::configuration)?;
    let to = PushTo { remote, branch: config.git_branch.value.clone(), token, files };
    let author = Author::of(tenant, config.git_author_email.value.as_deref());
    let path = std::env::var_os("PATH").unwrap_or_else(|| USUAL_PATH.into());
    let Some(git) = find_git(&path) else {
        return Ok(Arc::new(NoRepository(
            "there is no `git` on this machine; the operator installs it".to_owned(),
        )));
    };
    Ok(match Broker::new(git, workdir, to, author) {
        Ok(broker) => Arc::new(broker.excluding(&super::host_files(config))),
        Err(missing) => Arc::new(missing),
    })
}

fn public(config: &Config) -> Result<Option<Arc<Files>>, Fault> {
    let Some(root) = &config.publish_root.value else { return Ok(None) };
    let host = super::host_files(config);
    let base = Files::open_protected_base(root, host).map_err(|error| {
        Fault::configuration(format!("`publish.root`: {error}")).hint("make the folder first")
    })?;
    Ok(Some(Arc::new(Files::write_through(base))))
}

fn image_generator(
    config: &Config,
    egress: &Egress,
) -> Result<Option<Arc<dyn ImageGenerator>>, Fault> {
    let Some(base) = &config.image_base_url.value else { return Ok(None) };
    let wrong = |why: String| Fault::configuration(format!("`image.base_url`: {why}"));
    let url = Url::parse(base.trim()).map_err(|why| wrong(why.to_string()))?;
    let key = key(config.image_api_key_env.value.as_deref(), "image.api_key_env")?;
    let endpoint = Endpoint::new(egress, &url, config.image_model.value.clone(), key);
    Ok(Some(Arc::new(endpoint.map_err(|error| wrong(error.to_string()))?)))
}

/// Reads a key from the environment variable `name` and masks the key in everything that the
/// process records. `setting` is the key of the setting that names the variable. Returns `None` if
/// `name` is `None`.
pub(crate) fn key(name: Option<&str>, setting: &str) -> Result<Option<ApiKey>, Fault> {
    let Some(name) = name else { return Ok(None) };
    let Some(value) = variable(name).filter(|value| !value.trim().is_empty()) else {
        return Err(Fault::configuration(format!(
            "the variable `{name}`, which `{setting}` names, is not set"
        )));
    };
    let key = ApiKey::new(&value).ok_or_else(|| {
        let why = "does not contain a valid key: it has spaces or special characters";
        Fault::configuration(format!("the variable `{name}`, which `{setting}` names, {why}"))
    })?;
    super::mask_key(&key, name);
    Ok(Some(key))
}

/// Returns the secrets that a program's HTTP requests may refer to: first those in the settings,
/// then those in the store, which is opened on first use. If a secret's environment variable is not
/// set, using the secret fails.
///
/// # Errors
/// If an environment variable's value cannot be a secret.
pub(crate) fn secrets(config: &Config) -> Result<Arc<dyn Secrets>, Fault> {
    let entries = &config.secrets.value.0;
    let entry = |SecretEntry { name, variable: from, hosts, .. }: &SecretEntry| {
        let Some(value) = variable(from) else {
            let why = format!("the variable `{from}`, which holds the secret `{name}`, is not set");
            return Ok((name.clone(), Err(why)));
        };
        let secret = Secret::new(name, &value, hosts.clone()).map_err(|why| {
            Fault::configuration(format!(
                "the variable `{from}`, which holds the secret `{name}`: {why}"
            ))
        })?;
        Ok((name.clone(), Ok(secret)))
    };
    let entries = entries.iter().map(entry).collect::<Result<Vec<_>, Fault>>()?;
    output::mask().add_secrets(entries.iter().filter_map(|(_, secret)| secret.as_ref().ok()));
    let listed: Arc<dyn Secrets> = Arc::new(SecretList::new(entries));
    let (config, at_look) = (config.clone(), config.clone());
    let stored = LazySecrets::new(
        move || super::may_have_secrets(&at_look),
        move || super::stored_secrets(&config).map_err(|fault| fault.to_string()),
    );
    Ok(Arc::new(SecretChain(vec![listed, Arc::new(stored)])))
}
