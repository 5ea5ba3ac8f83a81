//! The builtins: what the shell does itself. A row of the table is a name and what it does; the function is named in [`Interpreter::builtin`].

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
    /// Runs a builtin, and gives its status.
    pub(crate) async fn builtin(&mut self, name: &str, given: Vec<ExpandedWord>) -> Flow<u8> {
        match name {
            "declare" | "typeset" | "local" | "export" | "readonly" => return self.declare(name, given).await,
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
            "break" | "continue" => self.leave_loop(name, words).await,
            "return" | "exit" => self.leave(name, words).await,
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

    /// Tells what is wrong with how a builtin was called.
    async fn usage(&self, words: impl AsRef<str>) -> Flow<u8> {
        self.report(words.as_ref()).await;
        Ok(2)
    }

    /// Tells why a builtin did not do it.
    async fn refuse(&self, words: impl AsRef<str>) -> Flow<u8> {
        self.report(words.as_ref()).await;
        Ok(1)
    }
}
