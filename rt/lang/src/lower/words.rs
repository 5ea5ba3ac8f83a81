//! Facts about a program that depend only on its atoms.

use std::cell::OnceCell;
use std::collections::HashSet;

use crate::syntax::tree::Tree;

/// Facts about a program. Each fact is derived from the program's atoms when it is first needed.
pub(crate) struct Words<'a, 's> {
    tree: &'a Tree<'s>,
    prefix: OnceCell<String>,
    raw: OnceCell<bool>,
    wat_variables: OnceCell<bool>,
}

impl<'a, 's> Words<'a, 's> {
    /// Creates the facts about a program. No fact has been derived yet.
    pub(crate) fn of(tree: &'a Tree<'s>) -> Words<'a, 's> {
        let (prefix, raw, wat_variables) = (OnceCell::new(), OnceCell::new(), OnceCell::new());
        Words { tree, prefix, raw, wat_variables }
    }

    /// Returns the prefix of generated names. No name in the source starts with it.
    pub(crate) fn prefix(&self) -> &str {
        self.prefix.get_or_init(|| {
            let taken = self.tree.dotted_atoms().filter_map(|word| word.strip_prefix("$."));
            free_prefix(&taken.collect::<Vec<_>>())
        })
    }

    /// Returns true if the program accesses its memory directly, so a number may be an address.
    pub(crate) fn raw(&self) -> bool {
        *self.raw.get_or_init(|| self.tree.dotted_atoms().any(accesses_memory))
    }

    /// Returns true if the program reads variables with WAT instructions, which may keep the
    /// address of a string in ways that lowering does not detect.
    pub(crate) fn wat_variables(&self) -> bool {
        let reads = |word: &str| matches!(word, "local.get" | "local.tee" | "global.get");
        *self.wat_variables.get_or_init(|| self.tree.dotted_atoms().any(reads))
    }
}

/// Returns true if a word names a WAT instruction that accesses memory, or the host function that
/// allocates memory.
fn accesses_memory(word: &str) -> bool {
    let bytes = word.as_bytes();
    let is_access = |(at, byte): (usize, &u8)| {
        let rest = bytes.get(at + 1..).unwrap_or(&[]);
        *byte == b'.' && (rest.starts_with(b"load") || rest.starts_with(b"store"))
    };
    match bytes.first() {
        Some(b'm') if word.starts_with("memory.") => true,
        Some(b's' | b'$') if word.trim_start_matches('$').starts_with("sys.alloc") => true,
        _ => bytes.iter().enumerate().any(is_access),
    }
}

/// Returns a prefix for generated names: `$.`, or `$.N.` if any names in the source start with
/// `$.`. `taken` contains these names without the `$.`.
fn free_prefix(taken: &[&str]) -> String {
    if taken.is_empty() {
        return "$.".to_owned();
    }
    let digits =
        |rest: &str| rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let number = |rest: &str| rest.get(..digits(rest)).and_then(|digits| digits.parse().ok());
    let taken: HashSet<u32> = taken.iter().filter_map(|rest| number(rest)).collect();
    // Some number is always free. The dot after it distinguishes `$.1` from `$.10`.
    let free = (0..).find(|number| !taken.contains(number)).unwrap_or_default();
    format!("$.{free}.")
}
