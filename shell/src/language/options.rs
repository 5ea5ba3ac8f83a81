//! The options of a shell.

use super::interpreter::Interpreter;

/// The builtin that sets an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SetBy {
    Set,
    Shopt,
}

macro_rules! options {
    ($($name:ident, $letter:expr, $by:ident;)*) => {
        /// Options of `set` and `shopt`. All are disabled by default.
        #[derive(Clone, Copy, Debug, Default)]
        pub(crate) struct Options {
            $(pub(crate) $name: bool,)*
        }

        impl Options {
            fn by_name(&mut self, name: &str) -> Option<&mut bool> {
                match name {
                    $(stringify!($name) => Some(&mut self.$name),)*
                    _ => None,
                }
            }
        }

        /// The options, each with its letter if it has one, and the builtin that sets it.
        const OPTIONS: &[(&str, Option<char>, SetBy)] =
            &[$((stringify!($name), $letter, SetBy::$by)),*];
    };
}

options! {
    allexport, Some('a'), Set;
    errexit, Some('e'), Set;
    noclobber, Some('C'), Set;
    noexec, Some('n'), Set;
    noglob, Some('f'), Set;
    nounset, Some('u'), Set;
    pipefail, None, Set;
    xtrace, Some('x'), Set;
    dotglob, None, Shopt;
    extglob, None, Shopt;
    globstar, None, Shopt;
    inherit_errexit, None, Shopt;
    nocaseglob, None, Shopt;
    nocasematch, None, Shopt;
    nullglob, None, Shopt;
    xpg_echo, None, Shopt;
}

/// Options of `set` that are accepted but have no effect, each after its letter. The letter is `-`
/// if there is none.
const IDLE: &str = "B:braceexpand -:emacs E:errtrace T:functrace h:hashall H:histexpand -:history \
    -:ignoreeof k:keyword m:monitor b:notify P:physical -:posix p:privileged v:verbose -:vi";

/// Options of `shopt` that are accepted but have no effect.
const IDLE_SHOPT: &str = "autocd cdspell checkwinsize cmdhist compat31 direxpand dirspell \
    expand_aliases extdebug extquote failglob force_fignore globasciiranges histappend histverify \
    huponexit interactive_comments lastpipe localvar_inherit login_shell progcomp promptvars \
    sourcepath";

/// Returns the names of the options that a builtin sets, sorted.
pub(crate) fn options_of(builtin: SetBy) -> impl Iterator<Item = &'static str> {
    OPTIONS.iter().filter(move |(.., by)| *by == builtin).map(|(name, ..)| *name)
}

/// Returns true if `shopt` accepts an option that has no effect.
pub(crate) fn is_idle_shopt(name: &str) -> bool {
    IDLE_SHOPT.split(' ').any(|known| known == name)
}

fn idle() -> impl Iterator<Item = (&'static str, &'static str)> {
    IDLE.split(' ').filter_map(|option| option.split_once(':'))
}

impl Interpreter {
    /// Returns true if an option is enabled. Returns `None` if the option is unknown or has no
    /// effect.
    pub(crate) fn option(&self, name: &str) -> Option<bool> {
        let mut options = self.options;
        options.by_name(name).map(|on| *on)
    }

    /// Sets an option of `set -o` or `shopt`. Fails with a message if the name is invalid.
    pub(crate) fn set_option(&mut self, name: &str, on: bool) -> Result<(), String> {
        if let Some(slot) = self.options.by_name(name) {
            *slot = on;
            return Ok(());
        }
        if idle().any(|(_, known)| known == name) || is_idle_shopt(name) {
            Ok(())
        } else {
            Err(format!("{name}: invalid option name"))
        }
    }

    /// Sets an option by its letter. Fails with a message if the letter is invalid.
    pub(crate) fn set_letter(&mut self, letter: char, on: bool) -> Result<(), String> {
        if let Some((name, ..)) = OPTIONS.iter().find(|(_, known, _)| *known == Some(letter)) {
            return self.set_option(name, on);
        }
        if letter != '-' && idle().any(|(known, _)| known.starts_with(letter)) {
            Ok(())
        } else {
            Err(format!("-{letter}: invalid option"))
        }
    }

    /// Returns the value of `$-`.
    pub(crate) fn option_letters(&self) -> String {
        let enabled = OPTIONS.iter().filter(|(name, ..)| self.option(name) == Some(true));
        let mut letters: Vec<char> = enabled.filter_map(|(_, letter, _)| *letter).collect();
        letters.extend(['h', 'B']);
        letters.sort_unstable_by_key(|letter| (letter.is_ascii_uppercase(), *letter));
        letters.into_iter().collect()
    }
}
