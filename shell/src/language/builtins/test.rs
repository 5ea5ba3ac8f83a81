//! The builtins `test` and `[`.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::language::interpreter::{Flow, Interpreter};

const BINARY: [&str; 14] =
    ["=", "==", "!=", "<", ">", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef"];

/// The arguments of a test, and the parser's position in them.
struct Words {
    list: Vec<String>,
    at: usize,
    depth: u32,
}

impl Words {
    fn peek(&self, ahead: usize) -> Option<&str> {
        self.list.get(self.at + ahead).map(String::as_str)
    }

    fn next(&mut self) -> String {
        self.at += 1;
        self.list.get(self.at - 1).cloned().unwrap_or_default()
    }

    fn remaining(&self) -> usize {
        self.list.len().saturating_sub(self.at)
    }
}

fn is_unary(word: &str) -> bool {
    let mut letters = word.chars();
    letters.next() == Some('-')
        && letters.next().is_some_and(|letter| "abcdefghkLnNoOGprRsStuvwxz".contains(letter))
        && letters.next().is_none()
}

impl Interpreter {
    pub(super) async fn test_builtin(&mut self, name: &str, mut words: Vec<String>) -> Flow<u8> {
        if name == "[" && words.pop().as_deref() != Some("]") {
            return self.usage_error("[: missing `]'").await;
        }
        let mut words = Words { list: words, at: 0, depth: 0 };
        let result = match words.list.len() {
            0 => Ok(false),
            _ => self.test_or(&mut words).await,
        };
        match result {
            Ok(_) if words.remaining() > 0 => {
                self.usage_error(format!("{name}: too many arguments")).await
            }
            Ok(truth) => Ok(u8::from(!truth)),
            Err(error) => self.usage_error(format!("{name}: {error}")).await,
        }
    }

    fn test_or<'a>(&'a mut self, words: &'a mut Words) -> BoxFuture<'a, Result<bool, String>> {
        async move {
            let mut value = self.test_and(words).await?;
            while words.peek(0) == Some("-o") {
                words.next();
                value |= self.test_and(words).await?;
            }
            Ok(value)
        }
        .boxed()
    }

    async fn test_and(&mut self, words: &mut Words) -> Result<bool, String> {
        let mut value = self.test_not(words).await?;
        while words.peek(0) == Some("-a") && words.remaining() > 1 {
            words.next();
            value &= self.test_not(words).await?;
        }
        Ok(value)
    }

    async fn test_not(&mut self, words: &mut Words) -> Result<bool, String> {
        let mut negated = false;
        while words.peek(0) == Some("!")
            && words.remaining() > 1
            && !(words.remaining() == 3 && words.peek(1).is_some_and(|word| BINARY.contains(&word)))
        {
            words.next();
            negated = !negated;
        }
        Ok(self.test_primary(words).await? != negated)
    }

    async fn test_primary(&mut self, words: &mut Words) -> Result<bool, String> {
        if words.remaining() == 0 {
            return Err("argument expected".into());
        }
        if words.remaining() >= 3 && words.peek(1).is_some_and(|word| BINARY.contains(&word)) {
            let (left, operator, right) = (words.next(), words.next(), words.next());
            return self.binary(&left, &operator, &right).await;
        }
        if words.peek(0) == Some("(") && words.remaining() > 2 {
            if words.depth > 20 {
                return Err("too many parentheses".into());
            }
            words.next();
            words.depth += 1;
            let value = self.test_or(words).await?;
            words.depth -= 1;
            return if words.next() == ")" { Ok(value) } else { Err("`)' expected".into()) };
        }
        if words.remaining() >= 2 && words.peek(0).is_some_and(is_unary) {
            let (operator, text) = (words.next(), words.next());
            return self.unary(&operator, &text).await;
        }
        if words.remaining() == 2
            && words.peek(1).is_none_or(|word| word != "-a" && word != "-o" && word != ")")
        {
            return Err(format!("{}: unary operator expected", words.peek(0).unwrap_or_default()));
        }
        if words.remaining() == 3
            && words.depth == 0
            && words.peek(1).is_some_and(|word| word != "-a" && word != "-o")
        {
            return Err(format!("{}: binary operator expected", words.peek(1).unwrap_or_default()));
        }
        Ok(!words.next().is_empty())
    }
}
