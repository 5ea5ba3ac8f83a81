//! Suites: folders of tasks.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::de::DeserializeOwned;
use wattle_agent::Settings;
use wattle_agent::agents::{AgentSpec, Agents};
use wattle_agent::host::DialectSetting;

use crate::error::EvalError;
use crate::keys::{SuiteKeys, TaskKeys};
use crate::place;
use crate::recording::Recordings;
use crate::task::{Budget, Task};

/// The name of the file with a suite's settings.
const SETTINGS: &str = "eval.toml";
/// The name of the folder with a suite's agents.
const AGENTS: &str = "agents";
/// The kind of tasks that are directly in the suite's folder.
const GENERAL: &str = "general";
/// Maximum size of each file in a suite, in bytes.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// A set of tasks with common settings.
#[derive(Clone, Debug)]
pub struct Suite {
    /// The suite's folder.
    pub dir: PathBuf,
    /// The description from `eval.toml`. May be empty.
    pub about: String,
    /// The tasks, sorted by id.
    pub tasks: Vec<Task>,
    /// The suite's recordings.
    pub recordings: Recordings,
    /// The agents that tasks may name.
    pub(crate) agents: Agents,
    /// The agent for tasks that do not name one.
    pub(crate) agent: Option<Arc<AgentSpec>>,
    /// The settings for requests to the model. If the dialect is `auto`, the agent and the model
    /// determine an attempt's dialect. Otherwise, the contender determines it.
    pub(crate) settings: Settings,
}

impl Suite {
    /// Loads the tasks `DIR/*.toml` and `DIR/KIND/*.toml`, the common settings `DIR/eval.toml`, and
    /// the agents `DIR/agents/*.toml`.
    ///
    /// # Errors
    /// If a file of the suite is invalid, or if the suite contains no tasks. All errors found are
    /// returned.
    pub fn load(dir: &Path) -> Result<Suite, Vec<EvalError>> {
        Suite::load_with(dir, &[])
    }

    /// Loads a suite like [`load`](Suite::load) and adds the agents from other folders. These
    /// agents replace agents with the same name in the suite's folder.
    ///
    /// # Errors
    /// If a file of the suite is invalid, or if the suite contains no tasks. All errors found are
    /// returned.
    pub fn load_with(dir: &Path, agents: &[PathBuf]) -> Result<Suite, Vec<EvalError>> {
        let (text, keys) = settings(dir).map_err(|error| vec![error])?;
        let budget = keys.budget.with_defaults(Budget::default());
        let mut settings = Settings { dialect: DialectSetting::Text, ..Settings::default() };
        settings.temperature = keys.temperature.unwrap_or(settings.temperature);
        settings.max_tokens = keys.max_tokens.map_or(settings.max_tokens, std::num::NonZero::get);

        let own = Some(dir.join(AGENTS)).filter(|own| own.is_dir());
        let folders: Vec<PathBuf> = own.into_iter().chain(agents.iter().cloned()).collect();
        let agents = Agents::open(&folders);
        let mut errors: Vec<EvalError> =
            agents.problems().into_iter().map(EvalError::agent).collect();
        let mut tasks = Vec::new();
        let files = files(dir).map_err(|error| vec![error])?;
        for (kind, path) in files {
            match task(kind, &path, budget, &text, &agents) {
                Ok(task) => tasks.push(task),
                Err(error) => errors.push(error),
            }
        }
        if tasks.is_empty() && errors.is_empty() {
            errors.push(EvalError::no_tasks(dir));
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        tasks.sort_by(|a, b| a.id.cmp(&b.id));
        let recordings = Recordings::beside(dir);
        Ok(Suite {
            dir: dir.to_owned(),
            about: keys.about.trim().to_owned(),
            tasks,
            recordings,
            agents,
            agent: None,
            settings,
        })
    }

    /// Returns the agents that tasks may name.
    #[must_use]
    pub fn agents(&self) -> &Agents {
        &self.agents
    }

    /// Sets the agent for tasks that do not name one.
    pub fn set_agent(&mut self, agent: Arc<AgentSpec>) {
        self.agent = Some(agent).filter(|agent| !agent.is_default());
    }

    /// Returns the agent that works on a task, or `None` if the model works without an agent.
    pub(crate) fn agent_of(&self, task: &Task) -> Option<Arc<AgentSpec>> {
        match &task.agent {
            Some(name) => self.agents.get(name),
            None => self.agent.clone(),
        }
    }

    /// Adds text to the system prompt of every attempt.
    pub fn set_preamble(&mut self, text: String) {
        self.settings.preamble = Some(text);
    }

    /// Removes the tasks whose ids do not contain `part`.
    pub fn filter(&mut self, part: &str) {
        self.tasks.retain(|task| task.id.contains(part));
    }
}

/// Reads the suite's settings. Returns the content of the file and the parsed settings. Both are
/// empty if the file does not exist.
fn settings(dir: &Path) -> Result<(String, SuiteKeys), EvalError> {
    let path = dir.join(SETTINGS);
    let Some(text) = place::read(&path, MAX_FILE_BYTES)? else {
        return Ok((String::new(), SuiteKeys::default()));
    };
    let keys: SuiteKeys = parse(&path, &text)?;
    if keys.temperature.is_some_and(|t| !(0.0..=2.0).contains(&t)) {
        return Err(EvalError::load(&path, "the temperature is not between 0 and 2"));
    }
    Ok((text, keys))
}

/// Returns the paths of the task files, each with the kind of its task.
fn files(dir: &Path) -> Result<Vec<(String, PathBuf)>, EvalError> {
    let mut files = Vec::new();
    for path in entries(dir)? {
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
            return Err(EvalError::load(&path, "the file's name is not UTF-8"));
        };
        let is_kind = ![Recordings::FOLDER, AGENTS].contains(&name) && !name.starts_with('.');
        if path.is_dir() && is_kind {
            files.extend(
                entries(&path)?
                    .into_iter()
                    .filter(|path| is_task(path))
                    .map(|path| (name.to_owned(), path)),
            );
        } else if is_task(&path) && name != SETTINGS {
            files.push((GENERAL.to_owned(), path));
        }
    }
    Ok(files)
}

fn is_task(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "toml") && path.is_file()
}

fn entries(dir: &Path) -> Result<Vec<PathBuf>, EvalError> {
    let unreadable = |why: std::io::Error| EvalError::load(dir, why);
    std::fs::read_dir(dir)
        .map_err(unreadable)?
        .map(|entry| entry.map(|entry| entry.path()).map_err(unreadable))
        .collect()
}

fn task(
    kind: String,
    path: &Path,
    common: Budget,
    settings: &str,
    agents: &Agents,
) -> Result<Task, EvalError> {
    let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
    let plain = |word: &str| {
        !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c))
    };
    if !plain(name) || !plain(&kind) {
        return Err(EvalError::load(
            path,
            "the names of tasks and kinds are letters, digits, `-`, `_` and `.`",
        ));
    }
    let text = place::read_existing(path, MAX_FILE_BYTES)?;
    let mut keys: TaskKeys = parse(path, &text)?;
    if keys.prompt.trim().is_empty() {
        return Err(EvalError::load(path, "the prompt is empty"));
    }
    if let Some(agent) = keys.agent.as_ref().filter(|agent| agents.get(agent).is_none()) {
        return Err(EvalError::unknown_agent(path, agent, agents));
    }
    let fixtures = keys.fixtures();
    let budget = keys.budget.with_defaults(common);
    if keys.expect.is_empty() {
        return Err(EvalError::expects_nothing(path));
    }
    let fingerprint = fingerprint(&[settings, &without_samples(path, &text)?]);
    Ok(Task {
        id: format!("{kind}/{name}"),
        kind,
        prompt: keys.prompt.trim().to_owned(),
        agent: keys.agent,
        fixtures,
        expect: keys.expect,
        samples: keys.samples,
        recording: None,
        budget,
        fingerprint,
    })
}

/// Returns the content of a task file without its samples and comments, which do not affect
/// attempts.
fn without_samples(path: &Path, text: &str) -> Result<String, EvalError> {
    let mut table: toml::Table = parse(path, text)?;
    table.remove("samples");
    toml::to_string(&table).map_err(|why| EvalError::load(path, why))
}

/// Returns the first 16 hex digits of a hash of several strings.
pub(crate) fn fingerprint(parts: &[&str]) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
    }
    let mut hex = hasher.finalize().to_hex().to_string();
    hex.truncate(16);
    hex
}

fn parse<T: DeserializeOwned>(path: &Path, text: &str) -> Result<T, EvalError> {
    toml::from_str(text).map_err(|error| EvalError::toml(path, text, &error))
}
