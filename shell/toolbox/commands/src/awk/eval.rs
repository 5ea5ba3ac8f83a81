//! The awk interpreter: expressions.

use std::rc::Rc;

use super::expr::regex;
use super::lex::BUILTINS;
use super::record::Splitter;
use super::run::{DEEPEST, Flow, Run, Stop, failed, place};
use super::syntax::{Comparison, Expr, Operator, Place, Source, Variable};
use super::value::{Cell, Text, Value};
use crate::pattern::Posix;
use crate::say::words;

impl<'a> Run<'a> {
    pub(crate) fn eval_text(&mut self, expr: &'a Expr) -> Result<Text, Stop> {
        let value = self.eval(expr)?;
        Ok(self.text(&value))
    }

    pub(crate) fn key(&mut self, keys: &'a [Expr]) -> Result<Text, Stop> {
        if let [only] = keys {
            return self.eval_text(only);
        }
        let between = self.global_text(place::SUBSEP);
        let parts = keys.iter().map(|key| self.eval_text(key)).collect::<Result<Vec<_>, _>>()?;
        Ok(Rc::from(parts.join(&between)))
    }

    pub(crate) fn eval(&mut self, expr: &'a Expr) -> Result<Value, Stop> {
        Ok(match expr {
            Expr::Number(number) => Value::Number(*number),
            Expr::Text(text) => Value::Text(text.clone()),
            Expr::Regex(_) => truth(self.regex(expr)?.is_match(self.whole_text().as_bytes())),
            Expr::TypedRegex(pattern) => Value::Regex(pattern.text.clone()),
            Expr::Read(place) => self.read(place)?,
            Expr::Assign(place, value) => {
                let value = self.eval(value)?;
                self.assign(place, value.clone())?;
                value
            }
            Expr::Update(operator, place, value) => {
                let value = self.eval(value)?.number();
                let slot = self.slot(place)?;
                let before = self.read_slot(&slot)?.number();
                let value = Value::Number(calculate(*operator, before, value)?);
                self.assign_slot(&slot, value.clone())?;
                value
            }
            Expr::Step(place, by, former) => {
                let slot = self.slot(place)?;
                let before = self.read_slot(&slot)?.number();
                self.assign_slot(&slot, Value::Number(before + by))?;
                Value::Number(if *former { before } else { before + by })
            }
            Expr::Choice(condition, yes, no) => {
                let chosen = if self.eval(condition)?.truth() { yes } else { no };
                self.eval(chosen)?
            }
            Expr::And(left, right) => truth(self.eval(left)?.truth() && self.eval(right)?.truth()),
            Expr::Or(left, right) => truth(self.eval(left)?.truth() || self.eval(right)?.truth()),
            Expr::Not(inner) => truth(!self.eval(inner)?.truth()),
            Expr::Negative(inner) => Value::Number(-self.eval(inner)?.number()),
            Expr::Positive(inner) => Value::Number(self.eval(inner)?.number()),
            Expr::Arithmetic(operator, left, right) => {
                let left = self.eval(left)?.number();
                Value::Number(calculate(*operator, left, self.eval(right)?.number())?)
            }
            Expr::Compare(comparison, left, right) => {
                let left = self.eval(left)?;
                let right = self.eval(right)?;
                truth(self.compare(*comparison, &left, &right))
            }
            Expr::Join(left, right) => {
                let left = self.eval_text(left)?;
                let right = self.eval_text(right)?;
                let mut joined = String::with_capacity(left.len() + right.len());
                joined.push_str(&left);
                joined.push_str(&right);
                Value::text(joined)
            }
            Expr::Matches(left, right, negative) => {
                let text = self.eval_text(left)?;
                truth(self.regex(right)?.is_match(text.as_bytes()) != *negative)
            }
            Expr::Within(keys, array) => {
                let key = self.key(keys)?;
                let array = self.array_named(array)?;
                truth(array.borrow().contains_key(&key))
            }
            Expr::Group(items) => match items.as_slice() {
                [only] => self.eval(only)?,
                _ => Value::text(self.key(items)?),
            },
            Expr::Call(function, args) => self.call(*function, args)?,
            Expr::Indirect(variable, args) => self.indirect(*variable, args)?,
            Expr::Builtin(name, args) => super::builtin::call(self, name, args)?,
            Expr::Getline(source, place) => self.getline(source, place.as_ref())?,
        })
    }

    /// Returns the splitting rule for a field separator.
    pub(crate) fn splitter(&mut self, separator: &Text) -> Result<Splitter, Stop> {
        let mut letters = separator.chars();
        Ok(match (letters.next(), letters.next()) {
            (None, _) => Splitter::Letters,
            (Some(' '), None) => Splitter::Whitespace,
            (Some(letter), None) => Splitter::Letter(letter),
            _ => Splitter::Regex(self.dynamic(separator)?),
        })
    }

    pub(crate) fn ignores_case(&self) -> bool {
        self.global(place::IGNORECASE).truth()
    }

    /// Returns the compiled pattern of a regex literal. Compiles the value of any other expression.
    pub(crate) fn regex(&mut self, expr: &'a Expr) -> Result<Rc<Posix>, Stop> {
        match expr {
            Expr::Regex(pattern) if self.ignores_case() => self.dynamic(&pattern.text),
            Expr::Regex(pattern) => Ok(pattern.regex.clone()),
            Expr::Group(items) if items.len() == 1 => self.regex(items.first().unwrap_or(expr)),
            other => {
                let text = self.eval_text(other)?;
                self.dynamic(&text)
            }
        }
    }

    /// Compiles a regular expression, or returns its compiled form from the cache.
    pub(crate) fn dynamic(&mut self, text: &Text) -> Result<Rc<Posix>, Stop> {
        let key = (text.clone(), self.ignores_case());
        if let Some(known) = self.regexes.get(&key) {
            return Ok(known.clone());
        }
        let made = regex(text, key.1)?;
        if self.regexes.len() >= 1000 {
            self.regexes.clear();
        }
        self.regexes.insert(key, made.clone());
        Ok(made)
    }

    pub(crate) fn compare(&self, comparison: Comparison, left: &Value, right: &Value) -> bool {
        let order = if left.numeric() && right.numeric() {
            left.number().partial_cmp(&right.number())
        } else {
            let (left, right) = (self.text(left), self.text(right));
            Some(match self.ignores_case() {
                true => left.to_lowercase().cmp(&right.to_lowercase()),
                false => left.cmp(&right),
            })
        };
        let Some(order) = order else { return comparison == Comparison::Different };
        match comparison {
            Comparison::Less => order.is_lt(),
            Comparison::LessOrSame => order.is_le(),
            Comparison::Same => order.is_eq(),
            Comparison::Different => order.is_ne(),
            Comparison::More => order.is_gt(),
            Comparison::MoreOrSame => order.is_ge(),
        }
    }

    fn call(&mut self, number: usize, args: &'a [Expr]) -> Result<Value, Stop> {
        let program = self.program;
        let Some(function) = program.functions.get(number) else { return Ok(Value::Nothing) };
        if args.len() > function.params.len() {
            return failed(format!(
                "function `{}' called with more arguments than it has parameters",
                function.name
            ));
        }
        let mut frame = Vec::with_capacity(function.params.len());
        for (arg, is_array) in args.iter().zip(&function.arrays) {
            frame.push(self.argument(arg, *is_array)?);
        }
        self.call_with(number, frame)
    }

    /// Calls a user-defined function. `frame` contains the values of its first parameters.
    pub(crate) fn call_with(&mut self, number: usize, mut frame: Vec<Cell>) -> Result<Value, Stop> {
        let program = self.program;
        let Some(function) = program.functions.get(number) else { return Ok(Value::Nothing) };
        if self.frames.len() >= DEEPEST {
            return failed(format!(
                "function `{}' calls deeper than {DEEPEST} levels",
                function.name
            ));
        }
        frame.resize(function.params.len(), Cell::Unused);
        self.frames.push(frame);
        let flow = self.statements(&function.body);
        self.frames.pop();
        match flow? {
            Flow::Return(value) => Ok(value),
            Flow::Exit => Err(Stop::Exit),
            Flow::Next => Err(Stop::Next),
            Flow::NextFile => Err(Stop::NextFile),
            _ => Ok(Value::Nothing),
        }
    }

    /// Calls the function named by the value of a variable.
    fn indirect(&mut self, variable: Variable, args: &'a [Expr]) -> Result<Value, Stop> {
        let name = match self.cell(variable) {
            Some(Cell::Scalar(value)) => value.to_text("%.6g"),
            _ => Rc::from(""),
        };
        let program = self.program;
        if let Some(known) = program.functions.iter().position(|known| *known.name == *name) {
            return self.call(known, args);
        }
        match BUILTINS.iter().find(|builtin| **builtin == &*name) {
            Some(builtin) => super::builtin::call(self, builtin, args),
            None => failed(format!("function called indirectly `{name}' does not exist")),
        }
    }

    fn getline(&mut self, source: &'a Source, place: Option<&'a Place>) -> Result<Value, Stop> {
        let read = match source {
            Source::Input => super::input::next(self)?,
            Source::File(path) => {
                let path = self.eval_text(path)?;
                let separator = super::input::separator(self)?;
                self.streams.read_file(&path, &separator)
            }
            Source::Command(command) => {
                let command = self.eval_text(command)?;
                let separator = super::input::separator(self)?;
                self.streams.read_command(&command, &separator)
            }
        };
        let record = match read {
            Ok(Some(record)) => record,
            Ok(None) => return Ok(Value::Number(0.0)),
            Err(error) => {
                self.set_global(place::ERRNO, Value::text(words(&error)));
                return Ok(Value::Number(-1.0));
            }
        };
        self.set_global(place::RT, Value::text(record.end));
        match place {
            Some(place) => self.assign(place, Value::outside(record.text))?,
            None => self.record.set(&record.text),
        }
        Ok(Value::Number(1.0))
    }
}

pub(crate) fn truth(holds: bool) -> Value {
    Value::Number(f64::from(u8::from(holds)))
}

fn calculate(operator: Operator, left: f64, right: f64) -> Result<f64, Stop> {
    Ok(match operator {
        Operator::Add => left + right,
        Operator::Subtract => left - right,
        Operator::Multiply => left * right,
        Operator::Divide if right == 0.0 => return failed("division by zero attempted".to_owned()),
        Operator::Divide => left / right,
        Operator::Remainder if right == 0.0 => {
            return failed("division by zero attempted in `%'".to_owned());
        }
        Operator::Remainder => left % right,
        Operator::Power => left.powf(right),
    })
}
