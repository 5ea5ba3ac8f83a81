//! The operator's remote and branch, validated so that `git` cannot mistake them for an option or a
//! program.

use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use url::Url;
use wattle_rt::truncate;

/// A remote to push to: a folder on this machine, or a repository over https, http or ssh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remote {
    text: String,
    protocol: &'static str,
}

/// The error returned if the location, the branch or a file of a remote is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RemoteError(String);

fn wrong<T>(why: impl Into<String>) -> Result<T, RemoteError> {
    Err(RemoteError(why.into()))
}

/// A hint for error messages that lists the accepted forms of a remote.
const FORMS: &str =
    "give an absolute path, a URL with `https://`, `ssh://` or `file://`, or `user@host:path`";

impl FromStr for Remote {
    type Err = RemoteError;

    fn from_str(text: &str) -> Result<Self, RemoteError> {
        let text = text.trim();
        if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return wrong(format!(
                "a remote must not contain whitespace or control characters; {FORMS}"
            ));
        }
        let protocol = if text.contains("://") {
            of_url(text)?
        } else if text.starts_with('/') && !text.contains("::") {
            "file"
        } else if is_scp_like(text) {
            "ssh"
        } else {
            return wrong(format!("`{}` is not a remote; {FORMS}", clip(text)));
        };
        Ok(Remote { text: text.to_owned(), protocol })
    }
}

fn of_url(text: &str) -> Result<&'static str, RemoteError> {
    let url = Url::parse(text)
        .or_else(|why| wrong(format!("the remote is not a URL: {why}; {FORMS}")))?;
    let protocol = match url.scheme() {
        "https" => "https",
        "http" => "http",
        "ssh" => "ssh",
        "file" => "file",
        other => return wrong(format!("the scheme `{}` is not supported; {FORMS}", clip(other))),
    };
    if url.password().is_some() || (protocol.starts_with("http") && !url.username().is_empty()) {
        return wrong(
            "the remote contains a user name or password; put the token into a variable, and set \
             `git.token_env` to its name",
        );
    }
    let host = url.host_str().unwrap_or_default();
    if host.starts_with('-') || url.username().starts_with('-') {
        return wrong("the remote's host or user starts with `-`");
    }
    if protocol == "file" && !host.is_empty() {
        return wrong(
            "the remote is a folder of another machine; `file:///` starts the path of a local \
             folder",
        );
    }
    if protocol != "file" && host.is_empty() {
        return wrong(format!("the remote has no host; {FORMS}"));
    }
    Ok(protocol)
}

/// Returns true if the text has the form `user@host:path` and all its characters are safe for a
/// shell and an option parser.
fn is_scp_like(text: &str) -> bool {
    let plain = |part: &str, more: &str| {
        !part.is_empty()
            && !part.starts_with('-')
            && part.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c))
    };
    let Some((user, rest)) = text.split_once('@') else { return false };
    let Some((host, path)) = rest.split_once(':') else { return false };
    plain(user, "._-") && plain(host, ".-") && plain(path, "._-/~")
}

impl Remote {
    /// Returns the string to pass to `git`.
    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the only protocol that `git` may use for this remote.
    pub(super) fn protocol(&self) -> &'static str {
        self.protocol
    }

    /// Returns the local folder, or `None` if the remote is on another machine.
    pub(super) fn folder(&self) -> Option<PathBuf> {
        match (self.protocol, Url::parse(&self.text)) {
            ("file", Ok(url)) => url.to_file_path().ok(),
            ("file", Err(_)) => Some(Path::new(&self.text).to_owned()),
            _ => None,
        }
    }
}

impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The operator's files for verifying a remote and authenticating to it. If a file is not set, the
/// system's or the user's file is used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemoteFiles {
    ca: Option<PathBuf>,
    ssh_key: Option<PathBuf>,
    known_hosts: Option<PathBuf>,
}

impl RemoteFiles {
    /// Validates and stores the paths of the operator's files: the CA certificates for https, and
    /// the private key and the known hosts for ssh.
    ///
    /// # Errors
    /// If a file is missing, or if its path is relative or contains a character that is special to
    /// `ssh`.
    pub fn new(
        ca: Option<PathBuf>,
        ssh_key: Option<PathBuf>,
        known_hosts: Option<PathBuf>,
    ) -> Result<RemoteFiles, RemoteError> {
        for (path, setting) in
            [(&ca, "git.ca_file"), (&ssh_key, "git.ssh_key"), (&known_hosts, "git.known_hosts")]
        {
            let Some(path) = path else { continue };
            let plain = path
                .to_str()
                .filter(|text| !text.chars().any(|c| c.is_control() || "\"'\\%$`~".contains(c)));
            if plain.is_none() || !path.is_absolute() {
                return wrong(format!(
                    "`{setting}`: the path is relative or has a character that is not allowed; \
                     use a plain absolute path"
                ));
            }
            if !path.is_file() {
                return wrong(format!("`{setting}`: no such file `{}`", path.display()));
            }
        }
        Ok(RemoteFiles { ca, ssh_key, known_hosts })
    }

    /// Returns the path of the operator's CA certificates for https, or `None` if the operator set
    /// none.
    pub(super) fn ca(&self) -> Option<&str> {
        self.ca.as_deref().and_then(Path::to_str)
    }

    /// Returns the `ssh` command for `git`. The command never prompts, reads no configuration file,
    /// and rejects hosts with unknown keys.
    pub(super) fn ssh_command(&self) -> String {
        let mut command = "ssh -F /dev/null -o BatchMode=yes -o ConnectTimeout=20 -o \
                           StrictHostKeyChecking=yes"
            .to_owned();
        if let Some(key) = &self.ssh_key {
            let _ = write!(
                command,
                " -o IdentitiesOnly=yes -o IdentityAgent=none -o 'IdentityFile=\"{}\"'",
                key.display()
            );
        }
        if let Some(file) = &self.known_hosts {
            let _ = write!(
                command,
                " -o GlobalKnownHostsFile=/dev/null -o UpdateHostKeys=no -o \
                 'UserKnownHostsFile=\"{}\"'",
                file.display()
            );
        }
        command
    }
}

/// The name of a branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch(String);

impl Default for Branch {
    /// Returns `main`.
    fn default() -> Self {
        Branch("main".to_owned())
    }
}

impl FromStr for Branch {
    type Err = RemoteError;

    fn from_str(text: &str) -> Result<Self, RemoteError> {
        let text = text.trim();
        let plain = |part: &str| {
            !part.is_empty()
                && !part.starts_with(['.', '-'])
                && !part.ends_with('.')
                && !part.ends_with(".lock")
                && !part.contains("..")
                && part.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
        };
        if text.len() <= 200 && text.split('/').all(plain) && text != "HEAD" {
            return Ok(Branch(text.to_owned()));
        }
        wrong(format!(
            "`{}` is not a branch name; use letters, digits, `.`, `_`, `-` and `/`, as in `main`",
            clip(text)
        ))
    }
}

impl fmt::Display for Branch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Prepares a string for a message: truncates it and removes control characters.
fn clip(text: &str) -> String {
    truncate(text, 80).chars().filter(|c| !c.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remotes_are_locations_and_never_programs_or_options() {
        for (text, protocol) in [
            ("/srv/git/site.git", "file"),
            ("file:///srv/git/site.git", "file"),
            ("https://example.com/a/b.git", "https"),
            ("http://127.0.0.1:3000/a.git", "http"),
            ("ssh://git@example.com:2222/a.git", "ssh"),
            ("git@example.com:a/b.git", "ssh"),
        ] {
            let remote: Remote = text.parse().unwrap();
            assert_eq!((remote.protocol(), remote.as_str()), (protocol, text));
            assert_eq!(remote.folder().is_some(), protocol == "file", "{text}");
        }
        for (text, words) in [
            ("", "is not a remote"),
            ("site.git", "is not a remote"),
            ("../site.git", "is not a remote"),
            ("--upload-pack=touch /tmp/x", "must not contain"),
            ("--receive-pack=evil", "is not a remote"),
            ("ext::sh", "is not a remote"),
            ("/tmp/a::b", "is not a remote"),
            ("ext::sh://x", "is not supported"),
            ("git://example.com/a.git", "is not supported"),
            ("ftp://example.com/a.git", "is not supported"),
            ("https://me@example.com/a.git", "git.token_env"),
            ("https://me:token@example.com/a.git", "git.token_env"),
            ("ssh://git:word@example.com/a.git", "git.token_env"),
            ("ssh://-oProxyCommand=evil/a.git", "remote"),
            ("ssh://-o@example.com/a.git", "starts with `-`"),
            ("-oProxyCommand=evil@host:a", "is not a remote"),
            ("git@-oProxyCommand:a", "is not a remote"),
            ("git@host:$(evil)", "is not a remote"),
            ("file://elsewhere/a.git", "another machine"),
            ("/srv/a\n/b", "must not contain"),
        ] {
            let why = text.parse::<Remote>().unwrap_err().to_string();
            assert!(why.contains(words) && !why.contains("token@"), "{text}: {why}");
        }
    }

    #[test]
    fn files_of_a_remote_are_plain_paths_that_exist() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, "").unwrap();
            Some(path)
        };
        let files = RemoteFiles::new(file("ca.pem"), file("a key"), file("known")).unwrap();
        let ssh = files.ssh_command();
        assert!(
            ssh.contains("IdentitiesOnly=yes")
                && ssh.ends_with("/known\"'")
                && ssh.contains("/a key\"'"),
            "{ssh}"
        );
        assert!(!RemoteFiles::default().ssh_command().contains("Identity"));
        for (name, words) in [
            ("a'b", "not allowed"),
            ("a\"b", "not allowed"),
            ("a%h", "not allowed"),
            ("$(x)", "not allowed"),
        ] {
            let why = RemoteFiles::new(None, file(name), None).unwrap_err().to_string();
            assert!(why.contains(words) && why.contains("git.ssh_key"), "{why}");
        }
        for path in [folder.path().join("missing"), "relative".into(), folder.path().into()] {
            assert!(RemoteFiles::new(None, None, Some(path.clone())).is_err(), "{path:?}");
        }
    }

    #[test]
    fn branches_are_plain_names() {
        for text in ["main", "wattle/run-1", "v1.2"] {
            assert_eq!(text.parse::<Branch>().unwrap().to_string(), text);
        }
        for text in [
            "", "-f", "+main", "a..b", "a b", "a:b", "refs//x", "/a", "a/", ".a", "a.lock", "HEAD",
            "a~1", "a^", "@{u}",
        ] {
            let refused = text.parse::<Branch>();
            assert!(refused.is_err(), "{text}");
        }
        assert!(":main".parse::<Branch>().is_err());
    }
}
