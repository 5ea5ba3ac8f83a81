//! The awk parser: statements.

use super::lex::Token;
use super::parse::Parser;
use super::syntax::{ArrayName, Expr, Statement, Target, Variable};

impl Parser {
    pub(super) fn body(&mut self) -> Result<Vec<Statement>, String> {
        self.expect("{")?;
        let mut body = Vec::new();
        loop {
            self.ends();
            if self.sign("}") {
                return Ok(body);
            }
            if *self.peek() == Token::End {
                return Err(self.wrong("`}`"));
            }
            body.push(self.statement()?);
        }
    }

    /// Parses the body of an `if`, `else` or loop, which is a single statement.
    fn inner(&mut self) -> Result<Box<Statement>, String> {
        self.lines();
        if self.sign(";") {
            return Ok(Box::new(Statement::Block(Vec::new())));
        }
        Ok(Box::new(self.statement()?))
    }

    fn statement(&mut self) -> Result<Statement, String> {
        self.deeper(Self::any_statement)
    }

    fn any_statement(&mut self) -> Result<Statement, String> {
        if self.is("{") {
            return Ok(Statement::Block(self.body()?));
        }
        let Token::Keyword(keyword) = *self.peek() else {
            let simple = self.simple()?;
            self.ended()?;
            return Ok(simple);
        };
        self.at += 1;
        let statement = match keyword {
            "if" => {
                self.expect("(")?;
                let condition = self.expr()?;
                self.expect(")")?;
                let then = self.inner()?;
                let back = self.at;
                self.ends();
                if self.keyword("else") {
                    return Ok(Statement::If(condition, then, Some(self.inner()?)));
                }
                self.at = back;
                return Ok(Statement::If(condition, then, None));
            }
            "while" => {
                self.expect("(")?;
                let condition = self.expr()?;
                self.expect(")")?;
                return Ok(Statement::While(condition, self.looped()?));
            }
            "do" => {
                let body = self.looped()?;
                self.ends();
                if !self.keyword("while") {
                    return Err(self.wrong("`while`"));
                }
                self.expect("(")?;
                let condition = self.expr()?;
                self.expect(")")?;
                Statement::Do(body, condition)
            }
            "for" => return self.for_loop(),
            "switch" => return self.switch(),
            "break" | "continue" if self.loops == 0 => {
                return Err(format!("`{keyword}` is not within a loop"));
            }
            "break" => Statement::Break,
            "continue" => Statement::Continue,
            "next" => Statement::Next,
            "nextfile" => Statement::NextFile,
            "exit" => Statement::Exit(self.maybe()?),
            "return" if self.within.is_none() => {
                return Err("`return` is not within a function".to_owned());
            }
            "return" => Statement::Return(self.maybe()?),
            _ => {
                self.at -= 1;
                self.simple()?
            }
        };
        self.ended()?;
        Ok(statement)
    }

    /// Parses the end of a statement: a newline, `;` or a closing brace.
    fn ended(&mut self) -> Result<(), String> {
        if *self.peek() == Token::Line || self.is(";") {
            self.at += 1;
            return Ok(());
        }
        if self.is("}") || *self.peek() == Token::End {
            Ok(())
        } else {
            Err(self.wrong("the end of the statement"))
        }
    }

    fn looped(&mut self) -> Result<Box<Statement>, String> {
        self.loops += 1;
        let body = self.inner();
        self.loops -= 1;
        body
    }

    fn maybe(&mut self) -> Result<Option<Expr>, String> {
        if *self.peek() == Token::Line || self.is(";") || self.is("}") {
            Ok(None)
        } else {
            Ok(Some(self.expr()?))
        }
    }

    fn for_loop(&mut self) -> Result<Statement, String> {
        self.expect("(")?;
        if let Some((key, array)) = self.each_head()? {
            return Ok(Statement::Each(key, array, self.looped()?));
        }
        let start = if self.is(";") { None } else { Some(Box::new(self.simple()?)) };
        self.expect(";")?;
        self.lines();
        let condition = if self.is(";") { None } else { Some(self.expr()?) };
        self.expect(";")?;
        self.lines();
        let step = if self.is(")") { None } else { Some(Box::new(self.simple()?)) };
        self.expect(")")?;
        Ok(Statement::For(start, condition, step, self.looped()?))
    }

    /// Parses `key in array)`. Consumes nothing if other tokens follow.
    fn each_head(&mut self) -> Result<Option<(Variable, ArrayName)>, String> {
        let start = self.at;
        if let (Token::Name(key), Token::Keyword("in")) = (self.take(), self.take())
            && let Token::Name(array) = self.take()
        {
            let (key, array) = (self.variable(&key), self.array_name(&array)?);
            if self.sign(")") {
                return Ok(Some((key, array)));
            }
        }
        self.at = start;
        Ok(None)
    }

    fn switch(&mut self) -> Result<Statement, String> {
        self.expect("(")?;
        let value = self.expr()?;
        self.expect(")")?;
        self.lines();
        self.expect("{")?;
        let mut cases: Vec<(Option<Expr>, Vec<Statement>)> = Vec::new();
        self.loops += 1;
        loop {
            self.ends();
            if self.sign("}") {
                break;
            }
            if self.keyword("case") {
                let value = self.primary()?;
                self.expect(":")?;
                cases.push((Some(value), Vec::new()));
            } else if self.keyword("default") {
                self.expect(":")?;
                cases.push((None, Vec::new()));
            } else {
                let statement = self.statement()?;
                match cases.last_mut() {
                    Some((_, body)) => body.push(statement),
                    None => return Err(self.wrong("`case`")),
                }
            }
        }
        self.loops -= 1;
        Ok(Statement::Switch(value, cases))
    }

    fn simple(&mut self) -> Result<Statement, String> {
        if self.keyword("print") {
            let (values, target) = self.printed()?;
            return Ok(Statement::Print(values, target));
        }
        if self.keyword("printf") {
            let (values, target) = self.printed()?;
            if values.is_empty() {
                return Err(self.wrong("the format of `printf`"));
            }
            return Ok(Statement::Printf(values, target));
        }
        if self.keyword("delete") {
            let Token::Name(name) = self.take() else {
                return Err(self.wrong("the name of an array"));
            };
            return Ok(match self.array_name(&name)? {
                ArrayName::Element(array, keys) => Statement::Delete(*array, Some(keys)),
                array => Statement::Delete(array, None),
            });
        }
        Ok(Statement::Expr(self.expr()?))
    }

    fn printed(&mut self) -> Result<(Vec<Expr>, Option<Target>), String> {
        let before = std::mem::replace(&mut self.no_more, true);
        let mut values = Vec::new();
        while !(*self.peek() == Token::Line
            || [";", "}", ">", ">>", "|"].iter().any(|sign| self.is(sign)))
        {
            values.push(self.expr()?);
            if !self.sign(",") {
                break;
            }
            self.lines();
        }
        if let [Expr::Group(items)] = values.as_slice() {
            values = items.clone();
        }
        let target = if self.sign(">") {
            Some(Target::File(self.joined()?))
        } else if self.sign(">>") {
            Some(Target::Append(self.joined()?))
        } else if self.sign("|") {
            Some(Target::Command(self.joined()?))
        } else {
            None
        };
        self.no_more = before;
        Ok((values, target))
    }
}
