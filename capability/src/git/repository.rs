//! Safety checks on a repository before `git` uses it: nothing in the repository may refer to a
//! program, or to a location outside the repository.
//!
//! A run cannot write to `.git`, so the state cannot change between the check and the end of the
//! call. An unsafe repository is rejected, not repaired.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

/// Maximum number of entries in the workdir.
const MAX_ENTRIES: usize = 200_000;

/// Files in `.git` that redirect `git` to another location.
const REDIRECTS: &[&str] = &[
    "commondir",
    "gitdir",
    "config.worktree",
    "objects/info/alternates",
    "objects/info/http-alternates",
];

/// The allowed keys of the repository's configuration. Each entry contains a section, a flag that
/// is true if the section has subsections, and the names of the keys. No key refers to a program or
/// a file, or controls where data is sent.
const KEYS: &[(&str, bool, &[&str])] = &[
    (
        "core",
        false,
        &[
            "repositoryformatversion",
            "filemode",
            "bare",
            "logallrefupdates",
            "ignorecase",
            "precomposeunicode",
            "symlinks",
            "autocrlf",
            "safecrlf",
            "eol",
            "quotepath",
        ],
    ),
    ("extensions", false, &["objectformat", "refstorage"]),
    ("user", false, &["name", "email"]),
    ("init", false, &["defaultbranch"]),
    ("gc", false, &["auto"]),
    ("pull", false, &["rebase", "ff"]),
    ("push", false, &["default", "autosetupremote"]),
    ("remote", true, &["url", "fetch"]),
    ("branch", true, &["remote", "merge", "rebase"]),
];

/// The allowed values of `extensions.refStorage`. Other values can contain a location.
const REF_FORMATS: &[&str] = &["files", "reftable"];

/// The state of the workdir.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The workdir is neither a repository nor inside one.
    Absent,
    /// The workdir is the root of a repository.
    Repository,
}

/// Inspects the workdir and its `.git`.
///
/// # Errors
/// If the workdir is not safe to commit. The error states the reason.
pub(super) fn inspect(workdir: &Path) -> Result<State, String> {
    let unreadable = |cause: io::Error| format!("failed to read the workdir: {cause}");
    let mut left = MAX_ENTRIES;
    no_nested(workdir, true, &mut left)?;
    let top = workdir.join(".git");
    let metadata = match std::fs::symlink_metadata(&top) {
        Ok(metadata) => metadata,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
            return match workdir.ancestors().skip(1).find(|above| above.join(".git").exists()) {
                None => Ok(State::Absent),
                Some(_) => Err("the workdir is inside a repository; the operator sets `root` to \
                                that repository's top"
                    .to_owned()),
            };
        }
        Err(cause) => return Err(unreadable(cause)),
    };
    if !metadata.is_dir() {
        return Err(
            "`.git` is not a folder: linked worktrees and submodules are not supported".to_owned()
        );
    }
    if let Some(name) =
        REDIRECTS.iter().find(|name| std::fs::symlink_metadata(top.join(name)).is_ok())
    {
        return Err(format!("`.git/{name}` refers to another repository; the operator removes it"));
    }
    plain(&top, &mut left)?;
    Ok(State::Repository)
}

/// Rejects any entry in `.git` that is neither a file nor a folder.
fn plain(folder: &Path, left: &mut usize) -> Result<(), String> {
    each(folder, left, &mut |path, kind, left| {
        if kind.is_dir() {
            return plain(path, left);
        }
        if kind.is_file() {
            return Ok(());
        }
        Err("the repository has a link or a device in its `.git`; the operator removes it"
            .to_owned())
    })
}

/// Rejects nested repositories, because `git` would apply their configuration.
fn no_nested(folder: &Path, is_top: bool, left: &mut usize) -> Result<(), String> {
    each(folder, left, &mut |path, kind, left| {
        let is_git = path
            .file_name()
            .and_then(OsStr::to_str)
            .is_some_and(|name| name.eq_ignore_ascii_case(".git"));
        if is_git && !(is_top && path.ends_with(".git")) {
            return Err("the workdir contains another repository, a folder with a `.git` in it; \
                        move it away first"
                .to_owned());
        }
        if kind.is_dir() && !is_git { no_nested(path, false, left) } else { Ok(()) }
    })
}

type Visit<'a> = &'a mut dyn FnMut(&Path, std::fs::FileType, &mut usize) -> Result<(), String>;

/// Visits the direct entries of a folder, without following links. `left` is the number of entries
/// that may still be visited.
fn each(folder: &Path, left: &mut usize, visit: Visit<'_>) -> Result<(), String> {
    let unreadable = |cause: io::Error| format!("failed to read the workdir: {cause}");
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        *left = left.checked_sub(1).ok_or_else(|| {
            format!("the workdir has more than {MAX_ENTRIES} entries; commit it by hand")
        })?;
        visit(&entry.path(), entry.file_type().map_err(unreadable)?, left)?;
    }
    Ok(())
}

/// Searches a configuration in the format of `git config --list -z`. Each setting is a key,
/// optionally followed by a line break and a value, and ends with NUL. Returns the first key that
/// [`KEYS`] does not allow or whose value refers to a location. Returns `None` if everything is
/// allowed.
pub(super) fn forbidden(listing: &str) -> Option<&str> {
    listing.split_terminator('\0').find_map(|setting| {
        let (key, value) = setting.split_once('\n').unwrap_or((setting, ""));
        (!is_allowed(key) || refers_to_location(key, value)).then_some(key)
    })
}

/// Returns true if a setting makes `git` keep the repository's refs in another location.
fn refers_to_location(key: &str, value: &str) -> bool {
    key.eq_ignore_ascii_case("extensions.refstorage") && !REF_FORMATS.contains(&value)
}

fn is_allowed(key: &str) -> bool {
    let Some((section, rest)) = key.split_once('.') else { return false };
    let (subsection, name) = match rest.rsplit_once('.') {
        Some((subsection, name)) => (Some(subsection), name),
        None => (None, rest),
    };
    let (section, name) = (section.to_ascii_lowercase(), name.to_ascii_lowercase());
    KEYS.iter().any(|(own, nested, names)| {
        *own == section && *nested == subsection.is_some() && names.contains(&name.as_str())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_could_run_or_redirect_anything_are_rejected() {
        for key in [
            "core.filemode",
            "core.repositoryformatversion",
            "remote.origin.url",
            "remote.a.b.c.fetch",
            "branch.feature/x.merge",
            "user.email",
        ] {
            assert!(is_allowed(key), "{key}");
        }
        for key in [
            "core.fsmonitor",
            "core.sshcommand",
            "core.hookspath",
            "core.pager",
            "core.editor",
            "core.worktree",
            "core.gitproxy",
            "core.askpass",
            "core.attributesfile",
            "core.alternaterefscommand",
            "core.x.filemode",
            "gpg.program",
            "gpg.ssh.program",
            "commit.gpgsign",
            "credential.helper",
            "credential.https://example.com.helper",
            "diff.external",
            "diff.evil.command",
            "diff.evil.textconv",
            "filter.evil.clean",
            "filter.evil.process",
            "merge.evil.driver",
            "include.path",
            "includeif.gitdir:/.path",
            "alias.push",
            "url.https://evil.example/.insteadof",
            "url.https://evil.example/.pushinsteadof",
            "remote.origin.pushurl",
            "remote.origin.receivepack",
            "remote.origin.uploadpack",
            "remote.origin.proxy",
            "remote.origin.vcs",
            "remote.origin.promisor",
            "remote.url",
            "submodule.a.url",
            "submodule.a.update",
            "http.proxy",
            "http.sslverify",
            "http.extraheader",
            "protocol.ext.allow",
            "extensions.worktreeconfig",
            "extensions.partialclone",
            "uploadpack.packobjectshook",
            "trailer.x.command",
            "user.signingkey",
            "nosection",
            "",
        ] {
            assert!(!is_allowed(key), "{key}");
        }
        let listing = "core.bare\nfalse\0filter.x.clean\nsh\0user.name\nAda\0";
        assert_eq!(forbidden(listing), Some("filter.x.clean"));
        assert_eq!(forbidden("core.bare\0user.name\nAda\nfilter.x.clean\0"), None);
        assert_eq!(forbidden(""), None);
    }

    #[test]
    fn refs_are_kept_in_the_repository() {
        for value in ["files", "reftable"] {
            assert_eq!(forbidden(&format!("extensions.refstorage\n{value}\0")), None);
        }
        for value in ["files:///home/ada/refs", "reftable:/tmp/x", ""] {
            let listing = format!("extensions.refstorage\n{value}\0");
            assert_eq!(forbidden(&listing), Some("extensions.refstorage"), "{value}");
        }
    }
}
