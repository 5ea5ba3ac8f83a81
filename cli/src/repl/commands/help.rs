//! `/help`: prints the commands, or a page of the manual.

use super::{ALL, Command};
use crate::fault::Fault;
use crate::output::{self, visible, width};
use crate::repl::Repl;

/// The text after the list of commands.
const NOTES: &str = "\
Type a message for the model. A line that begins with ( runs at once, as a program, and one that
begins with ! is a line of the shell, over the session's files.
An input continues on the next line while a program's parentheses or quotes, a fence or a message
in \"\"\" are open; two blank lines always end it.
Programs of several inputs are one program: a variable or a function of one input can be used in the
next. All inputs run again each time, but calls to the outside are not made again; their results
are recorded. An input that fails, ends the program or leaves a value is not continued. /wat shows
the open program.
Keys: Tab completes, → takes the hint, Ctrl-R searches the history, Ctrl-J and Alt-Enter begin a new line,
Ctrl-L clears the screen, Ctrl-C stops the current work, and twice within 2 s leaves.";

/// Prints the commands, or the manual's page about a topic.
pub(super) async fn help(repl: &mut Repl, topic: Vec<String>) -> Result<(), Fault> {
    if !topic.is_empty() {
        let topic = topic.join(" ");
        let page = repl.session.setup.host.manual().about(&topic).ok_or_else(|| {
            Fault::usage(format!("nothing in the manual is about `{topic}`"))
                .hint("`/help \"\"` lists the topics, `/help` the commands")
        })?;
        return output::text(&visible(&page));
    }
    let form = |command: &Command| format!("{} {}", command.name, command.arguments);
    let column = ALL.iter().map(|command| form(command).trim_end().chars().count()).max();
    let column = column.unwrap_or(0);
    let line = |command: &Command| {
        let form = form(command);
        let line = format!("  {:<column$}  {}", form.trim_end(), command.about);
        if width::width(&line) <= width::columns() {
            return line + "\n";
        }
        // On a narrow terminal, the description is on its own line.
        format!("  {}\n      {}\n", form.trim_end(), command.about)
    };
    let commands: String = ALL.iter().map(line).collect();
    output::text(&format!("{commands}{NOTES}"))
}
