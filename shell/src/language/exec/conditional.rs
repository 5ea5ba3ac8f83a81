//! Evaluates the expressions of `[[ ]]`.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::language::ast::Test;
use crate::language::interpreter::{Flow, Interpreter};
use crate::language::pattern::{self, Matching};

impl Interpreter {
    /// Evaluates a test. Fails with a message if the test is invalid.
    pub(super) fn conditional<'a>(
        &'a mut self,
        test: &'a Test,
    ) -> BoxFuture<'a, Flow<Result<bool, String>>> {
        async move {
            self.checkpoint().await?;
            Ok(match test {
                Test::And(left, right) => match self.conditional(left).await? {
                    Ok(true) => self.conditional(right).await?,
                    other => other,
                },
                Test::Or(left, right) => match self.conditional(left).await? {
                    Ok(false) => self.conditional(right).await?,
                    other => other,
                },
                Test::Not(inner) => self.conditional(inner).await?.map(|truth| !truth),
                Test::Word(word) => Ok(!self.text(word).await?.is_empty()),
                Test::Unary(operator, word) => {
                    let text = self.text(word).await?;
                    self.unary(operator, &text).await
                }
                Test::Binary(left, operator, right) => match operator.as_str() {
                    "=~" => {
                        let text = self.text(left).await?;
                        let fragments = self.fragments(right).await?;
                        self.regex_match(&text, &pattern::extended_regex(&fragments))?
                    }
                    "=" | "==" | "!=" => {
                        let text = self.text(left).await?;
                        let pattern = self.pattern(right, true, self.options.nocasematch).await?;
                        let mut matching = Matching::new(&self.run.patterns);
                        let matches = pattern.matches(&text, &mut matching);
                        self.run.charge(matching.steps());
                        match matches {
                            Ok(matches) => Ok(matches == (operator != "!=")),
                            Err(_) => Err("a pattern takes too long on this text".into()),
                        }
                    }
                    operator => {
                        let (left, right) = (self.text(left).await?, self.text(right).await?);
                        if operator.starts_with('-') && !matches!(operator, "-nt" | "-ot" | "-ef") {
                            self.compare(&left, operator, &right)
                        } else {
                            self.binary(&left, operator, &right).await
                        }
                    }
                },
            })
        }
        .boxed()
    }

    /// Compares two numbers. In `[[ ]]`, both sides are arithmetic expressions.
    fn compare(&mut self, left: &str, operator: &str, right: &str) -> Result<bool, String> {
        let left = crate::language::arithmetic::evaluate(left, self)?;
        let right = crate::language::arithmetic::evaluate(right, self)?;
        Ok(super::files::compare_numbers(left, operator, right))
    }

    /// Evaluates `=~` and sets `BASH_REMATCH`.
    fn regex_match(&mut self, text: &str, regex: &str) -> Flow<Result<bool, String>> {
        let regex = match self.run.patterns.regex(regex, self.options.nocasematch) {
            Ok(regex) => regex,
            Err(message) => {
                return Ok(Err(format!("[[: the regular expression is not valid: {message}")));
            }
        };
        let found = regex.captures(text);
        let groups = match &found {
            Some(found) => found
                .iter()
                .map(|group| group.map_or_else(String::new, |group| group.as_str().to_owned()))
                .collect(),
            None => Vec::new(),
        };
        let matched = found.is_some();
        Ok(self.set_list("BASH_REMATCH", groups)?.map(|()| matched))
    }
}
