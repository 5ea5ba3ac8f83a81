//! The dialogue of `wattle init`. Esc goes back to the previous question, and Ctrl-C ends the
//! dialogue without changing anything.

use std::fmt;
use std::time::Duration;

use inquire::validator::Validation;
use inquire::{InquireError, Password, PasswordDisplayMode, Select, Text};
use tokio::task::JoinSet;
use wattle_agent::host::capability::egress::{Egress, Policy, Url};
use wattle_agent::model::{
    ApiKey, EndpointSettings, ModelErrorKind, Preset, list_models, presets, resolve,
};

use super::{ANY_KEY, Choice, is_set};
use crate::config::{Layer, looks_like_key};
use crate::fault::{Exit, Fault};
use crate::output::{self, visible};
use crate::setup::variable;
use crate::{api_keys, threads};

/// Time limit for a server on this machine to answer.
const NEAR: Duration = Duration::from_millis(400);

/// Time limit for an endpoint to list its models.
const PATIENCE: Duration = Duration::from_secs(10);

/// Number of options that are shown at the same time.
const PAGE: usize = 12;

/// The help below a list.
const LIST_HELP: &str = "↑↓ to move, Enter to choose, type to filter, Esc to go back";

/// A question, which changes the choice.
type Question = fn(&mut Dialogue) -> Result<Move, Fault>;

/// The questions, in their order.
const STEPS: &[Question] =
    &[Dialogue::provider, Dialogue::url, Dialogue::key, Dialogue::model, Dialogue::test];

/// The positions of the questions in [`STEPS`] to which a failed test leads back.
const PROVIDER: usize = 0;
const KEY: usize = 2;
const MODEL: usize = 3;

/// The way to the next question.
enum Move {
    /// The question is answered.
    Next,
    /// There is nothing to ask.
    Skip,
    /// The user wants to go back.
    Back,
    /// Another question has to be asked again.
    To(usize),
}

struct Dialogue {
    flags: Vec<Layer>,
    /// The choice of the options. It is not asked for.
    given: Choice,
    choice: Choice,
    /// If true, the model is tried before the choice is saved.
    tests: bool,
    /// The presets whose servers answer on this machine.
    running: Vec<&'static str>,
}

/// Asks for what `given` leaves out.
///
/// # Errors
/// If the user ends the dialogue, or the terminal cannot be used.
pub(super) fn complete(given: Choice, flags: &[Layer], tests: bool) -> Result<Choice, Fault> {
    let choice = given.clone();
    let mut dialogue =
        Dialogue { flags: flags.to_vec(), given, choice, tests, running: Vec::new() };
    let (mut at, mut is_forward) = (0, true);
    while let Some(step) = STEPS.get(at) {
        (at, is_forward) = match step(&mut dialogue)? {
            Move::Next => (at + 1, true),
            Move::To(step) => (step, true),
            Move::Skip if is_forward || at == 0 => (at + 1, true),
            Move::Back if at == 0 => return Err(ended()),
            Move::Skip | Move::Back => (at - 1, false),
        };
    }
    Ok(dialogue.choice)
}

/// Returns the fault of a dialogue that the user ends.
fn ended() -> Fault {
    Fault::new(Exit::Interrupted, "nothing is saved")
}

/// Returns the answer, or `None` if the user wants to go back.
fn answer<T>(asked: Result<T, InquireError>) -> Result<Option<T>, Fault> {
    match asked {
        Ok(answer) => Ok(Some(answer)),
        Err(InquireError::OperationCanceled) => Ok(None),
        Err(InquireError::OperationInterrupted) => Err(ended()),
        Err(error) => Err(Fault::failed(format!("failed to read the answer: {error}"))),
    }
}

/// An option of the first question.
enum Offer {
    Preset(&'static Preset, String),
    Other,
}

impl fmt::Display for Offer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Offer::Preset(preset, note) => write!(f, "{:<11} {note}", preset.name),
            Offer::Other => f.write_str("another endpoint of chat completions"),
        }
    }
}

/// Returns the options of the first question. Those that can be used at once come first.
fn offers(running: &[&str], is_set: &dyn Fn(&str) -> bool) -> Vec<Offer> {
    let mut offers: Vec<(bool, Offer)> = Vec::new();
    for preset in presets() {
        let key = preset.key_variable.as_deref();
        let (is_ready, note) = match key.filter(|name| is_set(name)) {
            Some(name) => (true, format!("key found in {name}")),
            None if running.contains(&preset.name.as_str()) => {
                (true, format!("found at {}", preset.base_url))
            }
            None if preset.needs_key => (false, "needs a key".to_owned()),
            None => (false, format!("a server at {}", preset.base_url)),
        };
        offers.push((is_ready, Offer::Preset(preset, note)));
    }
    offers.sort_by_key(|(is_ready, _)| !is_ready);
    offers.into_iter().map(|(_, offer)| offer).chain([Offer::Other]).collect()
}

/// Returns the presets without keys whose servers answer on this machine.
async fn find_running() -> Result<Vec<&'static str>, Fault> {
    let egress = Egress::new(Policy::default());
    let mut asked = JoinSet::new();
    for preset in presets().iter().filter(|preset| !preset.needs_key) {
        let egress = egress.clone();
        asked.spawn(async move {
            let settings = EndpointSettings {
                provider: Some(&preset.name),
                model: Some("any"),
                ..EndpointSettings::default()
            };
            let endpoint = resolve(&settings, |_| None).ok()?;
            let listed = list_models(&endpoint, &egress, NEAR).await;
            listed.is_ok().then_some(preset.name.as_str())
        });
    }
    Ok(asked.join_all().await.into_iter().flatten().collect())
}

/// An option of the question for the model.
enum Named {
    Model(String),
    Other,
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Named::Model(name) => f.write_str(&visible(name)),
            Named::Other => f.write_str("(another name)"),
        }
    }
}

impl Dialogue {
    fn provider(&mut self) -> Result<Move, Fault> {
        if self.given.provider.is_some() || self.given.base_url.is_some() {
            return Ok(Move::Skip);
        }
        self.running = threads::look_up(find_running())?;
        let offers = offers(&self.running, &is_set);
        let asked = Select::new("Which provider answers?", offers)
            .with_page_size(PAGE + 2)
            .with_help_message(LIST_HELP)
            .prompt();
        let Some(offer) = answer(asked)? else { return Ok(Move::Back) };
        let provider = match offer {
            Offer::Preset(preset, _) => Some(preset.name.clone()),
            Offer::Other => None,
        };
        self.choice = Choice { provider, ..self.given.clone() };
        Ok(Move::Next)
    }

    fn url(&mut self) -> Result<Move, Fault> {
        if self.choice.provider.is_some() || self.given.base_url.is_some() {
            return Ok(Move::Skip);
        }
        let is_url = |text: &str| {
            let url = Url::parse(text.trim()).ok();
            let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
            Ok(match url {
                Some(url) if url.username().is_empty() && url.password().is_none() => {
                    Validation::Valid
                }
                Some(_) => Validation::Invalid("leave out the key; it is asked for next".into()),
                None => Validation::Invalid("write a URL such as http://127.0.0.1:8080/v1".into()),
            })
        };
        let asked = Text::new("URL of the endpoint:")
            .with_help_message("without /chat/completions; Esc to go back")
            .with_validator(is_url)
            .prompt();
        let Some(url) = answer(asked)? else { return Ok(Move::Back) };
        self.choice.base_url = Some(url.trim().to_owned());
        Ok(Move::Next)
    }

    fn key(&mut self) -> Result<Move, Fault> {
        let (name, is_needed) = match self.choice.preset() {
            Some(preset) => match &preset.key_variable {
                Some(name) if preset.needs_key => (name.clone(), true),
                _ => return Ok(Move::Skip),
            },
            None => (variable_of(self.choice.base_url.as_deref().unwrap_or_default()), false),
        };
        let has_typed = self.choice.key.is_some();
        let name = self.given.api_key_env.clone().unwrap_or(name);
        let of_any = self.given.api_key_env.is_none() && is_set(ANY_KEY);
        if !has_typed && (is_set(&name) || of_any) {
            if self.choice.provider.is_none() && !of_any {
                self.choice.api_key_env = Some(name);
            }
            return Ok(Move::Skip);
        }
        let check = move |text: &str| {
            Ok(match text.trim() {
                "" if !is_needed => Validation::Valid,
                "" => Validation::Invalid("this provider needs a key".into()),
                key if ApiKey::new(key).is_some() => Validation::Valid,
                _ => Validation::Invalid("a key has no spaces and no special characters".into()),
            })
        };
        let place = api_keys::path().map(|path| path.display().to_string()).unwrap_or_default();
        let none = if is_needed { "" } else { "Enter for none; " };
        let asked = Password::new(&format!("Key ({name}):"))
            .without_confirmation()
            .with_display_mode(PasswordDisplayMode::Masked)
            .with_help_message(&format!(
                "{none}kept in {place}, which only you can read; Esc to go back"
            ))
            .with_validator(check)
            .prompt();
        let Some(key) = answer(asked)? else { return Ok(Move::Back) };
        let key = key.trim();
        self.choice.key = (!key.is_empty()).then(|| (name.clone(), key.to_owned()));
        if let Some((name, key)) = &self.choice.key {
            api_keys::hold(name, key);
        }
        if self.choice.provider.is_none() {
            self.choice.api_key_env = self.choice.key.is_some().then_some(name);
        }
        Ok(Move::Next)
    }

    fn model(&mut self) -> Result<Move, Fault> {
        if self.given.model.is_some() {
            return Ok(Move::Skip);
        }
        let default = self.choice.preset().and_then(|preset| preset.model.clone());
        let listed = match threads::look_up(self.list()) {
            Ok(listed) => listed,
            Err(fault) => {
                output::warn(&format!("the models cannot be listed: {}", fault.message()));
                if fault.exit() == Exit::Denied && self.choice.key.is_some() {
                    return Ok(Move::To(KEY));
                }
                Vec::new()
            }
        };
        if !listed.is_empty() {
            let first = default.clone().into_iter();
            let rest = listed.into_iter().filter(|name| Some(name) != default.as_ref());
            let named = first.chain(rest).map(Named::Model).chain([Named::Other]).collect();
            let asked = Select::new("Which model?", named)
                .with_page_size(PAGE)
                .with_help_message(LIST_HELP)
                .prompt();
            match answer(asked)? {
                None => return Ok(Move::Back),
                Some(Named::Other) => {}
                Some(Named::Model(name)) => {
                    self.choice.model = Some(name);
                    return Ok(Move::Next);
                }
            }
        }
        let check = |text: &str| {
            Ok(match text.trim() {
                "" => Validation::Invalid("write the name of a model".into()),
                text if looks_like_key(text) => Validation::Invalid(
                    "this looks like a key; Esc goes back to the question for the key".into(),
                ),
                _ => Validation::Valid,
            })
        };
        let mut question = Text::new("Name of the model:").with_help_message("Esc to go back");
        if let Some(name) = &default {
            question = question.with_default(name);
        }
        let Some(name) = answer(question.with_validator(check).prompt())? else {
            return Ok(Move::Back);
        };
        self.choice.model = Some(name.trim().to_owned());
        Ok(Move::Next)
    }

    /// Requests the names of the endpoint's models. The exit code of the fault is that of a missing
    /// permission if the endpoint rejects the key.
    async fn list(&self) -> Result<Vec<String>, Fault> {
        let settings = EndpointSettings {
            provider: self.choice.provider.as_deref(),
            base_url: self.choice.base_url.as_deref(),
            model: Some("any"),
            api_key_env: self.choice.api_key_env.as_deref(),
            embed_model: None,
        };
        let endpoint = resolve(&settings, variable).map_err(Fault::configuration)?;
        let listed = list_models(&endpoint, &Egress::new(Policy::default()), PATIENCE).await;
        listed.map_err(|error| match error.kind() {
            ModelErrorKind::Key => Fault::new(Exit::Denied, error),
            _ => Fault::new(Exit::Provider, error),
        })
    }

    fn test(&mut self) -> Result<Move, Fault> {
        const AGAIN: &str = "try again";
        const OTHER_MODEL: &str = "choose another model";
        const OTHER_KEY: &str = "enter another key";
        const OTHER_PROVIDER: &str = "choose another provider";
        const SAVE: &str = "save it nevertheless";
        if !self.tests {
            return Ok(Move::Skip);
        }
        let Err(fault) = self.choice.try_out(&self.flags) else { return Ok(Move::Next) };
        output::warn(fault.message());
        let options = vec![AGAIN, OTHER_MODEL, OTHER_KEY, OTHER_PROVIDER, SAVE];
        let asked = Select::new("The model did not answer. What now?", options)
            .with_help_message("Esc to go back, Ctrl-C to end without saving")
            .prompt();
        Ok(match answer(asked)? {
            Some(AGAIN) => Move::To(STEPS.len() - 1),
            Some(OTHER_KEY) => {
                // A key of the environment is asked for, too.
                self.choice.key.get_or_insert_default();
                Move::To(KEY)
            }
            Some(OTHER_PROVIDER) => {
                self.given = Choice::default();
                Move::To(PROVIDER)
            }
            Some(SAVE) => Move::Next,
            _ => {
                self.given.model = None;
                Move::To(MODEL)
            }
        })
    }
}

/// Returns the name of the variable for the key of an endpoint, such as `LLM_EXAMPLE_COM_API_KEY`.
fn variable_of(url: &str) -> String {
    let host = Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned));
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    let host: String = host.unwrap_or_default().chars().map(plain).collect();
    let start = if host.starts_with(|c: char| c.is_ascii_digit()) { "HOST_" } else { "" };
    format!("{start}{host}_API_KEY")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn providers_that_are_ready_come_first() {
        let offers = offers(&["ollama"], &|name| name == "GROQ_API_KEY");
        let lines: Vec<String> = offers.iter().map(ToString::to_string).collect();
        assert!(lines[0].contains("groq") && lines[0].contains("GROQ_API_KEY"), "{lines:?}");
        assert!(lines[1].contains("ollama") && lines[1].contains("found at http://"), "{lines:?}");
        assert!(lines[2].contains("openrouter") && lines[2].contains("needs a key"), "{lines:?}");
        assert_eq!(lines.len(), presets().len() + 1);
    }

    #[test]
    fn the_variable_of_a_key_is_named_by_the_host() {
        for (url, name) in [
            ("https://llm.example.com/v1", "LLM_EXAMPLE_COM_API_KEY"),
            ("http://127.0.0.1:8080/v1", "HOST_127_0_0_1_API_KEY"),
        ] {
            assert_eq!(variable_of(url), name);
        }
    }
}
