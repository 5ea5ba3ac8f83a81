//! The table of the builtins: their names, and the sentences that `help` prints for them.

/// The builtins, sorted by name, each with a sentence for `help`.
pub(crate) const TABLE: &[(&str, &str)] = &[
    (".", "runs a script in this shell"),
    (":", "does nothing, successfully"),
    ("[", "tests files, texts and numbers, up to `]`"),
    ("alias", "defines aliases; scripts do not expand them"),
    ("break", "leaves a loop"),
    ("builtin", "runs a builtin, even if a function has its name"),
    ("cd", "changes the working folder"),
    ("chmod", "accepted for existing files: files have no modes, and scripts run without one"),
    ("command", "runs a command, even if a function has its name; -v prints the meaning of a name"),
    ("continue", "goes on with the next iteration of a loop"),
    ("declare", "sets attributes of variables: -a -A -i -l -u -n -r -x -g -p -f"),
    ("dirs", "lists the folders of pushd"),
    ("disown", "accepted: jobs end with the line"),
    ("echo", "prints its arguments: -n -e -E"),
    ("eval", "runs its arguments as a script"),
    ("exec", "makes redirections permanent; with a command, runs it as the last one"),
    ("exit", "ends the shell"),
    ("export", "exports variables to commands"),
    ("false", "does nothing, unsuccessfully"),
    ("getopts", "parses options of the arguments"),
    ("hash", "accepted: commands have no paths to remember"),
    ("help", "lists builtins and commands, or describes a builtin"),
    ("jobs", "lists background jobs"),
    ("kill", "ends background jobs: %1, or the number of $!"),
    ("let", "evaluates arithmetic"),
    ("local", "creates local variables of a function"),
    ("mapfile", "reads lines into an array: -t -n -s -O -d -u"),
    ("popd", "returns to the folder before pushd"),
    ("printf", "prints its arguments by a format: -v"),
    ("pushd", "changes the folder and remembers the current one"),
    ("pwd", "prints the working folder"),
    ("read", "reads a line into variables: -r -a -d -n -N -p -s -t -u"),
    ("readarray", "same as mapfile"),
    ("readonly", "makes variables read-only"),
    ("return", "leaves a function or a sourced script"),
    ("set", "sets options and arguments: -e -u -x -f -C -n -a, -o pipefail"),
    ("shift", "drops the first arguments"),
    ("shopt", "sets options: nullglob globstar extglob dotglob nocaseglob nocasematch"),
    ("source", "runs a script in this shell"),
    ("test", "tests files, texts and numbers"),
    ("times", "prints the processor time used"),
    ("trap", "runs a script when the shell ends (EXIT) or a command fails (ERR)"),
    ("true", "does nothing, successfully"),
    ("type", "prints the meaning of a name"),
    ("typeset", "same as declare"),
    ("ulimit", "accepted: the shell has limits of its own"),
    ("umask", "accepted: files have no modes"),
    ("unalias", "removes aliases"),
    ("unset", "removes variables and functions"),
    ("wait", "waits for background jobs"),
];

/// Returns true if `name` is the name of a builtin.
pub(crate) fn is_builtin(name: &str) -> bool {
    TABLE.binary_search_by(|(known, _)| (*known).cmp(name)).is_ok()
}

/// Returns the names of all builtins, sorted.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted() {
        assert!(TABLE.is_sorted_by_key(|(name, _)| name));
        assert!(is_builtin("[") && is_builtin("wait") && !is_builtin("cat"));
    }
}
