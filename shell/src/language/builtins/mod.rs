//! The builtins: commands that the shell runs itself.

mod arguments;
mod declare;
mod flow;
mod names;
mod options;
mod printf;
mod read;

use wattle_capability::files::EntryKind;

use super::escape::{Dialect, unescape};
use super::interpreter::{Attempt, Flow, Interpreter, Stop, usage};
use super::variables::{ExpandedWord, texts};
pub(super) use arguments::Arguments;
use arguments::after_dashes;
pub(crate) use names::help_text;

macro_rules! builtins {
    ($shell:ident, $given:ident; $($name:literal $sentence:literal => $run:expr;)*) => {
        /// The builtins, sorted by name, each with the sentence that `help` prints for it.
        pub(crate) const BUILTINS: &[(&str, &str)] = &[$(($name, $sentence)),*];

        impl Interpreter {
            async fn run_builtin(&mut self, name: &str, $given: Vec<ExpandedWord>) -> Attempt<u8> {
                let $shell = self;
                match name {
                    $($name => $run,)*
                    _ => Err("not a shell builtin".into()),
                }
            }
        }
    };
}

// Each row is a builtin: its name, the sentence that `help` prints for it, and its function.
builtins! {
    shell, given;
    "." "runs a script in this shell" => shell.source(texts(given)).await;
    ":" "does nothing, successfully" => Ok(0);
    "[" "tests files, texts and numbers, up to `]`" => shell.test_builtin("[", texts(given)).await;
    "alias" "defines aliases; scripts do not expand them"
        => shell.alias("alias", texts(given)).await;
    "break" "leaves a loop" => shell.break_or_continue("break", &texts(given)).await;
    "builtin" "runs a builtin, even if a function has its name"
        => shell.command_builtin("builtin", texts(given)).await;
    "cd" "changes the working folder" => shell.cd(texts(given)).await;
    "chmod" "accepted for existing files: files have no modes, and scripts run without one"
        => shell.chmod(texts(given)).await;
    "command" "runs a command, even if a function has its name; -v prints the meaning of a name"
        => shell.command_builtin("command", texts(given)).await;
    "continue" "goes on with the next iteration of a loop"
        => shell.break_or_continue("continue", &texts(given)).await;
    "declare" "sets attributes of variables: -a -A -i -l -u -n -r -x -g -p -f"
        => shell.declare("declare", given).await;
    "dirs" "lists the folders of pushd" => shell.folder_stack("dirs", texts(given)).await;
    "disown" "accepted: jobs end with the line" => Ok(0);
    "echo" "prints its arguments: -n -e -E" => shell.echo(texts(given)).await;
    "eval" "runs its arguments as a script" => shell.eval(texts(given)).await;
    "exec" "makes redirections permanent; with a command, runs it as the last one"
        => shell.command_builtin("exec", texts(given)).await;
    "exit" "ends the shell" => shell.return_or_exit("exit", &texts(given)).await;
    "export" "exports variables to commands" => shell.declare("export", given).await;
    "false" "does nothing, unsuccessfully" => Ok(1);
    "getopts" "parses options of the arguments" => shell.getopts(texts(given)).await;
    "hash" "accepted: commands have no paths to remember" => Ok(0);
    "help" "lists builtins and commands, or describes a builtin" => shell.help(texts(given)).await;
    "jobs" "lists background jobs: -p -r -s" => shell.jobs_builtin(texts(given)).await;
    "kill" "ends background jobs: %1, or the number of $!" => shell.kill(texts(given)).await;
    "let" "evaluates arithmetic" => shell.let_builtin(&texts(given)).await;
    "local" "creates local variables of a function" => shell.declare("local", given).await;
    "mapfile" "reads lines into an array: -t -n -s -O -d -u -C -c" => shell.mapfile(texts(given)).await;
    "popd" "returns to the folder before pushd" => shell.folder_stack("popd", texts(given)).await;
    "printf" "prints its arguments by a format: -v" => shell.printf(texts(given)).await;
    "pushd" "changes the folder and remembers the current one"
        => shell.folder_stack("pushd", texts(given)).await;
    "pwd" "prints the working folder" => shell.pwd_builtin(texts(given)).await;
    "read" "reads a line into variables: -r -a -d -n -N -p -s -t -u"
        => shell.read_builtin(texts(given)).await;
    "readarray" "same as mapfile" => shell.mapfile(texts(given)).await;
    "readonly" "makes variables read-only" => shell.declare("readonly", given).await;
    "return" "leaves a function or a sourced script"
        => shell.return_or_exit("return", &texts(given)).await;
    "set" "sets options and arguments: -e -u -x -f -C -n -a, -o pipefail"
        => shell.set_builtin(texts(given)).await;
    "shift" "drops the first arguments" => shell.shift(&texts(given));
    "shopt" "sets options: nullglob globstar extglob dotglob nocaseglob nocasematch"
        => shell.shopt(texts(given)).await;
    "source" "runs a script in this shell" => shell.source(texts(given)).await;
    "test" "tests files, texts and numbers" => shell.test_builtin("test", texts(given)).await;
    "times" "prints the processor time used"
        => Ok(shell.print("0m0.000s 0m0.000s\n0m0.000s 0m0.000s\n").await?);
    "trap" "runs a script when the shell ends (EXIT) or a command fails (ERR)"
        => shell.trap(texts(given)).await;
    "true" "does nothing, successfully" => Ok(0);
    "type" "prints the meaning of a name" => shell.type_builtin(texts(given)).await;
    "typeset" "same as declare" => shell.declare("typeset", given).await;
    "ulimit" "accepted: the shell has limits of its own" => Ok(0);
    "umask" "accepted: files have no modes" => Ok(0);
    "unalias" "removes aliases" => shell.alias("unalias", texts(given)).await;
    "unset" "removes variables and functions" => shell.unset(texts(given)).await;
    "wait" "waits for background jobs" => shell.wait(texts(given)).await;
}

/// Returns true if `name` is the name of a builtin.
pub(crate) fn is_builtin(name: &str) -> bool {
    BUILTINS.binary_search_by(|(known, _)| (*known).cmp(name)).is_ok()
}

/// Returns the names of all builtins, sorted.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    BUILTINS.iter().map(|(name, _)| *name)
}

impl Interpreter {
    /// Runs a builtin and returns its status. Reports its failure.
    pub(crate) async fn builtin(&mut self, name: &str, given: Vec<ExpandedWord>) -> Flow<u8> {
        match self.run_builtin(name, given).await {
            Ok(status) => Ok(status),
            Err(Stop::Jump(jump)) => Err(jump),
            Err(Stop::Failed { status, message }) => {
                let name = match name {
                    "." => "source",
                    "readarray" => "mapfile",
                    name => name,
                };
                self.failed(status, &format!("{name}: {message}")).await
            }
            Err(Stop::Abandoned(message)) => Err(self.abandon(&format!("{name}: {message}")).await),
        }
    }

    async fn echo(&mut self, words: Vec<String>) -> Attempt<u8> {
        let mut newline = true;
        let mut escapes = self.options.xpg_echo;
        let mut words = words.into_iter().peekable();
        while let Some(word) = words.peek() {
            let letters = word.strip_prefix('-').filter(|letters| {
                !letters.is_empty() && letters.chars().all(|c| matches!(c, 'n' | 'e' | 'E'))
            });
            let Some(letters) = letters else { break };
            for letter in letters.chars() {
                match letter {
                    'n' => newline = false,
                    'e' => escapes = true,
                    _ => escapes = false,
                }
            }
            words.next();
        }
        let text = words.collect::<Vec<_>>().join(" ");
        let mut bytes = if escapes {
            let (bytes, ended) = unescape(&text, Dialect::Echo);
            newline &= !ended;
            bytes
        } else {
            text.into_bytes()
        };
        if newline {
            bytes.push(b'\n');
        }
        Ok(self.print(bytes).await?)
    }

    async fn cd(&mut self, words: Vec<String>) -> Attempt<u8> {
        let mut words = Arguments::parse(words, "LPe@")?.words.into_iter();
        let word = words.next();
        if words.next().is_some() {
            return Err("too many arguments".into());
        }
        match word.as_deref() {
            None => {
                let home = self.variable("HOME").ok_or("HOME not set")?;
                self.enter(&home).await?;
            }
            Some("-") => {
                let old = self.variable("OLDPWD").ok_or("OLDPWD not set")?;
                self.enter(&old).await?;
                return self.pwd().await;
            }
            Some(path) => self.enter(path).await?,
        }
        Ok(0)
    }

    async fn pwd_builtin(&mut self, words: Vec<String>) -> Attempt<u8> {
        Arguments::parse(words, "LP")?;
        self.pwd().await
    }

    async fn pwd(&mut self) -> Attempt<u8> {
        Ok(self.print(format!("{}\n", self.folders.current)).await?)
    }

    /// Changes the working directory.
    async fn enter(&mut self, path: &str) -> Attempt {
        let inside = self.check_inside(path, false).await;
        inside.map_err(|fault| fault.about(path))?;
        let full = self.path(path);
        let looked = full.clone();
        let found = self.on_files(move |files| Ok(files.stat(&looked)?)).await;
        if found.map_err(|fault| fault.about(path))?.kind != EntryKind::Folder {
            return Err(format!("{path}: Not a directory").into());
        }
        let old = std::mem::replace(&mut self.folders.current, full.clone());
        self.set("OLDPWD", old).await?;
        self.set("PWD", full).await
    }

    /// Runs `pushd`, `popd` or `dirs`.
    async fn folder_stack(&mut self, name: &str, words: Vec<String>) -> Attempt<u8> {
        let word = words.into_iter().find(|word| !word.starts_with('-'));
        match name {
            "pushd" => {
                let here = self.folders.current.clone();
                let path = match word {
                    Some(path) => path,
                    None if self.folders.stack.is_empty() => {
                        return Err("no other directory".into());
                    }
                    None => self.folders.stack.remove(0),
                };
                if self.folders.stack.len() >= 100 {
                    return Err("too many folders are remembered".into());
                }
                self.enter(&path).await?;
                self.folders.stack.insert(0, here);
            }
            "popd" => {
                if self.folders.stack.is_empty() {
                    return Err("directory stack empty".into());
                }
                let path = self.folders.stack.remove(0);
                self.enter(&path).await?;
            }
            _ => {}
        }
        let all = std::iter::once(&self.folders.current)
            .chain(&self.folders.stack)
            .cloned()
            .collect::<Vec<_>>()
            .join(" ");
        Ok(self.print(format!("{all}\n")).await?)
    }

    /// Runs `chmod`, which only reports missing files. The builtin exists because scripts often
    /// call `chmod` before they run another script.
    async fn chmod(&mut self, words: Vec<String>) -> Attempt<u8> {
        let paths: Vec<String> = words
            .into_iter()
            .filter(|word| {
                !(word.starts_with('-')
                    && word.len() > 1
                    && !word.starts_with("-x")
                    && !word.starts_with("-w")
                    && !word.starts_with("-r"))
            })
            .skip(1)
            .collect();
        if paths.is_empty() {
            return Err("missing operand".into());
        }
        let mut status = 0;
        for path in paths {
            if self.stat(&path).await.is_none() {
                self.report(&format!("chmod: cannot access '{path}': No such file or directory"))
                    .await;
                status = 1;
            }
        }
        Ok(status)
    }

    async fn wait(&mut self, words: Vec<String>) -> Attempt<u8> {
        let given = Arguments::parse(words, "fnp:")?;
        let mut status = 0;
        let mut last = None;
        if given.has('n') {
            last = self.jobs.wait_any().await;
            status = last.map_or(127, |ended| ended.status);
        } else if given.words.is_empty() {
            self.jobs.wait_all().await;
        } else {
            for word in &given.words {
                last = self.jobs.wait_for(word).await;
                status = last.map_or(127, |ended| ended.status);
                if last.is_none() {
                    self.report(&format!("wait: {word}: no such job of this shell")).await;
                }
            }
        }
        if let Some(name) = given.value('p') {
            self.unset_one(name, false)?;
            if let Some(ended) = last {
                self.set(name, ended.pid.to_string()).await?;
            }
        }
        Ok(status)
    }

    async fn jobs_builtin(&mut self, words: Vec<String>) -> Attempt<u8> {
        let given = Arguments::parse(words, "lpnrs")?;
        // No job is ever stopped.
        if given.has('s') {
            return Ok(0);
        }
        if given.has('p') {
            let pids = self.jobs.pids().await;
            return Ok(self
                .print(pids.iter().map(|pid| format!("{pid}\n")).collect::<String>())
                .await?);
        }
        let lines = self.jobs.lines(given.has('r')).await;
        for line in lines {
            self.print(format!("{line}\n")).await?;
        }
        Ok(0)
    }

    async fn kill(&mut self, words: Vec<String>) -> Attempt<u8> {
        let mut words = words.into_iter().peekable();
        let mut signal = String::new();
        match words.peek().map(String::as_str) {
            Some("-l") => return Ok(self.print("HUP INT QUIT KILL TERM\n").await?),
            Some("-s" | "-n") => {
                words.next();
                signal = words.next().unwrap_or_default();
            }
            Some(word) if word.starts_with('-') => {
                let name = word.trim_start_matches('-');
                let attached = name.strip_prefix(['s', 'n']).filter(|name| !name.is_empty());
                signal = attached.unwrap_or(name).to_owned();
                words.next();
            }
            _ => {}
        }
        let mut status = 0;
        for word in words {
            // Signal 0 only checks that the job is running.
            let found = if signal == "0" { self.jobs.has(&word) } else { self.jobs.kill(&word) };
            if !found {
                self.report(&format!(
                    "kill: ({word}) - No such process: only background jobs of this shell can be \
                     ended"
                ))
                .await;
                status = 1;
            }
        }
        Ok(status)
    }

    async fn getopts(&mut self, words: Vec<String>) -> Attempt<u8> {
        let mut words = Arguments::parse(words, "")?.words.into_iter();
        let (Some(letters), Some(name)) = (words.next(), words.next()) else {
            return Err(usage("usage: getopts optstring name [arg ...]"));
        };
        let given: Vec<String> = words.collect();
        let arguments = if given.is_empty() { self.parameters.words() } else { given };
        let silent = letters.starts_with(':');
        let position: usize =
            self.variable("OPTIND").and_then(|text| text.parse().ok()).unwrap_or(1).max(1);
        let word = arguments.get(position - 1).cloned().unwrap_or_default();
        if self.parameters.getopts_offset == 0 {
            if word == "--" {
                return self.options_end(&name, position + 1).await;
            }
            if word.len() < 2 || !word.starts_with('-') {
                return self.options_end(&name, position).await;
            }
            self.parameters.getopts_offset = 1;
        }
        let Some(letter) = word.chars().nth(self.parameters.getopts_offset) else {
            return self.options_end(&name, position).await;
        };
        self.parameters.getopts_offset += 1;
        let last = word.chars().count() <= self.parameters.getopts_offset;
        let takes =
            letters.trim_start_matches(':').find(letter).filter(|_| letter != ':').map(|at| {
                letters
                    .trim_start_matches(':')
                    .get(at + letter.len_utf8()..)
                    .is_some_and(|rest| rest.starts_with(':'))
            });
        let mut found = letter.to_string();
        let mut argument = None;
        let mut next = position + usize::from(last);
        match takes {
            None => {
                found = "?".into();
                if silent {
                    argument = Some(letter.to_string());
                } else {
                    self.report(&format!("illegal option -- {letter}")).await;
                }
            }
            Some(false) => {}
            Some(true) if !last => {
                argument = Some(word.chars().skip(self.parameters.getopts_offset).collect());
                next = position + 1;
            }
            Some(true) => match arguments.get(position) {
                Some(value) => {
                    argument = Some(value.clone());
                    next = position + 2;
                }
                None => {
                    next = position + 1;
                    if silent {
                        found = ":".into();
                        argument = Some(letter.to_string());
                    } else {
                        found = "?".into();
                        self.report(&format!("option requires an argument -- {letter}")).await;
                    }
                }
            },
        }
        let letter = if next > position { 0 } else { self.parameters.getopts_offset };
        // `OPTARG` is unset if there is no argument. A readonly `OPTARG` keeps its value.
        let _ = self.variables.unset("OPTARG");
        for (name, text) in
            [("OPTIND", Some(next.to_string())), ("OPTARG", argument), (name.as_str(), Some(found))]
        {
            if let Some(text) = text {
                self.set(name, text).await?;
            }
        }
        self.parameters.getopts_offset = letter;
        Ok(0)
    }

    /// Sets `OPTIND` and the variable `name` to mark the end of the options. Returns status 1.
    async fn options_end(&mut self, name: &str, position: usize) -> Attempt<u8> {
        self.set("OPTIND", position.to_string()).await?;
        self.set(name, "?").await?;
        Ok(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted() {
        assert!(BUILTINS.is_sorted_by_key(|(name, _)| name));
        assert!(is_builtin("[") && is_builtin("wait") && !is_builtin("cat"));
    }
}
