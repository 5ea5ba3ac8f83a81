//! Commands with fixed output, because the sandbox has one user on one machine.

use crate::say::say;

/// Runs `id`: prints the user and group IDs.
pub(crate) fn id(args: &[String]) -> i32 {
    let flags: String = args.iter().skip(1).filter_map(|word| word.strip_prefix('-')).collect();
    let named = flags.contains('n');
    let answer = match flags.chars().find(|flag| "ugG".contains(*flag)) {
        Some(_) if named => "user",
        Some(_) => "1000",
        None => "uid=1000(user) gid=1000(user) groups=1000(user)",
    };
    crate::say::line(format_args!("{answer}"));
    0
}

/// Runs `whoami`: prints the user's name.
pub(crate) fn whoami(_: &[String]) -> i32 {
    crate::say::line(format_args!("user"));
    0
}

/// Runs `groups`: prints the user's groups.
pub(crate) fn groups(_: &[String]) -> i32 {
    crate::say::line(format_args!("user"));
    0
}

/// Runs `hostname`: prints the machine's name.
pub(crate) fn hostname(_: &[String]) -> i32 {
    crate::say::line(format_args!("wattle"));
    0
}

/// Runs `uname`: prints the name of the system.
pub(crate) fn uname(args: &[String]) -> i32 {
    let facts = [
        ('s', "wattle"),
        ('n', "wattle"),
        ('r', "1.0"),
        ('v', "1"),
        ('m', "wasm32"),
        ('o', "wasi"),
    ];
    let flags: String = args.iter().skip(1).filter_map(|word| word.strip_prefix('-')).collect();
    let all = flags.contains('a');
    let asked = |flag: char| all || flags.contains(flag) || (flags.is_empty() && flag == 's');
    let answers: Vec<&str> =
        facts.iter().filter(|(flag, _)| asked(*flag)).map(|(_, fact)| *fact).collect();
    crate::say::line(format_args!("{}", answers.join(" ")));
    0
}

/// Runs `which`: prints the path of each given command that exists.
pub(crate) fn which(args: &[String]) -> i32 {
    let mut status = 0;
    for name in args.iter().skip(1).filter(|name| !name.starts_with('-')) {
        if crate::table::find(name).is_some() {
            crate::say::line(format_args!("/bin/{name}"));
        } else {
            status = 1;
        }
    }
    status
}

/// Runs `tty`: reports that there is no terminal.
pub(crate) fn tty(_: &[String]) -> i32 {
    crate::say::line(format_args!("not a tty"));
    1
}

/// Runs `stty`: reports that there is no terminal.
pub(crate) fn stty(_: &[String]) -> i32 {
    say("stty", "standard input is not a terminal");
    1
}

/// Runs `sync`, which does nothing, because writes take effect immediately.
pub(crate) fn sync(_: &[String]) -> i32 {
    0
}
