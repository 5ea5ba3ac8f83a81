//! The values of variables and special parameters.

use std::time::{SystemTime, UNIX_EPOCH};

use super::Interpreter;
use crate::ledger::Text;

impl Interpreter {
    /// Returns the value of a variable or a special parameter, or `None` if it is unset. For an
    /// array, returns element 0.
    pub(crate) fn value(&mut self, name: &str) -> Option<String> {
        let mut chars = name.chars();
        match (chars.next(), chars.next()) {
            (Some(digit), _) if digit.is_ascii_digit() => {
                return match name.parse() {
                    Ok(0) => Some(self.parameters.name.to_string()),
                    Ok(number) => {
                        let at = usize::saturating_sub(number, 1);
                        self.parameters.arguments.get(at).map(|text| text.to_string())
                    }
                    Err(_) => None,
                };
            }
            (Some('?'), None) => return Some(self.last.status.to_string()),
            (Some('#'), None) => return Some(self.parameters.arguments.len().to_string()),
            (Some('$'), None) => return Some("2".into()),
            (Some('!'), None) => return self.jobs.last_pid().map(|pid| pid.to_string()),
            (Some('_'), None) => {
                return Some(self.last.word.as_deref().unwrap_or_default().to_owned());
            }
            (Some('-'), None) => return Some(self.option_letters()),
            _ => {}
        }
        match name {
            "RANDOM" => Some(self.random.u32(0..32768).to_string()),
            "SRANDOM" => Some(fastrand::u32(..).to_string()),
            "SECONDS" => {
                let base = self
                    .variables
                    .text(name)
                    .and_then(|text| text.parse::<i64>().ok())
                    .unwrap_or_default();
                Some(
                    base.wrapping_add(
                        i64::try_from(self.lifecycle.started.elapsed().as_secs())
                            .unwrap_or_default(),
                    )
                    .to_string(),
                )
            }
            "EPOCHSECONDS" => Some(
                SystemTime::now()
                    .duration_since(UNIX_EPOCH)
                    .unwrap_or_default()
                    .as_secs()
                    .to_string(),
            ),
            "LINENO" => Some(self.execution.line.to_string()),
            "BASHPID" => Some("2".into()),
            "FUNCNAME" => self.execution.calls.last().cloned(),
            _ => self
                .variables
                .get(name)
                .and_then(|variable| variable.text())
                .map(|text| text.to_string()),
        }
    }

    /// Returns the value of `$-`.
    fn option_letters(&self) -> String {
        let options = &self.options;
        let all = [
            (options.allexport, 'a'),
            (options.errexit, 'e'),
            (options.noglob, 'f'),
            (true, 'h'),
            (options.noexec, 'n'),
            (options.nounset, 'u'),
            (options.xtrace, 'x'),
            (true, 'B'),
            (options.noclobber, 'C'),
        ];
        all.into_iter().filter(|(on, _)| *on).map(|(_, letter)| letter).collect()
    }

    /// Returns the value of a variable, if it is set.
    pub(crate) fn variable(&self, name: &str) -> Option<Text> {
        self.variables.text(name)
    }
}
