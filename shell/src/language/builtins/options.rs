//! The builtins `set` and `shopt`.

use crate::language::escape;
use crate::language::interpreter::{Flow, Interpreter};

/// The options of `set`, each with its letter if it has one.
const SET: &[(&str, Option<char>)] = &[
    ("allexport", Some('a')),
    ("errexit", Some('e')),
    ("noclobber", Some('C')),
    ("noexec", Some('n')),
    ("noglob", Some('f')),
    ("nounset", Some('u')),
    ("pipefail", None),
    ("xtrace", Some('x')),
];
/// Options of `set` that are accepted but have no effect.
const IDLE: &[(&str, Option<char>)] = &[
    ("braceexpand", Some('B')),
    ("emacs", None),
    ("errtrace", Some('E')),
    ("functrace", Some('T')),
    ("hashall", Some('h')),
    ("histexpand", Some('H')),
    ("history", None),
    ("ignoreeof", None),
    ("keyword", Some('k')),
    ("monitor", Some('m')),
    ("notify", Some('b')),
    ("physical", Some('P')),
    ("posix", None),
    ("privileged", Some('p')),
    ("verbose", Some('v')),
    ("vi", None),
];
/// The options of `shopt`.
const SHOPT: &[&str] = &[
    "dotglob",
    "extglob",
    "globstar",
    "inherit_errexit",
    "nocaseglob",
    "nocasematch",
    "nullglob",
    "xpg_echo",
];
/// Options of `shopt` that are accepted but have no effect.
const IDLE_SHOPT: &[&str] = &[
    "autocd",
    "cdspell",
    "checkwinsize",
    "cmdhist",
    "compat31",
    "direxpand",
    "dirspell",
    "expand_aliases",
    "extdebug",
    "extquote",
    "failglob",
    "force_fignore",
    "globasciiranges",
    "histappend",
    "histverify",
    "huponexit",
    "interactive_comments",
    "lastpipe",
    "localvar_inherit",
    "login_shell",
    "progcomp",
    "promptvars",
    "sourcepath",
];

impl Interpreter {
    /// Returns true if an option is enabled. Returns `None` if the option is unknown or has no
    /// effect.
    pub(crate) fn option(&self, name: &str) -> Option<bool> {
        let mut options = self.options;
        options.by_name(name).map(|on| *on)
    }

    /// Sets an option of `set -o` or `shopt`. Fails with a message if the name is invalid.
    pub(crate) fn set_option(&mut self, name: &str, on: bool) -> Result<(), String> {
        if let Some(slot) = self.options.by_name(name) {
            *slot = on;
            return Ok(());
        }
        if IDLE.iter().any(|(known, _)| *known == name) || IDLE_SHOPT.contains(&name) {
            Ok(())
        } else {
            Err(format!("{name}: invalid option name"))
        }
    }

    /// Sets an option by its letter. Fails with a message if the letter is invalid.
    pub(crate) fn set_letter(&mut self, letter: char, on: bool) -> Result<(), String> {
        let known = SET.iter().chain(IDLE).find(|(_, known)| *known == Some(letter));
        match known {
            Some((name, _)) => self.set_option(name, on),
            None => Err(format!("-{letter}: invalid option")),
        }
    }

    pub(super) async fn set_builtin(&mut self, words: Vec<String>) -> Flow<u8> {
        if words.is_empty() {
            let mut text = String::new();
            for name in self.variables.names() {
                if let Some(variable) = self.variables.get_itself(&name) {
                    match variable.text() {
                        Some(value) if variable.keys().len() == 1 => {
                            text.push_str(&format!("{name}={}\n", quoted_if_needed(value)))
                        }
                        _ => text.push_str(
                            &self
                                .declaration(&name)
                                .map(|line| {
                                    format!("{}\n", line.splitn(3, ' ').last().unwrap_or_default())
                                })
                                .unwrap_or_default(),
                        ),
                    }
                }
            }
            return self.print(text).await;
        }
        let mut words = words.into_iter().peekable();
        while let Some(word) = words.peek().cloned() {
            if word == "--" {
                words.next();
                self.parameters.arguments = self.positional(words)?;
                return Ok(0);
            }
            if word == "-" || !word.starts_with(['-', '+']) {
                if word == "-" {
                    words.next();
                }
                self.parameters.arguments = self.positional(words)?;
                return Ok(0);
            }
            words.next();
            let on = word.starts_with('-');
            for letter in word.chars().skip(1) {
                let done = if letter == 'o' {
                    match words.next() {
                        Some(name) => self.set_option(&name, on),
                        None => {
                            let text: String = SET
                                .iter()
                                .map(|(name, _)| {
                                    format!(
                                        "{name:<15}\t{}\n",
                                        if self.option(name).unwrap_or(false) {
                                            "on"
                                        } else {
                                            "off"
                                        }
                                    )
                                })
                                .collect();
                            return self.print(text).await;
                        }
                    }
                } else {
                    self.set_letter(letter, on)
                };
                if let Err(message) = done {
                    return self.usage_error(format!("set: {message}")).await;
                }
            }
        }
        Ok(0)
    }

    pub(super) async fn shopt(&mut self, words: Vec<String>) -> Flow<u8> {
        let (mut on, mut quiet) = (None, false);
        let mut names = Vec::new();
        for word in words {
            match word.as_str() {
                "-s" => on = Some(true),
                "-u" => on = Some(false),
                "-q" => quiet = true,
                "-o" | "-p" => {}
                name => names.push(name.to_owned()),
            }
        }
        if names.is_empty() {
            names = SHOPT.iter().map(|name| (*name).to_owned()).collect();
            on = None;
        }
        let mut status = 0;
        for name in names {
            if let Some(on) = on {
                if let Err(message) = self.set_option(&name, on) {
                    self.report(&format!("shopt: {message}")).await;
                    status = 1;
                }
                continue;
            }
            let state = match self.option(&name) {
                Some(state) => state,
                None if IDLE_SHOPT.contains(&name.as_str()) => false,
                None => {
                    self.report(&format!("shopt: {name}: invalid shell option name")).await;
                    status = 1;
                    continue;
                }
            };
            if !state {
                status = 1;
            }
            if !quiet {
                self.print(format!("{name:<15}\t{}\n", if state { "on" } else { "off" })).await?;
            }
        }
        Ok(status)
    }
}

fn quoted_if_needed(text: &str) -> String {
    let plain = text.chars().all(|c| c.is_alphanumeric() || "_-./:=,+@%^".contains(c));
    if plain { text.to_owned() } else { escape::quoted(text) }
}
