//! Asks the user at the terminal about calls that need approval under the policy.

use std::io::IsTerminal;
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::Mutex;
use wattle_agent::host::capability::policy::{Answer, Approver, Request};

use crate::output::{self, DIM, WARN, highlight, paint, visible};
use crate::{keyboard, stdin};

/// The user at the terminal, who is asked one question at a time.
#[derive(Default)]
struct Terminal {
    /// A lock that is held while a question is open.
    turn: Mutex<()>,
}

/// Returns true if stdin and stderr are terminals.
pub(crate) fn is_terminal() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Returns an approver that prompts the user at the terminal, or `None` if stdin or stderr is not a
/// terminal.
pub(crate) fn terminal() -> Option<Arc<dyn Approver>> {
    is_terminal().then(|| Arc::new(Terminal::default()) as Arc<dyn Approver>)
}

impl Approver for Terminal {
    fn ask<'a>(
        &'a self,
        request: Request<'a>,
    ) -> Pin<Box<dyn Future<Output = Answer> + Send + 'a>> {
        Box::pin(async move {
            let _turn = self.turn.lock().await;
            let _held = output::hold_transient();
            output::note(&paint(WARN, "the program needs your approval:"));
            for (question, line) in request.questions {
                output::note(&format!("  {}", visible(&question.to_string())));
                if let Some(line) = line {
                    output::note(&format!("    {}", paint(DIM, &visible(&line.to_string()))));
                }
            }
            let program = request.program.to_owned();
            // If the question is cancelled, this future is dropped, and so is `_asked`. The thread
            // then stops reading.
            let Ok((_asked, stop)) = stdin::stopper() else { return Answer::No(String::new()) };
            tokio::task::spawn_blocking(move || read(&program, &stop))
                .await
                .unwrap_or(Answer::No(String::new()))
        })
    }
}

/// Prompts for the answer and reads it from the terminal, unless `stop` ends the question. If the
/// user asks to see `program`, prints it and prompts again. Every other reply counts as a no unless
/// it is a clear yes.
fn read(program: &str, stop: &UnixStream) -> Answer {
    let mut reader = stdin::lock();
    let _question = keyboard::question();
    loop {
        output::note("[y] once  [s] this session  [n] no  [e] show program  (default: no)");
        // If the terminal cannot be read, the answer is no.
        let reply = reader.answer(Some(stop)).ok().flatten().unwrap_or_default();
        match parse(&reply) {
            Some(answer) => return answer,
            None => output::note(highlight::program(program.trim_end()).as_str()),
        }
    }
}

/// Asks whether to do what `question` says. Returns false if the answer is no, or if stdin or
/// stderr is not a terminal.
pub(crate) fn confirm(question: &str) -> bool {
    if !is_terminal() {
        return false;
    }
    let _held = output::hold_transient();
    let mut reader = stdin::lock();
    let _question = keyboard::question();
    output::note(&format!("{} [y/N]", visible(question)));
    is_yes(&reader.answer(None).ok().flatten().unwrap_or_default())
}

/// Returns true if a reply is a clear yes.
pub(crate) fn is_yes(reply: &str) -> bool {
    matches!(reply.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

/// Parses a reply. Returns `None` if the user asks to see the program.
fn parse(reply: &str) -> Option<Answer> {
    Some(match reply.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Answer::Yes,
        "s" | "session" | "a" | "always" => Answer::Always,
        "e" => return None,
        _ => Answer::No(String::new()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_yes_approves() {
        for (reply, answer) in [
            ("y\n", Answer::Yes),
            (" YES \r\n", Answer::Yes),
            ("a\n", Answer::Always),
            ("s\n", Answer::Always),
            ("always", Answer::Always),
            ("", Answer::No(String::new())),
            ("\n", Answer::No(String::new())),
            ("n\n", Answer::No(String::new())),
            ("yy\n", Answer::No(String::new())),
            ("yes, but\n", Answer::No(String::new())),
        ] {
            assert_eq!(parse(reply), Some(answer), "{reply:?}");
        }
        assert_eq!(parse("e\n"), None);
    }
}
