//! Enforcement of the rules with Landlock.

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetError, RulesetStatus, Scope, make_bitflags, path_beneath_rules,
};

use super::{Reach, Rule, Walls};

/// The latest Landlock version that is used. An older kernel restricts fewer kinds of access.
const NEWEST: ABI = ABI::V6;

/// Restricts this thread, and everything that it starts, to the rules: other files cannot be
/// opened, changed or executed. Unless `listens` is true, no TCP port can be bound, and unless
/// `connects` is true, no TCP connection opened. The egress
/// guard restricts connections, because Landlock can restrict ports but not hosts.
pub(super) fn enforce(
    rules: &[Rule],
    listens: bool,
    connects: bool,
) -> Result<Walls, RulesetError> {
    let mut ruleset = Ruleset::default()
        .handle_access(AccessFs::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?;
    if !listens {
        ruleset = ruleset.handle_access(AccessNet::BindTcp)?;
    }
    if !connects {
        ruleset = ruleset.handle_access(AccessNet::ConnectTcp)?;
    }
    let mut created = ruleset.create()?;
    for rule in rules {
        // A missing file cannot be opened, so it needs no rule.
        created = created.add_rules(path_beneath_rules([&rule.path], rights(rule.reach)))?;
    }
    Ok(match created.restrict_self()?.ruleset {
        RulesetStatus::FullyEnforced => Walls::Complete,
        RulesetStatus::PartiallyEnforced => Walls::Partial,
        RulesetStatus::NotEnforced => Walls::Missing,
    })
}

fn rights(reach: Reach) -> BitFlags<AccessFs> {
    let read = make_bitflags!(AccessFs::{ReadFile | ReadDir});
    match reach {
        Reach::Read => read,
        Reach::Run => read | AccessFs::Execute,
        Reach::Device => make_bitflags!(AccessFs::{ReadFile | WriteFile | IoctlDev}),
        Reach::Write => {
            read | make_bitflags!(AccessFs::{
                WriteFile | Truncate | MakeReg | MakeDir | MakeSym | RemoveFile | RemoveDir | Refer
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::net::TcpListener;
    use std::path::Path;

    use super::*;

    #[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
    /// Runs a function on a thread that is confined by these rules. Returns `None` if the kernel
    /// has no Landlock.
    fn behind<T: Send + 'static>(
        rules: Vec<Rule>,
        listens: bool,
        tried: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let thread = std::thread::spawn(move || match enforce(&rules, listens, true).unwrap() {
            Walls::Missing => None,
            _ => Some(tried()),
        });
        let done = thread.join().unwrap();
        if done.is_none() {
            eprintln!("skipped: this kernel has no Landlock");
        }
        done
    }

    fn rule(path: &Path, reach: Reach) -> Rule {
        Rule { path: path.to_owned(), reach }
    }

    #[test]
    fn a_thread_behind_the_walls_reaches_what_the_rules_name_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for folder in ["work", "read", "outside"] {
            fs::create_dir(at(folder)).unwrap();
            fs::write(at(folder).join("a"), "x").unwrap();
        }
        let top = dir.path().to_owned();
        let rules = vec![
            rule(&at("work"), Reach::Write),
            rule(&at("read"), Reach::Read),
            rule(&at("absent"), Reach::Write),
        ];
        behind(rules, false, move || {
            let at = |name: &str| top.join(name);
            fs::read(at("work/a")).unwrap();
            fs::write(at("work/a"), "y").unwrap();
            fs::create_dir(at("work/b")).unwrap();
            fs::rename(at("work/a"), at("work/b/a")).unwrap();
            fs::remove_file(at("work/b/a")).unwrap();
            fs::read(at("read/a")).unwrap();
            assert!(
                fs::write(at("read/a"), "y").is_err() && fs::remove_file(at("read/a")).is_err()
            );
            assert!(fs::read(at("outside/a")).is_err() && fs::write(at("outside/b"), "y").is_err());
            assert!(fs::read_dir(&top).is_err() && fs::read("/etc/passwd").is_err());
            assert!(fs::hard_link(at("read/a"), at("work/a")).is_err());
            assert!(
                std::process::Command::new("/bin/true").status().is_err(),
                "nothing is executed"
            );
            assert!(TcpListener::bind("127.0.0.1:0").is_err());
            // Threads that are started by a confined thread are also confined.
            assert!(
                std::thread::spawn(move || fs::read(top.join("outside/a")))
                    .join()
                    .unwrap()
                    .is_err()
            );
        });
    }

    #[test]
    fn a_command_that_listens_may() {
        behind(Vec::new(), true, || TcpListener::bind("127.0.0.1:0").map(drop).unwrap());
    }
}
