//! Simple commands: assignments, functions, builtins, commands of the toolbox, and scripts that are
//! called as commands.

use std::iter::Peekable;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use wattle_capability::files::EntryKind;

use super::ast::{Command, Redirect, Simple};
use super::builtins::{self, Arguments, is_builtin};
use super::exec::Body;
use super::interpreter::{Attempt, Flow, Interpreter, Jump, Stop, usage};
use super::run::Run;
use super::task::Task;
use super::variables::{ExpandedWord, Setting, SettingValue, texts};
use super::{escape, parse};
use crate::bounds::amount;
use crate::command::{self, CommandOutcome, Spawn, Status};

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

/// The names of the shell.
const SHELLS: [&str; 4] = ["sh", "bash", "dash", "ash"];

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
    pub(super) async fn simple(&mut self, simple: &Simple, redirects: &[Redirect]) -> Flow {
        let before = self.descriptors.open.clone();
        let first_substitution = self.descriptors.substitutions.len();
        self.last.substitution_status = 0;
        let ran = self.simple_here(simple, redirects).await;
        if !matches!(ran, Ok(true)) {
            let mut before = before;
            for number in self.descriptors.persistent.drain(..) {
                match self.descriptors.open.get(&number) {
                    Some(stream) => before.insert(number, stream.clone()),
                    None => before.remove(&number),
                };
            }
            self.descriptors.open = before;
        }
        for fd in self
            .descriptors
            .substitutions
            .split_off(first_substitution.min(self.descriptors.substitutions.len()))
        {
            self.descriptors.open.remove(&fd);
        }
        ran.map(|_| ())
    }

    /// Runs a simple command. Returns true if its redirections persist, like those of `exec`.
    async fn simple_here(&mut self, simple: &Simple, redirects: &[Redirect]) -> Flow<bool> {
        let mut charge = self.word_charge();
        let given = self.arguments(&simple.words, &mut charge).await?;
        let mut given = given.into_iter();
        let Some(first) = given.next() else {
            self.only_assignments(simple, redirects).await?;
            return Ok(false);
        };
        let given: Vec<ExpandedWord> = given.collect();
        let ExpandedWord::Text(name) = first else { return Ok(false) };
        self.trace(simple, &name, &given).await;
        if let Err(stop) = self.redirect(redirects).await {
            let is_own = self.definitions.functions.contains_key(&name) || is_builtin(&name);
            return match self.report_failure(stop).await {
                // As in bash, the redirections of another command are expanded in its own process.
                Err(Jump::Abandon) if !is_own => Ok(false),
                reported => reported.map(|_| false),
            };
        }
        let mut settings = Vec::new();
        for assignment in &simple.assignments {
            settings.push(self.setting(assignment).await?);
        }
        let last = match given.last() {
            Some(ExpandedWord::Text(text)) => text.clone(),
            _ => name.clone(),
        };
        if name == "exec" && !self.definitions.functions.contains_key("exec") {
            return self.exec(settings, given).await;
        }
        let ran = self.call(name, given, settings).await;
        self.last.word = self.run.ledger.store(last).ok();
        ran.map(|()| false)
    }

    async fn only_assignments(&mut self, simple: &Simple, redirects: &[Redirect]) -> Flow {
        if let Err(stop) = self.redirect(redirects).await {
            self.report_failure(stop).await?;
            return Ok(());
        }
        for assignment in &simple.assignments {
            let setting = self.setting(assignment).await?;
            if self.options.xtrace
                && let SettingValue::Text(text) = &setting.value
            {
                let line = format!("+ {}={}", setting.name, escape::quoted_word(text));
                self.trace_line(&line).await;
            }
            self.assign(setting).await?;
        }
        self.last.status = self.last.substitution_status;
        Ok(())
    }

    /// Runs the function, builtin or command with this name.
    pub(crate) fn call<'a>(
        &'a mut self,
        name: String,
        given: Vec<ExpandedWord>,
        settings: Vec<Setting>,
    ) -> BoxFuture<'a, Flow> {
        async move {
            if let Some(body) = self.definitions.functions.get(&name).cloned() {
                return self
                    .with_settings(settings, async |shell| {
                        shell.function(name, texts(given), body).await
                    })
                    .await;
            }
            if is_builtin(&name) {
                return self
                    .with_settings(settings, async |shell| {
                        let status = shell.builtin(&name, given).await?;
                        shell.last.status = status;
                        Ok(())
                    })
                    .await;
            }
            self.call_external(name, given, settings).await
        }
        .boxed()
    }

    /// Runs a command that is neither a function nor a builtin.
    async fn call_external(
        &mut self,
        name: String,
        given: Vec<ExpandedWord>,
        settings: Vec<Setting>,
    ) -> Flow {
        let mut env = self.variables.exported();
        for setting in settings {
            if self.variables.get(&setting.name).is_some_and(|variable| variable.readonly) {
                self.report(&format!("{}: readonly variable", setting.name)).await;
                self.last.status = 1;
                return Ok(());
            }
            if let SettingValue::Text(text) = setting.value {
                env.retain(|(name, _)| *name != setting.name);
                env.push((setting.name, text));
            }
        }
        let argv = std::iter::once(name).chain(texts(given)).collect();
        let ended = self.external(argv, env).await?;
        self.last.status = ended.status().0;
        self.last.killed = ended.ends_pipeline();
        // A stage whose reader is gone must end. Otherwise a loop in the stage would continue.
        if self.lifecycle.subshell && self.last.status == 141 { Err(Jump::Exit) } else { Ok(()) }
    }

    /// Runs a command with the assignments that precede it, and restores the variables afterwards.
    async fn with_settings(
        &mut self,
        settings: Vec<Setting>,
        run: impl AsyncFnOnce(&mut Interpreter) -> Flow,
    ) -> Flow {
        if settings.is_empty() {
            return run(self).await;
        }
        self.variables.push_frame();
        for setting in settings {
            self.variables.save(&setting.name);
            let name = setting.name.clone();
            if let Err(stop) = self.try_assign(setting).await {
                self.variables.pop_frame();
                return self.report_failure(stop).await.map(drop);
            }
            if let Ok(variable) = self.variables.attributes(&name) {
                variable.exported = true;
            }
        }
        let ran = run(self).await;
        self.variables.pop_frame();
        ran
    }

    async fn function(&mut self, name: String, arguments: Vec<String>, body: Arc<Command>) -> Flow {
        self.enter_level()?;
        let parameters = self.positional(arguments)?;
        self.variables.push_frame();
        self.execution.calls.push(name);
        let arguments = std::mem::replace(&mut self.parameters.arguments, parameters);
        let loops = std::mem::take(&mut self.execution.loops);
        let line = self.execution.line;
        let ran = self.with_stack(Body::Command(body)).await;
        self.parameters.arguments = arguments;
        self.execution.loops = loops;
        self.execution.line = line;
        self.execution.calls.pop();
        self.variables.pop_frame();
        self.execution.depth = self.execution.depth.saturating_sub(1);
        match ran {
            Err(Jump::Return) => Ok(()),
            other => other,
        }
    }

    /// Runs `exec`. Without words, makes its redirections permanent. With words, runs them as the
    /// last command of this shell.
    async fn exec(&mut self, settings: Vec<Setting>, given: Vec<ExpandedWord>) -> Flow<bool> {
        let mut words = match Arguments::parse(texts(given), "la:") {
            Ok(given) => given.words,
            Err(stop) => {
                self.report_failure(stop).await?;
                return Ok(false);
            }
        };
        if words.is_empty() {
            self.last.status = 0;
            self.descriptors.persistent.clear();
            return Ok(true);
        }
        let name = words.remove(0);
        if matches!(self.find(&name), ResolvedCommand::Unknown) && !is_builtin(&name) {
            self.report(&self.not_found(&name)).await;
            self.last.status = 127;
            return Err(Jump::Exit);
        }
        self.call(name, words.into_iter().map(ExpandedWord::Text).collect(), settings).await?;
        Err(Jump::Exit)
    }

    /// Runs a command or a builtin, but not a function, with the given environment.
    pub(crate) fn external(
        &mut self,
        argv: Vec<String>,
        env: Vec<(String, String)>,
    ) -> BoxFuture<'_, Flow<CommandOutcome>> {
        async move {
            let Some(name) = argv.first().cloned() else {
                return Ok(CommandOutcome::Exited(Status::SUCCESS));
            };
            let exited = |status: u8| Ok(CommandOutcome::Exited(Status(status)));
            match self.find(&name) {
                ResolvedCommand::Shell => {
                    exited(self.run_shell(argv.into_iter().skip(1).collect(), env).await?)
                }
                ResolvedCommand::Tool(name) => {
                    self.count_command()?;
                    let argv = std::iter::once(name).chain(argv.into_iter().skip(1)).collect();
                    let open = self.descriptors.open.iter();
                    let fds = open.map(|(number, stream)| (*number, stream.clone())).collect();
                    let cwd = self.folders.current.clone();
                    let command = command::Command { argv, env, cwd, fds };
                    let run = Arc::clone(&self.run);
                    let depth = self.execution.depth;
                    let spawn = Arc::new(Spawner { run: Arc::clone(&run), depth });
                    Ok(run.commands.run(command, &run.files, spawn, &run.bounds.stage).await)
                }
                ResolvedCommand::Builtin(name) => {
                    let given = argv.into_iter().skip(1).map(ExpandedWord::Text).collect();
                    exited(self.builtin(&name, given).await?)
                }
                ResolvedCommand::File(path) => exited(self.run_file(path, argv, env).await?),
                ResolvedCommand::Unknown => {
                    self.report(&self.not_found(&name)).await;
                    exited(127)
                }
            }
        }
        .boxed()
    }

    /// Prints a command for `set -x`.
    async fn trace(&mut self, simple: &Simple, name: &str, given: &[ExpandedWord]) {
        if !self.options.xtrace {
            return;
        }
        let mut line = format!("+ {}", escape::quoted_word(name));
        for word in given {
            match word {
                ExpandedWord::Text(text) => {
                    line.push_str(&format!(" {}", escape::quoted_word(text)))
                }
                ExpandedWord::Setting(setting) => {
                    line.push_str(&format!(" {}", setting.name));
                    if let SettingValue::Text(text) = &setting.value {
                        line.push_str(&format!("={}", escape::quoted_word(text)));
                    }
                }
            }
        }
        if !simple.assignments.is_empty() {
            line.push_str("  # with variables of its own");
        }
        self.trace_line(&line).await;
    }

    async fn trace_line(&self, line: &str) {
        self.write_stderr(&format!("{line}\n")).await;
    }

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
        if SHELLS.contains(&plain) {
            return ResolvedCommand::Shell;
        }
        if is_builtin(plain) {
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
        if near.is_empty() {
            format!("{name}: command not found; `help` lists the commands that there are")
        } else {
            let near = near.join(", ");
            format!("{name}: command not found; there are: {near} (`help` lists all)")
        }
    }

    /// Returns the names of all functions, builtins and commands.
    fn command_names(&self) -> Vec<String> {
        let mut names: Vec<String> = builtins::names().map(str::to_owned).collect();
        names.extend(self.run.commands.names());
        names.extend(self.definitions.functions.keys().cloned());
        names.extend(["sh".to_owned(), "bash".to_owned()]);
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Runs a script in the run's files as a command. Uses the interpreter named in the script's
    /// first line, or the shell if none is named.
    async fn run_file(
        &mut self,
        path: String,
        argv: Vec<String>,
        env: Vec<(String, String)>,
    ) -> Flow<u8> {
        let name = argv.first().cloned().unwrap_or_default();
        let refused = |message| Err(Stop::Failed { status: 126, message });
        let text = match self.stat(&path).await.map(|stat| stat.kind) {
            Some(EntryKind::Folder) => refused(format!("{name}: Is a directory")),
            Some(EntryKind::File) | None => self.script(&path, &name).await,
            Some(_) => refused(format!("{name}: cannot execute")),
        };
        let text = match text {
            Ok(text) => text,
            Err(stop) => return self.report_failure(stop).await,
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
        if interpreter.is_empty() || SHELLS.contains(&interpreter.as_str()) {
            return self.run_script(text, argv, env).await;
        }
        words.push(path);
        words.extend(argv.into_iter().skip(1));
        self.enter_level()?;
        let ended = self.external(words, env).await;
        self.execution.depth -= 1;
        Ok(ended?.status().0)
    }

    /// Reads a script from the run's files. `shown` is the path as the user wrote it.
    pub(crate) async fn script(&mut self, path: &str, shown: &str) -> Attempt<String> {
        let limit = self.run.bounds.script;
        let path = self.path(path);
        let read = match self.check_inside(shown, false).await {
            Ok(()) => {
                self.on_files(move |files| Ok(files.read_at(&path, 0, limit as u64 + 1)?)).await
            }
            Err(fault) => Err(fault),
        };
        let (status, message) = match read {
            Ok(text) if text.len() > limit => {
                (126, format!("{shown}: the script is longer than {}", amount(limit)))
            }
            Ok(text) if text.iter().take(512).any(|byte| *byte == 0) => {
                (126, format!("{shown}: cannot execute binary file"))
            }
            Ok(text) => return Ok(String::from_utf8_lossy(&text).into_owned()),
            Err(fault) => (127, fault.about(shown)),
        };
        Err(Stop::Failed { status, message })
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
        self.count_command()?;
        for (name, value) in &env {
            shell.preset(name, value, true);
        }
        let cwd = shell.folders.current.clone();
        shell.preset("PWD", &cwd, true);
        Ok(shell)
    }

    /// Runs a script in `shell` and returns its status.
    async fn run_in(&mut self, mut shell: Interpreter, text: String) -> Flow<u8> {
        let list = match parse::parse(&text, 1, &self.run.trees) {
            Ok(list) => list,
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
    async fn run_shell(&mut self, words: Vec<String>, env: Vec<(String, String)>) -> Flow<u8> {
        let mut shell = self.new_shell(env)?;
        match self.prepare_shell(&mut shell, words).await {
            Ok(Some(text)) => self.run_in(shell, text).await,
            Ok(None) => Ok(0),
            Err(stop) => self.report_failure(stop).await,
        }
    }

    /// Applies the words of `sh` or `bash` to a new shell. Returns the source of the script, or
    /// `None` if there is nothing to run.
    async fn prepare_shell(
        &mut self,
        shell: &mut Interpreter,
        words: Vec<String>,
    ) -> Attempt<Option<String>> {
        let mut words = words.into_iter().peekable();
        let Some(options) = self.shell_options(shell, &mut words).await? else { return Ok(None) };
        let text = self.shell_script(shell, options, &mut words).await?;
        shell.parameters.arguments = self.positional(words)?;
        Ok(Some(text))
    }

    /// Parses the options of `sh` or `bash`, up to the first operand. Returns `None` after
    /// `--version`.
    async fn shell_options(
        &mut self,
        shell: &mut Interpreter,
        words: &mut Words,
    ) -> Attempt<Option<ShellOptions>> {
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
                    return Ok(None);
                }
                continue;
            }
            let on = word.starts_with('-');
            for letter in word.chars().skip(1) {
                let set = match letter {
                    'c' => {
                        options.command = true;
                        Ok(())
                    }
                    's' => {
                        options.from_input = true;
                        Ok(())
                    }
                    'i' | 'l' | 'p' | 'r' => Ok(()),
                    'o' | 'O' => words.next().map_or(Ok(()), |name| shell.set_option(&name, on)),
                    letter => shell.set_letter(letter, on),
                };
                set.map_err(|wrong| usage(format!("bash: {wrong}")))?;
            }
        }
        Ok(Some(options))
    }

    /// Returns the source of the script.
    async fn shell_script(
        &mut self,
        shell: &mut Interpreter,
        options: ShellOptions,
        words: &mut Words,
    ) -> Attempt<String> {
        if options.command {
            let missing = || usage("bash: -c: option requires an argument");
            let text = words.next().ok_or_else(missing)?;
            if let Some(name) = words.next() {
                shell.parameters.name = name.into();
            }
            return Ok(text);
        }
        if let Some(path) = words.next_if(|_| !options.from_input) {
            shell.parameters.name = path.as_str().into();
            return self.script(&path, &path).await;
        }
        let (text, over) = match self.descriptors.open.get(&0).cloned() {
            Some(stream) => self.read_whole(&stream).await?,
            None => (Vec::new(), false),
        };
        if over || text.len() > self.run.bounds.script {
            let message = "bash: the script is too long".to_owned();
            return Err(Stop::Failed { status: 126, message });
        }
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}

/// A [`Spawn`] that runs each command in its own shell.
struct Spawner {
    run: Arc<Run>,
    depth: u32,
}

impl Spawn for Spawner {
    fn spawn(&self, command: command::Command, timeout: Option<Duration>) -> BoxFuture<'_, Status> {
        let task = Task::start(run_spawned(Arc::clone(&self.run), self.depth, command));
        async move {
            let ended = match timeout {
                Some(timeout) => match tokio::time::timeout(timeout, task.finish()).await {
                    Ok(ended) => ended,
                    Err(_) => return Status::TIMED_OUT,
                },
                None => task.finish().await,
            };
            ended.unwrap_or(Status::CANNOT_RUN)
        }
        .boxed()
    }
}

/// Runs a command in its own shell and returns its status.
async fn run_spawned(run: Arc<Run>, depth: u32, command: command::Command) -> Status {
    let mut shell = Interpreter::new(run, command.fds.iter().cloned().collect());
    shell.execution.depth = depth;
    shell.lifecycle.subshell = true;
    shell.folders.current = command.cwd.clone();
    for (name, value) in &command.env {
        shell.preset(name, value, true);
    }
    if shell.enter_level().is_ok() {
        let ended = shell.external(command.argv, command.env).await;
        shell.last.status = ended.map_or(shell.last.status, |ended| ended.status().0);
    }
    Status(shell.last.status)
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
