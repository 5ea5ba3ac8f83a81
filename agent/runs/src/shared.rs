//! Programs, functions and prompts that runs share, so that a run that is waiting for its model
//! needs little memory.

use std::sync::{Arc, OnceLock};

use quick_cache::sync::Cache;
use wattle_machine::{FunctionTool, ProgramFunction, SharedText, function_tools};

/// Maximum number of cached function sets, and also the maximum number of cached prompts.
const MAX_PARTS: usize = 64;

/// The programs that runs can call.
type Programs = Arc<Vec<ProgramFunction>>;

/// The programs, functions and system prompts of runs. Equal ones are stored once and shared.
pub(crate) struct SharedParts {
    functions: Cache<Programs, FunctionSet>,
    prompts: Cache<SharedText, SharedText>,
}

/// Programs, and the corresponding functions for models that use function calling.
#[derive(Clone)]
struct FunctionSet {
    programs: Programs,
    tools: Arc<OnceLock<Arc<[FunctionTool]>>>,
}

impl SharedParts {
    /// Returns the shared copy of a run's programs.
    pub(crate) fn programs(&self, programs: Vec<ProgramFunction>) -> Programs {
        self.set(&Arc::new(programs)).programs
    }

    /// Returns the functions that a run with these programs offers to its model.
    pub(crate) fn tools(&self, programs: &Programs) -> Arc<[FunctionTool]> {
        let set = self.set(programs);
        Arc::clone(set.tools.get_or_init(|| function_tools(programs).into()))
    }

    /// Returns the shared copy of a system prompt.
    pub(crate) fn prompt(&self, prompt: &SharedText) -> SharedText {
        self.prompts.get(prompt).unwrap_or_else(|| {
            self.prompts.insert(prompt.clone(), prompt.clone());
            prompt.clone()
        })
    }

    fn set(&self, programs: &Programs) -> FunctionSet {
        self.functions.get(programs).unwrap_or_else(|| {
            let set = FunctionSet { programs: Arc::clone(programs), tools: Arc::default() };
            self.functions.insert(Arc::clone(programs), set.clone());
            set
        })
    }
}

impl Default for SharedParts {
    fn default() -> SharedParts {
        SharedParts { functions: Cache::new(MAX_PARTS), prompts: Cache::new(MAX_PARTS) }
    }
}

#[cfg(test)]
mod tests {
    use wattle_catalog::Catalog;
    use wattle_machine::Offer;

    use super::*;
    use crate::functions::function;

    #[test]
    fn runs_with_the_same_programs_share_them_and_their_functions() {
        let parts = SharedParts::default();
        let catalog = Catalog::built_in();
        let programs = |count: usize| -> Vec<ProgramFunction> {
            catalog.iter().take(count).map(|entry| function(entry, Offer::Listed)).collect()
        };
        let none = parts.programs(programs(0));
        let tools = parts.tools(&none);
        assert_eq!(*tools, *function_tools(&[]));
        let one = parts.programs(programs(1));
        assert_eq!(*one, programs(1));
        assert_eq!(*parts.tools(&one), *function_tools(&one));
        assert!(Arc::ptr_eq(&none, &parts.programs(programs(0))));
        assert!(Arc::ptr_eq(&tools, &parts.tools(&Arc::new(programs(0)))));
    }

    #[test]
    fn equal_prompts_are_one() {
        let parts = SharedParts::default();
        let first = parts.prompt(&"a prompt".into());
        assert_eq!(parts.prompt(&"another".into()).as_str(), "another");
        let address = |text: &SharedText| text.as_str().as_ptr();
        assert_eq!(address(&parts.prompt(&"a prompt".into())), address(&first));
    }
}
