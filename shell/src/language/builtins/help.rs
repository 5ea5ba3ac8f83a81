//! The builtin `help`.

use crate::language::builtin_table::{self, TABLE};
use crate::language::interpreter::{Flow, Interpreter};

impl Interpreter {
    pub(super) async fn help(&mut self, words: Vec<String>) -> Flow<u8> {
        let words: Vec<String> =
            words.into_iter().filter(|word| !word.starts_with('-') || word == "-").collect();
        if words.is_empty() {
            let text = help(self.run.commands.names());
            return self.print(text).await;
        }
        let mut status = 0;
        for word in words {
            if let Some((name, sentence)) = TABLE.iter().find(|(name, _)| *name == word) {
                self.print(format!("{name}: {sentence}\n")).await?;
            } else if self.run.commands.has(&word) {
                self.print(format!("{word}: a command; `{word} --help` prints its usage\n"))
                    .await?;
            } else {
                let words = self.not_found(&word);
                self.report(&format!("help: {words}")).await;
                status = 1;
            }
        }
        Ok(status)
    }
}

/// Returns the output of `help` without arguments, which lists all builtins and the given commands.
pub(crate) fn help(mut commands: Vec<String>) -> String {
    commands.sort_unstable();
    let builtins: Vec<&str> = builtin_table::names().collect();
    let mut text = String::from(
        "A shell like bash over the run's files. It starts no process of the operating \
         system.\n\nbuiltins:\n",
    );
    wrap(&mut text, &builtins);
    text.push_str("\ncommands:\n");
    wrap(&mut text, &commands.iter().map(String::as_str).collect::<Vec<_>>());
    text.push_str(
        "\n`help NAME` describes a builtin, `NAME --help` prints the usage of a command. `/` is \
         the root of the run's files.\n",
    );
    text
}

/// Appends names, wrapped to lines of about 100 columns.
fn wrap(text: &mut String, names: &[&str]) {
    let mut width = 0;
    for name in names {
        if width > 0 && width + name.len() > 96 {
            text.push('\n');
            width = 0;
        }
        text.push_str(if width == 0 { "  " } else { " " });
        text.push_str(name);
        width += name.len() + 1;
    }
    text.push('\n');
}
