//! `getopts`.

use crate::language::interpreter::{Flow, Interpreter};

impl Interpreter {
    pub(super) async fn getopts(&mut self, words: Vec<String>) -> Flow<u8> {
        let mut words = words.into_iter();
        let (Some(letters), Some(name)) = (words.next(), words.next()) else {
            return self.usage("getopts: usage: getopts optstring name [arg ...]").await;
        };
        let given: Vec<String> = words.collect();
        let arguments = if given.is_empty() { self.parameters.arguments.clone() } else { given };
        let silent = letters.starts_with(':');
        let place: usize = self.variable("OPTIND").and_then(|text| text.parse().ok()).unwrap_or(1).max(1);
        let word = arguments.get(place - 1).cloned().unwrap_or_default();
        if self.parameters.getopts_offset == 0 {
            if word == "--" {
                return self.options_end(&name, place + 1).await;
            }
            if word.len() < 2 || !word.starts_with('-') {
                return self.options_end(&name, place).await;
            }
            self.parameters.getopts_offset = 1;
        }
        let Some(letter) = word.chars().nth(self.parameters.getopts_offset) else {
            return self.options_end(&name, place).await;
        };
        self.parameters.getopts_offset += 1;
        let last = word.chars().count() <= self.parameters.getopts_offset;
        let takes = letters.trim_start_matches(':').find(letter).filter(|_| letter != ':').map(|at| {
            letters.trim_start_matches(':').get(at + letter.len_utf8()..).is_some_and(|rest| rest.starts_with(':'))
        });
        let (mut found, mut argument, mut next) = (letter.to_string(), None, place + usize::from(last));
        match takes {
            None => {
                found = "?".into();
                if silent {
                    argument = Some(letter.to_string());
                } else {
                    self.report(&format!("illegal option -- {letter}")).await;
                }
            }
            Some(false) => {}
            Some(true) if !last => {
                argument = Some(word.chars().skip(self.parameters.getopts_offset).collect());
                next = place + 1;
            }
            Some(true) => match arguments.get(place) {
                Some(value) => {
                    argument = Some(value.clone());
                    next = place + 2;
                }
                None => {
                    next = place + 1;
                    if silent {
                        found = ":".into();
                        argument = Some(letter.to_string());
                    } else {
                        found = "?".into();
                        self.report(&format!("option requires an argument -- {letter}")).await;
                    }
                }
            },
        }
        let letter = if next > place { 0 } else { self.parameters.getopts_offset };
        // `OPTARG` is unset where there is no argument; it cannot be readonly for that.
        let _ = self.variables.unset("OPTARG");
        for (name, text) in [("OPTIND", Some(next.to_string())), ("OPTARG", argument), (name.as_str(), Some(found))] {
            if let Some(text) = text
                && let Err(words) = self.set(name, text).await?
            {
                return self.refuse(format!("getopts: {words}")).await;
            }
        }
        self.parameters.getopts_offset = letter;
        Ok(0)
    }

    async fn options_end(&mut self, name: &str, place: usize) -> Flow<u8> {
        for (name, text) in [("OPTIND", place.to_string()), (name, "?".to_owned())] {
            if let Err(words) = self.set(name, text).await? {
                return self.refuse(format!("getopts: {words}")).await;
            }
        }
        Ok(1)
    }
}
