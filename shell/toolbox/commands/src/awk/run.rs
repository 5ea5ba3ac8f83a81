//! The awk interpreter: the state of a running program, its statements, expressions, variables and
//! fields.

use std::collections::HashMap;
use std::io::Write as _;
use std::rc::Rc;

use super::input::{self, Input, Streams};
use super::lex::BUILTINS;
use super::parse::regex;
use super::record::{Record, Splitter, Widths};
use super::syntax::{
    ArrayName, Comparison, Expr, Operator, Output, Place, Program, Source, Statement, Target,
    Variable, place,
};
use super::value::{Array, Cell, Text, Value};
use super::{builtin, format};
use crate::pattern::Posix;
use crate::say::words;

/// The reason why a statement ended.
pub(crate) enum Flow {
    On,
    Break,
    Continue,
    Next,
    NextFile,
    Exit,
    Return(Value),
}

/// The reason why evaluation stopped early.
pub(crate) enum Stop {
    Failed(String),
    Exit,
    Next,
    NextFile,
}

impl From<String> for Stop {
    fn from(why: String) -> Stop {
        Stop::Failed(why)
    }
}

/// Returns an error with the message `why`.
pub(crate) fn failed<T>(why: String) -> Result<T, Stop> {
    Err(Stop::Failed(why))
}

/// The maximum depth of nested function calls.
pub(super) const DEEPEST: usize = 200;

pub(crate) struct Run<'a> {
    pub program: &'a Program,
    pub globals: Vec<Cell>,
    pub(super) frames: Vec<Vec<Cell>>,
    pub record: Record,
    pub input: Input,
    pub streams: Streams,
    pub status: i32,
    pub random: u64,
    pub seed: f64,
    pub(super) regexes: HashMap<(Text, bool), Rc<Posix>>,
    pub(super) splitter: Option<(Text, Splitter)>,
    /// The slot of the variable that defines how records are split: `FS`, `FPAT` or `FIELDWIDTHS`,
    /// whichever was assigned last.
    pub(super) split_by: usize,
}

/// Statements.
impl<'a> Run<'a> {
    pub(crate) fn new(program: &'a Program) -> Run<'a> {
        let mut run = Run {
            program,
            globals: vec![Cell::Unused; program.globals.len()],
            frames: Vec::new(),
            record: Record::default(),
            input: Input::default(),
            streams: Streams::new(),
            status: 0,
            random: 0x2545_f491_4f6c_dd1d,
            seed: 0.0,
            regexes: HashMap::new(),
            splitter: None,
            split_by: place::FS,
        };
        for (place, text) in [
            (place::FS, " "),
            (place::OFS, " "),
            (place::ORS, "\n"),
            (place::RS, "\n"),
            (place::SUBSEP, "\x1c"),
            (place::CONVFMT, "%.6g"),
            (place::OFMT, "%.6g"),
            (place::FILENAME, ""),
            (place::FPAT, "[^[:space:]]+"),
            (place::FIELDWIDTHS, ""),
            (place::RT, ""),
            (place::ERRNO, ""),
        ] {
            run.set_global(place, Value::text(text));
        }
        for place in [place::NR, place::FNR, place::RSTART] {
            run.set_global(place, Value::Number(0.0));
        }
        run.set_global(place::RLENGTH, Value::Number(-1.0));
        run
    }

    pub(crate) fn set_global(&mut self, place: usize, value: Value) {
        if let Some(cell) = self.globals.get_mut(place) {
            *cell = Cell::Scalar(value);
        }
    }

    pub(crate) fn global(&self, place: usize) -> Value {
        match self.globals.get(place) {
            Some(Cell::Scalar(value)) => value.clone(),
            _ => Value::Nothing,
        }
    }

    pub(crate) fn global_text(&self, place: usize) -> Text {
        self.global(place).to_text("%.6g")
    }

    pub(crate) fn text(&self, value: &Value) -> Text {
        match value {
            Value::Text(text) | Value::Either(text, _) | Value::Regex(text) => text.clone(),
            Value::Number(number) if number.fract() != 0.0 => {
                value.to_text(&self.global_text(place::CONVFMT))
            }
            other => other.to_text("%.6g"),
        }
    }

    pub(crate) fn statements(&mut self, body: &'a [Statement]) -> Result<Flow, Stop> {
        for statement in body {
            match self.statement(statement)? {
                Flow::On => {}
                flow => return Ok(flow),
            }
        }
        Ok(Flow::On)
    }

    fn statement(&mut self, statement: &'a Statement) -> Result<Flow, Stop> {
        match statement {
            Statement::Expr(expr) => _ = self.eval(expr)?,
            Statement::Print(values, target) => self.print(values, target.as_ref())?,
            Statement::Printf(values, target) => {
                let values =
                    values.iter().map(|value| self.eval(value)).collect::<Result<Vec<_>, _>>()?;
                let text = self.formatted(&values)?;
                self.put(text.as_bytes(), target.as_ref())?;
            }
            Statement::If(condition, then, other) => {
                if self.eval(condition)?.truth() {
                    return self.statement(then);
                } else if let Some(other) = other {
                    return self.statement(other);
                }
            }
            Statement::Do(body, condition) => loop {
                if let Some(flow) = self.turn(body)? {
                    return Ok(flow);
                }
                if !self.eval(condition)?.truth() {
                    break;
                }
            },
            Statement::For(start, condition, step, body) => {
                if let Some(start) = start {
                    self.statement(start)?;
                }
                loop {
                    if let Some(condition) = condition
                        && !self.eval(condition)?.truth()
                    {
                        break;
                    }
                    if let Some(flow) = self.turn(body)? {
                        return Ok(flow);
                    }
                    if let Some(step) = step {
                        self.statement(step)?;
                    }
                }
            }
            Statement::Each(key, array, body) => return self.each(*key, array, body),
            Statement::Switch(value, cases) => return self.switch(value, cases),
            Statement::Block(body) => return self.statements(body),
            Statement::Delete(array, keys) => {
                let array = self.array_named(array)?;
                match keys {
                    Some(keys) => {
                        let key = self.key(keys)?;
                        array.borrow_mut().swap_remove(&key);
                    }
                    None => array.borrow_mut().clear(),
                }
            }
            Statement::Next => return Ok(Flow::Next),
            Statement::NextFile => return Ok(Flow::NextFile),
            Statement::Break => return Ok(Flow::Break),
            Statement::Continue => return Ok(Flow::Continue),
            Statement::Exit(value) => {
                if let Some(value) = value {
                    self.status = self.eval(value)?.number() as i64 as u8 as i32;
                }
                return Ok(Flow::Exit);
            }
            Statement::Return(value) => {
                let value = value.as_ref().map_or(Ok(Value::Nothing), |value| self.eval(value))?;
                return Ok(Flow::Return(value));
            }
        }
        Ok(Flow::On)
    }

    /// Runs the body of a loop once. Returns `None` if the loop goes on.
    fn turn(&mut self, body: &'a Statement) -> Result<Option<Flow>, Stop> {
        Ok(match self.statement(body)? {
            Flow::On | Flow::Continue => None,
            Flow::Break => Some(Flow::On),
            flow => Some(flow),
        })
    }

    fn each(
        &mut self,
        key: Variable,
        array: &'a ArrayName,
        body: &'a Statement,
    ) -> Result<Flow, Stop> {
        let array = self.array_named(array)?;
        let order = match self.globals.get(place::PROCINFO) {
            Some(Cell::Array(info)) => info.borrow().get("sorted_in").map(|order| self.text(order)),
            _ => None,
        };
        for next in builtin::keys(self, &array, order.as_deref().unwrap_or_default())? {
            if !array.borrow().contains_key(&next) {
                continue;
            }
            self.assign_variable(key, Value::outside(next))?;
            if let Some(flow) = self.turn(body)? {
                return Ok(flow);
            }
        }
        Ok(Flow::On)
    }

    fn switch(
        &mut self,
        value: &'a Expr,
        cases: &'a [(Option<Expr>, Vec<Statement>)],
    ) -> Result<Flow, Stop> {
        let value = self.eval(value)?;
        let mut start = None;
        for (n, (case, _)) in cases.iter().enumerate() {
            let holds = match case {
                Some(Expr::Regex(pattern)) => pattern.regex.is_match(self.text(&value).as_bytes()),
                Some(case) => {
                    let case = self.eval(case)?;
                    self.compare(Comparison::Same, &value, &case)
                }
                None => false,
            };
            if holds {
                start = Some(n);
                break;
            }
        }
        let start = start
            .or_else(|| cases.iter().position(|(case, _)| case.is_none()))
            .unwrap_or(cases.len());
        for (_, body) in cases.iter().skip(start) {
            match self.statements(body)? {
                Flow::On => {}
                Flow::Break => break,
                flow => return Ok(flow),
            }
        }
        Ok(Flow::On)
    }

    fn print(&mut self, values: &'a [Expr], target: Option<&'a Target>) -> Result<(), Stop> {
        let mut line = String::new();
        if values.is_empty() {
            line.push_str(&self.whole_text());
        }
        for (n, value) in values.iter().enumerate() {
            if n > 0 {
                line.push_str(&self.global_text(place::OFS));
            }
            match self.eval(value)? {
                Value::Text(text) | Value::Either(text, _) => line.push_str(&text),
                Value::Number(number) if number.fract() != 0.0 => {
                    line.push_str(&Value::Number(number).to_text(&self.global_text(place::OFMT)));
                }
                other => line.push_str(&other.to_text("%.6g")),
            }
        }
        line.push_str(&self.global_text(place::ORS));
        self.put(line.as_bytes(), target)
    }

    /// Prints the record, which is the default action of a rule without a body.
    pub(crate) fn print_record(&mut self) -> Result<(), Stop> {
        self.print(&[], None)
    }

    pub(super) fn put(&mut self, bytes: &[u8], target: Option<&'a Target>) -> Result<(), Stop> {
        let Some((output, to)) = target else {
            return self.streams.out.write_all(bytes).map_err(|error| error.to_string().into());
        };
        let to = self.eval_text(to)?;
        Ok(match output {
            Output::File => self.streams.write_file(&to, false, bytes),
            Output::Append => self.streams.write_file(&to, true, bytes),
            Output::Command => self.streams.write_command(&to, bytes),
        }?)
    }

    /// Formats values as `printf` does. The first value is the format.
    pub(crate) fn formatted(&self, values: &[Value]) -> Result<String, String> {
        let Some((first, rest)) = values.split_first() else { return Ok(String::new()) };
        format::format(&self.text(first), rest, |value| self.text(value))
    }

    pub(crate) fn whole_text(&mut self) -> String {
        let between = self.global_text(place::OFS);
        let conversion = self.global_text(place::CONVFMT);
        self.record.text(&between, &conversion).to_owned()
    }
}

/// Expressions.
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
            Expr::Builtin(name, args) => builtin::call(self, name, args)?,
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
            let left = self.text(left);
            let right = self.text(right);
            Some(if self.ignores_case() {
                left.to_lowercase().cmp(&right.to_lowercase())
            } else {
                left.cmp(&right)
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
            Some(builtin) => builtin::call(self, builtin, args),
            None => failed(format!("function called indirectly `{name}' does not exist")),
        }
    }

    fn getline(&mut self, source: &'a Source, place: Option<&'a Place>) -> Result<Value, Stop> {
        let read = match source {
            Source::Input => input::next(self)?,
            Source::File(path) => {
                let path = self.eval_text(path)?;
                let separator = input::separator(self)?;
                self.streams.read_file(&path, &separator)
            }
            Source::Command(command) => {
                let command = self.eval_text(command)?;
                let separator = input::separator(self)?;
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

/// A `Place` whose field number or element key has been evaluated.
pub(crate) enum Slot {
    Variable(Variable),
    Field(usize),
    Element(Array, Text),
}

fn in_scalar_context<T>(array: &str) -> Result<T, Stop> {
    failed(format!("attempt to use array `{array}' in a scalar context"))
}

/// Variables, arrays and fields.
impl<'a> Run<'a> {
    pub(super) fn cell(&mut self, variable: Variable) -> Option<&mut Cell> {
        match variable {
            Variable::Global(place) => self.globals.get_mut(place),
            Variable::Local(place) => self.frames.last_mut().and_then(|frame| frame.get_mut(place)),
        }
    }

    pub(super) fn name(&self, variable: Variable) -> String {
        match variable {
            Variable::Global(place) => self.program.globals.get(place).cloned().unwrap_or_default(),
            Variable::Local(place) => format!("parameter {}", place + 1),
        }
    }

    /// Returns a variable's array. An unused variable becomes an array.
    pub(crate) fn array(&mut self, variable: Variable) -> Result<Array, Stop> {
        match self.cell(variable) {
            Some(Cell::Array(array)) => Ok(array.clone()),
            Some(cell @ Cell::Unused) => {
                let array = Array::default();
                *cell = Cell::Array(array.clone());
                Ok(array)
            }
            _ => failed(format!("attempt to use scalar `{}' as an array", self.name(variable))),
        }
    }

    /// Returns an array by its name. An unused variable or element becomes an array.
    pub(crate) fn array_named(&mut self, name: &'a ArrayName) -> Result<Array, Stop> {
        match name {
            ArrayName::Variable(variable) => self.array(*variable),
            ArrayName::Element(array, keys) => self.inner_array(array, keys),
        }
    }

    fn inner_array(&mut self, array: &'a ArrayName, keys: &'a [Expr]) -> Result<Array, Stop> {
        match self.element(array, keys, true)? {
            Cell::Array(inner) => Ok(inner),
            _ => failed("attempt to use a scalar element of an array as an array".to_owned()),
        }
    }

    /// Returns the content of an array element. If `wants_array` is true, an unused element becomes
    /// an array.
    fn element(
        &mut self,
        array: &'a ArrayName,
        keys: &'a [Expr],
        wants_array: bool,
    ) -> Result<Cell, Stop> {
        let outer = self.array_named(array)?;
        let key = self.key(keys)?;
        let mut outer = outer.borrow_mut();
        let element = outer.entry(key).or_default();
        Ok(match element {
            Value::Array(inner) => Cell::Array(inner.clone()),
            Value::Nothing if wants_array => {
                let inner = Array::default();
                *element = Value::Array(inner.clone());
                Cell::Array(inner)
            }
            value => Cell::Scalar(value.clone()),
        })
    }

    /// Evaluates an argument, which may be an array. If `wants_array` is true, an unused variable
    /// or element becomes an array.
    pub(crate) fn argument(&mut self, arg: &'a Expr, wants_array: bool) -> Result<Cell, Stop> {
        match arg {
            Expr::Read(Place::Variable(variable)) if wants_array || self.is_array(*variable) => {
                Ok(Cell::Array(self.array(*variable)?))
            }
            Expr::Read(Place::Element(array, keys)) => self.element(array, keys, wants_array),
            other => Ok(Cell::Scalar(self.eval(other)?)),
        }
    }

    /// Returns an array argument of the built-in function `name`.
    pub(crate) fn array_of(&mut self, name: &str, arg: Option<&'a Expr>) -> Result<Array, Stop> {
        match arg {
            Some(Expr::Read(Place::Variable(variable))) => self.array(*variable),
            Some(Expr::Read(Place::Element(array, keys))) => self.inner_array(array, keys),
            _ => failed(format!("{name}() needs an array")),
        }
    }

    /// Returns true if the variable is an array.
    pub(crate) fn is_array(&mut self, variable: Variable) -> bool {
        matches!(self.cell(variable), Some(Cell::Array(_)))
    }

    /// Resolves a place to a slot, so that its field number or key is evaluated only once.
    pub(crate) fn slot(&mut self, place: &'a Place) -> Result<Slot, Stop> {
        Ok(match place {
            Place::Variable(variable) => Slot::Variable(*variable),
            Place::Field(number) => Slot::Field(self.field_number(number)?),
            Place::Element(array, keys) => {
                let array = self.array_named(array)?;
                Slot::Element(array, self.key(keys)?)
            }
        })
    }

    pub(super) fn read(&mut self, place: &'a Place) -> Result<Value, Stop> {
        let slot = self.slot(place)?;
        self.read_slot(&slot)
    }

    pub(crate) fn read_slot(&mut self, slot: &Slot) -> Result<Value, Stop> {
        match slot {
            Slot::Variable(Variable::Global(place::NF)) => {
                self.divide()?;
                Ok(Value::Number(self.record.count() as f64))
            }
            Slot::Variable(variable) => match self.cell(*variable) {
                Some(Cell::Scalar(value)) => Ok(value.clone()),
                Some(Cell::Array(_)) => in_scalar_context(&self.name(*variable)),
                _ => Ok(Value::Nothing),
            },
            Slot::Field(0) => {
                let between = self.global_text(place::OFS);
                let conversion = self.global_text(place::CONVFMT);
                Ok(self.record.whole(&between, &conversion))
            }
            Slot::Field(number) => {
                self.divide()?;
                Ok(self.record.field(*number))
            }
            Slot::Element(array, key) => match array.borrow_mut().entry(key.clone()).or_default() {
                Value::Array(_) => in_scalar_context(&format!("[\"{key}\"]")),
                value => Ok(value.clone()),
            },
        }
    }

    pub(super) fn field_number(&mut self, number: &'a Expr) -> Result<usize, Stop> {
        let number = self.eval(number)?.number();
        if number < 0.0 {
            failed(format!("attempt to access field {number}"))
        } else {
            Ok(number as usize)
        }
    }

    pub(crate) fn assign(&mut self, place: &'a Place, value: Value) -> Result<(), Stop> {
        let slot = self.slot(place)?;
        self.assign_slot(&slot, value)
    }

    pub(crate) fn assign_slot(&mut self, slot: &Slot, value: Value) -> Result<(), Stop> {
        match slot {
            Slot::Variable(variable) => self.assign_variable(*variable, value),
            Slot::Field(number) => self.assign_field(*number, value),
            Slot::Element(array, key) => {
                let mut array = array.borrow_mut();
                if matches!(array.get(key), Some(Value::Array(_))) {
                    return in_scalar_context(&format!("[\"{key}\"]"));
                }
                array.insert(key.clone(), value);
                Ok(())
            }
        }
    }

    pub(crate) fn assign_field(&mut self, number: usize, value: Value) -> Result<(), Stop> {
        if number == 0 {
            let text = self.text(&value);
            self.record.set(&text);
            return Ok(());
        }
        self.divide()?;
        let value = match value {
            Value::Number(_) => Value::outside(self.text(&value)),
            other => other,
        };
        Ok(self.record.change(number, value)?)
    }

    pub(crate) fn assign_variable(&mut self, variable: Variable, value: Value) -> Result<(), Stop> {
        if variable == Variable::Global(place::NF) {
            self.divide()?;
            return Ok(self.record.resize(value.number().max(0.0) as usize)?);
        }
        // A changed separator applies only from the next record on.
        if let Variable::Global(by @ (place::FS | place::FPAT | place::FIELDWIDTHS)) = variable {
            self.divide()?;
            self.split_by = by;
        }
        match self.cell(variable) {
            Some(Cell::Array(_)) | None => in_scalar_context(&self.name(variable)),
            Some(cell) => {
                *cell = Cell::Scalar(value);
                Ok(())
            }
        }
    }

    pub(super) fn divide(&mut self) -> Result<(), Stop> {
        if self.record.is_divided() {
            return Ok(());
        }
        let splitter = match self.split_by {
            place::FPAT => {
                let pattern = self.global_text(place::FPAT);
                Splitter::Content(self.dynamic(&pattern)?)
            }
            place::FIELDWIDTHS => Splitter::Widths(widths(&self.global_text(place::FIELDWIDTHS))?),
            _ => self.separator_splitter()?,
        };
        let lines = self.global_text(place::RS).is_empty();
        self.record.divide(&splitter, lines);
        Ok(())
    }
    /// Returns the splitting rule that `FS` defines.
    fn separator_splitter(&mut self) -> Result<Splitter, Stop> {
        let separator = self.global_text(place::FS);
        if let Some((known, splitter)) = &self.splitter
            && *known == separator
            && !self.ignores_case()
        {
            return Ok(splitter.clone());
        }
        let splitter = self.splitter(&separator)?;
        self.splitter = Some((separator, splitter.clone()));
        Ok(splitter)
    }
}

/// Parses the value of `FIELDWIDTHS`: the widths of the fields. `2:3` skips 2 characters before a
/// field of 3 characters. `*` is the rest of the record.
fn widths(text: &str) -> Result<Widths, String> {
    let width = |word: &str| {
        let (skipped, width) = word.split_once(':').unwrap_or(("0", word));
        let width = if width == "*" { Some(None) } else { width.parse().ok().map(Some) };
        Some((skipped.parse().ok()?, width?))
    };
    let widths = text
        .split_whitespace()
        .map(|word| width(word).ok_or_else(|| format!("invalid FIELDWIDTHS value, near `{word}'")));
    widths.collect()
}
