//! The conversion of examples in agents' files into a suite of tasks.

use std::path::{Component, Path, PathBuf};

use serde::de::DeserializeOwned;
use wattle_agent::Settings;
use wattle_agent::agents::{AgentExample, AgentSpec, Agents};
use wattle_agent::host::DialectSetting;

use crate::error::{EXPECTATIONS, EvalError};
use crate::expect::Expectation;
use crate::keys::SceneKeys;
use crate::recording::{self, Recordings};
use crate::samples::Samples;
use crate::suite::{Suite, fingerprint};
use crate::task::{Budget, Task};

impl Suite {
    /// Converts the examples of agents into tasks named `NAME/1`, `NAME/2` and so on, for each
    /// agent in `names`, or for all agents if `names` is empty. An agent without examples has no
    /// tasks.
    ///
    /// # Errors
    /// If an example has an unknown key or an invalid fixture or rule, or if its recording cannot
    /// be read. All errors are returned.
    pub fn of_agents(agents: &Agents, names: &[String]) -> Result<Suite, Vec<EvalError>> {
        let (mut tasks, mut errors) = (Vec::new(), Vec::new());
        for agent in agents.list() {
            if !names.is_empty() && !names.contains(&agent.name) {
                continue;
            }
            let path = agents.path(&agent.name).unwrap_or_else(|| PathBuf::from(&agent.name));
            for (number, example) in (1..).zip(&agent.examples) {
                match task(&agent, &path, number, example) {
                    Ok(task) => tasks.push(task),
                    Err(error) => errors.push(error),
                }
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        Ok(Suite {
            dir: PathBuf::new(),
            about: String::new(),
            tasks,
            recordings: Recordings::beside(Path::new("")),
            agents: agents.clone(),
            agent: None,
            // The agent's own dialect applies, as in any run of the agent.
            settings: Settings { dialect: DialectSetting::Auto, ..Settings::default() },
        })
    }
}

fn task(
    agent: &AgentSpec,
    path: &Path,
    number: usize,
    example: &AgentExample,
) -> Result<Task, EvalError> {
    let wrong = |why: &str| EvalError::load(path, format!("example {number}: {why}"));
    if example.message.trim().is_empty() {
        return Err(wrong("the message is empty"));
    }
    let scene: SceneKeys = keys(path, number, "scene", &example.scene)?;
    let expect: Expectation = keys(path, number, "expect", &example.expect)?;
    if expect.is_empty() {
        let error = wrong("it has no expectation, so every answer would pass");
        return Err(error.hint(EXPECTATIONS));
    }
    let recording = example.recording.as_deref();
    let recording =
        recording.map(|name| file(path, name).map_err(|why| wrong(&why))).transpose()?;
    if let Some(file) = &recording {
        recording::open(file)?;
    }
    let whole = serde_json::to_string(example).map_err(|why| wrong(&why.to_string()))?;
    Ok(Task {
        id: format!("{}/{number}", agent.name),
        kind: agent.name.clone(),
        prompt: example.message.trim().to_owned(),
        agent: Some(agent.name.clone()),
        fixtures: scene.into(),
        expect,
        samples: Samples::default(),
        recording,
        budget: Budget::default(),
        fingerprint: fingerprint(&[&whole]),
    })
}

/// Parses the keys of the table `part`, such as `scene`, in an example.
fn keys<T: DeserializeOwned>(
    path: &Path,
    number: usize,
    part: &str,
    table: &toml::Table,
) -> Result<T, EvalError> {
    table.clone().try_into().map_err(|error| EvalError::example(path, number, part, &error))
}

/// Returns the path of a recording in the folder that contains an agent's file.
fn file(agent: &Path, name: &str) -> Result<PathBuf, String> {
    let relative = Path::new(name);
    let is_inside = relative.components().all(|part| matches!(part, Component::Normal(_)));
    if name.is_empty() || !is_inside {
        let why = "is not a path below the folder of the agent's file";
        return Err(format!("the recording {name:?} {why}"));
    }
    let mut path = agent.parent().unwrap_or_else(|| Path::new("")).to_owned();
    for part in relative.components() {
        path.push(part);
        if path.is_symlink() {
            return Err(format!(
                "the recording `{}` is a link, which is not followed",
                path.display()
            ));
        }
    }
    if path.is_file() {
        Ok(path)
    } else {
        Err(format!("there is no recording `{}`", path.display()))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may panic")]
mod tests {
    use super::*;

    #[test]
    fn a_recording_that_is_a_link_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("secret"), "secret").unwrap();
        std::fs::create_dir_all(dir.path().join("agents/real")).unwrap();
        std::fs::write(dir.path().join("agents/real/own.txt"), "own").unwrap();
        let link = |target: &str, name: &str| {
            std::os::unix::fs::symlink(target, dir.path().join("agents").join(name)).unwrap();
        };
        link("../secret", "link.txt");
        link("..", "folder");
        let agent = dir.path().join("agents/a.toml");
        assert!(file(&agent, "real/own.txt").is_ok());
        for name in ["link.txt", "folder/secret", "folder/agents/real/own.txt"] {
            let why = file(&agent, name).unwrap_err();
            assert!(why.contains("a link, which is not followed"), "{why}");
        }
    }
}
