//! The interpreter of an awk program: statements.

use std::collections::HashMap;
use std::io::Write as _;
use std::rc::Rc;

use regex::Regex;

use super::format;
use super::input::Input;
use super::io::Streams;
use super::record::{Record, Splitter};
use super::syntax::{Comparison, Expr, Place, Program, Statement, Target, Variable};
use super::value::{Array, Cell, Text, Value};

/// The slots of the built-in variables.
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

/// The reason why evaluation stops.
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

/// Makes a failure.
pub(crate) fn failed<T>(why: String) -> Result<T, Stop> {
    Err(Stop::Failed(why))
}

/// The maximum depth of function calls.
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
    pub(super) regexes: HashMap<(Text, bool), Rc<Regex>>,
    pub(super) splitter: Option<(Text, Splitter)>,
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
            Value::Number(number) if number.fract() != 0.0 => {
                value.to_text(&self.global_text(place::CONVFMT))
            }
            other => other.to_text("%.6g"),
        }
    }

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

    /// Returns a variable's array. An unused variable becomes one.
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

    /// Returns true if the variable is an array.
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
                let values =
                    values.iter().map(|value| self.eval(value)).collect::<Result<Vec<_>, _>>()?;
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

    fn switch(
        &mut self,
        value: &'a Expr,
        cases: &'a [(Option<Expr>, Vec<Statement>)],
    ) -> Result<Flow, Stop> {
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

    /// Prints the record, as a rule without a body does.
    pub(crate) fn print_record(&mut self) -> Result<(), Stop> {
        self.print(&[], None)
    }

    pub(super) fn put(&mut self, bytes: &[u8], target: Option<&'a Target>) -> Result<(), Stop> {
        match target {
            None => {
                self.streams.out.write_all(bytes).map_err(|error| Stop::Failed(error.to_string()))
            }
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

    /// Runs `printf`: the first value is the format.
    pub(crate) fn formatted(&self, values: &[Value]) -> String {
        let Some((first, rest)) = values.split_first() else { return String::new() };
        format::format(&self.text(first), rest, |value| self.text(value))
    }

    pub(crate) fn whole_text(&mut self) -> String {
        let (between, conversion) =
            (self.global_text(place::OFS), self.global_text(place::CONVFMT));
        self.record.text(&between, &conversion).to_owned()
    }

    pub(super) fn read(&mut self, place: &'a Place) -> Result<Value, Stop> {
        match place {
            Place::Variable(Variable::Global(place::NF)) => {
                self.divide()?;
                Ok(Value::Number(self.record.count() as f64))
            }
            Place::Variable(variable) => match self.cell(*variable) {
                Some(Cell::Scalar(value)) => Ok(value.clone()),
                Some(Cell::Array(_)) => failed(format!(
                    "attempt to use array `{}' in a scalar context",
                    self.name(*variable)
                )),
                _ => Ok(Value::Nothing),
            },
            Place::Field(number) => {
                let number = self.field_number(number)?;
                if number == 0 {
                    let (between, conversion) =
                        (self.global_text(place::OFS), self.global_text(place::CONVFMT));
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

    pub(super) fn field_number(&mut self, number: &'a Expr) -> Result<usize, Stop> {
        let number = self.eval(number)?.number();
        if number < 0.0 {
            failed(format!("attempt to access field {number}"))
        } else {
            Ok(number as usize)
        }
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
            Some(Cell::Array(_)) | None => failed(format!(
                "attempt to use array `{}' in a scalar context",
                self.name(variable)
            )),
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
}
