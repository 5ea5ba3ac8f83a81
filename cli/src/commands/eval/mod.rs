//! `wattle eval`: runs a set of tasks against models, live or from recordings.

mod print;

use std::path::Path;
use std::sync::Arc;

use wattle_agent::host::DialectSetting;
use wattle_agent::host::rt::without_bom;
use wattle_agent::model::Model;
use wattle_eval::{
    Answers, Approach, Attempt, Contender, Earlier, EvalError, Evaluation, Pairing, Plan, Results,
    Side, Suite, Verdict, compare, evaluate, read_attempts,
};

use crate::args::EvalArgs;
use crate::config::{Config, Layer, Origin, Setting};
use crate::fault::{Exit, Fault};
use crate::progress::{Bar, counted};
use crate::setup::{self, Setup};
use crate::{output, trust};

/// Runs the suite and prints the scorecard.
pub(crate) async fn eval(args: EvalArgs, flags: &[Layer]) -> Result<Exit, Fault> {
    let config = trust::gather(flags)?;
    let mut suite = load(&args, &config)?;
    let setup = Setup::new(config)?;
    if let Some(name) = &setup.config.agent.value {
        let agent = suite.agents().load(&setup::tenant(&setup.config)?, name).await;
        suite.set_agent(agent.map_err(Fault::usage)?);
    }
    if args.check {
        return check(&suite, &setup).await;
    }
    let earlier = args.against.as_deref().map(read_attempts).transpose().map_err(Fault::usage)?;
    let live = args.record || (!args.recorded && names_an_endpoint(&setup.config));
    let models = models(&args, &setup.config, &suite, live)?;
    let mut contenders = Vec::new();
    for model in &models {
        let answers = if live {
            Answers::Live { model: endpoint_model(&setup, model.as_deref())?, record: args.record }
        } else {
            Answers::Recorded
        };
        let name = match &answers {
            Answers::Live { model, .. } => model.name().to_owned(),
            Answers::Recorded => model.clone().unwrap_or_default(),
        };
        for approach in approaches(&args, &answers) {
            let (model, answers) = (name.clone(), answers.clone());
            contenders.push(Contender { model, approach, answers });
        }
    }
    if let (Some(path), Some(earlier)) = (&args.against, &earlier)
        && !is_comparable(&contenders, &suite, earlier)
    {
        return Err(unrelated(path, earlier));
    }
    // A live evaluation writes its results file to the suite's folder.
    let results = args.out.clone().or_else(|| live.then(|| args.dir.clone()));
    let results = results.map(|path| Results::open(&path, treatment(&args))).transpose();
    let results = results.map_err(Fault::usage)?;
    let plan = Plan {
        repeat: args.repeat.get(),
        jobs: args.jobs.get(),
        transcripts: args.save_transcripts.clone(),
        cancel: setup::interrupt(),
    };
    let source = if live { "live" } else { "from recordings" };
    output::aside(&format!(
        "{} of `{}`, {source}",
        counted(suite.tasks.len(), "task"),
        args.dir.display()
    ));
    let several = contenders.len() > 1;
    let bar = Bar::new(contenders.len() * suite.tasks.len() * plan.repeat as usize, "attempts");
    let show = |attempt: &Attempt| {
        print::progress(attempt, several);
        bar.step();
    };
    let done = evaluate(&setup.host, &suite, &contenders, &plan, results.as_ref(), &show).await;
    drop(bar);
    let done = done.map_err(Fault::failed)?;
    if done.attempts.is_empty() && done.cancelled == 0 {
        return Err(no_recordings(&models, &args));
    }
    let pairings = pairings(&contenders, &done, earlier.as_deref());
    print::evaluation(&args, &done, &pairings, results.as_ref())?;
    Ok(exit(&done))
}

/// Checks the tasks and their samples.
async fn check(suite: &Suite, setup: &Setup) -> Result<Exit, Fault> {
    let faults = suite.check(&setup.host).await.map_err(Fault::failed)?;
    if !faults.is_empty() {
        return Err(Fault::failed(faults.join("\n")));
    }
    let samples = |task: &wattle_eval::Task| task.samples.right.len() + task.samples.wrong.len();
    let samples = counted(suite.tasks.iter().map(samples).sum::<usize>(), "sample");
    output::note(&format!("{} and {samples} checked", counted(suite.tasks.len(), "task")));
    Ok(Exit::Done)
}

/// Determines how to treat the attempts that the results file already contains.
fn treatment(args: &EvalArgs) -> Earlier {
    match (args.resume, args.fresh) {
        (true, _) => Earlier::Resume,
        (_, true) => Earlier::Discard,
        _ => Earlier::Refuse,
    }
}

/// Returns the approaches to evaluate: the chosen dialects without duplicates, and the baseline if
/// it is enabled.
fn approaches(args: &EvalArgs, answers: &Answers) -> Vec<Approach> {
    let dialects = match args.dialects.as_slice() {
        [] => &[DialectSetting::Text],
        dialects => dialects,
    };
    let takes_functions = matches!(answers, Answers::Live { model, .. } if model.takes_functions());
    let mut approaches = Vec::new();
    for dialect in dialects {
        let approach = match dialect {
            DialectSetting::Native => Approach::Native,
            DialectSetting::Auto if takes_functions => Approach::Native,
            DialectSetting::Text | DialectSetting::Auto => Approach::Programs,
        };
        if !approaches.contains(&approach) {
            approaches.push(approach);
        }
    }
    approaches.extend(args.baseline.map(|_| Approach::Tools));
    approaches
}

/// A comparison of two sets of attempts. If `with_earlier` is true, the first set comes from
/// another results file.
struct Compared {
    pairing: Pairing,
    with_earlier: bool,
}

/// Compares the attempts of each contender with those of the same model and approach in `earlier`,
/// if given. Also compares each model's attempts in the text dialect with those in the native
/// dialect.
fn pairings(
    contenders: &[Contender],
    done: &Evaluation,
    earlier: Option<&[Attempt]>,
) -> Vec<Compared> {
    let mut pairings = Vec::new();
    for contender in contenders {
        let after = Side { attempts: &done.attempts, approach: contender.approach };
        if let Some(earlier) = earlier {
            let before = Side { attempts: earlier, ..after };
            let pairing = compare(&contender.model, before, after);
            pairings.extend(pairing.map(|pairing| Compared { pairing, with_earlier: true }));
        }
        if contender.approach == Approach::Native {
            let before = Side { approach: Approach::Programs, ..after };
            let pairing = compare(&contender.model, before, after);
            pairings.extend(pairing.map(|pairing| Compared { pairing, with_earlier: false }));
        }
    }
    pairings
}

/// Returns true if any earlier attempt can be compared: its task is in the suite, and a contender
/// has the same model and approach.
fn is_comparable(contenders: &[Contender], suite: &Suite, earlier: &[Attempt]) -> bool {
    earlier.iter().any(|attempt| {
        let same =
            |other: &Contender| other.model == attempt.model && other.approach == attempt.approach;
        let task = |task: &wattle_eval::Task| {
            task.id == attempt.task && task.fingerprint == attempt.fingerprint
        };
        contenders.iter().any(same) && suite.tasks.iter().any(task)
    })
}

/// Returns the error for a results file without any comparable attempt.
fn unrelated(path: &Path, attempts: &[Attempt]) -> Fault {
    let mut models: Vec<String> = attempts
        .iter()
        .map(|attempt| format!("`{}` by {}", attempt.model, attempt.approach))
        .collect();
    models.sort();
    models.dedup();
    let has = if models.is_empty() { "no attempts".to_owned() } else { models.join(", ") };
    let message = format!("there is nothing to compare in `{}`", path.display());
    Fault::usage(message).hint(format!(
        "compare the same tasks, model and approach; the file has {has}, and changed tasks do not \
         count"
    ))
}

fn load(args: &EvalArgs, config: &Config) -> Result<Suite, Fault> {
    if !args.dir.is_dir() {
        let fault = Fault::usage(format!("no folder `{}`", args.dir.display()));
        return Err(fault.hint("name the folder of the tasks"));
    }
    let mut suite = Suite::load_with(&args.dir, &config.agents.value).map_err(invalid_suite)?;
    if let Some(path) = &args.preamble {
        let text = std::fs::read_to_string(path).map_err(|why| {
            Fault::usage(format!("failed to read the preamble `{}`: {why}", path.display()))
        })?;
        suite.set_preamble(without_bom(&text).to_owned());
    }
    if let Some(part) = &args.filter {
        suite.filter(part);
        if suite.tasks.is_empty() {
            return Err(Fault::usage(format!(
                "no task has {part:?} in its name, which is `KIND/NAME`"
            )));
        }
    }
    Ok(suite)
}

/// Returns the fault for the errors in a suite.
pub(super) fn invalid_suite(errors: Vec<EvalError>) -> Fault {
    Fault::configuration(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
}

/// Returns true if the settings name an endpoint. A key alone is not enough: it may be for another
/// purpose, and requests cost money.
pub(super) fn names_an_endpoint(config: &Config) -> bool {
    config.base_url.value.is_some() || config.provider.value.is_some()
}

/// Returns the models to evaluate. `None` denotes the default model of the endpoint's preset.
fn models(
    args: &EvalArgs,
    config: &Config,
    suite: &Suite,
    live: bool,
) -> Result<Vec<Option<String>>, Fault> {
    let mut models: Vec<Option<String>> = Vec::new();
    for model in &args.models {
        if !models.contains(&Some(model.clone())) {
            models.push(Some(model.clone()));
        }
    }
    if models.is_empty() && (live || config.model.value.is_some()) {
        models.push(config.model.value.clone());
    }
    if models.is_empty() {
        let recorded = suite.recordings.models().map_err(Fault::configuration)?;
        models.extend(recorded.into_iter().map(Some));
    }
    if models.is_empty() { Err(no_recordings(&models, args)) } else { Ok(models) }
}

/// Creates the client for a model at the configured endpoint. `None` denotes the default model of
/// the endpoint's preset.
///
/// # Errors
/// If no endpoint is configured, or a setting is invalid.
pub(super) fn endpoint_model(setup: &Setup, model: Option<&str>) -> Result<Arc<dyn Model>, Fault> {
    let named = Setting { value: model.map(str::to_owned), origin: Origin::Flag };
    let config = Config { model: named, ..setup.config.clone() };
    let endpoint = setup::endpoint(&config, None)?;
    setup::client(endpoint, setup.host.egress(), setup.timeouts())
}

fn no_recordings(models: &[Option<String>], args: &EvalArgs) -> Fault {
    let named: Vec<String> = models.iter().flatten().map(|model| format!("`{model}`")).collect();
    let whose = if named.is_empty() { String::new() } else { format!(" of {}", named.join(", ")) };
    let message =
        format!("there are no recordings{whose} for these tasks in `{}`", args.dir.display());
    Fault::configuration(message).hint(
        "name an endpoint to ask, `--provider PRESET --model NAME` or `--base-url URL --model \
         NAME`; with `--record` its answers are recorded",
    )
}

/// Returns the exit code of an evaluation.
pub(super) fn exit(done: &Evaluation) -> Exit {
    let any = |verdict| done.attempts.iter().any(|attempt| attempt.verdict == verdict);
    if done.cancelled > 0 {
        Exit::Interrupted
    } else if any(Verdict::Error) {
        Exit::Provider
    } else {
        Exit::of(!any(Verdict::Failed))
    }
}
