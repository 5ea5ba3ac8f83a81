//! Builtins about names: `command`, `builtin`, `type`, `alias`, `unalias`, `help`.

use std::sync::Arc;

use wattle_rt::truncate;

use super::{Arguments, BUILTINS, is_builtin, names};
use crate::language::command::ResolvedCommand;
use crate::language::interpreter::{Attempt, Interpreter};
use crate::language::variables::{AssignError, ExpandedWord};

/// Maximum number of aliases in one shell.
const MAX_ALIASES: usize = 1_000;
/// Maximum length of an alias, including its name, in bytes.
const MAX_ALIAS: usize = 10_000;

/// The reserved words that `type` reports as keywords.
const KEYWORDS: [&str; 21] = [
    "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac",
    "select", "function", "time", "{", "}", "!", "[[", "]]", "in",
];

impl Interpreter {
    pub(super) async fn command_builtin(&mut self, name: &str, words: Vec<String>) -> Attempt<u8> {
        let letters = match name {
            "command" => "pvV",
            "exec" => "la:",
            _ => "",
        };
        let given = Arguments::parse(words, letters)?;
        let verbose = given.has('V');
        let brief = given.has('v') && !verbose;
        let mut words = given.words.into_iter();
        if brief || verbose {
            let mut status = 1;
            for word in words {
                if let Some((short, long)) = self.describe(&word).await {
                    status = 0;
                    self.print(format!("{}\n", if brief { short } else { long })).await?;
                } else if verbose {
                    self.report(&format!("command: {word}: not found")).await;
                }
            }
            return Ok(status);
        }
        let Some(first) = words.next() else { return Ok(0) };
        if is_builtin(&first) {
            let given = words.map(ExpandedWord::Text).collect();
            return Ok(Box::pin(self.builtin(&first, given)).await?);
        }
        if name == "builtin" {
            return Err(format!("{first}: not a shell builtin").into());
        }
        let env = self.variables.exported();
        let argv = std::iter::once(first).chain(words).collect();
        Ok(self.external(argv, env).await?.status().0)
    }

    /// Describes the command that a name refers to. Returns the outputs of `command -v` and of
    /// `type`, or `None` if the name is unknown.
    async fn describe(&mut self, name: &str) -> Option<(String, String)> {
        if let Some(value) = self.definitions.aliases.get(name) {
            let value: &str = value;
            return Some((
                format!("alias {name}='{value}'"),
                format!("{name} is aliased to `{value}'"),
            ));
        }
        if KEYWORDS.contains(&name) {
            return Some((name.into(), format!("{name} is a shell keyword")));
        }
        if self.definitions.functions.contains_key(name) {
            return Some((name.into(), format!("{name} is a function")));
        }
        match self.find(name) {
            ResolvedCommand::Builtin(_) if !name.contains('/') => {
                Some((name.into(), format!("{name} is a shell builtin")))
            }
            ResolvedCommand::Tool(_) | ResolvedCommand::Shell | ResolvedCommand::Builtin(_) => {
                let path =
                    if name.contains('/') { name.to_owned() } else { format!("/usr/bin/{name}") };
                Some((path.clone(), format!("{name} is {path}")))
            }
            ResolvedCommand::File(path) => {
                self.stat(&path).await.map(|_| (name.to_owned(), format!("{name} is {name}")))
            }
            ResolvedCommand::Unknown => None,
        }
    }

    pub(super) async fn type_builtin(&mut self, words: Vec<String>) -> Attempt<u8> {
        let given = Arguments::parse(words, "afptP")?;
        // As in bash, the last of these options counts.
        let form = given.options.iter().rfind(|option| matches!(option.letter, 't' | 'p' | 'P'));
        let kind_only = form.is_some_and(|option| option.letter == 't');
        let path_only = form.is_some_and(|option| option.letter != 't');
        let mut status = 0;
        for name in &given.words {
            let Some((short, long)) = self.describe(name).await else {
                status = 1;
                if !kind_only && !path_only {
                    self.report(&format!("type: {name}: not found")).await;
                }
                continue;
            };
            let text = if kind_only {
                let kind = [
                    ("keyword", "is a shell keyword"),
                    ("function", "is a function"),
                    ("builtin", "is a shell builtin"),
                    ("alias", "is aliased"),
                ];
                kind.into_iter()
                    .find(|(_, words)| long.contains(words))
                    .map_or("file", |(kind, _)| kind)
                    .to_owned()
            } else if path_only {
                if !short.contains('/') {
                    continue;
                }
                short
            } else {
                long
            };
            self.print(format!("{text}\n")).await?;
        }
        Ok(status)
    }

    pub(super) async fn alias(&mut self, name: &str, words: Vec<String>) -> Attempt<u8> {
        let given = Arguments::parse(words, if name == "alias" { "p" } else { "a" })?;
        let all =
            if name == "alias" { given.has('p') || given.words.is_empty() } else { given.has('a') };
        let words = given.words;
        let mut status = 0;
        let aliases = Arc::make_mut(&mut self.definitions.aliases);
        let mut full = None;
        let line = |name: &str, value: &str| format!("alias {name}='{value}'\n");
        let mut text = String::new();
        let mut errors = Vec::new();
        if all && name == "unalias" {
            aliases.clear();
            return Ok(0);
        }
        if all {
            text = aliases.iter().map(|(name, value)| line(name, value)).collect();
        }
        for word in &words {
            match (name, word.split_once('=')) {
                ("unalias", _) => status = if aliases.remove(word).is_some() { status } else { 1 },
                (_, Some((name, value)))
                    if name.len() + value.len() > MAX_ALIAS
                        || (aliases.len() >= MAX_ALIASES && !aliases.contains_key(name)) =>
                {
                    errors.push(format!(
                        "{}: a shell has at most {MAX_ALIASES} aliases, each with at most \
                         {MAX_ALIAS} bytes",
                        truncate(name, 60)
                    ));
                }
                (_, Some((name, value))) => match self.run.ledger.store(value.into()) {
                    Ok(value) => drop(aliases.insert(name.into(), value)),
                    Err(reason) => full = Some(reason),
                },
                (_, None) => match aliases.get(word) {
                    Some(value) => text.push_str(&line(word, value)),
                    None => errors.push(format!("{word}: not found")),
                },
            }
        }
        if let Some(full) = full {
            return Err(self.exceed(AssignError::Full(full).to_string()).into());
        }
        for error in errors {
            status = 1;
            self.report(&format!("alias: {error}")).await;
        }
        Ok(self.print(text).await?.max(status))
    }

    pub(super) async fn help(&mut self, words: Vec<String>) -> Attempt<u8> {
        let words = Arguments::parse(words, "dms")?.words;
        if words.is_empty() {
            let text = help_text(self.run.commands.names());
            return Ok(self.print(text).await?);
        }
        let mut status = 0;
        for word in words {
            if let Some((name, sentence)) = BUILTINS.iter().find(|(name, _)| *name == word) {
                self.print(format!("{name}: {sentence}\n")).await?;
            } else if self.run.commands.has(&word) {
                self.print(format!("{word}: a command; `{word} --help` prints its usage\n"))
                    .await?;
            } else {
                let words = self.not_found(&word);
                self.report(&format!("help: {words}")).await;
                status = 1;
            }
        }
        Ok(status)
    }
}

/// Returns the output of `help` without arguments, which lists all builtins and the given commands.
pub(crate) fn help_text(mut commands: Vec<String>) -> String {
    commands.sort_unstable();
    let builtins: Vec<&str> = names().collect();
    let mut text = String::from(
        "A shell like bash over the run's files. It starts no process of the operating \
         system.\n\nbuiltins:\n",
    );
    wrap(&mut text, &builtins);
    text.push_str("\ncommands:\n");
    wrap(&mut text, &commands.iter().map(String::as_str).collect::<Vec<_>>());
    text.push_str(
        "\n`help NAME` describes a builtin, `NAME --help` prints the usage of a command. `/` is \
         the root of the run's files.\n",
    );
    text
}

/// Appends names, wrapped to lines of about 100 columns.
fn wrap(text: &mut String, names: &[&str]) {
    let mut width = 0;
    for name in names {
        if width > 0 && width + name.len() > 96 {
            text.push('\n');
            width = 0;
        }
        text.push_str(if width == 0 { "  " } else { " " });
        text.push_str(name);
        width += name.len() + 1;
    }
    text.push('\n');
}
