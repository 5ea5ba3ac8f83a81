//! The builtins `set` and `shopt`.

use super::Arguments;
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
        let given = Arguments::parse(words, "opqsu")?;
        let (set, unset) = (given.has('s'), given.has('u'));
        if set && unset {
            return Err("cannot set and unset shell options simultaneously".into());
        }
        let on = (set || unset).then_some(set);
        let quiet = given.has('q');
        let by = if given.has('o') { SetBy::Set } else { SetBy::Shopt };
        let line = |name: &str, state: bool| match (given.has('p'), by) {
            (false, _) => state_line(name, state),
            (true, SetBy::Set) => format!("set {}o {name}\n", if state { '-' } else { '+' }),
            (true, SetBy::Shopt) => format!("shopt -{} {name}\n", if state { 's' } else { 'u' }),
        };
        if given.words.is_empty() {
            let state = |name| (name, self.option(name) == Some(true));
            let listed =
                options_of(by).map(state).filter(|(_, state)| on.is_none_or(|on| on == *state));
            let text: String = listed.map(|(name, state)| line(name, state)).collect();
            return Ok(self.print(text).await?);
        }
        let mut status = 0;
        let names = given.words.clone();
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
                self.print(line(&name, state)).await?;
            }
        }
        Ok(status)
    }
}

fn state_line(name: &str, on: bool) -> String {
    format!("{name:<15}\t{}\n", if on { "on" } else { "off" })
}
