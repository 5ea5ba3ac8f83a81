//! The directory walk of `find`.

use std::fs::{self, Metadata};
use std::io::Write;

use super::expression::{Expression, Which, before};
use super::printf;
use crate::host::Command;
use crate::say::{about, names};

/// The symbolic links that are followed.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Follow {
    Never,
    Operands,
    Always,
}

/// The options that apply to the whole walk.
pub(crate) struct Options {
    pub most: usize,
    pub least: usize,
    /// If true, a folder is visited after its content.
    pub deep: bool,
    pub follow: Follow,
}

/// The current file.
pub(crate) struct Here<'a> {
    pub path: &'a str,
    pub top: &'a str,
    pub depth: usize,
    pub found: &'a Metadata,
}

/// The state of a walk.
pub(crate) struct Walk<'a, W: Write> {
    expression: &'a Expression,
    options: Options,
    out: W,
    failed: bool,
    over: bool,
    pruned: bool,
    /// For each `-exec … +`: its number, its words, and the paths collected for it.
    gathered: Vec<(usize, &'a [String], Vec<String>)>,
}

/// The maximum total size of the paths for one command, in bytes.
const MOST: usize = 96 << 10;

impl<'a, W: Write> Walk<'a, W> {
    pub(crate) fn new(expression: &'a Expression, options: Options, out: W) -> Self {
        Walk {
            expression,
            options,
            out,
            failed: false,
            over: false,
            pruned: false,
            gathered: Vec::new(),
        }
    }

    /// Walks one operand. Returns true if `-quit` has ended the walk.
    pub(crate) fn top(&mut self, top: &str) -> bool {
        let follow = self.options.follow != Follow::Never;
        let found = if follow {
            fs::metadata(top).or_else(|_| fs::symlink_metadata(top))
        } else {
            fs::symlink_metadata(top)
        };
        match found {
            Ok(found) => self.visit(top, top, 0, &found),
            Err(error) => self.fail(&format!("'{top}'"), &error),
        }
        self.over
    }

    /// Runs the commands for the collected paths. Returns true if anything has failed.
    pub(crate) fn finish(mut self) -> bool {
        for (_, words, paths) in std::mem::take(&mut self.gathered) {
            self.run_many(words, &paths);
        }
        _ = self.out.flush();
        self.failed
    }

    fn fail(&mut self, path: &str, error: &std::io::Error) {
        _ = self.out.flush();
        about("find", path, error);
        self.failed = true;
    }

    fn visit(&mut self, path: &str, top: &str, depth: usize, found: &Metadata) {
        let here = Here { path, top, depth, found };
        let shown = depth >= self.options.least;
        self.pruned = false;
        if shown && !self.options.deep {
            self.holds(self.expression, &here);
        }
        if found.is_dir()
            && depth < self.options.most
            && (self.options.deep || !self.pruned)
            && !self.over
        {
            let names = names(path).unwrap_or_else(|error| {
                self.fail(&format!("'{path}'"), &error);
                Vec::new()
            });
            for name in names {
                let slash = if path.ends_with('/') { "" } else { "/" };
                let below = format!("{path}{slash}{name}");
                let link = fs::symlink_metadata(&below);
                let found = match (&link, self.options.follow) {
                    (Ok(kind), Follow::Always) if kind.is_symlink() => {
                        fs::metadata(&below).or(link)
                    }
                    _ => link,
                };
                match found {
                    Ok(found) => self.visit(&below, top, depth + 1, &found),
                    Err(error) => self.fail(&format!("'{below}'"), &error),
                }
                if self.over {
                    return;
                }
            }
        }
        if shown && self.options.deep {
            self.holds(self.expression, &here);
        }
    }

    fn holds(&mut self, expression: &'a Expression, here: &Here<'_>) -> bool {
        if self.over {
            return false;
        }
        match expression {
            Expression::And(items) => items.iter().all(|item| self.holds(item, here)),
            Expression::Or(items) => items.iter().any(|item| self.holds(item, here)),
            Expression::List(items) => items.iter().fold(true, |_, item| self.holds(item, here)),
            Expression::Not(item) => !self.holds(item, here),
            Expression::True => true,
            Expression::False => false,
            Expression::Name(pattern) => pattern.is_match(name(here.path).as_bytes()),
            Expression::Path(pattern) => pattern.is_match(here.path.as_bytes()),
            Expression::Target(pattern) => fs::read_link(here.path)
                .is_ok_and(|target| pattern.is_match(target.to_string_lossy().as_bytes())),
            Expression::Kind(kinds, through) => {
                let kind = if *through {
                    fs::metadata(here.path).map_or('l', |found| letter(&found))
                } else {
                    letter(here.found)
                };
                kinds.contains(&kind)
            }
            Expression::Size(compare, unit) => compare.holds(here.found.len().div_ceil(*unit)),
            Expression::Age { moment, compare, unit, now } => time(here.found, *moment)
                .is_ok_and(|moment| compare.holds(before(*now, moment).as_secs() / unit)),
            Expression::Newer { moment, than } => {
                time(here.found, *moment).is_ok_and(|moment| moment > *than)
            }
            Expression::Mode { bits, kind } => {
                let mode = printf::mode(here.found);
                match kind {
                    '-' => mode & bits == *bits,
                    '/' => *bits == 0 || mode & bits != 0,
                    _ => mode == *bits,
                }
            }
            Expression::Empty if here.found.is_dir() => {
                fs::read_dir(here.path).is_ok_and(|mut entries| entries.next().is_none())
            }
            Expression::Empty => here.found.is_file() && here.found.len() == 0,
            Expression::Print { end } => self
                .out
                .write_all(here.path.as_bytes())
                .and_then(|()| self.out.write_all(&[*end]))
                .is_ok(),
            Expression::Printf(parts) => printf::put(&mut self.out, parts, here).is_ok(),
            Expression::List5 => printf::list(&mut self.out, here).is_ok(),
            Expression::Delete => self.delete(here),
            Expression::Prune => {
                self.pruned = true;
                true
            }
            Expression::Quit => {
                self.over = true;
                true
            }
            Expression::Run { words, folder } => {
                let path =
                    if *folder { format!("./{}", name(here.path)) } else { here.path.to_owned() };
                let argv: Vec<Vec<u8>> =
                    words.iter().map(|word| word.replace("{}", &path).into_bytes()).collect();
                self.run(argv, folder.then(|| here.path)) == 0
            }
            Expression::RunMany { words, number } => {
                self.gather(*number, words, here.path);
                true
            }
        }
    }

    fn delete(&mut self, here: &Here<'_>) -> bool {
        if here.path == "." {
            return true;
        }
        let done = if here.found.is_dir() {
            fs::remove_dir(here.path)
        } else {
            fs::remove_file(here.path)
        };
        match done {
            Ok(()) => true,
            Err(error) => {
                self.fail(&format!("cannot delete '{}'", here.path), &error);
                false
            }
        }
    }

    /// Runs a command. If `within` is a path, the command runs in the folder that contains it.
    fn run(&mut self, argv: Vec<Vec<u8>>, within: Option<&str>) -> i32 {
        _ = self.out.flush();
        let mut command = Command::new(argv);
        command.empty_input = true;
        if let Some(path) = within {
            let folder = match path.rfind('/') {
                Some(0) => "/",
                Some(end) => path.get(..end).unwrap_or("."),
                None => ".",
            };
            command = command.within(folder);
        }
        command.run()
    }

    fn gather(&mut self, number: usize, words: &'a [String], path: &str) {
        let at = match self.gathered.iter().position(|(known, ..)| *known == number) {
            Some(at) => at,
            None => {
                self.gathered.push((number, words, Vec::new()));
                self.gathered.len() - 1
            }
        };
        let Some((_, _, paths)) = self.gathered.get_mut(at) else { return };
        paths.push(path.to_owned());
        if paths.iter().map(|path| path.len() + 1).sum::<usize>() > MOST {
            let paths = std::mem::take(paths);
            self.run_many(words, &paths);
        }
    }

    fn run_many(&mut self, words: &[String], paths: &[String]) {
        if paths.is_empty() {
            return;
        }
        let argv = words.iter().chain(paths).map(|word| word.clone().into_bytes()).collect();
        if self.run(argv, None) != 0 {
            self.failed = true;
        }
    }
}

/// Returns the last component of a path.
pub(crate) fn name(path: &str) -> &str {
    let bare = path.trim_end_matches('/');
    if bare.is_empty() { path } else { bare.rsplit('/').next().unwrap_or(bare) }
}

/// Returns the letter of a file's type: `d`, `l` or `f`.
pub(crate) fn letter(found: &Metadata) -> char {
    match found.file_type() {
        kind if kind.is_dir() => 'd',
        kind if kind.is_symlink() => 'l',
        _ => 'f',
    }
}

/// Returns a timestamp of a file.
pub(crate) fn time(found: &Metadata, moment: Which) -> std::io::Result<std::time::SystemTime> {
    match moment {
        Which::Changed => found.modified(),
        Which::Read => found.accessed(),
    }
}
