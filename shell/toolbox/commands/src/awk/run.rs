//! The run of an awk program: statements and expressions.

use std::collections::HashMap;
use std::io::Write as _;
use std::rc::Rc;

use regex::Regex;

use super::expr::regex;
use super::format;
use super::input::Input;
use super::io::Streams;
use super::record::{Record, Splitter};
use super::syntax::{Comparison, Expr, Operator, Place, Program, Source, Statement, Target, Variable};
use super::value::{Array, Cell, Text, Value};

/// The places of the variables that awk has.
pub(crate) mod place {
    pub(crate) const NF: usize = 0;
    pub(crate) const NR: usize = 1;
    pub(crate) const FNR: usize = 2;
    pub(crate) const FS: usize = 3;
    pub(crate) const OFS: usize = 4;
    pub(crate) const ORS: usize = 5;
    pub(crate) const RS: usize = 6;
    pub(crate) const FILENAME: usize = 7;
    pub(crate) const SUBSEP: usize = 8;
    pub(crate) const RSTART: usize = 9;
    pub(crate) const RLENGTH: usize = 10;
    pub(crate) const CONVFMT: usize = 11;
    pub(crate) const OFMT: usize = 12;
    pub(crate) const ENVIRON: usize = 13;
    pub(crate) const ARGC: usize = 14;
    pub(crate) const ARGV: usize = 15;
    pub(crate) const PROCINFO: usize = 16;
    pub(crate) const IGNORECASE: usize = 17;
}

/// Why a statement ended.
pub(crate) enum Flow {
    On,
    Break,
    Continue,
    Next,
    NextFile,
    Exit,
    Return(Value),
}

/// Why the program stops what it does.
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

/// A failure.
pub(crate) fn failed<T>(why: String) -> Result<T, Stop> {
    Err(Stop::Failed(why))
}

/// How deep functions may call each other.
const DEEPEST: usize = 200;

pub(crate) struct Run<'a> {
    pub program: &'a Program,
    pub globals: Vec<Cell>,
    frames: Vec<Vec<Cell>>,
    pub record: Record,
    pub input: Input,
    pub streams: Streams,
    pub status: i32,
    pub random: u64,
    pub seed: f64,
    regexes: HashMap<(Text, bool), Rc<Regex>>,
    splitter: Option<(Text, Splitter)>,
}

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
            Value::Text(text) | Value::Either(text, _) => text.clone(),
            Value::Number(number) if number.fract() != 0.0 => value.to_text(&self.global_text(place::CONVFMT)),
            other => other.to_text("%.6g"),
        }
    }

    fn cell(&mut self, variable: Variable) -> Option<&mut Cell> {
        match variable {
            Variable::Global(place) => self.globals.get_mut(place),
            Variable::Local(place) => self.frames.last_mut().and_then(|frame| frame.get_mut(place)),
        }
    }

    fn name(&self, variable: Variable) -> String {
        match variable {
            Variable::Global(place) => self.program.globals.get(place).cloned().unwrap_or_default(),
            Variable::Local(place) => format!("parameter {}", place + 1),
        }
    }

    /// The array that a variable is, or becomes.
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

    /// Is the variable an array by now?
    pub(crate) fn is_array(&mut self, variable: Variable) -> bool {
        matches!(self.cell(variable), Some(Cell::Array(_)))
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
                let values = values.iter().map(|value| self.eval(value)).collect::<Result<Vec<_>, _>>()?;
                let text = self.formatted(&values);
                self.put(text.as_bytes(), target.as_ref())?;
            }
            Statement::If(condition, then, other) => {
                if self.eval(condition)?.truth() {
                    return self.statement(then);
                } else if let Some(other) = other {
                    return self.statement(other);
                }
            }
            Statement::While(condition, body) => {
                while self.eval(condition)?.truth() {
                    match self.statement(body)? {
                        Flow::On | Flow::Continue => {}
                        Flow::Break => break,
                        flow => return Ok(flow),
                    }
                }
            }
            Statement::Do(body, condition) => loop {
                match self.statement(body)? {
                    Flow::On | Flow::Continue => {}
                    Flow::Break => break,
                    flow => return Ok(flow),
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
                    match self.statement(body)? {
                        Flow::On | Flow::Continue => {}
                        Flow::Break => break,
                        flow => return Ok(flow),
                    }
                    if let Some(step) = step {
                        self.statement(step)?;
                    }
                }
            }
            Statement::Each(key, array, body) => return self.each(*key, *array, body),
            Statement::Switch(value, cases) => return self.switch(value, cases),
            Statement::Block(body) => return self.statements(body),
            Statement::Delete(array, keys) => {
                let array = self.array(*array)?;
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

    fn each(&mut self, key: Variable, array: Variable, body: &'a Statement) -> Result<Flow, Stop> {
        let array = self.array(array)?;
        let order = match self.globals.get(place::PROCINFO) {
            Some(Cell::Array(info)) => info.borrow().get("sorted_in").map(|order| self.text(order)),
            _ => None,
        };
        for next in super::builtin::keys(&array, order.as_deref()) {
            if !array.borrow().contains_key(&next) {
                continue;
            }
            self.assign_variable(key, Value::outside(next))?;
            match self.statement(body)? {
                Flow::On | Flow::Continue => {}
                Flow::Break => break,
                flow => return Ok(flow),
            }
        }
        Ok(Flow::On)
    }

    fn switch(&mut self, value: &'a Expr, cases: &'a [(Option<Expr>, Vec<Statement>)]) -> Result<Flow, Stop> {
        let value = self.eval(value)?;
        let mut start = None;
        for (n, (case, _)) in cases.iter().enumerate() {
            let holds = match case {
                Some(Expr::Regex(regex)) => regex.is_match(&self.text(&value)),
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
        let start = start.or_else(|| cases.iter().position(|(case, _)| case.is_none())).unwrap_or(cases.len());
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

    /// What a rule without a body does.
    pub(crate) fn print_record(&mut self) -> Result<(), Stop> {
        self.print(&[], None)
    }

    fn put(&mut self, bytes: &[u8], target: Option<&'a Target>) -> Result<(), Stop> {
        match target {
            None => self.streams.out.write_all(bytes).map_err(|error| Stop::Failed(error.to_string())),
            Some(Target::File(to)) => {
                let path = self.eval_text(to)?;
                Ok(self.streams.write_file(&path, false, bytes)?)
            }
            Some(Target::Append(to)) => {
                let path = self.eval_text(to)?;
                Ok(self.streams.write_file(&path, true, bytes)?)
            }
            Some(Target::Command(to)) => {
                let command = self.eval_text(to)?;
                Ok(self.streams.write_command(&command, bytes)?)
            }
        }
    }

    /// `printf`: the first value is the format.
    pub(crate) fn formatted(&self, values: &[Value]) -> String {
        let Some((first, rest)) = values.split_first() else { return String::new() };
        format::format(&self.text(first), rest, |value| self.text(value))
    }

    pub(crate) fn whole_text(&mut self) -> String {
        let (between, conversion) = (self.global_text(place::OFS), self.global_text(place::CONVFMT));
        self.record.text(&between, &conversion).to_owned()
    }

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

    fn read(&mut self, place: &'a Place) -> Result<Value, Stop> {
        match place {
            Place::Variable(Variable::Global(place::NF)) => {
                self.divide()?;
                Ok(Value::Number(self.record.count() as f64))
            }
            Place::Variable(variable) => match self.cell(*variable) {
                Some(Cell::Scalar(value)) => Ok(value.clone()),
                Some(Cell::Array(_)) => {
                    failed(format!("attempt to use array `{}' in a scalar context", self.name(*variable)))
                }
                _ => Ok(Value::Nothing),
            },
            Place::Field(number) => {
                let number = self.field_number(number)?;
                if number == 0 {
                    let (between, conversion) = (self.global_text(place::OFS), self.global_text(place::CONVFMT));
                    return Ok(self.record.whole(&between, &conversion));
                }
                self.divide()?;
                Ok(self.record.field(number))
            }
            Place::Element(array, keys) => {
                let key = self.key(keys)?;
                let array = self.array(*array)?;
                Ok(array.borrow_mut().entry(key).or_default().clone())
            }
        }
    }

    fn field_number(&mut self, number: &'a Expr) -> Result<usize, Stop> {
        let number = self.eval(number)?.number();
        if number < 0.0 { failed(format!("attempt to access field {number}")) } else { Ok(number as usize) }
    }

    pub(crate) fn assign(&mut self, place: &'a Place, value: Value) -> Result<(), Stop> {
        match place {
            Place::Field(number) => {
                let number = self.field_number(number)?;
                self.assign_field(number, value)
            }
            Place::Element(array, keys) => {
                let key = self.key(keys)?;
                let array = self.array(*array)?;
                array.borrow_mut().insert(key, value);
                Ok(())
            }
            Place::Variable(variable) => self.assign_variable(*variable, value),
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
        // A separator that changes holds from the next record on.
        if variable == Variable::Global(place::FS) {
            self.divide()?;
        }
        match self.cell(variable) {
            Some(Cell::Array(_)) | None => {
                failed(format!("attempt to use array `{}' in a scalar context", self.name(variable)))
            }
            Some(cell) => {
                *cell = Cell::Scalar(value);
                Ok(())
            }
        }
    }

    fn divide(&mut self) -> Result<(), Stop> {
        if self.record.is_divided() {
            return Ok(());
        }
        let separator = self.global_text(place::FS);
        let splitter = match &self.splitter {
            Some((known, splitter)) if *known == separator => splitter.clone(),
            _ => {
                let splitter = self.splitter(&separator)?;
                self.splitter = Some((separator, splitter.clone()));
                splitter
            }
        };
        let lines = self.global_text(place::RS).is_empty();
        self.record.divide(&splitter, lines);
        Ok(())
    }

    /// What a separator of fields stands for.
    pub(crate) fn splitter(&mut self, separator: &Text) -> Result<Splitter, Stop> {
        let mut letters = separator.chars();
        Ok(match (letters.next(), letters.next()) {
            (None, _) => Splitter::Letters,
            (Some(' '), None) => Splitter::Blanks,
            (Some(letter), None) if letter != '\\' && !(self.ignores_case() && letter.is_alphabetic()) => {
                Splitter::Letter(letter)
            }
            (Some('\\'), None) => Splitter::Letter('\\'),
            _ => Splitter::Regex(self.dynamic(separator)?),
        })
    }

    fn ignores_case(&self) -> bool {
        self.global(place::IGNORECASE).truth()
    }

    /// The regular expression that an expression is or gives.
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
            return failed(format!("function `{}' called with more arguments than it has parameters", function.name));
        }
        if self.frames.len() >= DEEPEST {
            return failed(format!("function `{}' calls deeper than {DEEPEST} levels", function.name));
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
        Operator::Remainder if right == 0.0 => return failed("division by zero attempted in `%'".to_owned()),
        Operator::Remainder => left % right,
        Operator::Power => left.powf(right),
    })
}
