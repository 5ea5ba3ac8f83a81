//! The facts that one round of lowering finds for the next.

use std::collections::{BTreeMap, BTreeSet};

use crate::lower::program::Program;
use crate::syntax::tree::NodeId;
use crate::types::Type;

/// The facts about a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    /// The facts about each function of the program.
    pub(crate) fns: Vec<FnFacts>,
    /// The variables of the program that functions use, by the nodes that declare them.
    pub(crate) shared: BTreeSet<NodeId>,
    /// The string variables that `append` lets grow in place, by the nodes that declare them.
    pub(crate) growing: BTreeSet<NodeId>,
    /// The types of what `(local …)` and `(param …)` of WAT declare: by function and index.
    pub(crate) locals: BTreeMap<(usize, usize), LocalType>,
}

/// The types that a variable of WAT is set to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LocalType {
    /// Everything that sets the variable has this type.
    One(Type),
    /// Several types, or an unknown one.
    Mixed,
}

/// The facts about a function that `fn` declares.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FnFacts {
    /// The type of each parameter, and the argument that decided it.
    pub(crate) params: Vec<Option<(Type, NodeId)>>,
    /// The type of the result, and the node that decided it.
    pub(crate) result: Option<(Type, NodeId)>,
    /// If true, a call may fail, so the function returns an error code after its result.
    pub(crate) is_fallible: bool,
}

impl Facts {
    /// Creates the facts before the first round.
    pub(crate) fn new(program: &Program<'_>) -> Facts {
        let fns = program.funcs.iter().map(|func| FnFacts {
            params: vec![None; func.fn_params.as_ref().map_or(0, Vec::len)],
            ..FnFacts::default()
        });
        Facts { fns: fns.collect(), ..Facts::default() }
    }

    /// Adds the types that variables of WAT are set to. A variable that was set to another type
    /// before is mixed.
    pub(crate) fn add_locals(&mut self, sets: BTreeMap<(usize, usize), LocalType>) {
        for (key, found) in sets {
            let known = self.locals.entry(key).or_insert(found);
            if *known != found {
                *known = LocalType::Mixed;
            }
        }
    }
}
