//! The walk over the code of all functions that can run. It is repeated until it finds nothing new.

mod body;
mod writes;

use std::collections::BTreeMap;
use std::rc::Rc;

use super::module::{Module, StaticText};
use super::value::{Atom, Piece, Value};
use super::{Argument, Part, Text, Use};
use crate::{Signature, Ty};
use writes::Writes;

/// Maximum effort of the walk. A program of typical size takes a few thousand units.
const MAX_EFFORT: u64 = 1_000_000;
/// Maximum total length of the literals in one string, in bytes.
const MAX_TEXT: usize = 16 << 10;
/// Maximum total length of the literals in all strings, in bytes.
const MAX_TEXTS: usize = 4 << 20;

/// The effort that the walk may still spend: one unit for each instruction, each copied value, and
/// each atom or piece that a join compares.
pub(super) struct Effort(u64);

impl Effort {
    pub(super) fn new(amount: u64) -> Effort {
        Effort(amount)
    }

    /// Spends effort. Returns `None` if there is not enough left.
    pub(super) fn spend(&mut self, amount: usize) -> Option<()> {
        self.0 = self.0.checked_sub(amount as u64)?;
        Some(())
    }
}

/// The possible parameters and results of a function, joined over all calls to it.
#[derive(Clone, Debug)]
struct Function {
    /// If true, the function can run.
    reached: bool,
    params: Vec<Value>,
    results: Vec<Value>,
}

/// The state of the walk. Findings are never removed, so the state only grows.
struct Walk<'m, 'b> {
    module: &'m Module<'b>,
    /// The signatures of the imported functions.
    imports: Vec<Signature>,
    functions: Vec<Function>,
    globals: Vec<Value>,
    /// The state at the head of each loop, by the loop's offset in the binary.
    loops: BTreeMap<usize, body::State>,
    /// The arguments of calls to imported functions, by the offset of the call in the binary and
    /// the index of the function. The offset is `None` for calls through a table.
    calls: BTreeMap<(Option<usize>, u32), Vec<Value>>,
    writes: Writes,
    /// If true, the current round has found something new.
    grew: bool,
    effort: Effort,
}

/// Returns the host function calls that a module can make. Returns `None` if the walk has to stop
/// before it is complete.
pub(super) fn uses(module: &Module<'_>, imports: &[Signature]) -> Option<Vec<Use>> {
    let signature = |at: usize| {
        let (namespace, name) = module.imports.get(at)?;
        imports.iter().find(|import| import.module == *namespace && import.name == *name).copied()
    };
    let signatures: Option<Vec<Signature>> = (0..module.imports.len()).map(signature).collect();
    let mut walk = Walk::new(module, signatures?)?;
    walk.run()?;
    let mut uses = Vec::new();
    let mut room = MAX_TEXTS;
    for ((offset, import), values) in std::mem::take(&mut walk.calls) {
        let function = *walk.imports.get(import as usize)?;
        let mut arguments = Vec::new();
        for (param, value) in function.params.iter().zip(&values) {
            arguments.push(match param.ty {
                Ty::Str | Ty::OptStr | Ty::Bytes | Ty::OptBytes if function.reaches_out() => {
                    walk.argument(value, &mut room)?
                }
                _ => Argument::Unknown,
            });
        }
        uses.push(Use { function, arguments, offset });
    }
    Some(uses)
}

impl<'m, 'b> Walk<'m, 'b> {
    /// Starts a walk from the functions that the host can call and those that a table can contain.
    fn new(module: &'m Module<'b>, imports: Vec<Signature>) -> Option<Self> {
        let mut walk = Walk {
            module,
            imports,
            functions: Vec::new(),
            globals: module.globals.clone(),
            loops: BTreeMap::new(),
            calls: BTreeMap::new(),
            writes: Writes::default(),
            grew: false,
            effort: Effort::new(MAX_EFFORT),
        };
        for body in 0..module.bodies.len() {
            let ty =
                module.function(u32::try_from(body.checked_add(module.imports.len())?).ok()?)?;
            let none = |count: usize| vec![Value::none(); count];
            walk.effort.spend(1 + ty.params().len() + ty.results().len())?;
            let function = Function {
                reached: false,
                params: none(ty.params().len()),
                results: none(ty.results().len()),
            };
            walk.functions.push(function);
        }
        module
            .roots
            .iter()
            .chain(&module.table_functions)
            .try_for_each(|function| walk.call_unknown(*function))?;
        Some(walk)
    }

    /// Walks over all functions that can run. Repeats the walk until it finds nothing new.
    fn run(&mut self) -> Option<()> {
        loop {
            self.grew = false;
            for body in 0..self.functions.len() {
                self.effort.spend(1)?;
                if self.functions.get(body)?.reached {
                    body::walk(self, body)?;
                }
            }
            if !self.grew {
                return Some(());
            }
        }
    }

    /// Records a call with unknown arguments.
    fn call_unknown(&mut self, function: u32) -> Option<()> {
        let params = self.module.function(function)?.params().len();
        self.call(None, function, vec![Value::Any; params]).map(drop)
    }

    /// Records a call. Returns the set of possible values of each result.
    fn call(
        &mut self,
        offset: Option<usize>,
        function: u32,
        arguments: Vec<Value>,
    ) -> Option<Vec<Value>> {
        let results = self.module.function(function)?.results().len();
        self.effort.spend(1 + arguments.len() + results)?;
        let Some(body) = self.module.body_of(function) else {
            return self.call_host(offset, function, arguments);
        };
        let called = self.functions.get_mut(body)?;
        self.grew |= !std::mem::replace(&mut called.reached, true);
        for (param, argument) in called.params.iter_mut().zip(&arguments) {
            self.grew |= param.join(argument, &mut self.effort)?;
        }
        Some(called.results.clone())
    }

    fn call_host(
        &mut self,
        offset: Option<usize>,
        import: u32,
        arguments: Vec<Value>,
    ) -> Option<Vec<Value>> {
        let mut results = vec![Value::Any; self.module.function(import)?.results().len()];
        // A function that takes a raw address may write to any address.
        if self.imports.get(import as usize)?.params.iter().any(|param| param.ty == Ty::Addr) {
            self.writes.add_everything();
        }
        if let Some(known) = self.host_result(import, &arguments)? {
            *results.first_mut()? = known;
        }
        let seen = self
            .calls
            .entry((offset, import))
            .or_insert_with(|| vec![Value::none(); arguments.len()]);
        for (seen, argument) in seen.iter_mut().zip(&arguments) {
            seen.join(argument, &mut self.effort)?;
        }
        Some(results)
    }

    /// Returns the result of a host function if the result follows from the arguments. The outer
    /// option is `None` if there is not enough effort left.
    fn host_result(&mut self, import: u32, arguments: &[Value]) -> Option<Option<Value>> {
        let function = self.imports.get(import as usize)?;
        Some(match ((function.module, function.name), arguments) {
            (("sys", "argv"), [number]) => number.map(|atom| match atom {
                Atom::Number(n) => {
                    Some(Atom::Text(Rc::new([Piece::Argument(u32::try_from(*n).ok()?)])))
                }
                _ => None,
            }),
            (("sys", "alloc"), [size]) => size.map(|atom| match atom {
                Atom::Number(size) => {
                    Some(Atom::Allocation { size: u32::try_from(*size).ok()?, at: 0 })
                }
                _ => None,
            }),
            (("str", "cat"), [left, right]) => {
                self.effort.spend(left.weight().saturating_mul(right.weight()))?;
                Some(left.concatenated(right))
            }
            // The string may grow again later, so only its prefix is known.
            (("str", "append"), [left, ..]) => {
                self.effort.spend(left.weight())?;
                Some(left.concatenated(&Value::Any))
            }
            _ => None,
        })
    }

    /// Records a write of `width` bytes that begins `offset` bytes after `address`.
    fn write(&mut self, address: &Value, offset: u64, width: u64) {
        let Value::OneOf(atoms) = address else { return self.writes.add_everything() };
        for atom in atoms.iter() {
            match atom {
                Atom::Number(at) => {
                    let from = u64::from(at.cast_unsigned()).saturating_add(offset);
                    if self.module.is_static(from.saturating_add(width)) {
                        self.writes.add(from, width);
                    } else {
                        self.writes.add_everything();
                    }
                }
                Atom::Allocation { size, at } => {
                    if u64::from(*at).saturating_add(offset).saturating_add(width)
                        > u64::from(*size)
                    {
                        self.writes.add_everything();
                    }
                }
                Atom::Text(_) => self.writes.add_everything(),
            }
        }
    }

    /// Resolves a string argument once the walk is done. `room` is the number of bytes that may
    /// still be copied from string literals. Returns `None` if there is not enough effort left.
    fn argument(&mut self, value: &Value, room: &mut usize) -> Option<Argument> {
        if self.writes.is_anywhere() || *value == Value::Any {
            return Some(Argument::Unknown);
        }
        self.effort.spend(value.weight())?;
        let mut texts: Vec<Text> =
            value.texts().iter().filter_map(|pieces| self.text(pieces, room)).collect();
        texts.sort_unstable();
        texts.dedup();
        Some(if texts.iter().any(|text| text.parts() == [Part::Unknown]) {
            Argument::Unknown
        } else {
            Argument::OneOf(texts)
        })
    }

    /// Resolves the pieces of a string. Returns `None` if a piece is not a string, in which case
    /// the program's call fails.
    fn text(&self, pieces: &[Piece], room: &mut usize) -> Option<Text> {
        let mut left = MAX_TEXT.min(*room);
        let parts: Option<Vec<Part>> = pieces
            .iter()
            .map(|piece| match piece {
                Piece::Argument(n) => Some(Part::Argument(*n)),
                Piece::Unknown => Some(Part::Unknown),
                Piece::At(address) => match self.module.text(*address, left) {
                    StaticText::Invalid => None,
                    StaticText::Bytes(_, range) if self.writes.overlap(&range) => {
                        Some(Part::Unknown)
                    }
                    StaticText::Bytes(bytes, _) => {
                        left = left.saturating_sub(bytes.len());
                        *room = room.saturating_sub(bytes.len());
                        let text = std::str::from_utf8(bytes);
                        Some(text.map_or(Part::Unknown, |text| Part::Literal(text.to_owned())))
                    }
                    StaticText::Unknown => Some(Part::Unknown),
                },
            })
            .collect();
        parts.map(Text::new)
    }
}
