//! Looks up commands by name, and runs scripts that are called as commands.

use std::iter::Peekable;

use wattle_capability::files::EntryKind;

use crate::bounds::amount;
use crate::language::builtin_table;
use crate::language::interpreter::{Flow, Interpreter, Jump};
use crate::language::task::Task;

/// The words of a command line.
type Words = Peekable<std::vec::IntoIter<String>>;

/// The options of `sh` and `bash` that choose the script.
#[derive(Clone, Copy, Default)]
struct ShellOptions {
    /// If true (`-c`), the first operand is the source of the script.
    command: bool,
    /// If true (`-s`), the script is read from standard input.
    from_input: bool,
}

/// The command that a name refers to.
#[derive(Debug)]
pub(crate) enum ResolvedCommand {
    /// A shell, such as `sh` or `bash`.
    Shell,
    /// A command of the toolbox.
    Tool(String),
    /// A builtin of the shell.
    Builtin(String),
    /// A path in the run's files.
    File(String),
    /// No command has this name.
    Unknown,
}

/// Folders that appear to contain every command. A path such as `/bin/ls` names the same command as
/// `ls`.
const COMMAND_FOLDERS: [&str; 6] =
    ["/bin/", "/usr/bin/", "/usr/local/bin/", "/sbin/", "/usr/sbin/", "/opt/bin/"];

/// Well-known commands that the shell lacks, with a hint for each group.
const ABSENT: &[(&str, &str)] = &[
    (
        "apt apt-get yum dnf apk brew pacman pip pip3 npm npx yarn pnpm cargo gem conda uv",
        "nothing can be installed here; `help` lists the commands that there are",
    ),
    (
        "ar as cc clang cmake g++ gcc gdb go java javac ld make mvn rustc tsc",
        "there is no compiler here; `help` lists the commands that there are",
    ),
    (
        "python python3 python2 node nodejs deno bun perl ruby php lua Rscript",
        "there is no such interpreter here; use awk, jq, sed or the shell itself, or a catalog \
         program",
    ),
    (
        "curl wget http aria2c lynx w3m",
        "the shell has no network; use the catalog program `fetch` or the capability `http`",
    ),
    (
        "ssh scp sftp rsync telnet nc ncat netcat ftp ping dig nslookup host ip ifconfig netstat \
         ss traceroute",
        "the shell has no network; use the catalog program `fetch` or the capability `http`",
    ),
    (
        "git hg svn gh",
        "there is no version control here; in a trusted run the tool `git` commits and pushes the \
         workdir",
    ),
    (
        "docker podman kubectl systemctl service crontab mount umount chroot",
        "there is no operating system behind this shell",
    ),
    (
        "vi vim nano emacs ed less more man top htop watch screen tmux",
        "there is no terminal here; use cat, sed -n, head, tail, or redirections to write a file",
    ),
    ("sudo su doas", "there are no other users here; run the command without it"),
    (
        "ps pgrep pkill killall lsof free uptime dmesg strace",
        "there are no processes here; `jobs` lists background jobs",
    ),
    (
        "mysql psql sqlite3 redis-cli mongo",
        "there is no database client here; use the capability `kv` or files",
    ),
    ("rg ag ack fd", "use grep -r and find"),
    ("chown chgrp", "files have no owner here"),
    (
        "open xdg-open pbcopy pbpaste xclip",
        "there is no desktop here; print the text, or write it to a file",
    ),
    ("bc dc", "use $(( )) for whole numbers, or awk 'BEGIN { print … }'"),
];

impl Interpreter {
    /// Returns the command that a name refers to, ignoring functions.
    pub(crate) fn find(&self, name: &str) -> ResolvedCommand {
        let plain = COMMAND_FOLDERS
            .iter()
            .find_map(|folder| name.strip_prefix(folder))
            .filter(|rest| !rest.contains('/'))
            .unwrap_or(name);
        if name.contains('/') && plain == name {
            return ResolvedCommand::File(self.path(name));
        }
        if matches!(plain, "sh" | "bash" | "dash" | "ash") {
            return ResolvedCommand::Shell;
        }
        if builtin_table::is_builtin(plain) {
            return ResolvedCommand::Builtin(plain.to_owned());
        }
        if self.run.commands.has(plain) {
            ResolvedCommand::Tool(plain.to_owned())
        } else {
            ResolvedCommand::Unknown
        }
    }

    /// Returns the message for an unknown command, with a hint or the most similar names.
    pub(crate) fn not_found(&self, name: &str) -> String {
        let plain = name.rsplit('/').next().unwrap_or(name);
        if let Some((_, hint)) =
            ABSENT.iter().find(|(names, _)| names.split(' ').any(|known| known == plain))
        {
            return format!("{name}: command not found: {hint}");
        }
        let mut near: Vec<(usize, String)> = self
            .command_names()
            .into_iter()
            .map(|known| (distance(plain, &known), known))
            .filter(|(edits, known)| *edits <= 1 + known.len() / 4)
            .collect();
        near.sort();
        near.truncate(5);
        let near: Vec<String> = near.into_iter().map(|(_, known)| known).collect();
        match near.is_empty() {
            true => format!("{name}: command not found; `help` lists the commands that there are"),
            false => format!(
                "{name}: command not found; there are: {} (`help` lists all)",
                near.join(", ")
            ),
        }
    }

    /// Returns the names of all functions, builtins and commands.
    fn command_names(&self) -> Vec<String> {
        let mut names: Vec<String> = builtin_table::names().map(str::to_owned).collect();
        names.extend(self.run.commands.names());
        names.extend(self.definitions.functions.keys().cloned());
        names.extend(["sh".to_owned(), "bash".to_owned()]);
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Runs a script in the run's files as a command. Uses the interpreter named in the script's
    /// first line, or the shell if none is named.
    pub(super) async fn run_file(
        &mut self,
        path: String,
        argv: Vec<String>,
        env: Vec<(String, String)>,
    ) -> Flow<u8> {
        let name = argv.first().cloned().unwrap_or_default();
        let text = match self.stat(&path).await.map(|stat| stat.kind) {
            Some(EntryKind::Folder) => Err((format!("{name}: Is a directory"), 126)),
            Some(EntryKind::File) | None => self.script(&path, &name).await?,
            Some(_) => Err((format!("{name}: cannot execute"), 126)),
        };
        let text = match text {
            Ok(text) => text,
            Err((message, status)) => {
                self.report(&message).await;
                return Ok(status);
            }
        };
        let first = text.lines().next().unwrap_or_default();
        let Some(line) = first.strip_prefix("#!") else {
            return self.run_script(text, argv, env).await;
        };
        let mut words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        if words.first().is_some_and(|word| word.ends_with("/env")) {
            words.remove(0);
            if words.first().is_some_and(|word| word == "-S") {
                words.remove(0);
            }
        }
        let interpreter =
            words.first().and_then(|word| word.rsplit('/').next()).unwrap_or_default().to_owned();
        if matches!(interpreter.as_str(), "" | "sh" | "bash" | "dash" | "ash") {
            return self.run_script(text, argv, env).await;
        }
        words.push(path);
        words.extend(argv.into_iter().skip(1));
        self.enter_level()?;
        let ended = self.external(words, env).await;
        self.execution.depth -= 1;
        Ok(ended?.status().0)
    }

    /// Reads a script from the run's files. `shown` is the path as the user wrote it. Returns a
    /// message and a status on failure.
    pub(crate) async fn script(
        &mut self,
        path: &str,
        shown: &str,
    ) -> Flow<Result<String, (String, u8)>> {
        let limit = self.run.bounds.script;
        let path = self.path(path);
        let read = match self.check_inside(shown, false).await {
            Ok(()) => {
                self.on_files(move |files| Ok(files.read_at(&path, 0, limit as u64 + 1)?)).await
            }
            Err(fault) => Err(fault),
        };
        Ok(match read {
            Ok(text) if text.len() > limit => {
                Err((format!("{shown}: the script is longer than {}", amount(limit)), 126))
            }
            Ok(text) if text.iter().take(512).any(|byte| *byte == 0) => {
                Err((format!("{shown}: cannot execute binary file"), 126))
            }
            Ok(text) => Ok(String::from_utf8_lossy(&text).into_owned()),
            Err(fault) => Err((fault.about(shown), 127)),
        })
    }

    /// Runs a script in a new shell with the given environment.
    async fn run_script(
        &mut self,
        text: String,
        argv: Vec<String>,
        env: Vec<(String, String)>,
    ) -> Flow<u8> {
        let mut shell = self.new_shell(env)?;
        let mut argv = argv.into_iter();
        shell.parameters.name = argv.next().unwrap_or_default().into();
        shell.parameters.arguments = self.positional(argv)?;
        self.run_in(shell, text).await
    }

    /// Creates a new shell with the given environment, one nesting level deeper.
    fn new_shell(&mut self, env: Vec<(String, String)>) -> Flow<Interpreter> {
        let mut shell = Interpreter::new(self.run.clone(), self.descriptors.open.clone());
        shell.folders.current = self.folders.current.clone();
        shell.execution.depth = self.execution.depth;
        shell.lifecycle.subshell = true;
        shell.enter_level()?;
        if let Err(message) = self.run.count_command() {
            return Err(self.exceed(message));
        }
        for (name, value) in &env {
            shell.preset(name, value, true);
        }
        let cwd = shell.folders.current.clone();
        shell.preset("PWD", &cwd, true);
        Ok(shell)
    }

    /// Runs a script in `shell` and returns its status.
    async fn run_in(&mut self, mut shell: Interpreter, text: String) -> Flow<u8> {
        let list = match crate::language::parse::parse(&text, 1, &self.run.trees) {
            Ok(list) => std::sync::Arc::new(list),
            Err(error) => {
                self.report(&format!("{}: {error}", shell.parameters.name)).await;
                return Ok(2);
            }
        };
        shell.execution.stack_level = 0;
        let task = Task::start_local(async move {
            shell.run_to_end(&list).await;
            shell.last.status
        });
        match task.finish().await {
            Some(_) if self.run.is_ended() => Err(Jump::Exit),
            Some(status) => Ok(status),
            None => Err(self.exceed("a shell failed: this is a bug in the host".into())),
        }
    }

    /// Runs `sh` or `bash` with a script from a file, from the argument of `-c`, or from standard
    /// input.
    pub(super) async fn run_shell(
        &mut self,
        words: Vec<String>,
        env: Vec<(String, String)>,
    ) -> Flow<u8> {
        let mut shell = self.new_shell(env)?;
        let mut words = words.into_iter().peekable();
        let options = match self.shell_options(&mut shell, &mut words).await? {
            Ok(options) => options,
            Err(status) => return Ok(status),
        };
        let text = match self.shell_script(&mut shell, options, &mut words).await? {
            Ok(text) => text,
            Err(status) => return Ok(status),
        };
        shell.parameters.arguments = self.positional(words)?;
        self.run_in(shell, text).await
    }

    /// Parses the options of `sh` or `bash`, up to the first operand. After `--version` or an
    /// invalid option, the shell must exit without running a script. In this case, returns the exit
    /// status instead.
    async fn shell_options(
        &mut self,
        shell: &mut Interpreter,
        words: &mut Words,
    ) -> Flow<Result<ShellOptions, u8>> {
        let mut options = ShellOptions::default();
        while let Some(word) = words.peek().cloned() {
            if word == "--" || word == "-" {
                words.next();
                break;
            }
            if !word.starts_with(['-', '+']) || word.len() < 2 {
                break;
            }
            words.next();
            if word.starts_with("--") {
                if word == "--version" {
                    self.print(
                        "bash 5.2, emulated by wattle: it starts no process of the operating \
                         system\n",
                    )
                    .await?;
                    return Ok(Err(0));
                }
                continue;
            }
            let on = word.starts_with('-');
            for letter in word.chars().skip(1) {
                let wrong = match letter {
                    'c' => {
                        options.command = true;
                        None
                    }
                    's' => {
                        options.from_input = true;
                        None
                    }
                    'i' | 'l' | 'p' | 'r' => None,
                    'o' | 'O' => match words.next() {
                        Some(name) => shell.set_option(&name, on).err(),
                        None => None,
                    },
                    letter => shell.set_letter(letter, on).err(),
                };
                if let Some(wrong) = wrong {
                    self.report(&format!("bash: {wrong}")).await;
                    return Ok(Err(2));
                }
            }
        }
        Ok(Ok(options))
    }

    /// Returns the source of the script, or an exit status if there is no script.
    async fn shell_script(
        &mut self,
        shell: &mut Interpreter,
        options: ShellOptions,
        words: &mut Words,
    ) -> Flow<Result<String, u8>> {
        Ok(Ok(if options.command {
            let Some(text) = words.next() else {
                self.report("bash: -c: option requires an argument").await;
                return Ok(Err(2));
            };
            if let Some(name) = words.next() {
                shell.parameters.name = name.into();
            }
            text
        } else if let Some(path) = words.next_if(|_| !options.from_input) {
            shell.parameters.name = path.as_str().into();
            match self.script(&path, &path).await? {
                Ok(text) => text,
                Err((message, status)) => {
                    self.report(&message).await;
                    return Ok(Err(status));
                }
            }
        } else {
            let input = self.descriptors.open.get(&0).cloned();
            let (text, over) = match input {
                Some(stream) => self.read_whole(&stream).await?,
                None => (Vec::new(), false),
            };
            if over || text.len() > self.run.bounds.script {
                self.report("bash: the script is too long").await;
                return Ok(Err(126));
            }
            String::from_utf8_lossy(&text).into_owned()
        }))
    }
}

/// Returns the edit distance between two words. Considers only the first 64 characters of `a`.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (line, c) in a.chars().take(64).enumerate() {
        let mut diagonal = line;
        let mut left = line + 1;
        let mut next = vec![left];
        for (other, above) in b.iter().zip(row.iter().skip(1)) {
            let cost = (diagonal + usize::from(c != *other)).min(above + 1).min(left + 1);
            diagonal = *above;
            left = cost;
            next.push(cost);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}
