//! Parses the inputs of a session.

use super::commands::{self, Command};
use super::open::QUOTES;
use crate::fault::Fault;

/// A parsed input.
pub(super) enum Entry {
    /// An input without text.
    Nothing,
    /// A message for the model.
    Message(String),
    /// A program to run.
    Program(String),
    /// A line of the shell to run.
    Shell(String),
    /// A slash command, with its arguments.
    Command(&'static Command, Vec<String>),
}

/// Parses an input.
///
/// # Errors
/// If the input is an unknown command, or a command with a wrong number of arguments.
pub(super) fn read(input: &str) -> Result<Entry, Fault> {
    let text = input.trim();
    if text.is_empty() {
        return Ok(Entry::Nothing);
    }
    if text.starts_with('(') {
        return Ok(Entry::Program(input.to_owned()));
    }
    if let Some(line) = text.strip_prefix('!') {
        let line = line.trim();
        return if line.is_empty() {
            Err(Fault::usage("`!` needs a line of the shell").hint("for example `!ls -l`"))
        } else {
            Ok(Entry::Shell(line.to_owned()))
        };
    }
    if let Some(command) = commands::find(&format!("/{text}")).filter(|own| own.leaves()) {
        return Ok(Entry::Command(command, Vec::new()));
    }
    if let Some(quoted) = text.strip_prefix(QUOTES).and_then(|rest| rest.strip_suffix(QUOTES)) {
        let message = quoted.trim();
        return Ok(if message.is_empty() {
            Entry::Nothing
        } else {
            Entry::Message(message.to_owned())
        });
    }
    match command_word(text) {
        Some(word) => {
            let command = commands::find(word).ok_or_else(|| commands::unknown(word))?;
            let arguments = words(text.strip_prefix(word).unwrap_or_default())?;
            command.check(&arguments)?;
            Ok(Entry::Command(command, arguments))
        }
        None => Ok(Entry::Message(text.to_owned())),
    }
}

/// Returns the first word of an input if that word has the form of a command, and `None` otherwise.
/// A word such as `/etc/hosts` is a path, and an input that begins with a path is a message.
fn command_word(text: &str) -> Option<&str> {
    let word = text.split_whitespace().next()?;
    let name = word.strip_prefix('/')?;
    (!name.contains('/')).then_some(word)
}

/// Splits a line into words at whitespace, except inside quotes. Inside `'…'` every character is
/// literal. Inside `"…"` the escapes `\"`, `\\`, `\n` and `\t` are replaced.
fn words(line: &str) -> Result<Vec<String>, Fault> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('\\', Some('"')) => word.get_or_insert_default().push_str(&escaped(chars.next())),
            (c, Some(_)) => word.get_or_insert_default().push(c),
            ('"' | '\'', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (c, None) if c.is_whitespace() => words.extend(word.take()),
            (c, None) => word.get_or_insert_default().push(c),
        }
    }
    if let Some(open) = quote {
        return Err(Fault::usage(format!("the quote {open} is not closed"))
            .hint(format!("end the word with {open}")));
    }
    words.extend(word);
    Ok(words)
}

/// Returns the text that an escape denotes. An unknown escape is returned unchanged.
fn escaped(c: Option<char>) -> String {
    match c {
        Some('n') => "\n".to_owned(),
        Some('t') => "\t".to_owned(),
        Some(c @ ('"' | '\\')) => c.to_string(),
        other => other.map_or_else(|| "\\".to_owned(), |c| format!("\\{c}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Describes a parsed input.
    fn meaning(input: &str) -> String {
        match read(input) {
            Ok(Entry::Nothing) => "nothing".to_owned(),
            Ok(Entry::Message(text)) => format!("message {text:?}"),
            Ok(Entry::Program(text)) => format!("program {text:?}"),
            Ok(Entry::Shell(line)) => format!("shell {line:?}"),
            Ok(Entry::Command(command, args)) => format!("{} {args:?}", command.name),
            Err(fault) => fault.to_string(),
        }
    }

    #[test]
    fn inputs_are_parsed() {
        for (input, expected) in [
            ("  \n ", "nothing"),
            ("\"\"\" \n \"\"\"", "nothing"),
            (" what's up? ", "message \"what's up?\""),
            ("\"\"\"\ntwo\nlines\n\"\"\"", "message \"two\\nlines\""),
            ("/etc/hosts has what?", "message \"/etc/hosts has what?\""),
            (" (i32.const 0)", "program \" (i32.const 0)\""),
            ("!ls -l", "shell \"ls -l\""),
            ("exit", "/exit []"),
            (" quit ", "/quit []"),
            ("new", "message \"new\""),
            ("quit smoking", "message \"quit smoking\""),
            ("/help", "/help []"),
            ("/help  http.get", "/help [\"http.get\"]"),
            ("/help count words", "/help [\"count\", \"words\"]"),
            (" /quit ", "/quit []"),
            ("/run text_count", "/run [\"text_count\"]"),
            ("/run echo a  b", "/run [\"echo\", \"a\", \"b\"]"),
            (
                r#"/run echo "a b" 'c"d' e"f g"h "" "\"\\\n\x""#,
                r#"/run ["echo", "a b", "c\"d", "ef gh", "", "\"\\\n\\x"]"#,
            ),
        ] {
            assert_eq!(meaning(input), expected, "{input:?}");
        }
    }

    #[test]
    fn invalid_commands_are_errors() {
        for (input, words) in [
            ("/reset-all", "there is no command `/reset-all`"),
            ("/now", "did you mean `/new`?"),
            ("! ", "`!` needs a line of the shell"),
            ("/hlep", "did you mean `/help`?"),
            ("/", "there is no command `/`"),
            ("/run", "`/run` needs `NAME`"),
            ("/quit now", "`/quit` takes no arguments"),
            ("/undo 3 4", "takes no arguments"),
            ("/run echo \"a", "the quote \" is not closed"),
            ("/run echo it's", "the quote ' is not closed"),
        ] {
            let error = meaning(input);
            assert!(error.contains(words), "{input:?}: {error}");
        }
    }
}
