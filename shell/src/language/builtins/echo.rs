//! The builtin `echo`.

use crate::language::escape::{Dialect, unescape};
use crate::language::interpreter::{Flow, Interpreter};

impl Interpreter {
    pub(super) async fn echo(&mut self, words: Vec<String>) -> Flow<u8> {
        let (mut newline, mut escapes) = (true, self.options.xpg_echo);
        let mut words = words.into_iter().peekable();
        while let Some(word) = words.peek() {
            let letters = word.strip_prefix('-').filter(|letters| {
                !letters.is_empty() && letters.chars().all(|c| matches!(c, 'n' | 'e' | 'E'))
            });
            let Some(letters) = letters else { break };
            for letter in letters.chars() {
                match letter {
                    'n' => newline = false,
                    'e' => escapes = true,
                    _ => escapes = false,
                }
            }
            words.next();
        }
        let text = words.collect::<Vec<_>>().join(" ");
        let mut bytes = if escapes {
            let (bytes, ended) = unescape(&text, Dialect::Echo);
            newline &= !ended;
            bytes
        } else {
            text.into_bytes()
        };
        if newline {
            bytes.push(b'\n');
        }
        self.print(bytes).await
    }
}
