//! The awk interpreter: statements.

use std::collections::HashMap;
use std::io::Write as _;
use std::rc::Rc;

use super::format;
use super::input::Input;
use super::io::Streams;
use super::record::{Record, Splitter};
use super::syntax::{ArrayName, Comparison, Expr, Program, Statement, Target, Variable};
use super::value::{Cell, Text, Value};
use crate::pattern::Posix;

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
    pub(crate) const FPAT: usize = 18;
    pub(crate) const FIELDWIDTHS: usize = 19;
    pub(crate) const RT: usize = 20;
    pub(crate) const ERRNO: usize = 21;
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
            Statement::While(..) | Statement::Do(..) | Statement::For(..) => {
                return self.run_loop(statement);
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

    fn run_loop(&mut self, statement: &'a Statement) -> Result<Flow, Stop> {
        match statement {
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
            other => return self.statement(other),
        }
        Ok(Flow::On)
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
        for next in super::sort::keys(self, &array, order.as_deref().unwrap_or_default())? {
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

    /// Formats values as `printf` does. The first value is the format.
    pub(crate) fn formatted(&self, values: &[Value]) -> Result<String, String> {
        let Some((first, rest)) = values.split_first() else { return Ok(String::new()) };
        format::format(&self.text(first), rest, |value| self.text(value))
    }

    pub(crate) fn whole_text(&mut self) -> String {
        let (between, conversion) =
            (self.global_text(place::OFS), self.global_text(place::CONVFMT));
        self.record.text(&between, &conversion).to_owned()
    }
}
