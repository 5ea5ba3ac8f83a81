//! The agents of recorded runs, within the limits that their declarations have now.

use std::collections::BTreeSet;

use wattle_capability::policy::Rule;
use wattle_catalog::{Catalog, ToolRef};
use wattle_store::Tenant;

use super::DEFAULT_AGENT;
use super::parts::AgentError;
use super::registry::Agents;
use super::spec::{AgentPolicy, AgentSpec, Parsed};
use super::traits::TraitParts;

impl Agents {
    /// Returns the agent of a recorded run, narrowed by its declaration as it is now: what the
    /// declaration denies now is denied, and so are the programs and the delegates that it no
    /// longer offers. Of each limit, the lower one holds, and programs have the schemas and the fixed
    /// values of their arguments that the declaration gives them now. Everything else stays as
    /// recorded. An agent that was never
    /// [loaded](Agents::load), for example because an application gave it, stays as it is.
    ///
    /// `catalog` contains all programs.
    ///
    /// # Errors
    /// If the agent no longer exists or cannot be used.
    pub async fn narrowed(
        &self,
        tenant: &Tenant,
        recorded: &AgentSpec,
        catalog: &Catalog,
    ) -> Result<AgentSpec, AgentError> {
        let reference = match &recorded.reference {
            Some(reference) => reference.as_str(),
            // The default agent has no reference, also if a request or another agent changed it.
            None if recorded.name == AgentSpec::default().name => DEFAULT_AGENT,
            None => return Ok(recorded.clone()),
        };
        let now = self.load(tenant, reference).await.map_err(AgentError::Gone)?;
        let mut agent = recorded.clone();
        if *now == agent {
            return Ok(agent);
        }
        let (was, is) = (recorded.programs(catalog)?, now.programs(catalog)?);
        let programs = was.difference(&is).map(|name| Rule::on_program(name));
        let is_delegate = |id: &str| now.delegates.iter().any(|delegate| delegate.id == id);
        let lost = recorded.delegates.iter().filter(|delegate| !is_delegate(&delegate.id));
        let delegates = lost.map(|delegate| Rule::on_agent(&delegate.id));
        // A program that is offered with a schema or fixed values now must not be called without them.
        if now.tools.iter().flatten().any(ToolRef::restricts) && agent.tools != now.tools {
            agent.tools.clone_from(&now.tools);
            let added = is.difference(&was).map(|name| Parsed(Rule::on_program(name))).collect();
            agent.narrow([AgentPolicy { deny: added, ..AgentPolicy::default() }]);
        }
        agent.lower(&now);
        let deny = programs.chain(delegates).map(Parsed).collect();
        agent.narrow([AgentPolicy { deny, ..AgentPolicy::default() }]);
        agent.narrow(now.narrowed_by.iter().chain([&now.policy]).cloned());
        Ok(agent)
    }
}

impl AgentSpec {
    /// Adds rules that also apply, unless they apply already.
    pub(super) fn narrow(&mut self, rules: impl IntoIterator<Item = AgentPolicy>) {
        for rules in rules {
            let applies = rules == self.policy || self.narrowed_by.contains(&rules);
            if !rules.is_empty() && !applies {
                self.narrowed_by.push(rules);
            }
        }
    }

    /// Returns the names in `catalog` of the programs that the agent is offered.
    fn programs(&self, catalog: &Catalog) -> Result<BTreeSet<String>, AgentError> {
        let Some(tools) = &self.tools else {
            return Ok(catalog.iter().map(|entry| entry.name().to_string()).collect());
        };
        let of_traits = TraitParts::of(self, catalog)?.tools;
        let tools = tools.iter().chain(&of_traits);
        let tools: Vec<ToolRef> = tools.map(|tool| ToolRef::new(tool.id.as_str())).collect();
        // A program may be selected twice, under two aliases.
        let mut programs = BTreeSet::new();
        for tool in tools {
            let selected = catalog.select(&[tool]);
            let selected =
                selected.map_err(|error| AgentError::Tool { agent: self.name.clone(), error })?;
            programs.extend(selected.iter().map(|entry| entry.name().to_string()));
        }
        Ok(programs)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may panic")]
mod tests {
    use std::sync::{Arc, Mutex};

    use futures_util::FutureExt as _;
    use futures_util::future::BoxFuture;

    use super::super::resolver::AgentResolver;
    use super::*;

    /// A resolver that knows one reference.
    #[derive(Default)]
    struct One(Mutex<Option<AgentSpec>>);

    impl AgentResolver for One {
        fn resolve<'a>(
            &'a self,
            _: &'a Tenant,
            reference: &'a str,
        ) -> BoxFuture<'a, Result<Option<AgentSpec>, String>> {
            async move { Ok(self.0.lock().unwrap().clone().filter(|_| reference == "custom:one")) }
                .boxed()
        }
    }

    fn spec(text: &str) -> AgentSpec {
        AgentSpec::parse(&format!("name = \"one\"\n{text}")).unwrap()
    }

    #[tokio::test]
    async fn a_recorded_agent_is_narrowed_by_its_current_declaration() {
        let (one, tenant) = (Arc::new(One::default()), Tenant::default());
        let catalog = Catalog::built_in();
        let agents = Agents::default().with_resolver(Arc::<One>::clone(&one));
        *one.0.lock().unwrap() = Some(spec("[policy]\ndeny = [\"http\"]"));
        let recorded = agents.load(&tenant, "custom:one").await.unwrap();
        assert_eq!(recorded.reference.as_deref(), Some("custom:one"));
        let narrowed = async || agents.narrowed(&tenant, &recorded, &catalog).await;
        assert_eq!(narrowed().await.unwrap(), *recorded);
        *one.0.lock().unwrap() =
            Some(spec("prompt = \"new\"\ntools = [\"file_*\"]\n[policy]\ndeny = [\"fs\"]"));
        let agent = narrowed().await.unwrap();
        assert_eq!(agent.prompt, recorded.prompt);
        assert_eq!(agent.policy, recorded.policy);
        let denied: Vec<String> = agent
            .narrowed_by
            .iter()
            .flat_map(|rules| &rules.deny)
            .map(|rule| rule.0.to_string())
            .collect();
        assert!(
            denied.contains(&"fs".to_owned()) && denied.contains(&"program:web_search".to_owned())
        );
        assert!(!denied.contains(&"program:file_read".to_owned()));
        // A second time adds nothing.
        assert_eq!(agents.narrowed(&tenant, &agent, &catalog).await.unwrap(), agent);
        *one.0.lock().unwrap() = None;
        assert!(matches!(narrowed().await, Err(AgentError::Gone(_))));
        let inline = spec("");
        assert_eq!(agents.narrowed(&tenant, &inline, &catalog).await.unwrap(), inline);
    }
}
