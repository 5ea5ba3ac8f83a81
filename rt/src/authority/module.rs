//! A module, read for the walk: types, functions, globals, and the memory as it is before the first instruction.

use std::ops::Range;

use wasmparser::{
    CompositeInnerType, ConstExpr, DataKind, ElementItems, ExternalKind, FunctionBody, Operator, Parser, Payload,
    TypeRef, ValType,
};

use super::value::Value;
use crate::abi;

/// The most static data that is read.
const DATA: u32 = 64 << 20;

/// The parameters and results of a function.
#[derive(Clone, Debug, Default)]
pub(super) struct Type {
    pub(super) params: Vec<ValType>,
    pub(super) results: Vec<ValType>,
}

/// What the walk reads of a module.
pub(super) struct Module<'b> {
    pub(super) binary: &'b [u8],
    types: Vec<Type>,
    /// The imported functions, by namespace and name.
    pub(super) imports: Vec<(&'b str, &'b str)>,
    /// The type of each function, the imported ones first.
    functions: Vec<u32>,
    pub(super) bodies: Vec<FunctionBody<'b>>,
    /// What each global holds at first.
    pub(super) globals: Vec<Value>,
    /// The functions that run by themselves.
    pub(super) roots: Vec<u32>,
    /// The functions that can be called otherwise than by name.
    pub(super) tabled: Vec<u32>,
    data: Data,
}

/// The memory below the heap, before the first instruction.
struct Data {
    bytes: Vec<u8>,
    heap: u32,
}

impl<'b> Module<'b> {
    /// Reads a module; `None` where it has something that the walk does not know.
    pub(super) fn read(binary: &'b [u8], heap: u32) -> Option<Module<'b>> {
        let mut module = Module {
            binary,
            types: Vec::new(),
            imports: Vec::new(),
            functions: Vec::new(),
            bodies: Vec::new(),
            globals: Vec::new(),
            roots: Vec::new(),
            tabled: Vec::new(),
            data: Data { bytes: Vec::new(), heap: heap.min(DATA) },
        };
        for payload in Parser::new(0).parse_all(binary) {
            module.take(payload.ok()?)?;
        }
        Some(module)
    }

    fn take(&mut self, payload: Payload<'b>) -> Option<()> {
        match payload {
            Payload::TypeSection(section) => {
                for group in section {
                    for sub in group.ok()?.into_types() {
                        let CompositeInnerType::Func(func) = sub.composite_type.inner else { return None };
                        self.types.push(Type { params: func.params().to_vec(), results: func.results().to_vec() });
                    }
                }
            }
            Payload::ImportSection(section) => {
                for import in section.into_imports() {
                    let import = import.ok()?;
                    let TypeRef::Func(ty) = import.ty else { return None };
                    self.imports.push((import.module, import.name));
                    self.functions.push(ty);
                }
            }
            Payload::FunctionSection(section) => {
                for ty in section {
                    self.functions.push(ty.ok()?);
                }
            }
            Payload::GlobalSection(section) => {
                for global in section {
                    let global = global.ok()?;
                    let value = self.constant(&global.init_expr)?;
                    self.globals.push(value);
                }
            }
            Payload::TableSection(section) => {
                for table in section {
                    if let wasmparser::TableInit::Expr(init) = table.ok()?.init {
                        self.constant(&init)?;
                    }
                }
            }
            Payload::ExportSection(section) => {
                for export in section {
                    let export = export.ok()?;
                    if export.kind == ExternalKind::Func && export.name == "run" {
                        self.roots.push(export.index);
                    }
                }
            }
            Payload::StartSection { func, .. } => self.roots.push(func),
            Payload::ElementSection(section) => {
                for element in section {
                    match element.ok()?.items {
                        ElementItems::Functions(functions) => {
                            for function in functions {
                                self.tabled.push(function.ok()?);
                            }
                        }
                        ElementItems::Expressions(_, expressions) => {
                            for expression in expressions {
                                self.constant(&expression.ok()?)?;
                            }
                        }
                    }
                }
            }
            Payload::DataSection(section) => {
                for data in section {
                    let data = data.ok()?;
                    if let DataKind::Active { offset_expr, .. } = data.kind {
                        let Value::OneOf(atoms) = self.constant(&offset_expr)? else { return None };
                        let [super::value::Atom::Number(at)] = *atoms else { return None };
                        self.data.put(at.cast_unsigned(), data.data)?;
                    }
                }
            }
            Payload::CodeSectionEntry(body) => self.bodies.push(body),
            _ => {}
        }
        Some(())
    }

    /// The value of a constant expression; the function that it names can be called from then on.
    fn constant(&mut self, expression: &ConstExpr<'_>) -> Option<Value> {
        let mut operators = expression.get_operators_reader();
        let mut value = Value::Any;
        let mut count = 0;
        while !operators.eof() {
            count += 1;
            match operators.read().ok()? {
                Operator::I32Const { value: number } => value = Value::number(number),
                Operator::RefFunc { function_index } => self.tabled.push(function_index),
                Operator::End => count -= 1,
                _ => value = Value::Any,
            }
        }
        Some(if count == 1 { value } else { Value::Any })
    }

    /// The type of a function.
    pub(super) fn function(&self, index: u32) -> Option<&Type> {
        self.ty(*self.functions.get(index as usize)?)
    }

    /// The type of that number.
    pub(super) fn ty(&self, index: u32) -> Option<&Type> {
        self.types.get(index as usize)
    }

    /// Which body a function has; `None` where it is imported.
    pub(super) fn body_of(&self, function: u32) -> Option<usize> {
        (function as usize).checked_sub(self.imports.len())
    }

    /// The text in wire format at that address, where it has at most `limit` bytes and nothing is written over it.
    pub(super) fn text(&self, address: i32, limit: usize, written: &[Range<u64>]) -> Static {
        if address.cast_unsigned() < abi::MIN_ADDRESS {
            return Static::Never;
        }
        let Ok(bytes) = abi::bytes(&self.data.bytes, address) else { return Static::Unknown };
        if bytes.len() > limit {
            return Static::Unknown;
        }
        let from = u64::from(address.cast_unsigned());
        let to = from + 4 + bytes.len() as u64;
        if written.iter().any(|range| range.start < to && from < range.end) {
            return Static::Unknown;
        }
        std::str::from_utf8(bytes).map_or(Static::Unknown, |text| Static::Text(text.to_owned()))
    }

    /// Whether an address lies below the heap, where the host never writes.
    pub(super) fn is_static(&self, end: u64) -> bool {
        end <= u64::from(self.data.heap)
    }
}

/// What stands at an address.
pub(super) enum Static {
    /// No value can stand there: a call with it fails.
    Never,
    /// That text.
    Text(String),
    /// Anything.
    Unknown,
}

impl Data {
    /// Puts a segment down, over what is there already.
    fn put(&mut self, at: u32, bytes: &[u8]) -> Option<()> {
        let end = (at as usize).checked_add(bytes.len()).filter(|end| *end <= self.heap as usize)?;
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        self.bytes.get_mut(at as usize..end)?.copy_from_slice(bytes);
        Some(())
    }
}
