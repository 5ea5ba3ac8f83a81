//! The variables, arrays and fields of a running awk program.

use std::rc::Rc;

use super::record::Splitter;
use super::run::{Run, Stop, failed, place};
use super::syntax::{ArrayName, Expr, Place, Variable};
use super::value::{Array, Cell, Text, Value};

/// A `Place` whose field number or element key has been evaluated.
pub(crate) enum Slot {
    Variable(Variable),
    Field(usize),
    Element(Array, Text),
}

fn in_scalar_context(key: &str) -> String {
    format!("attempt to use array `[\"{key}\"]' in a scalar context")
}

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
                Some(Cell::Array(_)) => failed(format!(
                    "attempt to use array `{}' in a scalar context",
                    self.name(*variable)
                )),
                _ => Ok(Value::Nothing),
            },
            Slot::Field(0) => {
                let (between, conversion) =
                    (self.global_text(place::OFS), self.global_text(place::CONVFMT));
                Ok(self.record.whole(&between, &conversion))
            }
            Slot::Field(number) => {
                self.divide()?;
                Ok(self.record.field(*number))
            }
            Slot::Element(array, key) => match array.borrow_mut().entry(key.clone()).or_default() {
                Value::Array(_) => failed(in_scalar_context(key)),
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
                    return failed(in_scalar_context(key));
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

/// For each field, the number of characters to skip before it, and its width in characters. A width
/// of `None` means the rest of the record.
type Widths = Rc<[(usize, Option<usize>)]>;

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
