//! The parts of a program: its items, its functions with their parameters and locals, and its body.

use crate::cost::Measure;
use crate::diagnose::fix::Change;
use crate::diagnose::wording::{self, Fault};
use crate::lower::table::Table;
use crate::syntax::tree::{NodeId, NodeKind, Nodes, Tree};
use crate::types::Type;
use crate::{NameMap, Signature, Signatures};

/// A program, split into its parts.
#[derive(Default)]
pub(crate) struct Program<'s> {
    /// Types, globals, tables and element segments.
    pub(crate) items: Vec<NodeId>,
    /// The helper functions, followed by the program itself.
    pub(crate) funcs: Vec<Func<'s>>,
    /// The index in `funcs` of every named function.
    pub(crate) defined: NameMap<&'s str, usize>,
    /// Names that the program's import declarations define for host functions.
    pub(crate) aliases: NameMap<&'s str, Signature>,
    /// Warnings about declarations that are ignored, such as exports and memories.
    pub(crate) warnings: Vec<Fault>,
}

/// A function.
pub(crate) struct Func<'s> {
    /// The `(func …)` or `(fn …)` list, or `None` if the body is not in such a list.
    pub(crate) node: Option<NodeId>,
    /// The name, with its `$`.
    pub(crate) name: Option<&'s str>,
    /// The `(type …)`, `(param …)` and `(result …)` lists.
    pub(crate) header: Vec<NodeId>,
    /// The parameters, then the locals that the body declares.
    pub(crate) locals: Locals<'s>,
    /// The parameters of a function declared with `fn`. `None` for a WAT function.
    pub(crate) fn_params: Option<Vec<FnParam<'s>>>,
    /// The nodes of the body.
    pub(crate) body: Nodes,
}

impl<'s> Program<'s> {
    /// Returns the host function that a name in WAT refers to.
    pub(crate) fn host_function<'a>(
        &'a self,
        name: &str,
        host: &'a Signatures,
    ) -> Option<&'a Signature> {
        self.aliases.get(name).or_else(|| host.get(name.strip_prefix('$')?))
    }

    /// Adds a warning.
    fn warn(&mut self, tree: &Tree<'s>, node: NodeId, message: wording::Message) {
        self.warnings.push(*Fault::at(tree, node, message));
    }

    /// Returns the names of the program's functions, including the names that its imports define.
    pub(crate) fn names(&self) -> Vec<&'s str> {
        self.defined.keys().chain(self.aliases.keys()).copied().collect()
    }
}

/// Splits a program into its parts. Items are [lifted](Tree::lift) out of the program's body.
pub(crate) fn read<'s>(tree: &mut Tree<'s>, host: &Signatures) -> Result<Program<'s>, Box<Fault>> {
    let forms = unwrap_module(tree)?;
    let mut program = Program::default();
    let found = program.lift_items(tree, forms, host)?;
    let run = run_func(tree, &found)?;
    for node in found.funcs.into_iter().filter(|node| Some(*node) != run) {
        let func = match tree.head(node) {
            Some("fn") => fn_func(tree, node)?,
            _ => program.func(tree, node, false)?,
        };
        program.add(tree, func, host)?;
    }
    let func = match run {
        // The program may be a function declared with `fn`, without parameters.
        Some(node) if tree.head(node) == Some("fn") => {
            let func = fn_func(tree, node)?;
            let params = func.fn_params.as_deref().unwrap_or(&[]);
            if let Some(first) = params.first() {
                return Err(Fault::at(tree, first.node, wording::run_params()));
            }
            Func { fn_params: None, ..func }
        }
        Some(node) => program.func(tree, node, true)?,
        None => {
            let mut func = Func::new(None, None, forms);
            func.collect(tree)?;
            func
        }
    };
    program.add(tree, func, host)?;
    Ok(program)
}

/// The functions of a program, and the start of its body.
struct FoundFuncs<'s> {
    funcs: Vec<NodeId>,
    /// The name of the function that is exported as `run`.
    exported_run: Option<&'s str>,
    /// The first form that is not an item.
    body_form: Option<NodeId>,
}

impl<'s> Program<'s> {
    /// [Lifts](Tree::lift) the items out of the program's body. Reads all items except the
    /// functions.
    fn lift_items(
        &mut self,
        tree: &mut Tree<'s>,
        forms: Nodes,
        host: &Signatures,
    ) -> Result<FoundFuncs<'s>, Box<Fault>> {
        let mut exported_run = None;
        let mut funcs = Vec::new();
        let mut body_form = None;
        let mut at = forms;
        while let Some(node) = at.next(tree) {
            match tree.head(node) {
                Some("func") if let Some(params) = names_list(tree, node) => {
                    let mut nodes = tree.children(node);
                    let head = nodes.next(tree).unwrap_or(node);
                    let message = wording::func_params(tree.text(params), tree.span(head));
                    return Err(Fault::at(tree, params, message));
                }
                Some("func") => match inline_import(tree, node) {
                    Some(import) => self.import(tree, import, node, host)?,
                    None => funcs.push(node),
                },
                Some("fn") => funcs.push(node),
                Some("import") => self.import(tree, node, node, host)?,
                Some("type" | "rec" | "global" | "table" | "elem" | "tag") => {
                    self.item(tree, node, host)?
                }
                Some("memory") => self.drop_memory(tree, node)?,
                Some("export") => {
                    if let Some(func) = exported(tree, node, "run") {
                        exported_run = Some(func);
                    }
                    self.warn(tree, node, wording::dropped_export());
                }
                Some("data") => return Err(Fault::at(tree, node, wording::data_field())),
                Some("start") => return Err(Fault::at(tree, node, wording::start_field())),
                Some("module") => {
                    return Err(Fault::at(tree, node, wording::module_among_others()));
                }
                _ => {
                    body_form = body_form.or(Some(node));
                    continue;
                }
            }
            tree.lift(node);
            let count = funcs.len() as u64;
            let measure = Measure::Functions;
            if count > measure.limit() {
                return Err(Fault::at(tree, node, wording::too_large(measure, count)));
            }
        }
        Ok(FoundFuncs { funcs, exported_run, body_form })
    }
}

/// Returns the function that contains the program's instructions, or `None` if they are outside
/// functions.
fn run_func(tree: &Tree<'_>, found: &FoundFuncs<'_>) -> Result<Option<NodeId>, Box<Fault>> {
    // Only one function may be named `$run` or exported as `run`. It may be both.
    if let Some(second) =
        found.funcs.iter().filter(|func| is_run(tree, **func, found.exported_run)).nth(1)
    {
        return Err(Fault::at(tree, *second, wording::two_programs()));
    }
    match (found.body_form, choose_run(tree, &found.funcs, found.exported_run)) {
        (Some(form), Some(func)) if is_run(tree, func, found.exported_run) => {
            Err(Fault::at(tree, form, wording::two_bodies()))
        }
        (Some(_), _) => Ok(None),
        (None, Some(func)) => Ok(Some(func)),
        (None, None) => Err(match found.funcs.first() {
            Some(first) => Fault::at(tree, *first, wording::missing_body()),
            None => Fault::new(0..0, wording::empty()),
        }),
    }
}

/// Returns the forms of the program: those at the top level, or those in a `(module …)` around the
/// whole source.
fn unwrap_module(tree: &Tree<'_>) -> Result<Nodes, Box<Fault>> {
    let mut top = tree.top();
    let first = top.next(tree);
    let Some(module) = first.filter(|node| tree.head(*node) == Some("module")) else {
        return Ok(tree.top());
    };
    if top.next(tree).is_some() {
        return Err(Fault::at(tree, module, wording::module_among_others()));
    }
    let mut inside = tree.operands(module);
    inside.next_name(tree);
    Ok(inside)
}

/// Returns the function to run if there are no forms outside functions: the one that is named or
/// exported as `run`, or the only function.
fn choose_run(tree: &Tree<'_>, funcs: &[NodeId], exported: Option<&str>) -> Option<NodeId> {
    funcs.iter().copied().find(|func| is_run(tree, *func, exported)).or(match funcs {
        [only] => Some(*only),
        _ => None,
    })
}

/// Returns true if a function is named `$run` or exported as `run`.
fn is_run(tree: &Tree<'_>, func: NodeId, exported_run: Option<&str>) -> bool {
    let mut nodes = tree.operands(func);
    let name = nodes.next_name(tree);
    if name == Some("$run") || (name.is_some() && name == exported_run) {
        return true;
    }
    let export = nodes.iter(tree).find(|node| tree.head(*node) == Some("export"));
    let exported = export.and_then(|export| tree.item(export, 1));
    exported.is_some_and(|text| tree.text(text) == "\"run\"")
}

/// Returns the name of the function that a field such as `(export "name" (func $f))` exports under
/// the name `as_name`.
fn exported<'s>(tree: &Tree<'s>, field: NodeId, as_name: &str) -> Option<&'s str> {
    let mut nodes = tree.operands(field);
    let name = nodes.next(tree)?;
    let target = nodes.next(tree).filter(|node| tree.head(*node) == Some("func"))?;
    let func = tree.name(tree.item(target, 1)?)?;
    (tree.text(name).trim_matches('"') == as_name).then_some(func)
}

/// Returns the list of names after the name of a `func`. Such a list is valid only in `fn`.
fn names_list(tree: &Tree<'_>, func: NodeId) -> Option<NodeId> {
    let mut nodes = tree.operands(func);
    nodes.next_name(tree)?;
    let list = nodes.next(tree).filter(|node| tree.is_list(*node))?;
    nodes.next(tree)?;
    let mut names = tree.children(list).iter(tree).peekable();
    names.peek()?;
    let is_name = |node| tree.name(node).is_some_and(|name| !name.contains('.'));
    // `($f)` alone may be a call.
    let is_call = || tree.head(list).is_some_and(|first| is_declared(tree, first));
    (names.all(is_name) && !is_call()).then_some(list)
}

/// Returns true if a program declares a function with this name.
fn is_declared(tree: &Tree<'_>, name: &str) -> bool {
    tree.top().iter_deep(tree).any(|node| {
        matches!(tree.head(node), Some("func" | "fn" | "import"))
            && tree.item(node, 1).and_then(|node| tree.name(node)) == Some(name)
    })
}

/// Returns the `(import …)` in a function that only declares an import.
fn inline_import(tree: &Tree<'_>, func: NodeId) -> Option<NodeId> {
    let mut parts =
        tree.operands(func).iter(tree).filter_map(|node| Some((node, tree.head(node)?)));
    let (node, _) =
        parts.find(|(_, head)| *head != "export").filter(|(_, head)| *head == "import")?;
    Some(node)
}

impl<'s> Program<'s> {
    /// Drops the import declaration for a known function but keeps the name that the declaration
    /// defines. `field` is the import itself or the function that contains it.
    fn import(
        &mut self,
        tree: &Tree<'s>,
        import: NodeId,
        field: NodeId,
        host: &Signatures,
    ) -> Result<(), Box<Fault>> {
        let mut nodes = tree.operands(import);
        let mut part = || nodes.next(tree).map_or("", |node| tree.text(node).trim_matches('"'));
        let full_name = format!("{}.{}", part(), part());
        let described = if import == field { nodes.next(tree) } else { Some(field) };
        match described.and_then(|node| tree.head(node)) {
            Some("func") => {}
            Some("memory") => {
                self.warn(tree, field, wording::dropped_memory());
                return Ok(());
            }
            _ => {
                return Err(Fault::at(tree, import, wording::unknown_import(&full_name, host)));
            }
        }
        let Some(signature) = host.get(&full_name) else {
            return Err(Fault::at(tree, import, wording::unknown_import(&full_name, host)));
        };
        let named = described.and_then(|node| tree.item(node, 1));
        if let Some((node, name)) = named.and_then(|node| Some((node, tree.name(node)?))) {
            let known = name.strip_prefix('$').and_then(|plain| host.get(plain));
            if known.is_some_and(|known| known != signature) {
                return Err(Fault::at(tree, node, wording::misleading_import(name, &full_name)));
            }
            if self.aliases.insert(name, *signature).is_some_and(|before| before != *signature) {
                return Err(Fault::at(tree, node, wording::duplicate_function(name)));
            }
        }
        Ok(())
    }

    /// Adds an item without its exports.
    fn item(
        &mut self,
        tree: &mut Tree<'s>,
        item: NodeId,
        host: &Signatures,
    ) -> Result<(), Box<Fault>> {
        let mut nodes = tree.children(item);
        while let Some(node) = nodes.next(tree) {
            match tree.head(node) {
                Some("import") => self.import(tree, node, item, host)?,
                Some("export") => {
                    self.warn(tree, node, wording::dropped_export());
                    tree.lift(node);
                }
                _ => {}
            }
        }
        self.items.push(item);
        Ok(())
    }

    /// Drops a memory declaration. A memory with data is a fault.
    fn drop_memory(&mut self, tree: &Tree<'s>, field: NodeId) -> Result<(), Box<Fault>> {
        let mut nodes = tree.children(field).iter(tree);
        if let Some(node) = nodes.find(|node| tree.head(*node) == Some("data")) {
            return Err(Fault::at(tree, node, wording::data_field()));
        }
        self.warn(tree, field, wording::dropped_memory());
        Ok(())
    }

    /// Splits a `(func …)` into its name, header, locals and body.
    fn func(
        &mut self,
        tree: &mut Tree<'s>,
        list: NodeId,
        run: bool,
    ) -> Result<Func<'s>, Box<Fault>> {
        let mut nodes = tree.operands(list);
        let name = nodes.next_name(tree);
        let mut func = Func::new(Some(list), name, nodes);
        while let Some(node) = func.body.peek(tree) {
            match tree.head(node) {
                Some("export") if run => {}
                Some("export") => self.warn(tree, node, wording::dropped_export()),
                Some("param" | "type") if run => {
                    return Err(Fault::at(tree, node, wording::run_params()));
                }
                Some("result") if run => {
                    let mut inner = tree.operands(node);
                    let plain = inner.next(tree).and_then(|ty| tree.atom(ty)) == Some("i32");
                    if !plain || inner.next(tree).is_some() {
                        return Err(Fault::at(tree, node, wording::run_result()));
                    }
                }
                Some("param") => {
                    func.locals.read(tree, node, true)?;
                    func.header.push(node);
                }
                Some("type" | "result") => func.header.push(node),
                _ => break,
            }
            func.body.next(tree);
        }
        func.collect(tree)?;
        Ok(func)
    }

    /// Adds a function, and defines its name.
    fn add(
        &mut self,
        tree: &Tree<'s>,
        func: Func<'s>,
        host: &Signatures,
    ) -> Result<(), Box<Fault>> {
        if let Some(name) = func.name {
            let span = || func.node.map_or(0..0, |node| tree.span(node));
            if self.defined.insert(name, self.funcs.len()).is_some()
                || self.aliases.contains_key(name)
            {
                return Err(Fault::new(span(), wording::duplicate_function(name)));
            }
            if let Some(known) = name.strip_prefix('$').and_then(|plain| host.get(plain)) {
                return Err(Fault::new(span(), wording::host_function_name(known)));
            }
        }
        self.funcs.push(func);
        Ok(())
    }
}

impl<'s> Func<'s> {
    /// Creates a WAT function without parameters and locals.
    fn new(node: Option<NodeId>, name: Option<&'s str>, body: Nodes) -> Func<'s> {
        let header = Vec::new();
        Func { node, name, header, locals: Locals::default(), fn_params: None, body }
    }

    /// Collects the locals declared in the body, and lifts their declarations out of it.
    pub(super) fn collect(&mut self, tree: &mut Tree<'s>) -> Result<(), Box<Fault>> {
        let mut nodes = self.body;
        while let Some(node) = nodes.next_deep(tree) {
            if !tree.is_list(node) {
                continue;
            }
            match tree.head(node) {
                Some("local") => {
                    self.locals.read(tree, node, false)?;
                    tree.lift(node);
                }
                // Without a name, it is an operand of a form such as `map`.
                Some("fn") if tree.item(node, 1).is_some_and(|first| tree.is_list(first)) => {}
                Some("func" | "fn") => {
                    return Err(Fault::at(tree, node, self.nested(tree, node)));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns the error message for a function that is nested in the body of another function. It
    /// names the form that probably lacks its closing parenthesis.
    fn nested(&self, tree: &Tree<'s>, inner: NodeId) -> wording::Message {
        let around = self.body.iter(tree).take_while(|node| *node < inner).last();
        let line = around.map_or(1, |node| tree.line(node));
        wording::nested_function(around.and_then(|node| tree.head(node)).unwrap_or(""), line)
    }
}

/// A parameter of a function declared with `fn`.
pub(crate) struct FnParam<'s> {
    /// The name, with its `$`.
    pub(crate) name: &'s str,
    pub(crate) node: NodeId,
    /// The declared type. `None` if the type is inferred.
    pub(crate) declared: Option<Type>,
}

/// Splits a declaration such as `(fn $f ($a (b str)) BODY…)` into its name, parameters and body.
pub(super) fn fn_func<'s>(tree: &mut Tree<'s>, list: NodeId) -> Result<Func<'s>, Box<Fault>> {
    let mut nodes = tree.operands(list);
    let own = nodes.next(tree);
    let Some(name) = own.and_then(|own| tree.name(own)) else {
        let found = own.map_or("", |own| tree.text(own));
        let at = own.unwrap_or(list);
        return Err(Fault::at(tree, at, wording::fn_name(found)));
    };
    let params = nodes.next(tree).filter(|node| tree.is_list(*node));
    let Some(params) = params else {
        return Err(Fault::at(tree, list, wording::fn_params(name)));
    };
    let mut all: Vec<FnParam<'s>> = Vec::new();
    let mut inner = tree.children(params);
    while let Some(node) = inner.next(tree) {
        let param = fn_param(tree, node)?;
        if all.iter().any(|known| known.name == param.name) {
            return Err(Fault::at(tree, node, wording::same_param(param.name)));
        }
        all.push(param);
    }
    let mut func = Func { fn_params: Some(all), ..Func::new(Some(list), Some(name), nodes) };
    func.collect(tree)?;
    Ok(func)
}

/// Returns the name of a variable that is declared without its `$`, such as `$x` for `x`. If the
/// source does not contain this name, returns the word itself.
pub(super) fn dollar_name<'s>(tree: &Tree<'s>, word: &'s str) -> &'s str {
    (0..tree.len())
        .filter_map(|node| tree.name(NodeId(node)))
        .find(|name| name.strip_prefix('$') == Some(word))
        .unwrap_or(word)
}

/// Reads a parameter: `$x`, or `(x str)` with its type.
fn fn_param<'s>(tree: &Tree<'s>, node: NodeId) -> Result<FnParam<'s>, Box<Fault>> {
    if let Some(name) = tree.name(node) {
        return Ok(FnParam { name, node, declared: None });
    }
    let is_list = tree.is_list(node);
    let parts: Vec<NodeId> = tree.children(node).iter(tree).collect();
    let fault = || Fault::at(tree, node, wording::fn_param(tree.text(node)));
    let [name, ty] = parts.as_slice() else { return Err(fault()) };
    let word = tree.atom(*name).filter(|_| is_list).ok_or_else(fault)?;
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let name = match word.strip_prefix('$') {
        Some(_) => word,
        None if word.chars().all(is_word) => dollar_name(tree, word),
        None => return Err(fault()),
    };
    match tree.atom(*ty).and_then(Type::from_name) {
        Some(ty) => Ok(FnParam { name, node, declared: Some(ty) }),
        None => Err(Fault::at(tree, *ty, wording::fn_param_type(tree.text(*ty)))),
    }
}

/// Maximum number of locals in a function. This is the engine's limit.
const MAX_LOCALS: usize = 50_000;

/// Initial capacity for locals.
const FEW_LOCALS: usize = 7;

/// The parameters and locals of a function.
pub(crate) type Locals<'s> = Table<'s, Local<'s>>;

/// A parameter or local.
#[derive(Clone, Copy)]
pub(crate) struct Local<'s> {
    pub(crate) name: Option<&'s str>,
    pub(crate) ty: &'s str,
    /// The node that declares the parameter or local.
    pub(crate) node: NodeId,
    pub(crate) param: bool,
}

impl<'s> Locals<'s> {
    /// Adds a parameter or local. A local may be declared twice with the same type, but a parameter
    /// may not.
    pub(crate) fn declare(&mut self, tree: &Tree<'s>, new: Local<'s>) -> Result<(), Box<Fault>> {
        if let Some(known) = new.name.and_then(|name| self.get(name)) {
            if !known.param && !new.param && known.ty == new.ty {
                return Ok(());
            }
            let line = tree.line(known.node);
            let name = new.name.unwrap_or("");
            let message = if known.param || new.param {
                wording::duplicate_param(name, line)
            } else {
                wording::two_types(name, known.ty, new.ty, line)
            };
            return Err(Fault::at(tree, new.node, message));
        }
        if self.len() >= MAX_LOCALS {
            return Err(Fault::at(tree, new.node, wording::too_many_locals(MAX_LOCALS)));
        }
        if self.len() == 0 {
            self.reserve(FEW_LOCALS);
        }
        self.push(new.name, new);
        Ok(())
    }

    /// Reads `(local $x i32)`, `(local $a $b i32)`, `(local i32 i32)`, or the same with `param`.
    pub(crate) fn read(
        &mut self,
        tree: &Tree<'s>,
        list: NodeId,
        param: bool,
    ) -> Result<(), Box<Fault>> {
        let mut nodes = tree.operands(list);
        // Starts at the first name whose type has not been read yet.
        let mut names = nodes;
        while let Some(node) = nodes.next(tree) {
            if tree.name(node).is_some() {
                continue;
            }
            let ty = tree.text(node);
            if !is_type(tree, node) {
                let message = wording::unknown_type(ty)
                    .maybe_safe(split_initial_value(tree, list, node).filter(|_| !param));
                return Err(Fault::at(tree, node, message));
            }
            if names.peek(tree) == Some(node) {
                self.declare(tree, Local { name: None, ty, node, param })?;
            }
            while let Some(name) = names.next(tree).filter(|name| *name != node) {
                let local = Local { name: tree.name(name), ty, node: name, param };
                self.declare(tree, local)?;
            }
        }
        match names.next(tree) {
            Some(node) => {
                let name = tree.name(node).unwrap_or("");
                Err(Fault::at(tree, node, wording::missing_type(name, param)))
            }
            None => Ok(()),
        }
    }
}

/// Returns the change that splits a declaration with an initial value into a declaration and a
/// `local.set`. Returns `None` for any other declaration.
fn split_initial_value(tree: &Tree<'_>, list: NodeId, value: NodeId) -> Option<Change> {
    let items = tree.items(list);
    let [_, name, ty, last] = items.as_slice() else { return None };
    let name = tree.name(*name)?;
    let end = tree.span(*ty).end;
    let start = tree.span(value).start;
    (*last == value && is_type(tree, *ty) && tree.node(value).kind != NodeKind::Atom)
        .then(|| Change::edit(end..start, format!(") (local.set {name} ")))
}

/// Returns true if a node is a value type.
fn is_type(tree: &Tree<'_>, node: NodeId) -> bool {
    match tree.node(node).kind {
        NodeKind::Atom => matches!(
            tree.text(node),
            "i32" | "i64" | "f32" | "f64" | "v128" | "funcref" | "externref"
        ),
        NodeKind::List => tree.head(node) == Some("ref"),
        NodeKind::Text | NodeKind::Block => false,
    }
}
