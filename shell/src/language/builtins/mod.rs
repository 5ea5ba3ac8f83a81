//! The builtins: commands that the shell runs itself. Their names are in `builtin_table`.

mod declare;
mod echo;
mod flow;
mod folders;
mod getopts;
mod help;
mod options;
mod printf;
mod process;
mod read;
mod test;

pub(crate) use help::help as help_text;

use super::interpreter::{Flow, Interpreter};
use super::setting::{ExpandedWord, texts};

impl Interpreter {
    /// Runs a builtin and returns its status.
    pub(crate) async fn builtin(&mut self, name: &str, given: Vec<ExpandedWord>) -> Flow<u8> {
        match name {
            "declare" | "typeset" | "local" | "export" | "readonly" => {
                return self.declare(name, given).await;
            }
            _ => {}
        }
        let words = texts(given);
        match name {
            ":" | "true" | "hash" | "umask" | "ulimit" | "disown" => Ok(0),
            "false" => Ok(1),
            "echo" => self.echo(words).await,
            "printf" => self.printf(words).await,
            "test" | "[" => self.test_builtin(name, words).await,
            "." | "source" => self.source(words).await,
            "eval" => self.eval(words).await,
            "exec" | "command" | "builtin" => self.command_builtin(name, words).await,
            "break" | "continue" => self.break_or_continue(name, words).await,
            "return" | "exit" => self.return_or_exit(name, words).await,
            "shift" => self.shift(words).await,
            "let" => self.let_builtin(words).await,
            "cd" => self.cd(words).await,
            "pwd" => {
                let cwd = self.folders.current.clone();
                self.print(format!("{cwd}\n")).await
            }
            "pushd" | "popd" | "dirs" => self.folder_stack(name, words).await,
            "chmod" => self.chmod(words).await,
            "read" => self.read(words).await,
            "mapfile" | "readarray" => self.mapfile(words).await,
            "getopts" => self.getopts(words).await,
            "set" => self.set_builtin(words).await,
            "shopt" => self.shopt(words).await,
            "unset" => self.unset(words).await,
            "trap" => self.trap(words).await,
            "type" => self.type_builtin(words).await,
            "alias" | "unalias" => self.alias(name, words).await,
            "wait" => self.wait(words).await,
            "jobs" => self.jobs_builtin().await,
            "kill" => self.kill(words).await,
            "times" => self.print("0m0.000s 0m0.000s\n0m0.000s 0m0.000s\n").await,
            _ => self.help(words).await,
        }
    }

    /// Reports a usage error. Returns status 2.
    async fn usage_error(&self, message: impl AsRef<str>) -> Flow<u8> {
        self.report(message.as_ref()).await;
        Ok(2)
    }

    /// Reports a failure. Returns status 1.
    async fn failure(&self, message: impl AsRef<str>) -> Flow<u8> {
        self.report(message.as_ref()).await;
        Ok(1)
    }
}
