//! Forms for the program's arguments and results, and forms that end the program.

use super::{all_operands, operand_count, operands};
use crate::diagnose::fix::Change;
use crate::diagnose::wording::{self, form, types as type_wording};
use crate::habits::rewrite;
use crate::lower::facts::Slot;
use crate::lower::flow::{Context, Lowered, Want};
use crate::lower::function::FuncKind;
use crate::lower::output::Wat;
use crate::lower::values::NULL;
use crate::lower::variables::Hidden;
use crate::lower::{CodeResult, FAIL, LowerResult, Lowering};
use crate::syntax::literal;
use crate::syntax::tree::NodeId;
use crate::types::{Type, Val};
use crate::{Callable, CallableParam};

impl<'s> Lowering<'_, 's> {
    /// Lowers `(argv N $p)`, which sets `$p` to argument N. The code fails with EBOUND if the
    /// argument is missing.
    pub(super) fn lower_argv(&mut self, list: NodeId, _: Context) -> CodeResult<'s> {
        let tree = self.tree;
        let [number, target] = operands::<2>(tree, list)?;
        let Some(name) = tree.name(target) else {
            let message = wording::argv_target(tree.text(target));
            let change = match (tree.name(number), tree.atom(target)) {
                (Some(_), _) => Some(rewrite::swap(tree, number, target).into()),
                (None, Some(word))
                    if word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') =>
                {
                    Some(Change::Replace(format!("${word}")))
                }
                _ => None,
            };
            return self.fault(target, message.maybe_safe(change));
        };
        let known = self.func.scope.get(name);
        if let Some(val) =
            known.and_then(|known| Val::from_wat(known.wat)).filter(|v| !v.fits(Val::I32))
        {
            return self.fault(target, wording::form_target("argv", name, val));
        }
        let variable = self.declare(name, Type::Str, target)?;
        self.record_set(variable.at, Type::Str);
        let value = self.argument(list, number)?;
        Ok(Lowered::none(variable.write(list, Some(value))))
    }

    /// Returns code that reads an argument. The code fails if the argument is missing.
    fn argument(&mut self, list: NodeId, number: NodeId) -> LowerResult<Wat<'s>> {
        let number = self.value(list, number, Want::Type(Type::Int))?.wat;
        self.checked_call(list, "sys.argv", [number])
    }

    /// Lowers `(arg N)`, which returns argument N.
    pub(super) fn lower_arg(&mut self, list: NodeId, _: Context) -> CodeResult<'s> {
        let [number] = operands::<1>(self.tree, list)?;
        let wat = self.argument(list, number)?;
        Ok(Lowered::one(wat, Type::Str).dropped_if_unused())
    }

    /// Lowers `(args)`, which returns an array of all arguments.
    pub(super) fn lower_args(&mut self, list: NodeId, _: Context) -> CodeResult<'s> {
        let [] = operands::<0>(self.tree, list)?;
        Ok(Lowered::one(self.host_call(list, "sys.args", [])?, Type::Arr))
    }

    /// Lowers `(call "program" ARG …)`, which runs a catalog program and returns its results.
    pub(super) fn lower_call(&mut self, list: NodeId, _: Context) -> CodeResult<'s> {
        let nodes = all_operands(self.tree, list);
        let Some((program, args)) = nodes.split_first() else {
            return Err(operand_count(self.tree, list, 1, 0));
        };
        let program = self.value(list, *program, Want::Type(Type::Str))?.wat;
        let hidden = self.hidden("args", Val::I32);
        let mut pieces = self.filled_array(list, &hidden, args)?;
        pieces.push(self.checked_call(list, "par.call", [program, hidden.get(list)])?);
        Ok(Lowered::one(Wat::sequence(list, pieces), Type::Str).dropped_if_unused())
    }

    /// Lowers `(name A B)` and `(name key: A)`, which call a catalog program by its name. The result
    /// is that of the program: a string or, if the program declares a type, a value.
    pub(crate) fn call_program(&mut self, list: NodeId, program: &Callable) -> CodeResult<'s> {
        let tree = self.tree;
        let mut nodes = all_operands(tree, list).into_iter();
        let object = self.hidden("args", Val::I32);
        let mut pieces = vec![object.set(list, self.value_call(list, "object", [])?)];
        let mut given: Vec<&str> = Vec::new();
        while let Some(node) = nodes.next() {
            let named = tree.atom(node).filter(|text| !text.starts_with('$'));
            let named = named.and_then(|text| text.split_once(':'));
            let named = named.filter(|(name, _)| !name.is_empty());
            let (name, value) = match named {
                Some((name, "")) => {
                    let Some(value) = nodes.next() else {
                        return self.fault(node, form::missing_argument(&program.name, name));
                    };
                    (Some(name), self.shaped(list, value)?)
                }
                // `recipient:12`
                Some((name, text)) => (Some(name), self.written_value(node, text)?),
                None => (None, self.shaped(list, node)?),
            };
            let name = match name {
                Some(name) => name,
                // The next parameter, in order.
                None => match program.params.get(given.len()) {
                    Some(param) => param.name.as_str(),
                    None => {
                        let count = program.params.len();
                        let message = form::program_operands(&program.name, count, &usage(program));
                        return self.fault(list, message);
                    }
                },
            };
            let Some(param) = program.params.iter().find(|param| param.name == name) else {
                let message = form::unknown_argument(&program.name, name, &usage(program));
                return self.fault(node, message);
            };
            if given.contains(&param.name.as_str()) {
                return self.fault(node, form::repeated_argument(&program.name, name));
            }
            given.push(&param.name);
            let key = Wat::literal(node, param.name.clone().into_bytes());
            pieces.push(self.value_call(list, "put_key", [object.get(list), key, value])?);
        }
        self.apply_program(list, program, &given, &object, pieces)
    }

    /// Lowers the call of a catalog program with the current item of a loop as its first argument.
    pub(super) fn call_program_for_item(
        &mut self,
        list: NodeId,
        name: &str,
        item: Wat<'s>,
    ) -> CodeResult<'s> {
        let host = self.host;
        let Some(program) = host.program(name) else { return Ok(Lowered::none(item)) };
        let Some(first) = program.params.first() else {
            return self.fault(list, form::program_operands(name, 0, &usage(program)));
        };
        let object = self.hidden("args", Val::I32);
        let key = Wat::literal(list, first.name.clone().into_bytes());
        let pieces = vec![
            object.set(list, self.value_call(list, "object", [])?),
            self.value_call(list, "put_key", [object.get(list), key, item])?,
        ];
        self.apply_program(list, program, &[&first.name], &object, pieces)
    }

    /// Returns code that runs a catalog program with the arguments in an object, which `pieces`
    /// make. `given` has their names.
    fn apply_program(
        &mut self,
        list: NodeId,
        program: &Callable,
        given: &[&str],
        object: &Hidden,
        mut pieces: Vec<Wat<'s>>,
    ) -> CodeResult<'s> {
        let is_missing =
            |param: &&CallableParam| !param.is_optional && !given.contains(&param.name.as_str());
        if let Some(missing) = program.params.iter().find(is_missing) {
            let message = form::left_out(&program.name, &missing.name, &usage(program));
            return self.fault(list, message);
        }
        let name = Wat::literal(list, program.name.clone().into_bytes());
        pieces.push(self.checked_call(list, "par.apply", [name, object.get(list)])?);
        let text = Wat::sequence(list, pieces);
        let (result, ty) = match program.is_typed {
            true => (self.value_call(list, "parse", [text])?, Type::Val),
            false => (text, Type::Str),
        };
        Ok(Lowered::one(result, ty).dropped_if_unused())
    }

    /// Lowers the text after a colon: a number, a boolean, null, a variable, or a string without
    /// quotes.
    fn written_value(&mut self, node: NodeId, text: &'s str) -> LowerResult<Wat<'s>> {
        if let Some(found) = self.resolve(text) {
            let value = found.read(node);
            return self.boxed(node, value, found.ty);
        }
        let ty = match text {
            "true" | "false" => Type::Bool,
            "null" => return Ok(Wat::i32(node, NULL)),
            _ if literal::number_type(text).is_some() => {
                let digits = Wat::literal(node, text.as_bytes());
                return self.value_call(node, "decimal", [digits]);
            }
            _ => return self.boxed(node, Wat::literal(node, text.as_bytes()), Type::Str),
        };
        self.boxed(node, Wat::i32(node, (text == "true").into()), ty)
    }

    /// Lowers `(out V)` and `(out "{}" V …)`, which output a result.
    pub(super) fn lower_out(&mut self, list: NodeId, _: Context) -> CodeResult<'s> {
        let nodes = all_operands(self.tree, list);
        Ok(Lowered::none(self.output(list, &nodes)?))
    }

    /// Returns code that outputs a value or a formatted string as a result.
    fn output(&mut self, list: NodeId, nodes: &[NodeId]) -> LowerResult<Wat<'s>> {
        let value = self.printed(list, nodes)?;
        self.host_call(list, "sys.resv", [value])
    }

    /// Lowers `(ret V)`, `(ret "{}" V …)` and `(ret)`, which output a result, if any, and end the
    /// program, also within a function.
    pub(crate) fn lower_ret(&mut self, list: NodeId, _: Context) -> CodeResult<'s> {
        let tree = self.tree;
        let mut pieces = Vec::new();
        let nodes = all_operands(tree, list);
        if !nodes.is_empty() {
            pieces.push(self.output(list, &nodes)?);
        }
        if self.func.kind == FuncKind::Run {
            pieces.push(Wat::list(list, "return", [Wat::i32(list, 0)]));
        } else {
            pieces.push(self.host_call(list, "sys.end", [])?);
            pieces.push(Wat::list(list, "unreachable", []));
        }
        Ok(Lowered::never(Wat::sequence(list, pieces)))
    }

    /// Lowers `(return V)` and `(return)` in a function declared with `fn`.
    pub(crate) fn lower_return(&mut self, list: NodeId) -> CodeResult<'s> {
        let tree = self.tree;
        let at = self.func.at;
        let mut results = Vec::new();
        match all_operands(tree, list).as_slice() {
            [] => {
                if let Some((ty, first)) = self.facts.result(at) {
                    let line = self.tree.line(first);
                    return self.fault(list, type_wording::return_without_value(ty, line));
                }
            }
            [operand] => {
                let known = if self.is_number(*operand) {
                    self.facts.ty_so_far(at, Slot::Result)
                } else {
                    None
                };
                let want = self.wanted_number(*operand, known);
                let value = self.value(list, *operand, want)?;
                self.join_result(*operand, value.ty)?;
                let ty = self.facts.result(at).map_or(Type::Any, |(ty, _)| ty);
                results.push(self.convert(list, *operand, value, ty)?.wat);
            }
            more => return Err(operand_count(tree, list, 1, more.len())),
        }
        if self.facts.is_fallible(at) {
            results.push(Wat::i32(list, 0));
        }
        Ok(Lowered::never(Wat::list(list, "return", results)))
    }

    /// Lowers `(fail CODE)`, `(fail CODE "why")` and `(fail CODE "{}" V …)`, which fail with an
    /// error code and a reason, like a failed call.
    pub(super) fn lower_fail(&mut self, list: NodeId, _: Context) -> CodeResult<'s> {
        let nodes = all_operands(self.tree, list);
        let Some((operand, text)) = nodes.split_first() else {
            return Err(operand_count(self.tree, list, 1, 0));
        };
        self.require_code_result(list)?;
        let code = self.value(list, *operand, Want::Type(Type::Code))?.wat;
        let reason = match (self.formatted(list, text)?, text) {
            (Some(formatted), _) => formatted,
            (None, [text]) => self.value(list, *text, Want::Type(Type::Str))?.wat,
            (None, []) => Wat::literal(list, &b""[..]),
            (None, _) => return Err(operand_count(self.tree, list, 1, nodes.len())),
        };
        let failed = self.host_call(list, FAIL, [code, reason])?;
        let ended = self.end_on_error(list)?;
        let end = Wat::list(list, "unreachable", []);
        Ok(Lowered::never(Wat::sequence(list, [failed, ended, end])))
    }
}

/// Returns the usage of a program, such as `(send to amount [note])`.
fn usage(program: &Callable) -> String {
    let params = program.params.iter().map(|param| match param.is_optional {
        true => format!(" [{}]", param.name),
        false => format!(" {}", param.name),
    });
    format!("({}{})", program.name, params.collect::<String>())
}
