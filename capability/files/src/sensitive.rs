//! Files that are dangerous by their names: those that run or authorize something, and those that
//! hold secrets. `sensitive.txt` lists them.

use std::sync::LazyLock;

use crate::git_names::plain;

/// The list of sensitive files.
const TABLE: &str = include_str!("sensitive.txt");

/// A kind of sensitive files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sensitivity {
    /// Files that run or authorize something once they are in a real folder, such as start files of
    /// shells, workflows, instructions of agents and build files.
    Protected,
    /// Files that hold secrets, such as keys and `.env`.
    Private,
}

/// A sensitive file, or a file in a sensitive folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sensitive {
    /// A noun phrase that says what the file is, such as `a build file`.
    pub what: &'static str,
    /// Number of the names of the path up to the sensitive file or folder.
    pub depth: usize,
}

/// A row of the table.
struct Row {
    /// `None` for files that are not private although a later row matches them.
    class: Option<Sensitivity>,
    /// The patterns of the last names of a path, in lower case.
    names: Vec<String>,
    what: &'static str,
}

static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| TABLE.lines().filter_map(row).collect());

fn row(line: &'static str) -> Option<Row> {
    let mut fields = line.split(" | ");
    let (class, pattern, what) = (fields.next()?, fields.next()?, fields.next()?);
    let class = match class {
        "protected" => Some(Sensitivity::Protected),
        "private" => Some(Sensitivity::Private),
        _ => None,
    };
    let names = pattern.split('/').map(str::to_ascii_lowercase).collect();
    Some(Row { class, names, what })
}

/// Finds out whether a path is sensitive in the given way. `names` are the names of the path, from
/// the root. If `whole` is true, everything below the path is meant, too: a hidden folder is also
/// sensitive if only some of the entries below it can be.
///
/// Names are compared in the spelling of the most tolerant file system, so letter case does not
/// matter.
///
/// ```
/// use wattle_files::{Sensitivity, sensitive};
/// let is = |class, path: &str| {
///     sensitive(class, &path.split('/').collect::<Vec<_>>(), false).is_some()
/// };
/// assert!(is(Sensitivity::Private, "site/.ENV.local"));
/// assert!(!is(Sensitivity::Private, "site/.env.example"));
/// assert!(is(Sensitivity::Protected, ".github/workflows/ci/test.yml"));
/// assert!(!is(Sensitivity::Protected, "src/main.rs"));
/// ```
#[must_use]
pub fn sensitive(class: Sensitivity, names: &[impl AsRef<str>], whole: bool) -> Option<Sensitive> {
    let names: Vec<String> = names.iter().map(|name| plain(name.as_ref())).collect();
    let is_open = |row: &Row| row.class.is_none() && ends_at(row, &names, names.len());
    if class == Sensitivity::Private && ROWS.iter().any(is_open) {
        return None;
    }
    let rows = || ROWS.iter().filter(|row| row.class == Some(class));
    for depth in 1..=names.len() {
        if let Some(row) = rows().find(|row| ends_at(row, &names, depth)) {
            return Some(Sensitive { what: row.what, depth });
        }
    }
    let begins = |row: &&Row| {
        (1..row.names.len()).any(|length| {
            let tail = names.len().checked_sub(length).and_then(|start| names.get(start..));
            let head = row.names.get(..length);
            tail.zip(head).is_some_and(|(tail, head)| all_match(head, tail))
        })
    };
    // Folders such as `library` have too common a name to be sensitive because of what may be below.
    let is_hidden = |row: &&Row| row.names.first().is_some_and(|name| name.starts_with('.'));
    let row = rows().filter(|_| whole).filter(is_hidden).find(begins)?;
    Some(Sensitive { what: row.what, depth: names.len() })
}

/// Returns true if the row's pattern matches the names that end at `depth`.
fn ends_at(row: &Row, names: &[String], depth: usize) -> bool {
    let part = depth.checked_sub(row.names.len()).and_then(|start| names.get(start..depth));
    part.is_some_and(|part| all_match(&row.names, part))
}

fn all_match(patterns: &[String], names: &[String]) -> bool {
    patterns.iter().zip(names).all(|(pattern, name)| is_match(pattern, name))
}

/// Returns true if a name matches a pattern, in which `*` is any text.
fn is_match(pattern: &str, name: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(start) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let end = parts.pop().unwrap_or_default();
    for part in parts {
        match name.split_once(part) {
            Some((_, rest)) => name = rest,
            None => return false,
        }
    }
    name.ends_with(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is(class: Sensitivity, path: &str, whole: bool) -> bool {
        let names: Vec<&str> = path.split('/').collect();
        sensitive(class, &names, whole).is_some()
    }

    #[test]
    fn every_row_has_a_class_a_pattern_and_a_meaning() {
        for line in TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let row = row(line).unwrap_or_else(|| panic!("{line}"));
            assert!(row.class.is_some() || line.starts_with("open | "), "{line}");
            assert!(row.names.iter().all(|name| !name.is_empty()), "{line}");
            assert!(!row.what.is_empty() && line.split(" | ").count() == 3, "{line}");
        }
    }

    #[test]
    fn what_runs_or_authorizes_is_protected() {
        let paths = "
            .bashrc .bash_profile .profile .zshrc .zshenv .zprofile .zlogin .config/fish/config.fish
            .config/fish/conf.d/x.fish .inputrc .bash_aliases .bash_logout .cshrc .kshrc
            .config/environment.d/x.conf .pam_environment .local/bin/ls .envrc sub/.envrc
            .ssh/authorized_keys .ssh/config .ssh/rc .rhosts .gnupg/gpg-agent.conf .kube/config
            .aws/config .docker/config.json .vscode/tasks.json .vscode/settings.json
            .vscode/launch.json x.code-workspace .devcontainer/devcontainer.json
            .idea/workspace.xml .idea/runConfigurations/x.xml .zed/tasks.json .vimrc .exrc .nvim.lua
            .config/nvim/init.lua .emacs .emacs.d/init.el .dir-locals.el
            .github/workflows/ci.yml .github/actions/x/action.yml .gitlab-ci.yml .circleci/config.yml
            .travis.yml Jenkinsfile azure-pipelines.yml .gitea/workflows/x.yml .drone.yml
            .buildkite/pipeline.yml bitbucket-pipelines.yml
            .gitconfig .config/git/config .gitmodules .gitattributes .githooks/pre-commit
            .husky/pre-commit .pre-commit-config.yaml lefthook.yml .hg/hgrc .hgrc
            AGENTS.md CLAUDE.md GEMINI.md sub/AGENTS.md .cursorrules .cursor/rules/x.mdc
            .cursor/mcp.json .windsurfrules .clinerules .github/copilot-instructions.md .mcp.json
            mcp.json .claude/settings.json .claude/commands/x.md .codex/config.toml
            .gemini/settings.json .aider.conf.yml .continue/config.json .goosehints
            Makefile makefile GNUmakefile justfile Taskfile.yml CMakeLists.txt meson.build build.rs
            Cargo.toml .cargo/config.toml package.json .npmrc .yarnrc.yml vite.config.ts
            webpack.config.js gulpfile.js setup.py pyproject.toml tox.ini conftest.py
            sitecustomize.py x.pth Rakefile Gemfile pom.xml build.gradle gradlew Dockerfile
            docker-compose.yml Vagrantfile flake.nix Procfile .config/autostart/x.desktop
            .config/systemd/user/x.service etc/cron.d/x var/spool/cron/crontabs/root crontab
            Library/LaunchAgents/x.plist .xinitrc .tmux.conf .gdbinit .irbrc
            .local/share/applications/x.desktop etc/profile.d/x.sh etc/sudoers.d/x
            .BASHRC .GitHub/Workflows/ci.yml agents.MD .vscode./tasks.json
        ";
        let open: Vec<&str> = paths
            .split_whitespace()
            .filter(|path| !is(Sensitivity::Protected, path, false))
            .collect();
        assert_eq!(open, [""; 0]);
    }

    #[test]
    fn what_holds_secrets_is_private() {
        let paths = "
            .env .env.local .env.production prod.env a/b/.env .envrc .ssh/id_rsa .ssh/config
            id_ed25519 keys/id_ecdsa server.pem tls/server.key x.p12 x.pfx x.jks x.keystore x.kdbx
            .netrc _netrc .git-credentials .npmrc .pypirc .pgpass .my.cnf .htpasswd .dockercfg
            .docker/config.json .aws/credentials .aws/config .azure/accessTokens.json
            .config/gcloud/credentials.db application_default_credentials.json
            service-account-1.json .kube/config kubeconfig .vault-token terraform.tfstate
            prod.tfvars .config/gh/hosts.yml .gnupg/private-keys-v1.d/x.key .password-store/a.gpg
            .mozilla/firefox/x/logins.json .bash_history .cargo/credentials.toml
            .config/rclone/rclone.conf secrets.yaml .ENV .Ssh/id_rsa
        ";
        let open: Vec<&str> = paths
            .split_whitespace()
            .filter(|path| !is(Sensitivity::Private, path, false))
            .collect();
        assert_eq!(open, [""; 0]);
        assert!(is(Sensitivity::Private, "Library/Application Support/Firefox/x", false));
    }

    #[test]
    fn plain_files_are_not_sensitive() {
        let paths = "
            src/main.rs src/lib.rs lib/index.js app.py tests/test_app.py README.md docs/guide.md
            notes.txt data.csv index.html style.css a/b/c.go main.c include/x.h server.ts
            env.rs environment.ts src/keys.rs key.txt id_map.rs make.rs profile.rs cron.rs
            config.yml settings.json report.pdf photo.png .gitignore .dockerignore .editorconfig
            LICENSE CHANGELOG.md Cargo.lock package-lock.json src/agents.rs mcp.rs .env.example
            certs/server.pub src/workflows/run.rs github/workflows.md bashrc.md
        ";
        let caught: Vec<&str> = paths
            .split_whitespace()
            .filter(|path| {
                let is_private = is(Sensitivity::Private, path, false);
                is_private || is(Sensitivity::Protected, path, false)
            })
            .collect();
        assert_eq!(caught, [""; 0]);
    }

    #[test]
    fn a_folder_is_sensitive_as_a_whole_if_a_part_of_it_can_be() {
        assert!(is(Sensitivity::Private, "home/.config/gh", true));
        assert!(is(Sensitivity::Private, "home/.config", true));
        assert!(!is(Sensitivity::Private, "home/.config", false));
        assert!(!is(Sensitivity::Private, "home", true));
        assert!(!is(Sensitivity::Private, "library", true));
        assert!(is(Sensitivity::Protected, ".github", true));
        assert!(!is(Sensitivity::Protected, "src", true));
    }

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, name, expected) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("*.key", ".key", true),
            ("*.key", "a.key", true),
            ("*.key", "a.keys", false),
            ("a*b*c", "abc", true),
            ("a*b*c", "axbxc", true),
            ("a*b*c", "axc", false),
            ("a*a", "a", false),
        ] {
            assert_eq!(is_match(pattern, name), expected, "{pattern} {name}");
        }
    }
}
