//! Calls to functions by name: `(str.len $s)`, `(http.get $url)`, `($helper 1)`.

use crate::diagnose::fix::Edits;
use crate::diagnose::wording::{self, Fault, form, types as type_wording};
use crate::habits::rewrite;
use crate::lower::flow::{Context, Flow, Lowered, Want};
use crate::lower::output::Wat;
use crate::lower::{CodeResult, LowerResult, Lowering};
use crate::syntax::literal;
use crate::syntax::tree::NodeId;
use crate::types::{Type, Val};
use crate::{Param, Signature};

/// The function that a list's head names.
pub(crate) enum Callee<'s> {
    /// A host function. If the flag is true, the name ends with a mark such as `?`, and the call
    /// never leaves an error code.
    Host(Signature, bool),
    /// A WAT function, by name.
    Wat(&'s str),
    /// A function declared with `fn`: its index and name.
    Fn(usize, &'s str),
}

impl<'s> Lowering<'_, 's> {
    /// Resolves the head of a list: the full name of a host function, optionally followed by a
    /// mark, or the name of one of the program's functions. Returns `None` for any other head.
    pub(crate) fn callee(&self, head: &str) -> Option<Callee<'s>> {
        if head.starts_with('$') {
            if let Some((name, at)) = self.program.defined.get_key_value(head) {
                let func = self.program.funcs.get(*at);
                return Some(if func.is_some_and(|func| func.fn_params.is_some()) {
                    Callee::Fn(*at, name)
                } else {
                    Callee::Wat(name)
                });
            }
            let plain = head.strip_prefix('$').filter(|plain| plain.contains('.'))?;
            return self.callee(plain);
        }
        if !head.contains('.') {
            return None;
        }
        let (name, marked) = match head.strip_suffix(['?', '!']) {
            Some(name) => (name, true),
            None => (head, false),
        };
        self.host.get(name).map(|signature| Callee::Host(*signature, marked))
    }

    /// Lowers a call.
    pub(crate) fn call_by_name(
        &mut self,
        list: NodeId,
        called: &Callee<'s>,
        context: Context,
    ) -> CodeResult<'s> {
        match called {
            Callee::Host(signature, marked) => {
                let count = super::all_operands(self.tree, list).len();
                let name = signature.full_name();
                let chosen = self.host.called(&name, count).copied().unwrap_or(*signature);
                let chosen = self.for_result(&chosen, context.want());
                self.call_host(list, &chosen, *marked, context)
            }
            Callee::Wat(name) => self.call_wat(list, name),
            Callee::Fn(at, name) => {
                let operands = super::all_operands(self.tree, list);
                self.call_fn(list, *at, name, &operands)
            }
        }
    }

    fn call_host(
        &mut self,
        list: NodeId,
        signature: &Signature,
        marked: bool,
        context: Context,
    ) -> CodeResult<'s> {
        if is_variadic(signature) && super::all_operands(self.tree, list).len() > 2 {
            return self.join_strings(list, signature);
        }
        let (call, signature) = self.raw_host_call(list, signature)?;
        let result = signature.results.first().map(|result| Type::of_host(result.ty));
        if !signature.fallible() {
            return Ok(match result {
                Some(ty) => Lowered::one(call, ty).dropped_if_unused(),
                None => Lowered::none(call),
            });
        }
        match (context, result) {
            (Context::Stack, result) if !marked => {
                let ty = result.unwrap_or(Type::Code);
                Ok(Lowered::net(call, if result.is_some() { 2 } else { 1 }, ty))
            }
            (Context::Operand(_), None) if signature.returns_first() => {
                self.with_first(list, call, &signature)
            }
            // A call without a value leaves its error code if WAT expects an operand.
            (Context::Operand(Want::Val(_) | Want::Any | Want::Hint(_)), None) if !marked => {
                Ok(Lowered::one(call, Type::Code))
            }
            (_, result) => {
                let ended = self.end_on_error(list)?;
                let wat = Wat::sequence(list, [call, ended]);
                Ok(match result {
                    Some(ty) => Lowered::one(wat, ty).dropped_if_unused(),
                    None => Lowered::none(wat),
                })
            }
        }
    }

    /// Returns code for a call that changes its first argument. The code leaves that argument on
    /// the stack.
    fn with_first(&mut self, list: NodeId, call: Wat<'s>, signature: &Signature) -> CodeResult<'s> {
        let ty = signature.params.first().map_or(Type::Any, |param| Type::of_host(param.ty));
        let name = self.hidden("first", ty.val());
        let call = call.change_first(|first| name.tee(list, [first]));
        let ended = self.end_on_error(list)?;
        let first = name.get(list);
        Ok(Lowered::one(Wat::sequence(list, [call, ended, first]), ty).dropped_if_unused())
    }

    /// Lowers `(str.cat A B C …)` from left to right.
    fn join_strings(&mut self, list: NodeId, signature: &Signature) -> CodeResult<'s> {
        let mut pieces = Vec::new();
        for (at, operand) in super::all_operands(self.tree, list).into_iter().enumerate() {
            pieces.push(self.value(list, operand, Want::Type(Type::Str))?.wat);
            if at > 0 {
                pieces.extend(self.cat(list)?);
            }
        }
        self.import(signature);
        Ok(Lowered::one(Wat::sequence(list, pieces), Type::Str).dropped_if_unused())
    }

    /// Returns code that joins the two strings on the stack.
    pub(crate) fn cat(&mut self, from: NodeId) -> LowerResult<[Wat<'s>; 2]> {
        Ok([self.host_call(from, "str.cat", [])?, self.end_on_error(from)?])
    }

    /// Lowers a call to a host function. The results, including the error code, remain on the
    /// stack. Also returns the called function, because the argument types may select another
    /// function with the same name.
    pub(crate) fn raw_host_call(
        &mut self,
        list: NodeId,
        signature: &Signature,
    ) -> LowerResult<(Wat<'s>, Signature)> {
        let tree = self.tree;
        let operands = super::all_operands(tree, list);
        let missing = signature.params.get(operands.len()..).unwrap_or(&[]);
        if !signature.takes(operands.len()) {
            let message = if operands.len() > signature.params.len() && !tree.open.is_empty() {
                wording::unclosed_form(tree.head(list).unwrap_or(""), None)
            } else {
                form::call_operands(signature, operands.len())
            };
            return self.fault(list, message);
        }
        let mut args = Vec::new();
        for operand in &operands {
            args.push(if self.is_number(*operand) {
                None
            } else {
                Some(self.value(list, *operand, Want::Any)?)
            });
        }
        let signature = &self.for_arguments(signature, &operands, &args);
        // A number takes the type of the parameter. Everything else is converted below, when all
        // types are known.
        let mut lowered = Vec::new();
        for ((arg, operand), param) in args.into_iter().zip(&operands).zip(signature.params) {
            let want = match Type::of_host(param.ty) {
                Type::Str => Want::Any,
                ty => Want::Type(ty),
            };
            lowered.push(match arg {
                Some(arg) => arg,
                None => self.value(list, *operand, want)?,
            });
        }
        let args = lowered;
        let types: Vec<Type> = args.iter().map(|arg| arg.ty).collect();
        let mut converted = Vec::new();
        for ((arg, operand), param) in args.into_iter().zip(&operands).zip(signature.params) {
            if is_missing(param, &arg) {
                converted.push(arg.wat);
                continue;
            }
            if takes_json(signature, param) && matches!(arg.ty, Type::Val | Type::Map) {
                converted.push(self.text_of_lowered(list, *operand, arg)?);
                continue;
            }
            let ty = Type::of_host(param.ty);
            match self.convert(list, *operand, arg, ty) {
                Ok(arg) => converted.push(arg.wat),
                Err(fault) => {
                    let better = self.wrong_function(list, signature, &operands, &types);
                    return Err(better.unwrap_or(fault));
                }
            }
        }
        let absent = missing.iter().filter_map(|param| param.ty.missing());
        converted.extend(absent.map(|none| Wat::i32(list, none.into())));
        self.import(signature);
        let name = ["call $", signature.module, ".", signature.name].concat();
        Ok((Wat::list(list, name, converted), *signature))
    }

    /// Returns the function whose result has the expected type: the given function, or a variant
    /// with the same name and parameters, such as `str.to_int/i64`.
    pub(crate) fn for_result(&self, signature: &Signature, want: Want) -> Signature {
        let Want::Type(wanted @ (Type::Long | Type::Float)) = want else { return *signature };
        let gives = |function: &Signature| {
            function.results.first().is_some_and(|result| Type::of_host(result.ty) == wanted)
        };
        let same = |other: &&Signature| {
            let types = |function: &Signature| function.params.iter().map(|param| param.ty);
            is_variant(other, signature) && types(other).eq(types(signature)) && gives(other)
        };
        if gives(signature) {
            *signature
        } else {
            self.host.iter().find(same).copied().unwrap_or(*signature)
        }
    }

    /// Returns the function that takes arguments of these types: the given function, or a variant
    /// with the same name and number of parameters, such as `map.incr/f64`. Number literals among
    /// the arguments are not lowered yet.
    fn for_arguments(
        &self,
        signature: &Signature,
        operands: &[NodeId],
        args: &[Option<Lowered<'_>>],
    ) -> Signature {
        let takes = |function: &Signature| {
            function.params.iter().zip(operands).zip(args).all(|((param, operand), arg)| {
                let want = Type::of_host(param.ty);
                match arg {
                    Some(arg) => !arg.ty.is_number() || arg.ty.widens_to(want),
                    None => {
                        want == Type::Str || literal::fits(want.val(), self.tree.text(*operand))
                    }
                }
            })
        };
        let mut others = self.host.iter().filter(|other| is_variant(other, signature));
        if takes(signature) {
            *signature
        } else {
            others.find(|other| takes(other)).copied().unwrap_or(*signature)
        }
    }

    /// Builds the fault for a call with arguments of the wrong types. Proposes to swap the
    /// arguments, or to call the function with the same name in the namespace of the first
    /// argument's type. Returns `None` if neither is possible.
    fn wrong_function(
        &self,
        list: NodeId,
        signature: &Signature,
        operands: &[NodeId],
        types: &[Type],
    ) -> Option<Box<Fault>> {
        let tree = self.tree;
        let fits = |given: Type, param: usize| {
            let want = signature.params.get(param).map(|param| Type::of_host(param.ty));
            want.is_some_and(|want| {
                given == want
                    || given.is_int() && want.is_int()
                    || given.is_vague() && want.val() == Val::I32
                    || want == Type::I32 && given.val() == Val::I32
            })
        };
        let (bad, found) = types.iter().copied().enumerate().find(|(at, ty)| !fits(*ty, *at))?;
        let operand = *operands.get(bad)?;
        let swapped: Vec<usize> = (0..types.len())
            .filter(|other| {
                let ty = types.get(*other).copied().unwrap_or(Type::Any);
                *other != bad
                    && !ty.is_vague()
                    && ty != found
                    && fits(found, *other)
                    && fits(ty, bad)
            })
            .collect();
        if let [other] = swapped.as_slice()
            && let Some(partner) = operands.get(*other)
        {
            let message = type_wording::operands_swapped(signature);
            let change = rewrite::swap(tree, operand, *partner);
            return Some(Fault::at(tree, list, message.safe(change)));
        }
        let same = found
            .module()
            .filter(|_| bad == 0)
            .and_then(|module| self.host.get(&format!("{module}.{}", signature.name)))?;
        if same.params.len() != signature.params.len() {
            return None;
        }
        let change = self.rename_call(list, same)?;
        let name = signature.full_name();
        let other = same.full_name();
        let want = signature.params.first().map_or(Type::Any, |param| Type::of_host(param.ty));
        let message = type_wording::operand(&name, tree.text(operand), found, want, None);
        Some(Fault::at(tree, operand, message.use_function(&other).safe(change)))
    }

    /// Returns the change that replaces a list's head with another host function.
    fn rename_call(&self, list: NodeId, known: &Signature) -> Option<Edits> {
        let tree = self.tree;
        let head = tree.head(list)?;
        let mark =
            head.strip_suffix(['?', '!']).map_or("", |name| head.get(name.len()..).unwrap_or(""));
        rewrite::replace_head(tree, list, format!("{}{mark}", known.full_name()))
    }

    /// Lowers a call to a WAT function.
    fn call_wat(&mut self, list: NodeId, name: &'s str) -> CodeResult<'s> {
        let effect = self.called(name);
        let operands = super::all_operands(self.tree, list);
        let wanted = effect.as_ref().map(|effect| effect.pops.len());
        if let Some(wanted) = wanted.filter(|wanted| *wanted != operands.len()) {
            return self.fault(list, form::helper_operands(name, wanted, operands.len()));
        }
        let mut args = Vec::new();
        for (at, operand) in operands.iter().enumerate() {
            let want = effect.as_ref().and_then(|effect| effect.pops.get(at));
            let want = match want {
                Some(Val::I32) => Want::Type(Type::I32),
                Some(val) => Want::Type(Type::of_wat(val)),
                None => Want::Any,
            };
            args.push(self.value(list, *operand, want)?.wat);
        }
        let call = Wat::list(list, ["call ", name].concat(), args);
        Ok(match effect {
            Some(effect) => {
                let count = i32::try_from(effect.pushes).unwrap_or(0);
                Lowered::net(call, count, effect.ty)
            }
            None => Lowered { flow: Flow::Unknown, ..Lowered::unknown(call) },
        })
    }
}

/// The string parameters that contain JSON, each with its namespace and function. An object is
/// converted to JSON for them.
const JSON_PARAMS: &[(&str, &str, &str)] = &[
    ("ai", "assist", "options"),
    ("ai", "extract", "schema"),
    ("http", "request", "headers"),
    ("tool", "call", "arguments"),
];

/// Returns true if a string parameter contains JSON.
fn takes_json(signature: &Signature, param: &Param) -> bool {
    JSON_PARAMS.contains(&(signature.module, signature.name, param.name))
}

/// Returns true if a function joins any number of strings.
fn is_variadic(signature: &Signature) -> bool {
    (signature.module, signature.name) == ("str", "cat")
}

/// Returns true if two functions are overloads with the same number of parameters, such as
/// `map.incr` and `map.incr/f64`: forms call both by the same name.
fn is_variant(one: &Signature, other: &Signature) -> bool {
    one.module == other.module
        && one.form() == other.form()
        && one.params.len() == other.params.len()
}

/// Returns true if an argument is a 0 that represents a missing string.
fn is_missing(param: &Param, arg: &Lowered<'_>) -> bool {
    param.ty.is_optional() && Type::of_host(param.ty) == Type::Str && arg.wat.constant() == Some(0)
}
