//! The builtins `set` and `shopt`.

use crate::language::escape;
use crate::language::interpreter::{Attempt, Interpreter, usage};
use crate::language::options::{SetBy, is_idle_shopt, options_of};

impl Interpreter {
    pub(super) async fn set_builtin(&mut self, words: Vec<String>) -> Attempt<u8> {
        if words.is_empty() {
            let mut text = String::new();
            for name in self.variables.names() {
                let Some(variable) = self.variables.get_itself(&name) else { continue };
                match variable.text().filter(|_| variable.keys().len() == 1) {
                    Some(value) => {
                        text.push_str(&format!("{name}={}\n", escape::quoted_if_needed(value)));
                    }
                    None => {
                        let line = self.declaration(&name).unwrap_or_default();
                        text.extend([line.splitn(3, ' ').last().unwrap_or_default(), "\n"]);
                    }
                }
            }
            return Ok(self.print(text).await?);
        }
        let mut words = words.into_iter().peekable();
        while let Some(word) = words.peek().cloned() {
            if matches!(word.as_str(), "-" | "--") || !word.starts_with(['-', '+']) {
                words.next_if(|word| word == "-" || word == "--");
                self.parameters.arguments = self.positional(words)?;
                return Ok(0);
            }
            words.next();
            let on = word.starts_with('-');
            for letter in word.chars().skip(1) {
                if letter != 'o' {
                    self.set_letter(letter, on).map_err(usage)?;
                } else if let Some(name) = words.next() {
                    self.set_option(&name, on).map_err(usage)?;
                } else {
                    let line = |name| state_line(name, self.option(name) == Some(true));
                    let text: String = options_of(SetBy::Set).map(line).collect();
                    return Ok(self.print(text).await?);
                }
            }
        }
        Ok(0)
    }

    pub(super) async fn shopt(&mut self, words: Vec<String>) -> Attempt<u8> {
        let mut on = None;
        let mut quiet = false;
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
            names = options_of(SetBy::Shopt).map(str::to_owned).collect();
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
                None if is_idle_shopt(&name) => false,
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
                self.print(state_line(&name, state)).await?;
            }
        }
        Ok(status)
    }
}

fn state_line(name: &str, on: bool) -> String {
    format!("{name:<15}\t{}\n", if on { "on" } else { "off" })
}
