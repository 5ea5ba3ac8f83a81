//! The interpreter of an awk program: expressions.

use std::rc::Rc;

use regex::Regex;

use super::expr::regex;
use super::record::Splitter;
use super::run::{DEEPEST, Flow, Run, Stop, failed, place};
use super::syntax::{Comparison, Expr, Operator, Place, Source};
use super::value::{Cell, Text, Value};

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
            Expr::Regex(_) => truth(self.regex(expr)?.is_match(&self.whole_text())),
            Expr::Read(place) => self.read(place)?,
            Expr::Assign(place, value) => {
                let value = self.eval(value)?;
                self.assign(place, value.clone())?;
                value
            }
            Expr::Update(operator, place, value) => {
                let value = self.eval(value)?.number();
                let value = Value::Number(calculate(*operator, self.read(place)?.number(), value)?);
                self.assign(place, value.clone())?;
                value
            }
            Expr::Step(place, by, former) => {
                let before = self.read(place)?.number();
                self.assign(place, Value::Number(before + by))?;
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
                truth(self.regex(right)?.is_match(&text) != *negative)
            }
            Expr::Within(keys, array) => {
                let key = self.key(keys)?;
                let array = self.array(*array)?;
                truth(array.borrow().contains_key(&key))
            }
            Expr::Group(items) => match items.as_slice() {
                [only] => self.eval(only)?,
                _ => Value::text(self.key(items)?),
            },
            Expr::Call(function, args) => self.call(*function, args)?,
            Expr::Builtin(name, args) => super::builtin::call(self, name, args)?,
            Expr::Getline(source, place) => self.getline(source, place.as_ref())?,
        })
    }

    /// Returns the rule that a field separator names.
    pub(crate) fn splitter(&mut self, separator: &Text) -> Result<Splitter, Stop> {
        let mut letters = separator.chars();
        Ok(match (letters.next(), letters.next()) {
            (None, _) => Splitter::Letters,
            (Some(' '), None) => Splitter::Blanks,
            (Some(letter), None)
                if letter != '\\' && !(self.ignores_case() && letter.is_alphabetic()) =>
            {
                Splitter::Letter(letter)
            }
            (Some('\\'), None) => Splitter::Letter('\\'),
            _ => Splitter::Regex(self.dynamic(separator)?),
        })
    }

    fn ignores_case(&self) -> bool {
        self.global(place::IGNORECASE).truth()
    }

    /// Returns the regular expression that an expression is or evaluates to.
    pub(crate) fn regex(&mut self, expr: &'a Expr) -> Result<Rc<Regex>, Stop> {
        match expr {
            Expr::Regex(regex) if !self.ignores_case() => Ok(regex.clone()),
            Expr::Regex(regex) => {
                let text: Text = Rc::from(regex.as_str());
                let built = regex::RegexBuilder::new(&text).case_insensitive(true).build();
                built.map(Rc::new).map_err(|error| Stop::Failed(error.to_string()))
            }
            Expr::Group(items) if items.len() == 1 => self.regex(items.first().unwrap_or(expr)),
            other => {
                let text = self.eval_text(other)?;
                self.dynamic(&text)
            }
        }
    }

    fn dynamic(&mut self, text: &Text) -> Result<Rc<Regex>, Stop> {
        let key = (text.clone(), self.ignores_case());
        if let Some(known) = self.regexes.get(&key) {
            return Ok(known.clone());
        }
        let mut made = regex(text)?;
        if key.1 {
            made = regex::RegexBuilder::new(made.as_str())
                .case_insensitive(true)
                .build()
                .map_err(|error| Stop::Failed(error.to_string()))?;
        }
        let made = Rc::new(made);
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
            Some(self.text(left).cmp(&self.text(right)))
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
        if self.frames.len() >= DEEPEST {
            return failed(format!(
                "function `{}' calls deeper than {DEEPEST} levels",
                function.name
            ));
        }
        let mut frame = Vec::with_capacity(function.params.len());
        for (arg, array) in args.iter().zip(&function.arrays) {
            frame.push(match arg {
                Expr::Read(Place::Variable(variable)) if *array || self.is_array(*variable) => {
                    Cell::Array(self.array(*variable)?)
                }
                other => Cell::Scalar(self.eval(other)?),
            });
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
                let read = self.streams.read_command(&command, &separator);
                if matches!(read, Ok(Some(_))) {
                    let count = self.global(place::NR).number();
                    self.set_global(place::NR, Value::Number(count + 1.0));
                }
                read
            }
        };
        let text = match read {
            Ok(Some(text)) => text,
            Ok(None) => return Ok(Value::Number(0.0)),
            Err(_) => return Ok(Value::Number(-1.0)),
        };
        match place {
            Some(place) => self.assign(place, Value::outside(text))?,
            None => self.record.set(&text),
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
