//! The parts of a WebAssembly module that the analysis needs: types, functions, globals, and the
//! initial content of the memory.

use std::ops::Range;

use wasmparser::{
    BlockType, CompositeInnerType, ConstExpr, ContType, DataKind, ElementItems, ExternalKind,
    FrameKind, FuncType, FunctionBody, ModuleArity, Operator, Parser, Payload, RefType, SubType,
    TypeRef,
};

use super::value::Value;
use crate::abi;

/// Maximum size of the static data that is read, in bytes.
const MAX_DATA: u32 = 64 << 20;

/// The parts of a WebAssembly module that the analysis needs.
pub(super) struct Module<'b> {
    types: Vec<SubType>,
    /// The namespace and the name of each imported function.
    pub(super) imports: Vec<(&'b str, &'b str)>,
    /// The index of each function's type, imported functions first.
    functions: Vec<u32>,
    pub(super) bodies: Vec<FunctionBody<'b>>,
    /// The initial value of each global.
    pub(super) globals: Vec<Value>,
    /// The indices of the functions that the host calls: `run` and the start function.
    pub(super) roots: Vec<u32>,
    /// The functions whose references the module takes, which can therefore be called through a
    /// table.
    pub(super) table_functions: Vec<u32>,
    data: Data,
}

/// The initial content of the memory below the heap.
struct Data {
    bytes: Vec<u8>,
    heap: u32,
}

impl<'b> Module<'b> {
    /// Reads a module. Returns `None` if it uses a feature that the walk does not support.
    pub(super) fn read(binary: &'b [u8], heap: u32) -> Option<Module<'b>> {
        let mut module = Module {
            types: Vec::new(),
            imports: Vec::new(),
            functions: Vec::new(),
            bodies: Vec::new(),
            globals: Vec::new(),
            roots: Vec::new(),
            table_functions: Vec::new(),
            data: Data { bytes: Vec::new(), heap: heap.min(MAX_DATA) },
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
                        let CompositeInnerType::Func(_) = sub.composite_type.inner else {
                            return None;
                        };
                        self.types.push(sub);
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
                                self.table_functions.push(function.ok()?);
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
                        self.data.write(at.cast_unsigned(), data.data)?;
                    }
                }
            }
            Payload::CodeSectionEntry(body) => self.bodies.push(body),
            _ => {}
        }
        Some(())
    }

    /// Evaluates a constant expression. If the expression takes a reference to a function, the
    /// function is added to `table_functions`.
    fn constant(&mut self, expression: &ConstExpr<'_>) -> Option<Value> {
        let mut operators = expression.get_operators_reader();
        let mut value = Value::Any;
        let mut count = 0;
        while !operators.eof() {
            count += 1;
            match operators.read().ok()? {
                Operator::I32Const { value: number } => value = Value::number(number),
                Operator::RefFunc { function_index } => self.table_functions.push(function_index),
                Operator::End => count -= 1,
                _ => value = Value::Any,
            }
        }
        Some(if count == 1 { value } else { Value::Any })
    }

    /// Returns the type of a function, or `None` if the function does not exist.
    pub(super) fn function(&self, index: u32) -> Option<&FuncType> {
        self.ty(*self.functions.get(index as usize)?)
    }

    /// Returns the function type with this index, or `None` if there is none.
    pub(super) fn ty(&self, index: u32) -> Option<&FuncType> {
        let CompositeInnerType::Func(ty) = &self.types.get(index as usize)?.composite_type.inner
        else {
            return None;
        };
        Some(ty)
    }

    /// Returns the index of a function's body. Returns `None` if the function is imported.
    pub(super) fn body_of(&self, function: u32) -> Option<usize> {
        (function as usize).checked_sub(self.imports.len())
    }

    /// Returns the string at an address in the static data. A string with more than `limit` bytes
    /// is returned as [`StaticText::Unknown`].
    pub(super) fn text(&self, address: i32, limit: usize) -> StaticText<'_> {
        let start = address.cast_unsigned();
        if start < abi::MIN_ADDRESS {
            return StaticText::Invalid;
        }
        match abi::bytes(&self.data.bytes, address) {
            Ok(bytes) if bytes.len() <= limit => {
                let start = u64::from(start);
                StaticText::Bytes(bytes, start..start + 4 + bytes.len() as u64)
            }
            _ => StaticText::Unknown,
        }
    }

    /// Returns true if a range that ends at `end` is below the heap. The host never writes below
    /// the heap.
    pub(super) fn is_static(&self, end: u64) -> bool {
        end <= u64::from(self.data.heap)
    }
}

/// The arity of operators that do not branch. The walk handles branches itself, so no labels are
/// tracked here.
impl ModuleArity for Module<'_> {
    fn sub_type_at(&self, index: u32) -> Option<&SubType> {
        self.types.get(index as usize)
    }

    fn tag_type_arity(&self, _: u32) -> Option<(u32, u32)> {
        None
    }

    fn type_index_of_function(&self, function: u32) -> Option<u32> {
        self.functions.get(function as usize).copied()
    }

    fn func_type_of_cont_type(&self, _: &ContType) -> Option<&FuncType> {
        None
    }

    fn sub_type_of_ref_type(&self, _: &RefType) -> Option<&SubType> {
        None
    }

    fn control_stack_height(&self) -> u32 {
        0
    }

    fn label_block(&self, _: u32) -> Option<(BlockType, FrameKind)> {
        None
    }
}

/// The string at an address in the static data, as far as it is known.
pub(super) enum StaticText<'a> {
    /// No string can be at the address, so a call with this address fails.
    Invalid,
    /// The initial bytes, and the range of addresses that they and the preceding length field
    /// occupy.
    Bytes(&'a [u8], Range<u64>),
    /// Any string.
    Unknown,
}

impl Data {
    /// Writes a data segment, which may overwrite earlier ones. Returns `None` if the segment is
    /// not entirely below the heap.
    fn write(&mut self, at: u32, bytes: &[u8]) -> Option<()> {
        let end =
            (at as usize).checked_add(bytes.len()).filter(|end| *end <= self.heap as usize)?;
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        self.bytes.get_mut(at as usize..end)?.copy_from_slice(bytes);
        Some(())
    }
}
