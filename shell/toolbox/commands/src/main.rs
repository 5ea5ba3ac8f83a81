//! The commands of the shell, in one WebAssembly module. The first word selects the command.
//!
//! Each command runs in its own instance. The host provides its arguments, its environment, its
//! standard streams, and the run's files under `/`. There are no processes: a command that starts
//! another command calls the host (`host`).

mod host;
mod options;
mod pack;
mod pattern;
mod say;
mod table;
mod text;

mod awk;
mod clock;
mod find;
mod grep;
mod jq;
mod sed;
mod small;

use std::io::Write as _;

fn main() {
    let mut words: Vec<String> =
        std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let name = words.first().map_or("", |word| word.rsplit('/').next().unwrap_or(word)).to_owned();
    if let Some(first) = words.first_mut() {
        first.clone_from(&name);
    }
    let crashed = name.clone();
    std::panic::set_hook(Box::new(move |panic| {
        let text = panic.payload();
        let text = text
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| text.downcast_ref::<String>().map(String::as_str));
        say::say(
            &crashed,
            format_args!(
                "internal error: {}",
                text.unwrap_or("no reason given").replace('\n', " ")
            ),
        );
    }));
    if let Some(folder) = std::env::var_os("PWD")
        && let Err(error) = std::env::set_current_dir(&folder)
    {
        say::about(&name, &folder.to_string_lossy(), &error);
        std::process::exit(1);
    }
    let status = match table::find(&name) {
        Some(run) => run(&words),
        None => {
            say::say(&name, "command not found");
            127
        }
    };
    _ = std::io::stdout().flush();
    std::process::exit(status);
}
