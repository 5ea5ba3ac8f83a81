//! The awk parser: expressions.

use std::rc::Rc;

use super::lex::Token;
use super::parse::Parser;
use super::syntax::{ArrayName, Comparison, Expr, Operator, Pattern, Place, Source};
use crate::pattern::{Notation, Posix, Tool};

const UPDATES: [(&str, Operator); 7] = [
    ("+=", Operator::Add),
    ("-=", Operator::Subtract),
    ("*=", Operator::Multiply),
    ("/=", Operator::Divide),
    ("%=", Operator::Remainder),
    ("^=", Operator::Power),
    ("**=", Operator::Power),
];

const COMPARISONS: [(&str, Comparison); 6] = [
    ("<", Comparison::Less),
    ("<=", Comparison::LessOrSame),
    ("==", Comparison::Same),
    ("!=", Comparison::Different),
    (">", Comparison::More),
    (">=", Comparison::MoreOrSame),
];

/// Compiles an awk regular expression.
pub(crate) fn regex(text: &str, ignore_case: bool) -> Result<Rc<Posix>, String> {
    let notation = Notation { ignore_case, ..Notation::new(Tool::Awk, true) };
    match Posix::new(text, notation) {
        Ok(regex) => Ok(Rc::new(regex)),
        Err(why) => Err(format!("regular expression /{text}/: {why}")),
    }
}

fn pattern(text: String) -> Result<Pattern, String> {
    Ok(Pattern { regex: regex(&text, false)?, text: Rc::from(text) })
}

impl Parser {
    /// Parses a whole expression.
    pub(super) fn expr(&mut self) -> Result<Expr, String> {
        self.deeper(Self::choice)
    }

    fn choice(&mut self) -> Result<Expr, String> {
        let condition = self.or()?;
        if !self.sign("?") {
            return Ok(condition);
        }
        self.lines();
        let yes = self.expr()?;
        self.lines();
        self.expect(":")?;
        self.lines();
        let no = self.expr()?;
        Ok(Expr::Choice(Box::new(condition), Box::new(yes), Box::new(no)))
    }

    fn or(&mut self) -> Result<Expr, String> {
        let mut left = self.and()?;
        while self.sign("||") {
            self.lines();
            left = Expr::Or(Box::new(left), Box::new(self.and()?));
        }
        Ok(left)
    }

    fn and(&mut self) -> Result<Expr, String> {
        let mut left = self.within()?;
        while self.sign("&&") {
            self.lines();
            left = Expr::And(Box::new(left), Box::new(self.within()?));
        }
        Ok(left)
    }

    fn within(&mut self) -> Result<Expr, String> {
        let mut left = self.matching()?;
        while !self.no_in && *self.peek() == Token::Keyword("in") {
            self.take();
            let Token::Name(name) = self.take() else {
                return Err(self.wrong("the name of an array"));
            };
            let keys = match left {
                Expr::Group(items) => items,
                other => vec![other],
            };
            left = Expr::Within(keys, self.array_name(&name)?);
        }
        Ok(left)
    }

    fn matching(&mut self) -> Result<Expr, String> {
        let mut left = self.comparison()?;
        loop {
            let negative = if self.sign("~") {
                false
            } else if self.sign("!~") {
                true
            } else {
                return Ok(left);
            };
            left = Expr::Matches(Box::new(left), Box::new(self.comparison()?), negative);
        }
    }

    fn comparison(&mut self) -> Result<Expr, String> {
        let left = self.joined()?;
        let found =
            COMPARISONS.iter().find(|(sign, _)| self.is(sign) && !(self.no_more && *sign == ">"));
        let Some((_, comparison)) = found else { return Ok(left) };
        self.take();
        Ok(Expr::Compare(*comparison, Box::new(left), Box::new(self.joined()?)))
    }

    /// Parses concatenations and pipes from commands (`command | getline`).
    pub(super) fn joined(&mut self) -> Result<Expr, String> {
        let mut left = self.sum()?;
        loop {
            if self.is("|") && *self.peek_at(1) == Token::Keyword("getline") {
                self.take();
                self.take();
                let place = self.target()?;
                left = Expr::Getline(Source::Command(Box::new(left)), place);
            } else if self.starts_operand() {
                left = Expr::Join(Box::new(left), Box::new(self.sum()?));
            } else {
                return Ok(left);
            }
        }
    }

    fn starts_operand(&self) -> bool {
        match self.peek() {
            Token::Number(_)
            | Token::Text(_)
            | Token::Regex(_)
            | Token::Name(_)
            | Token::Call(_)
            | Token::Builtin(_) => true,
            Token::Sign(sign) => matches!(*sign, "$" | "!" | "(" | "-" | "+" | "++" | "--"),
            _ => false,
        }
    }

    fn sum(&mut self) -> Result<Expr, String> {
        let mut left = self.product()?;
        loop {
            let operator = if self.sign("+") {
                Operator::Add
            } else if self.sign("-") {
                Operator::Subtract
            } else {
                return Ok(left);
            };
            left = Expr::Arithmetic(operator, Box::new(left), Box::new(self.product()?));
        }
    }

    fn product(&mut self) -> Result<Expr, String> {
        let mut left = self.unary()?;
        loop {
            let operator = if self.sign("*") {
                Operator::Multiply
            } else if self.sign("/") {
                Operator::Divide
            } else if self.sign("%") {
                Operator::Remainder
            } else {
                return Ok(left);
            };
            left = Expr::Arithmetic(operator, Box::new(left), Box::new(self.unary()?));
        }
    }

    fn unary(&mut self) -> Result<Expr, String> {
        self.deeper(|parser| {
            if parser.sign("!") {
                return Ok(Expr::Not(Box::new(parser.unary()?)));
            }
            if parser.sign("-") {
                return Ok(Expr::Negative(Box::new(parser.unary()?)));
            }
            if parser.sign("+") {
                return Ok(Expr::Positive(Box::new(parser.unary()?)));
            }
            parser.power()
        })
    }

    fn power(&mut self) -> Result<Expr, String> {
        let base = self.stepped()?;
        if !self.sign("^") && !self.sign("**") {
            return Ok(base);
        }
        let exponent = self.unary()?;
        Ok(Expr::Arithmetic(Operator::Power, Box::new(base), Box::new(exponent)))
    }

    /// Parses an operand and the `++`, `--` or assignment that may follow it.
    fn stepped(&mut self) -> Result<Expr, String> {
        let operand = self.primary()?;
        let Some(place) = Self::place(&operand) else { return Ok(operand) };
        if self.sign("++") {
            return Ok(Expr::Step(place, 1.0, true));
        }
        if self.sign("--") {
            return Ok(Expr::Step(place, -1.0, true));
        }
        if self.sign("=") {
            self.lines();
            return Ok(Expr::Assign(place, Box::new(self.expr()?)));
        }
        match UPDATES.iter().find(|(sign, _)| self.is(sign)) {
            Some((_, operator)) => {
                self.take();
                self.lines();
                Ok(Expr::Update(*operator, place, Box::new(self.expr()?)))
            }
            None => Ok(operand),
        }
    }

    pub(super) fn primary(&mut self) -> Result<Expr, String> {
        let token = self.take();
        match token {
            Token::Number(number) => Ok(Expr::Number(number)),
            Token::Text(text) => Ok(Expr::Text(Rc::from(text))),
            Token::Regex(text) => Ok(Expr::Regex(pattern(text)?)),
            Token::Sign("@") => self.after_at(),
            Token::Sign("$") => {
                let inner = self.deeper(|parser| match parser.peek() {
                    Token::Sign("-") => parser.unary(),
                    _ => parser.primary(),
                })?;
                Ok(Expr::Read(Place::Field(Box::new(inner))))
            }
            Token::Sign(sign @ ("++" | "--")) => {
                let operand = self.primary()?;
                let place =
                    Self::place(&operand).ok_or_else(|| self.wrong("something to count"))?;
                Ok(Expr::Step(place, if sign == "++" { 1.0 } else { -1.0 }, false))
            }
            Token::Sign(sign @ ("-" | "+" | "!")) => {
                let operand = self.unary()?;
                Ok(match sign {
                    "-" => Expr::Negative(Box::new(operand)),
                    "+" => Expr::Positive(Box::new(operand)),
                    _ => Expr::Not(Box::new(operand)),
                })
            }
            Token::Sign("(") => {
                let items = self.deeper(|parser| parser.list(")"))?;
                if items.is_empty() {
                    return Err(self.wrong("an expression within the parentheses"));
                }
                Ok(Expr::Group(items))
            }
            Token::Name(name) => Ok(Expr::Read(match self.array_name(&name)? {
                ArrayName::Variable(variable) => Place::Variable(variable),
                ArrayName::Element(array, keys) => Place::Element(*array, keys),
            })),
            Token::Call(name) => {
                let function = self.function(&name);
                self.expect("(")?;
                Ok(Expr::Call(function, self.deeper(|parser| parser.list(")"))?))
            }
            Token::Builtin(name) => {
                if self.sign("(") {
                    return Ok(Expr::Builtin(name, self.deeper(|parser| parser.list(")"))?));
                }
                if name == "length" {
                    Ok(Expr::Builtin(name, Vec::new()))
                } else {
                    Err(self.wrong("`(`"))
                }
            }
            Token::Keyword("getline") => {
                let place = self.target()?;
                if self.sign("<") {
                    let file = self.deeper(Self::primary)?;
                    return Ok(Expr::Getline(Source::File(Box::new(file)), place));
                }
                Ok(Expr::Getline(Source::Input, place))
            }
            _ => {
                self.back();
                Err(self.wrong("an expression"))
            }
        }
    }

    /// Parses the rest of `@/…/` or `@name(…)`, starting after the `@`.
    fn after_at(&mut self) -> Result<Expr, String> {
        match self.take() {
            Token::Regex(text) => Ok(Expr::TypedRegex(pattern(text)?)),
            Token::Call(name) => {
                let variable = self.variable(&name);
                self.expect("(")?;
                Ok(Expr::Indirect(variable, self.deeper(|parser| parser.list(")"))?))
            }
            _ => {
                self.back();
                Err(self.wrong("a regular expression or a call after `@`"))
            }
        }
    }

    /// Parses the optional subscripts after a name, such as those of `a[1]` and `a[1][2]`.
    pub(super) fn array_name(&mut self, name: &str) -> Result<ArrayName, String> {
        let mut array = ArrayName::Variable(self.variable(name));
        while self.sign("[") {
            let keys = self.deeper(|parser| parser.list("]"))?;
            array = ArrayName::Element(Box::new(array), keys);
        }
        Ok(array)
    }

    /// Parses the optional target of `getline`.
    fn target(&mut self) -> Result<Option<Place>, String> {
        if !(matches!(self.peek(), Token::Name(_)) || self.is("$")) {
            return Ok(None);
        }
        let operand = self.primary()?;
        Ok(Self::place(&operand))
    }
}
