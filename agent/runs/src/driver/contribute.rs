//! Execution of trait programs.

use std::time::Duration;

use serde::Deserialize;
use wattle_capability::PURE;
use wattle_catalog::{Catalog, Entry, ToolRef};
use wattle_machine::{Addition, Call, Contribution, Execution, Input, TraitProgram, TraitPurpose};
use wattle_rt::{Param, Ty};

use super::{CallState, Performer};
use crate::agents::{DelegateRef, delegate_program};
use crate::functions::offered;
use crate::host::Host;
use crate::run_loop::RunLoop;
use crate::trace::CallOutcome;

/// Default time limit of a program that the host itself calls.
const TIME: Duration = Duration::from_secs(10);

/// Maximum number of tools that one `build` program may add. The same limit applies to delegates.
const MAX_ADDED: usize = 100;

/// The JSON object that a trait's `build` program returns.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Built {
    prompt: String,
    tools: Vec<String>,
    delegates: Vec<String>,
}

impl Performer<'_> {
    /// Runs a program that the host itself calls. If the program fails, the run continues. A
    /// program that needs an approval is denied, so that the run does not wait for one.
    pub(super) async fn internal_call(
        &self,
        place: (u32, usize),
        call: &Call,
        programs: &Catalog,
    ) -> Execution {
        let refused = match self.call(place, call, (programs, TIME), None).await {
            Ok(CallState::Done(execution)) => return *execution,
            Ok(CallState::Pending(waiting)) => {
                self.parts.tree.waiting().end();
                let asked: Vec<String> = waiting.into_iter().map(|one| one.question).collect();
                format!(
                    "it needs an approval, for which the host does not wait here ({}); allow it \
                     with the setting `allow`",
                    asked.join("; ")
                )
            }
            Err(broken) => broken,
        };
        let execution = Execution::Refused { reason: refused };
        self.trace.write((place.0, call, programs), &CallOutcome::of(&execution), 0);
        execution
    }

    /// Runs the programs of the agent's traits in order.
    pub(super) async fn contribute(&self, step: u32, calls: &[Call]) -> Input {
        let programs = self.parts.host.internal_programs();
        let mut contributions = Vec::new();
        for (at, call) in calls.iter().enumerate() {
            let execution = self.internal_call((step, at), call, &programs).await;
            let build = self.traits.iter().find(|known| {
                known.program == call.label() && known.purpose == TraitPurpose::Build
            });
            let addition = match (&execution, build) {
                (Execution::Ran(ran), Some(build)) if ran.failure.is_none() => {
                    let may_add = build.may_add || self.is_own_text(build, &programs).await;
                    Some(self.addition(&ran.results.join("\n"), may_add))
                }
                _ => None,
            };
            contributions.push(Contribution { execution, addition });
        }
        Input::Contributed(contributions)
    }

    /// Returns true if the result of a program can contain only text that its author or the agent's
    /// author wrote: the program does not receive the conversation, and calls no function that
    /// returns text from outside the program.
    async fn is_own_text(&self, program: &TraitProgram, programs: &Catalog) -> bool {
        let Some(entry) = programs.get(&program.program) else { return false };
        if program.reads_conversation {
            return false;
        }
        let is_number = |result: &Param| {
            matches!(result.ty, Ty::Int | Ty::OptInt | Ty::Long | Ty::Float | Ty::Bool)
        };
        let is_filled = |param: &Param| {
            matches!(param.ty, Ty::Arr | Ty::Map | Ty::OptMap | Ty::Val | Ty::Addr | Ty::Any)
        };
        let prepared = self.parts.host.prepare(entry.source()).await;
        prepared.is_ok_and(|program| {
            program.imports().iter().all(|function| {
                PURE.contains(&function.module)
                    || function.results.iter().all(is_number)
                        && !function.params.iter().any(is_filled)
            })
        })
    }

    /// Parses the result of a trait's `build` program. A string that is not a JSON object is added
    /// to the prompt. So is an object, unless `may_add` is true: data must not become control.
    fn addition(&self, text: &str, may_add: bool) -> Result<Addition, String> {
        let as_text = || Ok(Addition { prompt: text.to_owned(), ..Addition::default() });
        if !text.trim_start().starts_with('{') {
            return as_text();
        }
        let built = serde_json::from_str(text);
        if !may_add {
            return match built {
                Ok(Built { tools, delegates, .. })
                    if !(tools.is_empty() && delegates.is_empty()) =>
                {
                    Err("its result may not add tools or delegates, since the program reads text \
                         from outside; if the text can be trusted, set `build_may_add = true` in \
                         the trait's `programs`"
                        .to_owned())
                }
                Ok(Built { prompt, .. }) if !prompt.is_empty() => {
                    Ok(Addition { prompt, ..Addition::default() })
                }
                _ => as_text(),
            };
        }
        let Built { prompt, tools, delegates } = built.map_err(|why| {
            format!("it returned no object with `prompt`, `tools` and `delegates`: {why}")
        })?;
        if tools.len().max(delegates.len()) > MAX_ADDED {
            return Err(format!("it returned more than {MAX_ADDED} tools or delegates"));
        }
        let all = self.parts.host.all_programs();
        let selected = select(&all, &tools)?;
        let mut entries: Vec<Entry> = selected.iter().map(|one| one.as_ref().clone()).collect();
        let agents =
            self.parts.children.as_ref().map(|children| children.agents()).unwrap_or_default();
        for id in delegates.iter().filter(|id| !self.parts.settings.delegates.contains(id)) {
            let known = agents.get(id).ok_or_else(|| format!("there is no agent `{id}`"))?;
            let about = (known.shown_name(), known.description.as_str());
            let entry = delegate_program(&self.parts.settings.agent, &delegate(id), about)
                .map_err(|error| error.to_string())?;
            if all.get(entry.name().as_str()).is_some() {
                return Err(format!("`{}` is the name of another program", entry.name()));
            }
            entries.push(entry);
        }
        let listed = &self.parts.settings.functions;
        let programs = entries.iter().map(|entry| offered(entry, listed, &self.grants)).collect();
        Ok(Addition { prompt, tools, delegates, programs })
    }
}

fn delegate(id: &str) -> DelegateRef {
    DelegateRef { id: id.to_owned(), ..DelegateRef::default() }
}

fn select(all: &Catalog, tools: &[String]) -> Result<Catalog, String> {
    let tools: Vec<ToolRef> = tools.iter().map(ToolRef::new).collect();
    all.select(&tools).map_err(|error| error.to_string())
}

/// Returns the programs that a run may call, including those that its traits added.
pub(crate) fn run_catalog(host: &Host, run_loop: &RunLoop) -> Catalog {
    let catalog = host.catalog();
    let (tools, delegates) = (run_loop.added_tools(), run_loop.added_delegates());
    if tools.is_empty() && delegates.is_empty() {
        return catalog;
    }
    // A resumed run skips programs that have since been removed.
    let all = host.all_programs();
    let tools = tools.iter().filter_map(|id| select(&all, std::slice::from_ref(id)).ok());
    let tools: Vec<Entry> = tools
        .flat_map(|some| some.iter().map(|one| one.as_ref().clone()).collect::<Vec<_>>())
        .collect();
    let delegates =
        delegates.iter().filter_map(|id| delegate_program("", &delegate(id), (id, "")).ok());
    catalog.with(tools).with(delegates)
}
