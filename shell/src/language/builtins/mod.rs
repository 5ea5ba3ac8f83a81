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

use super::exec::simple_texts;
use super::expand::Given;
use super::interpreter::{Flow, Interpreter};

/// The builtins, each with a sentence for `help`.
const TABLE: &[(&str, &str)] = &[
    (".", "runs a script in this shell"),
    (":", "does nothing, with success"),
    ("[", "tests files, texts and numbers, up to `]`"),
    ("alias", "keeps names for commands; scripts do not expand them"),
    ("break", "leaves a loop"),
    ("builtin", "runs a builtin, whatever functions there are"),
    ("cd", "changes the working folder"),
    ("chmod", "accepted for files that are there: they have no modes, and scripts run without one"),
    ("command", "runs a command, whatever functions there are; -v tells what a name is"),
    ("continue", "goes on with the next turn of a loop"),
    ("declare", "sets attributes of variables: -a -A -i -l -u -n -r -x -g -p -f"),
    ("dirs", "lists the folders of pushd"),
    ("disown", "accepted: jobs end with the line"),
    ("echo", "writes its words: -n -e -E"),
    ("eval", "runs its words as a script"),
    ("exec", "keeps redirections; with a command, runs it as the last one"),
    ("exit", "ends the shell"),
    ("export", "hands variables to commands"),
    ("false", "does nothing, without success"),
    ("getopts", "reads options from the arguments"),
    ("hash", "accepted: commands have no places to remember"),
    ("help", "lists what there is, or says what one builtin does"),
    ("jobs", "lists background jobs"),
    ("kill", "ends background jobs: %1, or the number of $!"),
    ("let", "evaluates arithmetic"),
    ("local", "makes variables of a function's own"),
    ("mapfile", "reads lines into an array: -t -n -s -O -d -u"),
    ("popd", "goes back to the folder before pushd"),
    ("printf", "writes its words by a format: -v"),
    ("pushd", "changes the folder, and remembers this one"),
    ("pwd", "writes the working folder"),
    ("read", "reads a line into variables: -r -a -d -n -N -p -s -t -u"),
    ("readarray", "as mapfile"),
    ("readonly", "makes variables constant"),
    ("return", "leaves a function or a sourced script"),
    ("set", "sets options and arguments: -e -u -x -f -C -n -a, -o pipefail"),
    ("shift", "drops the first arguments"),
    ("shopt", "sets options: nullglob globstar extglob dotglob nocaseglob nocasematch"),
    ("source", "runs a script in this shell"),
    ("test", "tests files, texts and numbers"),
    ("times", "writes the time that was used"),
    ("trap", "runs a text when the shell ends (EXIT) or a command fails (ERR)"),
    ("true", "does nothing, with success"),
    ("type", "tells what a name is"),
    ("typeset", "as declare"),
    ("ulimit", "accepted: the shell has bounds of its own"),
    ("umask", "accepted: files have no modes"),
    ("unalias", "forgets aliases"),
    ("unset", "removes variables and functions"),
    ("wait", "waits for background jobs"),
];

/// Whether a name is a builtin.
pub(crate) fn is_builtin(name: &str) -> bool {
    TABLE.binary_search_by(|(known, _)| (*known).cmp(name)).is_ok()
}

/// The names of all builtins, sorted.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|(name, _)| *name)
}

impl Interpreter {
    /// Runs a builtin, and gives its status.
    pub(crate) async fn builtin(&mut self, name: &str, given: Vec<Given>) -> Flow<u8> {
        match name {
            "declare" | "typeset" | "local" | "export" | "readonly" => return self.declare(name, given).await,
            _ => {}
        }
        let words = simple_texts(given);
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
                let cwd = self.cwd.clone();
                self.out(format!("{cwd}\n")).await
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
            "times" => self.out("0m0.000s 0m0.000s\n0m0.000s 0m0.000s\n").await,
            _ => self.help(words).await,
        }
    }

    /// Tells what is wrong with how a builtin was called.
    async fn usage(&self, words: impl AsRef<str>) -> Flow<u8> {
        self.complain(words.as_ref()).await;
        Ok(2)
    }

    /// Tells why a builtin did not do it.
    async fn refuse(&self, words: impl AsRef<str>) -> Flow<u8> {
        self.complain(words.as_ref()).await;
        Ok(1)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_table_is_sorted() {
        assert!(super::TABLE.is_sorted_by_key(|(name, _)| name));
        assert!(super::is_builtin("[") && super::is_builtin("wait") && !super::is_builtin("cat"));
    }
}
