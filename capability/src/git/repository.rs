//! What a repository must look like before `git` is let at it: nothing in it names a program, or a place outside of it.
//!
//! A run cannot write below `.git`, so what is checked here stays as it is while `git` works. What a stranger's repository brings along
//! is refused rather than mended.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

/// The most entries of the workdir that are looked at.
const ENTRIES: usize = 200_000;

/// What in a `.git` leads to another place.
const LEADS_AWAY: &[&str] =
    &["commondir", "gitdir", "config.worktree", "objects/info/alternates", "objects/info/http-alternates"];

/// The keys that the repository's own configuration may have: section, whether a subsection stands in between, names. None of them
/// names a program, a file, or a place that anything is sent to.
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

/// What the workdir is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// No repository, and not inside one.
    Absent,
    /// The top of a repository.
    Repository,
}

/// Looks at the workdir and at its `.git`.
///
/// # Errors
/// Why it is not committed.
pub(super) fn look(workdir: &Path) -> Result<State, String> {
    let unreadable = |cause: io::Error| format!("the workdir cannot be looked through: {cause}");
    let mut left = ENTRIES;
    no_nested(workdir, true, &mut left)?;
    let top = workdir.join(".git");
    let what = match std::fs::symlink_metadata(&top) {
        Ok(what) => what,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
            return match workdir.ancestors().skip(1).find(|above| above.join(".git").exists()) {
                None => Ok(State::Absent),
                Some(_) => {
                    Err("the workdir lies inside a repository; the operator sets `root` to that one's top".to_owned())
                }
            };
        }
        Err(cause) => return Err(unreadable(cause)),
    };
    if !what.is_dir() {
        return Err("`.git` is no folder: a linked worktree or a submodule is not committed from".to_owned());
    }
    if let Some(name) = LEADS_AWAY.iter().find(|name| std::fs::symlink_metadata(top.join(name)).is_ok()) {
        return Err(format!("`.git/{name}` leads to another repository; the operator removes it"));
    }
    plain(&top, &mut left)?;
    Ok(State::Repository)
}

/// Refuses anything in `.git` that is neither a file nor a folder.
fn plain(folder: &Path, left: &mut usize) -> Result<(), String> {
    each(folder, left, &mut |path, kind, left| {
        if kind.is_dir() {
            return plain(path, left);
        }
        match kind.is_file() {
            true => Ok(()),
            false => Err("the repository has a link or a device in its `.git`; the operator removes it".to_owned()),
        }
    })
}

/// Refuses repositories below the top: `git` would look into them, and follow what their own configuration says.
fn no_nested(folder: &Path, is_top: bool, left: &mut usize) -> Result<(), String> {
    each(folder, left, &mut |path, kind, left| {
        let is_git = path.file_name().and_then(OsStr::to_str).is_some_and(|name| name.eq_ignore_ascii_case(".git"));
        match is_git {
            true if is_top && path.ends_with(".git") => Ok(()),
            true => {
                Err("the workdir holds another repository, a folder with a `.git` in it; move it out first".to_owned())
            }
            false if kind.is_dir() => no_nested(path, false, left),
            false => Ok(()),
        }
    })
}

type Visit<'a> = &'a mut dyn FnMut(&Path, std::fs::FileType, &mut usize) -> Result<(), String>;

/// Visits the entries of a folder, links as themselves.
fn each(folder: &Path, left: &mut usize, visit: Visit<'_>) -> Result<(), String> {
    let unreadable = |cause: io::Error| format!("the workdir cannot be looked through: {cause}");
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        *left = left
            .checked_sub(1)
            .ok_or_else(|| format!("the workdir has more than {ENTRIES} entries; commit it by hand"))?;
        visit(&entry.path(), entry.file_type().map_err(unreadable)?, left)?;
    }
    Ok(())
}

/// The first key of a listing (names with a NUL behind each) that the repository's configuration may not have.
pub(super) fn forbidden(listing: &str) -> Option<&str> {
    listing.split('\0').map(str::trim).filter(|key| !key.is_empty()).find(|key| !is_allowed(key))
}

fn is_allowed(key: &str) -> bool {
    let Some((section, rest)) = key.split_once('.') else { return false };
    let (subsection, name) = match rest.rsplit_once('.') {
        Some((subsection, name)) => (Some(subsection), name),
        None => (None, rest),
    };
    let (section, name) = (section.to_ascii_lowercase(), name.to_ascii_lowercase());
    KEYS.iter()
        .any(|(own, below, names)| *own == section && *below == subsection.is_some() && names.contains(&name.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_could_run_or_lead_anywhere_are_refused() {
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
        assert_eq!(forbidden("core.bare\0filter.x.clean\0user.name\0"), Some("filter.x.clean"));
        assert_eq!(forbidden("core.bare\0user.name\0"), None);
    }
}
