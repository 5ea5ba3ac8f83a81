//! The walk over all that can run, again and again until nothing new is found.

mod body;

use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use super::module::{Module, Static};
use super::value::{Atom, Piece, Value};
use super::{Argument, Part, Text, Use};
use crate::{Signature, Ty};

/// How much the walk may do: instructions, and values joined. A program of the usual size takes some thousands.
const EFFORT: u64 = 1_000_000;
/// The most places of static data that a program may be followed writing over.
const WRITES: usize = 1_000;
/// The most bytes of one text that are told, and of all.
const TEXT: usize = 16 << 10;
const TEXTS: usize = 4 << 20;

/// What is known of a function's calls.
#[derive(Clone, Debug)]
struct Function {
    reached: bool,
    params: Vec<Value>,
    results: Vec<Value>,
}

/// What has been found so far. All of it only grows.
struct Walk<'m, 'b> {
    module: &'m Module<'b>,
    /// The imported functions.
    imports: Vec<Signature>,
    functions: Vec<Function>,
    globals: Vec<Value>,
    /// The state at the head of each loop, by its place in the binary.
    loops: BTreeMap<u64, body::State>,
    /// The calls of imported functions, by place; by `None` those through a table.
    calls: BTreeMap<(Option<u64>, u32), Vec<Value>>,
    /// The static data that the program writes over.
    written: Vec<Range<u64>>,
    /// Whether it may write anywhere.
    writes_anywhere: bool,
    grew: bool,
    effort: u64,
}

/// The host functions that a module can call, as far as can be told; `None` where the walk had to be given up.
pub(super) fn uses(module: &Module<'_>, imports: &[Signature]) -> Option<Vec<Use>> {
    let signature = |at: usize| {
        let (namespace, name) = module.imports.get(at)?;
        imports.iter().find(|import| import.module == *namespace && import.name == *name).copied()
    };
    let signatures: Option<Vec<Signature>> = (0..module.imports.len()).map(signature).collect();
    let mut walk = Walk::new(module, signatures?)?;
    walk.settle()?;
    let (mut uses, mut room) = (Vec::new(), TEXTS);
    for ((place, import), arguments) in &walk.calls {
        let function = *walk.imports.get(*import as usize)?;
        let reaches_out = function.reaches_out();
        let known = function.params.iter().zip(arguments).map(|(param, value)| match param.ty {
            Ty::Str | Ty::OptStr | Ty::Bytes | Ty::OptBytes if reaches_out => walk.argument(value, &mut room),
            _ => Argument::Unknown,
        });
        let offset = place.and_then(|place| usize::try_from(place).ok());
        uses.push(Use { function, arguments: known.collect(), offset });
    }
    Some(uses)
}

impl<'m, 'b> Walk<'m, 'b> {
    /// The beginning: what runs by itself, and what a table can hold.
    fn new(module: &'m Module<'b>, imports: Vec<Signature>) -> Option<Self> {
        let mut walk = Walk {
            module,
            imports,
            functions: Vec::new(),
            globals: module.globals.clone(),
            loops: BTreeMap::new(),
            calls: BTreeMap::new(),
            written: Vec::new(),
            writes_anywhere: false,
            grew: false,
            effort: EFFORT,
        };
        for body in 0..module.bodies.len() {
            let ty = module.function(u32::try_from(body.checked_add(module.imports.len())?).ok()?)?;
            let none = |count: usize| vec![Value::none(); count];
            let function = Function { reached: false, params: none(ty.params.len()), results: none(ty.results.len()) };
            walk.functions.push(function);
        }
        module.roots.iter().chain(&module.tabled).try_for_each(|function| walk.call_unknown(*function))?;
        Some(walk)
    }

    /// Walks all that can run until nothing new is found.
    fn settle(&mut self) -> Option<()> {
        loop {
            self.grew = false;
            for body in 0..self.functions.len() {
                if self.functions.get(body)?.reached {
                    body::walk(self, body)?;
                }
            }
            if !self.grew {
                return Some(());
            }
        }
    }

    /// Takes note of work; `None` where it is too much.
    fn spend(&mut self, effort: usize) -> Option<()> {
        self.effort = self.effort.checked_sub(effort as u64)?;
        Some(())
    }

    /// Takes note of a call that may give any arguments.
    fn call_unknown(&mut self, function: u32) -> Option<()> {
        let params = self.module.function(function)?.params.len();
        self.call(None, function, vec![Value::Any; params]).map(drop)
    }

    /// Takes note of a call, and gives its results as far as they are known.
    fn call(&mut self, place: Option<u64>, function: u32, arguments: Vec<Value>) -> Option<Vec<Value>> {
        self.spend(1 + arguments.len())?;
        let Some(body) = self.module.body_of(function) else { return self.call_host(place, function, arguments) };
        let called = self.functions.get_mut(body)?;
        self.grew |= !std::mem::replace(&mut called.reached, true);
        for (param, argument) in called.params.iter_mut().zip(&arguments) {
            self.grew |= param.join(argument);
        }
        Some(called.results.clone())
    }

    fn call_host(&mut self, place: Option<u64>, import: u32, arguments: Vec<Value>) -> Option<Vec<Value>> {
        let mut results = vec![Value::Any; self.module.function(import)?.results.len()];
        // Who takes a bare address may write there.
        self.writes_anywhere |= self.imports.get(import as usize)?.params.iter().any(|param| param.ty == Ty::Addr);
        self.spend(arguments.iter().map(Value::weight).product())?;
        if let Some(known) = self.given(import, &arguments) {
            *results.first_mut()? = known;
        }
        let seen = self.calls.entry((place, import)).or_insert_with(|| vec![Value::none(); arguments.len()]);
        for (seen, argument) in seen.iter_mut().zip(&arguments) {
            seen.join(argument);
        }
        Some(results)
    }

    /// What the host functions give whose results can be told from their arguments.
    fn given(&self, import: u32, arguments: &[Value]) -> Option<Value> {
        let function = self.imports.get(import as usize)?;
        match ((function.module, function.name), arguments) {
            (("sys", "argv"), [number]) => number.map(|atom| match atom {
                Atom::Number(n) => Some(Atom::Text(Rc::new([Piece::Argument(u32::try_from(*n).ok()?)]))),
                _ => None,
            }),
            (("sys", "alloc"), [size]) => size.map(|atom| match atom {
                Atom::Number(size) => Some(Atom::Room { size: u32::try_from(*size).ok()?, at: 0 }),
                _ => None,
            }),
            (("str", "cat"), [left, right]) => Some(left.concatenated(right)),
            _ => None,
        }
    }

    /// Takes note of a write of `width` bytes.
    fn write(&mut self, address: &Value, offset: u64, width: u64) {
        let Value::OneOf(atoms) = address else {
            self.writes_anywhere = true;
            return;
        };
        for atom in atoms.iter() {
            match atom {
                Atom::Number(at) => {
                    let from = u64::from(at.cast_unsigned()) + offset;
                    let range = from..from + width;
                    if !self.module.is_static(range.end) || self.written.len() == WRITES {
                        self.writes_anywhere = true;
                    } else if !self.written.contains(&range) {
                        self.written.push(range);
                    }
                }
                Atom::Room { size, at } => {
                    self.writes_anywhere |= u64::from(*at) + offset + width > u64::from(*size);
                }
                Atom::Text(_) => self.writes_anywhere = true,
            }
        }
    }

    /// What is known of a text argument, in the end.
    fn argument(&self, value: &Value, room: &mut usize) -> Argument {
        if self.writes_anywhere || *value == Value::Any {
            return Argument::Unknown;
        }
        let mut texts: Vec<Text> = value.texts().iter().filter_map(|pieces| self.text(pieces, room)).collect();
        texts.sort_unstable();
        texts.dedup();
        match texts.iter().any(|text| text.parts() == [Part::Unknown]) {
            true => Argument::Unknown,
            false => Argument::OneOf(texts),
        }
    }

    /// The text of those pieces; `None` where there is none, since a piece of it is no text. `room` is how much may still be told.
    fn text(&self, pieces: &[Piece], room: &mut usize) -> Option<Text> {
        let mut left = TEXT.min(*room);
        let parts: Option<Vec<Part>> = pieces
            .iter()
            .map(|piece| match piece {
                Piece::Argument(n) => Some(Part::Argument(*n)),
                Piece::Unknown => Some(Part::Unknown),
                Piece::At(address) => match self.module.text(*address, left, &self.written) {
                    Static::Never => None,
                    Static::Text(text) => {
                        left = left.saturating_sub(text.len());
                        *room = room.saturating_sub(text.len());
                        Some(Part::Literal(text))
                    }
                    Static::Unknown => Some(Part::Unknown),
                },
            })
            .collect();
        parts.map(Text::new)
    }
}
