//! Facts about a program: those that lowering discovers, and those that depend only on its atoms.
//!
//! A fact that lowering discovers may be read before it is final. If it changes afterwards, the
//! facts are *stale*: the code lowered so far may be wrong, and another round starts with the facts
//! from this one.

use std::cell::{Cell, OnceCell};
use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::lower::program::Program;
use crate::syntax::tree::{NodeId, Tree};
use crate::types::Type;

/// The facts about a program.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    fns: Vec<FnFacts>,
    /// The variables of the program that its functions use, identified by the nodes that declare
    /// them.
    shared: Fact<BTreeSet<NodeId>>,
    /// The string variables that `append` may extend in place, identified by the nodes that declare
    /// them.
    growing: Fact<BTreeSet<NodeId>>,
    /// The types of the variables that are also set to a value of another type than that of their
    /// declaration, by the nodes that declare them.
    widened: Fact<BTreeMap<NodeId, Type>>,
    /// The types of the variables declared with WAT's `(local …)`, by function and index.
    locals: BTreeMap<(usize, usize), LocalType>,
    is_stale: bool,
}

/// The types of the values that a WAT variable is set to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LocalType {
    /// Every value that the variable is set to has this type.
    One(Type),
    /// The values have several types or an unknown type.
    Mixed,
}

/// A type and the node that determined it.
pub(crate) type Decided = Option<(Type, NodeId)>;

/// A value of a function declared with `fn` whose type is inferred.
#[derive(Clone, Copy)]
pub(crate) enum Slot {
    Result,
    /// The parameter with this index.
    Param(usize),
}

/// The facts about a function declared with `fn`.
#[derive(Clone, Debug, Default)]
struct FnFacts {
    /// The type of the result and of each parameter, and the value that determined it.
    result: Fact<Decided>,
    params: Vec<Fact<Decided>>,
    /// If true, a call to the function may fail, so the function returns an error code after its
    /// result.
    is_fallible: Fact<bool>,
}

/// A value that may change after it has been read.
#[derive(Clone, Debug, Default)]
pub(super) struct Fact<T> {
    value: T,
    was_read: Cell<bool>,
}

impl<T> Fact<T> {
    /// Creates a fact that has not been read.
    pub(super) fn new(value: T) -> Fact<T> {
        Fact { value, was_read: Cell::new(false) }
    }

    /// Returns the value, and records that code depends on it.
    pub(super) fn read(&self) -> &T {
        self.was_read.set(true);
        &self.value
    }

    /// Changes the value with `change`, which returns false if it leaves the value unchanged.
    /// Returns true if the value changed and the previous one had been read.
    fn change(&mut self, change: impl FnOnce(&mut T) -> bool) -> bool {
        change(&mut self.value) && self.was_read.get()
    }

    /// Sets the value. Returns true if the new value differs from the previous one and the previous
    /// one had been read.
    pub(super) fn set(&mut self, value: T) -> bool
    where
        T: PartialEq,
    {
        self.change(|old| {
            let differs = *old != value;
            *old = value;
            differs
        })
    }

    /// Records that no code depends on the value any more.
    fn forget_reads(&self) {
        self.was_read.set(false);
    }
}

impl Facts {
    /// Creates the facts for the first round. No types are known yet.
    pub(crate) fn new(program: &Program<'_>) -> Facts {
        let fns = program.funcs.iter().map(|func| FnFacts {
            params: vec![Fact::default(); func.fn_params.as_ref().map_or(0, Vec::len)],
            ..FnFacts::default()
        });
        Facts { fns: fns.collect(), ..Facts::default() }
    }

    /// Returns true if a fact changed after it was read.
    pub(crate) fn is_stale(&self) -> bool {
        self.is_stale
    }

    /// Returns the facts for the next round, with none of them marked as read.
    pub(crate) fn for_next_round(mut self) -> Facts {
        self.is_stale = false;
        self.shared.forget_reads();
        self.growing.forget_reads();
        self.widened.forget_reads();
        for fn_ in &self.fns {
            fn_.params.iter().for_each(Fact::forget_reads);
            fn_.result.forget_reads();
            fn_.is_fallible.forget_reads();
        }
        self
    }

    fn slot(&self, at: usize, slot: Slot) -> Option<&Fact<Decided>> {
        let fn_ = self.fns.get(at)?;
        match slot {
            Slot::Result => Some(&fn_.result),
            Slot::Param(nth) => fn_.params.get(nth),
        }
    }

    /// Returns the type of a function's parameter or result, if known, and the value that
    /// determined it.
    pub(crate) fn ty(&self, at: usize, slot: Slot) -> Decided {
        *self.slot(at, slot)?.read()
    }

    /// Returns the type of a function's result, if known, and the value that determined it.
    pub(crate) fn result(&self, at: usize) -> Decided {
        self.ty(at, Slot::Result)
    }

    /// Returns the type that earlier values determined for a parameter or result. Called when the
    /// current value is a number literal, which determines the type if there is none yet.
    pub(crate) fn ty_so_far(&self, at: usize, slot: Slot) -> Decided {
        let slot = self.slot(at, slot)?;
        slot.value.and_then(|_| *slot.read())
    }

    /// Joins a value's type with the type of a parameter or result. If they have no common type,
    /// the error is the known type and the value that determined it. The value's type must not have
    /// been inferred from the known type.
    pub(crate) fn join(
        &mut self,
        at: usize,
        slot: Slot,
        ty: Type,
        node: NodeId,
    ) -> Result<(), (Type, NodeId)> {
        let joined = match self.slot(at, slot).and_then(|slot| slot.value) {
            None => (ty, node),
            Some((known, first)) => (known.join(ty).ok_or((known, first))?, first),
        };
        let slot = self.fns.get_mut(at).and_then(|fn_| match slot {
            Slot::Result => Some(&mut fn_.result),
            Slot::Param(nth) => fn_.params.get_mut(nth),
        });
        self.is_stale |= slot.is_some_and(|slot| slot.set(Some(joined)));
        Ok(())
    }

    /// Returns true if a call to a function may fail.
    pub(crate) fn is_fallible(&self, at: usize) -> bool {
        self.fns.get(at).is_some_and(|fn_| *fn_.is_fallible.read())
    }

    /// Records that a call to a function may fail.
    pub(crate) fn set_fallible(&mut self, at: usize) {
        if let Some(fn_) = self.fns.get_mut(at) {
            self.is_stale |= fn_.is_fallible.set(true);
        }
    }

    /// Returns true if `node` declares a variable that the program shares with its functions.
    pub(crate) fn is_shared(&self, node: NodeId) -> bool {
        self.shared.read().contains(&node)
    }

    /// Records that `node` declares a variable that the program shares with its functions.
    pub(crate) fn share(&mut self, node: NodeId) {
        self.is_stale |= self.shared.change(|nodes| nodes.insert(node));
    }

    /// Returns true if `node` declares a string variable that `append` may extend in place.
    pub(crate) fn is_growing(&self, node: NodeId) -> bool {
        self.growing.read().contains(&node)
    }

    /// Records that `node` declares a string variable that `append` may extend in place.
    pub(crate) fn grow(&mut self, node: NodeId) {
        self.is_stale |= self.growing.change(|nodes| nodes.insert(node));
    }

    /// Returns the type of the variable that `node` declares, if it differs from that of the value
    /// in the declaration.
    pub(crate) fn widened(&self, node: NodeId) -> Option<Type> {
        self.widened.read().get(&node).copied()
    }

    /// Records that the variable that `node` declares has this type.
    pub(crate) fn widen(&mut self, node: NodeId, ty: Type) {
        self.is_stale |= self.widened.change(|types| types.insert(node, ty) != Some(ty));
    }

    /// Returns the types of the values that a WAT variable was set to in earlier rounds, or `None`
    /// if no values were recorded.
    pub(crate) fn local(&self, key: (usize, usize)) -> Option<LocalType> {
        self.locals.get(&key).copied()
    }

    /// Records that a WAT variable was read with a type that turned out to be wrong.
    pub(crate) fn outdate(&mut self) {
        self.is_stale = true;
    }

    /// Adds the types of the values that WAT variables are set to. A variable that was previously
    /// set to a value of a different type becomes [`Mixed`](LocalType::Mixed).
    pub(crate) fn add_locals(&mut self, sets: BTreeMap<(usize, usize), LocalType>) {
        for (key, found) in sets {
            match self.locals.get_mut(&key) {
                None => _ = self.locals.insert(key, found),
                Some(known) if *known != found && *known != LocalType::Mixed => {
                    *known = LocalType::Mixed;
                    self.is_stale = true;
                }
                Some(_) => {}
            }
        }
    }
}

/// Facts about a program. Each fact is derived from the program's atoms when it is first needed.
pub(crate) struct Words<'a, 's> {
    tree: &'a Tree<'s>,
    prefix: OnceCell<String>,
    raw: OnceCell<bool>,
    wat_variables: OnceCell<bool>,
}

impl<'a, 's> Words<'a, 's> {
    /// Creates the facts about a program. No fact has been derived yet.
    pub(crate) fn of(tree: &'a Tree<'s>) -> Words<'a, 's> {
        Words {
            tree,
            prefix: OnceCell::new(),
            raw: OnceCell::new(),
            wat_variables: OnceCell::new(),
        }
    }

    /// Returns the prefix of generated names. No name in the source starts with it.
    pub(crate) fn prefix(&self) -> &str {
        self.prefix.get_or_init(|| {
            let taken = self.tree.dotted_atoms().filter_map(|word| word.strip_prefix("$."));
            free_prefix(&taken.collect::<Vec<_>>())
        })
    }

    /// Returns true if the program accesses its memory directly, so a number may be an address.
    pub(crate) fn raw(&self) -> bool {
        *self.raw.get_or_init(|| self.tree.dotted_atoms().any(accesses_memory))
    }

    /// Returns true if the program reads variables with WAT instructions, which may keep the
    /// address of a string in ways that lowering does not detect.
    pub(crate) fn wat_variables(&self) -> bool {
        let reads = |word: &str| matches!(word, "local.get" | "local.tee" | "global.get");
        *self.wat_variables.get_or_init(|| self.tree.dotted_atoms().any(reads))
    }
}

/// Returns true if a word names a WAT instruction that accesses memory, or the host function that
/// allocates memory.
fn accesses_memory(word: &str) -> bool {
    let bytes = word.as_bytes();
    let is_access = |(at, byte): (usize, &u8)| {
        let rest = bytes.get(at + 1..).unwrap_or(&[]);
        *byte == b'.' && (rest.starts_with(b"load") || rest.starts_with(b"store"))
    };
    match bytes.first() {
        Some(b'm') if word.starts_with("memory.") => true,
        Some(b's' | b'$') if word.trim_start_matches('$').starts_with("sys.alloc") => true,
        _ => bytes.iter().enumerate().any(is_access),
    }
}

/// Returns a prefix for generated names: `$.`, or `$.N.` if any names in the source start with
/// `$.`. `taken` contains these names without the `$.`.
fn free_prefix(taken: &[&str]) -> String {
    if taken.is_empty() {
        return "$.".to_owned();
    }
    let digits =
        |rest: &str| rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let number = |rest: &str| rest.get(..digits(rest)).and_then(|digits| digits.parse().ok());
    let taken: HashSet<u32> = taken.iter().filter_map(|rest| number(rest)).collect();
    // Some number is always free. The dot after it distinguishes `$.1` from `$.10`.
    let free = (0..).find(|number| !taken.contains(number)).unwrap_or_default();
    format!("$.{free}.")
}
