//! `wattle agents test`: runs the examples of agents.

use serde_json::{Value as Json, json};
use wattle_eval::{Answers, Approach, Attempt, Contender, Evaluation, Plan, Suite, evaluate};

use crate::args::AgentsTestArgs;
use crate::commands::eval::{endpoint_model, exit, invalid_suite, names_an_endpoint};
use crate::commands::print_verdict;
use crate::fault::{Exit, Fault};
use crate::output::{self, BAD, DIM, GOOD, WARN, paint, visible};
use crate::progress::counted;
use crate::setup::{self, Setup};

/// Runs the examples of the named agents, or of all agents, and prints their results.
pub(super) async fn test(args: AgentsTestArgs, setup: Setup) -> Result<Exit, Fault> {
    let AgentsTestArgs { names, model, recorded, json } = args;
    super::known(&setup.agents, &names)?;
    let suite = Suite::of_agents(&setup.agents, &names).map_err(invalid_suite)?;
    if suite.tasks.is_empty() {
        return Err(Fault::usage("these agents have no examples").hint(
            "an example is a table `[[example]]` in the file of its agent, with `message` and \
             `expect`",
        ));
    }
    let is_live = !recorded && (model.is_some() || names_an_endpoint(&setup.config));
    let contender = if is_live {
        let name = model.or_else(|| setup.config.model.value.clone());
        let model = endpoint_model(&setup, name.as_deref())?;
        let (name, answers) = (model.name().to_owned(), Answers::Live { model, record: false });
        Contender { model: name, approach: Approach::Programs, answers }
    } else {
        let model = "recorded".to_owned();
        Contender { model, approach: Approach::Programs, answers: Answers::Recorded }
    };
    let plan = Plan { cancel: setup::interrupt(), ..Plan::default() };
    let done = evaluate(&setup.host, &suite, &[contender], &plan, None, &|_| {}).await;
    let done = done.map_err(Fault::failed)?;
    if done.attempts.is_empty() && done.cancelled == 0 {
        return Err(Fault::configuration("no example of these agents has a recording").hint(
            "ask a model with `--model NAME --base-url URL`, or record one: `wattle run --agent \
             NAME --record FILE \"…\"`",
        ));
    }
    // The examples of an invalid file did not run. Its problem was reported as a warning.
    let is_whole = !names.is_empty() || setup.agents.problems().is_empty();
    if json {
        output::json(&to_json(&done, is_whole))?;
    } else {
        show(&suite, &done)?;
    }
    Ok(match exit(&done) {
        Exit::Done if !is_whole => Exit::Failed,
        exit => exit,
    })
}

fn show(suite: &Suite, done: &Evaluation) -> Result<(), Fault> {
    let width = suite.tasks.iter().map(|task| task.id.len()).max().unwrap_or(0);
    for task in &suite.tasks {
        let id = format!("{:<width$}", task.id);
        let about = paint(DIM, &visible(task.prompt.lines().next().unwrap_or_default()));
        let attempt = done.attempts.iter().find(|attempt| attempt.task == task.id);
        let Some(attempt) = attempt else {
            output::styled(&format!("{} {id}  no recording", paint(WARN, "none  ")))?;
            continue;
        };
        let verdict = if attempt.passed() { paint(GOOD, "ok    ") } else { paint(BAD, "FAILED") };
        let mut text = format!("{verdict} {id}  {about}");
        for problem in &attempt.problems {
            text += &format!("\n       {}", visible(problem).replace('\n', "\n       "));
        }
        output::styled(&text)?;
    }
    let failed = done.attempts.iter().filter(|attempt| !attempt.passed()).count();
    let mut kinds: Vec<&str> = suite.tasks.iter().map(|task| task.kind.as_str()).collect();
    kinds.dedup();
    let left_out = match done.unrecorded + done.cancelled {
        0 => String::new(),
        left_out => format!(", {left_out} not run"),
    };
    let agents = counted(kinds.len(), "agent");
    print_verdict(agents, done.attempts.len(), &left_out, failed)
}

fn to_json(done: &Evaluation, is_whole: bool) -> Json {
    json!({
        "ok": is_whole && done.cancelled == 0 && done.attempts.iter().all(Attempt::passed),
        "examples": done.attempts,
        "unrecorded": done.unrecorded,
    })
}
