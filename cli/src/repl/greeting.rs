//! Greets the user at the start of a session and updates the names that the line editor completes.

use super::session::Session;
use crate::output::{self, DIM, NAME, paint, visible, width};
use crate::setup;

/// The hint below the first line.
const HINT: &str = "Ask for something, or type a program that begins with ( . /help lists \
                    commands, Tab completes, Ctrl-D leaves.";

/// The instructions for a session without a model.
const NO_MODEL: &str = "\
No model is set up yet; programs, /catalog and /help work without one.
A hosted model needs a key: set OPENROUTER_API_KEY, OPENAI_API_KEY or ANTHROPIC_API_KEY.
A local model needs a name: wattle repl --provider ollama --model NAME";

/// Prints the version, the model, the session and the workdir, and the first hint.
pub(super) fn greet(session: &Session) {
    let root = session.config().root.value.display().to_string();
    let mode = session.mode();
    let id = if session.is_stored() { session.kept.id.as_str() } else { "not stored" };
    let version = concat!("wattle ", env!("CARGO_PKG_VERSION"));
    let parts = vec![
        version.to_owned(),
        visible(&session.model_name()),
        format!("session {id}"),
        visible(&format!("{} ({mode})", home_relative(&root))),
    ];
    for line in width::join(parts, " · ", width::columns()) {
        let (name, rest) = match line.strip_prefix(version) {
            Some(rest) => (version, rest),
            None => ("", line.as_str()),
        };
        output::note(&format!("{}{}", paint(NAME, name), paint(DIM, rest)));
    }
    let hint = if session.has_model() { HINT } else { NO_MODEL };
    for line in hint.lines().flat_map(|line| width::wrap(line, width::columns())) {
        output::aside(&line);
    }
}

/// Returns a path in which `~` replaces the home folder.
pub(super) fn home_relative(root: &str) -> String {
    let whole = std::fs::canonicalize(root).ok();
    let whole = whole.as_deref().and_then(|path| path.to_str()).unwrap_or(root);
    let home = std::env::home_dir();
    let below = home.as_deref().and_then(|home| home.to_str()).filter(|home| home.len() > 1);
    match below.and_then(|home| whole.strip_prefix(home)) {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("~{rest}"),
        _ => whole.to_owned(),
    }
}

impl Session {
    /// Describes what happens to changes of files.
    pub(super) fn mode(&self) -> &'static str {
        match self.config() {
            config if config.writes_through() => "programs write to it",
            config if config.apply.value => "changes are applied after each input",
            _ => "read-only, changes stay in this session",
        }
    }

    /// Returns the model's name for display, such as `openai/NAME` if the settings name a provider.
    /// Returns a description instead if a recording replaces the model, or if there is no model.
    pub(super) fn model_name(&self) -> String {
        let config = self.config();
        if let Some(model) = &self.model {
            return match &config.provider.value {
                Some(provider) => format!("{provider}/{}", model.name()),
                None => model.name().to_owned(),
            };
        }
        if let Some(cassette) = &config.cassette.value {
            return format!("recording {}", cassette.display());
        }
        match setup::endpoint(config, None) {
            Ok(named) => match &config.provider.value {
                Some(provider) => format!("{provider}/{}", named.endpoint.model),
                None => named.endpoint.model,
            },
            Err(_) => "no model".to_owned(),
        }
    }

    fn has_model(&self) -> bool {
        self.config().cassette.value.is_some() || setup::endpoint(self.config(), None).is_ok()
    }

    /// Updates the names that the line editor can complete.
    pub(super) async fn learn(&self) {
        let catalog = self.setup.host.catalog();
        let program =
            |entry: &wattle_agent::host::catalog::Entry| (entry.name().to_string(), entry.usage());
        let programs = catalog.iter().map(|entry| program(entry)).collect();
        // If the store cannot be read, only the completion of sessions is affected.
        let sessions = self.kept.store.sessions().await.unwrap_or_default();
        let changes = if self.files.is_overlay() {
            self.files.changes().unwrap_or_default()
        } else {
            Vec::new()
        };
        let presets = || wattle_agent::model::presets().iter().filter_map(|own| own.model.clone());
        let mut known = self.known.lock();
        known.programs = programs;
        known.sessions = sessions.into_iter().map(|session| session.id).collect();
        known.servers = self.setup.servers.iter().map(|one| one.name().to_owned()).collect();
        known.models =
            if self.models.is_empty() { presets().collect() } else { self.models.clone() };
        known.changes = changes.into_iter().map(|change| change.path).collect();
        known.steps = self.last.steps.last().map_or(0, |step| step.step);
        known.program = self.open.text().to_owned();
        known.root.clone_from(&self.config().root.value);
    }
}
