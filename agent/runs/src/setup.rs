//! The initial state of a run: its prompt, its functions, and its orientation.

use wattle_machine::{Dialect, OutputContract, Role, Setup, SystemPrompt};
use wattle_model::output::OutputSettings;
use wattle_model::{DialectSetting, Model};

use crate::functions::functions;
use crate::host::Host;
use crate::id::nonce;
use crate::job::Job;
use crate::orient::orientation;
use crate::settings::Settings;

/// Returns the initial configuration of the state machine for a job.
pub(crate) async fn setup(host: &Host, model: &dyn Model, settings: &Settings, job: &Job) -> Setup {
    let first = job
        .history
        .iter()
        .find(|message| message.role == Role::User)
        .map(|message| message.content.as_str());
    let listing = host.listing(
        job.session_id.as_deref().map(|session| (&job.tenant, session)),
        first.unwrap_or(&job.message),
    );
    let catalog = host.catalog();
    let dialect = match settings.calls_programs {
        true => settings.dialect.choose(model),
        false => Dialect::Plain,
    };
    let contract = |output: &OutputSettings| output.contract(model.constrains_output());
    let (of_agent, of_job) =
        (settings.output.as_ref().map(contract), job.output.as_ref().map(contract));
    let prompt = |dialect| {
        let prompt = host.prompt(settings, &job.grants, &listing, dialect);
        with_output(prompt, of_agent.as_ref(), of_job.as_ref())
    };
    let may_fall_back = settings.dialect == DialectSetting::Auto && dialect == Dialect::Native;
    Setup {
        settings: settings.machine,
        system: prompt(dialect),
        history: job.history.clone(),
        nonce: nonce(),
        orientation: match settings.orient {
            true => orientation(&job.grants, &job.message).await,
            false => None,
        },
        session_id: job.session_id.clone(),
        dialect,
        fallback: may_fall_back.then(|| prompt(Dialect::Text)),
        programs: host.shared().programs(functions(&catalog, &listing, &job.grants)),
        is_moderated: settings.moderation.is_some(),
        accepts_leftovers: false,
        recall: settings.recall.clone(),
        traits: settings.traits.clone(),
        memory: settings.memory.clone(),
        output: of_job.clone().or_else(|| of_agent.clone()),
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
