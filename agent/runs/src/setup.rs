//! The start of a run: its prompt, its functions, its orientation, and what is recorded of them.

use wattle_machine::{Dialect, OutputContract, Role, Setup, SystemPrompt};
use wattle_model::DialectSetting;
use wattle_model::output::OutputSettings;

use crate::functions::functions;
use crate::journal::{RunRequest, RunStart};
use crate::nonce::nonce;
use crate::orient::orientation;
use crate::parts::RunParts;
use crate::run_loop::RunLoop;

/// Returns the initial configuration of the state machine for a run.
pub(crate) async fn setup(parts: &RunParts, request: &RunRequest) -> Setup {
    let RunParts { host, model, settings, grants, .. } = parts;
    let first = parts
        .history
        .iter()
        .find(|message| message.role == Role::User)
        .map(|message| message.content.as_str());
    let listing = host.listing(
        request.session.as_deref().map(|session| (&parts.tenant, session)),
        first.unwrap_or(&request.message),
    );
    let catalog = host.catalog();
    let dialect =
        if settings.calls_programs { settings.dialect.choose(&**model) } else { Dialect::Plain };
    let contract = |output: &OutputSettings| output.contract(model.constrains_output());
    let (of_agent, of_job) =
        (settings.output.as_ref().map(contract), parts.output.as_ref().map(contract));
    let prompt = |dialect| {
        let prompt = host.prompt(settings, grants, &listing, dialect);
        with_output(prompt, of_agent.as_ref(), of_job.as_ref())
    };
    let may_fall_back = settings.dialect == DialectSetting::Auto && dialect == Dialect::Native;
    Setup {
        settings: settings.machine,
        system: prompt(dialect),
        history: parts.history.clone(),
        left_out: parts.left_out,
        window: parts.window(),
        nonce: nonce(),
        orientation: if settings.orient {
            orientation(grants, &request.message).await
        } else {
            None
        },
        session_id: request.session.clone(),
        dialect,
        fallback: may_fall_back.then(|| prompt(Dialect::Text)),
        programs: host.shared().programs(functions(&catalog, &settings.functions, grants)),
        is_moderated: settings.moderation.is_some(),
        accepts_leftovers: false,
        recall: settings.recall.clone(),
        traits: settings.traits.clone(),
        memory: settings.memory.clone(),
        output: of_job.clone().or_else(|| of_agent.clone()),
    }
}

/// Returns the data that is recorded at the start of a run.
pub(crate) fn start(parts: &RunParts, request: &RunRequest, setup: Setup) -> RunStart {
    let RunParts { host, model, settings, .. } = parts;
    let capabilities = host.runtime().capabilities().iter();
    RunStart {
        setup,
        engine: RunLoop::recorded(host),
        message: request.message.clone(),
        agent: settings.agent.clone(),
        model: model.name().to_owned(),
        timeout_ms: settings
            .timeout
            .map(|timeout| u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)),
        temperature: settings.temperature,
        max_tokens: settings.max_tokens,
        thinking_effort: settings.thinking_effort,
        tool_call: settings.tool_call,
        preamble: settings.preamble.clone(),
        granted: parts.grants.names().map(str::to_owned).collect(),
        capabilities: capabilities
            .map(|capability| (capability.name.to_owned(), capability.version))
            .collect(),
        forked: None,
        parent: parts.tree.parent(),
        origin: request.origin.clone(),
    }
}

/// Extends a prompt with the section that describes the required output. If a job sets the output,
/// the section is not part of the text that all sessions share.
fn with_output(
    mut prompt: SystemPrompt,
    of_agent: Option<&OutputContract>,
    of_job: Option<&OutputContract>,
) -> SystemPrompt {
    match (of_job, of_agent) {
        (Some(contract), _) => prompt.rest.insert_str(0, &contract.section()),
        (None, Some(contract)) => prompt.stable.push_str(&contract.section()),
        (None, None) => {}
    }
    prompt
}
