//! Asks the user at the terminal about calls that need approval under the policy.

use std::io::IsTerminal;
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::Mutex;
use wattle_agent::host::capability::policy::{Answer, Approver, Request};
use wattle_agent::host::catalog::{Entry, Origin};

use crate::output::{self, DIM, WARN, highlight, paint, visible, width};
use crate::{bell, keyboard, stdin};

/// Maximum width of an argument in a question, in columns.
const ARGUMENT: usize = 200;

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
            let _called = bell::call();
            let _held = output::hold_transient();
            output::note(&paint(WARN, "the program needs your approval:"));
            let call = call(&request);
            for (question, line) in request.questions {
                output::note(&format!("  {}", visible(&question.to_string())));
                if let Some(call) = &call {
                    output::note(&format!("    {}", paint(DIM, &visible(call))));
                } else if let Some(line) = line {
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

/// Renders the call of a catalog program with its arguments, such as `kv_set("name", "value")`. Returns
/// `None` for another program, whose lines say more.
fn call(request: &Request<'_>) -> Option<String> {
    let entry = Entry::parse(request.program, Origin::BuiltIn("")).ok()?;
    let quoted = |arg: &String| format!("{:?}", width::fit(arg, ARGUMENT));
    let args: Vec<String> = request.args.iter().map(quoted).collect();
    Some(format!("{}({})", entry.name(), args.join(", ")))
}

/// Prompts for the answer and reads it from the terminal, unless `stop` ends the question. If the
/// user asks to see `program`, prints it and prompts again.
fn read(program: &str, stop: &UnixStream) -> Answer {
    let choices = "[y] once  [s] this session  [n] no  [e] show program  (default: no)";
    let answer = choose(choices, Some(stop), |reply| match reply {
        "e" => {
            output::note(highlight::program(program.trim_end()).as_str());
            None
        }
        reply => parse(reply),
    });
    // If the terminal cannot be read, the answer is no.
    answer.unwrap_or(Answer::No(String::new()))
}

/// Shows the choices of a question and reads the reply from the terminal, without surrounding
/// whitespace and in lower case. Shows the choices again if `parse` returns `None`. Returns `None` if
/// the terminal cannot be read, or if the other end of `stop` is dropped.
pub(crate) fn choose<T>(
    choices: &str,
    stop: Option<&UnixStream>,
    mut parse: impl FnMut(&str) -> Option<T>,
) -> Option<T> {
    let _held = output::hold_transient();
    let mut reader = stdin::lock();
    let _question = keyboard::question();
    loop {
        output::note(&visible(choices));
        let reply = reader.answer(stop).ok().flatten()?;
        if let Some(choice) = parse(&reply.trim().to_ascii_lowercase()) {
            return Some(choice);
        }
    }
}

/// Asks whether to do what `question` says. Returns false if the answer is no, or if stdin or
/// stderr is not a terminal.
pub(crate) fn confirm(question: &str) -> bool {
    is_terminal()
        && choose(&format!("{question} [y/N]"), None, |reply| Some(is_yes(reply))).unwrap_or(false)
}

/// Returns true if a reply is a clear yes.
pub(crate) fn is_yes(reply: &str) -> bool {
    matches!(reply.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

/// Parses a reply. An empty reply is a no. Returns `None` if the reply is none of the choices.
fn parse(reply: &str) -> Option<Answer> {
    match reply {
        "y" | "yes" => Some(Answer::Yes),
        "s" | "session" | "a" | "always" => Some(Answer::Always),
        "" | "n" | "no" => Some(Answer::No(String::new())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_reply_is_an_answer() {
        let no = || Some(Answer::No(String::new()));
        for (reply, answer) in [
            ("y", Some(Answer::Yes)),
            ("yes", Some(Answer::Yes)),
            ("a", Some(Answer::Always)),
            ("s", Some(Answer::Always)),
            ("always", Some(Answer::Always)),
            ("", no()),
            ("n", no()),
            ("no", no()),
            ("?", None),
            ("yy", None),
            ("yes, but", None),
        ] {
            assert_eq!(parse(reply), answer, "{reply:?}");
        }
    }
}
