//! Tests of pushes over ssh. `sshd` runs as the user of the tests, with keys that the tests create.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use wattle_capability::git::RemoteFiles;

use super::place::{Place, git, needed, program};

/// A running `sshd`, which is killed on drop.
struct Sshd {
    child: Child,
    port: u16,
    user: String,
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn keygen(path: &Path) {
    let done = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(path)
        .status()
        .unwrap();
    assert!(done.success());
}

impl Sshd {
    /// Starts a server that has the host key `host` and accepts the user key `user`.
    fn start(place: &Place, sshd: &Path) -> Sshd {
        for key in ["user", "host", "stranger"] {
            keygen(&place.path(key));
        }
        std::fs::copy(place.path("user.pub"), place.path("authorized")).unwrap();
        // Only a server that is started by root needs this folder.
        let _ = std::fs::create_dir_all("/run/sshd");
        let port =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        let at = |name: &str| place.path(name).display().to_string();
        let settings = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nAuthorizedKeysFile {}\nPidFile \
             none\nStrictModes no\nUsePAM no\nPermitRootLogin yes\nPasswordAuthentication \
             no\nKbdInteractiveAuthentication no\n",
            at("host"),
            at("authorized")
        );
        let settings = place.write("sshd_config", &settings);
        let mut command = Command::new(sshd);
        command
            .arg("-D")
            .arg("-e")
            .arg("-f")
            .arg(settings)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command.stderr(std::fs::File::create(place.path("sshd.log")).unwrap());
        let child = command.spawn().unwrap();
        let user =
            String::from_utf8(Command::new("id").arg("-un").output().unwrap().stdout).unwrap();
        let server = Sshd { child, port, user: user.trim().to_owned() };
        let started = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            let log = std::fs::read_to_string(place.path("sshd.log")).unwrap_or_default();
            assert!(started.elapsed() < Duration::from_secs(30), "sshd does not listen: {log}");
            std::thread::sleep(Duration::from_millis(50));
        }
        server
    }

    fn url(&self, place: &Place) -> String {
        format!("ssh://{}@127.0.0.1:{}{}", self.user, self.port, place.path("site.git").display())
    }
}

/// Returns a line for a `known_hosts` file.
fn known(place: &Place, port: u16, key: &str) -> String {
    let public = std::fs::read_to_string(place.path(&format!("{key}.pub"))).unwrap();
    format!("[127.0.0.1]:{port} {public}")
}

fn ready() -> Option<PathBuf> {
    needed(git(), "git")?;
    needed(program("ssh-keygen"), "ssh-keygen")?;
    needed(program("ssh"), "ssh")?;
    needed(program("sshd"), "sshd")
}

#[tokio::test]
async fn a_push_over_ssh_needs_the_right_key_and_a_known_host() {
    let Some(sshd) = ready() else { return };
    let place = Place::new();
    let server = Sshd::start(&place, &sshd);
    let files = |key: &str, hosts: &str| {
        let hosts = place.write("known hosts", hosts);
        RemoteFiles::new(None, Some(place.path(key)), Some(hosts)).unwrap()
    };
    let right = known(&place, server.port, "host");
    let other_port = known(&place, server.port ^ 1, "host");
    let other_key = known(&place, server.port, "stranger");
    std::fs::copy(place.path("user"), place.path("open")).unwrap();
    std::fs::set_permissions(place.path("open"), PermissionsExt::from_mode(0o644)).unwrap();
    place.write("no key", "nothing");
    for (key, hosts, words) in [
        ("stranger", right.as_str(), "with `git.ssh_key`"),
        ("open", &right, "with `git.ssh_key`"),
        ("no key", &right, "with `git.ssh_key`"),
        ("user", &other_key, "with `git.known_hosts`"),
        ("user", &other_port, "with `git.known_hosts`"),
        ("user", "", "with `git.known_hosts`"),
    ] {
        place.refused(&server.url(&place), None, files(key, hosts), words).await;
    }
    let output = place.push(&server.url(&place), None, files("user", &right)).await.unwrap();
    assert_eq!(output, "nothing to commit; pushed the earlier commits to main");
    assert_eq!(place.pushed(), ["a.txt"]);
}
