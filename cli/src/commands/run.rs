//! `wattle run`: one request, carried out.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use wattle_agent::machine::{Ending, Envelope};
use wattle_agent::{Job, Meter, Report};

use crate::args::RunArgs;
use crate::changes::{self, Fate};
use crate::config::{Config, Layer};
use crate::fault::{Exit, Fault};
use crate::progress::Live;
use crate::setup::{self, RUN_STEPS, Setup};
use crate::{input, output};

/// Carries out a request. The answer goes to stdout or a file, progress to stderr.
pub(crate) async fn run(args: RunArgs, outer: Layer) -> Result<Exit, Fault> {
    let config = Config::gather(&[args.flags.into(), outer])?;
    let setup = Setup::new(config)?;
    let model = setup.model()?;
    args.output.as_deref().map(writable).transpose()?;
    let session = setup.session()?;
    let files = setup.files()?;
    let message = input::prompt(&args.prompt)?;

    let cancel = setup::interrupt();
    let meter = Meter::default();
    let settings = setup.run_settings(RUN_STEPS, &model)?;
    let access = setup.access(Arc::clone(&files), session.as_ref(), Some((Arc::clone(&model), meter.clone())))?;
    let history = match &session {
        Some(session) => session.store.history(&session.id).await.map_err(|e| Fault::failed(e.to_string()))?,
        None => Vec::new(),
    };
    let job = Job {
        message,
        history,
        session_id: session.as_ref().map(|session| session.id.clone()),
        grants: setup.grants(access),
        workdir: Some(setup.config.root.value.clone()),
        signer: setup.signer()?,
        cancel: cancel.clone(),
        meter,
    };

    let live = Live::new(setup.config.verbose.value);
    let gone = Mutex::new(None);
    let sink = |envelope: &Envelope| {
        if args.json {
            let line = serde_json::to_value(envelope).unwrap_or_default();
            if let Err(fault) = output::json(&line) {
                // Nobody follows the run any more.
                gone.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(fault);
                cancel.cancel();
            }
        } else {
            live.show(&envelope.event);
        }
    };
    let report = wattle_agent::run(&setup.host, model.as_ref(), &settings, job, &sink).await;
    if let Some(session) = session {
        let added = session.store.extend(&session.id, report.turns.clone()).await;
        added.unwrap_or_else(|error| output::warn(&error.to_string()));
    }
    if let Some(fault) = gone.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(fault);
    }

    let exit = setup::exit_of(&report.ending);
    let settled = changes::settle(&files, Fate::of(&setup.config, matches!(exit, Exit::Done | Exit::Bound)));
    tell(&report, exit, args.json, args.output.as_deref())?;
    settled.map(|_| exit)
}

/// Puts the result where it was asked for.
fn tell(report: &Report, exit: Exit, json: bool, file: Option<&Path>) -> Result<(), Fault> {
    let text = match &report.ending {
        Ending::Failed { message } => {
            return Err(Fault::new(exit, message.strip_prefix("error: ").unwrap_or(message)));
        }
        ending if exit == Exit::Failed => {
            return Err(Fault::failed(format!("the model gave an empty answer: {:?}", ending.text())));
        }
        ending => ending.text(),
    };
    match file {
        Some(path) => std::fs::write(path, format!("{}\n", text.trim_end_matches('\n'))).map_err(|error| {
            // The answer was dear: it is not lost with the file.
            let _ = output::text(text);
            Fault::failed(format!("failed to write `{}`: {error}", path.display())).hint("the answer stands on stdout")
        }),
        None if json => Ok(()),
        None => output::text(text),
    }
}

/// Finds out before the run whether the answer's file can be written.
fn writable(path: &Path) -> Result<(), Fault> {
    let was_there = path.exists();
    let opened = std::fs::OpenOptions::new().append(true).create(true).open(path);
    opened.map_err(|error| Fault::usage(format!("failed to write `{}`: {error}", path.display())))?;
    if !was_there {
        // The file comes with the answer; a run without one leaves none.
        let _ = std::fs::remove_file(path);
    }
    Ok(())
}
