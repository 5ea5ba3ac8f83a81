//! The builtins `wait`, `jobs`, and `kill`.

use crate::language::interpreter::{Flow, Interpreter};

impl Interpreter {
    pub(super) async fn wait(&mut self, words: Vec<String>) -> Flow<u8> {
        let mut status = 0;
        let mut named = false;
        for word in words {
            if word == "-n" {
                return Ok(self.jobs.wait_any().await.unwrap_or(127));
            }
            if word.starts_with('-') {
                continue;
            }
            named = true;
            status = match self.jobs.wait_for(&word).await {
                Some(status) => status,
                None => {
                    self.report(&format!("wait: {word}: no such job of this shell")).await;
                    127
                }
            };
        }
        if !named {
            self.jobs.wait_all().await;
        }
        Ok(status)
    }

    pub(super) async fn jobs_builtin(&mut self) -> Flow<u8> {
        let lines = self.jobs.lines().await;
        for line in lines {
            self.print(format!("{line}\n")).await?;
        }
        Ok(0)
    }

    pub(super) async fn kill(&mut self, words: Vec<String>) -> Flow<u8> {
        let mut words = words.into_iter().peekable();
        let mut signal = String::new();
        match words.peek().map(String::as_str) {
            Some("-l") => return self.print("HUP INT QUIT KILL TERM\n").await,
            Some("-s" | "-n") => {
                words.next();
                signal = words.next().unwrap_or_default();
            }
            Some(word) if word.starts_with('-') => {
                signal = word.trim_start_matches('-').to_owned();
                words.next();
            }
            _ => {}
        }
        let mut status = 0;
        for word in words {
            // Signal 0 only checks that the job is running.
            let found = if signal == "0" { self.jobs.has(&word) } else { self.jobs.kill(&word) };
            if !found {
                self.report(&format!(
                    "kill: ({word}) - No such process: only background jobs of this shell can be \
                     ended"
                ))
                .await;
                status = 1;
            }
        }
        Ok(status)
    }
}
