//! The builtin `getopts`.

use crate::language::interpreter::{Flow, Interpreter};

impl Interpreter {
    pub(super) async fn getopts(&mut self, words: Vec<String>) -> Flow<u8> {
        let mut words = words.into_iter();
        let (Some(letters), Some(name)) = (words.next(), words.next()) else {
            return self.usage_error("getopts: usage: getopts optstring name [arg ...]").await;
        };
        let given: Vec<String> = words.collect();
        let arguments = if given.is_empty() { self.parameters.words() } else { given };
        let silent = letters.starts_with(':');
        let position: usize =
            self.variable("OPTIND").and_then(|text| text.parse().ok()).unwrap_or(1).max(1);
        let word = arguments.get(position - 1).cloned().unwrap_or_default();
        if self.parameters.getopts_offset == 0 {
            if word == "--" {
                return self.options_end(&name, position + 1).await;
            }
            if word.len() < 2 || !word.starts_with('-') {
                return self.options_end(&name, position).await;
            }
            self.parameters.getopts_offset = 1;
        }
        let Some(letter) = word.chars().nth(self.parameters.getopts_offset) else {
            return self.options_end(&name, position).await;
        };
        self.parameters.getopts_offset += 1;
        let last = word.chars().count() <= self.parameters.getopts_offset;
        let takes =
            letters.trim_start_matches(':').find(letter).filter(|_| letter != ':').map(|at| {
                letters
                    .trim_start_matches(':')
                    .get(at + letter.len_utf8()..)
                    .is_some_and(|rest| rest.starts_with(':'))
            });
        let (mut found, mut argument, mut next) =
            (letter.to_string(), None, position + usize::from(last));
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
                next = position + 1;
            }
            Some(true) => match arguments.get(position) {
                Some(value) => {
                    argument = Some(value.clone());
                    next = position + 2;
                }
                None => {
                    next = position + 1;
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
        let letter = if next > position { 0 } else { self.parameters.getopts_offset };
        // `OPTARG` is unset if there is no argument. A readonly `OPTARG` keeps its value.
        let _ = self.variables.unset("OPTARG");
        for (name, text) in
            [("OPTIND", Some(next.to_string())), ("OPTARG", argument), (name.as_str(), Some(found))]
        {
            if let Some(text) = text
                && let Err(message) = self.set(name, text).await?
            {
                return self.failure(format!("getopts: {message}")).await;
            }
        }
        self.parameters.getopts_offset = letter;
        Ok(0)
    }

    /// Sets `OPTIND` and the variable `name` to mark the end of the options. Returns status 1.
    async fn options_end(&mut self, name: &str, position: usize) -> Flow<u8> {
        for (name, text) in [("OPTIND", position.to_string()), (name, "?".to_owned())] {
            if let Err(message) = self.set(name, text).await? {
                return self.failure(format!("getopts: {message}")).await;
            }
        }
        Ok(1)
    }
}
