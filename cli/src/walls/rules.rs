//! The rules: the files that a command may access.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use wattle_agent::host::capability::egress::Environment;
use wattle_agent::host::capability::git::find_git;
use wattle_agent::host::create_folder;

use super::Needs;
use crate::config::{BlobLocation, Config, Places, StoreLocation, TraceLocation};

/// The access that a command has to a file, or to a folder and everything in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    /// The path. If it is a link, the rule applies to the link's target.
    pub(crate) path: PathBuf,
    /// The allowed access.
    pub(crate) reach: Reach,
}

/// A kind of access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reach {
    /// Access to read files and list folders.
    Read,
    /// Access to read and execute files.
    Run,
    /// Access to read, write and control (`ioctl`) an existing device. It cannot be truncated or
    /// removed.
    Device,
    /// Access to read, write, create, move and remove files, but not to execute them.
    Write,
}

/// The system files that every command reads, for example for name resolution, certificates and
/// time zones.
const SYSTEM: &[&str] = &[
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/host.conf",
    "/etc/nsswitch.conf",
    "/etc/gai.conf",
    "/etc/services",
    "/etc/protocols",
    "/etc/passwd",
    "/etc/group",
    "/etc/localtime",
    "/etc/ld.so.cache",
    "/etc/ssl",
    "/etc/pki",
    "/etc/ca-certificates",
    "/etc/crypto-policies",
    "/usr/share/ca-certificates",
    "/usr/local/share/ca-certificates",
    "/usr/share/zoneinfo",
    "/usr/lib",
    "/usr/lib64",
    "/lib",
    "/lib64",
    "/run/systemd/resolve",
    "/run/NetworkManager/resolv.conf",
    "/run/resolvconf",
    "/proc/self",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/sys/kernel/random/boot_id",
    "/proc/sys/vm/overcommit_memory",
    "/sys/fs/cgroup",
    "/sys/devices/system/cpu",
];

/// The devices that every command may use.
const DEVICES: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
];

/// The folders with the executables of `git` and `ssh`.
const PROGRAMS: &[&str] = &["/usr", "/bin", "/lib", "/lib64"];

/// The search path for programs if the environment has no `PATH`.
pub(crate) const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The other files that `git` and `ssh` read.
const PROGRAMS_READ: &[&str] = &["/etc/ssh", "/etc/alternatives", "/etc/gnutls"];

/// Returns the rules for a command with these settings. Creates Wattle's own folders if they are
/// missing, because a rule needs an existing path.
pub(super) fn rules(config: &Config, needs: &Needs, places: &Places) -> Vec<Rule> {
    let mut rules = Rules::default();
    rules.add(Reach::Read, SYSTEM);
    rules.add(Reach::Read, Environment::of_process().certificate_paths());
    rules.add(Reach::Device, DEVICES);

    let workdir = if needs.workdir_stays { Reach::Read } else { Reach::Write };
    rules.add(workdir, [&config.root.value]);
    rules.add(Reach::Read, config.store.value.as_ref().and_then(StoreLocation::certificates));
    let store = config.store.value.as_ref().and_then(StoreLocation::folder);
    let store = store.map(|folder| folder_of(&folder.join("keys")));
    let blobs = config.blobs.value.as_ref().and_then(BlobLocation::folder).map(Path::to_owned);
    let traces = config.trace_dir.value.as_ref().and_then(TraceLocation::folder);
    let traces = traces.map(Path::to_owned);
    let pins = places.mcp.clone().filter(|_| !config.mcp.value.0.is_empty());
    let ours = [store, blobs, traces, pins, places.state.clone(), places.cache.clone()];
    for folder in ours.into_iter().flatten() {
        // If a folder cannot be created, the error is reported when the folder is used.
        drop(create_folder(&folder));
        rules.add(Reach::Write, [folder]);
    }
    rules.add(Reach::Read, places.user_file.as_deref().map(folder_of));
    let programs = if needs.saves_programs { Reach::Write } else { Reach::Read };
    rules.add(programs, &config.catalog.value);
    rules.add(Reach::Read, &config.agents.value);
    rules.add(Reach::Read, &config.cassette.value);
    rules.add(Reach::Read, &config.engine.value);
    rules.add(Reach::Read, &config.system.value);
    rules.add(Reach::Read, &needs.reads);
    let written = config.record.value.iter().chain(&needs.writes);
    rules.add(Reach::Write, written.map(|path| folder_of(path)));
    if needs.trusted {
        rules.trust(config);
    }
    rules.0
}

/// Returns the rules for a program that is not ours: those that are given, the system's files, and the
/// folder of the program.
pub(super) fn of_program(program: &str, given: Vec<Rule>) -> Vec<Rule> {
    let mut rules = Rules(given);
    rules.add(Reach::Read, SYSTEM);
    rules.add(Reach::Device, DEVICES);
    rules.add(Reach::Run, PROGRAMS);
    rules.add(Reach::Read, ["/etc", "/proc"]);
    rules.add(Reach::Write, [std::env::temp_dir()]);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).map(|folder| folder.join(program));
    let found = folders.chain([PathBuf::from(program)]).find(|path| path.is_file());
    let real = found.and_then(|path| path.canonicalize().ok());
    // A program outside of the system's folders has its libraries under the same prefix.
    let prefix = real.as_deref().and_then(Path::parent).and_then(Path::parent);
    rules.add(Reach::Run, prefix.filter(|prefix| prefix.parent().is_some()));
    rules.0
}

#[derive(Default)]
struct Rules(Vec<Rule>);

impl Rules {
    fn add(&mut self, reach: Reach, paths: impl IntoIterator<Item = impl Into<OsString>>) {
        let rule = |path: OsString| Rule { path: path.into(), reach };
        self.0.extend(paths.into_iter().map(|path| rule(path.into())));
    }

    /// Adds the rules for trusted runs. They allow access to `git`, its helper programs and keys,
    /// its temporary home, the remote if it is a folder, and the public folder.
    fn trust(&mut self, config: &Config) {
        self.add(Reach::Write, &config.publish_root.value);
        let Some(remote) = &config.git_remote.value else { return };
        let remote = remote.to_string();
        let remote = PathBuf::from(remote.strip_prefix("file://").unwrap_or(&remote));
        self.add(Reach::Write, Some(remote).filter(|remote| remote.is_absolute()));
        self.add(Reach::Write, [std::env::temp_dir()]);
        self.add(Reach::Run, PROGRAMS);
        self.add(Reach::Read, PROGRAMS_READ);
        self.add(Reach::Read, &config.git_ca_file.value);
        self.add(Reach::Read, &config.git_ssh_key.value);
        self.add(Reach::Read, &config.git_known_hosts.value);
        self.add(Reach::Read, std::env::home_dir().map(|home| home.join(".ssh")));
        let path = std::env::var_os("PATH").unwrap_or_else(|| OsString::from(USUAL_PATH));
        // A `git` outside of the folders in `PROGRAMS` has its programs under the same prefix:
        // `PREFIX/bin/git`, `PREFIX/libexec/git-core`.
        let git = find_git(&path).and_then(|git| git.canonicalize().ok());
        let prefix = git.as_deref().and_then(Path::parent).and_then(Path::parent);
        self.add(Reach::Run, prefix.filter(|prefix| prefix.parent().is_some()));
    }
}

fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Layer;

    fn paths(rules: &[Rule], reach: Reach) -> Vec<&str> {
        rules
            .iter()
            .filter(|rule| rule.reach == reach)
            .filter_map(|rule| rule.path.to_str())
            .collect()
    }

    #[test]
    fn a_command_reaches_what_its_settings_name() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let places = Places {
            user_file: Some(at("config/wattle.toml")),
            store: None,
            trust: Some(at("data/trust.json")),
            mcp: Some(at("data/mcp")),
            state: Some(at("state")),
            cache: Some(at("cache")),
        };
        let flags = Layer {
            root: Some(at("work")),
            store: Some(Some(StoreLocation::File(at("data/s.db")))),
            blobs: Some(Some(BlobLocation::Folder(at("blobs")))),
            catalog: Some(vec![at("tools")]),
            git_remote: Some(Some("/srv/site.git".parse().unwrap())),
            publish_root: Some(Some(at("public"))),
            ..Layer::default()
        };
        let config = crate::trust::gather(&[flags]).unwrap();
        let plain =
            rules(&config, &Needs { reads: vec![at("a.wat")], ..Needs::default() }, &places);
        let at = |name: &str| at(name).to_str().unwrap().to_owned();
        assert_eq!(
            paths(&plain, Reach::Write),
            [at("work"), at("data"), at("blobs"), at("state"), at("cache")]
        );
        assert!(paths(&plain, Reach::Run).is_empty());
        for read in ["tools", "config", "a.wat"] {
            assert!(paths(&plain, Reach::Read).contains(&&*at(read)), "{read}");
        }
        for hidden in
            ["/", "/etc", "/etc/shadow", "/home", "/root", "/proc", "/tmp", "/dev", "/usr"]
        {
            assert!(plain.iter().all(|rule| rule.path != Path::new(hidden)), "{hidden}");
        }
        let url = format!("postgres://db/x?sslrootcert={}", at("ca.pem"));
        let store = Some(Some(url.parse().unwrap()));
        let database = crate::trust::gather(&[Layer { store, ..Layer::default() }]).unwrap();
        let database = rules(&database, &Needs::default(), &places);
        assert!(paths(&database, Reach::Read).contains(&&*at("ca.pem")));
        let stays = rules(&config, &Needs { workdir_stays: true, ..Needs::default() }, &places);
        assert!(paths(&stays, Reach::Read).contains(&&*at("work")));
        let trusted = rules(&config, &Needs { trusted: true, ..Needs::default() }, &places);
        assert!(
            paths(&trusted, Reach::Write).contains(&"/srv/site.git")
                && paths(&trusted, Reach::Run).contains(&"/usr")
        );
        assert!(paths(&trusted, Reach::Write).contains(&&*at("public")));
    }
}
