//! The table of the builtins: their names, and a sentence on each for `help`.

/// The builtins, each with a sentence for `help`.
pub(crate) const TABLE: &[(&str, &str)] = &[
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted() {
        assert!(TABLE.is_sorted_by_key(|(name, _)| name));
        assert!(is_builtin("[") && is_builtin("wait") && !is_builtin("cat"));
    }
}
