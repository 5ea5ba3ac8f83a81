//! `wattle init`: chooses the model, tries it with one request, and writes the user file.

use wattle_agent::host::machine::Message;
use wattle_agent::model::{ModelRequest, presets};

use crate::args::InitArgs;
use crate::config::{Layer, SettingsFile};
use crate::fault::{Exit, Fault};
use crate::output::{self, visible};
use crate::setup::{Setup, variable};
use crate::{ask, stdin, threads, trust};

/// Maximum number of tokens in the answer to the test request.
const MAX_TOKENS: u32 = 64;

/// Determines the endpoint and the model and writes them to the user file. Unless `--no-test` is
/// given, first sends a test request, and writes nothing if the request fails.
pub(crate) fn init(args: InitArgs, flags: &[Layer]) -> Result<(), Fault> {
    let mut settings = SettingsFile::of_user()?;
    let choice = Choice::complete(&args)?;
    choice.write_to(&mut settings)?;
    if !args.no_test {
        threads::run(try_out(&[&[choice.layer()], flags].concat()))?;
    }
    settings.save()?;
    output::note(&format!("saved in {}", settings.path().display()));
    output::aside("next: wattle run \"…\", or wattle for a session");
    Ok(())
}

/// The provider, endpoint and model that the user chose.
struct Choice {
    provider: Option<String>,
    base_url: Option<String>,
    api_key_env: Option<String>,
    model: Option<String>,
}

impl Choice {
    /// Asks at the terminal for the settings that the flags do not set.
    fn complete(args: &InitArgs) -> Result<Choice, Fault> {
        let (mut provider, base_url) = (args.provider.clone(), args.base_url.clone());
        if provider.is_none() && base_url.is_none() {
            provider = Some(choose_provider()?);
        }
        let preset = presets().iter().find(|preset| Some(&preset.name) == provider.as_ref());
        if let (Some(name), None) = (&provider, preset) {
            return Err(Fault::usage(format!("unknown provider `{name}`"))
                .hint(format!("use one of {}", names())));
        }
        let default = preset.and_then(|preset| preset.model.clone());
        let model = match (args.model.clone(), default) {
            (Some(model), _) => Some(model),
            (None, default) if ask::is_terminal() => {
                let shown = default.as_deref().map(|name| format!(" [{name}]")).unwrap_or_default();
                Some(question(&format!("model{shown}:"))?)
                    .filter(|text| !text.is_empty())
                    .or(default)
            }
            (None, default) => default,
        };
        if model.is_none() {
            return Err(Fault::usage("no model is named").hint("add `--model NAME`"));
        }
        let needed = preset.is_some_and(|preset| preset.needs_key);
        let usual = preset.and_then(|preset| preset.key_variable.clone());
        check_key(args.api_key_env.as_deref(), usual.as_deref(), needed)?;
        Ok(Choice { provider, base_url, api_key_env: args.api_key_env.clone(), model })
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

    /// Writes the choice into the user file's text.
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
}

/// Checks that the environment variable for the API key is set. The variable is `given` if the user
/// named one, and otherwise `usual`, the preset's variable. The preset's variable is checked only
/// if `needed` is true and `WATTLE_API_KEY` is not set.
fn check_key(given: Option<&str>, usual: Option<&str>, needed: bool) -> Result<(), Fault> {
    let is_set = |name: &str| variable(name).is_some_and(|key| !key.trim().is_empty());
    let missing = |name: &str| {
        Fault::configuration(format!("the variable `{name}` with the key is not set"))
            .hint(format!("`export {name}=…`, then run `wattle init` again"))
    };
    match (given, usual) {
        (Some(name), _) if !is_set(name) => Err(missing(name)),
        (None, Some(name)) if needed && !is_set(name) && !is_set("WATTLE_API_KEY") => {
            Err(missing(name))
        }
        _ => Ok(()),
    }
}

fn names() -> String {
    presets().iter().map(|preset| preset.name.as_str()).collect::<Vec<_>>().join(", ")
}

/// Asks the user at the terminal for the provider and returns its name.
fn choose_provider() -> Result<String, Fault> {
    if !ask::is_terminal() {
        return Err(Fault::usage("no provider is named").hint(format!(
            "add `--provider NAME` with one of {}, or `--base-url URL`, and `--model NAME`",
            names()
        )));
    }
    output::note(&format!("providers: {}", names()));
    question("provider:")
}

/// Prints a question and reads a line from the terminal.
fn question(text: &str) -> Result<String, Fault> {
    let failed =
        |error: std::io::Error| Fault::usage(format!("failed to read the answer: {error}"));
    output::note(text);
    let answer = stdin::lock().answer(None).map_err(failed)?.unwrap_or_default();
    Ok(answer.trim().to_owned())
}

/// Sends a test request to the model.
async fn try_out(flags: &[Layer]) -> Result<(), Fault> {
    let setup = Setup::new(trust::gather(flags)?)?;
    let model = setup.model()?;
    output::note(&format!("asking {} …", visible(model.name())));
    let messages = [Message::user("Answer with the word: ready")];
    let request =
        ModelRequest { temperature: 0.0, max_tokens: MAX_TOKENS, ..ModelRequest::new(&messages) };
    let answer = model.complete(request).await.map_err(|error| {
        Fault::new(Exit::Provider, error)
            .hint("nothing is saved; `--no-test` saves the settings without a request")
    });
    answer.map(drop)
}
