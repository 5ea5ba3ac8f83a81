//! Resolvers for agents that no file declares.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use wattle_machine::Call;
use wattle_rt::Grants;
use wattle_store::Tenant;

use super::spec::AgentSpec;
use crate::act::perform;
use crate::host::Host;

/// A source of agents that no file declares. It is consulted before the files.
pub trait AgentResolver: Send + Sync {
    /// Returns the agent for a tenant's reference, such as `custom:support`, or `None` if the
    /// resolver does not know the reference. The agent's runs belong to the tenant, so the resolver
    /// must use no data that another tenant can write or must not see.
    ///
    /// # Errors
    /// If the agent cannot be created. In that case, the files are not searched.
    fn resolve<'a>(
        &'a self,
        tenant: &'a Tenant,
        reference: &'a str,
    ) -> BoxFuture<'a, Result<Option<AgentSpec>, String>>;
}

/// A resolver that runs a catalog program to find agents. The program's argument is the reference,
/// and its result is the agent, as TOML or JSON. An empty result means that the program does not
/// know the reference.
///
/// The program runs only for references that contain a `:`, such as `custom:support`. All other
/// references are names or titles.
pub struct ProgramResolver {
    host: Host,
    program: String,
    grants: Box<GrantsOf>,
}

/// A function that returns the grants for a resolver's program on behalf of a tenant, or the reason
/// why the program cannot run.
type GrantsOf = dyn Fn(&Tenant) -> Result<Arc<Grants>, String> + Send + Sync;

impl ProgramResolver {
    /// Creates a resolver that runs the program named `program` from the host's catalog. `grants` is
    /// called before each run of the program, with the tenant that uses the agent.
    #[must_use]
    pub fn new(
        host: Host,
        program: impl Into<String>,
        grants: impl Fn(&Tenant) -> Result<Arc<Grants>, String> + Send + Sync + 'static,
    ) -> ProgramResolver {
        ProgramResolver { host, program: program.into(), grants: Box::new(grants) }
    }

    async fn ask(&self, tenant: &Tenant, reference: &str) -> Result<Option<AgentSpec>, String> {
        let grants = (self.grants)(tenant)?;
        let call = Call::catalog(&self.program, vec![reference.to_owned()]);
        let performed = perform(self.host.runtime(), &self.host.catalog(), &grants, &call).await;
        let execution = performed.map_err(|error| error.to_string())?;
        let text = execution.texts()?.join("\n");
        let spec = match text.trim() {
            "" => return Ok(None),
            json if json.starts_with('{') => serde_json::from_str(json)
                .map_err(|error| error.to_string())
                .and_then(|json| AgentSpec::of_json(&json).map_err(|error| error.to_string())),
            toml => AgentSpec::parse(toml).map_err(|error| error.to_string()),
        };
        spec.map(Some).map_err(|why| format!("its result is not an agent: {why}"))
    }
}

impl AgentResolver for ProgramResolver {
    fn resolve<'a>(
        &'a self,
        tenant: &'a Tenant,
        reference: &'a str,
    ) -> BoxFuture<'a, Result<Option<AgentSpec>, String>> {
        async move {
            if !reference.contains(':') {
                return Ok(None);
            }
            self.ask(tenant, reference)
                .await
                .map_err(|why| format!("the program `{}`: {why}", self.program))
        }
        .boxed()
    }
}
