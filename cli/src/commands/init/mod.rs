//! `wattle init`: chooses the model, tries it with one request, and writes the user file. On a
//! terminal, a dialogue asks for what the options leave out.

mod dialogue;

use wattle_agent::host::machine::Message;
use wattle_agent::host::rt::truncate;
use wattle_agent::model::{ModelRequest, Preset, presets};

use crate::args::InitArgs;
use crate::config::{KEPT_ELSEWHERE, Layer, SettingsFile, looks_like_key};
use crate::fault::{Exit, Fault};
use crate::output::{self, visible};
use crate::setup::{Setup, variable};
use crate::{api_keys, ask, threads, trust};

/// Maximum number of tokens in the answer to the test request.
const MAX_TOKENS: u32 = 64;

/// Maximum length of the printed answer, in characters.
const SHOWN: usize = 200;

/// The environment variable that contains the key for any endpoint.
const ANY_KEY: &str = "WATTLE_API_KEY";

/// Determines the endpoint, its key and the model, and writes the endpoint and the model to the user
/// file, and the key to the file of keys. Unless `--no-test` is given, first sends a test request,
/// and writes nothing if the request fails.
pub(crate) fn init(args: InitArgs, flags: &[Layer]) -> Result<(), Fault> {
    let mut settings = SettingsFile::of_user()?;
    let mut choice = Choice::of(&args)?;
    if ask::is_terminal() && (choice.model.is_none() || choice.check().is_err()) {
        choice = dialogue::complete(choice, flags, !args.no_test)?;
    } else {
        choice = choice.check()?;
        if !args.no_test {
            choice.try_out(flags)?;
        }
    }
    choice.write_to(&mut settings)?;
    settings.save()?;
    output::note(&format!("saved in {}", settings.path().display()));
    if let Some((name, key)) = &choice.key {
        let path = api_keys::keep(name, key)?;
        output::note(&format!("the key is in {}, which only you can read", path.display()));
    }
    output::aside("next: wattle run \"…\", or wattle for a session");
    Ok(())
}

/// The provider, endpoint and model that the user chose, and a key that the user typed.
#[derive(Clone, Debug, Default)]
struct Choice {
    provider: Option<String>,
    base_url: Option<String>,
    api_key_env: Option<String>,
    model: Option<String>,
    /// The variable of the key, and the key.
    key: Option<(String, String)>,
}

impl Choice {
    /// Returns the choice of the options.
    ///
    /// # Errors
    /// If there is no such provider, or a key is given in place of a model.
    fn of(args: &InitArgs) -> Result<Choice, Fault> {
        let InitArgs { provider, base_url, api_key_env, model, .. } = args.clone();
        if model.as_deref().is_some_and(looks_like_key) {
            return Err(
                Fault::usage("the value of `--model` looks like an API key").hint(KEPT_ELSEWHERE)
            );
        }
        let choice = Choice { provider, base_url, api_key_env, model, key: None };
        match (&choice.provider, choice.preset()) {
            (Some(name), None) => Err(Fault::usage(format!("unknown provider `{name}`"))
                .hint(format!("use one of {}", names()))),
            _ => Ok(choice),
        }
    }

    fn preset(&self) -> Option<&'static Preset> {
        presets().iter().find(|preset| Some(&preset.name) == self.provider.as_ref())
    }

    /// Returns the choice with the default model of the provider, if it names none.
    ///
    /// # Errors
    /// If the endpoint, the model or the key is missing.
    fn check(&self) -> Result<Choice, Fault> {
        if self.provider.is_none() && self.base_url.is_none() {
            return Err(Fault::usage("no provider is named").hint(format!(
                "add `--provider NAME` with one of {}, or `--base-url URL`, and `--model NAME`",
                names()
            )));
        }
        let default = || self.preset().and_then(|preset| preset.model.clone());
        let model = self.model.clone().or_else(default);
        if model.is_none() {
            return Err(Fault::usage("no model is named").hint("add `--model NAME`"));
        }
        match self.missing_key() {
            Some(name) => {
                let fault =
                    Fault::configuration(format!("the variable `{name}` with the key is not set"));
                Err(fault.hint(format!("`export {name}=…`, then run `wattle init` again")))
            }
            None => Ok(Choice { model, ..self.clone() }),
        }
    }

    /// Returns the variable of the key if the endpoint needs a key and there is none.
    fn missing_key(&self) -> Option<String> {
        let preset = self.preset().filter(|preset| preset.needs_key);
        let usual = preset.and_then(|preset| preset.key_variable.clone());
        match &self.api_key_env {
            Some(name) => Some(name.clone()).filter(|name| !is_set(name)),
            None => usual.filter(|name| !is_set(name) && !is_set(ANY_KEY)),
        }
    }

    fn layer(&self) -> Layer {
        Layer {
            provider: self.provider.clone().map(Some),
            base_url: self.base_url.clone().map(Some),
            api_key_env: self.api_key_env.clone().map(Some),
            model: self.model.clone().map(Some),
            ..Layer::default()
        }
    }

    /// Writes the choice into the text of the user file.
    fn write_to(&self, settings: &mut SettingsFile) -> Result<(), Fault> {
        for (key, chosen) in [
            ("provider", &self.provider),
            ("base_url", &self.base_url),
            ("api_key_env", &self.api_key_env),
            ("model", &self.model),
        ] {
            match chosen {
                Some(text) => settings.put(key, text.as_str().into())?,
                // A setting of an earlier choice could contradict this one.
                None => drop(settings.remove(key)),
            }
        }
        Ok(())
    }

    /// Sends a first message to the model and prints the answer.
    ///
    /// # Errors
    /// If a setting is invalid, or the request fails.
    fn try_out(&self, flags: &[Layer]) -> Result<(), Fault> {
        let flags = [&[self.layer()], flags].concat();
        threads::run(async move {
            let setup = Setup::new(trust::gather(&flags)?)?;
            let model = setup.model()?;
            let name = visible(model.name());
            output::note(&format!("asking {name} …"));
            let messages = [Message::user("Answer with the word: ready")];
            let request = ModelRequest {
                temperature: 0.0,
                max_tokens: MAX_TOKENS,
                ..ModelRequest::new(&messages)
            };
            let answer = model.complete(request).await.map_err(|error| {
                Fault::new(Exit::Provider, error)
                    .hint("nothing is saved; `--no-test` saves the settings without a request")
            })?;
            let answer = truncate(answer.text.trim(), SHOWN);
            output::note(&format!("{name} answers: {}", visible(&answer)));
            Ok(())
        })
        .map(drop)
    }
}

/// Returns true if the environment or the file of keys contains a key for the variable.
fn is_set(variable_name: &str) -> bool {
    variable(variable_name).is_some_and(|key| !key.trim().is_empty())
}

fn names() -> String {
    presets().iter().map(|preset| preset.name.as_str()).collect::<Vec<_>>().join(", ")
}
