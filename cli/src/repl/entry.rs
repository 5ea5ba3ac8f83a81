//! The meaning of an input.

use crate::fault::Fault;

use super::open::QUOTES;

/// The request in one input.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// Nothing: the input is blank.
    Nothing,
    /// A message for the model.
    Message(String),
    /// A program to run.
    Program(String),
    /// A command of the session itself.
    Command(Command),
}

/// The commands.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Command {
    /// Show the commands, or the manual's text about a topic.
    Help { topic: Option<String> },
    /// Run a program of the catalog.
    Run { name: String, args: Vec<String> },
    /// List the catalog.
    Catalog,
    /// Show the tokens of the session's messages.
    Cost,
    /// Leave.
    Quit,
}

/// The syntax of the commands, and their descriptions.
pub(super) const COMMANDS: &[(&str, &str)] = &[
    (
        "/help [TOPIC]",
        "show this, or the manual for a function, a program, an error code, or words",
    ),
    ("/run NAME ARG…", "run a program of the catalog"),
    ("/catalog", "list the programs of the catalog"),
    ("/cost", "show the tokens of the session and their cost"),
    ("/quit", "leave; so does Ctrl-D"),
];

/// Parses an input.
///
/// # Errors
/// If it is an unknown command, or one with a missing argument.
pub(super) fn read(input: &str) -> Result<Entry, Fault> {
    let text = input.trim();
    if text.is_empty() {
        return Ok(Entry::Nothing);
    }
    if text.starts_with('(') {
        return Ok(Entry::Program(input.to_owned()));
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
        Some(word) => command(word, text).map(Entry::Command),
        None => Ok(Entry::Message(text.to_owned())),
    }
}

/// Returns the first word of a text if it is a command. A word such as `/etc/hosts` is a path, and
/// a text that begins with a path is a message.
fn command_word(text: &str) -> Option<&str> {
    let word = text.split_whitespace().next()?;
    let name = word.strip_prefix('/')?;
    (!name.contains('/')).then_some(word)
}

fn command(word: &str, text: &str) -> Result<Command, Fault> {
    let mut rest = words(text.strip_prefix(word).unwrap_or_default())?.into_iter();
    let command = match word {
        "/help" => {
            let topic: Vec<String> = rest.collect();
            return Ok(Command::Help { topic: (!topic.is_empty()).then(|| topic.join(" ")) });
        }
        "/catalog" => Command::Catalog,
        "/cost" => Command::Cost,
        "/quit" => Command::Quit,
        "/run" => {
            let name = rest.next().ok_or_else(|| {
                Fault::usage("`/run` needs the name of a program")
                    .hint("`/catalog` lists the programs")
            })?;
            return Ok(Command::Run { name, args: rest.collect() });
        }
        other => {
            let names: Vec<&str> =
                COMMANDS.iter().filter_map(|(form, _)| form.split(' ').next()).collect();
            let fault = Fault::usage(format!("there is no command `{other}`"));
            return Err(fault.hint(format!("the commands are {}", names.join(", "))));
        }
    };
    match rest.next() {
        Some(_) => Err(Fault::usage(format!("`{word}` takes no arguments"))),
        None => Ok(command),
    }
}

/// Splits a line into words at whitespace, except inside quotes. Between `'` every character is
/// literal. Between `"` the escapes `\"`, `\\`, `\n` and `\t` are replaced.
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

/// Returns the character that an escape denotes.
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

    fn run(name: &str, args: &[&str]) -> Entry {
        let args = args.iter().map(ToString::to_string).collect();
        Entry::Command(Command::Run { name: name.to_owned(), args })
    }

    #[test]
    fn inputs_are_parsed() {
        for (input, entry) in [
            ("  \n ", Entry::Nothing),
            ("\"\"\" \n \"\"\"", Entry::Nothing),
            (" what's up? ", Entry::Message("what's up?".to_owned())),
            ("\"\"\"\ntwo\nlines\n\"\"\"", Entry::Message("two\nlines".to_owned())),
            ("/etc/hosts has what?", Entry::Message("/etc/hosts has what?".to_owned())),
            (" (i32.const 0)", Entry::Program(" (i32.const 0)".to_owned())),
            ("/help", Entry::Command(Command::Help { topic: None })),
            (
                "/help  http.get",
                Entry::Command(Command::Help { topic: Some("http.get".to_owned()) }),
            ),
            (
                "/help count words",
                Entry::Command(Command::Help { topic: Some("count words".to_owned()) }),
            ),
            (" /quit ", Entry::Command(Command::Quit)),
            ("/catalog", Entry::Command(Command::Catalog)),
            ("/run text_count", run("text_count", &[])),
            ("/run echo a  b", run("echo", &["a", "b"])),
            (
                r#"/run echo "a b" 'c"d' e"f g"h "" "\"\\\n\x""#,
                run("echo", &["a b", "c\"d", "ef gh", "", "\"\\\n\\x"]),
            ),
        ] {
            assert_eq!(read(input).unwrap(), entry, "{input:?}");
        }
    }

    #[test]
    fn invalid_commands_are_errors() {
        for (input, words) in [
            ("/exit", "there is no command `/exit`"),
            ("/", "there is no command `/`"),
            ("/run", "needs the name of a program"),
            ("/quit now", "`/quit` takes no arguments"),
            ("/run echo \"a", "the quote \" is not closed"),
            ("/run echo it's", "the quote ' is not closed"),
        ] {
            let error = read(input).unwrap_err().to_string();
            assert!(error.contains(words), "{input:?}: {error}");
        }
    }
}
