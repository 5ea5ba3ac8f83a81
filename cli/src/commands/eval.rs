//! `wattle eval`: runs a set of tasks against models, live or from recordings.

use std::sync::Arc;

use serde_json::json;
use wattle_agent::Settings;
use wattle_agent::model::{Model, RemoteModel};
use wattle_eval::{
    Answers, Approach, Attempt, Contender, Evaluation, Plan, Results, Scorecard, Suite, Verdict,
    evaluate,
};

use crate::args::EvalArgs;
use crate::config::{Config, Layer, Origin, Setting};
use crate::fault::{Exit, Fault};
use crate::output::{self, BAD, DIM, GOOD, WARN, paint, visible};
use crate::progress::counted;
use crate::setup::{self, Setup};

/// The results file of a live evaluation, in the suite's folder.
const RESULTS: &str = "results.jsonl";

/// Runs the suite and prints the scorecard.
pub(crate) async fn eval(args: EvalArgs, outer: Layer) -> Result<Exit, Fault> {
    let config = Config::gather(&[args.flags.clone().into(), outer])?;
    let suite = load(&args)?;
    let setup = Setup::new(config)?;
    let live = args.record || (!args.recorded && names_an_endpoint(&setup.config));
    let models = models(&args, &setup.config, &suite, live)?;
    let approaches = [Some(Approach::Programs), args.baseline.map(|_| Approach::Tools)];
    let mut contenders = Vec::new();
    for model in &models {
        let answers =
            if live { ask(&setup, model.as_deref(), args.record)? } else { Answers::Recorded };
        for approach in approaches.into_iter().flatten() {
            let model = match &answers {
                Answers::Live { model, .. } => model.name().to_owned(),
                Answers::Recorded => model.clone().unwrap_or_default(),
            };
            contenders.push(Contender { model, approach, answers: answers.clone() });
        }
    }
    let results = match args.out.clone().or_else(|| live.then(|| args.dir.join(RESULTS))) {
        Some(path) => Some(
            Results::open(&path, args.fresh).map_err(|error| Fault::usage(error.to_string()))?,
        ),
        None => None,
    };
    let plan =
        Plan { repeat: args.repeat.get(), jobs: args.jobs.get(), cancel: setup::interrupt() };
    let source = if live { "live" } else { "from recordings" };
    output::note(&paint(
        DIM,
        &format!("{} of `{}`, {source}", counted(suite.tasks.len(), "task"), args.dir.display()),
    ));
    let several = contenders.len() > 1;
    let show = |attempt: &Attempt| progress(attempt, several);
    let done = evaluate(&setup.host, &suite, &contenders, &plan, results.as_ref(), &show).await;
    let done = done.map_err(|error| Fault::failed(error.to_string()))?;
    if done.attempts.is_empty() && done.cancelled == 0 {
        return Err(no_recordings(&models, &args));
    }
    print_evaluation(&args, &done, results.as_ref())?;
    Ok(exit(&done))
}

fn load(args: &EvalArgs) -> Result<Suite, Fault> {
    if !args.dir.is_dir() {
        let fault = Fault::usage(format!("no folder `{}`", args.dir.display()));
        return Err(fault.hint("name the folder of the tasks"));
    }
    let mut suite = Suite::load(&args.dir).map_err(|errors| {
        let all: Vec<String> = errors.iter().map(ToString::to_string).collect();
        Fault::configuration(all.join("\n"))
    })?;
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

/// Returns true if the settings name an endpoint. A key alone is not enough: it may be for another
/// purpose, and requests cost money.
fn names_an_endpoint(config: &Config) -> bool {
    config.base_url.value.is_some() || config.provider.value.is_some()
}

/// Returns the models to evaluate; `None` is the default model of the endpoint's preset.
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
        let recorded =
            suite.recordings.models().map_err(|error| Fault::configuration(error.to_string()))?;
        models.extend(recorded.into_iter().map(Some));
    }
    if models.is_empty() { Err(no_recordings(&models, args)) } else { Ok(models) }
}

fn ask(setup: &Setup, model: Option<&str>, record: bool) -> Result<Answers, Fault> {
    let named = Setting { value: model.map(str::to_owned), origin: Origin::Flag };
    let config = Config { model: named, ..setup.config.clone() };
    let endpoint = setup::endpoint(&config)?;
    endpoint.key.iter().for_each(|key| setup::mask_key(key, &endpoint.key_variable));
    let client = RemoteModel::new(endpoint, setup.host.egress(), Settings::default().timeouts);
    let model: Arc<dyn Model> =
        Arc::new(client.map_err(|error| Fault::configuration(error.to_string()))?);
    Ok(Answers::Live { model, record })
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

/// Prints a line for a finished attempt, and one for each of its problems.
fn progress(attempt: &Attempt, several: bool) {
    let verdict = match attempt.verdict {
        Verdict::Passed => paint(GOOD, "passed"),
        Verdict::Failed => paint(BAD, "FAILED"),
        Verdict::Error => paint(WARN, "error "),
    };
    let mut whose =
        if several { format!(" {} by {}", attempt.model, attempt.approach) } else { String::new() };
    if attempt.trial > 1 {
        whose.push_str(&format!(" (attempt {})", attempt.trial));
    }
    output::note(&format!("{verdict} {}{}", attempt.task, paint(DIM, &visible(&whose))));
    attempt
        .problems
        .iter()
        .for_each(|problem| output::note(&format!("       {}", visible(problem))));
}

fn print_evaluation(
    args: &EvalArgs,
    done: &Evaluation,
    results: Option<&Results>,
) -> Result<(), Fault> {
    let card = Scorecard::of(&done.attempts);
    if args.json {
        output::json(&json!({
            "suite": args.dir, "rows": card.rows, "comparisons": card.comparisons, "attempts": done.attempts,
            "reused": done.reused, "unrecorded": done.unrecorded, "cancelled": done.cancelled,
        }))?;
    } else {
        output::data(visible(&card.to_string()).as_bytes())?;
    }
    let of = |count: usize| counted(count, "attempt");
    if let Some(results) = results.filter(|_| done.reused > 0) {
        let from = results.path().display();
        output::note(&paint(
            DIM,
            &format!("{} reused from `{from}`; `--fresh` repeats them", of(done.reused)),
        ));
    }
    if done.unrecorded > 0 {
        output::note(&paint(DIM, &format!("{} left out: not recorded", of(done.unrecorded))));
    }
    if done.cancelled > 0 {
        let kept = if results.is_some() { "; the same command continues from here" } else { "" };
        output::note(&format!("interrupted: {} not made{kept}", of(done.cancelled)));
    }
    Ok(())
}

fn exit(done: &Evaluation) -> Exit {
    let any = |verdict| done.attempts.iter().any(|attempt| attempt.verdict == verdict);
    match () {
        () if done.cancelled > 0 => Exit::Interrupted,
        () if any(Verdict::Error) => Exit::Provider,
        () if any(Verdict::Failed) => Exit::Failed,
        () => Exit::Done,
    }
}
