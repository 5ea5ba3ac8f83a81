//! Lowering of a program to WAT. Types are inferred at the same time, one function after another.
//!
//! A list's head determines how the list is lowered: as a form (`forms`), as a call to a function
//! by name (`forms::call`), or as a WAT instruction (`plain`). The result is a piece of [`Wat`]
//! with the [type](Type) of its value.
//!
//! The types of a function's parameters and result are inferred from its calls and its body, so a
//! call may depend on a later part of the program. If one of the [`Facts`] changes after it has
//! been read, lowering is repeated with the new facts.

pub(crate) mod facts;
mod failure;
pub(crate) mod flow;
pub(crate) mod forms;
mod function;
pub(crate) mod leaves;
mod mistakes;
pub(crate) mod module;
pub(crate) mod output;
pub(crate) mod program;
pub(crate) mod range;
mod sequence;
pub(crate) mod table;
mod value;
pub(crate) mod values;
pub(crate) mod variables;
pub(crate) mod wat;
pub(crate) mod wat_types;

use std::borrow::Cow;
use std::collections::BTreeMap;

use self::facts::{Facts, LocalType};
use self::flow::{Context, Flow, Lowered};
use self::function::{FuncState, Progress};
use self::output::Wat;
use self::variables::Hidden;
use crate::diagnose::fix::Edits;
use crate::diagnose::wording::{self, Fault};
use crate::lower::facts::Words;
use crate::lower::failure::Check;
use crate::lower::program::Program;
use crate::lower::variables::Scope;
use crate::lower::wat_types::Types;
use crate::syntax::literal;
use crate::syntax::tree::{NodeId, NodeKind, Tree};
use crate::types::{Type, Val};
use crate::{Signature, Signatures, habits};

/// The result of lowering, or the first fault.
pub(crate) type LowerResult<T> = Result<T, Box<Fault>>;

/// Lowered code, or the first fault.
pub(crate) type CodeResult<'s> = LowerResult<Lowered<'s>>;

/// Maximum number of times that a program is lowered. Each round determines the types of at least
/// one more function in a chain of calls.
const MAX_ROUNDS: usize = 12;

/// The host function that ends a program with a message. Generated checks, such as those for
/// overflow, call it.
pub const TRAP: &str = "sys.trap";

/// The host function that the form `fail` calls with its code and reason.
pub const FAIL: &str = "sys.fail";

/// The host function that reads a variable that an earlier program kept.
pub const KEPT: &str = "val.kept";

/// A lowered program.
pub(crate) struct LoweredProgram<'s> {
    /// The types, globals, tables and element segments.
    pub(crate) items: Vec<Wat<'s>>,
    /// The functions that run-time checks call, then the program's functions in source order, then
    /// the program itself.
    pub(crate) funcs: Vec<LoweredFunc<'s>>,
    pub(crate) imports: Vec<Signature>,
    pub(crate) warnings: Vec<Fault>,
}

/// A lowered function.
pub(crate) struct LoweredFunc<'s> {
    pub(crate) node: NodeId,
    /// The start of the header, such as `func $f (param $x i32) (result i32)`.
    pub(crate) head: String,
    /// The rest of the header.
    pub(crate) header: Vec<Wat<'s>>,
    /// The declared variables, each with its name and its type. The name is empty for an unnamed
    /// local.
    pub(crate) variables: Vec<(Cow<'s, str>, &'s str)>,
    /// The pieces of WAT that make up the body.
    pub(crate) pieces: Vec<Wat<'s>>,
    /// The control flow at the end of the body, and the number of values that the body leaves.
    pub(crate) flow: Flow,
}

/// Lowers a program.
pub(crate) fn program<'s>(
    tree: &Tree<'s>,
    program: &Program<'s>,
    host: &Signatures,
) -> LowerResult<LoweredProgram<'s>> {
    let mut facts = Facts::new(program);
    let words = Words::of(tree);
    for _ in 0..MAX_ROUNDS {
        let mut lowering = Lowering::new(tree, program, host, &words, facts);
        let lowered = lowering.program();
        if !lowering.facts.is_stale() {
            let lowered = lowered?;
            return match lowering.unresolved {
                Some(fault) => Err(fault),
                None => Ok(lowered),
            };
        }
        facts = lowering.facts.for_next_round();
    }
    let unsettled = program.funcs.iter().find_map(|func| func.fn_params.as_ref().and(func.node));
    let span = unsettled.map_or(0..0, |node| tree.span(node));
    Err(Fault::new(span, wording::types::unsettled()))
}

/// The state of one round of lowering.
pub(crate) struct Lowering<'a, 's> {
    pub(crate) tree: &'a Tree<'s>,
    pub(crate) program: &'a Program<'s>,
    pub(crate) host: &'a Signatures,
    /// The WAT types of the program's functions and globals.
    pub(crate) types: Types<'s>,
    /// The facts known so far.
    pub(crate) facts: Facts,
    /// The checks that the program needs, in order of first use.
    checks: Vec<Check>,
    /// The types of the values that WAT variables are set to in this round, by function and index.
    sets: BTreeMap<(usize, usize), LocalType>,
    imports: Vec<Signature>,
    warnings: Vec<Fault>,
    /// The first fault caused by a type that is not yet known.
    unresolved: Option<Box<Fault>>,
    /// Facts derived from the program's atoms.
    pub(crate) words: &'a Words<'a, 's>,
    /// The current function.
    pub(crate) func: FuncState<'s>,
    /// The functions that are waiting for the current one to be lowered, outermost first.
    outer: Vec<FuncState<'s>>,
    /// The progress of each function's lowering.
    progress: Vec<Progress<'s>>,
    /// The variables of the program itself. Empty until the program is lowered.
    main: Scope<'s>,
    /// The names of the kept variables that the program reads, in order of first use.
    kept: Vec<String>,
}

impl<'a, 's> Lowering<'a, 's> {
    fn new(
        tree: &'a Tree<'s>,
        program: &'a Program<'s>,
        host: &'a Signatures,
        words: &'a Words<'a, 's>,
        facts: Facts,
    ) -> Self {
        Lowering {
            tree,
            program,
            host,
            types: Types::read(tree, program),
            facts,
            checks: Vec::new(),
            sets: BTreeMap::new(),
            imports: Vec::new(),
            warnings: Vec::new(),
            unresolved: None,
            words,
            func: FuncState::default(),
            outer: Vec::new(),
            progress: program.funcs.iter().map(|_| Progress::default()).collect(),
            main: Scope::default(),
            kept: Vec::new(),
        }
    }

    /// Lowers all items and functions.
    fn program(&mut self) -> LowerResult<LoweredProgram<'s>> {
        let mut items = Vec::new();
        for item in &self.program.items {
            items.push(self.raw(*item)?.wat);
        }
        let last = self.program.funcs.len().saturating_sub(1);
        // The program itself is lowered first, because its calls determine the types of the
        // functions' parameters.
        self.lower_func(last)?;
        // A function that only later functions use is lowered after one of them.
        while let Some(at) = (0..last).find(|at| self.is_needed(*at)) {
            self.lower_func(at)?;
        }
        for at in 0..last {
            self.lower_func(at)?;
        }
        self.warn_of_unused();
        let sets = std::mem::take(&mut self.sets);
        self.facts.add_locals(sets);
        items.extend(self.shared_globals());
        items.extend(self.load_kept(last)?);
        let done = std::mem::take(&mut self.progress).into_iter().filter_map(|func| func.done);
        let checks = self.check_funcs()?;
        Ok(LoweredProgram {
            items,
            funcs: checks.into_iter().chain(done).collect(),
            imports: std::mem::take(&mut self.imports),
            warnings: std::mem::take(&mut self.warnings),
        })
    }

    /// Lowers a node: a list, a literal, a name or a number. Any other node is printed unchanged,
    /// and the WAT parser rejects it.
    pub(crate) fn node(&mut self, node: NodeId, context: Context) -> CodeResult<'s> {
        let line = self.tree.node(node).starts_line;
        let lowered = match self.tree.node(node).kind {
            NodeKind::List => self.list(node, context)?,
            NodeKind::Text | NodeKind::Block => {
                self.warn_of_template(node, false);
                Lowered::one(Wat::literal(node, self.text_value(node)?), Type::Str)
            }
            NodeKind::Atom => match self.bare(node, context.want())? {
                Some(out) => out,
                None => Lowered::unknown(Wat::words(node, self.tree.text(node))),
            },
        };
        Ok(lowered.on_line(line))
    }

    /// Lowers a list as a form, a call by name or an instruction.
    pub(crate) fn list(&mut self, list: NodeId, context: Context) -> CodeResult<'s> {
        let bracket = self.tree.bracket(list);
        if bracket == Some(b'{') {
            return self.braces(list, context);
        }
        if bracket == Some(b'[') {
            if context.is_operand() && !self.is_index(list) {
                let nodes = self.tree.items(list);
                return self.list_of(list, &nodes);
            }
            let span = self.tree.span(list);
            let edits = Edits::one(span.start..span.start + 1, "(arr ")
                .replace(span.end.saturating_sub(1)..span.end, ")");
            let message = wording::types::bracket_list();
            let change = (!self.is_index(list)).then_some(edits);
            return self.fault(list, message.maybe_safe(change));
        }
        let Some(head) = self.tree.head(list) else {
            return match habits::foreign(self.tree, list, self.host) {
                Some(fault) => Err(fault),
                None => self.raw(list),
            };
        };
        let known = forms::head(head);
        if let Some(form) = known.form.filter(|_| self.is_form(list, head)) {
            return (form.lower)(self, list, context);
        }
        if known.instruction.is_none()
            && let Some(called) = self.callee(head)
        {
            return self.call_by_name(list, &called, context);
        }
        if known.instruction.is_none()
            && let Some(program) = { self.host }.program(head)
        {
            return self.call_program(list, program);
        }
        if head == "fn" {
            return self.fault(list, wording::anonymous_function());
        }
        match self.call_of_fn(list, head) {
            Some(called) => called,
            None => self.plain(list, head, known.instruction, context),
        }
    }

    /// Returns true if brackets directly follow a name, where they would denote an index.
    fn is_index(&self, list: NodeId) -> bool {
        let before = self.tree.source.get(..self.tree.start(list)).unwrap_or("");
        before.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
    }

    /// Returns true if a list whose head is the name of a form is that form, and not a WAT
    /// instruction. `(call $name)` is a form if `$name` is a variable.
    pub(crate) fn is_form(&self, list: NodeId, head: &str) -> bool {
        let is_variable = || {
            let callee = self.tree.item(list, 1)?;
            let name = self.tree.name(callee)?;
            let known = self.func.scope.find(name).is_some() || self.main.find(name).is_some();
            let part = name.split_once('.').map(|(first, _)| first);
            let part = part.is_some_and(|first| self.func.scope.find(first).is_some());
            let called = self.program.defined.contains_key(name)
                || self.program.host_function(name, self.host).is_some();
            Some((known || part) && !called)
        };
        forms::applies(self.tree, list, head) || head == "call" && is_variable() == Some(true)
    }

    /// Lowers `(call $f A B)` like `($f A B)` if `$f` is declared with `fn`, because lowering
    /// infers the types of such a function. Returns `None` for any other list.
    fn call_of_fn(&mut self, list: NodeId, head: &str) -> Option<CodeResult<'s>> {
        if head != "call" {
            return None;
        }
        let operands = forms::all_operands(self.tree, list);
        let (callee, args) = operands.split_first()?;
        let called = self.callee(self.tree.name(*callee)?)?;
        let forms::call::Callee::Fn(at, name) = called else { return None };
        let params = self.program.funcs.get(at)?.fn_params.as_ref()?;
        // In flat WAT, the arguments are on the stack.
        let is_folded = !args.is_empty() || params.is_empty();
        is_folded.then(|| self.call_fn(list, at, name, args))
    }

    /// Returns the bytes of a string literal. Adds a warning if they are not valid UTF-8.
    pub(crate) fn text_value(&mut self, node: NodeId) -> LowerResult<Cow<'s, [u8]>> {
        let text = self.tree.text(node);
        let start = self.tree.span(node).start;
        let value = literal::text(text, start, self.tree.node(node).kind == NodeKind::Block)?;
        if std::str::from_utf8(&value).is_err() {
            let is_high = |at: &usize| {
                let digit = text.as_bytes().get(at + 1);
                digit.is_some_and(|digit| !matches!(*digit, b'0'..=b'7'))
            };
            let escapes = literal::hex_escapes(text).into_iter().filter(is_high);
            let double = |edits: Edits, at: usize| edits.insert(start + at, "\\");
            self.warn(node, wording::not_utf8().likely(escapes.fold(Edits::default(), double)));
        }
        Ok(value)
    }

    /// Adds a warning.
    pub(crate) fn warn(&mut self, node: NodeId, message: wording::Message) {
        self.warnings.push(*Fault::at(self.tree, node, message));
    }

    /// Returns an error that reports `message` at a node.
    pub(crate) fn fault<T>(&self, node: NodeId, message: wording::Message) -> LowerResult<T> {
        Err(Fault::at(self.tree, node, message))
    }

    /// Returns a placeholder for code that depends on a type that is not yet known. If the type
    /// never becomes known, `fault` is reported.
    pub(crate) fn unresolved(&mut self, node: NodeId, fault: Box<Fault>) -> Lowered<'s> {
        self.unresolved.get_or_insert(fault);
        Lowered::one(Wat::list(node, "unreachable", []), Type::Any)
    }

    /// Returns code that calls a host function with these arguments. The results remain on the
    /// stack.
    pub(crate) fn host_call(
        &mut self,
        from: NodeId,
        full_name: &str,
        args: impl Into<Vec<Wat<'s>>>,
    ) -> LowerResult<Wat<'s>> {
        let Some(signature) = self.host.get(full_name) else {
            let message = wording::unknown_function(full_name, "", self.host, &[]);
            return self.fault(from, message);
        };
        self.import(signature);
        Ok(Wat::list(from, ["call $", full_name].concat(), args))
    }

    /// Imports a host function.
    pub(crate) fn import(&mut self, signature: &Signature) {
        let same =
            |known: &Signature| known.name == signature.name && known.module == signature.module;
        if !self.imports.iter().any(same) {
            self.imports.push(*signature);
        }
    }

    /// Returns a number for generated names that is unique within the current function.
    pub(crate) fn next_number(&mut self) -> usize {
        self.func.names += 1;
        self.func.names
    }

    /// Returns a generated name, such as that of a label. It is different from every name in the
    /// source.
    pub(crate) fn label(&self, name: &str, number: usize) -> String {
        format!("{}{name}{number}", self.prefix())
    }

    /// Returns a new label for generated code.
    pub(crate) fn new_label(&mut self, name: &str) -> String {
        let number = self.next_number();
        self.label(name, number)
    }

    /// Declares a hidden variable for generated code.
    pub(crate) fn hidden(&mut self, name: &str, val: Val) -> Hidden {
        let number = self.next_number();
        self.numbered(name, number, val)
    }

    /// Declares a hidden variable for generated code, with a number that other generated names
    /// share.
    pub(crate) fn numbered(&mut self, name: &str, number: usize, val: Val) -> Hidden {
        let name = self.label(name, number);
        self.func.hidden.push((name.clone(), val));
        Hidden { name }
    }

    /// Returns the prefix of generated names.
    pub(crate) fn prefix(&self) -> &str {
        self.words.prefix()
    }
}
