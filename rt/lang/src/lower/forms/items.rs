//! Functions over collections, such as `(sort X by K)` and `(map X F)`. F and K may be a function
//! that stands in the form, `(fn ($a) E)`. It is lowered to the body of a loop, so it sees the
//! program's variables.

use super::path::Key;
use super::{all_operands, operand_count};
use crate::diagnose::fix::Edits;
use crate::diagnose::wording::{form, types as type_wording};
use crate::lower::flow::{Context, Flow, Lowered, Want};
use crate::lower::output::Wat;
use crate::lower::variables::{Declared, Hidden};
use crate::lower::{CodeResult, LowerResult, Lowering};
use crate::syntax::tree::{NodeId, Nodes};
use crate::types::{Type, Val};
use crate::{Param, Signature};

/// A function of the items of a collection.
enum Function<'s> {
    /// `"key"`: a part of the item.
    Part(NodeId),
    /// `$f`, a function of the program, by its index and name.
    Named(usize, &'s str),
    /// `(fn ($a) E…)`: its parameters and its body.
    Inline { params: Vec<(NodeId, &'s str)>, body: Nodes, node: NodeId },
    /// `str.upper` or `len`: the name of a host function, or `str`.
    Called(String),
    /// The name of a program of the catalog.
    Program(&'s str),
    /// `(list K…)`: the list of the results of several functions.
    Several(Vec<Function<'s>>),
}

/// The hidden variables of a loop over items.
struct Current {
    collection: Hidden,
    at: Hidden,
    item: Hidden,
    /// The label that exits the loop.
    leave: String,
}

/// The operands of a form such as `(sort X desc by K)`.
struct Sorted {
    collection: NodeId,
    /// The operands between the collection and `by`.
    others: Vec<NodeId>,
    by: Option<NodeId>,
    is_descending: bool,
}

/// The forms whose operands are those of a function on values, each with the function's name.
const SIMPLE: &[(&str, &str)] = &[
    ("big", "big"),
    ("copy", "copy"),
    ("csv", "csv"),
    ("csv.text", "csv_text"),
    ("del", "without"),
    ("first", "first"),
    ("flat", "flat"),
    ("html.table", "html_table"),
    ("join", "join"),
    ("json.stringify", "json"),
    ("json.text", "json"),
    ("keys", "keys"),
    ("kind", "kind"),
    ("last", "last"),
    ("merge", "merge"),
    ("num", "num"),
    ("pow", "pow"),
    ("reverse", "reverse"),
    ("round", "round"),
    ("slice", "slice"),
    ("take", "take"),
    ("toml", "toml"),
    ("values", "values"),
    ("xml", "xml"),
    ("yaml", "yaml"),
];

/// The forms that are functions of one value and not in [`SIMPLE`], each with the name of the
/// function on values that does the same.
const UNARY: &[(&str, &str)] =
    &[("float", "to_float"), ("int", "to_int"), ("len", "len"), ("long", "to_long")];

/// The parameters of functions on values that are 0 if they are left out.
const LEFT_OUT: &[(&str, &str)] = &[("csv", "typed"), ("html_table", "n"), ("round", "digits")];

/// Returns true if a call may leave out the parameter.
fn may_be_left_out(signature: &Signature, param: &Param) -> bool {
    param.ty.is_optional()
        || signature.module == "val" && LEFT_OUT.contains(&(signature.name, param.name))
}

/// Returns the argument for a parameter that is left out.
fn left_out<'s>(from: NodeId, param: &Param) -> Wat<'s> {
    Wat::i32(from, param.ty.missing().unwrap_or(0).into())
}

impl<'s> Lowering<'_, 's> {
    /// Lowers a form whose operands are those of a function on values.
    pub(super) fn lower_simple(&mut self, list: NodeId, context: Context) -> CodeResult<'s> {
        let head = self.tree.head(list).unwrap_or("");
        // As a statement, `del` removes the part from its container.
        if head == "del" && !context.is_operand() {
            let [value, key] = super::operands::<2>(self.tree, list)?;
            let args = [self.shaped(list, value)?, self.shaped(list, key)?];
            return Ok(Lowered::none(self.value_call(list, "remove", args)?));
        }
        self.require_use(list, context)?;
        let function =
            SIMPLE.iter().find(|(name, _)| *name == head).map_or(head, |(_, name)| *name);
        let Some(signature) = self.host.get(&["val.", function].concat()).copied() else {
            return self.host_call(list, &["val.", function].concat(), []).map(Lowered::none);
        };
        let mut operands = all_operands(self.tree, list);
        // `(csv S typed)`
        let is_typed = |node: &NodeId| self.tree.atom(*node) == Some("typed");
        let typed = operands.iter().position(|node| function == "csv" && is_typed(node));
        typed.map(|at| operands.remove(at));
        let missing = signature.params.get(operands.len()..);
        let is_left_out = |param| may_be_left_out(&signature, param);
        if !missing.is_some_and(|missing| missing.iter().all(is_left_out)) {
            return self.fault(list, form::call_operands(&signature, operands.len()));
        }
        let mut args = Vec::new();
        for (at, param) in signature.params.iter().enumerate() {
            args.push(match operands.get(at) {
                Some(node) => self.value(list, *node, Want::Type(Type::of_host(param.ty)))?.wat,
                None if typed.is_some() => Wat::i32(list, 1),
                None => left_out(list, param),
            });
        }
        // A separator before `typed` is a string that is left out.
        if typed.is_some() && operands.len() == 1 {
            args.splice(1..2, [Wat::i32(list, 0)]);
        }
        let wat = self.value_call(list, function, args)?;
        let ty = signature.results.first().map_or(Type::Val, |result| Type::of_host(result.ty));
        Ok(Lowered::one(wat, ty))
    }

    /// Rejects a form whose result nobody uses. It does not change its operand, so it has no
    /// effect.
    fn require_use(&self, list: NodeId, context: Context) -> LowerResult<()> {
        if context.is_operand() || context == Context::Stack {
            return Ok(());
        }
        let tree = self.tree;
        let head = tree.head(list).unwrap_or("");
        let target = tree.operands(list).next_name(tree);
        let edits = target.map(|name| {
            let span = tree.span(list);
            Edits::default().insert(span.start, format!("(set {name} ")).insert(span.end, ")")
        });
        let message = form::unused_result(head, target.unwrap_or("$x"), tree.text(list));
        self.fault(list, message.maybe_safe(edits))
    }

    /// Splits the operands of a form at `by` and `desc`.
    fn sorted(&self, list: NodeId) -> LowerResult<Sorted> {
        let tree = self.tree;
        let nodes = all_operands(tree, list);
        let Some((collection, rest)) = nodes.split_first() else {
            return Err(operand_count(tree, list, 1, 0));
        };
        let head = tree.head(list).unwrap_or("");
        let mut all =
            Sorted { collection: *collection, others: Vec::new(), by: None, is_descending: false };
        let mut rest = rest.iter();
        while let Some(node) = rest.next() {
            match tree.atom(*node) {
                Some("by") if all.by.is_none() => match rest.next() {
                    Some(key) => all.by = Some(*key),
                    None => return self.fault(*node, form::missing_key(head)),
                },
                Some("desc") => all.is_descending = true,
                Some("asc") => {}
                _ => all.others.push(*node),
            }
        }
        // `(sort_by X K)`, and `(sort X K)` with a function or a key.
        if all.by.is_none() && head != "percentile" && !all.others.is_empty() {
            all.by = Some(all.others.remove(0));
        }
        Ok(all)
    }

    /// Returns the function that an operand names.
    fn function_of(&self, list: NodeId, node: NodeId) -> LowerResult<Function<'s>> {
        let tree = self.tree;
        if tree.head(node) == Some("fn") {
            let mut body = tree.operands(node);
            let params = body.next(tree).filter(|params| tree.is_list(*params));
            let Some(params) = params else {
                return self.fault(node, form::inline_function(tree.text(node)));
            };
            let mut names = Vec::new();
            for param in tree.children(params).iter(tree) {
                names.push((param, self.target_name(list, param)?));
            }
            if !matches!(names.len(), 1 | 2) {
                return self.fault(params, form::inline_function(tree.text(node)));
            }
            return Ok(Function::Inline { params: names, body, node });
        }
        if tree.head(node) == Some("list") || tree.text(node).starts_with('[') {
            let inner = match tree.head(node) {
                Some("list") => all_operands(tree, node),
                _ => tree.items(node),
            };
            let functions = inner.into_iter().map(|inner| self.function_of(list, inner));
            return Ok(Function::Several(functions.collect::<LowerResult<_>>()?));
        }
        let name = tree.name(node).and_then(|name| self.program.defined.get_key_value(name));
        if let Some((name, at)) = name
            && self.program.funcs.get(*at).is_some_and(|func| func.fn_params.is_some())
        {
            return Ok(Function::Named(*at, name));
        }
        if let Some(name) = self.function_name(node) {
            return Ok(Function::Called(name));
        }
        let program = tree.atom(node).filter(|name| self.host.program(name).is_some());
        Ok(program.map_or(Function::Part(node), Function::Program))
    }

    /// Returns the name of the host function that a word stands for, if the function takes one
    /// operand and returns a result: `str.upper` itself, `val.keys` for `keys`.
    fn function_name(&self, node: NodeId) -> Option<String> {
        let text = self.tree.atom(node)?;
        if text == "str" {
            return Some(text.to_owned());
        }
        let form = SIMPLE.iter().chain(UNARY).find(|(name, _)| *name == text);
        let name = form.map_or_else(|| text.to_owned(), |(_, name)| ["val.", name].concat());
        let signature = self.host.get(&name)?;
        let (_, others) = signature.params.split_first()?;
        let takes_one = others.iter().all(|param| may_be_left_out(signature, param));
        (takes_one && !signature.results.is_empty()).then_some(name)
    }

    /// Lowers the application of a function to the current item.
    fn apply(
        &mut self,
        list: NodeId,
        function: &Function<'s>,
        current: &Current,
    ) -> CodeResult<'s> {
        match function {
            Function::Part(node) => {
                let key: Key<'s> = self.key(list, *node)?;
                let part = key.read(self, list, current.item.get(list))?;
                Ok(Lowered::one(part, Type::Val))
            }
            Function::Named(at, name) => {
                let item = current.item.get(list);
                let args = match self.takes_key(function) {
                    true => vec![self.current_key(list, current)?, item],
                    false => vec![item],
                };
                let args = args.into_iter().map(|arg| (list, Lowered::one(arg, Type::Val)));
                self.call_fn_lowered(list, *at, name, args.collect())
            }
            Function::Called(name) => self.call_for_item(list, name, current.item.get(list)),
            Function::Program(name) => {
                self.call_program_for_item(list, name, current.item.get(list))
            }
            Function::Inline { params, body, node } => {
                self.inline(list, params, *body, *node, current)
            }
            Function::Several(functions) => {
                let keys = self.hidden("keys", Val::I32);
                let mut pieces = vec![keys.set(list, self.value_call(list, "list", [])?)];
                for function in functions {
                    let out = self.apply(list, function, current)?;
                    let key = self.convert(list, list, out, Type::Val)?.wat;
                    pieces.push(self.value_call(list, "push", [keys.get(list), key])?);
                }
                pieces.push(keys.get(list));
                Ok(Lowered::one(Wat::sequence(list, pieces), Type::Val))
            }
        }
    }

    /// Lowers the call of a host function, or of `str`, with the current item.
    fn call_for_item(&mut self, list: NodeId, name: &str, item: Wat<'s>) -> CodeResult<'s> {
        let item = Lowered::one(item, Type::Val);
        let Some(signature) = self.host.get(name).copied() else {
            return Ok(Lowered::one(self.text_of_lowered(list, list, item)?, Type::Str));
        };
        let mut params = signature.params.iter();
        let ty = params.next().map_or(Type::Val, |param| Type::of_host(param.ty));
        let mut args = vec![self.convert(list, list, item, ty)?.wat];
        args.extend(params.map(|param| left_out(list, param)));
        let call = self.checked_call(list, name, args)?;
        let result = signature.results.first().map_or(Type::Val, |result| Type::of_host(result.ty));
        Ok(Lowered::one(call, result))
    }

    /// Returns true if the function takes the item's key or index, too.
    fn takes_key(&self, function: &Function<'s>) -> bool {
        match function {
            Function::Inline { params, .. } => params.len() == 2,
            Function::Named(at, _) => {
                let func = self.program.funcs.get(*at);
                func.and_then(|func| func.fn_params.as_ref()).is_some_and(|all| all.len() == 2)
            }
            _ => false,
        }
    }

    /// Returns code for the key or index of the current item.
    fn current_key(&mut self, list: NodeId, current: &Current) -> LowerResult<Wat<'s>> {
        self.value_call(list, "nth_key", [current.collection.get(list), current.at.get(list)])
    }

    /// Lowers the body of a function that stands in a form. The variables that it declares are its
    /// own, and `return` leaves it.
    fn inline(
        &mut self,
        list: NodeId,
        params: &[(NodeId, &'s str)],
        body: Nodes,
        node: NodeId,
        current: &Current,
    ) -> CodeResult<'s> {
        let label = self.new_label("result");
        let names = self.func.scope.bindings();
        let own = std::mem::replace(&mut self.func.own, self.func.scope.len());
        let loops = std::mem::take(&mut self.func.loops);
        self.func.inline.push((label.clone(), false));
        let mut set = Vec::new();
        let values = match params {
            [_] => vec![current.item.get(list)],
            _ => vec![self.current_key(list, current)?, current.item.get(list)],
        };
        for ((node, name), value) in params.iter().zip(values) {
            let variable = self.add(name, Type::Val, *node, Declared::Form)?;
            set.push(variable.write(list, Some(value)));
        }
        let mut nodes = body;
        let lowered = self.sequence(&mut nodes, Context::Operand(Want::Any));
        let returns = self.func.inline.pop().is_some_and(|(_, is_used)| is_used);
        self.func.loops = loops;
        self.func.own = own;
        self.func.scope.rebind(names);
        let out = lowered?;
        let last = body.iter(self.tree).last().unwrap_or(node);
        let out = match out.flow {
            Flow::Net(0) => return self.fault(last, form::inline_function(self.tree.text(node))),
            _ => self.fit(list, last, out, Want::Any)?,
        };
        set.push(match (returns, out.flow) {
            (false, Flow::Net(1)) => {
                let ty = out.ty;
                set.push(out.wat);
                return Ok(Lowered::one(Wat::sequence(list, set), ty));
            }
            (_, Flow::Net(1)) => {
                let value = self.convert(list, last, out, Type::Val)?.wat;
                self.typed_block(list, &label, Some(Type::Val), vec![value]).wat
            }
            _ => {
                let end = Wat::list(list, "unreachable", []);
                self.typed_block(list, &label, Some(Type::Val), vec![out.wat, end]).wat
            }
        });
        Ok(Lowered::one(Wat::sequence(list, set), Type::Val))
    }

    /// Lowers `(return V)` in a function that stands in a form.
    pub(crate) fn lower_inline_return(&mut self, list: NodeId) -> CodeResult<'s> {
        let [node] = super::operands::<1>(self.tree, list)?;
        let value = self.shaped(list, node)?;
        let Some((label, is_used)) = self.func.inline.last_mut() else {
            return Ok(Lowered::none(value));
        };
        *is_used = true;
        Ok(Lowered::never(Wat::list(list, format!("br {label}"), [value])))
    }

    /// Lowers a loop over the items of a list or the values of an object. `body` returns the code
    /// for one item.
    fn over(
        &mut self,
        list: NodeId,
        collection: Wat<'s>,
        function: Option<&Function<'s>>,
        body: impl FnOnce(&mut Self, &Current) -> LowerResult<Vec<Wat<'s>>>,
    ) -> LowerResult<Wat<'s>> {
        let number = self.next_number();
        let count = self.numbered("count", number, Val::I32);
        let current = Current {
            collection: self.numbered("items", number, Val::I32),
            at: self.numbered("at", number, Val::I32),
            item: self.numbered("item", number, Val::I32),
            leave: self.label("leave", number),
        };
        let Current { collection: items, at, item, leave } = &current;
        let has_keys = function.is_some_and(|function| self.takes_key(function));
        let length = if has_keys { "size" } else { "list_len" };
        let length = self.value_call(list, length, [items.get(list)])?;
        let next = self.value_call(list, "nth", [items.get(list), at.get(list)])?;
        let done = Wat::list(list, "i32.ge_s", [at.get(list), count.get(list)]);
        let mut inner = vec![Wat::br_if(list, leave, done), item.set(list, next)];
        inner.extend(body(self, &current)?);
        let following = Wat::list(list, "i32.add", [at.get(list), Wat::i32(list, 1)]);
        inner.push(at.set(list, following));
        let again = self.label("again", number);
        Ok(Wat::sequence(
            list,
            [
                items.set(list, collection),
                count.set(list, length),
                at.set(list, Wat::i32(list, 0)),
                Wat::repeated(list, leave, &again, inner),
            ],
        ))
    }

    /// Returns code that makes the list of a function's results for all items, and stores it in a
    /// variable. `use_of` returns a result as the caller uses it.
    fn results(
        &mut self,
        list: NodeId,
        collection: Wat<'s>,
        function: &Function<'s>,
        results: &Hidden,
        use_of: fn(Lowered<'s>) -> Lowered<'s>,
    ) -> LowerResult<Wat<'s>> {
        if let Function::Part(node) = function {
            let key = self.shaped(list, *node)?;
            let parts = self.value_call(list, "pluck", [collection, key])?;
            return Ok(results.set(list, parts));
        }
        let new = self.value_call(list, "list", [])?;
        let looped = self.over(list, collection, Some(function), |lowering, current| {
            let out = use_of(lowering.apply(list, function, current)?);
            let value = lowering.convert(list, list, out, Type::Val)?.wat;
            Ok(vec![lowering.value_call(list, "push", [results.get(list), value])?])
        })?;
        Ok(Wat::sequence(list, [results.set(list, new), looped]))
    }

    /// Lowers a function over a collection: `sort`, `group`, `count`, `index`, `uniq`, `sum`, `avg`,
    /// `median`, `stdev`, `percentile`, and `min` and `max` of a collection.
    pub(super) fn lower_items(&mut self, list: NodeId, context: Context) -> CodeResult<'s> {
        self.require_use(list, context)?;
        let head = self.tree.head(list).unwrap_or("").trim_end_matches("_by");
        let Sorted { collection, others, by, is_descending } = self.sorted(list)?;
        let percent = match (head, others.as_slice()) {
            ("percentile", [percent]) => {
                Some(self.value(list, *percent, Want::Type(Type::Float))?.wat)
            }
            (_, []) if head != "percentile" => None,
            _ => return Err(operand_count(self.tree, list, 2, others.len() + 1)),
        };
        let items = self.hidden("all", Val::I32);
        let value = match (head, by) {
            // An array is counted without a copy.
            ("count", None) => {
                let out = self.value(list, collection, Want::Any)?;
                if out.ty == Type::Arr {
                    let counts = self.value_call(list, "count_arr", [out.wat])?;
                    return Ok(Lowered::one(counts, Type::Val));
                }
                self.convert(list, collection, out, Type::Val)?.wat
            }
            _ => self.shaped(list, collection)?,
        };
        let mut pieces = vec![items.set(list, value)];
        let keys = match by {
            None => None,
            Some(key) => {
                let function = self.function_of(list, key)?;
                let keys = self.hidden("by", Val::I32);
                let use_of = match head {
                    "sum" | "avg" | "median" | "stdev" | "percentile" => Lowered::counted,
                    _ => std::convert::identity,
                };
                pieces.push(self.results(list, items.get(list), &function, &keys, use_of)?);
                Some(keys)
            }
        };
        let keys_or_null =
            || keys.as_ref().map_or_else(|| Wat::i32(list, 0), |keys| keys.get(list));
        let keys_or_items = || keys.as_ref().unwrap_or(&items).get(list);
        let (function, args, ty) = match head {
            "sort" => {
                let descending = Wat::i32(list, is_descending.into());
                ("sort", vec![items.get(list), keys_or_null(), descending], Type::Val)
            }
            "group" | "index" | "uniq" => (head, vec![items.get(list), keys_or_null()], Type::Val),
            "min" => ("least", vec![items.get(list), keys_or_null()], Type::Val),
            "max" => ("greatest", vec![items.get(list), keys_or_null()], Type::Val),
            "percentile" => {
                let percent = percent.unwrap_or(Wat::nothing(list));
                ("percentile", vec![keys_or_items(), percent], Type::Val)
            }
            _ => (head, vec![keys_or_items()], Type::Val),
        };
        pieces.push(self.value_call(list, function, args)?);
        Ok(Lowered::one(Wat::sequence(list, pieces), ty))
    }

    /// Returns true if `min` or `max` has a collection as operand instead of numbers.
    pub(super) fn is_of_collection(&self, nodes: &[NodeId]) -> bool {
        nodes.len() == 1
            || nodes.iter().skip(1).any(|node| {
                self.tree.atom(*node) == Some("by") || self.tree.head(*node) == Some("fn")
            })
    }

    /// Lowers `(map X F)`, the list of the results of F. Returns `None` for `(map K V …)`.
    pub(super) fn map_items(
        &mut self,
        list: NodeId,
        context: Context,
    ) -> LowerResult<Option<Lowered<'s>>> {
        let nodes = all_operands(self.tree, list);
        let [collection, function] = nodes.as_slice() else { return Ok(None) };
        let function = match self.function_of(list, *function)? {
            Function::Part(key) => {
                let is_key = self.tree.is_text(key) && !self.tree.is_text(*collection);
                let is_list = is_key
                    && matches!(
                        self.value(list, *collection, Want::Any)?.ty,
                        Type::Val | Type::Arr
                    );
                if !is_list {
                    return Ok(None);
                }
                Function::Part(key)
            }
            function => function,
        };
        self.require_use(list, context)?;
        let value = self.shaped(list, *collection)?;
        let results = self.hidden("results", Val::I32);
        let made = self.results(list, value, &function, &results, std::convert::identity)?;
        Ok(Some(Lowered::one(Wat::sequence(list, [made, results.get(list)]), Type::Val)))
    }

    /// Lowers `(filter X F)`, `(find X F)`, `(any X F)` and `(all X F)`.
    pub(super) fn lower_search(&mut self, list: NodeId, context: Context) -> CodeResult<'s> {
        self.require_use(list, context)?;
        let head = self.tree.head(list).unwrap_or("");
        let [collection, function] = super::operands::<2>(self.tree, list)?;
        let function = self.function_of(list, function)?;
        let value = self.shaped(list, collection)?;
        let result = self.hidden("result", Val::I32);
        let (before, ty) = match head {
            "filter" => (self.value_call(list, "list", [])?, Type::Val),
            "find" => (Wat::i32(list, crate::lower::values::NULL), Type::Val),
            "any" => (Wat::i32(list, 0), Type::Bool),
            _ => (Wat::i32(list, 1), Type::Bool),
        };
        let looped = self.over(list, value, Some(&function), |lowering, current| {
            let out = lowering.apply(list, &function, current)?;
            let test = lowering.tested(list, out)?;
            let leave = || Wat::br(list, &current.leave);
            Ok(vec![match head {
                "filter" => {
                    let item = [result.get(list), current.item.get(list)];
                    Wat::when(list, test, lowering.value_call(list, "push", item)?)
                }
                "find" => {
                    let found = result.set(list, current.item.get(list));
                    Wat::when(list, test, Wat::sequence(list, [found, leave()]))
                }
                "any" => {
                    let found = result.set(list, Wat::i32(list, 1));
                    Wat::when(list, test, Wat::sequence(list, [found, leave()]))
                }
                _ => {
                    let other = result.set(list, Wat::i32(list, 0));
                    let test = Wat::list(list, "i32.eqz", [test]);
                    Wat::when(list, test, Wat::sequence(list, [other, leave()]))
                }
            }])
        })?;
        let pieces = [result.set(list, before), looped, result.get(list)];
        Ok(Lowered::one(Wat::sequence(list, pieces), ty))
    }

    /// Returns code that tests a function's result: an int or a value.
    fn tested(&mut self, list: NodeId, out: Lowered<'s>) -> LowerResult<Wat<'s>> {
        match out.ty {
            Type::Val => self.value_call(list, "truth", [out.wat]),
            ty if ty.is_int() || ty.is_vague() => Ok(out.wat),
            ty => self.fault(list, type_wording::test_result(ty)),
        }
    }

    /// Lowers `(concat A B …)`, which joins lists, and strings as `str` does.
    pub(super) fn lower_concat(&mut self, list: NodeId, context: Context) -> CodeResult<'s> {
        self.require_use(list, context)?;
        let nodes = all_operands(self.tree, list);
        let mut lowered = Vec::new();
        for node in &nodes {
            lowered.push((*node, self.value(list, *node, Want::Any)?));
        }
        let is_list = |ty: Type| matches!(ty, Type::Val | Type::Arr);
        if !lowered.iter().any(|(_, out)| is_list(out.ty)) && !lowered.is_empty() {
            let mut strings = Vec::new();
            for (node, out) in lowered {
                strings.push(self.text_of_lowered(list, node, out)?);
            }
            return Ok(Lowered::one(self.joined(list, strings)?, Type::Str));
        }
        let mut all: Option<Wat<'s>> = None;
        for (node, out) in lowered {
            let next = self.convert(list, node, out, Type::Val)?.wat;
            all = Some(match all {
                None => next,
                Some(before) => self.value_call(list, "concat", [before, next])?,
            });
        }
        match all {
            Some(wat) => Ok(Lowered::one(wat, Type::Val)),
            None => Err(operand_count(self.tree, list, 2, 0)),
        }
    }

    /// Lowers `(list A B …)`.
    pub(super) fn lower_list(&mut self, list: NodeId, _: Context) -> CodeResult<'s> {
        let nodes = all_operands(self.tree, list);
        self.list_of(list, &nodes)
    }

    /// Lowers a list of these items.
    pub(crate) fn list_of(&mut self, list: NodeId, nodes: &[NodeId]) -> CodeResult<'s> {
        let new = self.hidden("new", Val::I32);
        let mut pieces = vec![new.set(list, self.value_call(list, "list", [])?)];
        for node in nodes {
            let item = self.shaped(list, *node)?;
            pieces.push(self.value_call(list, "push", [new.get(list), item])?);
        }
        pieces.push(new.get(list));
        Ok(Lowered::one(Wat::sequence(list, pieces), Type::Val))
    }

    /// Lowers `(obj K V …)`.
    pub(super) fn lower_obj(&mut self, list: NodeId, _: Context) -> CodeResult<'s> {
        let nodes = all_operands(self.tree, list);
        self.object_of(list, &nodes)
    }

    /// Lowers an object of these keys and values.
    pub(crate) fn object_of(&mut self, list: NodeId, nodes: &[NodeId]) -> CodeResult<'s> {
        let new = self.hidden("new", Val::I32);
        let mut pieces = vec![new.set(list, self.value_call(list, "object", [])?)];
        for pair in nodes.chunks(2) {
            let [key, value] = pair else {
                return self.fault(list, type_wording::map_operands(nodes.len()));
            };
            // In braces, a name may stand for a key: `{name: V}`.
            let key = match self.tree.atom(*key).and_then(|name| name.strip_suffix(':')) {
                Some(name) if !name.starts_with('$') => Wat::literal(*key, name.as_bytes()),
                _ => self.value(list, *key, Want::Type(Type::Str))?.wat,
            };
            let value = self.shaped(list, *value)?;
            pieces.push(self.value_call(list, "put_key", [new.get(list), key, value])?);
        }
        pieces.push(new.get(list));
        Ok(Lowered::one(Wat::sequence(list, pieces), Type::Val))
    }

    /// Lowers `(json S)`, which parses a text. A value that is not a text is itself.
    pub(super) fn lower_json(&mut self, list: NodeId, _: Context) -> CodeResult<'s> {
        let [node] = super::operands::<1>(self.tree, list)?;
        let out = self.value(list, node, Want::Any)?;
        let (function, value) = match out.ty {
            Type::Arr | Type::Map | Type::Null => {
                return self.convert(list, node, out, Type::Val);
            }
            Type::Val => ("reparse", out.wat),
            _ => ("parse", self.convert(list, node, out, Type::Str)?.wat),
        };
        let parsed = self.value_call(list, function, [value])?;
        Ok(Lowered::one(parsed, Type::Val).dropped_if_unused())
    }

    /// Lowers an object in braces, `{"k": V …}`.
    pub(crate) fn braces(&mut self, list: NodeId, context: Context) -> CodeResult<'s> {
        if !context.is_operand() {
            return self.fault(list, crate::diagnose::wording::braces());
        }
        let nodes = self.tree.items(list);
        self.object_of(list, &nodes)
    }
}
