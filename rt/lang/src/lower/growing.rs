//! String variables that grow in place.
//!
//! A variable that is the target of `append` has a companion variable, which holds the address of
//! the string if no other variable refers to the string, and 0 otherwise. While the two variables
//! are equal, `str.append` may change the string in place. If the string variable is read in a way
//! that may keep the address, the companion is set to 0, so the next `append` copies the string.

use super::forms;
use super::forms::call::Callee;
use super::output::Wat;
use super::variables::Resolved;
use super::{LowerResult, Lowering};
use crate::syntax::tree::NodeId;
use crate::types::Val;

/// Forms that read a string without keeping its address.
const READERS: [&str; 15] = [
    "=", "!=", "<", "<=", ">", ">=", "append", "arr", "has", "len", "map", "out", "push", "put",
    "ret",
];

impl<'s> Lowering<'_, 's> {
    /// Returns code that reads a variable. If the variable is an operand of a form, `form` is that
    /// form.
    pub(crate) fn read_variable(
        &mut self,
        from: NodeId,
        variable: &Resolved<'s>,
        form: Option<NodeId>,
    ) -> Wat<'s> {
        let value = variable.read(from);
        match self.companion(variable) {
            Some(companion) if !form.is_some_and(|form| self.only_reads(form)) => {
                let clear = companion.write(from, Some(Wat::i32(from, 0)));
                Wat::sequence(from, [clear, value])
            }
            _ => value,
        }
    }

    /// Returns code that appends a string to a string variable.
    pub(crate) fn append_to(
        &mut self,
        list: NodeId,
        variable: &Resolved<'s>,
        text: Wat<'s>,
    ) -> LowerResult<Wat<'s>> {
        let (set, text) = self.once(list, text, Val::I32);
        if let Some(node) = variable.node.filter(|_| !self.words.wat_variables()) {
            self.facts.grow(node);
        }
        let companion = self.companion(variable);
        let mut args = vec![variable.read(list), text];
        let function = match &companion {
            Some(companion) => {
                let same = [variable.read(list), companion.read(list)];
                args.push(Wat::list(list, "i32.eq", same));
                "str.append"
            }
            None => "str.cat",
        };
        let call = self.host_call(list, function, args)?;
        let whole = Wat::sequence(list, [call, self.end_on_error(list)?]);
        let mut pieces: Vec<Wat<'s>> = set.into_iter().collect();
        pieces.push(variable.write(list, Some(whole)));
        pieces.extend(companion.map(|companion| companion.write(list, Some(variable.read(list)))));
        Ok(Wat::sequence(list, pieces))
    }

    /// Returns the companion of a variable that grows in place, or `None` for any other variable.
    fn companion(&mut self, variable: &Resolved<'s>) -> Option<Resolved<'s>> {
        let node = variable.node.filter(|node| self.facts.is_growing(*node))?;
        let name = self.companion_name(node);
        let declared = self.func.hidden.iter().any(|(known, _)| *known == name);
        if !variable.is_global && !declared {
            self.func.hidden.push((name.clone(), Val::I32));
        }
        Some(Resolved { text: name.into(), node: None, at: None, ..variable.clone() })
    }

    /// Returns the name of the companion of the variable that a node declares.
    pub(super) fn companion_name(&self, node: NodeId) -> String {
        self.label("own", node.0 as usize)
    }

    /// Returns true if a form reads its operands without keeping an address and no operand can
    /// append to a variable.
    fn only_reads(&self, form: NodeId) -> bool {
        let tree = self.tree;
        let Some(head) = tree.head(form) else { return false };
        let reads = match forms::form(head).filter(|_| forms::applies(tree, form, head)) {
            // With a single value, the result may be that value itself.
            Some(_) if head == "fmt" => forms::all_operands(tree, form).len() > 2,
            Some(_) => READERS.contains(&head),
            None => matches!(self.callee(head), Some(Callee::Host(..))),
        };
        reads && !self.may_append(form)
    }

    /// Returns true if something inside a form may append to a variable: an `append`, or a call to
    /// one of the program's functions.
    fn may_append(&self, form: NodeId) -> bool {
        let tree = self.tree;
        let mut nodes = tree.children(form);
        while let Some(node) = nodes.next_deep(tree) {
            let own = tree.head(node).and_then(|head| self.callee(head));
            if matches!(own, Some(Callee::Wat(_) | Callee::Fn(..)))
                || tree.atom(node).is_some_and(|word| word == "append" || word.starts_with("call"))
            {
                return true;
            }
        }
        false
    }
}
